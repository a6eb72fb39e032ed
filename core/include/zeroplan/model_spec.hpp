#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/category.hpp"
#include "zeroplan/collective_kind.hpp"
#include "zeroplan/dtype.hpp"

namespace zeroplan {

/// How a parameter is stored: in the engine's parameter dtype, or in one of its own (the base of an adapter).
/// nf4: half a byte an element, a byte a block of 64, four bytes 256 blocks (double quantisation).
enum class ParameterStorage : std::uint8_t { engine, fp32, fp16, bf16, nf4 };

/// One parameter tensor, in registration order.
struct Parameter {
    std::string name;                            ///< e.g. "model.layers.0.mlp.up_proj.weight"
    std::vector<std::uint64_t> shape;            ///< as registered; [out, in] for a linear weight
    std::uint64_t numel = 0;                     ///< product of shape
    std::optional<std::uint32_t> shared_with{};  ///< index of the earlier parameter this one is tied to
    bool trainable = true;
    ParameterStorage storage = ParameterStorage::engine;
    friend bool operator==(const Parameter&, const Parameter&) = default;
};

/// Number of elements of an activation as a function of the batch:
/// constant + per_sequence · b + per_token · b·s + per_token_pair · b·s·s, with b sequences of s tokens.
struct Extent {
    std::uint64_t per_token = 0;
    std::uint64_t per_token_pair = 0;
    std::uint64_t constant = 0;
    std::uint64_t per_sequence = 0;  ///< of what doesn't grow with the sequence: patches of an image
    friend bool operator==(const Extent&, const Extent&) = default;
};

/// How a tensor's dtype follows the training: the compute dtype, or fixed.
enum class TensorDType : std::uint8_t { compute, fp32, int64, mask };

/// A tensor that the operators of one block kind produce or consume.
struct TensorSpec {
    std::string name;
    Extent extent;
    TensorDType dtype = TensorDType::compute;
    Category category = Category::activations;  ///< activations or logits
    bool needs_gradient = true;                 ///< false for token ids, labels, input features
    friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// `none` reads and writes tensors only. The kinds are what the cost model and the runner tell apart.
enum class OperatorKind : std::uint8_t {
    embedding,  ///< rows of a table by token id (gradient: scatter-add)
    linear,     ///< x·Wᵀ (+ bias)
    norm,       ///< RMSNorm or LayerNorm
    rope,       ///< rotary position embedding, in place when fused
    attention,  ///< fused (flash or sdpa) attention core
    attention_scores,
    softmax,
    attention_values,  ///< the eager attention core, one operator each
    activation,        ///< element-wise: relu, gelu, silu, tanh
    gated_activation,  ///< act(gate) · up in one kernel
    multiply,          ///< element-wise product (unfused gate)
    residual_add,      ///< x + f; its gradient is shared by both inputs, no copy
    dropout,
    cast,           ///< change of dtype
    elementwise,    ///< any other element-wise or reducing kernel of PyTorch's own
    cross_entropy,  ///< loss over logits
    mean_squared_error
};
std::string_view to_string(OperatorKind kind);

enum class ActivationFunction : std::uint8_t { none, relu, gelu, silu, tanh, squared_relu };

/// Floating-point operations of one operator: per_sequence · b + per_token · b·s + per_token_pair · b·s·s.
struct Flops {
    std::uint64_t per_token = 0;
    std::uint64_t per_token_pair = 0;
    std::uint64_t per_sequence = 0;
    friend bool operator==(const Flops&, const Flops&) = default;
};

/// When an operator's collective runs. What forward does, recompute does too.
enum class CollectiveMoment : std::uint8_t { before_forward, after_forward, before_backward, after_backward };

/// A collective that an operator's module calls: what tensor, context and expert parallelism cost in time.
struct OperatorCollective {
    CollectiveKind kind = CollectiveKind::all_reduce;
    GroupKind group = GroupKind::tensor_group;
    CollectiveMoment moment = CollectiveMoment::after_forward;
    Extent extent;  ///< the whole buffer, over all ranks of the group (all_to_all: one rank's)
    TensorDType dtype = TensorDType::compute;
    bool overlapped = false;  ///< runs beside the operator; what follows waits for both
    friend bool operator==(const OperatorCollective&, const OperatorCollective&) = default;
};

/// One operator of a block; tensor and parameter numbers index the block kind's tables.
struct Operator {
    std::string name;  ///< e.g. "self_attn.q_proj"
    OperatorKind kind = OperatorKind::activation;
    std::vector<std::uint32_t> inputs, outputs;
    std::vector<std::uint32_t> saved;       ///< tensors among inputs, outputs that backward reads
    std::vector<std::uint32_t> parameters;  ///< weight first, then bias
    Flops forward_flops, backward_flops;
    Extent forward_workspace, backward_workspace;  ///< temporaries while the operator runs, compute dtype
    bool attention_core = false;   ///< its outputs are dropped and recomputed under selective recompute
    bool in_place = false;         ///< output 0 is input 0 (fused rope): no new tensor, forward or backward
    bool saves_parameters = true;  ///< backward reads its parameters (true for linear and norm)
    std::uint64_t in_features = 0, out_features = 0;  ///< of a linear
    ActivationFunction function = ActivationFunction::none;
    std::vector<OperatorCollective> collectives{};
    friend bool operator==(const Operator&, const Operator&) = default;
};

/// The operators of one kind of block, in execution order. Tensor 0 is the block's input, which is the
/// previous block's output tensor; `output` is the tensor handed to the next block.
struct BlockKind {
    std::string name;  ///< "embedding", "layer", "head", "linear" …
    std::vector<TensorSpec> tensors;
    std::vector<Operator> operators;
    std::uint32_t output = 0;
    bool is_layer = false;  ///< a transformer layer: subject to full recompute
    std::uint32_t parameter_count = 0;
    std::optional<std::uint32_t> target_tensor{};   ///< labels, or the batch itself for mse against the input
    bool starts_from_batch = false;                 ///< tensor 0 is a batch of its own: the decoder's tokens
    std::optional<std::uint32_t> context_tensor{};  ///< what an earlier block made: the encoder's output
    friend bool operator==(const BlockKind&, const BlockKind&) = default;
};

/// One instance of a block kind with its parameters.
struct Block {
    std::string name;                             ///< "model.layers.0"
    std::uint32_t kind = 0;                       ///< index into ModelSpec::block_kinds
    std::vector<std::uint32_t> parameters;        ///< indices into ModelSpec::parameters, the kind's order
    std::optional<std::uint32_t> context_from{};  ///< the block whose output is the kind's context_tensor
    friend bool operator==(const Block&, const Block&) = default;
};

/// Mixture of experts in place of a layer's MLP.
struct ExpertConfig {
    std::uint64_t count = 0, per_token = 1;      ///< routed experts, and how many of them a token uses
    std::uint64_t intermediate_size = 0;         ///< of one routed expert
    std::uint64_t shared_intermediate_size = 0;  ///< of all shared experts together; 0: none
    std::uint64_t first_layer = 0,
                  every = 1;       ///< layers before first_layer, and all but every k-th, are dense
    bool shared_gate = false;      ///< the shared experts' output is scaled by a gate of its own
    bool correction_bias = false;  ///< one bias a routed expert that only the choice of experts reads
    bool biases = false;           ///< of the router and of each expert's two products (gpt-oss)
    bool transposed = false;       ///< the experts' stacked weights are stored [experts, in, out]
    bool clamped = false;          ///< activation of clamped gate and up, written out (gpt-oss)
    bool weighs_input = false;  ///< a token is weighted on its way to its experts, not behind them (Llama 4)
    bool has_experts(std::uint64_t layer) const { return layer >= first_layer && (layer + 1) % every == 0; }
    friend bool operator==(const ExpertConfig&, const ExpertConfig&) = default;
};

/// Multi-head latent attention: queries, keys and values come out of low-rank projections.
struct LatentAttentionConfig {
    std::uint64_t query_rank = 0;  ///< 0: queries are projected directly
    std::uint64_t key_value_rank = 0;
    std::uint64_t key_dim = 0, rope_dim = 0,
                  value_dim = 0;  ///< of one head: without and with rotation; value
    friend bool operator==(const LatentAttentionConfig&, const LatentAttentionConfig&) = default;
};

/// Where a layer's norms stand.
enum class NormPlacement : std::uint8_t {
    before,   ///< of attention and MLP (GPT-2, Llama)
    after,    ///< the sums of residual and branch are normed (BERT, OPT-350m)
    around,   ///< before, and the branches' outputs once more (Gemma 2)
    branches  ///< the branches' outputs alone (OLMo 2)
};

/// How attention and MLP of a layer are joined.
enum class BranchOrder : std::uint8_t {
    sequential,
    parallel_one_norm,  ///< both read one normed input (GPT-J, Phi, Falcon 7B)
    parallel_two_norms  ///< each norms the input itself (GPT-NeoX, Falcon 40B)
};

/// A transformer decoder's sizes, as read from a config.json with all defaults of its model_type filled in.
struct DecoderConfig {
    std::string name, architecture;  ///< e.g. "llama-3-8b", "LlamaForCausalLM"
    std::string parameter_prefix;    ///< "model." or "transformer."
    std::uint64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0;
    std::uint64_t num_attention_heads = 0, num_key_value_heads = 0, head_dim = 0;
    std::uint64_t max_position_embeddings = 0;
    std::string mlp;                 ///< swiglu geglu gelu relu squared_relu
    std::string position_embedding;  ///< rope learned alibi none
    std::string normalization;       ///< rmsnorm layernorm
    bool attention_bias = false;     ///< on q, k, v
    bool attention_output_bias = false;
    bool mlp_bias = false;
    bool query_key_norm = false;  ///< a norm over each head of q and k (qwen3)
    bool tie_word_embeddings = false;
    bool fused_qkv = false;  ///< gpt2's c_attn: one linear of 3·hidden
    bool dropout = false;    ///< attention and hidden dropout masks are kept for backward
    std::uint64_t sliding_window =
        0;  ///< tokens that a token attends to in the file's words; 0: all before it
    std::optional<ExpertConfig> experts{};
    std::optional<LatentAttentionConfig> latent_attention{};
    std::string family;      ///< whose module names: "llama", "gpt2", "mpt" …; "": the caller chooses
    std::string activation;  ///< of an eager MLP where it is no kernel of PyTorch's: "gelu_new", "gelu_fast"
    NormPlacement norm_placement = NormPlacement::before;
    BranchOrder branch_order = BranchOrder::sequential;
    bool norm_bias = true;                ///< of LayerNorm
    bool norm_weight = true;              ///< false: norms without parameters (OLMo)
    bool whole_width_head_norms = false;  ///< query_key_norm over all heads at once (OLMo 2)
    bool head_norm_rows = false;          ///< query_key_norm has weights of its own for every head (Cohere)
    bool head_norm_weight = true;         ///< false: query_key_norm without parameters (Llama 4)
    bool head_norms_after_rope = false;   ///< query_key_norm reads rotated queries and keys (Llama 4)
    bool attention_sinks = false;         ///< one learned number a head beside its scores (gpt-oss)
    bool clips_qkv = false;               ///< queries, keys and values are clamped (OLMo)
    std::vector<std::uint64_t> layers_without_rope{};  ///< in ascending order (Llama 4, Cohere 2)
    bool embedding_norm = false;                       ///< a norm behind the embedding (BLOOM)
    bool final_norm = true;
    bool packed_gate_up = false;        ///< one linear for gate and up (Phi 3)
    bool lm_head_bias = false;          ///< of the output layer
    bool scales_embedding = false;      ///< embeddings are multiplied by √hidden (Gemma)
    bool caps_scores = false;           ///< attention scores go through cap · tanh(x / cap) (Gemma 2)
    bool caps_logits = false;           ///< so do the logits
    bool scales_logits = false;         ///< logits are multiplied by a number (Cohere)
    bool residual_from_norm = false;    ///< residuals start behind the norms (BLOOM's option)
    std::uint64_t embedding_width = 0;  ///< of the table where it isn't hidden_size (OPT-350m)
    std::uint64_t extra_positions = 0;  ///< rows of the position table beyond the longest sequence (OPT)
    std::uint64_t token_types = 0;      ///< rows of BERT's table of segments
    friend bool operator==(const DecoderConfig&, const DecoderConfig&) = default;
};

/// An encoder and a decoder that reads its output (T5).
struct EncoderDecoderConfig {
    DecoderConfig layers;  ///< of both; num_hidden_layers counts the encoder's
    std::uint64_t num_decoder_layers = 0;
    std::uint64_t decoder_sequence_length = 0;  ///< 0: as long as the encoder's
    std::uint64_t relative_buckets = 0;         ///< rows of the table of relative positions; 0: none
    friend bool operator==(const EncoderDecoderConfig&, const EncoderDecoderConfig&) = default;
};

/// What one training sample looks like.
enum class BatchKind : std::uint8_t {
    tokens,   ///< int64 token ids, and int64 labels of the same shape
    features  ///< `feature_width` numbers in the compute dtype (plain stack), target = input or int64 label
};

/// A model: parameters in registration order and blocks in execution order.
struct ModelSpec {
    std::string name;          ///< preset or file name, for people
    std::string architecture;  ///< the class that was counted, e.g. "LlamaForCausalLM"
    std::vector<Parameter> parameters;
    std::vector<BlockKind> block_kinds;
    std::vector<Block> blocks;
    BatchKind batch = BatchKind::tokens;
    std::uint64_t feature_width = 0;
    bool target_is_input = false;  ///< mse against the input: no target buffer
    std::uint64_t vocabulary = 0;
    std::uint64_t hidden_size = 0, layers = 0, heads = 0, kv_heads = 0;  ///< 0 where it has no meaning
    std::uint64_t max_sequence_length = 1;
    std::optional<DecoderConfig>
        decoder{};  ///< of decoders: lets an engine build one rank's part of the model
    std::optional<ExpertConfig> experts{};   ///< of its decoder's layers, with images or without
    std::optional<DecoderConfig> encoder{};  ///< of encoders (BERT), likewise
    std::optional<EncoderDecoderConfig> encoder_decoder{};
    std::vector<std::string>
        notes;  ///< what was assumed while reading it; each becomes a warning of the plan

    std::uint64_t parameter_count() const;            ///< tied weights once
    std::uint64_t trainable_parameter_count() const;  ///< tied weights once
    std::uint64_t active_parameter_count() const;     ///< used by one token; all of them unless MoE
    friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// Elements of `extent` for `sequences` sequences of `sequence_length` tokens. Throws on overflow.
std::uint64_t elements(const Extent& extent, std::uint64_t sequences, std::uint64_t sequence_length);
/// Floating-point operations as a double: only ever used for time.
double operations(const Flops& flops, std::uint64_t sequences, std::uint64_t sequence_length);
/// The storage dtype of a tensor when training computes in `compute`.
DType resolve(TensorDType dtype, DType compute);

}  // namespace zeroplan
