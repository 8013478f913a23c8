# libtorch: Debian's, or the one that CMAKE_PREFIX_PATH or Torch_DIR names, as every PyTorch user writes it
# (-DCMAKE_PREFIX_PATH=<torch>/share/cmake or =<torch>). Its configuration file looks for the library in the system's
# folders first, so another libtorch's headers would be linked with Debian's library: a program that may crash anywhere.
# Here the folder of the configuration file decides, and headers and library outside it are an error.
# Sets ASSAY_TORCH_VERSION and ASSAY_TORCH_PREFIX.

# What the user named, if anything.
find_path(ASSAY_TORCH_CONFIG_DIR TorchConfig.cmake
          HINTS ${Torch_DIR} $ENV{Torch_DIR} ${CMAKE_PREFIX_PATH} $ENV{CMAKE_PREFIX_PATH}
          PATH_SUFFIXES Torch cmake/Torch share/cmake/Torch lib/cmake/Torch
          NO_DEFAULT_PATH)
if(ASSAY_TORCH_CONFIG_DIR)
  set(Torch_DIR ${ASSAY_TORCH_CONFIG_DIR} CACHE PATH "folder of TorchConfig.cmake" FORCE)
else()
  find_path(ASSAY_TORCH_SYSTEM_CONFIG_DIR TorchConfig.cmake
            PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/cmake /usr/local/lib/cmake /usr/lib/cmake /usr/share/cmake
            PATH_SUFFIXES Torch NO_DEFAULT_PATH)
  if(NOT ASSAY_TORCH_SYSTEM_CONFIG_DIR)
    message(FATAL_ERROR "No libtorch found. Install Debian's (apt-get install libtorch-dev; script/bootstrap build does), "
                        "or name another one: -DCMAKE_PREFIX_PATH=/path/to/libtorch")
  endif()
  set(Torch_DIR ${ASSAY_TORCH_SYSTEM_CONFIG_DIR} CACHE PATH "folder of TorchConfig.cmake" FORCE)
endif()

# The folder above it that holds the headers.
set(torch_version_header include/torch/csrc/api/include/torch/version.h)
set(ASSAY_TORCH_PREFIX ${Torch_DIR})
while(NOT EXISTS ${ASSAY_TORCH_PREFIX}/${torch_version_header})
  cmake_path(GET ASSAY_TORCH_PREFIX PARENT_PATH torch_parent)
  if(torch_parent STREQUAL ASSAY_TORCH_PREFIX)
    message(FATAL_ERROR "${Torch_DIR}/TorchConfig.cmake: no folder above it holds ${torch_version_header}; "
                        "this libtorch is not complete")
  endif()
  set(ASSAY_TORCH_PREFIX ${torch_parent})
endwhile()

list(PREPEND CMAKE_PREFIX_PATH ${ASSAY_TORCH_PREFIX})
# Found again each time: a build folder may be configured for another libtorch.
unset(TORCH_LIBRARY CACHE)
unset(c10_LIBRARY CACHE)
find_package(Torch REQUIRED PATHS ${Torch_DIR} NO_DEFAULT_PATH)
list(POP_FRONT CMAKE_PREFIX_PATH)

# Newer ones have the numbers in a header that this one includes.
foreach(header ${torch_version_header} include/torch/headeronly/version.h)
  if(EXISTS ${ASSAY_TORCH_PREFIX}/${header} AND NOT torch_version_lines)
    file(STRINGS ${ASSAY_TORCH_PREFIX}/${header} torch_version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH)")
  endif()
endforeach()
string(REGEX REPLACE "[^0-9;]" "" ASSAY_TORCH_VERSION "${torch_version_lines}")
string(REPLACE ";" "." ASSAY_TORCH_VERSION "${ASSAY_TORCH_VERSION}")
list(GET TORCH_INCLUDE_DIRS 0 torch_headers)
file(REAL_PATH ${ASSAY_TORCH_PREFIX} torch_real_prefix)
foreach(torch_part ${torch_headers} ${TORCH_LIBRARY})
  file(REAL_PATH ${torch_part} torch_real_part)
  cmake_path(IS_PREFIX torch_real_prefix ${torch_real_part} torch_part_belongs)
  if(NOT torch_part_belongs)
    message(FATAL_ERROR "Two different libtorch: headers ${ASSAY_TORCH_VERSION} in ${ASSAY_TORCH_PREFIX}/include, but "
                        "${torch_part} is outside ${ASSAY_TORCH_PREFIX}. Name a libtorch that is complete: "
                        "-DCMAKE_PREFIX_PATH=/path/to/libtorch")
  endif()
endforeach()
message(STATUS "libtorch ${ASSAY_TORCH_VERSION}: headers ${torch_headers}, library ${TORCH_LIBRARY}")
