#include "json/what_if_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/json/error_of.hpp"
#include "zeroplan/what_if_io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ScenarioRequest request(const std::string& what_if, std::uint64_t nodes = 2) {
    return {.text = R"({"model": {"preset": "gpt2"}, "cluster": {"topology": "dgx-h100", "nodes": )" +
                    std::to_string(nodes) + R"(}, "what_if": )" + what_if + "}"};
}

WhatIf read(const ScenarioRequest& asked) {
    return resolve_what_if(asked, resolve_scenario(asked));
}

std::string error_of_request(const std::string& what_if) {
    try {
        resolve_scenario(request(what_if));
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

const char* const everything = R"({
    "stragglers": [{"rank": 5, "factor": 0.8}, {"rank": 0, "factor": 1}],
    "slow_links": [{"link": "nic:9", "factor": 0.5}, {"link": "gpu:3", "factor": 0.25},
                   {"link": "node:1", "factor": 0.1}],
    "failures": {"gpu_mtbf_s": 1e8, "node_mtbf_s": 5e8, "checkpoint_bytes_per_second": 5e10,
                 "checkpoint_bytes": 1e12, "checkpoint_interval_s": 1800, "restart_s": 300}})";

TEST(WhatIfJson, HasEveryKey) {
    const WhatIf what_if = read(request(everything));
    EXPECT_EQ(what_if.stragglers, (std::vector<Straggler>{{5, 0.8}, {0, 1}}));
    EXPECT_EQ(what_if.slow_links,
              (std::vector<SlowLink>{
                  {SlowLinkKind::nic, 9, 0.5}, {SlowLinkKind::gpu, 3, 0.25}, {SlowLinkKind::node, 1, 0.1}}));
    ASSERT_TRUE(what_if.failures);
    EXPECT_EQ(*what_if.failures, (Failures{1e8, 5e8, 5e10, 1e12, 1800, 300}));
}

TEST(WhatIfJson, IsWrittenBack) {
    const ScenarioRequest asked = request(everything);
    const Scenario scenario = resolve_scenario(asked);
    const WhatIf what_if = resolve_what_if(asked, scenario);
    const ScenarioRequest saved{.text = scenario_json(scenario, what_if)};
    EXPECT_EQ(resolve_scenario(saved), scenario);
    EXPECT_EQ(resolve_what_if(saved, scenario), what_if);
    // Where nothing is different there is nothing to write.
    EXPECT_EQ(scenario_json(scenario, WhatIf{}), scenario_json(scenario));
    EXPECT_TRUE(read(request("{}")).empty());
    EXPECT_TRUE(read({.text = R"({"model": {"preset": "gpt2"}})"}).empty());
}

TEST(WhatIfJson, FlagsReplaceTheFilesLists) {
    ScenarioRequest asked = request(everything);
    asked.settings = {straggler_setting({"2=0.5", "3=0.6"}, "--straggler"),
                      slow_link_setting({"nic:0=0.7"}, "--slow-link"),
                      duration_setting("/what_if/failures/gpu_mtbf_s", "50000h", "--gpu-mtbf")};
    const WhatIf what_if = read(asked);
    EXPECT_EQ(what_if.stragglers, (std::vector<Straggler>{{2, 0.5}, {3, 0.6}}));
    EXPECT_EQ(what_if.slow_links, (std::vector<SlowLink>{{SlowLinkKind::nic, 0, 0.7}}));
    EXPECT_EQ(what_if.failures->gpu_mtbf_s, 1.8e8);
    EXPECT_EQ(what_if.failures->restart_s, 300);
}

TEST(WhatIfJson, DurationsHaveUnits) {
    const auto seconds = [](const char* text) {
        return json::parse(duration_setting("/x", text, "--x").json_value);
    };
    EXPECT_EQ(seconds("90"), 90);
    EXPECT_EQ(seconds("90s"), 90);
    EXPECT_EQ(seconds("1.5m"), 90);
    EXPECT_EQ(seconds("2h"), 7200);
    EXPECT_EQ(seconds("30d"), 2592000);
    EXPECT_EQ(seconds("5y"), 157680000);
    EXPECT_EQ(seconds("soon"), "soon");
    EXPECT_EQ(seconds("h"), "h");
}

