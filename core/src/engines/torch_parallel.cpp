#include "engines/torch_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace zeroplan {
namespace {

/// How a linear is split.
enum class Split : std::uint8_t { none, columns, rows };

class TensorParallelModel {
public:
    TensorParallelModel(ModelSpec model, const TrainingConfig& training)
        : model_(std::move(model)),
          degree_(training.tensor_parallel),
          sequence_parallel_(training.sequence_parallel),
          asynchronous_(training.async_tensor_parallel) {}

    ModelSpec split() {
        if (!model_.decoder)
            throw Error(ErrorCode::not_supported,
                        fmt::format("tensor parallelism of {} is not modelled", model_.architecture),
                        "set tensor_parallel to 1", {"", "/training/tensor_parallel"});
        std::vector<bool> done(model_.block_kinds.size(), false);
        for (const Block& block : model_.blocks) {
            split_parameters(block);
            if (done[block.kind]) continue;
            done[block.kind] = true;
            split_kind(model_.block_kinds[block.kind]);
        }
        return std::move(model_);
    }

private:
    std::uint64_t divided(std::uint64_t size, const std::string& what) const {
        if (size % degree_ == 0) return size / degree_;
        throw Error(ErrorCode::invalid_input,
                    fmt::format("tensor_parallel {} doesn't divide {} = {}", degree_, what, size),
                    "choose a degree that divides the heads, the widths and the vocabulary",
                    {"", "/training/tensor_parallel"});
    }

    /// A product that makes the model's width out of another is split by rows, what leaves it by columns; a
    /// query projection of the same width comes first in its block.
    Split split_of(const BlockKind& kind, std::size_t index) const {
        const Operator& op = kind.operators[index];
        if (op.kind != OperatorKind::linear) return Split::none;
        if (!kind.is_layer) return Split::columns;  // the output layer
        const bool reads_norm = reads_residual(kind, op.inputs.front());
        return reads_norm ? Split::columns : Split::rows;
    }

    /// True for a norm's output: what leaves the residual stream is read by column-parallel products.
    bool reads_residual(const BlockKind& kind, std::uint32_t tensor) const {
        for (const Operator& op : kind.operators)
            if (std::find(op.outputs.begin(), op.outputs.end(), tensor) != op.outputs.end())
                return op.name.find("norm") != std::string::npos || op.name.find("ln_") != std::string::npos;
        return tensor == 0;
    }

    void split_parameters(const Block& block) {
        const BlockKind& kind = model_.block_kinds[block.kind];
        for (std::size_t o = 0; o < kind.operators.size(); ++o) {
            const Operator& op = kind.operators[o];
            const bool table = op.kind == OperatorKind::embedding && !op.in_place;
            const Split split = table ? Split::columns : split_of(kind, o);
            if (split == Split::none) continue;
            for (const std::uint32_t position : op.parameters) {
                Parameter& parameter = model_.parameters[block.parameters[position]];
                const bool bias = parameter.shape.size() == 1;
                if (bias && split == Split::rows) continue;
                const std::size_t dimension = split == Split::columns ? 0 : 1;
                parameter.shape[dimension] = divided(parameter.shape[dimension], parameter.name);
                parameter.numel /= degree_;
            }
        }
    }

    Extent part(const Extent& extent, const std::string& what) const {
        return {.per_token = divided(extent.per_token, what),
                .per_token_pair = divided(extent.per_token_pair, what),
                .constant = extent.constant,
                .per_sequence = divided(extent.per_sequence, what)};
    }

    bool is_data(const TensorSpec& tensor) const { return tensor.dtype == TensorDType::int64; }
    /// A tensor of the residual stream, which is whole on every rank without sequence parallelism.
    bool is_residual(const TensorSpec& tensor) const {
        return tensor.extent.per_token == model_.hidden_size ||
               tensor.name.find("statistics") != std::string::npos;
    }

