#include "fold/layer_run.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

bool same(const Parameter& a, const Parameter& b) {
    return a.shape == b.shape && !a.shared_with && !b.shared_with && a.trainable == b.trainable &&
           a.storage == b.storage;
}

/// `next` is `block` once more, its parameters registered right behind.
bool repeats(const ModelSpec& model, const Block& block, const Block& next) {
    if (block.kind != next.kind || block.context_from || next.context_from) return false;
    const auto count = static_cast<std::uint32_t>(block.parameters.size());
    if (next.parameters.size() != count) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (next.parameters[i] != block.parameters[i] + count) return false;
        if (!same(model.parameters[block.parameters[i]], model.parameters[next.parameters[i]])) return false;
    }
    return true;
}

/// Removes [begin, end) of a sequence, so that what follows is numbered less.
struct Removed {
    std::uint32_t begin = 0, end = 0;
    std::uint32_t renumbered(std::uint32_t index) const {
        return index < end ? index : index - (end - begin);
    }
};

template <class T>
std::vector<T> without(const std::vector<T>& all, Removed removed) {
    std::vector<T> rest;
    rest.reserve(all.size() - (removed.end - removed.begin));
    rest.insert(rest.end(), all.begin(), all.begin() + removed.begin);
    rest.insert(rest.end(), all.begin() + removed.end, all.end());
    return rest;
}

/// Parameters of the blocks that are removed: one range, since the run's blocks register theirs in order.
Removed parameters_of(const ModelSpec& model, Removed blocks) {
    if (blocks.begin == blocks.end || model.blocks[blocks.begin].parameters.empty()) return {};
    const auto& first = model.blocks[blocks.begin].parameters;
    const auto begin = *std::min_element(first.begin(), first.end());
    return {begin, begin + static_cast<std::uint32_t>(first.size()) * (blocks.end - blocks.begin)};
}

}  // namespace

LayerRun longest_run(const ModelSpec& model) {
    LayerRun longest, run;
    for (std::uint32_t b = 0; b < model.blocks.size(); ++b) {
        if (run.count > 0 && repeats(model, model.blocks[b - 1], model.blocks[b]))
            ++run.count;
        else
            run = {b, 1};
        if (run.count > longest.count) longest = run;
    }
    return longest;
}

ModelSpec shortened(const ModelSpec& model, LayerRun run, std::uint32_t kept) {
    const Removed blocks{run.first + kept, run.first + run.count};
    const Removed parameters = parameters_of(model, blocks);
    ModelSpec shorter{.name = model.name,
                      .architecture = model.architecture,
                      .parameters = without(model.parameters, parameters),
                      .block_kinds = model.block_kinds,
                      .blocks = without(model.blocks, blocks),
                      .batch = model.batch,
                      .feature_width = model.feature_width,
                      .target_is_input = model.target_is_input,
                      .vocabulary = model.vocabulary,
                      .hidden_size = model.hidden_size,
                      .layers = model.layers == 0 ? 0 : model.layers - (run.count - kept),
                      .heads = model.heads,
                      .kv_heads = model.kv_heads,
                      .max_sequence_length = model.max_sequence_length,
                      .experts = model.experts,
                      .notes = model.notes};
    for (Parameter& parameter : shorter.parameters)
        if (parameter.shared_with) parameter.shared_with = parameters.renumbered(*parameter.shared_with);
    for (Block& block : shorter.blocks) {
        for (std::uint32_t& parameter : block.parameters) parameter = parameters.renumbered(parameter);
        if (block.context_from) block.context_from = blocks.renumbered(*block.context_from);
    }
    return shorter;
}

}  // namespace zeroplan
