#include "import/relaxed_json.hpp"

#include <gmock/gmock.h>

#include "core/json/error_of.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

TEST(RelaxedJson, TakesCommentsAndTrailingCommas) {
    const RelaxedJson read = parse_relaxed_json(
        "{ // one\n \"a\": [1, 2,], # two\n /* three\n */ \"b\": {\"c\": true,},\n}\n", "f");
    EXPECT_EQ(read.value, json::parse(R"({"a": [1, 2], "b": {"c": true}})"));
    EXPECT_EQ(read.first_comment, 1U);
    EXPECT_EQ(read.first_trailing_comma, 2U);
}

TEST(RelaxedJson, KnowsTheLineOfEveryKey) {
    const RelaxedJson read = parse_relaxed_json("{\n \"a\": 1,\n \"b\": {\n  \"c/d\": [\n 7]}}", "f");
    EXPECT_EQ(read.line_of("/a"), 2U);
    EXPECT_EQ(read.line_of("/b"), 3U);
    EXPECT_EQ(read.line_of("/b/c~1d"), 4U);
    EXPECT_EQ(read.line_of("/b/c~1d/0"), 5U);
    EXPECT_EQ(read.line_of("/b/absent"), 3U);  // the object it would stand in
}

TEST(RelaxedJson, LeavesStringsAlone) {
    const RelaxedJson read = parse_relaxed_json(R"({"path": "a // b # c, }", "quote": "\"//"})", "f");
    EXPECT_EQ(read.value["path"], "a // b # c, }");
    EXPECT_EQ(read.value["quote"], "\"//");
    EXPECT_FALSE(read.first_comment);
    EXPECT_FALSE(read.first_trailing_comma);
}

TEST(RelaxedJson, ReportsErrorsWhereTheyStandInTheOriginal) {
    const Error error = error_of([] { (void)parse_relaxed_json("{ // comment\n \"a\": nope}", "ds.json"); });
    EXPECT_EQ(error.place().file, "ds.json");
    EXPECT_THAT(error.place().pointer, testing::StartsWith("line 2, column "));
    EXPECT_THAT(error.message(), testing::HasSubstr("nope"));
}

TEST(RelaxedJson, EndsWithAnErrorWhereACommentDoesNotEnd) {
    EXPECT_EQ(error_of([] { (void)parse_relaxed_json("{\"a\": 1 /* no end", "f"); }).code(),
              ErrorCode::invalid_input);
}

TEST(RelaxedJson, SkipsAByteOrderMark) {
    EXPECT_EQ(parse_relaxed_json("\xef\xbb\xbf{\"a\": 1}", "f").value["a"], 1);
}

}  // namespace
}  // namespace zeroplan
