#include "zeroplan/simulate.hpp"

#include <benchmark/benchmark.h>

#include "scenarios.hpp"

namespace {

/// The whole simulation, the child process and its SimGrid engine included.
void simulate(benchmark::State& state, const char* model) {
    const zeroplan::Plan plan = zeroplan::benchmarks::plan_of(model, state.range(0));
    for (auto _ : state) benchmark::DoNotOptimize(zeroplan::simulate(plan));
}
BENCHMARK_CAPTURE(simulate, llama_3_70b, "llama-3-70b")
    ->Arg(64)
    ->Arg(1024)
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(simulate, llama_3_405b, "llama-3-405b")
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
