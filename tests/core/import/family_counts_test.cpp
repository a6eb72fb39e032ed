#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <vector>

#include "import/model_reader.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

/// What transformers' own classes have, by tests/golden/family_counts.py.
std::vector<json> cases() {
    const std::string path = std::string(ZEROPLAN_SOURCE_DIR) + "/tests/golden/family_counts.json";
    return json::parse(std::ifstream(path)).at("cases").get<std::vector<json>>();
}

std::vector<std::string> tensors_of(const ModelSpec& model) {
    std::vector<std::string> tensors;
    for (const Parameter& parameter : model.parameters)
        if (!parameter.shared_with)
            tensors.push_back(fmt::format("{} {}", parameter.name, fmt::join(parameter.shape, "x")));
    return tensors;
}

class FamilyCounts : public testing::TestWithParam<json> {};

TEST_P(FamilyCounts, AreThoseOfTheClass) {
    const json& golden = GetParam();
    const ModelSpec model = read_model(golden.at("config"), "", {});
    EXPECT_EQ(model.architecture, golden.at("class"));
    EXPECT_EQ(model.parameter_count(), golden.at("parameters"));
    const auto routed = golden.at("routed").get<std::uint64_t>();
    const std::uint64_t used =
        model.experts ? routed / model.experts->count * model.experts->per_token : routed;
    EXPECT_EQ(model.active_parameter_count(), golden.at("parameters").get<std::uint64_t>() - routed + used);
    if (golden.contains("tensors")) {
        EXPECT_EQ(tensors_of(model), golden.at("tensors").get<std::vector<std::string>>());
    }
}

INSTANTIATE_TEST_SUITE_P(Golden, FamilyCounts, testing::ValuesIn(cases()));

}  // namespace
}  // namespace zeroplan
