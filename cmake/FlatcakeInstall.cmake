# Installation: libraries, header, program, manual page, examples; and two descriptions for those who build on it,
# flatcake.pc for pkg-config and flatcakeConfig.cmake for find_package(flatcake), which gives flatcake::flatcake (shared)
# and flatcake::static.
include(CMakePackageConfigHelpers)

set_target_properties(flatcake_shared PROPERTIES EXPORT_NAME flatcake)
set_target_properties(flatcake PROPERTIES EXPORT_NAME static)
add_library(flatcake::flatcake ALIAS flatcake_shared)
add_library(flatcake::static ALIAS flatcake)

install(TARGETS flatcake flatcake_shared EXPORT flatcakeTargets
	ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS ${program_targets} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(FILES include/flatcake.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES packaging/flatcake.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" OPTIONAL)
install(FILES packaging/flatcaked.8 DESTINATION "${CMAKE_INSTALL_MANDIR}/man8" OPTIONAL)
install(DIRECTORY profiles DESTINATION "${CMAKE_INSTALL_DATADIR}/flatcake" FILES_MATCHING PATTERN "*.yaml")
install(FILES ${example_sources} DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples")
install(FILES README.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" OPTIONAL)

# The service: unit, user, folder of the memory arena, settings, alerts and dashboard.
set(flatcake_bin "${CMAKE_INSTALL_FULL_BINDIR}")
set(flatcake_etc "${CMAKE_INSTALL_PREFIX}/etc/flatcake")
configure_file(packaging/systemd/flatcaked.service.in flatcaked.service @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/flatcaked.service" DESTINATION lib/systemd/system)
install(FILES packaging/systemd/flatcake.sysusers DESTINATION lib/sysusers.d RENAME flatcake.conf)
install(FILES packaging/systemd/flatcake.tmpfiles DESTINATION lib/tmpfiles.d RENAME flatcake.conf)
install(FILES packaging/flatcaked.yaml DESTINATION etc/flatcake)
install(FILES packaging/prometheus/flatcake.rules.yml packaging/grafana/flatcake.json
	DESTINATION "${CMAKE_INSTALL_DATADIR}/flatcake")

list(JOIN FLATCAKE_CORE_MODULES " " core_modules)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/flatcake")
install(EXPORT flatcakeTargets NAMESPACE flatcake:: DESTINATION "${package_folder}")
configure_package_config_file(cmake/flatcakeConfig.cmake.in "${PROJECT_BINARY_DIR}/flatcakeConfig.cmake"
	INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/flatcakeConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/flatcakeConfig.cmake" "${PROJECT_BINARY_DIR}/flatcakeConfigVersion.cmake"
	DESTINATION "${package_folder}")

configure_file(cmake/flatcake.pc.in flatcake.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/flatcake.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
