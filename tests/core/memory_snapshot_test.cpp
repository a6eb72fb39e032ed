#include "zeroplan/memory_snapshot.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pickle_writer.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using namespace std::string_view_literals;
using nlohmann::json;
using testing::HasSubstr;

/// Reads what PickleWriter writes, as memory_viz does.
class Unpickler {
public:
    explicit Unpickler(const std::string& text) : text_(text), at_(2) {}

    json read() {
        for (;;) {
            const char opcode = text_.at(at_++);
            if (opcode == '.') return stack_.back();
            step(opcode);
        }
    }

private:
    void step(char opcode) {
        switch (opcode) {
            case '}':
                return stack_.push_back(json::object());
            case ']':
                return stack_.push_back(json::array());
            case '(':
                return marks_.push_back(stack_.size());
            case 'X':
                return string();
            case 'q':
                memo_[number(1)] = stack_.back();
                return;
            case 'h':
                return stack_.push_back(memo_.at(number(1)));
            case 'K':
                return stack_.push_back(number(1));
            case 'M':
                return stack_.push_back(number(2));
            case 'J':
                return stack_.push_back(number(4));
            case '\x8a':
                return stack_.push_back(number(number(1)));
            case '\x88':
            case '\x89':
                return stack_.push_back(opcode == '\x88');
            case 'u':
            case 'e':
                return collect(opcode == 'u');
            default:
                throw std::runtime_error("unknown opcode");
        }
    }
    void string() {
        const std::size_t size = number(4);
        stack_.push_back(text_.substr(at_, size));
        at_ += size;
    }
    void collect(bool dict) {
        const std::size_t mark = marks_.back();
        marks_.pop_back();
        json into = std::move(stack_[mark - 1]);
        for (std::size_t i = mark; i < stack_.size(); i += dict ? 2 : 1) {
            if (dict)
                into[stack_[i].get<std::string>()] = std::move(stack_[i + 1]);
            else
                into.push_back(std::move(stack_[i]));
        }
        stack_.resize(mark);
        stack_.back() = std::move(into);
    }
    std::uint64_t number(std::uint64_t bytes) {
        std::uint64_t value = 0;
        for (std::uint64_t i = 0; i < bytes; ++i)
            value |= std::uint64_t{static_cast<unsigned char>(text_.at(at_++))} << (8 * i);
        return value;
    }

    const std::string& text_;
    std::size_t at_;
    std::vector<json> stack_;
    std::vector<std::size_t> marks_;
    std::map<std::uint64_t, json> memo_;
};

TEST(PickleWriter, WritesWhatPythonReads) {
    // python3 -c "import pickletools; …dis": {'a': [1, 256, 65536, 2**40, True, 'a']}
    PickleWriter writer;
    writer.begin_dict();
    writer.string("a");
    writer.begin_list();
    for (const std::uint64_t value : {1ULL, 256ULL, 65536ULL, 1ULL << 40}) writer.integer(value);
    writer.boolean(true);
    writer.string("a");
    writer.end_list();
    writer.end_dict();
    EXPECT_EQ(writer.take(),
              "\x80\x02}(X\x01\0\0\0aq\0](K\x01M\0\x01J\0\0\x01\0\x8a\x08\0\0\0\0\0\x01\0\0\x88h\0eu."sv);
}

TEST(PickleWriter, KeepsLargeIntegersPositive) {
    PickleWriter writer;
    writer.integer(~std::uint64_t{0});
    EXPECT_EQ(writer.take(), "\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0."sv);
}

/// Replays a trace; the highest sum of live blocks.
std::uint64_t peak_of(const json& trace, std::map<std::uint64_t, std::uint64_t>& live) {
    std::uint64_t now = 0, peak = 0;
    for (const json& event : trace) {
        const std::uint64_t address = event["addr"], size = event["size"];
        if (event["action"] == "alloc") {
            EXPECT_TRUE(live.emplace(address, size).second);
            peak = std::max(peak, now += size);
        } else if (event["action"] == "free_completed") {
            EXPECT_EQ(live.at(address), size);
            live.erase(address);
            now -= size;
        }
    }
    return peak;
}

TEST(MemorySnapshot, ReplaysToThePlansPeak) {
    for (const char* engine : {"native", "ddp"}) {
        const Plan plan = make_plan(resolve_scenario(
            {"",
             R"({"model": {"preset": "gpt2"}, "training": {"sequence_length": 256, "gradient_accumulation_steps": 3}})",
             {word_setting("/training/engine", engine, "--engine")}}));
        const json snapshot = Unpickler(memory_snapshot(plan, 0)).read();
        ASSERT_EQ(snapshot["device_traces"].size(), 1U);
        std::map<std::uint64_t, std::uint64_t> live;
        const std::uint64_t peak = peak_of(snapshot["device_traces"][0], live);
        EXPECT_EQ(Bytes{peak}, plan.rank_groups[0].steady.allocated) << engine;

        std::map<std::uint64_t, std::uint64_t> allocated;
        Bytes reserved;
        for (const json& segment : snapshot["segments"]) {
            std::uint64_t at = segment["address"];
            reserved += Bytes{segment["total_size"].get<std::uint64_t>()};
            for (const json& block : segment["blocks"]) {
                EXPECT_EQ(block["address"], at);
                if (block["state"] == "active_allocated") allocated[at] = block["size"];
                at += block["size"].get<std::uint64_t>();
            }
            EXPECT_EQ(at,
                      segment["address"].get<std::uint64_t>() + segment["total_size"].get<std::uint64_t>());
        }
        EXPECT_EQ(allocated, live) << engine;
        EXPECT_EQ(reserved, plan.rank_groups[0].peak_reserved) << engine;
    }
}

TEST(MemorySnapshot, NamesTensorsAndOperations) {
    const Plan plan = make_plan(resolve_scenario({"", R"({"model": {"preset": "gpt2"}})", {}}));
    const json snapshot = Unpickler(memory_snapshot(plan, 0)).read();
    const auto& trace = snapshot["device_traces"][0];
    const auto found = std::find_if(trace.begin(), trace.end(), [](const json& event) {
        return event["action"] == "alloc" && event["frames"][0]["name"] == "transformer.h.3 mlp.act";
    });
    ASSERT_NE(found, trace.end());
    EXPECT_EQ((*found)["frames"][0]["filename"], "activation (bf16, activations)");
    EXPECT_THAT((*found)["frames"][1]["name"].get<std::string>(),
                HasSubstr("forward transformer.h.3 mlp.act"));
}

TEST(MemorySnapshot, NamesTheOneBufferOfAllActivations) {
    const Plan plan = make_plan(resolve_scenario(
        {"",
         R"({"model": {"preset": "gpt2"}, "training": {"engine": "llm_c", "sequence_length": 256}})",
         {}}));
    const json snapshot = Unpickler(memory_snapshot(plan, 0)).read();
    const auto& trace = snapshot["device_traces"][0];
    EXPECT_TRUE(std::any_of(trace.begin(), trace.end(), [](const json& event) {
        return event["action"] == "alloc" && event["frames"][0]["name"] == "all layers";
    }));
}

}  // namespace
}  // namespace zeroplan
