#include "import/log_prefix.hpp"

#include <algorithm>
#include <array>

#include "import/text_lines.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view digits = "0123456789";

bool starts_with_digit(std::string_view text) {
    return !text.empty() && digits.find(text.front()) != std::string_view::npos;
}

/// `line` behind its first `count` characters and a colon or mpirun's stream that ends the prefix.
std::string_view behind(std::string_view line, std::size_t count) {
    line.remove_prefix(count);
    for (const std::string_view stream : {"<stdout>", "<stderr>"})
        if (line.starts_with(stream)) line.remove_prefix(stream.size());
    if (line.starts_with(':')) line.remove_prefix(1);
    return trimmed(line);
}

/// "[rank0]: ", "[INFO] "
std::size_t bracket_size(std::string_view line) {
    if (!line.starts_with('[')) return 0;
    const auto end = line.find(']');
    return end == std::string_view::npos ? 0 : end + 1;
}

/// "0: "
std::size_t task_size(std::string_view line) {
    const auto end = line.find_first_not_of(digits);
    return end != std::string_view::npos && end > 0 && line.substr(end).starts_with(": ") ? end : 0;
}

/// "Nov 02 22:41:17 node1 python[4242]: ", as journalctl prints by default.
std::size_t journal_size(std::string_view line) {
    constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    if (std::find(months.begin(), months.end(), line.substr(0, 3)) == months.end()) return 0;
    const auto end = line.find("]: ");
    if (end == std::string_view::npos || !starts_with_digit(trimmed(line.substr(3)))) return 0;
    return words_of(line.substr(0, end)).size() == 5 ? end + 1 : 0;
}

}  // namespace

std::string_view without_log_prefix(std::string_view line) {
    for (line = trimmed(line);;) {
        const std::size_t size = std::max({bracket_size(line), task_size(line), journal_size(line)});
        if (size == 0) return line;
        line = behind(line, size);
    }
}

}  // namespace zeroplan
