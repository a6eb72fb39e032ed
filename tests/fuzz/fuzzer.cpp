// One libFuzzer program; ZEROPLAN_FUZZ_TARGET names what it runs.
#include <algorithm>
#include <cstring>

#include "fuzz/mutate.hpp"
#include "fuzz/targets.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

const zeroplan::fuzz::Target& chosen() {
    static const zeroplan::fuzz::Target& target = zeroplan::fuzz::target(ZEROPLAN_FUZZ_TARGET);
    return target;
}

std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    chosen().run(text_of(data, size));
    return 0;
}

/// Three changes of four are to tokens, the others to bytes.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
    if (seed % 4 == 0) return LLVMFuzzerMutate(data, size, most);
    const std::string changed = zeroplan::fuzz::mutate_tokens(text_of(data, size), chosen().words, seed);
    const std::size_t length = std::min(changed.size(), most);
    std::memcpy(data, changed.data(), length);
    return length;
}
