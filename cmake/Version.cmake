# The library assay_version: the project's version and the commit it was built from, kept true at every build.
set(version_header ${CMAKE_BINARY_DIR}/generated/assay_version.h)
add_custom_target(assay_version_header
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
          -DOUTPUT=${version_header} -P ${CMAKE_SOURCE_DIR}/cmake/write_version.cmake
  BYPRODUCTS ${version_header}
  COMMENT "Checking the commit")
add_library(assay_version INTERFACE)
add_dependencies(assay_version assay_version_header)
target_include_directories(assay_version INTERFACE ${CMAKE_BINARY_DIR}/generated)
