#include "json/parse.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "zeroplan/error.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

Error error_of(const std::string& text) {
    try {
        parse_json(text, "file.json");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_input);
        EXPECT_EQ(error.place().file, "file.json");
        return error;
    }
    ADD_FAILURE() << "accepted: " << text;
    return Error(ErrorCode::invalid_input, "");
}

TEST(ParseJson, ReadsEveryKindOfValue) {
    const json value = parse_json(R"({"a": [1, -2, 2.5, "x\u00e9", true, null], "b": {"c": {}}})", "");
    EXPECT_EQ(value["a"], (json{1, -2, 2.5, "x\u00e9", true, nullptr}));
    EXPECT_TRUE(value["b"]["c"].is_object());
    EXPECT_EQ(parse_json("18446744073709551615", "").get<std::uint64_t>(), 18446744073709551615ULL);
}

TEST(ParseJson, SaysWhereTruncatedTextEnds) {
    const Error error = error_of("{\"hidden_size\": 4096,\n \"num_hidden_layers\": 32,\n");
    EXPECT_EQ(error.place().pointer, "line 3, column 1");
    EXPECT_EQ(error.message(), "the JSON text ends too early");
    EXPECT_EQ(error_of("").message(), "the text is empty, JSON expected");
    EXPECT_EQ(error_of("  \n").message(), "the text is empty, JSON expected");
    EXPECT_EQ(error_of("{\"a\": \"unclosed").message(), "the JSON text ends too early");
}

TEST(ParseJson, NamesTheTokenThatIsNoJson) {
    const Error infinity = error_of("{\"a\": 1,\n\"limit\": Infinity}");
    EXPECT_EQ(infinity.message(), "Infinity is not a JSON number");
    EXPECT_EQ(infinity.place().pointer.substr(0, 6), "line 2");
    EXPECT_EQ(error_of("[-Infinity]").message(), "-Infinity is not a JSON number");
    EXPECT_EQ(error_of("[NaN]").message(), "NaN is not a JSON number");
    EXPECT_EQ(error_of("{\"a\": True}").message(), "not JSON at \"True\"");
    EXPECT_EQ(error_of("[1e999]").place().pointer.substr(0, 6), "line 1");
    error_of("{\"a\": 1,}");
    error_of("// comment\n{}");
    error_of("{} {}");
    error_of("\xff\xfe");
    error_of("[\"\xff\"]");
}

TEST(ParseJson, DoesNotTakeANulForTheEnd) {
    const Error error = error_of(std::string("{}\n\0{{{ more", 12));
    EXPECT_EQ(error.message(), "not JSON at byte 0x00");
    EXPECT_EQ(error.place().pointer, "line 2, column 1");
}

TEST(ParseJson, RefusesAKeyGivenTwice) {
    const Error error = error_of(R"({"training": {"x": [0, {"zero/stage": 1, "zero/stage": 2}]}})");
    EXPECT_EQ(error.place().pointer, "/training/x/1/zero~1stage");
    EXPECT_EQ(error.message(), "key \"zero/stage\" is given twice");
}

TEST(ParseJson, RefusesDeepNesting) {
    const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
    EXPECT_NO_THROW(parse_json(nested(deepest_json), ""));
    error_of(nested(deepest_json + 1));
    error_of(std::string(1'000'000, '['));
}

}  // namespace
}  // namespace zeroplan
