#include "json/object_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

template <class Call>
Error error_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_input);
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error(ErrorCode::invalid_input, "");
}

TEST(ObjectReader, ReadsEveryType) {
    const json value = json::parse(
        R"({"i": 7, "big": 5e8, "n": 0.5, "b": true, "s": "x", "o": {"k": 1}, "l": [1, 2], "w": ["a"], "none": null})");
    const ObjectReader reader(value, {"f.json", "/cluster"});
    EXPECT_EQ(reader.integer("i"), 7);
    EXPECT_EQ(reader.integer("big"), 500'000'000);
    EXPECT_EQ(reader.number("n"), 0.5);
    EXPECT_EQ(reader.number("i"), 7.0);
    EXPECT_EQ(reader.boolean("b"), true);
    EXPECT_EQ(reader.string("s"), "x");
    EXPECT_EQ(reader.object("o")->integer("k"), 1);
    EXPECT_EQ(reader.object("o")->place("k").pointer, "/cluster/o/k");
    EXPECT_EQ(*reader.integers("l"), (std::vector<std::uint64_t>{1, 2}));
    EXPECT_EQ(*reader.strings("w"), std::vector<std::string>{"a"});
}

TEST(ObjectReader, TakesNullForAbsent) {
    const json value = {{"none", nullptr}};
    const ObjectReader reader(value, {});
    EXPECT_FALSE(reader.has("none"));
    EXPECT_FALSE(reader.integer("none"));
    EXPECT_FALSE(reader.object("absent"));
    EXPECT_FALSE(reader.strings("absent"));
}

TEST(ObjectReader, RefusesWhatIsNoWholeNumberInRange) {
    for (const char* text : {"-1", "-9223372036854775808", "1.5", "1e300", "\"8\"", "true", "[]", "-0.5",
                             "18446744073709551616", "18446744073709551615"}) {
        const json value = {{"nodes", json::parse(text)}};
        const Error error = error_of([&] { ObjectReader(value, {"f", "/cluster"}).integer("nodes"); });
        EXPECT_EQ(error.place(), (ErrorPlace{"f", "/cluster/nodes"})) << text;
        EXPECT_THAT(error.message(), HasSubstr("\"nodes\" must be a whole number")) << text;
    }
    const json zero = {{"nodes", 0}};
    EXPECT_THAT(error_of([&] { ObjectReader(zero, {}).integer("nodes", 1, 8); }).message(),
                HasSubstr("from 1 to 8, but is 0"));
}

TEST(ObjectReader, RefusesNumbersOutOfRange) {
    const json value = {{"fraction", 1.5}, {"nan", std::numeric_limits<double>::quiet_NaN()}};
    const ObjectReader reader(value, {});
    EXPECT_THAT(error_of([&] { reader.number("fraction", 0, 1); }).message(),
                HasSubstr("from 0 to 1, but is 1.5"));
    error_of([&] { reader.number("nan"); });
}

TEST(ObjectReader, RefusesTheWrongType) {
    const json value = {{"a", 1}, {"l", {1, "x"}}};
    const ObjectReader reader(value, {"", "/m"});
    error_of([&] { reader.boolean("a"); });
    error_of([&] { reader.string("a"); });
    error_of([&] { reader.object("a"); });
    error_of([&] { reader.integers("a"); });
    EXPECT_EQ(error_of([&] { reader.integers("l"); }).place().pointer, "/m/l/1");
    EXPECT_EQ(error_of([&] { reader.strings("l"); }).place().pointer, "/m/l/0");
    error_of([&] { ObjectReader(value["l"], {}); });
}

TEST(ObjectReader, NamesTheNearestKnownKey) {
    const json value = {{"gpus_per_nod", 8}};
    const Error error = error_of([&] {
        ObjectReader(value, {"", "/cluster"}).allow_only({"nodes", "gpus_per_node"});
    });
    EXPECT_EQ(error.place().pointer, "/cluster/gpus_per_nod");
    EXPECT_EQ(error.message(), "unknown key \"gpus_per_nod\"");
    EXPECT_EQ(error.hint(), "did you mean \"gpus_per_node\"?");
    const json far = {{"xyzzy", 8}};
    EXPECT_EQ(error_of([&] {
                  ObjectReader(far, {}).allow_only({"nodes", "gpu"});
              }).hint(),
              "known: nodes, gpu");
}

TEST(ObjectReader, ReadsTheWordOfAnEnumerator) {
    const json value = {{"attention", "eager"}, {"loss", "egar"}};
    const ObjectReader reader(value, {});
    EXPECT_EQ(reader.word<AttentionKernel>("attention"), AttentionKernel::eager);
    EXPECT_FALSE(reader.word<AttentionKernel>("absent"));
    const Error error = error_of([&] { reader.word<LossKernel>("loss"); });
    EXPECT_EQ(error.message(), "\"loss\" cannot be \"egar\"");
    EXPECT_EQ(error.hint(), "did you mean \"eager\"?");
}

}  // namespace
}  // namespace zeroplan
