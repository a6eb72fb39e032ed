#include "engines/megatron_mlp.hpp"

#include <fmt/format.h>

namespace zeroplan {

using TensorId = RankBlock::TensorId;

RankMlp::RankMlp(RankBlock& rank, bool experts)
    : rank_(rank), c_(rank.context()), d_(c_.decoder), has_experts_(experts) {
    gated_ = d_.mlp == "swiglu" || d_.mlp == "geglu";
    function_ = d_.mlp == "swiglu"         ? ActivationFunction::silu
                : d_.mlp == "relu"         ? ActivationFunction::relu
                : d_.mlp == "squared_relu" ? ActivationFunction::squared_relu
                                           : ActivationFunction::gelu;
}

RankMlp::DenseParameters RankMlp::declare_dense(const std::string& prefix, std::uint64_t ffn, bool bias) {
    BlockBuilder& block = rank_.builder();
    return {block.linear_parameters(prefix + "linear_fc1", d_.hidden_size, gated_ ? 2 * ffn : ffn, bias),
            block.linear_parameters(prefix + "linear_fc2", ffn, d_.hidden_size, bias)};
}

void RankMlp::declare(const std::string& prefix) {
    if (!has_experts_) {
        dense_ = declare_dense(prefix, c_.per_rank(d_.intermediate_size), d_.mlp_bias);
        return;
    }
    BlockBuilder& block = rank_.builder();
    const ExpertConfig& config = *d_.experts;
    const std::uint64_t local = config.count / c_.expert, ffn = config.intermediate_size / c_.expert_tensor;
    router_ = {block.parameter(prefix + "router.weight", {config.count, d_.hidden_size})};
    for (std::uint64_t e = 0; e < local; ++e)
        expert_fc1_.push_back(block.parameter(fmt::format("{}experts.linear_fc1.weight{}", prefix, e),
                                              {gated_ ? 2 * ffn : ffn, d_.hidden_size}));
    for (std::uint64_t e = 0; e < local; ++e)
        expert_fc2_.push_back(
            block.parameter(fmt::format("{}experts.linear_fc2.weight{}", prefix, e), {d_.hidden_size, ffn}));
    if (config.shared_intermediate_size > 0)
        shared_ =
            declare_dense(prefix + "shared_experts.", c_.per_rank(config.shared_intermediate_size), false);
}

TensorId RankMlp::write(TensorId x) {
    return has_experts_ ? experts(x) : dense("mlp", x, c_.per_rank(d_.intermediate_size), dense_);
}

TensorId RankMlp::dense(const std::string& name, TensorId x, std::uint64_t ffn,
                        const DenseParameters& parameters) {
    const TensorId up = rank_.column_parallel(name + ".linear_fc1", x, d_.hidden_size, gated_ ? 2 * ffn : ffn,
                                              parameters.fc1);
    const TensorId active = rank_.activation(name + ".activation", up, {.per_token = ffn}, gated_, function_);
    return rank_.row_parallel(name + ".linear_fc2", active, ffn, d_.hidden_size, parameters.fc2);
}

/// One product a local expert over the tokens that came to the rank.
TensorId RankMlp::grouped_linear(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                                 const Parameters& weights) {
    const std::uint64_t routed = c_.routed_tokens();
    const TensorId y =
        rank_.builder().add_tensor({.name = name, .extent = {.constant = checked_product(routed, out)}});
    const std::uint64_t per_token = 2 * checked_product(checked_product(in, out), routed) / c_.tokens();
    rank_.builder().add({.name = name,
                         .kind = OperatorKind::linear,
                         .inputs = {x},
                         .outputs = {y},
                         .saved = {x},
                         .parameters = weights,
                         .forward_flops = {.per_token = per_token},
                         .backward_flops = {.per_token = 2 * per_token},
                         .in_features = in,
                         .out_features = out});
    return y;
}

void RankMlp::exchange_tokens(bool dispatch) {
    using Moment = CollectiveMoment;
    const std::uint64_t whole = checked_product(c_.routed_tokens(), d_.hidden_size);
    auto& collectives = rank_.builder().last().collectives;
    const auto add = [&](CollectiveKind kind, GroupKind group, Moment moment, std::uint64_t elements) {
        collectives.push_back(
            {.kind = kind, .group = group, .moment = moment, .extent = {.constant = elements}});
    };
    const Moment scattering = dispatch ? Moment::before_forward : Moment::before_backward;
    const Moment collecting = dispatch ? Moment::after_backward : Moment::after_forward;
    for (const Moment moment : {scattering, collecting}) {
        const bool scatters = moment == scattering;
        if (c_.expert_tensor > 1 && !scatters)
            add(CollectiveKind::reduce_scatter, GroupKind::tensor_group, moment, whole);
        if (c_.expert > 1)
            add(CollectiveKind::all_to_all, GroupKind::expert_group, moment, whole / c_.expert_tensor);
        if (c_.expert_tensor > 1 && scatters)
            add(CollectiveKind::all_gather, GroupKind::tensor_group, moment, whole);
    }
}

/// Router, permutation, all-to-all, experts, and the way back (all-to-all token dispatcher with fused
/// permutation: of the moves only index maps are kept). The router's probabilities are applied in the
/// activation.
TensorId RankMlp::experts(TensorId x) {
    BlockBuilder& block = rank_.builder();
    const ExpertConfig& config = *d_.experts;
    const std::uint64_t hidden = d_.hidden_size, ffn = config.intermediate_size / c_.expert_tensor;
    const Extent routed_hidden{.constant = checked_product(c_.routed_tokens(), hidden)};

    const TensorId logits = rank_.duplicated("router", x, hidden, config.count, router_);
    // Softmax and auxiliary-loss scores in fp32, probabilities and two masks: one row of experts a token
    // each.
    const std::uint64_t row = c_.between(config.count);
    const TensorId scores = block.tensor("router.scores", 2 * row, TensorDType::fp32);
    const TensorId masks = block.tensor("router.masks", 2 * row, TensorDType::mask);
    const TensorId probabilities = block.tensor("router.probabilities", row);
    block.add({.name = "router.top_k",
               .kind = OperatorKind::softmax,
               .inputs = {logits},
               .outputs = {probabilities, scores, masks},
               .saved = {scores, masks, probabilities},
               .forward_flops = {.per_token = 10 * row},
               .backward_flops = {.per_token = 10 * row}});

    const TensorId permuted = rank_.copy("dispatch.permuted", {x, probabilities}, routed_hidden);
    const TensorId received = rank_.copy("dispatch.received", {permuted}, routed_hidden);
    exchange_tokens(true);
    const bool sorts = config.count / c_.expert > 1;
    const TensorId sorted = sorts ? rank_.copy("dispatch.sorted", {received}, routed_hidden) : received;
    const std::uint64_t wide = gated_ ? 2 * ffn : ffn;
    const TensorId up = grouped_linear("experts.linear_fc1", sorted, hidden, wide, expert_fc1_);
    const TensorId active = rank_.activation(
        "experts.activation", up, {.constant = checked_product(c_.routed_tokens(), ffn)}, gated_, function_);
    const TensorId down = grouped_linear("experts.linear_fc2", active, ffn, hidden, expert_fc2_);
    const TensorId unsorted = sorts ? rank_.copy("combine.unsorted", {down}, routed_hidden) : down;
    const TensorId returned = rank_.copy("combine.received", {unsorted}, routed_hidden);
    exchange_tokens(false);
    TensorId out = rank_.copy("combine", {returned}, {.per_token = c_.between(hidden)});
    if (config.shared_intermediate_size > 0) {
        const TensorId shared =
            dense("shared_experts", x, c_.per_rank(config.shared_intermediate_size), shared_);
        out = block.residual_add("shared_experts.add", out, shared, c_.between(hidden));
    }
    return out;
}

}  // namespace zeroplan