    void split_kind(BlockKind& kind) {
        std::vector<Split> splits;
        for (std::size_t o = 0; o < kind.operators.size(); ++o) splits.push_back(split_of(kind, o));
        const std::vector<bool> inner = inner_tensors(kind, splits);
        for (std::size_t t = 0; t < kind.tensors.size(); ++t) {
            TensorSpec& tensor = kind.tensors[t];
            // One number a row doesn't divide; it is small.
            const bool rows = tensor.name.find("statistics") != std::string::npos;
            if (is_data(tensor) || rows || (!inner[t] && !sequence_parallel_)) continue;
            tensor.extent = part(tensor.extent, tensor.name);
        }
        for (std::size_t o = 0; o < kind.operators.size(); ++o) split_operator(kind.operators[o]);
        if (sequence_parallel_)
            add_collectives(kind, splits);
        else
            add_all_reduces(kind, splits);
    }

    /// Tensors between a column-parallel product and the row-parallel one behind it (or the loss).
    std::vector<bool> inner_tensors(const BlockKind& kind, const std::vector<Split>& splits) const {
        std::vector<bool> inner(kind.tensors.size(), false);
        for (std::size_t o = 0; o < kind.operators.size(); ++o) {
            const Operator& op = kind.operators[o];
            const bool from_inner = std::any_of(op.inputs.begin(), op.inputs.end(),
                                                [&](std::uint32_t tensor) { return inner[tensor]; });
            if (splits[o] == Split::columns || (from_inner && splits[o] != Split::rows))
                for (const std::uint32_t tensor : op.outputs) inner[tensor] = true;
        }
        return inner;
    }

    void split_operator(Operator& op) const {
        const auto share = [&](std::uint64_t value) { return (value + degree_ - 1) / degree_; };
        for (Flops* flops : {&op.forward_flops, &op.backward_flops})
            *flops = {share(flops->per_token), share(flops->per_token_pair), share(flops->per_sequence)};
        for (Extent* extent : {&op.forward_workspace, &op.backward_workspace})
            *extent = {share(extent->per_token), share(extent->per_token_pair), share(extent->constant),
                       share(extent->per_sequence)};
    }

    OperatorCollective communicate(CollectiveKind collective, CollectiveMoment moment,
                                   const Extent& whole) const {
        return {.kind = collective,
                .group = GroupKind::tensor_group,
                .moment = moment,
                .extent = whole,
                .overlapped = asynchronous_};
    }

    /// Without sequence parallelism a partial result is all-reduced where it is made: forward behind
    /// row-parallel products, backward behind the first of the column-parallel ones that read one tensor.
    void add_all_reduces(BlockKind& kind, const std::vector<Split>& splits) const {
        std::vector<bool> reduced(kind.tensors.size(), false);
        for (std::size_t o = 0; o < kind.operators.size(); ++o) {
            Operator& op = kind.operators[o];
            if (is_partial(op, splits[o]))
                op.collectives.push_back(communicate(CollectiveKind::all_reduce,
                                                     CollectiveMoment::after_forward,
                                                     kind.tensors[op.outputs.front()].extent));
            if (splits[o] != Split::columns || reduced[op.inputs.front()]) continue;
            reduced[op.inputs.front()] = true;
            op.collectives.push_back(communicate(CollectiveKind::all_reduce, CollectiveMoment::after_backward,
                                                 kind.tensors[op.inputs.front()].extent));
        }
    }

    static bool is_partial(const Operator& op, Split split) {
        return split == Split::rows || (op.kind == OperatorKind::embedding && !op.in_place);
    }

    /// Gathers in front of column-parallel products and reduce-scatters behind row-parallel ones.
    void add_collectives(BlockKind& kind, const std::vector<Split>& splits) {
        std::vector<Operator> operators;
        std::vector<std::uint32_t> gathered(kind.tensors.size(), 0);
        std::set<std::uint32_t> overlapped;
        for (std::size_t o = 0; o < kind.operators.size(); ++o) {
            Operator op = kind.operators[o];
            if (splits[o] == Split::columns) {
                std::uint32_t& whole = gathered[op.inputs.front()];
                if (whole == 0) whole = add_gather(kind, op.inputs.front(), operators);
                for (std::uint32_t& tensor : op.saved)
                    if (tensor == op.inputs.front()) tensor = whole;
                op.inputs.front() = whole;
            }
            if (asynchronous_) add_overlapped(kind, op, splits[o], overlapped);
            if (!is_partial(op, splits[o])) {
                operators.push_back(std::move(op));
                continue;
            }
            const std::uint32_t result = op.outputs.front();
            op.outputs.front() = add_whole(kind, result, op.name + ".partial");
            const std::uint32_t whole = op.outputs.front();
            const std::string name = op.name + ".reduce_scatter";
            const bool hidden = asynchronous_ && op.kind == OperatorKind::linear;
            operators.push_back(std::move(op));
            operators.push_back(
                {.name = name,
                 .kind = OperatorKind::elementwise,
                 .inputs = {whole},
                 .outputs = {result},
                 .collectives = moved_whole(kind, whole, hidden, CollectiveMoment::before_backward,
                                            CollectiveMoment::after_forward)});
        }
        kind.operators = std::move(operators);
    }

