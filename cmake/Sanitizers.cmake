# ZEROPLAN_SANITIZE="address;undefined" or "thread". Every object of a program must agree on its sanitizer,
# so this is set for the folder and not for a target.
set(ZEROPLAN_SANITIZE "" CACHE STRING "Sanitizers to build with, separated by semicolons")

if(ZEROPLAN_SANITIZE)
  list(JOIN ZEROPLAN_SANITIZE "," sanitizers)
  add_compile_options(-fsanitize=${sanitizers} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizers})
  if("undefined" IN_LIST ZEROPLAN_SANITIZE)
    # An undefined behaviour ends the test instead of leaving a line in its log.
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
