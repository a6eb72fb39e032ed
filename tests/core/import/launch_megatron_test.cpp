#include <gmock/gmock.h>

#include "core/import/import_file.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;

Import import_script(const std::string& text) {
    return import_text(text, "job.sh");
}

constexpr const char* whole_line =
    "torchrun --nproc_per_node 8 --master_port 6000 pretrain_gpt.py --tensor-model-parallel-size 2 "
    "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 6 --sequence-parallel "
    "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --group-query-attention "
    "--num-query-groups 8 --vocab-size 50257 --swiglu --position-embedding-type rope "
    "--normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights "
    "--hidden-dropout 0.0 --attention-dropout 0 --seq-length 4096 --micro-batch-size 2 "
    "--global-batch-size 64 --optimizer adam --use-distributed-optimizer --overlap-grad-reduce "
    "--optimizer-cpu-offload --optimizer-offload-fraction 0.5 --use-precision-aware-optimizer "
    "--recompute-granularity selective --recompute-modules core_attn mlp "
    "--attention-backend unfused --no-masked-softmax-fusion --bf16 --lr 1e-4 --data-path=/data/x\n";

TEST(MegatronLaunch, ReadsDegreesAndTheBatch) {
    const Import import = import_script(whole_line);
    EXPECT_EQ(stated(import, "/training/engine"), "\"megatron\"");
    EXPECT_EQ(stated(import, "/training/tensor_parallel"), "2");
    EXPECT_EQ(stated(import, "/training/pipeline_parallel"), "2");
    EXPECT_EQ(stated(import, "/training/virtual_pipeline"), "2");  // 24 layers / 2 stages / 6
    EXPECT_EQ(stated(import, "/training/sequence_parallel"), "true");
    EXPECT_EQ(stated(import, "/training/micro_batch_size"), "2");
    EXPECT_EQ(stated(import, "/training/sequence_length"), "4096");
    EXPECT_EQ(import.scenario.train_batch_size, 64U);
    EXPECT_EQ(import.figure("tokens_per_step"), 64 * 4096);
}

TEST(MegatronLaunch, ReadsHowItTrains) {
    const Import import = import_script(whole_line);
    EXPECT_EQ(stated(import, "/training/zero_stage"), "1");
    EXPECT_EQ(stated(import, "/training/optimizer"), "\"adamw\"");
    EXPECT_EQ(stated(import, "/training/offload_optimizer"), "\"cpu\"");
    EXPECT_EQ(stated(import, "/training/offload_fraction"), "0.5");
    EXPECT_EQ(stated(import, "/training/recompute"), "\"selective\"");
    EXPECT_EQ(stated(import, "/training/recompute_modules"), "[\"core_attention\", \"mlp\"]");
    EXPECT_EQ(stated(import, "/training/attention"), "\"eager\"");
    EXPECT_EQ(stated(import, "/training/compute_dtype"), "\"bf16\"");
    EXPECT_EQ(stated(import, "/training/megatron/overlap_grad_reduce"), "true");
    EXPECT_EQ(stated(import, "/training/megatron/use_precision_aware_optimizer"), "true");
    EXPECT_EQ(stated(import, "/training/megatron/masked_softmax_fusion"), "false");
}

TEST(MegatronLaunch, MakesTheModel) {
    const Import import = import_script(whole_line);
    EXPECT_EQ(stated(import, "/model/num_hidden_layers"), "24");
    EXPECT_EQ(stated(import, "/model/num_key_value_heads"), "8");
    EXPECT_EQ(stated(import, "/model/intermediate_size"), "5440");   // 85 × 64, below 2048 × 8/3 = 5461
    EXPECT_EQ(stated(import, "/model/vocab_size_padded"), "50432");  // 197 × 128 × 2
    EXPECT_EQ(stated(import, "/model/mlp"), "\"swiglu\"");
    EXPECT_EQ(stated(import, "/model/linear_bias"), "false");
    EXPECT_EQ(stated(import, "/model/tie_word_embeddings"), "false");
    EXPECT_EQ(stated(import, "/model/dropout"), "false");
}

