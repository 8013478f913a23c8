# What `cmake --install` and `cpack` put where. The programs lie together in lib/assay, where they find each other and their
# plugins as in a build; bin/ has links to them, and cases and vendors are in share/assay.
#   control  assay and what it reads          package assay: no libtorch
#   worker   assay-worker, assay-images       package assay-worker
include(GNUInstallDirs)
set(assay_programs ${CMAKE_INSTALL_LIBDIR}/assay)
# GNUInstallDirs names a folder per architecture, where Debian's libraries are; programs of a package are in lib/NAME.
if(assay_programs MATCHES "^lib/")
  set(assay_programs lib/assay)
endif()

# install_program(TARGET COMPONENT): the program, and its link in bin/.
function(assay_install_program target component)
  install(TARGETS ${target} RUNTIME DESTINATION ${assay_programs} COMPONENT ${component})
  set(link ${CMAKE_BINARY_DIR}/links/${target})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/links)
  file(CREATE_LINK ../${assay_programs}/${target} ${link} SYMBOLIC)
  install(FILES ${link} DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
endfunction()

assay_install_program(assay control)
install(TARGETS assay_sentencepiece LIBRARY DESTINATION ${assay_programs} COMPONENT control)
install(DIRECTORY cases vendors DESTINATION ${CMAKE_INSTALL_DATADIR}/assay COMPONENT control)
install(FILES README.md README.zh-CN.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT control)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT control)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT control)
if(ASSAY_IMAGES)
  assay_install_program(assay-images worker)
endif()
if(ASSAY_DATA_PLANE)
  assay_install_program(assay-worker worker)
  foreach(plugin ${assay_vendor_plugins})
    install(TARGETS ${plugin} LIBRARY DESTINATION ${assay_programs}/plugins COMPONENT worker)
  endforeach()
endif()

# --- cpack: Debian packages whose dependencies are those of the programs themselves
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME assay)
set(CPACK_PACKAGE_VENDOR Assay)
set(CPACK_PACKAGE_CONTACT "The Assay authors <assay@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "finds out whether an AI model runs, is right and is fast on a chip")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL control)
if(ASSAY_DATA_PLANE)
  list(APPEND CPACK_COMPONENTS_ALL worker)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CONTROL_PACKAGE_NAME assay)
set(CPACK_DEBIAN_CONTROL_DESCRIPTION
    "finds out whether an AI model runs, is right and is fast on a chip\n The control program: plans, runs, judges and reports cases, on this machine, by ssh and on Slurm.")
set(CPACK_DEBIAN_CONTROL_PACKAGE_RECOMMENDS "assay-worker, openssh-client, rsync")
set(CPACK_DEBIAN_WORKER_PACKAGE_NAME assay-worker)
set(CPACK_DEBIAN_WORKER_DESCRIPTION
    "trains, evaluates and exports the native cases of Assay\n The program that runs once per rank, on libtorch.")
# The OpenMP build of OpenBLAS is named by the program's own search path, which is not how packages' needs are found.
set(CPACK_DEBIAN_WORKER_PACKAGE_DEPENDS "assay (= ${PROJECT_VERSION}), libopenblas0-openmp")
set(CPACK_DEBIAN_WORKER_PACKAGE_RECOMMENDS "dataset-fashion-mnist")
include(CPack)