    /// One gather and one reduce-scatter of a tensor. `hidden`: asynchronous tensor parallelism has put them
    /// into the products (add_overlapped), and this operator only allocates.
    std::vector<OperatorCollective> moved_whole(const BlockKind& kind, std::uint32_t whole, bool hidden,
                                                CollectiveMoment gathers, CollectiveMoment scatters) const {
        const Extent extent = hidden ? Extent{} : kind.tensors[whole].extent;
        std::vector<OperatorCollective> moves{communicate(CollectiveKind::all_gather, gathers, extent),
                                              communicate(CollectiveKind::reduce_scatter, scatters, extent)};
        for (OperatorCollective& move : moves) move.overlapped = false;
        return moves;
    }

    /// Cut into as many pieces as there are ranks, a product and its communication disturb each other: about
    /// half of the communication stays exposed (assumption; torchtitan's 2025-06 benchmarks of asynchronous
    /// against plain tensor parallelism, bf16, 8B and 70B).
    void add_half_hidden(Operator& op, CollectiveKind kind, CollectiveMoment moment, Extent whole) const {
        const Extent half{(whole.per_token + 1) / 2, (whole.per_token_pair + 1) / 2,
                          (whole.constant + 1) / 2};
        op.collectives.push_back(communicate(kind, moment, half));
        op.collectives.push_back(communicate(kind, moment, half));
        op.collectives.back().overlapped = false;
    }

    /// Products that read one gathered tensor share the gather: the first has it.
    /// source: torch/distributed/_symmetric_memory: fused_all_gather_matmul, fused_matmul_reduce_scatter.
    void add_overlapped(const BlockKind& kind, Operator& op, Split split,
                        std::set<std::uint32_t>& gathered) const {
        using Moment = CollectiveMoment;
        if (op.kind != OperatorKind::linear || split == Split::none) return;
        const bool columns = split == Split::columns;
        const std::uint32_t tensor = columns ? op.inputs.front() : op.outputs.front();
        Extent whole = kind.tensors[tensor].extent;
        if (columns && !gathered.insert(tensor).second) return;
        if (!columns) whole = {whole.per_token * degree_, whole.per_token_pair * degree_, whole.constant};
        add_half_hidden(op, CollectiveKind::all_gather,
                        columns ? Moment::before_forward : Moment::before_backward, whole);
        add_half_hidden(op, CollectiveKind::reduce_scatter,
                        columns ? Moment::after_backward : Moment::after_forward, whole);
    }

    std::uint32_t add_whole(BlockKind& kind, std::uint32_t part, std::string name) const {
        TensorSpec spec = kind.tensors[part];
        spec.name = std::move(name);
        spec.extent = {spec.extent.per_token * degree_, spec.extent.per_token_pair * degree_,
                       spec.extent.constant, spec.extent.per_sequence * degree_};
        kind.tensors.push_back(std::move(spec));
        return static_cast<std::uint32_t>(kind.tensors.size() - 1);
    }

    std::uint32_t add_gather(BlockKind& kind, std::uint32_t part, std::vector<Operator>& operators) const {
        const std::string name = kind.tensors[part].name + ".gathered";
        const std::uint32_t whole = add_whole(kind, part, name);
        operators.push_back(
            {.name = name,
             .kind = OperatorKind::elementwise,
             .inputs = {part},
             .outputs = {whole},
             .collectives = moved_whole(kind, whole, asynchronous_, CollectiveMoment::before_forward,
                                        CollectiveMoment::after_backward)});
        return whole;
    }

