#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "import/import_builder.hpp"
#include "import/import_readers.hpp"
#include "import/log_prefix.hpp"
#include "import/text_lines.hpp"
#include "printable.hpp"

namespace zeroplan {
namespace {

struct Unit {
    std::string_view name;
    double bytes;
};
/// c10's format_size writes the first four; the last two stand in older messages.
constexpr std::array units{Unit{"bytes", 1},          Unit{"KiB", 1024.0},   Unit{"MiB", 1048576.0},
                           Unit{"GiB", 1073741824.0}, Unit{"MB", 1048576.0}, Unit{"GB", 1073741824.0}};

/// "388.00 MiB" at the start of `text`, in bytes.
std::optional<double> size_at(std::string_view text) {
    double number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || !std::isfinite(number) || number < 0 || number > 1e15)
        return std::nullopt;
    std::string_view rest = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
    if (!rest.starts_with(' ')) return std::nullopt;
    rest.remove_prefix(1);
    for (const Unit& unit : units)
        if (rest.starts_with(unit.name)) return number * unit.bytes;
    return std::nullopt;
}

/// The size that follows `phrase`.
std::optional<double> size_after(std::string_view text, std::string_view phrase) {
    const auto at = text.find(phrase);
    if (at == std::string_view::npos) return std::nullopt;
    return size_at(text.substr(at + phrase.size()));
}

/// The size, two words, that stands before `phrase`.
std::optional<double> size_before(std::string_view text, std::string_view phrase) {
    const auto at = text.find(phrase);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view before = text.substr(0, at);
    const auto unit = before.rfind(' ');
    if (unit == std::string_view::npos || unit == 0) return std::nullopt;
    const auto number = before.find_last_of(" (,;", unit - 1);
    return size_at(before.substr(number == std::string_view::npos ? 0 : number + 1));
}

/// An out-of-memory message, in bytes; printed with two decimals, so each is known to 0.005 of its unit.
struct Message {
    double requested = 0, capacity = 0, free = 0, allocated = 0, reserved_unallocated = 0, outside_torch = 0;
    double other_processes = 0;
    bool new_style = false;
};

/// From PyTorch 2.1 on. source: c10/cuda/CUDACachingAllocator.cpp, "Including non-PyTorch memory, …"
std::optional<Message> read_new(std::string_view text) {
    const auto capacity = size_after(text, "total capacity of ");
    const auto misspelt = size_after(text, "total capacty of ");  // as PyTorch 2.1 wrote it
    const auto free = size_before(text, " is free");
    const auto process = size_before(text, " memory in use");
    const auto allocated = size_before(text, " is allocated by PyTorch");
    const auto unallocated = size_before(text, " is reserved by PyTorch but unallocated");
    if ((!capacity && !misspelt) || !free || !process || !allocated || !unallocated) return std::nullopt;
    Message message;
    message.capacity = capacity ? *capacity : *misspelt;
    message.free = *free;
    message.allocated = *allocated;
    message.reserved_unallocated = *unallocated;
    message.outside_torch = std::max(*process - *allocated - *unallocated, 0.0);
    message.other_processes = std::max(message.capacity - *free - *process, 0.0);
    message.new_style = true;
    return message;
}

/// Up to PyTorch 2.0; "cached" up to 1.5. What is outside PyTorch includes other processes.
std::optional<Message> read_old(std::string_view text) {
    const auto capacity = size_before(text, " total capacity");
    const auto allocated = size_before(text, " already allocated");
    const auto free = size_before(text, " free");
    const auto reserved = size_before(text, " reserved in total by PyTorch");
    const auto cached = size_before(text, " cached");
    if (!capacity || !allocated || !free || (!reserved && !cached)) return std::nullopt;
    Message message;
    message.capacity = *capacity;
    message.allocated = *allocated;
    message.free = *free;
    message.reserved_unallocated = reserved ? std::max(*reserved - *allocated, 0.0) : *cached;
    message.outside_torch = std::max(*capacity - *free - *allocated - message.reserved_unallocated, 0.0);
    return message;
}

std::string gib(double bytes) {
    return fixed(bytes / 1073741824.0, 2) + " GiB";
}

void add_figures(Import& import, const Message& m) {
    figure(import, "requested_bytes", m.requested, "B", "the allocation that failed");
    figure(import, "capacity_bytes", m.capacity, "B", "what the driver offers");
    figure(import, "free_bytes", m.free, "B");
    figure(import, "allocated_bytes", m.allocated, "B", "live tensors");
    figure(import, "reserved_unallocated_bytes", m.reserved_unallocated, "B",
           "held by the allocator, not in use");
    figure(import, "reserved_bytes", m.allocated + m.reserved_unallocated, "B", "the two together");
    figure(import, "outside_torch_bytes", m.outside_torch, "B",
           m.new_style ? "context, NCCL, libraries: in use − allocated − unallocated"
                       : "context, NCCL, libraries and other processes: capacity − reserved − free");
    if (m.new_style)
        figure(import, "other_processes_bytes", m.other_processes, "B", "capacity − free − in use");
}

/// Less than this of the process unallocated is what any run has: the allocator's rounding. Assumption.
constexpr double usual_unallocated = 0.05;

void explain(Import& import, std::size_t line, const Message& m) {
    const double process = m.allocated + m.reserved_unallocated + m.outside_torch;
    const double share = process > 0 ? m.reserved_unallocated / process : 0;
    if (m.reserved_unallocated + m.free >= m.requested && share >= usual_unallocated)
        note(import, Finding::warning, "", line,
             fmt::format(
                 "fragmentation: {} ({:.0f} % of the process) is reserved but unallocated, in pieces too "
                 "small for {}: in one piece it would have fitted",
                 gib(m.reserved_unallocated), 100 * share, gib(m.requested)),
             "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    else
        note(import, Finding::warning, "", line,
             fmt::format("capacity, not fragmentation: {} of {} are live tensors and only {} is reserved but "
                         "unallocated; {} more would not fit in any arrangement",
                         gib(m.allocated), gib(m.capacity), gib(m.reserved_unallocated), gib(m.requested)),
             "a smaller micro-batch, --recompute full, a higher ZeRO stage or more GPUs: zeroplan plan tells "
             "what "
             "each saves");
    if (m.other_processes > 0.05 * m.capacity)
        note(import, Finding::warning, "", line,
             fmt::format("{} of the GPU belongs to other processes", gib(m.other_processes)),
             "nvidia-smi lists them");
}

constexpr std::string_view start = "Tried to allocate ";
/// A message stands on one line, or on some where a terminal's width breaks it (rich tracebacks).
constexpr std::size_t most_lines = 16;

/// The text of a message that begins on line `at`, its lines joined and their prefixes gone.
std::string message_at(const std::vector<TextLine>& lines, std::size_t at) {
    std::string joined;
    for (std::size_t i = at; i < std::min(lines.size(), at + most_lines); ++i) {
        std::string line(without_log_prefix(lines[i].text));
        if (i == at)
            line = line.substr(std::min(line.find(start), line.size()));
        else if (line.find(start) != std::string::npos)
            break;
        joined += line + " ";
    }
    return joined;
}

std::optional<Message> read_message(const std::string& text) {
    const auto requested = size_after(text, start);
    auto read = read_new(text);
    if (!read) read = read_old(text);
    if (!requested || !read) return std::nullopt;
    read->requested = *requested;
    return read;
}

/// Where a log has several messages: ranks fail together, and some programs catch one and try again.
void note_others(Import& import, const std::vector<Message>& messages, std::size_t line) {
    if (messages.size() < 2) return;
    const auto [least, most] =
        std::minmax_element(messages.begin(), messages.end(),
                            [](const Message& a, const Message& b) { return a.allocated < b.allocated; });
    note(import, Finding::resolved, "", line,
         fmt::format("{} out-of-memory messages, with {} to {} allocated: the last one counts",
                     messages.size(), gib(least->allocated), gib(most->allocated)));
}

}  // namespace

Import import_oom(std::string_view text, const std::string& file) {
    Import import;
    import.kind = ImportKind::oom_message;
    import.file = import.scenario.file = file;
    const std::vector<TextLine> lines = text_lines(text);
    std::vector<Message> messages;
    std::size_t line = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].text.find(start) == std::string::npos) continue;
        const auto read = read_message(message_at(lines, i));
        if (read || messages.empty()) line = lines[i].number;
        if (read) messages.push_back(*read);
    }
    if (messages.empty())
        fail_at(import, line, "", "an out-of-memory message without its figures",
                "paste it whole: from \"Tried to allocate\" to \"reserved by PyTorch but unallocated\" or "
                "\"reserved in total by PyTorch\"");
    add_figures(import, messages.back());
    explain(import, line, messages.back());
    note_others(import, messages, line);
    return import;
}

}  // namespace zeroplan