TEST(WhatIfJson, NamesWhatIsNotThere) {
    EXPECT_THAT(error_of_request(R"({"stragglers": [{"rank": 16, "factor": 0.8}]})"),
                testing::AllOf(HasSubstr("/what_if/stragglers/0/rank"), HasSubstr("no rank 16"),
                               HasSubstr("0 to 15")));
    EXPECT_THAT(error_of_request(R"({"slow_links": [{"link": "nik:1", "factor": 0.8}]})"),
                testing::AllOf(HasSubstr("/what_if/slow_links/0/link"), HasSubstr("did you mean nic:?"),
                               HasSubstr("gpu:RANK"), HasSubstr("node:NODE")));
    for (const char* link : {"nic", "nic:", "nic:x", "nic:-1", "nic:1x", "switch:1", ""})
        EXPECT_THAT(
            error_of_request(R"({"slow_links": [{"link": ")" + std::string(link) + R"(", "factor": 1}]})"),
            HasSubstr("no link is named"))
            << link;
    EXPECT_THAT(error_of_request(R"({"slow_links": [{"link": "node:2", "factor": 0.8}]})"),
                testing::AllOf(HasSubstr("no node 2"), HasSubstr("0 to 1")));
    EXPECT_THAT(error_of_request(R"({"slow_links": [{"link": "gpu:16", "factor": 0.8}]})"),
                HasSubstr("no rank 16"));
    EXPECT_THAT(error_of_request(R"({"straggler": []})"), HasSubstr("did you mean \"stragglers\"?"));
}

TEST(WhatIfJson, RefusesFactorsThatAreNone) {
    for (const char* factor : {"0", "-0.5", "1.25", "1e300", "1e-300", "0.0009", "\"nan\"", "null", "true"})
        EXPECT_THAT(
            error_of_request(R"({"stragglers": [{"rank": 1, "factor": )" + std::string(factor) + "}]}"),
            HasSubstr("/what_if/stragglers/0/factor"))
            << factor;
    EXPECT_THAT(error_of_request(R"({"stragglers": [{"rank": 1, "factor": 1.25}]})"),
                testing::AllOf(HasSubstr("at most 1, but is 1.25"), HasSubstr("1.25 times as long")));
    EXPECT_THAT(
        error_of_request(R"({"stragglers": [{"rank": 1, "factor": 0.5}, {"rank": 1, "factor": 0.6}]})"),
        HasSubstr("rank 1 has two factors, 0.5 and 0.6"));
    EXPECT_THAT(
        error_of_request(
            R"({"slow_links": [{"link": "nic:1", "factor": 0.5}, {"link": "nic:1", "factor": 0.6}]})"),
        HasSubstr("nic:1 has two factors, 0.5 and 0.6"));
}

TEST(WhatIfJson, RefusesFailuresThatAreNone) {
    EXPECT_THAT(error_of_request(R"({"failures": {"checkpoint_bytes_per_second": 1e9}})"),
                HasSubstr("nothing fails"));
    EXPECT_THAT(error_of_request(R"({"failures": {"gpu_mtbf_s": 1e9}})"),
                testing::AllOf(HasSubstr("/what_if/failures/checkpoint_bytes_per_second"),
                               HasSubstr("--checkpoint-bandwidth")));
    EXPECT_THAT(
        error_of_request(R"({"failures": {"gpu_mtbf_s": 1e9, "checkpoint_bytes_per_second": 1e-300}})"),
        HasSubstr("/what_if/failures/checkpoint_bytes_per_second"));
    for (const char* value : {"0", "-1", "0.001", "\"5 years\"", "1e99"})
        EXPECT_THAT(error_of_request(R"({"failures": {"checkpoint_bytes_per_second": 1e9, "gpu_mtbf_s": )" +
                                     std::string(value) + "}}"),
                    HasSubstr("/what_if/failures/gpu_mtbf_s"))
            << value;
}

TEST(StragglerSetting, WantsAnEqualsSign) {
    EXPECT_THROW(straggler_setting({"5"}, "--straggler"), Error);
    EXPECT_THROW(slow_link_setting({"nic:5"}, "--slow-link"), Error);
}

TEST(StragglerSetting, WantsANumberAsFactor) {
    for (const char* text : {"5=nan", "5=inf", "5=", "5=true", "5=1e999"}) {
        const Error error = error_of([&] { (void)straggler_setting({text}, "--straggler"); });
        EXPECT_EQ(error.place(), (ErrorPlace{"command line", "--straggler"}));
        EXPECT_THAT(error.message(), HasSubstr("is no number")) << text;
        EXPECT_THAT(error.hint(), HasSubstr("--straggler 5=0.8"));
    }
}

TEST(WhatIfFabricJson, IsReadAndWrittenBack) {
    const ScenarioRequest asked = request(R"({
        "leaf_switches": {"nodes": 4, "oversubscription": 2.5}, "placement": [5, 0],
        "background": {"scenario": {"model": {"preset": "gpt2"}, "cluster": {"topology": "dgx-h100", "nodes": 3}},
                       "placement": "spread"}})");
    const Scenario scenario = resolve_scenario(asked);
    const WhatIf what_if = resolve_what_if(asked, scenario);
    EXPECT_EQ(what_if.leaf_switches, (LeafSwitches{4, 2.5}));
    EXPECT_EQ(what_if.placement, (Placement{PlacementKind::list, {5, 0}}));
    ASSERT_TRUE(what_if.background);
    EXPECT_EQ(what_if.background->name, "gpt2 on 24 GPUs");
    EXPECT_EQ(what_if.background->placement, (Placement{PlacementKind::spread, {}}));
    const ScenarioRequest saved{.text = scenario_json(scenario, what_if)};
    EXPECT_EQ(resolve_what_if(saved, scenario), what_if);
}

