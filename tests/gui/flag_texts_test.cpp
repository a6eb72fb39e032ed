#include "zeroplan/gui/flag_texts.hpp"

#include <gtest/gtest.h>

#include "zeroplan/gui/fields.hpp"

namespace zeroplan::gui {
namespace {

// What the flag makes of a text, written as the flag again.
std::string again(const char* pointer, const char* text) {
    const Field& one = field(pointer);
    return one.flag_texts(as_setting(one, text).json_value).join(", ").toStdString();
}

TEST(FlagTexts, AreTheInverseOfTheFlags) {
    EXPECT_EQ(again("/what_if/stragglers", "5=0.8, 1023=0.25"), "5=0.8, 1023=0.25");
    EXPECT_EQ(again("/what_if/slow_links", "nic:9=0.5 node:3=0.125"), "nic:9=0.5, node:3=0.125");
    for (const char* fabric : {"single-switch", "rail-optimised:32:1.5", "fat-tree:4:2", "fat-tree:32:2:8:4",
                               "torus:4x4x2", "torus:16:50000000000"})
        EXPECT_EQ(again("/what_if/fabric", fabric), fabric);
    for (const char* placement : {"packed", "spread", "0-3,8", "7"})
        EXPECT_EQ(again("/what_if/placement", placement), placement);
    EXPECT_EQ(again("/what_if/background", "/tmp/job.json"), "/tmp/job.json");
    EXPECT_EQ(again("/what_if/failures/checkpoint_bytes_per_second", "20e9"), "20e9");
}

TEST(FlagTexts, TimesAreInTheLargestUnitThatGivesAWholeNumber) {
    EXPECT_EQ(duration_texts("180000000"), QStringList{"50000h"});  // 2083.3 days
    EXPECT_EQ(duration_texts("2592000"), QStringList{"30d"});
    EXPECT_EQ(duration_texts("157680000"), QStringList{"5y"});
    EXPECT_EQ(duration_texts("90"), QStringList{"90"});
    EXPECT_EQ(duration_texts("300.0"), QStringList{"5m"});
}

TEST(FlagTexts, WhatCouldNotBeReadStaysAsItWasTyped) {
    for (const Field& one : fields()) {
        // A fabric of an unknown kind has its kind refused.
        if (one.kind != Field::Kind::text || one.takes_file || one.pointer == "/what_if/fabric") continue;
        EXPECT_EQ(again(one.pointer.c_str(), "no=such:thing x"), "no=such:thing x") << one.pointer;
    }
}

TEST(FlagTexts, AJobThatAScenarioBringsHasItsName) {
    EXPECT_EQ(background_texts(R"({"name": "gpt2 on 8 GPUs", "scenario": {}})"),
              QStringList{"gpt2 on 8 GPUs"});
}

}  // namespace
}  // namespace zeroplan::gui
