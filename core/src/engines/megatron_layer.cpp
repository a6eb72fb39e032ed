#include "engines/megatron_layer.hpp"

#include <fmt/format.h>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;
using Parameters = std::vector<BlockBuilder::ParameterId>;

struct Activation {
    ActivationFunction function = ActivationFunction::gelu;
    bool gated = false;
};

Activation activation_of(const std::string& mlp) {
    if (mlp == "swiglu") return {ActivationFunction::silu, true};
    if (mlp == "geglu") return {ActivationFunction::gelu, true};
    if (mlp == "relu") return {ActivationFunction::relu, false};
    if (mlp == "squared_relu") return {ActivationFunction::squared_relu, false};
    return {ActivationFunction::gelu, false};
}

/// Operators of one rank, written one after another. Every tensor is what autograd, Transformer Engine or
/// Megatron's own functions allocate; what each saves for backward is stated with it.
class RankBlock {
public:
    RankBlock(const MegatronContext& context, std::string name, TensorSpec input)
        : c_(context),
          block_(std::move(name), std::move(input)),
          rms_(c_.decoder.normalization == "rmsnorm") {}

    BlockBuilder& builder() { return block_; }

    Parameters norm_parameters(const std::string& module, std::uint64_t width) {
        Parameters ids{block_.parameter(module + ".weight", {width})};
        if (!rms_) ids.push_back(block_.parameter(module + ".bias", {width}));
        return ids;
    }

    /// Saves its input and the rows' statistics (one fp32 a row for RMSNorm, two for LayerNorm).
    TensorId norm(const std::string& name, TensorId x, std::uint64_t width, std::uint64_t rows,
                  Parameters parameters) {
        const TensorId out = block_.tensor(name, width);
        const TensorId statistics = block_.add_tensor({.name = name + ".statistics",
                                                       .extent = {.constant = rows * (rms_ ? 1U : 2U)},
                                                       .dtype = TensorDType::fp32});
        block_.add({.name = name,
                    .kind = OperatorKind::norm,
                    .inputs = {x},
                    .outputs = {out, statistics},
                    .saved = {x, statistics},
                    .parameters = std::move(parameters),
                    .forward_flops = {.per_token = 5 * width},
                    .backward_flops = {.per_token = 10 * width}});
        return out;
    }
    TensorId layer_norm(const std::string& name, TensorId x, Parameters parameters) {
        const std::uint64_t rows = c_.gathers() ? c_.tokens() / c_.tensor : c_.tokens();
        return norm(name, x, c_.between(c_.decoder.hidden_size), rows, std::move(parameters));
    }

    /// Output columns are split over the tensor-parallel ranks. With sequence parallelism the input is
    /// gathered for the product, again for the weight's gradient, and the input's gradient is
    /// reduce-scattered.
    TensorId column_parallel(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                             Parameters parameters, Category category = Category::activations) {
        const TensorId y = block_.linear(name, x, in, out, std::move(parameters), category);
        if (c_.gathers()) {
            block_.last().forward_workspace = {.per_token = in};
            block_.last().backward_workspace = {.per_token = 2 * in};
        }
        return y;
    }
    /// Input columns are split; partial sums are all-reduced in place, or reduce-scattered into a new tensor.
    TensorId row_parallel(const std::string& name, TensorId x, std::uint64_t in, std::uint64_t out,
                          Parameters parameters) {
        const TensorId y = block_.linear(name, x, in, c_.between(out), std::move(parameters));
        Operator& op = block_.last();
        op.out_features = out;
        op.forward_flops = {.per_token = 2 * in * out};
        op.backward_flops = {.per_token = 4 * in * out};
        if (c_.gathers()) op.forward_workspace = op.backward_workspace = {.per_token = out};
        return y;
    }

    /// Another name for a tensor.
    TensorId alias(const std::string& name, TensorId x) {
        const TensorId y = block_.add_tensor({.name = name, .extent = {.per_token = block_.width_of(x)}});
        block_.add(
            {.name = name, .kind = OperatorKind::cast, .inputs = {x}, .outputs = {y}, .in_place = true});
        return y;
    }

