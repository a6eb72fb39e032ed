#pragma once
#include <span>
#include <string_view>

namespace zeroplan::fuzz {

/// One reader of what users hand us. `run` returns for every input, read or refused with a zeroplan::Error;
/// any other exception, a crash or a sanitizer's report is a defect.
struct Target {
    std::string_view name;  ///< of its folder in tests/fuzz/corpus
    void (*run)(std::string_view input);
    /// Words of the format, which mutations put in: the structure that bytes alone would take ages to find.
    std::span<const std::string_view> words;
};

std::span<const Target> targets();
/// The target of that name; ends the program if there is none.
const Target& target(std::string_view name);

}  // namespace zeroplan::fuzz
