#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/import/import_file.hpp"
#include "core/json/error_of.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Recognise, TellsFilesByTheirContent) {
    EXPECT_EQ(import_file("deepspeed/z3_hpz.json").kind, ImportKind::deepspeed_config);
    EXPECT_EQ(import_file("deepspeed/z2_legacy_cpu_offload.json").kind, ImportKind::deepspeed_config);
    EXPECT_EQ(import_file("accelerate/fsdp_hybrid.yaml").kind, ImportKind::accelerate_config);
    EXPECT_EQ(import_file("launch/slurm_4node.sbatch").kind, ImportKind::launch_script);
    EXPECT_EQ(import_file("launch/torchrun_single.txt").kind, ImportKind::launch_script);
    EXPECT_EQ(import_file("topo/dgx_a100_10nic.txt").kind, ImportKind::topology_matrix);
    EXPECT_EQ(import_file("nccl/pairs_graph.xml").kind, ImportKind::nccl_graph);
    EXPECT_EQ(import_file("logs/oom_ranks_torchrun.txt").kind, ImportKind::oom_message);
    EXPECT_EQ(import_file("logs/deepspeed_memory.txt").kind, ImportKind::deepspeed_memory);
}

TEST(Recognise, SendsFilesWhereTheyBelong) {
    const auto error = [](const std::string& text) {
        return error_of([&] { (void)import_text(text, "f"); });
    };
    EXPECT_THAT(error(R"({"model_type": "llama"})").hint(), HasSubstr("--model"));
    EXPECT_THAT(error(R"({"model": {}, "training": {}})").hint(), HasSubstr("--scenario"));
    EXPECT_THAT(error(R"({"gpus_per_node": 8})").hint(), HasSubstr("--topology"));
    EXPECT_THAT(error(R"({"kind": "plan"})").hint(), HasSubstr("zeroplan compare"));
    EXPECT_THAT(error("| NVIDIA-SMI 550.54 |\n").hint(), HasSubstr("nvidia-smi topo -m"));
    EXPECT_THAT(error("").message(), HasSubstr("empty"));
    EXPECT_THAT(error("[1, 2]").message(), HasSubstr("no object"));
    EXPECT_THAT(error(std::string("\0\1\2", 3)).message(), HasSubstr("no text"));
    EXPECT_THAT(error("Traceback (most recent call last):\nKeyError\n").message(), HasSubstr("traceback"));
    EXPECT_THAT(error("nothing of the kind\n").hint(), HasSubstr("accelerate YAML"));
}

TEST(ImportJson, HoldsFindingsFiguresAndResults) {
    const Import import = import_file("deepspeed/z3_float_prefetch.json");
    ScenarioRequest request;
    request.imported.push_back(import.scenario);
    const json report = json::parse(import_json(import, merged_scenario_json(request)));
    EXPECT_EQ(report["kind"], "import");
    EXPECT_EQ(report["what"], "deepspeed_config");
    EXPECT_EQ(report["rejected"], true);
    EXPECT_EQ(report["findings"].back()["line"], 8);
    EXPECT_EQ(report["figures"]["reduce_bucket_size"]["value"], 16777216);
    EXPECT_EQ(report["scenario"]["training"]["deepspeed"]["zero_optimization"]["stage3_prefetch_bucket_size"],
              15099494);
    EXPECT_FALSE(report.contains("topology"));
}

TEST(ImportText, LeadsWithWhatIsRejected) {
    const std::string text = import_text_report(import_file("deepspeed/batch_only_total.json"));
    EXPECT_THAT(text, HasSubstr("DeepSpeed configuration"));
    EXPECT_THAT(text, HasSubstr("line 10: zero_optimization.grad_hooks"));
    EXPECT_LT(text.find("Rejected"), text.find("Figures"));
    EXPECT_THAT(import_text_report(import_file("topo/hgx_h100_9nic.txt")), HasSubstr("450.00 GB/s"));
}

}  // namespace
}  // namespace zeroplan
