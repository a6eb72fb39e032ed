#include <benchmark/benchmark.h>

#include "scenarios.hpp"
#include "zeroplan/estimate.hpp"
#include "zeroplan/remedies.hpp"
#include "zeroplan/step_timeline.hpp"

namespace {

using zeroplan::benchmarks::plan_of;
using zeroplan::benchmarks::zero_3;

/// Reading the scenario, without planning it.
void resolve_scenario(benchmark::State& state, const char* model) {
    for (auto _ : state)
        benchmark::DoNotOptimize(zeroplan::benchmarks::scenario_of(model, state.range(0), zero_3));
}
BENCHMARK_CAPTURE(resolve_scenario, llama_3_70b, "llama-3-70b")->Arg(1024)->Unit(benchmark::kMillisecond);

/// A plan from a scenario that is read already; the training says the engine.
void make_plan(benchmark::State& state, const char* model, const char* training) {
    const zeroplan::Scenario scenario = zeroplan::benchmarks::scenario_of(model, state.range(0), training);
    for (auto _ : state) benchmark::DoNotOptimize(zeroplan::make_plan(scenario));
}
BENCHMARK_CAPTURE(make_plan, llama_3_8b, "llama-3-8b", zero_3)->Arg(16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make_plan, llama_3_70b, "llama-3-70b", zero_3)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make_plan, llama_3_405b, "llama-3-405b", zero_3)->Arg(16384)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make_plan, llama_3_70b_fsdp2, "llama-3-70b",
                  R"("engine": "fsdp2", "zero_stage": 3, "recompute": "full")")
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make_plan, llama_3_70b_deepspeed_2, "llama-3-70b",
                  R"("engine": "deepspeed", "zero_stage": 2, "recompute": "full")")
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make_plan, llama_3_70b_deepspeed_3, "llama-3-70b",
                  R"("engine": "deepspeed", "zero_stage": 3, "recompute": "full")")
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make_plan, llama_3_70b_megatron, "llama-3-70b",
                  R"("engine": "megatron", "zero_stage": 1, "recompute": "full",
                     "tensor_parallel": 8, "pipeline_parallel": 4, "gradient_accumulation_steps": 8)")
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);

/// Peaks alone, from a scenario that is read already.
void estimate_memory(benchmark::State& state, const char* model, const char* training) {
    const zeroplan::Scenario scenario = zeroplan::benchmarks::scenario_of(model, state.range(0), training);
    for (auto _ : state) benchmark::DoNotOptimize(zeroplan::estimate_memory(scenario));
}
BENCHMARK_CAPTURE(estimate_memory, llama_3_70b, "llama-3-70b", zero_3)
    ->Arg(1024)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(estimate_memory, llama_3_405b, "llama-3-405b", zero_3)
    ->Arg(16384)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(estimate_memory, llama_3_70b_fsdp2, "llama-3-70b",
                  R"("engine": "fsdp2", "zero_stage": 3, "recompute": "full")")
    ->Arg(1024)
    ->Unit(benchmark::kMicrosecond);

/// What makes a plan fit that doesn't: many plans, without recompute at micro-batch 32.
void find_remedies(benchmark::State& state, const char* model) {
    const zeroplan::Plan plan = plan_of(model, state.range(0), R"("zero_stage": 3, "micro_batch_size": 32)");
    for (auto _ : state) benchmark::DoNotOptimize(zeroplan::find_remedies(plan));
}
BENCHMARK_CAPTURE(find_remedies, llama_3_405b, "llama-3-405b")->Arg(16384)->Unit(benchmark::kMillisecond);

void closed_form(benchmark::State& state, const char* model) {
    const zeroplan::Plan plan = plan_of(model, state.range(0));
    for (auto _ : state) benchmark::DoNotOptimize(zeroplan::closed_form_step(plan));
}
BENCHMARK_CAPTURE(closed_form, gpt2, "gpt2")->Arg(16)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(closed_form, llama_3_8b, "llama-3-8b")->Arg(16)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(closed_form, llama_3_70b, "llama-3-70b")->Arg(1024)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(closed_form, llama_3_405b, "llama-3-405b")->Arg(16384)->Unit(benchmark::kMicrosecond);

}  // namespace
