#include "zeroplan/stated_gpus.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

TEST(StatedGpus, AreTheFilesOrTheSettings) {
    const std::string text =
        R"({"model": {"preset": "gpt2"}, "cluster": {"topology": "host", "gpus_used": 4}})";
    EXPECT_EQ(stated_gpus({.text = text}), 4U);
    EXPECT_EQ(stated_gpus({.text = text, .settings = {text_setting("/cluster/gpus_used", "2", "--gpus")}}),
              2U);
}

TEST(StatedGpus, AreNotTheTopologysOwn) {
    EXPECT_EQ(stated_gpus({.text = R"({"model": {"preset": "gpt2"}, "cluster": {"topology": "dgx-h100"}})"}),
              std::nullopt);
    EXPECT_EQ(stated_gpus({.text = R"({"model": {"preset": "gpt2"}})"}), std::nullopt);
}

}  // namespace
}  // namespace zeroplan
