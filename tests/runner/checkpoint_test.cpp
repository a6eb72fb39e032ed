#include "checkpoint.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "errors.hpp"
#include "ranks.hpp"
#include "sha256.hpp"
#include "stack_scenario.hpp"
#include "zeroplan/runner/host_run.hpp"

namespace zeroplan::runner {
namespace {

namespace fs = std::filesystem;

struct TemporaryFolder {
    std::string path = (fs::temp_directory_path() / "zeroplan-checkpoint-XXXXXX").string();
    TemporaryFolder() {
        if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("no temporary folder");
    }
    ~TemporaryFolder() { fs::remove_all(path); }
};

std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

ModelSpec small_stack() {
    return build_plain_stack(
        "stack", {{2, 3, true, ActivationFunction::none}, {3, 2, false, ActivationFunction::none}}, "mse");
}

TEST(SafetensorsHeader, NamesTensorsShapesAndPlaces) {
    const std::string text = safetensors_header(small_stack());
    std::uint64_t length = 0;
    std::memcpy(&length, text.data(), sizeof(length));
    EXPECT_EQ(text.size(), 8 + length);
    EXPECT_EQ(length % 8, 0U);
    const auto header = nlohmann::json::parse(text.substr(8));
    EXPECT_EQ(header.at("__metadata__").at("format"), "pt");
    EXPECT_EQ(header.size(), 4U);
    const auto& weight = header.at("layers.0.linear.weight");
    EXPECT_EQ(weight.at("dtype"), "F32");
    EXPECT_EQ(weight.at("shape"), (std::vector<int>{3, 2}));
    EXPECT_EQ(weight.at("data_offsets"), (std::vector<int>{0, 24}));
    EXPECT_EQ(header.at("layers.0.linear.bias").at("data_offsets"), (std::vector<int>{24, 36}));
    EXPECT_EQ(header.at("layers.1.linear.weight").at("data_offsets"), (std::vector<int>{36, 60}));
}

TEST(SafetensorsHeader, SaysWhatStandsBetweenTheLinears) {
    const std::string text = safetensors_header(build_plain_stack(
        "stack", {{2, 3, true, ActivationFunction::tanh}, {3, 4, false, ActivationFunction::none}},
        "cross_entropy"));
    const auto header = nlohmann::json::parse(text.substr(8));
    EXPECT_EQ(nlohmann::json::parse(header.at("__metadata__").at("zeroplan_stack").get<std::string>()),
              nlohmann::json::parse(R"({"layers": [{"linear": [2, 3], "bias": true, "activation": "tanh"},
                                                   {"linear": [3, 4], "bias": false}],
                                        "loss": "cross_entropy"})"));
}

TEST(CheckpointWriter, ShowsAWholeFileOrNone) {
    const TemporaryFolder folder;
    const std::string directory = folder.path + "/a/b";
    const std::vector<float> values(15, 1.5F);
    {
        CheckpointWriter writer(directory, small_stack());
        writer.write(values.data(), 15);
        EXPECT_FALSE(fs::exists(directory + "/model.safetensors"));
    }
    EXPECT_TRUE(fs::is_empty(directory));
    CheckpointWriter writer(directory, small_stack());
    writer.write(values.data(), 15);
    writer.commit();
    EXPECT_EQ(fs::file_size(directory + "/model.safetensors"), safetensors_header(small_stack()).size() + 60);
    EXPECT_FALSE(fs::exists(directory + "/model.safetensors.partial"));
}

TEST(CheckpointWriter, NamesADirectoryThatCanNotBe) {
    const Error error = error_of([] { CheckpointWriter writer("/proc/nowhere", small_stack()); });
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_NE(std::string(error.what()).find("/proc/nowhere"), std::string::npos) << error.what();
}

TEST(CheckpointWriter, FailsTheRunWhenTheFileCanNotBeKept) {
    const TemporaryFolder folder;
    const std::string directory = folder.path + "/gone";
    const std::vector<float> values(15, 1.5F);
    CheckpointWriter writer(directory, small_stack());
    writer.write(values.data(), 15);
    fs::remove_all(directory);
    const Error error = error_of([&] { writer.commit(); });
    EXPECT_EQ(error.code(), ErrorCode::run_failed);
    EXPECT_NE(std::string(error.what()).find(directory), std::string::npos) << error.what();
}

TEST(CheckpointWriter, TakesItsSpaceBeforehand) {
    const TemporaryFolder folder;
    const auto before = signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlimit small{16, limit.rlim_max};  // of bytes in a file: as good as a full disk
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const Error error = error_of([&] { CheckpointWriter writer(folder.path, small_stack()); });
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, before);
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_NE(error.message().find("can't reserve"), std::string::npos) << error.message();
    EXPECT_TRUE(fs::is_empty(folder.path));
}

TEST(HostRun, IsWholeThoughItsCheckpointIsNot) {
    const TemporaryFolder folder;
    StackJob job;
    job.ranks = 2;
    Scenario scenario = scenario_of(job);
    scenario.run.checkpoint = folder.path + "/gone";
    const Plan plan = make_plan(scenario);
    std::vector<HostRun> runs(2);
    run_ranks(2, [&](HostWorld& world) {
        HostRunOptions options;
        options.on_step = [&](const StepProgress&) {
            if (world.rank() == 0) fs::remove_all(scenario.run.checkpoint);
        };
        runs[static_cast<std::size_t>(world.rank())] = run_on_host(plan, world, options);
    });
    ASSERT_TRUE(runs[0].checkpoint_failure);
    EXPECT_EQ(runs[0].checkpoint_failure->exit_status(), 3);
    EXPECT_NE(runs[0].checkpoint_failure->place().file.find("/gone/"), std::string::npos);
    EXPECT_FALSE(runs[1].checkpoint_failure);
    EXPECT_EQ(runs[0].report.losses.size(), 8U);  // 2 epochs of 4 steps
    EXPECT_EQ(runs[0].report.final_parameters_sha256.size(), 64U);
}

TEST(HostRun, SavesTheParametersThatItHashes) {
    for (const std::uint32_t stage : {0U, 1U, 3U}) {
        const TemporaryFolder folder;
        StackJob job;
        job.ranks = 2;
        job.zero_stage = stage;
        job.dtype = DType::bf16;
        Scenario scenario = scenario_of(job);
        scenario.run.checkpoint = folder.path;
        const Plan plan = make_plan(scenario);
        std::string hash;
        run_ranks(2, [&](HostWorld& world) {
            const HostRun run = run_on_host(plan, world, {});
            if (world.rank() == 0) hash = run.report.final_parameters_sha256;
        });
        const std::string file = content_of(folder.path + "/model.safetensors");
        const std::size_t header = safetensors_header(scenario.model).size();
        EXPECT_EQ(file.size() - header, 20200 * sizeof(float));
        Sha256 data;
        data.add(file.data() + header, file.size() - header);
        EXPECT_EQ(data.finish(), hash);
    }
}

}  // namespace
}  // namespace zeroplan::runner