    /// Dropout on a branch and the residual addition.
    TensorId dropout_add(const std::string& name, TensorId residual, TensorId branch) {
        const std::uint64_t width = c_.between(c_.decoder.hidden_size);
        if (c_.decoder.dropout) branch = block_.dropout(name + ".dropout", branch, {.per_token = width});
        return block_.residual_add(name + ".add", residual, branch, width);
    }

    const MegatronContext& c_;

private:
    BlockBuilder block_;
    bool rms_;
};

struct Heads {
    std::uint64_t query = 0, key_value = 0, dim = 0;
    std::uint64_t query_width() const { return query * dim; }
    std::uint64_t key_width() const { return key_value * dim; }
};

struct QueryKeyValue {
    std::vector<TensorId> tensors;  ///< one packed, or query, key, value
    TensorId query() const { return tensors.front(); }
    TensorId value() const { return tensors.back(); }
    std::vector<TensorId> query_and_key() const {
        return tensors.size() == 1 ? tensors : std::vector<TensorId>{tensors[0], tensors[1]};
    }
};

/// One kernel (FlashAttention or cuDNN) that saves its inputs, its output and one fp32 log-sum-exp a head and
/// token. Backward sums the query's gradient in fp32; with grouped queries, key and value gradients are made
/// for every query head first.
TensorId fused_attention(RankBlock& rank, const QueryKeyValue& qkv, const Heads& heads,
                         std::uint64_t value_dim) {
    BlockBuilder& block = rank.builder();
    const std::uint64_t full_sequence = rank.c_.context;
    const TensorId out = block.tensor("core_attention", heads.query * value_dim);
    const TensorId log_sum_exp = block.tensor("core_attention.log_sum_exp", heads.query, TensorDType::fp32);
    std::vector<TensorId> saved = qkv.tensors;
    saved.insert(saved.end(), {out, log_sum_exp});
    const bool grouped = heads.key_value != heads.query;
    const std::uint64_t pairs = full_sequence * heads.query * (heads.dim + value_dim);
    block.add({.name = "core_attention",
               .kind = OperatorKind::attention,
               .inputs = qkv.tensors,
               .outputs = {out, log_sum_exp},
               .saved = std::move(saved),
               .forward_flops = {.per_token_pair = 2 * pairs},
               .backward_flops = {.per_token_pair = 5 * pairs},
               .backward_workspace = {.per_token = (grouped ? 4 : 2) * heads.query_width()},
               .attention_core = true});
    return out;
}

