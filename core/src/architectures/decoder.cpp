#include "architectures/decoder.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "architectures/attention.hpp"
#include "architectures/block_builder.hpp"
#include "architectures/experts.hpp"
#include "architectures/latent_attention.hpp"
#include "architectures/loss.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;
using Parameters = std::vector<BlockBuilder::ParameterId>;

struct Mlp {
    ActivationFunction function;
    bool gated;
};

Mlp mlp_of(const std::string& word) {
    constexpr std::array<std::pair<std::string_view, Mlp>, 5> known{
        {{"swiglu", {ActivationFunction::silu, true}},
         {"geglu", {ActivationFunction::gelu, true}},
         {"gelu", {ActivationFunction::gelu, false}},
         {"relu", {ActivationFunction::relu, false}},
         {"squared_relu", {ActivationFunction::squared_relu, false}}}};
    for (const auto& [name, mlp] : known)
        if (name == word) return mlp;
    throw Error(ErrorCode::invalid_input, fmt::format("unknown mlp '{}'", word),
                "one of: swiglu, geglu, gelu, relu, squared_relu", {"", "/model/mlp"});
}

class DecoderBuilder {
public:
    DecoderBuilder(const DecoderConfig& config, const DecoderNames& names, const LoweringOptions& options)
        : config_(config),
          names_(names),
          options_(options),
          hidden_(config.hidden_size),
          shape_{config.num_attention_heads, config.num_key_value_heads, config.head_dim},
          rms_(config.normalization == "rmsnorm"),
          fused_(options.kernels != Kernels::eager),
          norm_{rms_, fused_, options.upcasts()} {}

    ModelSpec build() {
        ModelSpec model{.name = config_.name,
                        .architecture = config_.architecture,
                        .batch = BatchKind::tokens,
                        .vocabulary = config_.vocab_size,
                        .hidden_size = hidden_,
                        .layers = config_.num_hidden_layers,
                        .heads = config_.num_attention_heads,
                        .kv_heads = config_.num_key_value_heads,
                        .max_sequence_length = config_.max_position_embeddings,
                        .decoder = config_};
        model.decoder->dropout = options_.dropout;
        const std::string& prefix = config_.parameter_prefix;
        const BlockTemplate embedding = embedding_block();
        append_block(model, embedding, kind_index(model, embedding.kind), prefix + names_.embedding, prefix);
        append_layers(model);
        append_head(model);
        return model;
    }

private:
    /// Dense layers and those with experts are two kinds.
    void append_layers(ModelSpec& model) const {
        std::array<std::optional<BlockTemplate>, 2> layers;
        for (std::uint64_t i = 0; i < config_.num_hidden_layers; ++i) {
            const bool experts = config_.experts && config_.experts->has_experts(i);
            std::optional<BlockTemplate>& layer = layers[experts ? 1 : 0];
            if (!layer) layer = layer_block(experts);
            const std::string name = fmt::format("{}{}.{}", config_.parameter_prefix, names_.layers, i);
            append_block(model, *layer, kind_index(model, layer->kind), name, name + ".");
        }
    }

    TensorSpec hidden_input() const {
        return {
            .name = "input", .extent = {.per_token = hidden_}, .dtype = kernel_style(options_).residual()};
    }

    BlockTemplate embedding_block() const {
        BlockBuilder block("embedding",
                           {.name = "tokens",
                            .extent = {.per_token = 1},
                            .dtype = TensorDType::int64,
                            .needs_gradient = false},
                           kernel_style(options_));
        const auto table = block.parameter(names_.embedding + ".weight", {config_.vocab_size, hidden_});
        TensorId x = 0;
        if (config_.position_embedding == "learned") {
            const auto positions =
                block.parameter(names_.positions + ".weight", {config_.max_position_embeddings, hidden_});
            x = block.embedding(names_.embedding, 0, table, hidden_);
            x = block.position_embedding(names_.positions, x, positions, hidden_);
        } else {
            x = block.embedding(names_.embedding, 0, table, hidden_);
        }
        if (options_.dropout) x = block.dropout("embedding.dropout", x, {.per_token = hidden_});
        return block.finish(x);
    }

