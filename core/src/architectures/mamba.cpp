#include "architectures/mamba.hpp"

#include <fmt/format.h>

#include "architectures/block_builder.hpp"
#include "architectures/loss.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;
using Parameters = std::vector<BlockBuilder::ParameterId>;

/// Tokens of the sequences that Mamba's checkpoints were trained on (Gu and Dao 2023); a recurrence has no
/// last position.
constexpr std::uint64_t trained_length = 2048;

class MambaBuilder {
public:
    MambaBuilder(const MambaConfig& config, const LoweringOptions& options)
        : c_(config),
          options_(options),
          norm_{.rms = true, .fused = options.kernels != Kernels::eager, .upcasts = options.upcasts()} {}

    ModelSpec build() {
        ModelSpec model{.name = c_.name,
                        .architecture = "MambaForCausalLM",
                        .batch = BatchKind::tokens,
                        .vocabulary = c_.vocab_size,
                        .hidden_size = c_.hidden_size,
                        .layers = c_.num_hidden_layers,
                        .max_sequence_length = trained_length};
        append_block(model, embedding(), "backbone.embeddings", "backbone.");
        const BlockTemplate mixer = layer();
        for (std::uint64_t i = 0; i < c_.num_hidden_layers; ++i) {
            const std::string name = fmt::format("backbone.layers.{}", i);
            append_block(model, mixer, name, name + ".");
        }
        append_head(model);
        return model;
    }

private:
    TensorSpec hidden_input() const { return hidden_tensor(c_.hidden_size, kernel_style(options_)); }

    BlockTemplate embedding() const {
        BlockBuilder block("embedding", token_tensor(), kernel_style(options_));
        const auto table = block.parameter("embeddings.weight", {c_.vocab_size, c_.hidden_size});
        return block.finish(block.embedding("embeddings", 0, table, c_.hidden_size));
    }

    /// MambaMixer registers its own tensors ahead of its modules.
    BlockTemplate layer() const {
        const std::uint64_t h = c_.hidden_size, d = c_.intermediate_size, n = c_.state_size,
                            states = c_.time_step_rank + 2 * n;
        BlockBuilder block("layer", hidden_input(), kernel_style(options_));
        const auto norm = block.parameter("norm.weight", {h});
        Parameters scan{block.parameter("mixer.A_log", {d, n}), block.parameter("mixer.D", {d})};
        scan.push_back(block.parameter("mixer.conv1d.weight", {d, 1, c_.conv_kernel}));
        if (c_.conv_bias) scan.push_back(block.parameter("mixer.conv1d.bias", {d}));
        const Parameters in = block.linear_parameters("mixer.in_proj", h, 2 * d, c_.bias);
        const Parameters x_proj = block.linear_parameters("mixer.x_proj", d, states, false),
                         dt_proj = block.linear_parameters("mixer.dt_proj", c_.time_step_rank, d, true);
        const Parameters out = block.linear_parameters("mixer.out_proj", d, h, c_.bias);
        scan.insert(scan.end(), x_proj.begin(), x_proj.end());
        scan.insert(scan.end(), dt_proj.begin(), dt_proj.end());

        const TensorId normed = block.norm("norm", 0, h, 1, {norm}, norm_);
        const TensorId packed = block.linear("mixer.in_proj", normed, h, 2 * d, in);
        const TensorId scanned = selective_scan(block, packed, d, n, states, scan);
        const TensorId branch = block.linear("mixer.out_proj", scanned, d, h, out);
        return block.finish(block.residual_add("residual", 0, branch, h), true);
    }

    /// Convolution, projections of the state, and the scan. Backward has the convolution's output and the
    /// time steps again, a gradient of each, beside it.
    TensorId selective_scan(BlockBuilder& block, TensorId packed, std::uint64_t d, std::uint64_t n,
                            std::uint64_t states, const Parameters& parameters) const {
        const TensorId out = block.tensor("mixer.scan", d), small = block.tensor("mixer.x_proj", states);
        const std::uint64_t products = d * states + c_.time_step_rank * d, steps = 9 * d * n;
        block.add({.name = "mixer.scan",
                   .kind = OperatorKind::elementwise,
                   .inputs = {packed},
                   .outputs = {out, small},
                   .saved = {packed, small, out},
                   .parameters = parameters,
                   .forward_flops = {.per_token = 2 * products + steps},
                   .backward_flops = {.per_token = 4 * products + 3 * steps},
                   .forward_workspace = {.per_token = 2 * d},
                   .backward_workspace = {.per_token = 4 * d}});
        return out;
    }

    void append_head(ModelSpec& model) const {
        BlockBuilder block("head", hidden_input(), kernel_style(options_));
        const auto norm = block.parameter("backbone.norm_f.weight", {c_.hidden_size});
        const auto weight = block.parameter("lm_head.weight", {c_.vocab_size, c_.hidden_size});
        const TensorId normed = block.norm("norm_f", 0, c_.hidden_size, 1, {norm}, norm_);
        const TensorId labels = block.add_tensor(label_tensor());
        const TensorId loss =
            output_layer_with_loss(block, normed, c_.hidden_size, c_.vocab_size, {weight}, labels, options_);
        TiedParameters shared;
        if (c_.tie_word_embeddings) shared.push_back({weight, 0});
        append_block(model, block.finish_with_loss(loss, labels), "head", "", shared);
    }

    const MambaConfig& c_;
    const LoweringOptions& options_;
    NormKernel norm_;
};

}  // namespace

ModelSpec build_mamba(const MambaConfig& config, const LoweringOptions& options) {
    return MambaBuilder(config, options).build();
}

}  // namespace zeroplan
