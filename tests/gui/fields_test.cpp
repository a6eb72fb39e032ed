#include "zeroplan/gui/fields.hpp"

#include <gtest/gtest.h>

#include "zeroplan/gui/request.hpp"

namespace zeroplan::gui {
namespace {

TEST(Fields, EveryControlIsOneKeyWithALabelAndATooltip) {
    const Scenario scenario = resolve_scenario(starting_request());
    for (const Field& field : fields()) {
        EXPECT_FALSE(field.label.isEmpty()) << field.pointer;
        EXPECT_FALSE(field.tooltip.isEmpty()) << field.pointer;
        EXPECT_TRUE(field.flag.starts_with("--")) << field.pointer;
        const bool text = field.kind == Field::Kind::text;
        EXPECT_EQ(field.value != nullptr, !text) << field.pointer;
        EXPECT_EQ(field.setting != nullptr && field.flag_texts != nullptr, text) << field.pointer;
        EXPECT_FALSE(!text && field.value(scenario).isEmpty()) << field.pointer;
        EXPECT_EQ(field.choices.empty(), text || field.kind == Field::Kind::count) << field.pointer;
    }
}

TEST(Fields, DegreesShowWhereTheEngineKnowsThemOrTheScenarioStatesThem) {
    const Field& tensor = field("/training/tensor_parallel");
    EXPECT_TRUE(is_shown(tensor, "megatron", "1"));
    EXPECT_FALSE(is_shown(tensor, "native", "1"));
    EXPECT_TRUE(is_shown(tensor, "native", "2"));
    EXPECT_TRUE(is_shown(field("/training/recompute"), "native", "none"));
}

TEST(Edited, GpusAndNodesReplaceEachOther) {
    ScenarioRequest request = edited({}, nullptr, "/cluster/nodes", "4");
    request = edited(request, nullptr, "/cluster/gpus_used", "16");
    EXPECT_EQ(setting_at(request, "/cluster/nodes"), std::nullopt);
    request = edited(request, nullptr, "/cluster/nodes", "8");
    EXPECT_EQ(setting_at(request, "/cluster/gpus_used"), std::nullopt);
    EXPECT_EQ(setting_at(request, "/cluster/nodes"), "8");
}

TEST(Edited, TheLongestSequenceFollowsTheModel) {
    ScenarioRequest request = edited(starting_request(), nullptr, "/training/sequence_length", "8192");
    const Scenario longest = resolve_scenario(request);
    request = edited(request, &longest, "/model", "gpt2");
    EXPECT_EQ(resolve_scenario(request).training.sequence_length, 1024U);
}

TEST(Edited, AnUnknownModelIsAnErrorNotASetting) {
    EXPECT_THROW(edited({}, nullptr, "/model", "llama-9"), Error);
}

TEST(Edited, NothingTakesWhatTheFileSays) {
    const ScenarioRequest request = edited(starting_request(), nullptr, "/model", "");
    EXPECT_EQ(setting_at(request, "/model"), std::nullopt);
}

TEST(CommandLine, UsesFlagsAndQuotesForTheShell) {
    EXPECT_EQ(command_line(starting_request()).toStdString(),
              "zeroplan plan --model llama-3-8b --topology dgx-h100 --gpus 16 --zero 3");
    ScenarioRequest request;
    request.file = "it's mine.json";
    request = edited(request, nullptr, "/training/compute_dtype", "bf16");
    request = with(request, {"/training/loss", "\"fused\"", ""});
    EXPECT_EQ(command_line(request, "sim").toStdString(),
              R"(zeroplan sim --scenario 'it'\''s mine.json' --dtype bf16 --set '/training/loss="fused"')");
}

TEST(Edited, ATextTakenAwayIsTakenAwayFromTheFileToo) {
    ScenarioRequest request;
    request.text = R"({"what_if": {"stragglers": [{"rank": 1, "factor": 0.5}],
                                   "failures": {"gpu_mtbf_s": 1e6, "checkpoint_bytes_per_second": 1e9}}})";
    request = edited(request, nullptr, "/what_if/stragglers", "");
    EXPECT_FALSE(is_stated(request, "/what_if/stragglers"));
    request = edited(request, nullptr, "/what_if/failures/gpu_mtbf_s", "");
    EXPECT_TRUE(is_stated(request, "/what_if/failures"));
    request = edited(request, nullptr, "/what_if/failures/checkpoint_bytes_per_second", "");
    EXPECT_FALSE(is_stated(request, "/what_if/failures"));  // or it would be a run without failures
    request = edited({}, nullptr, "/what_if/placement", "spread");
    EXPECT_TRUE(edited(request, nullptr, "/what_if/placement", "").settings.empty());
}

