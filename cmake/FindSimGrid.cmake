# Finds SimGrid, which installs no package configuration of its own (up to 4.0), nor does Debian ship a module.
#
#   SimGrid::SimGrid     the library, with its headers and Boost's (which its headers include)
#   SimGrid_FOUND        and SimGrid_VERSION, read from simgrid/version.h
#
# Set SimGrid_ROOT for an installation outside of the system's folders.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_SimGrid QUIET simgrid)
endif()

find_path(SimGrid_INCLUDE_DIR NAMES simgrid/s4u.hpp HINTS ${PC_SimGrid_INCLUDE_DIRS})
find_library(SimGrid_LIBRARY NAMES simgrid HINTS ${PC_SimGrid_LIBRARY_DIRS})
find_path(SimGrid_BOOST_INCLUDE_DIR NAMES boost/intrusive_ptr.hpp)
mark_as_advanced(SimGrid_INCLUDE_DIR SimGrid_LIBRARY SimGrid_BOOST_INCLUDE_DIR)

set(SimGrid_VERSION "")
if(SimGrid_INCLUDE_DIR AND EXISTS "${SimGrid_INCLUDE_DIR}/simgrid/version.h")
  file(READ "${SimGrid_INCLUDE_DIR}/simgrid/version.h" header)
  set(numbers "")
  foreach(part IN ITEMS MAJOR MINOR PATCH)
    if(header MATCHES "#define[ \t]+SIMGRID_VERSION_${part}[ \t]+([0-9]+)")
      list(APPEND numbers ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN numbers "." SimGrid_VERSION)
  unset(header)
  unset(numbers)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  SimGrid
  REQUIRED_VARS SimGrid_LIBRARY SimGrid_INCLUDE_DIR SimGrid_BOOST_INCLUDE_DIR
  VERSION_VAR SimGrid_VERSION)

if(SimGrid_FOUND AND NOT TARGET SimGrid::SimGrid)
  add_library(SimGrid::SimGrid UNKNOWN IMPORTED)
  set_target_properties(
    SimGrid::SimGrid
    PROPERTIES IMPORTED_LOCATION "${SimGrid_LIBRARY}"
               INTERFACE_INCLUDE_DIRECTORIES "${SimGrid_INCLUDE_DIR};${SimGrid_BOOST_INCLUDE_DIR}"
               INTERFACE_COMPILE_FEATURES cxx_std_17)
endif()
