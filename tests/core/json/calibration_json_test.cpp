#include "json/calibration_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "zeroplan/cost_model.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Calibration read(const char* text) {
    return read_calibration(json::parse(text), {"cal.json", ""});
}

std::string error_of(const char* text) {
    try {
        read(text);
    } catch (const Error& error) {
        return std::string(error.what()) + " | " + error.hint();
    }
    return "none";
}

const char* two_points = R"({"kind": "calibration", "source": "log", "collectives": [
    {"collective": "all_gather", "ranks": 8, "nodes": 1, "bytes": 4096, "measured": {"time_s": 2e-5}},
    {"collective": "all_gather", "ranks": 8, "nodes": 1, "bytes": 1024, "measured": {"time_s": 1e-5}}]})";

TEST(CalibrationJson, SortsPointsBySizeAndWritesWhatItReads) {
    const Calibration calibration = read(two_points);
    ASSERT_EQ(calibration.collectives.size(), 2U);
    EXPECT_EQ(calibration.collectives[0].bytes, 1024);
    EXPECT_EQ(read_calibration(calibration_json(calibration), {}), calibration);
}

TEST(CalibrationJson, AddsUpSeveral) {
    const Calibration both = read(R"([{"source": "a", "constants": {"kernel_start_s": 4e-6}},
        {"source": "b", "graphs": [{"pattern": "ring", "channels": 24, "channel_intra_bytes_per_s": 20e9,
                                    "channel_inter_bytes_per_s": 12e9, "order": []}]}])");
    EXPECT_EQ(both.source, "a, b");
    EXPECT_EQ(both.constants.at("kernel_start_s"), 4e-6);
    ASSERT_TRUE(both.ring);
    EXPECT_EQ(both.ring->count, 24);
    EXPECT_EQ(both.ring->inter_bytes_per_s, 12e9);
}

TEST(CalibrationJson, RefusesFiguresThatNoMachineHas) {
    EXPECT_THAT(error_of(R"({"constants": {"gemm_efficiency_hopper": 53}})"),
                HasSubstr("gemm_efficiency_hopper"));
    EXPECT_THAT(error_of(R"({"constants": {"nccl_channels": 0.2}})"), HasSubstr("nccl_channels"));
    EXPECT_THAT(error_of(R"({"constants": {"host_core_bytes_per_s": 0}})"), HasSubstr("cannot be 0"));
    EXPECT_THAT(error_of(R"({"graphs": [{"pattern": "ring", "channels": 4}]})"),
                HasSubstr("channel_intra_bytes_per_s"));
    EXPECT_THAT(error_of(R"({"graphs": [{"pattern": "ring", "channels": 4, "channel_intra_bytes_per_s": 2e10,
                                         "channel_inter_bytes_per_s": 0}]})"),
                HasSubstr("channel_inter_bytes_per_s"));
    EXPECT_THAT(error_of(R"({"graphs": [{"pattern": "tree", "channels": 4}]})"), HasSubstr("no ring"));
    EXPECT_THAT(error_of(R"({"graphs": [{"pattern": "ring", "chanels": 4}]})"), HasSubstr("channels"));
}

TEST(CalibrationJson, RefusesSharesAndRatesOfNearlyNothing) {
    for (const char* text : {R"({"constants": {"gemm_efficiency_hopper": 1e-300}})",
                             R"({"constants": {"memory_efficiency": 1e-320}})"})
        EXPECT_THAT(error_of(text), HasSubstr("at least 0.0001 is expected\n  give the share of the rate"));
    EXPECT_THAT(error_of(R"({"constants": {"gemm_efficiency_hopper": 1e-300}})"),
                HasSubstr("cal.json: /constants/gemm_efficiency_hopper: gemm_efficiency_hopper is 1e-300"));
    EXPECT_THAT(error_of(R"({"constants": {"host_core_bytes_per_s": 0.5}})"),
                HasSubstr("at least 1 is expected"));
    EXPECT_EQ(error_of(R"({"constants": {"memory_efficiency": 0.0001, "kernel_start_s": 1e-9}})"), "none");
}

TEST(CalibrationJson, RefusesTwoTimesOfOneSize) {
    const auto points = [](const char* second) {
        const std::string point =
            R"({"collective": "all_gather", "ranks": 8, "bytes": 4096, "measured": {"time_s": )";
        return R"({"collectives": [)" + point + "0.1}}, " + point + second + "}}]}";
    };
    EXPECT_THAT(error_of(points("0.2").c_str()),
                HasSubstr("cal.json: /collectives/1/measured: all_gather of 4096 bytes on 8 ranks takes "
                          "0.2 s here, but 0.1 s in another point\n  keep one of the two"));
    EXPECT_EQ(read(points("0.1").c_str()).collectives.size(), 2U);
}

TEST(CalibrationJson, RefusesWhatNothingUsesAndContradictions) {
    EXPECT_THAT(error_of(R"({"constants": {"gemm_efficiency_hoper": 0.5}})"),
                HasSubstr("gemm_efficiency_hopper"));
    EXPECT_THAT(error_of(R"({"constants": {"memory_efficiency": 0}})"), HasSubstr("cannot be 0"));
    EXPECT_THAT(
        error_of(R"([{"constants": {"kernel_start_s": 1e-6}}, {"constants": {"kernel_start_s": 2e-6}}])"),
        HasSubstr("keep one"));
    EXPECT_THAT(error_of(R"({"kind": "plan"})"), HasSubstr("not a calibration"));
    EXPECT_THAT(
        error_of(R"({"collectives": [{"collective": "all_gather", "bytes": 1, "measured": {"time_s": 1}}]})"),
        HasSubstr("\"ranks\" is missing"));
    EXPECT_THAT(error_of(R"({"collectives": [{"collective": "gather", "ranks": 2, "bytes": 1}]})"),
                HasSubstr("one of: all_gather"));
}

Scenario scenario(const std::string& calibration) {
    ScenarioRequest request;
    request.text = R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 3},
                       "cluster": {"topology": "dgx-h100")" +
                   (calibration.empty() ? "" : ", \"calibration\": " + calibration) + "}}";
    return resolve_scenario(request);
}

TEST(CalibrationJson, ReplacesConstantsOfMemoryAndTime) {
    const Plan plan = make_plan(scenario(
        R"({"source": "mine", "constants": {"device_context_bytes": 700000000, "memory_efficiency": 0.5}})"));
    const Plan before = make_plan(scenario(""));
    EXPECT_EQ(plan.memory.overall_peak_device - Bytes{700'000'000},
              before.memory.overall_peak_device - Bytes{450ULL << 20});
    bool found = false;
    for (const Constant& constant : plan.constants)
        if (constant.name == "device_context_bytes") {
            found = true;
            EXPECT_EQ(constant.source, "calibration mine");
        }
    EXPECT_TRUE(found);
    EXPECT_GT(closed_form_step(plan).compute_s, 1.1 * closed_form_step(before).compute_s);
    for (const Constant& constant : cost_constants(plan.scenario.cluster.calibration))
        if (constant.name == "memory_efficiency") {
            EXPECT_EQ(constant.value, 0.5);
        }
}

TEST(CalibrationJson, SurvivesInASavedScenario) {
    const Scenario once = scenario(two_points);
    ScenarioRequest again;
    again.text = scenario_json(once);
    EXPECT_EQ(resolve_scenario(again).cluster, once.cluster);
}

}  // namespace
}  // namespace zeroplan