/// Scores, softmax, dropout and values as separate kernels.
TensorId unfused_attention(RankBlock& rank, QueryKeyValue qkv, const Heads& heads, std::uint64_t value_dim) {
    BlockBuilder& block = rank.builder();
    const Extent matrix{.per_token_pair = heads.query * rank.c_.context};
    const auto flops = [&](std::uint64_t dim) {
        return Flops{.per_token_pair = 2 * matrix.per_token_pair * dim};
    };
    const auto twice = [](Flops f) { return Flops{.per_token_pair = 2 * f.per_token_pair}; };
    if (heads.key_value != heads.query) {
        // Keys and values are repeated for every query head.
        const TensorId key = block.tensor("core_attention.repeated_key", heads.query_width());
        const TensorId value = block.tensor("core_attention.repeated_value", heads.query * value_dim);
        block.add({.name = "core_attention.repeat",
                   .kind = OperatorKind::cast,
                   .inputs = {qkv.query_and_key().back(), qkv.value()},
                   .outputs = {key, value},
                   .attention_core = true});
        qkv.tensors = {qkv.query(), key, value};
    }
    const TensorId scores = block.add_tensor({.name = "core_attention.scores", .extent = matrix});
    block.add({.name = "core_attention.scores",
               .kind = OperatorKind::attention_scores,
               .inputs = qkv.query_and_key(),
               .outputs = {scores},
               .saved = qkv.query_and_key(),
               .forward_flops = flops(heads.dim),
               .backward_flops = twice(flops(heads.dim)),
               .attention_core = true});
    TensorId weights = block.add_tensor({.name = "core_attention.softmax", .extent = matrix});
    std::vector<TensorId> outputs{weights}, saved{weights};
    if (!rank.c_.fused_softmax) {
        // PyTorch's softmax over fp32 scores, which is then cast.
        outputs.push_back(block.add_tensor(
            {.name = "core_attention.softmax.fp32", .extent = matrix, .dtype = TensorDType::fp32}));
        saved = {outputs.back()};
    }
    block.add({.name = "core_attention.softmax",
               .kind = OperatorKind::softmax,
               .inputs = {scores},
               .outputs = std::move(outputs),
               .saved = std::move(saved),
               .forward_flops = {.per_token_pair = 5 * matrix.per_token_pair},
               .backward_flops = {.per_token_pair = 4 * matrix.per_token_pair},
               .attention_core = true});
    if (rank.c_.decoder.dropout) weights = block.dropout("core_attention.dropout", weights, matrix, true);
    const TensorId out = block.tensor("core_attention", heads.query * value_dim);
    block.add({.name = "core_attention.values",
               .kind = OperatorKind::attention_values,
               .inputs = {weights, qkv.value()},
               .outputs = {out},
               .saved = {weights, qkv.value()},
               .forward_flops = flops(value_dim),
               .backward_flops = twice(flops(value_dim)),
               .attention_core = true});
    return out;
}

/// The transformer layers of one block.
class LayerWriter {
public:
    LayerWriter(const MegatronContext& context)
        : c_(context),
          d_(context.decoder),
          rank_(context, "layer",
                {.name = "input", .extent = {.per_token = context.between(context.decoder.hidden_size)}}),
          heads_{c_.per_rank(d_.num_attention_heads),
                 std::max<std::uint64_t>(1, c_.per_rank(d_.num_key_value_heads)), d_.head_dim} {}

    BlockTemplate write(std::uint64_t count) {
        std::vector<LayerParameters> parameters;
        for (std::uint64_t i = 0; i < count; ++i)
            parameters.push_back(declare(i == 0 ? "" : fmt::format("+{}.", i)));
        TensorId x = 0;
        for (const LayerParameters& layer : parameters) x = layer_operators(x, layer);
        return rank_.builder().finish(x, true);
    }

private:
    struct LayerParameters {
        Parameters input_norm, qkv, query_norm, key_norm, projection, mlp_norm, fc1, fc2;
    };

    Parameters linear(const std::string& module, std::uint64_t in, std::uint64_t out, bool bias) {
        return rank_.builder().linear_parameters(module, in, out, bias);
    }

    /// In Megatron's registration order.
    LayerParameters declare(const std::string& prefix) {
        const std::uint64_t hidden = d_.hidden_size, ffn = c_.per_rank(d_.intermediate_size);
        const std::uint64_t packed = heads_.query_width() + 2 * heads_.key_width();
        const std::uint64_t fc1 = activation_of(d_.mlp).gated ? 2 * ffn : ffn;
        LayerParameters p;
        p.input_norm = rank_.norm_parameters(prefix + "input_layernorm", hidden);
        p.projection = linear(prefix + "self_attention.linear_proj", heads_.query_width(), hidden,
                              d_.attention_output_bias);
        p.qkv = linear(prefix + "self_attention.linear_qkv", hidden, packed, d_.attention_bias);
        if (d_.query_key_norm) {
            p.query_norm = rank_.norm_parameters(prefix + "self_attention.q_layernorm", d_.head_dim);
            p.key_norm = rank_.norm_parameters(prefix + "self_attention.k_layernorm", d_.head_dim);
        }
        p.mlp_norm = rank_.norm_parameters(prefix + "pre_mlp_layernorm", hidden);
        p.fc1 = linear(prefix + "mlp.linear_fc1", hidden, fc1, d_.mlp_bias);
        p.fc2 = linear(prefix + "mlp.linear_fc2", ffn, hidden, d_.mlp_bias);
        return p;
    }

