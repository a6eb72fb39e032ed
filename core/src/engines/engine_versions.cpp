#include "engines/engine_versions.hpp"

#include <algorithm>
#include <cctype>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace zeroplan {
namespace {

using Version = std::pair<unsigned long, unsigned long>;  ///< major, minor

/// Releases of a product from `first` on, before `end`.
struct Releases {
    std::string_view product;
    Version first, end;
};

/// What engine-specific sources the rules were read in, and the releases that they hold for. Megatron-LM and
/// NeMo count in years.
std::span<const Releases> releases_of(EngineKind engine) {
    static constexpr Releases native[] = {{"native", {1, 0}, {2, 0}}};
    static constexpr Releases llm_c[] = {{"llm.c", {0, 0}, {1, 0}}};
    static constexpr Releases deepspeed[] = {{"deepspeed", {0, 3}, {1, 0}}};
    static constexpr Releases torch[] = {{"torch", {2, 0}, {3, 0}}, {"pytorch", {2, 0}, {3, 0}}};
    // torch.distributed._composable.fsdp.fully_shard came with 2.4.
    static constexpr Releases fsdp2[] = {{"torch", {2, 4}, {3, 0}}, {"pytorch", {2, 4}, {3, 0}}};
    static constexpr Releases megatron[] = {{"megatron-core", {0, 1}, {1, 0}},
                                            {"core", {0, 1}, {1, 0}},
                                            {"megatron-fsdp", {0, 1}, {1, 0}},
                                            {"megatron-lm", {2019, 0}, {2027, 0}},
                                            {"nemo", {23, 0}, {27, 0}}};
    switch (engine) {
        case EngineKind::native:
            return native;
        case EngineKind::llm_c:
            return llm_c;
        case EngineKind::deepspeed:
            return deepspeed;
        case EngineKind::megatron:
        case EngineKind::megatron_fsdp:
            return megatron;
        case EngineKind::fsdp2:
            return fsdp2;
        case EngineKind::single:
        case EngineKind::ddp:
        case EngineKind::ddp_zero_optimizer:
        case EngineKind::fsdp1:
            break;
    }
    return torch;
}

bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

unsigned long number_at(std::string_view text, std::size_t& at) {
    unsigned long number = 0;
    for (; at < text.size() && is_digit(text[at]) && number < 1'000'000; ++at)
        number = 10 * number + static_cast<unsigned long>(text[at] - '0');
    return number;
}

/// A word of at least seven hexadecimal digits.
bool is_commit(std::string_view word) {
    return word.size() >= 7 && std::all_of(word.begin(), word.end(), [](char c) {
               return std::isxdigit(static_cast<unsigned char>(c)) != 0;
           });
}

/// What stands behind a product's name: nothing, a branch, a commit, or a number within the range.
bool is_within(std::string_view text, const Releases& releases) {
    std::size_t at = 0;
    while (at < text.size() && (text[at] == ' ' || text[at] == '=' || text[at] == '>')) ++at;
    const auto end = std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_word);
    if (is_commit(text.substr(at, static_cast<std::size_t>(end - text.begin()) - at))) return true;
    if (at + 1 < text.size() && text[at] == 'v' && is_digit(text[at + 1])) ++at;
    if (at == text.size() || !is_digit(text[at])) return true;
    Version version{number_at(text, at), 0};
    if (at < text.size() && text[at] == '.') version.second = number_at(text, ++at);
    return releases.first <= version && version < releases.end;
}

/// Behind the product's name where it stands as a word of its own; npos where it doesn't.
std::size_t behind(std::string_view text, std::string_view product) {
    for (std::size_t at = text.find(product); at != std::string_view::npos; at = text.find(product, at + 1)) {
        const std::size_t end = at + product.size();
        const bool begins = at == 0 || (!is_word(text[at - 1]) && text[at - 1] != '-');
        if (begins && (end == text.size() || (!is_word(text[end]) && text[end] != '-'))) return end;
    }
    return std::string_view::npos;
}

}  // namespace

bool is_known_version(EngineKind engine, const std::string& engine_version) {
    std::string text;
    for (const char c : engine_version)
        text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const std::span<const Releases> all = releases_of(engine);
    if (!text.empty() && is_digit(text[0])) return is_within(text, all.front());
    return std::any_of(all.begin(), all.end(), [&](const Releases& releases) {
        const std::size_t end = behind(text, releases.product);
        return end != std::string_view::npos && is_within(std::string_view(text).substr(end), releases);
    });
}

std::vector<Warning> version_warnings(const TrainingConfig& training, const std::string& rule_set) {
    const std::string& stated = training.engine_version;
    if (stated.empty() || stated == rule_set || is_known_version(training.engine, stated)) return {};
    return {{"engine_version",
             fmt::format("engine_version is '{}', the rules used are those of {}", stated, rule_set)}};
}

}  // namespace zeroplan
