#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// An enumerator and the word that stands for it in scenario files, flags and reports.
template <typename Enum>
struct Word {
    Enum value;
    std::string_view text;
};

/// Every word of an enum in the order of SCENARIO.md; to_string, the readers, the "one of:" of their errors
/// and menus all use this one table.
template <typename Enum>
std::span<const Word<Enum>> words();

template <>
std::span<const Word<EngineKind>> words();
template <>
std::span<const Word<Optimizer>> words();
template <>
std::span<const Word<OptimizerImplementation>> words();
template <>
std::span<const Word<Recompute>> words();
template <>
std::span<const Word<AttentionKernel>> words();
template <>
std::span<const Word<LossKernel>> words();
template <>
std::span<const Word<Kernels>> words();
template <>
std::span<const Word<PipelineSchedule>> words();
template <>
std::span<const Word<OffloadTarget>> words();
template <>
std::span<const Word<GradientSync>> words();
template <>
std::span<const Word<IntraNode>> words();
template <>
std::span<const Word<InterNodeKind>> words();
template <>
std::span<const Word<CollectiveAlgorithm>> words();
template <>
std::span<const Word<CollectiveProtocol>> words();

/// The word of `value`; "" for a number that is no enumerator.
template <typename Enum>
std::string_view word_of(Enum value) {
    for (const Word<Enum>& word : words<Enum>())
        if (word.value == value) return word.text;
    return {};
}

/// The enumerator that `text` stands for.
template <typename Enum>
std::optional<Enum> from_word(std::string_view text) {
    for (const Word<Enum>& word : words<Enum>())
        if (word.text == text) return word.value;
    return std::nullopt;
}

/// "none, selective, full": for errors and help texts.
template <typename Enum>
std::string word_list() {
    std::string list;
    for (const Word<Enum>& word : words<Enum>()) {
        if (!list.empty()) list += ", ";
        list += word.text;
    }
    return list;
}

}  // namespace zeroplan