    TensorId layer_operators(TensorId x, const LayerParameters& p) {
        const TensorId normed = rank_.layer_norm("input_layernorm", x, p.input_norm);
        const TensorId branch = rank_.row_parallel("linear_proj", attention(normed, p), heads_.query_width(),
                                                   d_.hidden_size, p.projection);
        const TensorId middle = rank_.dropout_add("self_attention", x, branch);
        const TensorId second = rank_.layer_norm("pre_mlp_layernorm", middle, p.mlp_norm);
        return rank_.dropout_add("mlp", middle, mlp(second, p));
    }

    TensorId attention(TensorId x, const LayerParameters& p) {
        BlockBuilder& block = rank_.builder();
        const std::uint64_t packed = heads_.query_width() + 2 * heads_.key_width();
        QueryKeyValue qkv{{rank_.column_parallel("linear_qkv", x, d_.hidden_size, packed, p.qkv)}};
        const bool rotates = d_.position_embedding == "rope";
        if (rotates || d_.query_key_norm) qkv = split(qkv.query());
        if (d_.query_key_norm) {
            qkv.tensors[0] = rank_.norm("q_layernorm", qkv.tensors[0], heads_.query_width(),
                                        c_.tokens() * heads_.query, p.query_norm);
            qkv.tensors[1] = rank_.norm("k_layernorm", qkv.tensors[1], heads_.key_width(),
                                        c_.tokens() * heads_.key_value, p.key_norm);
        }
        const bool fused = c_.attention != AttentionKernel::eager;
        const TensorId out = fused ? fused_attention(rank_, qkv, heads_, d_.head_dim)
                                   : unfused_attention(rank_, qkv, heads_, d_.head_dim);
        (void)block;
        // The projection saves the attention's output even where the attention is recomputed.
        return rank_.alias("core_attention.output", out);
    }

    /// Rotated query and key are new tensors; the value is copied beside them, since the attention kernels
    /// take three contiguous tensors or one packed, and the packed product is freed.
    QueryKeyValue split(TensorId packed) {
        BlockBuilder& block = rank_.builder();
        QueryKeyValue qkv;
        const std::uint64_t widths[] = {heads_.query_width(), heads_.key_width(), heads_.key_width()};
        const char* const names[] = {"rope.query", "rope.key", "rope.value"};
        for (std::size_t i = 0; i < 3; ++i) qkv.tensors.push_back(block.tensor(names[i], widths[i]));
        block.add({.name = "rope",
                   .kind = OperatorKind::rope,
                   .inputs = {packed},
                   .outputs = qkv.tensors,
                   .forward_flops = {.per_token = 3 * (widths[0] + widths[1])},
                   .backward_flops = {.per_token = 3 * (widths[0] + widths[1])}});
        return qkv;
    }

    TensorId mlp(TensorId x, const LayerParameters& p) {
        BlockBuilder& block = rank_.builder();
        const std::uint64_t ffn = c_.per_rank(d_.intermediate_size);
        const Activation activation = activation_of(d_.mlp);
        const TensorId up =
            rank_.column_parallel("linear_fc1", x, d_.hidden_size, activation.gated ? 2 * ffn : ffn, p.fc1);
        TensorId active = 0;
        if (activation.gated) {
            active = block.tensor("activation", ffn);
            block.add({.name = "activation",
                       .kind = OperatorKind::gated_activation,
                       .inputs = {up},
                       .outputs = {active},
                       .saved = {up},
                       .forward_flops = {.per_token = 6 * ffn},
                       .backward_flops = {.per_token = 12 * ffn},
                       .function = activation.function});
        } else {
            active = block.activation("activation", up, ffn, activation.function);
        }
        return rank_.row_parallel("linear_fc2", active, ffn, d_.hidden_size, p.fc2);
    }

    const MegatronContext& c_;
    const DecoderConfig& d_;
    RankBlock rank_;
    Heads heads_;
};

