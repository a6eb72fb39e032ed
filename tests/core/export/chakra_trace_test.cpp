#include "zeroplan/chakra_trace.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "zeroplan/io.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {
namespace {

std::uint64_t varint(std::string_view& from) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(from.front());
        from.remove_prefix(1);
        value |= std::uint64_t{byte & 0x7fU} << shift;
        if (byte < 0x80) return value;
    }
}

std::string_view delimited(std::string_view& from) {
    const std::uint64_t size = varint(from);
    const std::string_view text = from.substr(0, size);
    from.remove_prefix(size);
    return text;
}

/// Enough of a Node to check a graph: names and numbers of attributes, and of the fields.
struct Node {
    std::uint64_t id = 0, type = 0, duration = 0;
    std::string name;
    std::vector<std::uint64_t> after;
    std::map<std::string, std::uint64_t> numbers;
    std::map<std::string, std::string> texts;
};

void read_attribute(std::string_view text, Node& node) {
    varint(text);
    const std::string name(delimited(text));
    const std::uint64_t tag = varint(text);
    if (tag % 8 == 2)
        node.texts[name] = delimited(text);
    else
        node.numbers[name] = varint(text);
}

Node read_node(std::string_view text) {
    Node node;
    while (!text.empty()) {
        const std::uint64_t field = varint(text) >> 3;
        if (field == 2)
            node.name = delimited(text);
        else if (field == 10)
            read_attribute(delimited(text), node);
        else if (field == 5)
            node.after.push_back(varint(text));
        else
            (field == 1 ? node.id : field == 3 ? node.type : node.duration) = varint(text);
    }
    return node;
}

std::vector<Node> read(std::string_view text) {
    std::string_view metadata = delimited(text);
    varint(metadata);
    EXPECT_EQ(delimited(metadata), "0.0.4");
    std::vector<Node> nodes;
    while (!text.empty()) nodes.push_back(read_node(delimited(text)));
    return nodes;
}

Plan plan_of(const char* training, const char* cluster) {
    ScenarioRequest request;
    request.text = std::string(R"({"model": {"preset": "gpt2"}, "training": )") + training +
                   R"(, "cluster": )" + cluster + "}";
    return make_plan(resolve_scenario(request));
}

TEST(ChakraTraces, HaveTheGraphThatIsTimed) {
    Plan plan = plan_of(R"({"zero_stage": 3, "gradient_accumulation_steps": 3})",
                        R"({"topology": "dgx-a100", "nodes": 2})");
    // A graph has no room for work that is slower beside collectives.
    plan.scenario.cluster.calibration.constants = {{"collective_blocks_per_multiprocessor", 1e12},
                                                   {"gather_memory_accesses", 0},
                                                   {"reduce_memory_accesses", 0}};
    const std::vector<Node> nodes = read(ChakraTraces(plan).of_rank(9));
    std::vector<double> end;
    double makespan = 0;
    std::map<std::uint64_t, std::uint64_t> types;
    for (const Node& node : nodes) {
        EXPECT_EQ(node.id, end.size());
        double start = 0;
        for (const std::uint64_t before : node.after) {
            ASSERT_LT(before, node.id);
            start = std::max(start, end[before]);
        }
        end.push_back(start + static_cast<double>(node.duration));
        makespan = std::max(makespan, end.back());
        ++types[node.type];
    }
    // Durations are whole microseconds.
    const double step_us = closed_form_step(plan).step_time_s * 1e6;
    EXPECT_NEAR(makespan, step_us, 0.5 * static_cast<double>(nodes.size()));
    EXPECT_NEAR(makespan, step_us, 0.02 * step_us);
    EXPECT_EQ(types[7], total_communication(plan).operations);
}

TEST(ChakraTraces, SayWhatARankPutsIntoACollective) {
    const Plan plan = plan_of(R"({"zero_stage": 3})", R"({"topology": "dgx-a100"})");
    const std::vector<Node> nodes = read(ChakraTraces(plan).of_rank(0));
    for (const Node& node : nodes) {
        if (node.name != "all_gather transformer.h.0" && node.name != "reduce_scatter transformer.h.0")
            continue;
        const bool gathers = node.numbers.at("comm_type") == 2;
        const std::uint64_t whole = 7'087'872 * 2;  // a layer's parameters in bf16
        EXPECT_EQ(node.numbers.at("comm_size"), gathers ? whole / 8 : whole);
        EXPECT_EQ(node.texts.at("pg_name"), "0");
    }
    const auto groups = nlohmann::json::parse(ChakraTraces(plan).communicators());
    EXPECT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups["0"].size(), 8U);
}

TEST(ChakraTraces, PairTheMessagesOfAPipeline) {
    const Plan plan = plan_of(
        R"({"engine": "megatron", "pipeline_parallel": 2, "tensor_parallel": 2, "gradient_accumulation_steps": 2})",
        R"({"topology": "dgx-a100"})");
    const ChakraTraces traces(plan);
    std::map<std::array<std::uint64_t, 4>, int> open;
    for (std::uint64_t rank = 0; rank < 8; ++rank)
        for (const Node& node : read(traces.of_rank(rank))) {
            if (node.type != 5 && node.type != 6) continue;
            EXPECT_EQ(node.numbers.at(node.type == 5 ? "comm_src" : "comm_dst"), rank);
            open[{node.numbers.at("comm_src"), node.numbers.at("comm_dst"), node.numbers.at("comm_tag"),
                  node.numbers.at("comm_size")}] += node.type == 5 ? 1 : -1;
        }
    EXPECT_EQ(open.size(), 8U);  // each of 4 pairs, there and back
    for (const auto& [message, left] : open) EXPECT_EQ(left, 0);
}

// GPT-2 ties: 4 stages of 2 ranks, 50432 of padded vocabulary by 768 over 2 ranks in fp32.
TEST(ChakraTraces, HaveTheEmbeddingGroupOfAPipeline) {
    const Plan plan = plan_of(
        R"({"engine": "megatron", "pipeline_parallel": 4, "tensor_parallel": 2, "gradient_accumulation_steps": 4,
            "gradient_dtype": "fp32"})",
        R"({"topology": "dgx-a100"})");
    const ChakraTraces traces(plan);
    const auto groups = nlohmann::json::parse(traces.communicators());
    std::map<std::string, int> seen;
    for (std::uint64_t rank = 0; rank < 8; ++rank)
        for (const Node& node : read(traces.of_rank(rank))) {
            if (node.name != "all_reduce embedding.word_embeddings.weight" &&
                node.name != "all_reduce output_layer.weight")
                continue;
            const std::string& name = node.texts.at("pg_name");
            EXPECT_EQ(groups[name], (std::vector<std::uint64_t>{rank % 2, rank % 2 + 6}));
            EXPECT_EQ(node.numbers.at("comm_size"), 50432U / 2 * 768 * 4);
            ++seen[name];
        }
    ASSERT_EQ(seen.size(), 2U);
    for (const auto& [name, count] : seen) EXPECT_EQ(count, 2) << name;
}

TEST(ChakraTraces, RefuseARankThatIsNotThere) {
    const Plan plan = plan_of(R"({"zero_stage": 1})", R"({"topology": "dgx-a100"})");
    EXPECT_THROW(ChakraTraces(plan).of_rank(8), Error);
}

}  // namespace
}  // namespace zeroplan
