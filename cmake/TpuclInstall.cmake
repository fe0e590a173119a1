# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)
install(TARGETS tpucl EXPORT tpucl-targets FILE_SET HEADERS)
install(EXPORT tpucl-targets NAMESPACE tpucl:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tpucl)
configure_package_config_file(cmake/tpucl-config.cmake.in ${PROJECT_BINARY_DIR}/tpucl-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tpucl)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tpucl-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tpucl-config.cmake ${PROJECT_BINARY_DIR}/tpucl-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tpucl)
# The prefix is found from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH TPUCL_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/tpucl.pc.in ${PROJECT_BINARY_DIR}/tpucl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tpucl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tpucl/configs)