/// _VocabParallelCrossEntropy: the logits become an fp32 softmax in place of a copy; their own gradient is
/// cast back to the compute dtype. Row maxima, sums and predicted logits are small.
///
/// Compiled (cross_entropy_fusion_impl native), the steps work on copies: the upcast logits stay beside the
/// softmax.
TensorId vocab_parallel_loss(RankBlock& rank, TensorId logits, TensorId labels, std::uint64_t vocabulary) {
    BlockBuilder& block = rank.builder();
    const std::uint64_t upcast = rank.c_.loss == LossKernel::fused ? 2 * vocabulary : 0;  // 16-bit elements
    const TensorId softmax = block.tensor("softmax", vocabulary, TensorDType::fp32, Category::logits);
    const TensorId target = block.tensor("masked_target", 1, TensorDType::int64);
    const TensorId mask = block.tensor("target_mask", 1, TensorDType::mask);
    const TensorId loss = block.tensor("loss", 1, TensorDType::fp32);
    block.add({.name = "loss",
               .kind = OperatorKind::cross_entropy,
               .inputs = {logits, labels},
               .outputs = {softmax, target, mask, loss},
               .saved = {softmax, target, mask},
               .forward_flops = {.per_token = 5 * vocabulary},
               .backward_flops = {.per_token = 3 * vocabulary},
               .forward_workspace = {.per_token = 20 + upcast},
               .backward_workspace = {.per_token = 8}});
    return loss;
}

/// Transformer Engine's cross-entropy writes the gradient over the logits in forward; so does Megatron's own
/// where logits are fp32 already.
TensorId in_place_loss(RankBlock& rank, TensorId logits, TensorId labels, std::uint64_t vocabulary) {
    BlockBuilder& block = rank.builder();
    const TensorId loss = block.tensor("loss", 1, TensorDType::fp32);
    block.add({.name = "loss",
               .kind = OperatorKind::cross_entropy,
               .inputs = {logits, labels},
               .outputs = {loss},
               .saved = {logits, labels},
               .forward_flops = {.per_token = 5 * vocabulary},
               .backward_flops = {.per_token = 3 * vocabulary},
               .forward_workspace = {.per_token = 20},
               .in_place = true});
    return loss;
}

void check_divides(std::uint64_t size, std::uint64_t tensor, const char* what, const char* key) {
    if (size % tensor == 0) return;
    throw Error(ErrorCode::invalid_input,
                fmt::format("{} {} doesn't divide by tensor_parallel {}", what, size, tensor),
                "choose a tensor_parallel that divides it", {"", fmt::format("/model/{}", key)});
}

}  // namespace

std::uint64_t local_sequence_length(const TrainingConfig& training) {
    return training.sequence_length / training.context_parallel;
}

std::uint64_t padded_vocabulary(std::uint64_t vocabulary, std::uint64_t tensor_parallel) {
    if (vocabulary % tensor_parallel == 0) return vocabulary;
    return round_up(vocabulary, checked_product(128, tensor_parallel));
}

MegatronContext megatron_context(const Scenario& scenario, const MegatronOptions& options) {
    const TrainingConfig& training = scenario.training;
    if (!scenario.model.decoder)
        throw Error(
            ErrorCode::not_supported,
            fmt::format("engine megatron divides transformers only, not '{}'", scenario.model.architecture),
            "choose a transformer model, or another engine", {"", "/model"});
    MegatronContext c{.decoder = *scenario.model.decoder,
                      .attention = training.attention,
                      .loss = training.loss,
                      .transformer_engine = options.transformer_engine,
                      .fused_softmax = options.transformer_engine || options.masked_softmax_fusion,
                      .te_cross_entropy = options.transformer_engine_cross_entropy,
                      .full_precision = bytes_per_element(training.compute_dtype) == 4,
                      .tensor = training.tensor_parallel,
                      .context = training.context_parallel,
                      .sequence = training.sequence_parallel,
                      .micro_batch = training.micro_batch_size,
                      .sequence_length = local_sequence_length(training)};
    c.tied = c.decoder.tie_word_embeddings;
    c.decoder.vocab_size = padded_vocabulary(c.decoder.vocab_size, c.tensor);
    check_divides(c.decoder.num_attention_heads, c.tensor, "num_attention_heads", "num_attention_heads");
    check_divides(c.decoder.intermediate_size, c.tensor, "intermediate_size", "intermediate_size");
    return c;
}

