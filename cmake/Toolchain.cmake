# Compiler, warnings, sanitizers, and the two tools that make builds quick when they are present.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
add_compile_options(-Wall -Wextra)

# Not by itself: a ccache that is installed between two builds would compile everything again.
option(ASSAY_CCACHE "compile through ccache" OFF)
if(ASSAY_CCACHE)
  find_program(ASSAY_CCACHE_PROGRAM ccache REQUIRED)
  # Precompiled headers need both of these to be cached.
  set(ENV_FOR_CCACHE CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${ENV_FOR_CCACHE} ${ASSAY_CCACHE_PROGRAM})
  add_compile_options(-fpch-preprocess)
endif()

find_program(ASSAY_MOLD mold)
if(ASSAY_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(ASSAY_SANITIZE)
  add_compile_options(-fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ASSAY_SANITIZE})
endif()
