#pragma once
#include <fmt/format.h>

#include "zeroplan/io.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan::benchmarks {

/// ZeRO-3 with full recompute on DGX H100 nodes, micro-batch 1 of 1024 tokens.
inline Plan plan_of(const char* model, std::int64_t gpus) {
    const std::string text = fmt::format(
        "{{\"schema\": 1, \"model\": {{\"preset\": \"{}\"}}, \"training\": {{\"zero_stage\": 3, "
        "\"recompute\": "
        "\"full\", \"sequence_length\": 1024}}, \"cluster\": {{\"topology\": \"dgx-h100\", \"nodes\": {}}}}}",
        model, gpus / 8);
    return make_plan(resolve_scenario({.text = text}));
}

}  // namespace zeroplan::benchmarks
