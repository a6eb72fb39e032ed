#pragma once
#include <string>

#include <fmt/format.h>

#include "zeroplan/io.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan::benchmarks {

/// DGX H100 nodes, micro-batch 1 of 1024 tokens; `training` are further keys of that object.
inline Scenario scenario_of(const char* model, std::int64_t gpus, const char* training) {
    return resolve_scenario({.text = fmt::format(R"({{"schema": 1, "model": {{"preset": "{}"}},
                                  "training": {{"sequence_length": 1024, {}}},
                                  "cluster": {{"topology": "dgx-h100", "nodes": {}}}}})",
                                                 model, training, gpus / 8)});
}

/// ZeRO-3 with full recompute.
inline constexpr const char* zero_3 = R"("zero_stage": 3, "recompute": "full")";

inline Plan plan_of(const char* model, std::int64_t gpus, const char* training = zero_3) {
    return make_plan(scenario_of(model, gpus, training));
}

}  // namespace zeroplan::benchmarks
