# What the parts (core, sim, runner, gui) have in common: a static library zeroplan_<part> from <part>/src, known as
# zeroplan::<part>, and a program from <part>/tools.

# zeroplan_part_sources(<folder> <variable>): the .cpp files below <folder>, looked up again at every build.
function(zeroplan_part_sources folder variable)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp")
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()

# zeroplan_skip_part(<part> <what is missing> <Debian package>)
function(zeroplan_skip_part part missing package)
  message(STATUS "zeroplan: ${part} is not built: ${missing} not found (Debian: apt install ${package})")
endfunction()

# zeroplan_add_library(<part> <source>...)
function(zeroplan_add_library part)
  set(target zeroplan_${part})
  add_library(${target} STATIC ${ARGN})
  add_library(zeroplan::${part} ALIAS ${target})
  zeroplan_warnings(${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(
    ${target}
    PUBLIC "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
    PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/src")
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${part} POSITION_INDEPENDENT_CODE ON)
endfunction()

# zeroplan_add_program(<name> <source>...)
function(zeroplan_add_program name)
  add_executable(${name} ${ARGN})
  zeroplan_warnings(${name})
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  set_property(GLOBAL APPEND PROPERTY ZEROPLAN_PROGRAMS ${name})
endfunction()
