#include "zeroplan/nccl_tuner.hpp"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/cost/tiny_plan.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan {
namespace {

using test::all_gather;
using test::on;

std::vector<std::vector<std::string>> rows(const std::string& csv) {
    std::vector<std::vector<std::string>> result;
    std::istringstream lines(csv);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#')) continue;
        std::istringstream fields(line);
        auto& row = result.emplace_back();
        for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    }
    return result;
}

TEST(NcclTuner, CoversEverySizeOfEachCommunicatorOnce) {
    Collective sum = all_gather(1'000'000);
    sum.kind = CollectiveKind::all_reduce;
    const Plan plan = test::test_plan(
        test::test_cluster(2),
        {{"step", 1, {on(Stream::gather, all_gather(1'000'000)), on(Stream::reduce, sum)}}}, {});
    std::map<std::string, unsigned long long> next;
    for (const auto& row : rows(nccl_tuner_csv(plan))) {
        ASSERT_EQ(row.size(), 8U);
        EXPECT_EQ(std::stoull(row[1]), next[row[0]]) << row[0];
        next[row[0]] = std::stoull(row[2]) + 1;  // 0 behind the last: all 64 bits are covered
        EXPECT_EQ(row[5], "-1");
        EXPECT_EQ(row[6], "2");
        EXPECT_EQ(row[7], "16");
        if (row[0] == "allgather") {
            EXPECT_EQ(row[3], "ring");
        }
    }
    EXPECT_EQ(next, (std::map<std::string, unsigned long long>{{"allgather", 0}, {"allreduce", 0}}));
}

TEST(NcclTuner, NamesTheFastestOfTheModel) {
    Collective sum = all_gather(500'000'000);
    sum.kind = CollectiveKind::all_reduce;
    const Plan plan = test::test_plan(test::test_cluster(4), {{"step", 1, {on(Stream::reduce, sum)}}}, {});
    const auto all = rows(nccl_tuner_csv(plan));
    const ClusterSpec& cluster = plan.scenario.cluster;
    const GroupPlacement everybody = group_placement(GroupKind::shard_group, 32, cluster);
    const auto seconds = [&](const CollectiveChoice& choice) {
        return collective_cost(CollectiveKind::all_reduce, Bytes{1ULL << 30}, everybody, cluster, choice)
            .seconds();
    };
    const std::string& named = all.back()[3];
    for (const CollectiveAlgorithm other :
         {CollectiveAlgorithm::ring, CollectiveAlgorithm::tree, CollectiveAlgorithm::nvls_tree})
        if (named == to_string(other)) {
            EXPECT_LE(seconds({other, CollectiveProtocol::simple}),
                      seconds({CollectiveAlgorithm::ring, CollectiveProtocol::simple}));
        }
}

TEST(NcclTuner, SaysThatMeasuredPointsOfItsCollectivesAreNotInIt) {
    ClusterSpec cluster = test::test_cluster(2);
    const auto warnings_with = [&](std::vector<MeasuredPoint> points) {
        cluster.calibration.collectives = std::move(points);
        return nccl_tuner_warnings(
            test::test_plan(cluster, {{"step", 1, {on(Stream::gather, all_gather(1'000'000))}}}, {}));
    };
    EXPECT_TRUE(warnings_with({}).empty());
    // Other kinds and communicators say nothing of this step's.
    EXPECT_TRUE(warnings_with({{CollectiveKind::all_gather, 8, 1, 1e6, 1e-4},
                               {CollectiveKind::all_reduce, 16, 2, 1e6, 1e-4}})
                    .empty());
    const auto warnings = warnings_with(
        {{CollectiveKind::all_gather, 16, 2, 1e6, 1e-4}, {CollectiveKind::all_gather, 16, 2, 1e7, 1e-3}});
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0].code, "nccl_tuner_without_measured");
    EXPECT_NE(warnings[0].message.find("the 2 points measured"), std::string::npos);
}

}  // namespace
}  // namespace zeroplan
