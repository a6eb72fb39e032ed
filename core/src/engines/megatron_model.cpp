#include "engines/megatron_model.hpp"

#include <fmt/format.h>

#include <numeric>

#include "architectures/fixed_length.hpp"
#include "engines/megatron_layer.hpp"

namespace zeroplan {
namespace {

/// Blocks of one stage, chunk by chunk.
class StageBuilder {
public:
    StageBuilder(const Scenario& scenario, const MegatronOptions& options)
        : scenario_(scenario), context_(megatron_context(scenario, options)), options_(options) {}

    StageModel build(const std::vector<StageChunk>& chunks) {
        const ModelSpec& whole = scenario_.model;
        stage_.model = {.name = whole.name,
                        .architecture = whole.architecture,
                        .batch = whole.batch,
                        .vocabulary = whole.vocabulary,
                        .hidden_size = whole.hidden_size,
                        .layers = whole.layers,
                        .heads = whole.heads,
                        .kv_heads = whole.kv_heads,
                        .max_sequence_length = whole.max_sequence_length};
        for (const StageChunk& chunk : chunks) append(chunk);
        stage_.memory_buffer_elements = memory_buffer_elements(context_, chunks.back().head);
        return std::move(stage_);
    }

private:
    void append(const StageChunk& chunk) {
        if (context_.encoder_decoder) return append_encoder_decoder();
        const auto first = static_cast<std::uint32_t>(stage_.model.blocks.size());
        stage_.first_parameter.push_back(static_cast<std::uint32_t>(stage_.model.parameters.size()));
        std::uint32_t table = 0;  ///< then the output layer's
        if (chunk.embedding) {
            table = static_cast<std::uint32_t>(stage_.model.parameters.size());
            append_block(stage_.model, megatron_embedding(context_), "embedding", "embedding.");
        }
        append_layers(chunk);
        if (chunk.head) {
            const BlockTemplate head = megatron_head(context_);
            std::vector<std::pair<std::uint32_t, std::uint32_t>> shared;
            // A tied output layer is the embedding itself where both stand in one chunk, else a copy.
            if (context_.tied && chunk.embedding) shared.push_back({context_.head_weight_position(), table});
            const auto first_of_head = static_cast<std::uint32_t>(stage_.model.parameters.size());
            append_block(stage_.model, head, "head", "", shared);
            table = first_of_head + context_.head_weight_position();
        }
        if (context_.tied && chunk.embedding != chunk.head && scenario_.training.pipeline_parallel > 1)
            stage_.tied_copy = table;
        const auto count = static_cast<std::uint32_t>(stage_.model.blocks.size());
        stage_.chunks.push_back({first, count - 1});
    }

    /// Both stacks of T5, which share embeddings and stand on one stage.
    void append_encoder_decoder() {
        ModelSpec& model = stage_.model;
        const EncoderDecoderConfig& whole = *context_.encoder_decoder;
        const MegatronContext decoder = context_.of_decoder();
        stage_.first_parameter.push_back(0);
        const BlockTemplate embedding = megatron_embedding(context_);
        append_block(stage_.model, embedding, "embedding", "embedding.");
        append_layers({.first_layer = 0, .layers = whole.layers.num_hidden_layers});
        append_block(stage_.model, megatron_encoder_end(context_), "encoder.final_layernorm", "");
        const auto encoder_end = static_cast<std::uint32_t>(model.blocks.size() - 1);

        BlockTemplate decoder_embedding = megatron_embedding(decoder);
        decoder_embedding.kind.name = "decoder embedding";
        decoder_embedding.kind.starts_from_batch = true;
        fix_length(decoder_embedding.kind, decoder.sequence_length);
        std::vector<std::pair<std::uint32_t, std::uint32_t>> tables;
        for (std::uint32_t p = 0; p < embedding.parameters.size(); ++p) tables.push_back({p, p});
        append_block(stage_.model, decoder_embedding, "decoder.embedding", "decoder.embedding.", tables);
        const BlockTemplate layer = megatron_cross_layer(decoder);
        for (std::uint64_t i = 0; i < whole.num_decoder_layers; ++i) {
            append_block(stage_.model, layer, fmt::format("decoder.layers.{}", i),
                         fmt::format("decoder.layers.{}.", i));
            model.blocks.back().context_from = encoder_end;
        }
        BlockTemplate head = megatron_head(decoder);
        fix_length(head.kind, decoder.sequence_length);
        std::vector<std::pair<std::uint32_t, std::uint32_t>> shared;
        if (context_.tied) shared.push_back({context_.head_weight_position(), 0});
        append_block(stage_.model, head, "head", "", shared);
        stage_.chunks.push_back({0, static_cast<std::uint32_t>(model.blocks.size() - 1)});
    }

    /// Layers that are recomputed together are one block.
    void append_layers(const StageChunk& chunk) {
        const std::uint64_t group = layers_recomputed_together(scenario_.training, options_);
        const char* stack = context_.encoder_decoder || context_.pretrains_bert ? "encoder" : "decoder";
        for (std::uint64_t done = 0; done < chunk.layers; done += group) {
            const std::uint64_t layers = std::min(group, chunk.layers - done);
            const std::uint64_t number = chunk.first_layer + done;
            append_block(stage_.model, megatron_layers(context_, number, layers),
                         fmt::format("{}.layers.{}", stack, number),
                         fmt::format("{}.layers.{}.", stack, number));
        }
    }

    const Scenario& scenario_;
    MegatronContext context_;
    const MegatronOptions& options_;
    StageModel stage_;
};

}  // namespace

std::vector<StageChunk> stage_chunks(const TrainingConfig& training, std::uint64_t layers,
                                     std::uint64_t stage) {
    const std::uint64_t stages = training.pipeline_parallel,
                        virtual_stages = stages * training.virtual_pipeline;
    std::vector<std::uint64_t> split = training.pipeline_layout;
    if (split.empty()) {
        if (layers % virtual_stages != 0)
            throw Error(ErrorCode::invalid_input,
                        fmt::format("{} layers don't divide into {} pipeline stages × {} chunks", layers,
                                    stages, training.virtual_pipeline),
                        "choose degrees whose product divides the layers, or say how many layers each stage "
                        "has in pipeline_layout",
                        {"", "/training/pipeline_parallel"});
        split.assign(virtual_stages, layers / virtual_stages);
    }
    std::vector<StageChunk> chunks;
    for (std::uint64_t v = stage; v < virtual_stages; v += stages)
        chunks.push_back(
            {.first_layer = std::accumulate(split.begin(), split.begin() + static_cast<std::ptrdiff_t>(v),
                                            std::uint64_t{0}),
             .layers = split[v],
             .embedding = v == 0,
             .head = v + 1 == virtual_stages});
    return chunks;
}

StageModel megatron_stage_model(const Scenario& scenario, const MegatronOptions& options,
                                const std::vector<StageChunk>& chunks) {
    return StageBuilder(scenario, options).build(chunks);
}

}  // namespace zeroplan
