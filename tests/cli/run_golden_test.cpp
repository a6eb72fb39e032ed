#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/run_program.hpp"

namespace zeroplan::test {
namespace {

using nlohmann::json;

json golden_jobs() {
    return json::parse(std::ifstream(std::string(ZEROPLAN_SOURCE_DIR) + "/tests/golden/plain_stacks.json"))
        .at("jobs");
}

json scenario_of(const json& job) {
    const auto width = job.at("layers").at(0).at("linear").at(0).get<int>();
    return {
        {"model", {{"layers", job.at("layers")}, {"loss", job.at("loss")}}},
        {"training",
         {{"compute_dtype", "fp32"},
          {"optimizer", job.at("optimizer")},
          {"micro_batch_size", job.at("micro_batch_size")}}},
        {"run",
         {{"learning_rate", job.at("learning_rate")},
          {"epochs", job.at("epochs")},
          {"data", "synthetic:" + std::to_string(job.at("rows").get<int>()) + "x" + std::to_string(width)}}}};
}

class RunGolden : public testing::TestWithParam<std::size_t> {};

// Both compute in fp32, each in its own order of summation.
TEST_P(RunGolden, HasPyTorchsLosses) {
    if (!std::filesystem::exists(std::string(ZEROPLAN_BIN_DIR) + "/zeroplan-run"))
        GTEST_SKIP() << "zeroplan-run is not built";
    const json job = golden_jobs().at(GetParam());
    SCOPED_TRACE(job.at("name").get<std::string>());
    const TemporaryFolder folder;
    const std::string scenario = folder.file("scenario.json", scenario_of(job).dump());
    for (const char* stage : {"0", "3"}) {
        const Outcome result =
            run_program("zeroplan-run", {"--scenario", scenario, "--zero", stage, "--ranks",
                                         std::to_string(job.at("ranks").get<int>()), "--json"});
        ASSERT_EQ(result.status, 0) << result.err;
        const auto losses = json::parse(result.out).at("losses").get<std::vector<double>>();
        const auto expected = job.at("losses").get<std::vector<double>>();
        ASSERT_EQ(losses.size(), expected.size());
        for (std::size_t step = 0; step < losses.size(); ++step)
            EXPECT_NEAR(losses[step], expected[step], 1e-5 * expected[step]) << "step " << step;
    }
}

INSTANTIATE_TEST_SUITE_P(Jobs, RunGolden, testing::Range<std::size_t>(0, 5));

}  // namespace
}  // namespace zeroplan::test