TEST(WhatIfFabricJson, FlagsSayTheSame) {
    ScenarioRequest asked = request("{}");
    asked.settings = {leaf_switches_setting("4:2", "--leaf-switches"),
                      placement_setting("0-1", "--placement")};
    EXPECT_EQ(read(asked).leaf_switches, (LeafSwitches{4, 2}));
    EXPECT_EQ(read(asked).placement.nodes, (std::vector<std::uint64_t>{0, 1}));
    EXPECT_EQ(placement_setting("0-2,8", "").json_value, "[0,1,2,8]");
    EXPECT_EQ(placement_setting("spread", "").json_value, "\"spread\"");
    EXPECT_EQ(placement_setting("3-1", "").json_value, "\"3-1\"");
}

TEST(WhatIfFabricJson, NamesWhatIsWrong) {
    EXPECT_THAT(error_of_request(R"({"leaf_switches": {"nodes": 4}})"),
                HasSubstr("\"oversubscription\" is missing"));
    EXPECT_THAT(error_of_request(R"({"leaf_switches": {"nodes": 4, "oversubscription": 0.5}})"),
                HasSubstr("/what_if/leaf_switches/oversubscription"));
    EXPECT_THAT(error_of_request(R"({"leaf_switches": {"nodes": 0, "oversubscription": 2}})"),
                HasSubstr("/what_if/leaf_switches/nodes"));
    EXPECT_THAT(error_of_request(R"({"placement": "spred"})"), HasSubstr("did you mean \"spread\"?"));
    EXPECT_THAT(error_of_request(R"({"placement": [1, 2, 3]})"),
                HasSubstr("3 nodes are listed, but the job has 2"));
    EXPECT_THAT(error_of_request(R"({"placement": [1, 1]})"), HasSubstr("a node is listed twice"));
    EXPECT_THAT(error_of_request(R"({"background": {}})"), HasSubstr("neither \"file\" nor \"scenario\""));
    EXPECT_THAT(error_of_request(R"({"background": {"file": "nowhere.json"}})"), HasSubstr("nowhere.json"));
    EXPECT_THAT(error_of_request(R"({"background": {"scenario": {"model": {"preset": "gpt3"}}}})"),
                HasSubstr("gpt3"));
    EXPECT_THAT(error_of_request(R"({"background": {"scenario": {"model": {"preset": "gpt2"}, "what_if":
                    {"stragglers": [{"rank": 0, "factor": 0.5}]}}}})"),
                HasSubstr("a what_if of its own"));
    EXPECT_THAT(error_of_request(R"({"leaf_switches": {"nodes": 4, "oversubscription": 2}, "background":
                    {"scenario": {"model": {"preset": "gpt2"}}, "placement": [1]}})"),
                HasSubstr("needs 1 nodes, but 0 of those listed for it are free"));
}

FabricSpec fabric_of_flag(const char* text, std::uint64_t nodes) {
    ScenarioRequest asked = request("{}", nodes);
    asked.settings = {fabric_setting(text, "--fabric")};
    return *read(asked).fabric;
}

TEST(FabricJson, SaysWhatTheFlagSays) {
    FabricSpec expected;
    EXPECT_EQ(fabric_of_flag("single-switch", 2), expected);
    expected.kind = FabricKind::fat_tree;
    expected.nodes_per_leaf = 4;
    expected.leaf_oversubscription = 1.5;
    EXPECT_EQ(fabric_of_flag("fat-tree:4:1.5", 2), expected);
    expected.leaves_per_pod = 8;
    expected.pod_oversubscription = 2;
    EXPECT_EQ(fabric_of_flag("fat-tree:4:1.5:8:2", 2), expected);
    expected = {};
    expected.kind = FabricKind::rail_optimised;
    expected.nodes_per_leaf = 32;
    expected.leaf_oversubscription = 2;
    EXPECT_EQ(fabric_of_flag("rail-optimised:32:2", 2), expected);
    expected = {};
    expected.kind = FabricKind::torus;
    expected.dimensions = {3, 2, 2};
    EXPECT_EQ(fabric_of_flag("torus:3x2x2", 12), expected);
    expected.link_bytes_per_s = 25e9;
    EXPECT_EQ(fabric_of_flag("torus:3x2x2:25e9", 12), expected);
}

