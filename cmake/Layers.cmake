# The libraries of src/, by the list in src/layers.txt. assay_read_layers() reads it; assay_layer(NAME [EXTERNAL target...])
# makes the library assay_NAME from its folder, which links the layers that it may include, and so cannot see another's
# headers unless a layer below it does.
set(ASSAY_LAYER_LIST ${CMAKE_SOURCE_DIR}/src/layers.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ASSAY_LAYER_LIST})

# Sets assay_layer_folder_NAME and assay_layer_uses_NAME for every line.
macro(assay_read_layers)
  file(STRINGS ${ASSAY_LAYER_LIST} layer_lines REGEX "^[a-z]")
  foreach(line ${layer_lines})
    if(NOT line MATCHES "^([a-z]+)/([a-z_]+):(( [a-z_]+)*)$")
      message(FATAL_ERROR "src/layers.txt: cannot read the line \"${line}\"; write plane/folder: folder folder")
    endif()
    set(assay_layer_folder_${CMAKE_MATCH_2} ${CMAKE_SOURCE_DIR}/src/${CMAKE_MATCH_1}/${CMAKE_MATCH_2})
    string(STRIP "${CMAKE_MATCH_3}" layer_uses)
    string(REPLACE " " ";" assay_layer_uses_${CMAKE_MATCH_2} "${layer_uses}")
  endforeach()
endmacro()

function(assay_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "EXTERNAL")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${assay_layer_folder_${name}}/*.cpp)
  cmake_path(GET assay_layer_folder_${name} PARENT_PATH plane)
  add_library(assay_${name} STATIC ${sources})
  target_include_directories(assay_${name} PUBLIC ${plane})
  list(TRANSFORM assay_layer_uses_${name} PREPEND assay_ OUTPUT_VARIABLE layers)
  target_link_libraries(assay_${name} PUBLIC ${layers} ${arg_EXTERNAL})
  if(name STREQUAL base)
    target_precompile_headers(assay_base PRIVATE ${CMAKE_SOURCE_DIR}/cmake/control_pch.h)
  else()
    target_precompile_headers(assay_${name} REUSE_FROM assay_base)
  endif()
  # Most of a file's time goes into headers of libraries; files that are compiled together share it. So file-local names
  # are unique in a folder.
  set_target_properties(assay_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  # A member of a type from an anonymous namespace is no fault here: only the file that lists the others counts as the
  # main one.
  target_compile_options(assay_${name} PRIVATE -Wno-subobject-linkage)
endfunction()
