#include <benchmark/benchmark.h>

#include "scenarios.hpp"
#include "zeroplan/step_timeline.hpp"

namespace {

using zeroplan::benchmarks::plan_of;

void make_plan(benchmark::State& state, const char* model) {
    for (auto _ : state) benchmark::DoNotOptimize(plan_of(model, state.range(0)));
}
BENCHMARK_CAPTURE(make_plan, llama_3_8b, "llama-3-8b")->Arg(16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(make_plan, llama_3_405b, "llama-3-405b")->Arg(16384)->Unit(benchmark::kMillisecond);

void closed_form(benchmark::State& state, const char* model) {
    const zeroplan::Plan plan = plan_of(model, state.range(0));
    for (auto _ : state) benchmark::DoNotOptimize(zeroplan::closed_form_step(plan));
}
BENCHMARK_CAPTURE(closed_form, gpt2, "gpt2")->Arg(16)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(closed_form, llama_3_8b, "llama-3-8b")->Arg(16)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(closed_form, llama_3_405b, "llama-3-405b")->Arg(16384)->Unit(benchmark::kMicrosecond);

}  // namespace