    struct LayerParameters {
        Parameters first_norm, second_norm, query, key, value, packed, output, query_norm, key_norm, gate, up,
            down;
    };

    Parameters norm_parameters(BlockBuilder& block, const std::string& module, std::uint64_t width) const {
        Parameters ids{block.parameter(module + ".weight", {width})};
        if (!rms_) ids.push_back(block.parameter(module + ".bias", {width}));
        return ids;
    }

    /// In registration order; latent attention and experts declare their own.
    LayerParameters layer_parameters(BlockBuilder& block, LatentAttention* latent,
                                     ExpertLayer* experts) const {
        LayerParameters p;
        if (!names_.norms_last) p.first_norm = norm_parameters(block, names_.attention_input_norm, hidden_);
        if (latent != nullptr)
            latent->declare(config_.attention_bias);
        else
            attention_parameters(block, p);
        if (!names_.norms_last) p.second_norm = norm_parameters(block, names_.mlp_input_norm, hidden_);
        if (experts != nullptr)
            experts->declare();
        else
            mlp_parameters(block, p);
        if (names_.norms_last) {
            p.first_norm = norm_parameters(block, names_.attention_input_norm, hidden_);
            p.second_norm = norm_parameters(block, names_.mlp_input_norm, hidden_);
        }
        return p;
    }

    void attention_parameters(BlockBuilder& block, LayerParameters& p) const {
        const std::uint64_t q = shape_.query_width(), kv = shape_.key_width();
        const auto linear = [&](const std::string& module, std::uint64_t in, std::uint64_t out, bool bias) {
            return block.linear_parameters(module, in, out, bias, names_.transposed);
        };
        if (config_.fused_qkv) {
            p.packed = linear(names_.packed_qkv, hidden_, q + 2 * kv, config_.attention_bias);
        } else {
            p.query = linear(names_.query, hidden_, q, config_.attention_bias);
            p.key = linear(names_.key, hidden_, kv, config_.attention_bias);
            p.value = linear(names_.value, hidden_, kv, config_.attention_bias);
        }
        p.output = linear(names_.attention_output, q, hidden_, config_.attention_output_bias);
        if (config_.query_key_norm) {
            p.query_norm = norm_parameters(block, names_.query_norm, shape_.head_dim);
            p.key_norm = norm_parameters(block, names_.key_norm, shape_.head_dim);
        }
    }

    void mlp_parameters(BlockBuilder& block, LayerParameters& p) const {
        const std::uint64_t f = config_.intermediate_size;
        if (mlp_of(config_.mlp).gated)
            p.gate = block.linear_parameters(names_.gate, hidden_, f, config_.mlp_bias, names_.transposed);
        p.up = block.linear_parameters(names_.up, hidden_, f, config_.mlp_bias, names_.transposed);
        p.down = block.linear_parameters(names_.down, f, hidden_, config_.mlp_bias, names_.transposed);
    }

    BlockTemplate layer_block(bool has_experts) const {
        BlockBuilder block("layer", hidden_input(), kernel_style(options_));
        std::optional<LatentAttention> latent;
        if (config_.latent_attention)
            latent.emplace(block, *config_.latent_attention, hidden_, config_.num_attention_heads, norm_);
        std::optional<ExpertLayer> experts;
        if (has_experts)
            experts.emplace(block, *config_.experts, hidden_, mlp_of(config_.mlp).function, fused_);
        const LayerParameters p =
            layer_parameters(block, latent ? &*latent : nullptr, experts ? &*experts : nullptr);

        const TensorId normed = block.norm(names_.attention_input_norm, 0, hidden_, 1, p.first_norm, norm_);
        TensorId branch = latent ? latent_attention(block, *latent, normed)
                                 : block.linear(names_.attention_output, attention(block, normed, p),
                                                shape_.query_width(), hidden_, p.output);
        if (options_.dropout)
            branch = block.dropout("attention.output_dropout", branch, {.per_token = hidden_});
        const TensorId middle = block.residual_add("attention.residual", 0, branch, hidden_);

        const TensorId second = block.norm(names_.mlp_input_norm, middle, hidden_, 1, p.second_norm, norm_);
        branch = experts ? experts->write(second)
                         : block.linear(names_.down, mlp(block, second, p), config_.intermediate_size,
                                        hidden_, p.down);
        if (options_.dropout) branch = block.dropout("mlp.dropout", branch, {.per_token = hidden_});
        return block.finish(block.residual_add("mlp.residual", middle, branch, hidden_), true);
    }

