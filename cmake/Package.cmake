# Lets other projects use the libraries: find_package(zeroplan COMPONENTS core sim runner), then zeroplan::<component>.
include(CMakePackageConfigHelpers)
set(ZEROPLAN_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/zeroplan")

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/zeroplanConfig.cmake.in" "${PROJECT_BINARY_DIR}/package/zeroplanConfig.cmake"
  INSTALL_DESTINATION "${ZEROPLAN_PACKAGE_DIR}"
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/zeroplanConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(
  FILES "${PROJECT_BINARY_DIR}/package/zeroplanConfig.cmake" "${PROJECT_BINARY_DIR}/package/zeroplanConfigVersion.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/FindSimGrid.cmake"
  DESTINATION "${ZEROPLAN_PACKAGE_DIR}")

# zeroplan_install_library(<part>): the library, its headers, and an export of its own, so that a user of core
# needs nothing that sim depends on.
function(zeroplan_install_library part)
  install(TARGETS zeroplan_${part} EXPORT zeroplan-${part} ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT zeroplan-${part} NAMESPACE zeroplan:: DESTINATION "${ZEROPLAN_PACKAGE_DIR}")
endfunction()
