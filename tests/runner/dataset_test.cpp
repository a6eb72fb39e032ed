#include "dataset.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <set>
#include <vector>

#include "errors.hpp"

namespace zeroplan::runner {
namespace {

TEST(Dataset, MakesUpStandardNormalSamples) {
    const Dataset data("synthetic:1000x100", 42, 100, false);
    double sum = 0, squares = 0;
    std::vector<float> row(100);
    for (std::uint64_t r = 0; r < data.rows(); ++r) {
        data.read_row(r, row.data());
        for (const float x : row) {
            sum += static_cast<double>(x);
            squares += static_cast<double>(x) * static_cast<double>(x);
        }
    }
    EXPECT_NEAR(sum / 1e5, 0, 0.01);  // standard error 0.003
    EXPECT_NEAR(squares / 1e5, 1, 0.015);
}

TEST(Dataset, IsTheSameForTheSameSeed) {
    std::vector<float> a(10), b(10), c(10);
    Dataset("synthetic:5x10", 1, 10, false).read_row(3, a.data());
    Dataset("synthetic:9x10", 1, 10, false).read_row(3, b.data());
    Dataset("synthetic:5x10", 2, 10, false).read_row(3, c.data());
    EXPECT_EQ(a, b);
    EXPECT_NE(a, c);
}

TEST(Dataset, MakesUpLabels) {
    const Dataset data("synthetic:500x3", 42, 3, true);
    std::set<std::int64_t> seen;
    for (std::uint64_t r = 0; r < data.rows(); ++r) seen.insert(data.label(r, 7));
    EXPECT_EQ(seen, (std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Dataset, NamesWhatIsWrong) {
    const auto message = [](const std::string& text, bool labels = false) {
        return std::string(error_of([&] { Dataset(text, 1, 100, labels); }).what());
    };
    EXPECT_NE(message("synthetic:1000").find("synthetic:ROWSxCOLUMNS"), std::string::npos);
    EXPECT_NE(message("synthetic:0x100").find("no samples"), std::string::npos);
    EXPECT_NE(message("synthetic:10x99").find("99 columns, the model takes 100"), std::string::npos);
    EXPECT_NE(message("synthetic:99999999999999999999x100").find("too many"), std::string::npos);
    EXPECT_NE(message("/nowhere/data.npy").find("/nowhere/data.npy"), std::string::npos);
    EXPECT_NE(message("data.npy", true).find("labels"), std::string::npos);
}

/// A file that is removed at the end.
struct TemporaryFile {
    std::string path = testing::TempDir() + "zeroplan-" + std::to_string(getpid()) + ".npy";
    explicit TemporaryFile(const std::string& content) { std::ofstream(path, std::ios::binary) << content; }
    ~TemporaryFile() { unlink(path.c_str()); }
};

/// As numpy.save writes it, version 1.0.
std::string npy(const std::string& header, const std::vector<float>& values) {
    std::string text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
    text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return text;
}

TEST(NpyFile, GivesItsRows) {
    const TemporaryFile file(
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", {1, 2, 3, 4, 5, 6}));
    const Dataset data(file.path, 1, 3, false);
    EXPECT_EQ(data.rows(), 2U);
    std::vector<float> row(3);
    data.read_row(1, row.data());
    EXPECT_EQ(row, (std::vector<float>{4, 5, 6}));
}

TEST(NpyFile, IsAFile) {
    const std::string pipe = testing::TempDir() + "zeroplan-pipe-" + std::to_string(getpid());
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    for (const auto& [path, what] : {std::pair{pipe, "a pipe or a device"},
                                     {std::string("/dev/zero"), "a pipe or a device"},
                                     {std::string("/"), "a folder"}}) {
        const Error error = error_of([&] { NpyFile npy_file(path); });
        EXPECT_EQ(error.exit_status(), 2);
        EXPECT_NE(error.message().find(what), std::string::npos) << error.message();
    }
    unlink(pipe.c_str());
}

TEST(NpyFile, NamesWhatIsWrong) {
    const auto message = [](const std::string& content) {
        const TemporaryFile file(content);
        const Error error = error_of([&] { NpyFile npy_file(file.path); });
        EXPECT_EQ(error.place().file, file.path);
        return std::string(error.what());
    };
    const std::vector<float> six{1, 2, 3, 4, 5, 6};
    EXPECT_NE(message("").find("ends too early"), std::string::npos);
    EXPECT_NE(message("not numpy at all").find("no .npy file"), std::string::npos);
    EXPECT_NE(message(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", six)).find("'<f8'"),
              std::string::npos);
    EXPECT_NE(message(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", six)).find("Fortran"),
              std::string::npos);
    EXPECT_NE(
        message(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", six)).find("two dimensions"),
        std::string::npos);
    EXPECT_NE(message(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }", six)).find("3 × 3"),
              std::string::npos);
    EXPECT_NE(
        message(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3), }", six))
            .find("too large"),
        std::string::npos);
    EXPECT_NE(
        message(
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999, 9999999999999), }", six))
            .find("exceeds 2^64"),
        std::string::npos);
}

TEST(BatchSchedule, GivesEveryRowOnceAnEpoch) {
    for (const std::uint64_t ranks : {1ULL, 2ULL, 3ULL, 4ULL, 8ULL}) {
        const BatchSchedule schedule{1000, ranks, 32, 1};
        std::multiset<std::uint64_t> seen;
        for (std::uint64_t rank = 0; rank < ranks; ++rank)
            for (std::uint64_t step = 0; step < schedule.steps_per_epoch(); ++step) {
                const auto batch = schedule.batch(rank, step, 0);
                for (std::uint64_t i = 0; i < batch.size; ++i) seen.insert(batch.row(i));
            }
        EXPECT_EQ(seen.size(), 1000U);
        EXPECT_EQ(std::set<std::uint64_t>(seen.begin(), seen.end()).size(), 1000U);
        EXPECT_EQ(*seen.rbegin(), 999U);
    }
}

TEST(BatchSchedule, KeepsPartialAndEmptyBatches) {
    const BatchSchedule alone{1000, 1, 32, 1};
    EXPECT_EQ(alone.steps_per_epoch(), 32U);
    EXPECT_EQ(alone.batch(0, 31, 0).size, 8U);
    EXPECT_EQ(alone.batch(0, 32, 0).first, 0U);  // the next epoch

    // 9 rows on 4 ranks: 3, 2, 2, 2; two at a time, so the second step has 1 on rank 0 and none elsewhere.
    const BatchSchedule shared{9, 4, 2, 1};
    EXPECT_EQ(shared.steps_per_epoch(), 2U);
    EXPECT_EQ(shared.batch(0, 1, 0).size, 1U);
    EXPECT_EQ(shared.batch(0, 1, 0).row(0), 8U);
    EXPECT_EQ(shared.batch(3, 1, 0).size, 0U);

    const BatchSchedule accumulated{9, 1, 2, 3};
    EXPECT_EQ(accumulated.steps_per_epoch(), 2U);
    EXPECT_EQ(accumulated.batch(0, 1, 1).size, 1U);
    EXPECT_EQ(accumulated.batch(0, 1, 2).size, 0U);
    EXPECT_EQ((BatchSchedule{1, 4, 2, 1}).batch(2, 0, 0).size, 0U);  // fewer rows than ranks
}

}  // namespace
}  // namespace zeroplan::runner
