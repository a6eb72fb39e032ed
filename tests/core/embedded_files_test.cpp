#include "embedded_files.hpp"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace {

void expect_same_as_folder(std::span<const zeroplan::embedded::File> files, const std::string& folder) {
    for (const auto& file : files) {
        const std::string path =
            std::string(ZEROPLAN_SOURCE_DIR) + "/" + folder + "/" + std::string(file.name) + ".json";
        std::ifstream stream(path, std::ios::binary);
        ASSERT_TRUE(stream) << path;
        const std::string text{std::istreambuf_iterator<char>(stream), {}};
        EXPECT_EQ(file.text, text) << path;
    }
}

TEST(EmbeddedFiles, AreTheFilesOfTheSourceTree) {
    expect_same_as_folder(zeroplan::embedded::models(), "models");
    expect_same_as_folder(zeroplan::embedded::topologies(), "topologies");
    expect_same_as_folder(zeroplan::embedded::gpus(), "topologies/gpus");
}

}  // namespace
