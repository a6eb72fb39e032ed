#include "core/engines/megatron_scenarios.hpp"

#include "zeroplan/build_model.hpp"

namespace zeroplan {
namespace {

DecoderConfig decoder_of(const std::string& family, bool tied) {
    const bool gpt = family == "gpt";
    DecoderConfig decoder{.name = "tiny " + family,
                          .architecture = family,
                          .vocab_size = 512,
                          .hidden_size = 64,
                          .intermediate_size = 256,
                          .num_hidden_layers = 8,
                          .num_attention_heads = 4,
                          .num_key_value_heads = 4,
                          .head_dim = 16,
                          .max_position_embeddings = 128,
                          .mlp = gpt ? "gelu" : "swiglu",
                          .position_embedding = gpt ? "learned" : "rope",
                          .normalization = gpt ? "layernorm" : "rmsnorm",
                          .attention_bias = gpt,
                          .attention_output_bias = gpt,
                          .mlp_bias = gpt,
                          .tie_word_embeddings = tied,
                          .fused_qkv = gpt};
    if (family == "deepseek") {
        decoder.experts = ExpertConfig{.count = 8,
                                       .per_token = 2,
                                       .intermediate_size = 32,
                                       .shared_intermediate_size = 32,
                                       .first_layer = 1};
        decoder.latent_attention = LatentAttentionConfig{
            .query_rank = 24, .key_value_rank = 16, .key_dim = 16, .rope_dim = 8, .value_dim = 12};
    }
    return decoder;
}

}  // namespace

Scenario megatron_scenario(const std::string& family, const MegatronCase& wanted) {
    const DecoderConfig decoder = decoder_of(family, wanted.tied);
    const LoweringOptions lowering{.dropout = wanted.dropout};
    Scenario scenario{.model =
                          family == "gpt" ? build_gpt2(decoder, lowering) : build_llama(decoder, lowering)};
    TrainingConfig& t = scenario.training;
    t.engine = EngineKind::megatron;
    t.zero_stage = wanted.zero_stage;
    t.data_parallel = wanted.data;
    t.tensor_parallel = t.expert_tensor_parallel = wanted.tensor;
    t.expert_parallel = wanted.expert;
    t.pipeline_parallel = wanted.pipeline;
    t.virtual_pipeline = wanted.chunks;
    t.context_parallel = wanted.context;
    t.shard_group = wanted.zero_stage == 0 ? 1 : wanted.data * wanted.context;
    t.sequence_parallel = wanted.sequence;
    t.pipeline_schedule = wanted.chunks > 1 ? PipelineSchedule::interleaved : wanted.schedule;
    t.micro_batch_size = 2;
    t.gradient_accumulation_steps = wanted.micro_batches;
    t.sequence_length = 128;
    t.compute_dtype = t.parameter_dtype = wanted.compute;
    t.gradient_dtype = t.reduce_dtype = DType::fp32;
    t.master_dtype = is_16_bit(wanted.compute) ? std::optional(DType::fp32) : std::nullopt;
    t.optimizer = Optimizer::adam;
    t.recompute = wanted.recompute;
    t.attention = wanted.attention;
    t.loss = LossKernel::vocab_parallel;
    t.megatron_json = wanted.megatron_json;
    t.engine_version = wanted.engine_version;
    scenario.cluster.gpu = {.name = "test",
                            .memory_usable = Bytes{1ULL << 40},
                            .hbm_bytes_per_s = 1e12,
                            .bf16_flop_per_s = 1e15,
                            .compute_capability = 90};
    scenario.cluster.gpus_used = wanted.data * wanted.tensor * wanted.pipeline * wanted.context;
    return scenario;
}

std::uint64_t resident_of(const Plan& plan, std::size_t group, Category category) {
    const StepProgram& program = plan.programs[plan.rank_groups[group].program];
    std::uint64_t bytes = 0;
    for (const Section* section : {&program.load, &program.init}) {
        for (const Operation& operation : section->operations) {
            const auto* allocation = std::get_if<Allocate>(&operation.body);
            const auto* release = std::get_if<Free>(&operation.body);
            const BufferId id = allocation ? allocation->buffer : release ? release->buffer : no_buffer;
            if (id == no_buffer || program.buffers[id].category != category) continue;
            const std::uint64_t size =
                program.buffers[id].elements * bytes_per_element(program.buffers[id].dtype);
            bytes = allocation ? bytes + size : bytes - size;
        }
    }
    return bytes;
}

}  // namespace zeroplan
