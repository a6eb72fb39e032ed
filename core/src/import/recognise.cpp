#include <nlohmann/json.hpp>

#include "import/deepspeed_config.hpp"
#include "import/import_builder.hpp"
#include "import/import_readers.hpp"
#include "import/json_looks.hpp"
#include "import/launch_environment.hpp"
#include "import/relaxed_json.hpp"
#include "import/text_lines.hpp"

namespace zeroplan {
namespace {

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// Whether a line starts with `start`, spaces apart.
bool has_line(std::string_view text, std::string_view start) {
    for (const TextLine& line : text_lines(text))
        if (trimmed(line.text).starts_with(start)) return true;
    return false;
}

/// nccl-tests' table; its JSON output has the names in quotes.
bool is_nccl_tests(std::string_view text) {
    return has(text, "algbw") && has(text, "busbw") && !has(text, "\"busbw");
}

/// The first character that is neither space nor part of a comment.
char first_character(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    for (const TextLine& line : text_lines(text)) {
        const std::string_view content = trimmed(line.text);
        if (content.empty() || content.starts_with('#') || content.starts_with("//")) continue;
        return content.starts_with("/*") ? '{' : content.front();
    }
    return 0;
}

[[noreturn]] void refuse(const std::string& file, std::string message, std::string hint,
                         std::string place = {}) {
    throw Error(ErrorCode::invalid_input, std::move(message), std::move(hint), {file, std::move(place)});
}

Import import_json_text(std::string_view text, const std::string& file, const ImportContext& context) {
    const RelaxedJson document = parse_relaxed_json(text, file);
    if (!document.value.is_object())
        refuse(file, "this JSON is no object {…}", "a DeepSpeed configuration is one", "line 1");
    if (is_deepspeed(document.value)) return import_deepspeed(text, file, context);
    if (const JsonLook* look = json_look(document.value))
        refuse(file, fmt::format("this looks like {}", look->what), std::string(look->hint),
               fmt::format("/{}", look->key));
    refuse(file, "this JSON is no DeepSpeed configuration: it has neither zero_optimization nor a batch size",
           "is it the right file?");
}

bool is_launch(std::string_view text) {
    return has_line(text, "#SBATCH") || has(text, "torchrun") || has(text, "torch.distributed.") ||
           has(text, "accelerate launch") || has_line(text, "deepspeed ") || sets_environment(text);
}

bool is_matrix(std::string_view text) {
    for (const TextLine& line : text_lines(text)) {
        const std::vector<std::string> words = words_of(line.text);
        if (!words.empty() && words[0] == "GPU0") return true;
    }
    return false;
}

[[noreturn]] void refuse_unknown(std::string_view text, const std::string& file) {
    constexpr const char* topo = "run nvidia-smi topo -m and import its output";
    if (has_line(text, "GPU 0: "))
        refuse(file, "this looks like the output of nvidia-smi -L, a list of GPUs without their connections",
               topo, "line 1");
    if (has(text, "NVIDIA-SMI"))
        refuse(file, "this looks like the table of nvidia-smi, without the GPUs' connections", topo,
               "line 1");
    if (trimmed(text).empty()) refuse(file, "the file is empty", "is it the right file?");
    if (has(text, "Traceback (most recent call last)"))
        refuse(file, "this looks like a Python traceback without an out-of-memory message",
               "keep the line with \"CUDA out of memory. Tried to allocate …\"");
    if (has(text.substr(0, 4096), std::string_view("\0", 1)))
        refuse(file, "this is no text file", "a checkpoint is given with --model");
    refuse(file, "not recognised",
           "known are DeepSpeed JSON, accelerate YAML, torchrun and sbatch lines, nvidia-smi topo -m, NCCL "
           "topology and "
           "graph XML, nccl-tests logs, out-of-memory messages and DeepSpeed's memory lines");
}

}  // namespace

Import import_text(std::string_view text, const std::string& file, const ImportContext& context) {
    const char first = first_character(text);
    if (first == '<') {
        if (has(text, "<graphs")) return import_nccl_graph(text, file);
        if (has(text, "<system")) return import_nccl_topology(text, file, context);
        refuse(file, "this XML has neither <system> nor <graphs>",
               "NCCL writes them with NCCL_TOPO_DUMP_FILE and NCCL_GRAPH_DUMP_FILE");
    }
    // What a program printed goes first: logs may begin as JSON does, with `[rank0]:` or `{'loss': 1.9}`.
    if (has(text, "Tried to allocate ")) return import_oom(text, file);
    if (is_nccl_tests(text)) return import_nccl_tests(text, file);
    if (has(text, "Max_MA ")) return import_deepspeed_memory(text, file);
    if (first == '{' || first == '[') return import_json_text(text, file, context);
    if (is_matrix(text)) return import_topology_matrix(text, file, context);
    if (has_line(text, "distributed_type:")) return import_accelerate(text, file, context);
    if (is_launch(text)) return import_launch(text, file);
    refuse_unknown(text, file);
}

}  // namespace zeroplan
