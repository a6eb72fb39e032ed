# zeroplan_embed_files(<target> <table> <file>...)
#
# Compiles the files into <target> as the function `std::span<const File> zeroplan::embedded::<table>()`, declared in
# embedded_files.hpp. The programs so carry their presets and need no data folder at run time. The table is
# generated at build time, again when a file changes, and when the list of files does.
set(ZEROPLAN_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/EmbedFilesGenerate.cmake")

function(zeroplan_embed_files target table)
  set(list "${CMAKE_CURRENT_BINARY_DIR}/embedded/${table}.txt")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/embedded/${table}.cpp")
  # The list is a file of its own because a removed file leaves no newer dependency behind.
  list(JOIN ARGN "\n" lines)
  file(CONFIGURE OUTPUT "${list}" CONTENT "${lines}" @ONLY)
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}" "-DTABLE=${table}" "-DLIST=${list}" "-DOUTPUT=${source}" -P "${ZEROPLAN_EMBED_SCRIPT}"
    DEPENDS "${list}" "${ZEROPLAN_EMBED_SCRIPT}" ${ARGN}
    COMMENT "Embedding ${table}"
    VERBATIM)
  target_sources(${target} PRIVATE "${source}")
endfunction()
