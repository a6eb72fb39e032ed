#include <gmock/gmock.h>

#include "core/import/import_file.hpp"
#include "core/json/error_of.hpp"
#include "import/shell_words.hpp"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Import import_script(const std::string& text) {
    return import_text(text, "job.sh");
}

TEST(ShellWords, SplitsQuotesAndExpands) {
    std::map<std::string, std::string> variables{{"N", "4"}};
    const auto lines = shell_lines("A=2 run --x=\"a b\" $N ${A}x \\\n  'c $N' # rest\n", variables);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0].number, 1U);
    EXPECT_EQ(variables["A"], "2");
    EXPECT_THAT(lines[0].words, ElementsAre("A=2", "run", "--x=a b", "4", "2x", "c 4"));
}

TEST(LaunchImport, TellsThatPlanTakesNoScript) {
    const std::string text = import_text_report(import_script("torchrun --nproc_per_node 8 train.py\n"));
    EXPECT_THAT(text, HasSubstr("--output writes it, zeroplan plan --scenario takes that"));
    EXPECT_THAT(text, testing::Not(HasSubstr("takes the file itself")));
}

TEST(LaunchImport, CountsRanksAndNotLauncherTasks) {
    const Import import = import_file("launch/slurm_4node.sbatch");
    EXPECT_EQ(import.figure("world_size"), 32);  // 4 nodes × 8 processes; ntasks-per-node=1 is torchrun's
    EXPECT_EQ(stated(import, "/cluster/nodes"), "4");
    EXPECT_EQ(stated(import, "/cluster/gpus_per_node"), "8");
    EXPECT_EQ(import.figure("global_batch"), 128);
    EXPECT_EQ(import.figure("tokens_per_step"), 1048576);
    EXPECT_EQ(import.figure("network_adapters_per_node"), 4);
    EXPECT_EQ(import.figure("expandable_segments"), 1);
    EXPECT_EQ(stated(import, "/training/allocator/expandable_segments"), "true");
    EXPECT_THAT(finding(import, Finding::resolved, "--ntasks-per-node").message, HasSubstr("not ranks"));
    EXPECT_EQ(stated(import, "/training/engine"), "\"deepspeed\"");
    EXPECT_THAT(finding(import, Finding::missing, "--deepspeed").hint, HasSubstr("z3_auto_hf.json"));
}

TEST(LaunchImport, CountsVisibleDevices) {
    const Import import = import_file("launch/torchrun_single.txt");
    EXPECT_EQ(import.figure("world_size"), 3);  // CUDA_VISIBLE_DEVICES=0,1,3
    EXPECT_EQ(stated(import, "/training/optimizer"), "\"adamw_8bit\"");
    EXPECT_EQ(stated(import, "/training/recompute"), "\"full\"");
    EXPECT_EQ(stated(import, "/training/engine"), "\"fsdp1\"");
    EXPECT_EQ(stated(import, "/training/zero_stage"), "3");
    EXPECT_EQ(stated(import, "/training/compute_dtype"), "\"bf16\"");
}

TEST(LaunchImport, KnowsTheLaunchers) {
    EXPECT_EQ(import_script("python -m torch.distributed.run --nnodes=2 --nproc-per-node=4 t.py\n")
                  .figure("world_size"),
              8);
    EXPECT_EQ(
        import_script("accelerate launch --num_machines 2 --num_processes 16 t.py\n").figure("world_size"),
        16);
    EXPECT_EQ(import_script("deepspeed --num_nodes 2 --num_gpus 8 t.py\n").figure("world_size"), 16);
    EXPECT_EQ(
        import_script("#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\nsrun python t.py\n").figure("world_size"),
        8);
    EXPECT_EQ(import_script("GPUS=8\ntorchrun --nproc_per_node=$GPUS t.py\n").figure("world_size"), 8);
    EXPECT_EQ(import_script("#SBATCH --gres=gpu:h100:4\n#SBATCH --nodes 2\ntorchrun --nnodes ${SLURM_NNODES} "
                            "--nproc_per_node gpu t.py\n")
                  .figure("world_size"),
              8);
}

TEST(LaunchImport, StatesPyTorchsAllocator) {
    const Import import = import_script(
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128,"
        "garbage_collection_threshold:0.8\ntorchrun --nproc_per_node 8 t.py --fsdp full_shard\n");
    EXPECT_EQ(stated(import, "/training/allocator/expandable_segments"), "true");
    EXPECT_EQ(stated(import, "/training/allocator/max_split_size_bytes"), "134217728");
    EXPECT_THAT(finding(import, Finding::ignored, "PYTORCH_CUDA_ALLOC_CONF").message,
                HasSubstr("garbage_collection_threshold:0.8 is not counted"));
}