    TensorId latent_attention(BlockBuilder& block, LatentAttention& latent, TensorId x) const {
        const QueryKeyValue qkv = latent.write(x);
        const TensorId out = attention_core(block, qkv, latent.shape(), options_, names_.fp32_softmax);
        return block.linear(names_.attention_output, out, latent.shape().output_width(), hidden_,
                            latent.output());
    }

    TensorId attention(BlockBuilder& block, TensorId x, const LayerParameters& p) const {
        const std::uint64_t q = shape_.query_width(), kv = shape_.key_width();
        QueryKeyValue qkv;
        if (config_.fused_qkv) {
            qkv.tensors = {block.linear(names_.packed_qkv, x, hidden_, q + 2 * kv, p.packed)};
        } else {
            qkv.tensors = {block.linear(names_.query, x, hidden_, q, p.query),
                           block.linear(names_.key, x, hidden_, kv, p.key),
                           block.linear(names_.value, x, hidden_, kv, p.value)};
        }
        if (config_.query_key_norm && !config_.fused_qkv) {
            qkv.tensors[0] = block.norm(names_.query_norm, qkv.tensors[0], shape_.head_dim, shape_.heads,
                                        p.query_norm, norm_);
            qkv.tensors[1] = block.norm(names_.key_norm, qkv.tensors[1], shape_.head_dim, shape_.kv_heads,
                                        p.key_norm, norm_);
        }
        if (config_.position_embedding == "rope") qkv = rotary_embedding(block, qkv, shape_, fused_);
        if (options_.torch_modules && options_.attention == AttentionKernel::sdpa)
            qkv = repeat_key_value(block, qkv, shape_);
        return attention_core(block, qkv, shape_, options_, names_.fp32_softmax);
    }

    TensorId mlp(BlockBuilder& block, TensorId x, const LayerParameters& p) const {
        const std::uint64_t f = config_.intermediate_size;
        const Mlp kind = mlp_of(config_.mlp);
        if (!kind.gated)
            return block.activation("mlp.act", block.linear(names_.up, x, hidden_, f, p.up), f,
                                    kind.function);
        const TensorId gate = block.linear(names_.gate, x, hidden_, f, p.gate);
        const TensorId up = block.linear(names_.up, x, hidden_, f, p.up);
        return block.gated_activation("mlp.act", gate, up, f, kind.function, fused_);
    }

    void append_head(ModelSpec& model) const {
        const std::string& prefix = config_.parameter_prefix;
        BlockBuilder block("head", hidden_input(), kernel_style(options_));
        const Parameters norm = norm_parameters(block, prefix + names_.final_norm, hidden_);
        const auto weight = block.parameter("lm_head.weight", {config_.vocab_size, hidden_});
        const TensorId normed = block.norm(names_.final_norm, 0, hidden_, 1, norm, norm_);
        const TensorId labels = block.add_tensor(label_tensor());
        const TensorId loss =
            output_layer_with_loss(block, normed, hidden_, config_.vocab_size, {weight}, labels, options_);
        BlockTemplate head = block.finish(loss);
        head.kind.target_tensor = labels;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> shared;
        if (config_.tie_word_embeddings) shared.push_back({weight, 0});  // the token table is parameter 0
        append_block(model, head, kind_index(model, head.kind), "head", "", shared);
    }

    const DecoderConfig& config_;
    const DecoderNames& names_;
    const LoweringOptions& options_;
    std::uint64_t hidden_;
    AttentionShape shape_;
    bool rms_, fused_;
    NormKernel norm_;
};

}  // namespace

ModelSpec build_decoder(const DecoderConfig& config, const DecoderNames& names,
                        const LoweringOptions& options) {
    return DecoderBuilder(config, names, options).build();
}

}  // namespace zeroplan
