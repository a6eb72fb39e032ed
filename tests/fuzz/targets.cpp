#include "fuzz/targets.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>

#include "import/model_reader.hpp"
#include "import/safetensors.hpp"
#include "json/cluster_json.hpp"
#include "json/parse.hpp"
#include "zeroplan/error.hpp"
#include "zeroplan/import.hpp"

namespace zeroplan::fuzz {
namespace {

/// An input that names a file would make the fuzzer read it, and devices have no end.
bool names_a_file(std::string_view input) {
    for (const char* part : {"file", ".json", "/"})
        if (input.find(part) != std::string_view::npos) return true;
    return false;
}

template <typename Read>
void reads_or_refuses(Read read) {
    try {
        read();
    } catch (const Error&) {
        return;
    }
}

void run_config(std::string_view input) {
    if (names_a_file(input)) return;
    reads_or_refuses([&] { (void)read_model(parse_json(input, "config.json"), "", {}); });
}

void run_scenario(std::string_view input) {
    if (names_a_file(input)) return;
    reads_or_refuses([&] {
        ScenarioRequest request;
        request.text = std::string(input);
        const std::string written = scenario_json(resolve_scenario(request));
        request.text = written;
        // What was written reads back as the same.
        if (scenario_json(resolve_scenario(request)) != written) std::abort();
    });
}

/// The reader takes a path; a file in memory has one.
void run_safetensors(std::string_view input) {
    const int file = memfd_create("safetensors", MFD_CLOEXEC);
    if (file < 0 || write(file, input.data(), input.size()) != static_cast<ssize_t>(input.size()))
        std::abort();
    reads_or_refuses([&] { (void)read_safetensors("/proc/self/fd/" + std::to_string(file)); });
    close(file);
}

/// Whatever was understood can be written, and a topology that was made can be used.
void use(const Import& import) {
    (void)import_text_report(import);
    ScenarioRequest request;
    request.imported.push_back(import.scenario);
    std::string scenario;
    reads_or_refuses([&] { scenario = merged_scenario_json(request); });
    (void)import_json(import, scenario);
    if (import.topology_json.empty()) return;
    const nlohmann::json topology = nlohmann::json::parse(import.topology_json);
    (void)read_cluster({{"gpu", topology["gpu"]},
                        {"gpus_per_node", topology["gpus_per_node"]},
                        {"intra_node", topology["intra_node"]},
                        {"inter_node", topology["inter_node"]},
                        {"host", topology["host"]},
                        {"gpus_used", 1}},
                       {});
}

void run_deepspeed(std::string_view input) {
    ImportContext context;
    context.hidden_size = 4096;
    reads_or_refuses([&] { use(import_deepspeed(input, "ds_config.json")); });
    reads_or_refuses([&] { use(import_deepspeed(input, "ds_config.json", context)); });
    context.ranks = 8;
    reads_or_refuses([&] { use(import_deepspeed(input, "ds_config.json", context)); });
}

void run_accelerate(std::string_view input) {
    if (input.find("deepspeed_config_file") != std::string_view::npos) return;  // reads the file it names
    reads_or_refuses([&] { use(import_accelerate(input, "config.yaml")); });
}

void run_import(std::string_view input) {
    ImportContext context;
    context.gpu = "a100-sxm-80gb";
    context.nic_bytes_per_s = 25e9;
    if (input.find("deepspeed_config_file") != std::string_view::npos) return;
    reads_or_refuses([&] { use(import_text(input, "file")); });
    reads_or_refuses([&] { use(import_text(input, "file", context)); });
}

constexpr std::string_view config_words[] = {"\"model_type\"",
                                             "\"llama\"",
                                             "\"qwen3_moe\"",
                                             "\"deepseek_v3\"",
                                             "\"gpt2\"",
                                             "\"mixtral\"",
                                             "\"hidden_size\"",
                                             "\"num_hidden_layers\"",
                                             "\"num_attention_heads\"",
                                             "\"num_key_value_heads\"",
                                             "\"intermediate_size\"",
                                             "\"vocab_size\"",
                                             "\"head_dim\"",
                                             "\"num_experts\"",
                                             "\"tie_word_embeddings\"",
                                             "\"layers\"",
                                             "\"linear\"",
                                             "\"text_config\"",
                                             "1e308",
                                             "18446744073709551615",
                                             "-1",
                                             "0",
                                             "null"};
constexpr std::string_view safetensors_words[] = {"\"dtype\"",
                                                  "\"BF16\"",
                                                  "\"F32\"",
                                                  "\"shape\"",
                                                  "\"data_offsets\"",
                                                  "\"__metadata__\"",
                                                  "[0,0]",
                                                  "[18446744073709551615]",
                                                  "{}",
                                                  "[]"};
constexpr std::string_view scenario_words[] = {"\"schema\"",
                                               "\"model\"",
                                               "\"preset\"",
                                               "\"gpt2\"",
                                               "\"training\"",
                                               "\"cluster\"",
                                               "\"run\"",
                                               "\"engine\"",
                                               "\"native\"",
                                               "\"ddp\"",
                                               "\"fsdp2\"",
                                               "\"megatron\"",
                                               "\"zero_stage\"",
                                               "\"tensor_parallel\"",
                                               "\"pipeline_parallel\"",
                                               "\"shard_group\"",
                                               "\"micro_batch_size\"",
                                               "\"nodes\"",
                                               "\"gpus_used\"",
                                               "\"gpu\"",
                                               "\"inter_node\"",
                                               "\"host\"",
                                               "\"fsdp\"",
                                               "\"adapter\"",
                                               "1048576",
                                               "9007199254740993",
                                               "0",
                                               "-1",
                                               "null"};
constexpr std::string_view deepspeed_words[] = {"\"zero_optimization\"",
                                                "\"stage\"",
                                                "\"auto\"",
                                                "\"train_batch_size\"",
                                                "\"train_micro_batch_size_per_gpu\"",
                                                "\"gradient_accumulation_steps\"",
                                                "\"bf16\"",
                                                "\"fp16\"",
                                                "\"enabled\"",
                                                "\"offload_optimizer\"",
                                                "\"offload_param\"",
                                                "\"device\"",
                                                "\"cpu\"",
                                                "\"nvme\"",
                                                "\"cpu_offload\"",
                                                "\"reduce_bucket_size\"",
                                                "\"stage3_prefetch_bucket_size\"",
                                                "\"zero_hpz_partition_size\"",
                                                "\"mics_shard_size\"",
                                                "\"optimizer\"",
                                                "\"type\"",
                                                "\"aio\"",
                                                "\"ratio\"",
                                                "\"overlap_comm\"",
                                                "// c\n",
                                                "# c\n",
                                                "/* */",
                                                ",}",
                                                "5e8",
                                                "15099494.4",
                                                "18446744073709551615",
                                                "\"5e8\"",
                                                "1e400",
                                                "true",
                                                "null"};
constexpr std::string_view accelerate_words[] = {"distributed_type: ",
                                                 "FSDP",
                                                 "DEEPSPEED",
                                                 "MEGATRON_LM",
                                                 "num_processes: ",
                                                 "num_machines: ",
                                                 "fsdp_config:\n",
                                                 "  fsdp_version: 2\n",
                                                 "  fsdp_sharding_strategy: HYBRID_SHARD\n",
                                                 "deepspeed_config:\n",
                                                 "  zero_stage: 3\n",
                                                 "  offload_param_device: nvme\n",
                                                 "mixed_precision: bf16\n",
                                                 "parallelism_config:\n",
                                                 "&a",
                                                 "*a",
                                                 "<<: ",
                                                 "!!binary ",
                                                 "- ",
                                                 "? ",
                                                 "|\n",
                                                 "{a: b}",
                                                 "'",
                                                 "9223372036854775808"};
constexpr std::string_view topology_words[] = {
    "GPU0", "GPU1", "GPU2", "NIC0", "mlx5_0", "NV12", "NV4",          "NV99",          "SYS",     "NODE",
    "PHB",  "PXB",  "PIX",  " X ",  "\t",     "\n",   "CPU Affinity", "NUMA Affinity", "Legend:", "\033[4m"};
constexpr std::string_view xml_words[] = {
    "<system version=\"1\">",
    "</system>",
    "<cpu>",
    "</cpu>",
    "<pci busid=\"0000:01:00.0\">",
    "</pci>",
    "<gpu dev=\"0\" sm=\"80\">",
    "</gpu>",
    "<nvlink target=\"0000:02:00.0\" count=\"12\" tclass=\"0x068000\"/>",
    "<nic>",
    "</nic>",
    "<net name=\"mlx5_0\" speed=\"200000\"/>",
    "<graphs version=\"1\">",
    "</graphs>",
    "<graph id=\"0\" pattern=\"4\" nchannels=\"1\" speedintra=\"12\" speedinter=\"10\">",
    "</graph>",
    "<channel>",
    "</channel>",
    "<gpu dev=\"1\"/>",
    "18446744073709551616",
    "nan",
    "0x",
    "&amp;",
    "<!--",
    "<![CDATA["};
constexpr std::string_view logs_words[] = {
    "Tried to allocate ",
    " GiB",
    " MiB",
    " total capacity",
    "total capacity of ",
    " is free",
    " memory in use",
    " is allocated by PyTorch",
    " is reserved by PyTorch but unallocated",
    " already allocated",
    " free",
    " reserved in total by PyTorch",
    "MA ",
    "Max_MA ",
    "CA ",
    "Max_CA ",
    " GB ",
    "algbw",
    "busbw",
    "#       size         count      type   redop    root     time   algbw   busbw #wrong\n",
    "# nThread 1 nGpus 8",
    "# Rank  0 on host",
    "torchrun --nproc_per_node=8 ",
    "--nnodes=",
    "#SBATCH --nodes=4\n",
    "#SBATCH --gres=gpu:8\n",
    "accelerate launch ",
    "$SLURM_NNODES",
    "${A}",
    "A=$A$A\n",
    "\\\n",
    "nan",
    "inf",
    "1e999",
    "18446744073709551616",
    "-0"};

constexpr std::array all{Target{"config", run_config, config_words},
                         Target{"safetensors", run_safetensors, safetensors_words},
                         Target{"scenario", run_scenario, scenario_words},
                         Target{"deepspeed", run_deepspeed, deepspeed_words},
                         Target{"accelerate", run_accelerate, accelerate_words},
                         Target{"topology", run_import, topology_words},
                         Target{"xml", run_import, xml_words},
                         Target{"logs", run_import, logs_words}};

}  // namespace

std::span<const Target> targets() {
    return all;
}

const Target& target(std::string_view name) {
    for (const Target& target : all)
        if (target.name == name) return target;
    std::fprintf(stderr, "no fuzz target of that name\n");
    std::abort();
}

}  // namespace zeroplan::fuzz
