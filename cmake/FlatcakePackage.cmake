# The Debian package, `make deb`: everything of a node in one. CPack installs into a folder of its own, PackageTree.cmake
# puts that into Debian's shape, and dpkg-shlibdeps finds the libraries that it depends on.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME flatcake)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "The FlatCake authors <flatcake@localhost.localdomain>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION database)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "store of the attention KV cache of LLM servers")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"FlatCake keeps what LLM engines have read, in memory and on SSD as peers: each
block is written once, to the place where it stays, and a conversation is read
back in a few large reads straight into the device.

This package has the daemon that the engines of a node share, the C library,
and the tools that measure, check and simulate a store.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "passwd")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "prometheus")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
foreach(script postinst prerm postrm conffiles triggers)
	list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/packaging/debian/${script}")
endforeach()

configure_file(packaging/debian/changelog.in changelog @ONLY)
configure_file(cmake/PackageTree.cmake.in PackageTree.cmake @ONLY)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_BINARY_DIR}/PackageTree.cmake")
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};flatcake;ALL;/")
include(CPack)
