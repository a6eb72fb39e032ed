#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/model_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// `run` of a scenario: what a real run needs beyond the plan.
struct RunConfig {
    double learning_rate = 0.01;
    std::uint64_t epochs = 10;
    std::optional<std::uint64_t> steps;  ///< ends a run early
    std::uint64_t seed = 42;
    std::string data = "synthetic:1000x100";
    std::string checkpoint;  ///< directory, "" = none
    friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

/// Everything a plan needs, validated, all defaults filled in. Made only by the readers of `io.hpp`.
struct Scenario {
    ModelSpec model;
    TrainingConfig training;
    ClusterSpec cluster;
    RunConfig run;
    std::string model_json;  ///< the model object as given (preset, file or body), to write the scenario back
    std::uint64_t world_size() const { return cluster.gpus_used; }
    friend bool operator==(const Scenario&, const Scenario&) = default;
};

}  // namespace zeroplan