std::uint64_t layers_recomputed_together(const TrainingConfig& training, const MegatronOptions& options) {
    if (training.recompute != Recompute::full || options.recompute_block) return 1;
    return options.recompute_num_layers.value_or(training.recompute_every);
}

BlockTemplate megatron_embedding(const MegatronContext& c) {
    const std::uint64_t hidden = c.decoder.hidden_size;
    RankBlock rank(
        c, "embedding",
        {.name = "tokens", .extent = {.per_token = 1}, .dtype = TensorDType::int64, .needs_gradient = false});
    BlockBuilder& block = rank.builder();
    const auto table = block.parameter("word_embeddings.weight", {c.decoder.vocab_size / c.tensor, hidden});
    TensorId x = block.embedding("word_embeddings", 0, table, hidden);
    if (c.decoder.position_embedding == "learned") {
        const auto positions =
            block.parameter("position_embeddings.weight", {c.decoder.max_position_embeddings, hidden});
        const TensorId learned = block.embedding("position_embeddings", 0, positions, hidden);
        x = block.residual_add("embeddings", x, learned, hidden);
    }
    if (c.gathers()) {
        const TensorId scattered = block.tensor("scattered", c.between(hidden));
        block.add({.name = "scatter", .kind = OperatorKind::cast, .inputs = {x}, .outputs = {scattered}});
        x = scattered;
    }
    if (c.decoder.dropout) x = block.dropout("embedding.dropout", x, {.per_token = c.between(hidden)});
    return block.finish(x);
}

BlockTemplate megatron_layers(const MegatronContext& context, std::uint64_t, std::uint64_t count) {
    return LayerWriter(context).write(count);
}

BlockTemplate megatron_head(const MegatronContext& c) {
    const std::uint64_t hidden = c.decoder.hidden_size, vocabulary = c.decoder.vocab_size / c.tensor;
    RankBlock rank(c, "head", {.name = "input", .extent = {.per_token = c.between(hidden)}});
    BlockBuilder& block = rank.builder();
    const Parameters norm = rank.norm_parameters("decoder.final_layernorm", hidden);
    const auto weight = block.parameter("output_layer.weight", {vocabulary, hidden});
    const TensorId normed = rank.layer_norm("final_layernorm", 0, norm);
    const TensorId labels = block.add_tensor(label_tensor());
    const TensorId logits =
        rank.column_parallel("output_layer", normed, hidden, vocabulary, {weight}, Category::logits);
    // Megatron's own linear gathers into the global memory buffer, which is there anyway.
    if (c.gathers()) {
        block.last().forward_workspace = {};
        block.last().backward_workspace = {.per_token = hidden};
    }
    const bool in_place = c.full_precision || (c.loss == LossKernel::fused && c.te_cross_entropy);
    const TensorId loss = in_place ? in_place_loss(rank, logits, labels, vocabulary)
                                   : vocab_parallel_loss(rank, logits, labels, vocabulary);
    BlockTemplate head = block.finish(loss);
    head.kind.target_tensor = labels;
    return head;
}

std::uint64_t memory_buffer_elements(const MegatronContext& c, bool has_head) {
    std::uint64_t most = 0;
    if (c.gathers() && (has_head || !c.transformer_engine)) most = c.tokens() * c.decoder.hidden_size;
    if (!c.transformer_engine && c.attention == AttentionKernel::eager)
        most = std::max(
            most, c.per_rank(c.decoder.num_attention_heads) * c.tokens() * c.sequence_length * c.context);
    return most;
}

}  // namespace zeroplan