TEST(LaunchImport, RejectsWhatPyTorchsAllocatorRefuses) {
    const auto rejected = [](const std::string& options) {
        const Import import = import_script("PYTORCH_CUDA_ALLOC_CONF=" + options +
                                            " torchrun --nproc_per_node 8 t.py --fsdp full_shard\n");
        EXPECT_EQ(import.rejected(), count(import, Finding::rejected) == 1) << options;
        return finding(import, Finding::rejected, "PYTORCH_CUDA_ALLOC_CONF");
    };
    EXPECT_THAT(rejected("max_split_size_mb:5").message, HasSubstr("max_split_size_mb:5: too small"));
    EXPECT_THAT(rejected("max_split_size_mb:19").message, HasSubstr("below 20 MiB"));
    EXPECT_THAT(rejected("expandable_segments:maybe").message, HasSubstr("True or False"));
    EXPECT_THAT(rejected("expandable_segments:true").message, HasSubstr("True or False"));
    EXPECT_THAT(rejected("foo:3").message, HasSubstr("foo:3: PyTorch has no such option"));
    EXPECT_THAT(rejected("max_split_size:64").hint, HasSubstr("max_split_size_mb"));
    EXPECT_THAT(rejected("backend:cuda").message, HasSubstr("cudaMallocAsync"));
    EXPECT_EQ(rejected("\"max_split_size_mb:21, roundup_power2_divisions:[256:1,512:2,>:4],\"").message, "");
    EXPECT_EQ(rejected("max_split_size_mb:20").message, "");  // up to 2.8 only
    EXPECT_EQ(rejected("$CONF").message, "");
}

TEST(LaunchImport, AsksForTheEngineThatHasTheAllocator) {
    // Without an engine the scenario's is the native one, which has an arena of its own.
    const Import import =
        import_script("PYTORCH_ALLOC_CONF=expandable_segments:True torchrun --nproc_per_node 8 t.py\n");
    EXPECT_EQ(import.figure("expandable_segments"), 1);
    EXPECT_THAT(finding(import, Finding::missing, "PYTORCH_ALLOC_CONF").hint,
                HasSubstr("--set /training/allocator/expandable_segments=true"));
}

TEST(LaunchImport, TakesWhatNcclIsHeldTo) {
    const Import import = import_script(
        "export NCCL_ALGO=Tree NCCL_PROTO=LL128\n"
        "NCCL_ALGO=NVLSTree torchrun --nproc_per_node 8 t.py\n");
    EXPECT_EQ(stated(import, "/cluster/nccl/algorithm"), "\"nvls_tree\"");  // the last one counts
    EXPECT_EQ(stated(import, "/cluster/nccl/protocol"), "\"ll128\"");
}

TEST(LaunchImport, AsksWhetherTheNetworkReduces) {
    const Import import =
        import_script("NCCL_COLLNET_ENABLE=1 NCCL_ALGO=CollnetDirect torchrun --nproc_per_node 8 t.py\n");
    EXPECT_EQ(finding(import, Finding::missing, "NCCL_COLLNET_ENABLE").asks_for, "/cluster/inter_node/sharp");
    EXPECT_EQ(stated(import, "/cluster/nccl/algorithm"), "\"collnet_direct\"");
}

TEST(LaunchImport, SaysWhatOfTheEnvironmentIsNotPlanned) {
    const Import import = import_script(
        "export NCCL_ALGO=^tree\nexport NCCL_DEBUG=INFO\nexport NCCL_P2P_DISABLE=1\n"
        "export NCCL_IB_HCA=mlx5_0:1,mlx5_1:1\ntorchrun --nproc_per_node 8 t.py\n");
    EXPECT_THAT(finding(import, Finding::warning, "NCCL_ALGO").message, HasSubstr("\"^tree\""));
    EXPECT_EQ(finding(import, Finding::ignored, "NCCL_DEBUG").line, 2U);
    EXPECT_THAT(finding(import, Finding::warning, "NCCL_P2P_DISABLE").hint, HasSubstr("intra_node=pcie"));
    const ImportFinding adapters = finding(import, Finding::missing, "NCCL_IB_HCA");
    EXPECT_THAT(adapters.message, HasSubstr("2 adapters a node"));
    EXPECT_EQ(adapters.asks_for, "/cluster/inter_node");
    EXPECT_EQ(import.figure("network_adapters_per_node"), 2);
}

TEST(LaunchImport, CountsNoAdaptersOfAnExclusion) {
    const Import import = import_script("NCCL_IB_HCA=^mlx5_3 torchrun --nproc_per_node 8 t.py\n");
    EXPECT_FALSE(import.figure("network_adapters_per_node"));
    EXPECT_THAT(finding(import, Finding::ignored, "NCCL_IB_HCA").message, HasSubstr("left out"));
}

TEST(LaunchImport, ReadsAnEnvironmentAlone) {
    const Import import = import_script("HOME=/root\nNCCL_PROTO=Simple\n");
    EXPECT_EQ(stated(import, "/cluster/nccl/protocol"), "\"simple\"");
    EXPECT_FALSE(import.figure("world_size"));
}

TEST(LaunchImport, AsksWhereANumberIsNotThere) {
    const Error variable = error_of([] { (void)import_script("torchrun --nproc_per_node=$UNKNOWN t.py\n"); });
    EXPECT_THAT(variable.message(), HasSubstr("$UNKNOWN"));
    EXPECT_EQ(variable.place(), (ErrorPlace{"job.sh", "line 1: --nproc_per_node"}));
    EXPECT_THAT(error_of([] { (void)import_script("torchrun --nproc_per_node=gpu t.py\n"); }).hint(),
                HasSubstr("--gpus"));
    EXPECT_THAT(error_of([] { (void)import_script("#SBATCH --time=1\necho\n"); }).message(),
                HasSubstr("no launch line"));
}

}  // namespace
}  // namespace zeroplan
