# zeroplan_warnings(<target>): the warnings every target of ours is compiled with.
option(ZEROPLAN_WERROR "Treat warnings as errors" OFF)

function(zeroplan_warnings target)
  target_compile_options(
    ${target}
    PRIVATE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wsign-conversion
            -Wdouble-promotion
            -Wformat=2
            -Wcast-align
            -Wold-style-cast
            -Wnon-virtual-dtor
            -Woverloaded-virtual
            -Wunused
            -Wextra-semi
            # Designated initialisers name what differs from the defaults; the rest is meant to be default.
            -Wno-missing-field-initializers)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wduplicated-cond -Wduplicated-branches -Wlogical-op)
    # GCC 12 and 13 report -Wrestrict and -Warray-bounds for sums of text and std::string (GCC bug 105651), which is
    # right code; whether they do depends on the length of the text, and so on the folder that a test is built in.
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
      target_compile_options(${target} PRIVATE -Wno-restrict -Wno-array-bounds)
    endif()
  endif()
  if(ZEROPLAN_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
