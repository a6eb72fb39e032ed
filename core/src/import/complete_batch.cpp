#include "import/complete_batch.hpp"

#include "import/batch_equation.hpp"
#include "json/cluster_json.hpp"
#include "json/object_reader.hpp"
#include "zeroplan/import.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

std::uint64_t degree(const ObjectReader& training, const char* key) {
    return training.integer(key, 1).value_or(1);
}

/// Ranks that hold different data, as the scenario's reader will count them.
std::uint64_t data_parallel_ranks(const json& document, const ObjectReader& training,
                                  const std::string& file) {
    if (const auto stated = training.integer("data_parallel", 1)) return *stated;
    const std::uint64_t gpus =
        read_cluster(document.value("cluster", json::object()), {file, "/cluster"}).gpus_used;
    const std::uint64_t inner = checked_product(
        checked_product(degree(training, "tensor_parallel"), degree(training, "pipeline_parallel")),
        degree(training, "context_parallel"));
    return std::max<std::uint64_t>(gpus / inner, 1);
}

}  // namespace

std::optional<std::uint64_t> stated_data_parallel_ranks(const ScenarioRequest& request) {
    if (!is_stated(request, "/cluster")) return std::nullopt;
    const ScenarioDocument document = merge_scenario(request);
    const json training = document.json.value("training", json::object());
    return data_parallel_ranks(document.json, ObjectReader(training, {document.file, "/training"}),
                               document.file);
}

void complete_batch(ScenarioDocument& document, std::span<const ImportedScenario> imported) {
    for (const ImportedScenario& source : imported) {
        if (!source.train_batch_size) continue;
        json& training = document.json["training"];
        if (training.is_null()) training = json::object();
        const ObjectReader reader(training, {document.file, "/training"});
        const BatchSizes stated{source.train_batch_size, reader.integer("micro_batch_size", 1),
                                reader.integer("gradient_accumulation_steps", 1)};
        const BatchSizes sizes = complete(stated, data_parallel_ranks(document.json, reader, document.file),
                                          {source.file, source.train_batch_size_origin});
        training["micro_batch_size"] = *sizes.micro_batch;
        training["gradient_accumulation_steps"] = *sizes.accumulation;
        return;
    }
}

}  // namespace zeroplan
