# The data plane is one library on libtorch: its folders are layers all the same (see src/layers.txt), but one
# library lets them share one precompiled header, which costs 30 s and 700 MB each time it is built.
include(Libtorch)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
# The oneDNN that libtorch uses too. Not by its CMake package, which wants OpenCL.
find_library(ASSAY_DNNL_LIBRARY dnnl REQUIRED)
find_path(ASSAY_DNNL_INCLUDE oneapi/dnnl/dnnl.h REQUIRED)

set(data_plane_folders device nn data engine parallel models deploy)
set(data_plane_sources)
foreach(folder ${data_plane_folders})
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${assay_layer_folder_${folder}}/*.cpp)
  list(APPEND data_plane_sources ${found})
  set_source_files_properties(${found} PROPERTIES UNITY_GROUP ${folder})
endforeach()

add_library(assay_data_plane STATIC ${data_plane_sources})
target_include_directories(assay_data_plane PUBLIC ${CMAKE_SOURCE_DIR}/src/worker)
target_include_directories(assay_data_plane SYSTEM PUBLIC ${TORCH_INCLUDE_DIRS} ${ASSAY_DNNL_INCLUDE})
target_link_libraries(assay_data_plane PUBLIC assay_comm assay_param_server assay_kernels assay_config assay_record assay_text ${TORCH_LIBRARIES} gomp
                      ${ASSAY_DNNL_LIBRARY} ZLIB::ZLIB JPEG::JPEG PNG::PNG)
# libtorch was built with NDEBUG, and some of its classes have more members without it.
target_compile_definitions(assay_data_plane PUBLIC NDEBUG)
# Without it at::parallel_for, a template in libtorch's headers, runs everything on one thread and says nothing.
target_compile_options(assay_data_plane PUBLIC -fopenmp)
# -Wno-psabi: vectors go between functions that are always inlined, so how a call would pass them does not matter.
target_compile_options(assay_data_plane PRIVATE -fno-math-errno -Wno-psabi)
target_precompile_headers(assay_data_plane PRIVATE ${CMAKE_SOURCE_DIR}/cmake/torch_pch.h)
# ccache reads the whole precompiled header for every file it looks up: at 700 MB that costs more than compiling.
set_target_properties(assay_data_plane PROPERTIES CXX_COMPILER_LAUNCHER "")
# Most of a libtorch file's time goes into inline functions of libtorch; the sources of a folder are compiled at once and
# share them. So file-local names are unique in a folder.
set_target_properties(assay_data_plane PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)

# Which BLAS a program gets is decided by links in /etc/alternatives, unless its own DT_RPATH (not RUNPATH, which is not
# searched for the libraries of libraries) names one first.
find_path(ASSAY_OPENBLAS_DIR libblas.so.3
          PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp NO_DEFAULT_PATH)
function(assay_use_data_plane target)
  target_compile_options(${target} PRIVATE -fno-math-errno)
  target_precompile_headers(${target} REUSE_FROM assay_data_plane)
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "" UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
  target_link_libraries(${target} PRIVATE assay_data_plane)
  if(ASSAY_OPENBLAS_DIR)
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags,-rpath,${ASSAY_OPENBLAS_DIR})
  endif()
endfunction()

# A vendor's plugin: a library that the worker opens at run time. What it uses of assay comes from the program that opens
# it, so it links nothing of ours, and that program exports its symbols.
function(assay_add_plugin target name folder)
  add_library(${target} MODULE ${ARGN})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src/common ${CMAKE_SOURCE_DIR}/src/worker)
  target_include_directories(${target} SYSTEM PRIVATE ${TORCH_INCLUDE_DIRS})
  target_compile_options(${target} PRIVATE -fno-math-errno -fopenmp)
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${folder})
endfunction()
# vendors/<vendor>/plugin/*.cpp becomes bin/plugins/<vendor>.so, which Global.plugin names <vendor>.
file(GLOB vendor_plugins CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/vendors/*/plugin)
set(assay_vendor_plugins)
foreach(folder ${vendor_plugins})
  cmake_path(GET folder PARENT_PATH vendor_folder)
  cmake_path(GET vendor_folder FILENAME vendor)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  assay_add_plugin(assay_plugin_${vendor} ${vendor} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/plugins ${sources})
  list(APPEND assay_vendor_plugins assay_plugin_${vendor})
endforeach()
