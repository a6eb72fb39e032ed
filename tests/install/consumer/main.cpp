#include <iostream>

#include <zeroplan/io.hpp>
#include <zeroplan/plan.hpp>
#include <zeroplan/version.hpp>
#ifdef CONSUMER_USES_SIM
#include <zeroplan/simulate.hpp>
#endif
#ifdef CONSUMER_USES_RUNNER
#include <zeroplan/runner/host_run.hpp>
#endif

namespace {

zeroplan::Plan plan_of(const char* scenario) {
    zeroplan::ScenarioRequest request;
    request.text = scenario;
    return zeroplan::make_plan(zeroplan::resolve_scenario(request));
}

}  // namespace

int main() {
    std::cout << "zeroplan " << zeroplan::version() << '\n';
    // A preset: the installed library carries its models and topologies.
    const zeroplan::Plan plan = plan_of(
        R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 2}, "cluster": {"topology": "dgx-h100"}})");
    std::cout << plan.memory.overall_peak_device.count() << " bytes of device memory\n";
#ifdef CONSUMER_USES_SIM
    std::cout << zeroplan::simulate(plan).throughput.tokens_per_s_per_gpu << " tokens a second and GPU\n";
#endif
#ifdef CONSUMER_USES_RUNNER
    zeroplan::runner::check_host_run(
        plan_of(R"({"model": {"preset": "tutorial-mlp"}, "cluster": {"topology": "host"}})").scenario);
#endif
}
