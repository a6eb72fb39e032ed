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
        ASSERT_NE(field.value, nullptr) << field.pointer;
        EXPECT_FALSE(field.value(scenario).isEmpty()) << field.pointer;
        EXPECT_EQ(field.choices.empty(), field.kind == Field::Kind::count) << field.pointer;
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