    ModelSpec model_;
    std::uint64_t degree_;
    bool sequence_parallel_, asynchronous_;
};

/// Ring attention: a rank's queries meet the keys and values of all ranks, which come while it works on those
/// that are there; their gradients go back. source: torch/distributed/tensor/experimental/_attention.py.
void split_sequences(ModelSpec& model, std::uint64_t ranks) {
    for (BlockKind& kind : model.block_kinds) {
        for (Operator& op : kind.operators) {
            if (op.kind != OperatorKind::attention) continue;
            op.forward_flops.per_token_pair *= ranks;
            op.backward_flops.per_token_pair *= ranks;
            Extent exchanged;
            for (std::size_t i = 1; i < op.inputs.size(); ++i)
                exchanged.per_token += ranks * kind.tensors[op.inputs[i]].extent.per_token;
            const auto add = [&](CollectiveKind collective, CollectiveMoment moment) {
                op.collectives.push_back({.kind = collective,
                                          .group = GroupKind::context_group,
                                          .moment = moment,
                                          .extent = exchanged,
                                          .overlapped = true});
            };
            add(CollectiveKind::all_gather, CollectiveMoment::before_forward);
            add(CollectiveKind::all_gather, CollectiveMoment::before_backward);
            add(CollectiveKind::reduce_scatter, CollectiveMoment::after_backward);
        }
    }
}

}  // namespace

Scenario rank_scenario(const Scenario& scenario) {
    Scenario rank = scenario;
    TrainingConfig& training = rank.training;
    training.sequence_length /= training.context_parallel;
    if (training.tensor_parallel > 1)
        rank.model = TensorParallelModel(std::move(rank.model), training).split();
    if (training.context_parallel > 1) split_sequences(rank.model, training.context_parallel);
    return rank;
}

TorchStage torch_stage(const Scenario& rank, std::uint64_t stage) {
    TorchStage result{.scenario = rank, .parts = {}, .chunks = {}};
    const ModelSpec& whole = rank.model;
    std::vector<std::uint32_t> layers;
    for (std::uint32_t b = 0; b < whole.blocks.size(); ++b)
        if (whole.block_kinds[whole.blocks[b].kind].is_layer) layers.push_back(b);
    if (layers.empty())
        throw Error(ErrorCode::not_supported,
                    fmt::format("{} has no transformer layers to divide into pipeline stages", whole.name),
                    "set pipeline_parallel to 1", {"", "/training/pipeline_parallel"});
    for (const BlockKind& kind : whole.block_kinds)
        if (kind.context_tensor && rank.training.pipeline_parallel > 1)
            throw Error(ErrorCode::not_supported,
                        fmt::format("pipeline stages of {}, whose blocks read what an encoder made, are not "
                                    "modelled",
                                    whole.architecture),
                        "set pipeline_parallel to 1", {"", "/training/pipeline_parallel"});
    result.parts = stage_chunks(rank.training, layers.size(), stage);
    ModelSpec& model = result.scenario.model;
    model.blocks.clear();
    for (const StageChunk& part : result.parts) {
        const auto first = static_cast<std::uint32_t>(model.blocks.size());
        if (part.embedding)
            model.blocks.insert(model.blocks.end(), whole.blocks.begin(),
                                whole.blocks.begin() + layers.front());
        for (std::uint64_t l = part.first_layer; l < part.first_layer + part.layers; ++l)
            model.blocks.push_back(whole.blocks[layers[l]]);
        if (part.head)
            model.blocks.insert(model.blocks.end(), whole.blocks.begin() + layers.back() + 1,
                                whole.blocks.end());
        result.chunks.push_back({first, static_cast<std::uint32_t>(model.blocks.size()) - 1});
    }
    // A tied weight whose owner is on another stage is a weight of its own here: torch.distributed.pipelining
    // makes a module of every stage, and nothing sums the gradients of two of them.
    std::vector<bool> here(model.parameters.size(), false);
    for (const Block& block : model.blocks)
        for (const std::uint32_t p : block.parameters) here[p] = true;
    for (Parameter& parameter : model.parameters)
        if (parameter.shared_with && !here[*parameter.shared_with]) parameter.shared_with.reset();
    return result;
}

void add_rank_models(EngineOutput& output, const Scenario& whole, const Scenario& rank) {
    const TrainingConfig& training = whole.training;
    if (training.tensor_parallel == 1 && training.context_parallel == 1) return;
    for (std::size_t i = 0; i < output.programs.size(); ++i)
        output.rank_models.push_back({rank.model, output.layout, rank.training.sequence_length});
}

}  // namespace zeroplan