TEST(FabricJson, IsReadAndWrittenBack) {
    for (
        const char* text :
        {R"({"fabric": {"kind": "single_switch"}})",
         R"({"fabric": {"kind": "fat_tree", "nodes_per_leaf": 2, "leaf_oversubscription": 2, "leaves_per_pod": 4,
              "pod_oversubscription": 1.5}})",
         R"({"fabric": {"kind": "rail_optimised", "nodes_per_leaf": 2, "leaf_oversubscription": 2}})",
         R"({"fabric": {"kind": "torus", "dimensions": [2, 1], "link_bytes_per_second": 1e9}})"}) {
        const ScenarioRequest asked = request(text);
        const Scenario scenario = resolve_scenario(asked);
        const WhatIf what_if = resolve_what_if(asked, scenario);
        ASSERT_TRUE(what_if.fabric) << text;
        const ScenarioRequest saved{.text = scenario_json(scenario, what_if)};
        EXPECT_EQ(resolve_what_if(saved, scenario), what_if) << text;
    }
}

TEST(FabricJson, NamesWhatIsWrong) {
    EXPECT_THAT(error_of_request(R"({"fabric": {}})"), HasSubstr("\"kind\" of the fabric is missing"));
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "tours"}})"), HasSubstr("did you mean \"torus\"?"));
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "fat_tree", "nodes_per_leaf": 2}})"),
                HasSubstr("\"leaf_oversubscription\" is missing"));
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "fat_tree", "nodes_per_leaf": 2,
                    "leaf_oversubscription": 0.5}})"),
                HasSubstr("/what_if/fabric/leaf_oversubscription"));
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "fat_tree", "nodes_per_leaf": 2,
                    "leaf_oversubscription": 2, "leaves_per_pod": 4}})"),
                HasSubstr("\"pod_oversubscription\" is missing"));
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "rail_optimised", "leaves_per_pod": 4}})"),
                HasSubstr("leaves_per_pod"));
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "torus"}})"), HasSubstr("torus:4x4x2"));
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "torus", "dimensions": []}})"),
                HasSubstr("1 to 6 dimensions, but 0 are given"));
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "torus", "dimensions": [3, 2]}})"),
                HasSubstr("a torus of 3 × 2 has 6 nodes, but the job has 2"));
    try {
        ScenarioRequest sharp = request(R"({"fabric": {"kind": "torus", "dimensions": [2]}})");
        sharp.settings = {{"/cluster/inter_node/sharp", "true", "--sharp"}};
        resolve_scenario(sharp);
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_THAT(error.message(), HasSubstr("a torus has no switches"));
    }
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "torus", "dimensions": [3]}, "placement": [1, 5]})"),
                HasSubstr("there is no node 5: a torus of 3 has 3 nodes"));
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "torus", "dimensions": [3]}, "background":
                    {"scenario": {"model": {"preset": "gpt2"}, "cluster": {"nodes": 2}}}})"),
                HasSubstr("a torus of 3 has 3 nodes, but the jobs need 4"));
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "torus", "dimensions": [1000000, 1000000]}})"),
                HasSubstr("larger than the 1000000"));
    EXPECT_THAT(error_of_request(R"({"fabric": {"kind": "single_switch"},
                    "leaf_switches": {"nodes": 2, "oversubscription": 2}})"),
                HasSubstr("leave one out"));
    EXPECT_THROW(fabric_setting("torus:4:1:1", "--fabric"), Error);
    EXPECT_THROW(fabric_setting("single-switch:4", "--fabric"), Error);
}

TEST(WhatIfWarnings, TellWhatChangesNothing) {
    ScenarioRequest asked = request(R"({"placement": "spread"})");
    const auto warnings = [&asked] {
        const Scenario scenario = resolve_scenario(asked);
        return what_if_warnings(scenario, resolve_what_if(asked, scenario));
    };
    ASSERT_EQ(warnings().size(), 1U);
    EXPECT_THAT(warnings()[0].message, HasSubstr("--leaf-switches"));
    asked = request(R"({"placement": "spread", "leaf_switches": {"nodes": 1, "oversubscription": 2}})");
    ASSERT_EQ(warnings().size(), 1U);
    EXPECT_EQ(warnings()[0].code, "closed_form_without_fabric");
    asked = request(R"({"leaf_switches": {"nodes": 1, "oversubscription": 1}})");
    EXPECT_TRUE(warnings().empty());
    asked = request(R"({"slow_links": [{"link": "nic:0", "factor": 0.5}]})", 1);
    ASSERT_EQ(warnings().size(), 1U);
    EXPECT_THAT(warnings()[0].message, HasSubstr("one node"));
}

}  // namespace
}  // namespace zeroplan