TEST(Edited, AFabricReplacesLeafSwitches) {
    ScenarioRequest request;
    request.text = R"({"what_if": {"leaf_switches": {"nodes": 4, "oversubscription": 2}}})";
    request = edited(request, nullptr, "/what_if/fabric", "torus:4");
    EXPECT_FALSE(is_stated(request, "/what_if/leaf_switches"));
}

TEST(ShownText, IsWhatTheFlagTakes) {
    const ScenarioRequest request = edited({}, nullptr, "/what_if/stragglers", "5=0.8,6=0.9");
    EXPECT_EQ(shown_text(field("/what_if/stragglers"), request, nullptr).toStdString(), "5=0.8, 6=0.9");
    WhatIf what_if;
    what_if.leaf_switches = {4, 2};
    what_if.failures = Failures{.gpu_mtbf_s = 3600, .checkpoint_bytes_per_s = 1e9};
    EXPECT_EQ(shown_text(field("/what_if/fabric"), {}, &what_if).toStdString(), "fat-tree:4:2");
    EXPECT_EQ(shown_text(field("/what_if/failures/gpu_mtbf_s"), {}, &what_if).toStdString(), "1h");
    EXPECT_EQ(shown_text(field("/what_if/failures/restart_s"), {}, &what_if).toStdString(), "");
    EXPECT_EQ(shown_text(field("/what_if/placement"), {}, &what_if).toStdString(), "");
}

TEST(CheckTexts, SaysWhatTheFlagSays) {
    const auto error_of = [](const char* pointer, const char* text) -> std::string {
        try {
            check_texts(edited({}, nullptr, pointer, text));
        } catch (const Error& error) {
            EXPECT_EQ(error.place().pointer, pointer);
            return error.message();
        }
        return {};
    };
    EXPECT_EQ(error_of("/what_if/stragglers", "5"), R"("5" has no "=")");
    EXPECT_EQ(error_of("/what_if/slow_links", "nic:5=half"), R"(the factor "half" is no number)");
    EXPECT_NE(error_of("/what_if/fabric", "fat-tree:1:2:3:4:5"), "");
    EXPECT_EQ(error_of("/what_if/stragglers", "5=0.8"), "");
    EXPECT_EQ(error_of("/what_if/placement", "spread"), "");
}

TEST(CommandLine, AWhatIfIsSimulated) {
    ScenarioRequest request = edited(starting_request(), nullptr, "/what_if/stragglers", "5=0.8, 6=0.9");
    request = edited(request, nullptr, "/what_if/fabric", "fat-tree:4:2");
    request = edited(request, nullptr, "/what_if/failures/gpu_mtbf_s", "50000h");
    EXPECT_EQ(command_line(request).toStdString(),
              "zeroplan sim --model llama-3-8b --topology dgx-h100 --gpus 16 --zero 3 --straggler 5=0.8 "
              "--straggler 6=0.9 --fabric fat-tree:4:2 --gpu-mtbf 50000h");
}

TEST(CommandLine, TakesADefaultBackOnlyWhereSomethingElseIsStated) {
    ScenarioRequest request = with({}, model_setting("gpt2", "Model"));
    request = with(request, {"/training/loss", "null", "--set"});
    EXPECT_EQ(command_line(request).toStdString(), "zeroplan plan --model gpt2");
    ImportedScenario imported;
    imported.settings = {{"/training/loss", "\"fused\"", "a key"}};
    request.imported = {imported};
    EXPECT_EQ(command_line(request).toStdString(), "zeroplan plan --model gpt2 --set /training/loss=null");
}

TEST(CommandLine, NamesTheFilesOfOtherProgramsBeneathIt) {
    ScenarioRequest request = with({}, model_setting("gpt2", "Model"));
    ImportedScenario imported;
    imported.file = "my ds.json";
    imported.flag = "--deepspeed";
    imported.settings = {{"/training/zero_stage", "2", "line 3: zero_optimization.stage"}};
    request.imported = {imported};
    request = edited(request, nullptr, "/training/zero_stage", "3");
    EXPECT_EQ(command_line(request).toStdString(),
              "zeroplan plan --deepspeed 'my ds.json' --model gpt2 --zero 3");
}

}  // namespace
}  // namespace zeroplan::gui
