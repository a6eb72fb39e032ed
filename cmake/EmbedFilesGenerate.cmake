# Run at build time by zeroplan_embed_files(): writes the table TABLE of the files named in LIST to OUTPUT.
# Texts become arrays of characters, not string literals: those have a size limit and need escapes.
file(STRINGS "${LIST}" files)

set(arrays "")
set(rows "")
set(index 0)
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WLE)
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  # The closing zero keeps the array of an empty file legal; the size below leaves it out.
  string(APPEND arrays "constexpr char text_${index}[] = {${bytes}0};\n")
  string(APPEND rows "    File{\"${name}\", {text_${index}, sizeof text_${index} - 1}},\n")
  math(EXPR index "${index} + 1")
endforeach()

set(contents "// Generated from ${TABLE}/ by EmbedFilesGenerate.cmake; do not edit.
#include \"embedded_files.hpp\"

#include <array>

namespace zeroplan::embedded {
namespace {
${arrays}
constexpr std::array<File, ${index}> files{
${rows}};
}  // namespace

std::span<const File> ${TABLE}() { return files; }
}  // namespace zeroplan::embedded
")
file(WRITE "${OUTPUT}" "${contents}")
