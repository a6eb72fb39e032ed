#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace zeroplan {

/// Writes a Python pickle of dictionaries, lists, strings and integers, in protocol 2 and only with the
/// opcodes that PyTorch's memory_viz reads (torch/utils/viz/MemoryViz.js, unpickle).
class PickleWriter {
public:
    PickleWriter();
    /// Between begin_… and end_…: keys and values in turn, or elements.
    void begin_dict();
    void end_dict();
    void begin_list();
    void end_list();
    void string(std::string_view text);
    void integer(std::uint64_t value);
    void boolean(bool value);

    void entry(std::string_view key, std::string_view value) { string(key), string(value); }
    void entry(std::string_view key, std::uint64_t value) { string(key), integer(value); }

    /// The whole pickle; the writer is empty after it.
    std::string take();

private:
    void little_endian(std::uint64_t value, std::size_t bytes);

    std::string out_;
    std::map<std::string, std::uint8_t, std::less<>> memo_;  ///< strings that were written before
};

}  // namespace zeroplan
