#include <algorithm>
#include <charconv>
#include <cmath>

#include "import/import_builder.hpp"
#include "import/import_readers.hpp"
#include "import/log_prefix.hpp"
#include "import/text_lines.hpp"
#include "printable.hpp"

namespace zeroplan {
namespace {

/// DeepSpeed prints GiB and calls them GB. source: deepspeed/runtime/utils.py, see_memory_usage
constexpr double printed_unit = 1073741824.0;

struct MemoryLine {
    std::size_t line = 0;
    std::string label;  ///< the line before: "Before creating fp16 partitions"
    double allocated = 0, peak_allocated = 0, reserved = 0, peak_reserved = 0;
};

std::optional<double> value_after(const std::vector<std::string>& words, std::string_view name) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        if (words[i] != name) continue;
        double value = 0;
        const char* end = words[i + 1].data() + words[i + 1].size();
        const auto parsed = std::from_chars(words[i + 1].data(), end, value);
        if (parsed.ec == std::errc{} && parsed.ptr == end && std::isfinite(value) && value >= 0 &&
            value < 1e6)
            return value * printed_unit;
    }
    return std::nullopt;
}

std::optional<MemoryLine> read_line(const TextLine& line, const std::string& label) {
    const std::vector<std::string> words = words_of(line.text);
    const auto allocated = value_after(words, "MA"), peak = value_after(words, "Max_MA");
    const auto reserved = value_after(words, "CA"), peak_reserved = value_after(words, "Max_CA");
    if (!allocated || !peak || !reserved || !peak_reserved) return std::nullopt;
    return MemoryLine{line.number, label, *allocated, *peak, *reserved, *peak_reserved};
}

std::vector<MemoryLine> read_lines(std::string_view text) {
    std::vector<MemoryLine> found;
    std::string label;
    for (const TextLine& line : text_lines(text)) {
        if (auto memory = read_line(line, label)) found.push_back(std::move(*memory));
        label = std::string(without_log_prefix(line.text));
    }
    return found;
}

std::string gib(double bytes) {
    return fixed(bytes / printed_unit, 2) + " GiB";
}

void explain(Import& import, const std::vector<MemoryLine>& lines) {
    for (const MemoryLine& line : lines)
        note(import, Finding::resolved, "", line.line,
             fmt::format("{}allocated {}, peak {}; reserved {}", line.label.empty() ? "" : line.label + ": ",
                         gib(line.allocated), gib(line.peak_allocated), gib(line.reserved)));
    const MemoryLine& last = lines.back();
    if (last.reserved < 2 * last.allocated || last.reserved - last.allocated < printed_unit) return;
    note(import, Finding::warning, "", last.line,
         fmt::format(
             "{} stay reserved while {} are allocated: the caching allocator keeps what an earlier peak "
             "needed, and nvidia-smi shows it as used",
             gib(last.reserved), gib(last.allocated)),
         "if the peak was loading, build the model under zero.Init, so that no rank ever holds all of it");
}

}  // namespace

Import import_deepspeed_memory(std::string_view text, const std::string& file) {
    Import import;
    import.kind = ImportKind::deepspeed_memory;
    import.file = import.scenario.file = file;
    const std::vector<MemoryLine> lines = read_lines(text);
    if (lines.empty())
        fail_at(import, 0, "", "no whole line of \"MA … GB Max_MA … GB CA … GB Max_CA … GB\"",
                "paste what DeepSpeed's see_memory_usage() prints");
    double peak_allocated = 0, peak_reserved = 0;
    for (const MemoryLine& line : lines) {
        peak_allocated = std::max(peak_allocated, line.peak_allocated);
        // Max_CA is rounded to whole units, CA to hundredths.
        peak_reserved = std::max({peak_reserved, line.peak_reserved, line.reserved});
    }
    figure(import, "allocated_bytes", lines.back().allocated, "B", "MA of the last line");
    figure(import, "peak_allocated_bytes", peak_allocated, "B", "largest Max_MA");
    figure(import, "reserved_bytes", lines.back().reserved, "B", "CA of the last line");
    figure(import, "peak_reserved_bytes", peak_reserved, "B",
           "largest Max_CA, which is rounded to whole GiB");
    figure(import, "reserved_unallocated_bytes",
           std::max(lines.back().reserved - lines.back().allocated, 0.0), "B", "CA − MA of the last line");
    explain(import, lines);
    return import;
}

}  // namespace zeroplan