TEST(MegatronLaunch, TakesMegatronsDefaults) {
    const Import import = import_script(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 "
        "--num-attention-heads 4 --num-query-groups 2 --tensor-model-parallel-size 2 "
        "--micro-batch-size 3\n");
    EXPECT_EQ(stated(import, "/training/compute_dtype"), "\"fp32\"");
    EXPECT_EQ(stated(import, "/model/intermediate_size"), "256");
    EXPECT_EQ(stated(import, "/model/mlp"), "\"gelu\"");
    EXPECT_EQ(stated(import, "/model/position_embedding"), "\"learned\"");
    EXPECT_EQ(stated(import, "/model/dropout"), "true");
    EXPECT_EQ(stated(import, "/model/num_key_value_heads"), "");  // no --group-query-attention
    EXPECT_EQ(finding(import, Finding::missing, "--vocab-size").asks_for, "/model/vocab_size");
    EXPECT_EQ(import.figure("global_batch"), 12);  // 3 × 4 data-parallel ranks
}

TEST(MegatronLaunch, AsksForAModelThatIsNoGpt) {
    const Import import =
        import_script("torchrun --nproc_per_node 8 pretrain_t5.py --hidden-size 64 --num-layers 2 --bf16\n");
    EXPECT_EQ(stated(import, "/model/hidden_size"), "");
    EXPECT_EQ(finding(import, Finding::missing, "--model").asks_for, "/model");
}

TEST(MegatronLaunch, RejectsChunksThatDoNotFit) {
    const Import import = import_script(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 64 --bf16 "
        "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 4\n");
    EXPECT_TRUE(import.rejected());  // 6 layers a stage
    EXPECT_EQ(stated(import, "/training/virtual_pipeline"), "");
}

TEST(MegatronLaunch, SaysOnceThatAFlagHasNoNumber) {
    const Import import = import_script(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers $LAYERS --hidden-size 64 "
        "--num-attention-heads 4 --tensor-model-parallel-size ${TP} --vocab-size 100 "
        "--num-layers-per-virtual-pipeline-stage 2\n");
    for (const char* flag : {"--num-layers", "--tensor-model-parallel-size"})
        EXPECT_EQ(std::count_if(import.findings.begin(), import.findings.end(),
                                [&](const ImportFinding& finding) { return finding.key == flag; }),
                  1)
            << flag;
}

TEST(MegatronLaunch, LeavesMegatronDeepSpeedItsEngine) {
    const Import import = import_script(
        "deepspeed --num_gpus 8 pretrain_gpt.py --tensor-model-parallel-size 2 --bf16 "
        "--overlap-grad-reduce --deepspeed --deepspeed_config ds.json\n");
    EXPECT_EQ(stated(import, "/training/engine"), "\"deepspeed\"");
    EXPECT_EQ(stated(import, "/training/tensor_parallel"), "2");
    EXPECT_EQ(stated(import, "/training/megatron/overlap_grad_reduce"), "");
    EXPECT_THAT(finding(import, Finding::missing, "--deepspeed").message, HasSubstr("ds.json"));
}

TEST(LaunchFlags, ListsWhatIsNotRead) {
    const std::string unread = finding(import_script(whole_line), Finding::warning, "").message;
    EXPECT_EQ(unread, "not read: --lr 1e-4, --data-path=/data/x");
    const std::string trainer =
        finding(import_script("accelerate launch --num_processes 8 --mixed_precision bf16 train.py "
                              "--per-device-train-batch-size 4 --gradient_checkpointing --warmup_steps 10\n"),
                Finding::warning, "")
            .message;
    EXPECT_EQ(trainer, "not read: --mixed_precision bf16, --warmup_steps 10");
    EXPECT_EQ(
        count(import_script("torchrun --nnodes=2 --nproc-per-node=4 t.py --bf16 True\n"), Finding::warning),
        0U);
}

TEST(LaunchFlags, RejectsTwoPrecisions) {
    const Import both = import_script("torchrun --nproc_per_node 8 t.py --bf16 --fp16\n");
    EXPECT_TRUE(both.rejected());
    EXPECT_EQ(stated(both, "/training/compute_dtype"), "");
    const Import one = import_script("torchrun --nproc_per_node 8 t.py --bf16 False --fp16 True\n");
    EXPECT_FALSE(one.rejected());
    EXPECT_EQ(stated(one, "/training/compute_dtype"), "\"fp16\"");
}

TEST(LaunchFlags, ReadsAScriptThatSrunStarts) {
    const Import import = import_script(
        "#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\nsrun python train.py --bf16 "
        "--per_device_train_batch_size=2\n");
    EXPECT_EQ(stated(import, "/training/micro_batch_size"), "2");
    EXPECT_EQ(import.figure("global_batch"), 16);
}

}  // namespace
}  // namespace zeroplan
