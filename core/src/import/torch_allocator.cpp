#include "import/torch_allocator.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "import/import_builder.hpp"
#include "nearest.hpp"
#include "printable.hpp"

namespace zeroplan {
namespace {

/// source: c10/core/AllocatorConfig.h, keys_; c10/cuda/CUDAAllocatorConfig.cpp, parseArgs
constexpr std::array<std::string_view, 18> known_keys{"backend",
                                                      "expandable_segments",
                                                      "garbage_collection_threshold",
                                                      "graph_capture_record_stream_reuse",
                                                      "large_segment_size_mb",
                                                      "max_non_split_rounding_mb",
                                                      "max_split_size_mb",
                                                      "per_process_memory_fraction",
                                                      "pinned_num_register_threads",
                                                      "pinned_reserve_segment_size_mb",
                                                      "pinned_use_background_threads",
                                                      "pinned_use_cuda_host_register",
                                                      "release_lock_on_cudamalloc",
                                                      "roundup_power2_divisions",
                                                      "throw_on_cudamalloc_oom",
                                                      "pinned_free_catch_all",
                                                      "pinned_use_hip_host_register",
                                                      "release_lock_on_hipmalloc"};
/// Those that ConfigTokenizer::toBool reads.
constexpr std::array<std::string_view, 5> switches{
    "expandable_segments", "graph_capture_record_stream_reuse", "pinned_use_background_threads",
    "pinned_use_cuda_host_register", "release_lock_on_cudamalloc"};

/// kLargeBuffer in MiB: the least of max_split_size_mb and max_non_split_rounding_mb. Releases up to 2.8
/// refuse it itself, too ("too small, must be > 20"). source: c10/core/AllocatorConfig.h, parseMaxSplitSize
constexpr std::uint64_t large_buffer_mb = 20;

template <std::size_t n>
bool is_one_of(const std::array<std::string_view, n>& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

struct Option {
    std::string key, value;
    std::string shown() const { return printable((key + ":" + value).substr(0, 80)); }
    std::optional<std::uint64_t> whole() const {
        std::uint64_t number = 0;
        const char* end = value.data() + value.size();
        const auto parsed = std::from_chars(value.data(), end, number);
        if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
        return number;
    }
};

/// Commas part options outside [ ], and white space counts for nothing. source: c10/core/AllocatorConfig.h,
/// ConfigTokenizer
std::vector<Option> options_of(std::string_view text) {
    std::vector<std::string> parts(1);
    bool in_list = false;
    for (const char c : text) {
        if (c == '[' || c == ']') in_list = c == '[';
        if (c == ',' && !in_list)
            parts.emplace_back();
        else if (std::isspace(static_cast<unsigned char>(c)) == 0)
            parts.back() += c;
    }
    std::vector<Option> options;
    for (const std::string& part : parts) {
        if (part.empty()) continue;
        const auto colon = part.find(':');
        options.push_back({part.substr(0, colon), colon == std::string::npos ? "" : part.substr(colon + 1)});
    }
    return options;
}

struct Refusal {
    std::string message, hint;
};

/// Why PyTorch raises an error when it reads the option.
std::optional<Refusal> refusal(const Option& option) {
    if (!is_one_of(known_keys, option.key)) {
        const auto near = nearest(option.key, std::span<const std::string_view>(known_keys));
        return Refusal{"PyTorch has no such option and raises an error as it starts",
                       near ? fmt::format("did you mean \"{}\"?", *near) : "remove it"};
    }
    if (is_one_of(switches, option.key) && option.value != "True" && option.value != "False")
        return Refusal{"PyTorch takes True or False, spelt so, and raises an error",
                       fmt::format("{}:True", option.key)};
    if (option.key == "backend" && option.value != "native" && option.value != "cudaMallocAsync")
        return Refusal{"PyTorch knows the allocators native and cudaMallocAsync and raises an error", ""};
    if (option.key == "max_split_size_mb" || option.key == "max_non_split_rounding_mb") {
        const auto mb = option.whole();
        if (!mb) return Refusal{"PyTorch needs a whole number of MiB and raises an error", ""};
        if (*mb < large_buffer_mb)
            return Refusal{fmt::format("too small: PyTorch raises an error below {} MiB, the size of a "
                                       "segment for large blocks",
                                       large_buffer_mb),
                           fmt::format("at least {}", large_buffer_mb + 1)};
    }
    return std::nullopt;
}

bool states_engine(const Import& import) {
    return std::any_of(import.scenario.settings.begin(), import.scenario.settings.end(),
                       [](const Setting& setting) { return setting.pointer == "/training/engine"; });
}

/// States an option of the allocator, or says how to, where it isn't known that PyTorch's is used.
void state_allocator(Import& import, const std::string& pointer, const std::string& value,
                     const std::string& name, std::size_t line) {
    if (states_engine(import))
        state(import, pointer, value, line, name);
    else
        note(import, Finding::missing, name, line,
             fmt::format("{} = {} belongs to an engine on PyTorch, and which one trains doesn't stand here",
                         pointer, value),
             fmt::format("name it with --engine, and add --set {}={}", pointer, value));
}

void import_option(Import& import, const Option& option, const std::string& name, std::size_t line) {
    constexpr std::uint64_t most_mb = 1ULL << 30;
    if (const auto refused = refusal(option)) {
        note(import, Finding::rejected, name, line, fmt::format("{}: {}", option.shown(), refused->message),
             refused->hint);
    } else if (option.key == "expandable_segments") {
        figure(import, option.key, option.value == "True" ? 1 : 0, "1", name);
        if (option.value == "True")
            state_allocator(import, "/training/allocator/expandable_segments", "true", name, line);
    } else if (option.key == "max_split_size_mb" && option.whole() == large_buffer_mb) {
        note(import, Finding::warning, name, line,
             fmt::format("{}: PyTorch up to 2.8 raises an error, for it needs more", option.shown()),
             fmt::format("max_split_size_mb:{} works with every release", large_buffer_mb + 1));
    } else if (option.key == "max_split_size_mb" && *option.whole() <= most_mb) {
        state_allocator(import, "/training/allocator/max_split_size_bytes",
                        std::to_string(*option.whole() << 20), name, line);
    } else {
        note(import, Finding::ignored, name, line,
             fmt::format("{} is not counted in what is reserved", option.shown()));
    }
}

}  // namespace

void import_allocator(Import& import, const std::string& name, const EnvironmentVariable& variable) {
    if (variable.value.find('$') != std::string::npos) {
        note(import, Finding::missing, name, variable.line,
             fmt::format("\"{}\" holds a variable whose value doesn't stand here",
                         printable(variable.value.substr(0, 80))),
             "replace it by its value");
        return;
    }
    for (const Option& option : options_of(variable.value))
        import_option(import, option, name, variable.line);
}

}  // namespace zeroplan
