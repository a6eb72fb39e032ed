#include "zeroplan/runner/rank_environment.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "errors.hpp"

namespace zeroplan::runner {
namespace {

Lookup environment(std::map<std::string, std::string> variables) {
    return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
}

std::string local_name(const std::string& job) {
    return "zeroplan-" + std::to_string(getuid()) + job;
}

TEST(RankEnvironment, IsNothingWithoutALauncher) {
    EXPECT_FALSE(rank_environment(environment({})));
    // A batch script of SLURM has these too, and is no rank.
    EXPECT_FALSE(rank_environment(environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}})));
}

TEST(RankEnvironment, ReadsTorchruns) {
    const auto found = rank_environment(
        environment({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "29501"}}));
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, (RankEnvironment{2, 4, {"::1", 29501, ""}, false, "torchrun"}));
    const auto defaults = rank_environment(environment({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
    EXPECT_EQ(*defaults, (RankEnvironment{0, 1, {"127.0.0.1", 29500, ""}, true, "torchrun"}));
}

TEST(RankEnvironment, LeavesThePortToTorchrunsAgent) {
    const auto found = rank_environment(environment({{"RANK", "0"},
                                                     {"WORLD_SIZE", "4"},
                                                     {"MASTER_ADDR", "127.0.0.1"},
                                                     {"MASTER_PORT", "29500"},
                                                     {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                     {"TORCHELASTIC_RUN_ID", "none"},
                                                     {"TORCHELASTIC_RESTART_COUNT", "1"}}));
    EXPECT_EQ(found->store.local_name, local_name("-none-1-29500"));
    EXPECT_TRUE(found->hosts_store);
}

TEST(RankEnvironment, ReadsMpirunsAndSruns) {
    const auto mpi = rank_environment(environment(
        {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "1234@1"}}));
    EXPECT_EQ(*mpi, (RankEnvironment{1, 2, {"127.0.0.1", 0, local_name("-1234@1")}, false, "mpirun"}));
    const auto slurm = rank_environment(environment({{"SLURM_PROCID", "0"},
                                                     {"SLURM_STEP_NUM_TASKS", "8"},
                                                     {"SLURM_JOB_ID", "77"},
                                                     {"SLURM_STEP_ID", "3"}}));
    EXPECT_EQ(*slurm, (RankEnvironment{0, 8, {"127.0.0.1", 0, local_name("-77-3")}, true, "srun"}));
}

TEST(RankEnvironment, RefusesLaunchersThatContradictEachOther) {
    using Variables = std::map<std::string, std::string>;
    const auto joined = [](Variables variables) { return rank_environment(environment(variables)); };
    Variables both{{"RANK", "1"}, {"WORLD_SIZE", "2"}};
    for (const auto& [rank, size] : {std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                     {"PMI_RANK", "PMI_SIZE"},
                                     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}) {
        Variables with = both;
        with.insert({{rank, "0"}, {size, "2"}});
        const Error error = error_of([&] { joined(with); });
        EXPECT_EQ(error.message(),
                  "RANK=1 of WORLD_SIZE=2, but " + std::string(rank) + "=0 of " + size + "=2");
        EXPECT_NE(error.hint().find("torchrun"), std::string::npos);
        with[rank] = "1";  // says the same
        EXPECT_EQ(joined(with)->rank, 1);
        with[size] = "4";
        EXPECT_THROW(joined(with), Error);
        with[rank] = "0";  // one process, in which torchrun's variables were set
        with[size] = "1";
        EXPECT_EQ(joined(with)->world_size, 2);
    }
    // srun starts a torchrun on every node, which starts this.
    both.insert({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"TORCHELASTIC_RUN_ID", "none"}});
    EXPECT_EQ(joined(both)->rank, 1);
}

TEST(RankEnvironment, RefusesALocalRankAboveTheRank) {
    const auto with = [](const char* local) {
        return environment({{"RANK", "1"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", local}});
    };
    EXPECT_EQ(rank_environment(with("0"))->rank, 1);  // the first of its machine, not of all
    EXPECT_EQ(rank_environment(with("1"))->rank, 1);
    const Error error = error_of([&] { rank_environment(with("5")); });
    EXPECT_NE(error.message().find("LOCAL_RANK=5 is above RANK=1"), std::string::npos);
}

TEST(RankEnvironment, NamesWhatIsWrong) {
    const auto message = [](std::map<std::string, std::string> variables) {
        return std::string(error_of([&] { rank_environment(environment(variables)); }).what());
    };
    EXPECT_NE(message({{"RANK", "1"}}).find("WORLD_SIZE is not set"), std::string::npos);
    EXPECT_NE(message({{"RANK", "4"}, {"WORLD_SIZE", "4"}}).find("RANK=4 is not below WORLD_SIZE=4"),
              std::string::npos);
    EXPECT_NE(message({{"RANK", "x"}, {"WORLD_SIZE", "4"}}).find("RANK=x is not a number"),
              std::string::npos);
    EXPECT_NE(message({{"RANK", "0"}, {"WORLD_SIZE", "65"}}).find("from 1 to 64"), std::string::npos);
    EXPECT_NE(
        message({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}).find("MASTER_PORT=70000"),
        std::string::npos);
}

}  // namespace
}  // namespace zeroplan::runner
