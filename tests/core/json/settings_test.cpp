#include "json/settings.hpp"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/json/error_of.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json applied(const char* document, std::string pointer, const char* value) {
    json result = json::parse(document);
    apply_setting(result, {std::move(pointer), value, "--set"});
    return result;
}

TEST(ApplySetting, ReplacesAndMakesObjectsOnTheWay) {
    EXPECT_EQ(applied(R"({"a": {"b": 1}})", "/a/b", "2"), json::parse(R"({"a": {"b": 2}})"));
    EXPECT_EQ(applied("{}", "/a/b/c", R"("x")"), json::parse(R"({"a": {"b": {"c": "x"}}})"));
    EXPECT_EQ(applied(R"({"a": null})", "/a/b", "[]"), json::parse(R"({"a": {"b": []}})"));
}

TEST(ApplySetting, UnescapesKeys) {
    EXPECT_EQ(applied("{}", "/a~1b/~0~01", "1"), json::parse(R"({"a/b": {"~~1": 1}})"));
}

TEST(ApplySetting, TakesIndicesAndAppends) {
    EXPECT_EQ(applied(R"({"l": [1, 2]})", "/l/0", "9"), json::parse(R"({"l": [9, 2]})"));
    EXPECT_EQ(applied(R"({"l": [1]})", "/l/-", "2"), json::parse(R"({"l": [1, 2]})"));
    EXPECT_EQ(applied(R"({"l": [1]})", "/l/1", "2"), json::parse(R"({"l": [1, 2]})"));
    EXPECT_EQ(applied(R"({"l": [{"linear": [1, 2]}]})", "/l/0/bias", "false"),
              json::parse(R"({"l": [{"linear": [1, 2], "bias": false}]})"));
}

TEST(ApplySetting, RefusesWrongPointers) {
    const auto message = [](const char* document, const char* pointer) {
        return error_of([&] { applied(document, pointer, "1"); }).message();
    };
    EXPECT_THAT(message("{}", "a/b"), HasSubstr("must start with /"));
    EXPECT_THAT(message("{}", ""), HasSubstr("must start with /"));
    EXPECT_THAT(message("{}", "/a~2"), HasSubstr("~0 (for ~) and ~1 (for /)"));
    EXPECT_THAT(message("{}", "/a~"), HasSubstr("~0 (for ~) and ~1 (for /)"));
    EXPECT_THAT(message(R"({"a": 5})", "/a/b"), HasSubstr("leads into /a, which is 5"));
    for (const char* index : {"/l/2", "/l/01", "/l/x", "/l/-1", "/l/"})
        EXPECT_THAT(message(R"({"l": [1]})", index), HasSubstr("is no index into a list of 1")) << index;
}

TEST(TextSetting, IsJsonWhereItReadsAsJson) {
    EXPECT_EQ(text_setting("/a", "3", "--x").json_value, "3");
    EXPECT_EQ(text_setting("/a", "[1, 2]", "--x").json_value, "[1, 2]");
    EXPECT_EQ(text_setting("/a", "bf16", "--x").json_value, "\"bf16\"");
    EXPECT_EQ(text_setting("/a", "007", "--x").json_value, "\"007\"");
    EXPECT_EQ(text_setting("/a", "NaN", "--x").json_value, "\"NaN\"");
    EXPECT_EQ(text_setting("/a", "1e999", "--x").json_value, "\"1e999\"");
    EXPECT_EQ(text_setting("/a", "", "--x").json_value, "\"\"");
    EXPECT_EQ(word_setting("/a", "3", "--x").json_value, "\"3\"");
    EXPECT_EQ(word_setting("/a", "a \"b\"\n", "--x").json_value, R"("a \"b\"\n")");
}

TEST(ParseSetting, SplitsAtTheFirstEqualsSign) {
    const Setting setting = parse_setting("/run/data=a=b", "--set");
    EXPECT_EQ(setting.pointer, "/run/data");
    EXPECT_EQ(setting.json_value, "\"a=b\"");
    EXPECT_EQ(setting.origin, "--set /run/data");
    for (const char* wrong : {"", "=", "/run/data", "run/data=3", "zero=3"}) {
        const Error error = error_of([&] { parse_setting(wrong, "--set"); });
        EXPECT_THAT(error.message(), HasSubstr("is not /pointer=value")) << wrong;
        EXPECT_EQ(error.place(), (ErrorPlace{"command line", "--set"}));
    }
}

TEST(BlameSetting, NamesTheFlagThatPutTheValueThere) {
    const std::array settings{Setting{"/training/moe", "{}", "--set /training/moe"},
                              Setting{"/training/zero_stage", "7", "--zero"}};
    const auto blamed = [&](const char* file, const char* pointer) {
        return blame_setting({ErrorCode::invalid_input, "m", "h", {file, pointer}}, "s.json", settings)
            .place();
    };
    EXPECT_EQ(blamed("s.json", "/training/zero_stage"), (ErrorPlace{"command line", "--zero"}));
    EXPECT_EQ(blamed("s.json", "/training/moe/x"), (ErrorPlace{"command line", "--set /training/moe/x"}));
    EXPECT_EQ(blamed("s.json", "/training/zero_stages"), (ErrorPlace{"s.json", "/training/zero_stages"}));
    EXPECT_EQ(blamed("config.json", "/training/zero_stage"),
              (ErrorPlace{"config.json", "/training/zero_stage"}));
}

}  // namespace
}  // namespace zeroplan
