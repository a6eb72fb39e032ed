#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/import/import_file.hpp"
#include "core/json/error_of.hpp"
#include "import/latency_bandwidth.hpp"
#include "import/text_lines.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(LatencyBandwidth, RecoversALine) {
    std::vector<SizeTime> samples;
    for (const double bytes : {1e3, 1e6, 1e9}) samples.push_back({bytes, 20e-6 + bytes / 100e9});
    const auto fit = fit_latency_bandwidth(samples);
    ASSERT_TRUE(fit);
    EXPECT_NEAR(fit->latency_s, 20e-6, 1e-12);
    EXPECT_NEAR(fit->bytes_per_s, 100e9, 1);
    EXPECT_LT(fit->largest_relative_error, 1e-6);
}

TEST(LatencyBandwidth, FitsNothingWhereTimeDoesNotGrow) {
    const std::vector<SizeTime> flat{{1e3, 1e-5}, {1e6, 1e-5}}, one{{1e3, 1e-5}};
    EXPECT_FALSE(fit_latency_bandwidth(flat));
    EXPECT_FALSE(fit_latency_bandwidth(one));
}

TEST(NcclTestsImport, MakesATableOfPoints) {
    const Import import = import_file("logs/nccl_tests_allgather_synthetic.txt");
    EXPECT_EQ(import.kind, ImportKind::nccl_tests);
    const json points = json::parse(import.calibration_json)["collectives"];
    ASSERT_EQ(points.size(), 4U);
    EXPECT_EQ(points[0]["collective"], "all_gather");
    EXPECT_EQ(points[0]["ranks"], 8);
    EXPECT_EQ(points[0]["bytes"], 1048576);
    EXPECT_DOUBLE_EQ(points[0]["measured"]["time_s"].get<double>(), 35.2e-6);
    EXPECT_DOUBLE_EQ(points[3]["measured"]["busbw_bytes_per_s"].get<double>(), 364.16e9);
    // What the points were made of: about 30 µs and 370 GB/s.
    EXPECT_NEAR(*import.figure("latency_s"), 30e-6, 3e-6);
    EXPECT_NEAR(*import.figure("busbw_bytes_per_s"), 370e9, 6e9);
}

TEST(NcclTestsImport, ReadsATableBehindPrefixes) {
    std::string log;
    for (const TextLine& line :
         text_lines(read_text_file(import_path("logs/nccl_tests_allgather_synthetic.txt"))))
        log += "[1,0]<stdout>:" + line.text + "\r\n";
    const Import import = import_text(log, "log");
    EXPECT_EQ(import.kind, ImportKind::nccl_tests);
    EXPECT_EQ(import.figure("points"), 4);
    EXPECT_EQ(import.figure("ranks"), 8);
}

constexpr const char* header =
    "# nThread 1 nGpus 4 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw #wrong\n";

TEST(NcclTestsImport, TellsCollectivesApart) {
    const auto collective = [](const std::string& rows) {
        return json::parse(import_text(header + rows, "log").calibration_json)["collectives"][0]["collective"]
            .get<std::string>();
    };
    EXPECT_EQ(collective("8 2 float sum -1 10.0 1.00 1.50 0 10.0 1.00 1.50 0\n"), "all_reduce");
    EXPECT_EQ(collective("8 2 float sum -1 10.0 1.00 0.75 0 10.0 1.00 0.75 0\n"), "reduce_scatter");
    EXPECT_EQ(collective("# Collective test starting: alltoall_perf\n8 2 float none -1 10.0 1.00 0.75 0 10.0 "
                         "1.00 0.75 0\n"),
              "all_to_all");
}

TEST(NcclTestsImport, CountsRanksOfAllProcesses) {
    const Import import = import_text(std::string(header) +
                                          "#  Rank  0 Group  0 Pid 1 on  node1 device  0 [0x01] NVIDIA H100\n"
                                          "#  Rank  1 Group  0 Pid 2 on  node2 device  0 [0x01] NVIDIA H100\n"
                                          "8 2 float sum -1 10.0 1.00 1.00 0 10.0 1.00 1.00 0\n",
                                      "log");
    EXPECT_EQ(import.figure("ranks"), 2);
    EXPECT_EQ(json::parse(import.calibration_json)["collectives"][0]["nodes"], 2);
}

TEST(NcclTestsImport, WarnsOfWhatDoesNotFit) {
    // 1.9 is the factor of 20 ranks, the header says 4; and results were wrong.
    const Import import =
        import_text(header + std::string("8 2 float sum -1 10.0 1.00 1.90 3 10.0 1.00 1.90 3\n"), "log");
    EXPECT_THAT(import.findings[1].message, HasSubstr("all_reduce over 4 ranks has 1.500"));
    EXPECT_THAT(import.findings[2].message, HasSubstr("#wrong"));
}

TEST(NcclTestsImport, RefusesACutRow) {
    const Error error = error_of([] { (void)import_text(header + std::string("8 2 float sum\n"), "log"); });
    EXPECT_EQ(error.place().pointer, "line 3");
    EXPECT_THAT(error_of([] { (void)import_text(header, "log"); }).message(), HasSubstr("no row"));
    EXPECT_THAT(error_of([] {
                    (void)import_text(header + std::string("8 2 float sum -1 fast 1 1 0\n"), "log");
                }).message(),
                HasSubstr("\"fast\" is no number"));
}

}  // namespace
}  // namespace zeroplan
