#include "zeroplan/gui/request.hpp"

#include <gtest/gtest.h>

#include <QDir>
#include <QFile>
#include <QTemporaryDir>

namespace zeroplan::gui {
namespace {

TEST(Request, ASettingReplacesItsPointerAndWhatLiesBelow) {
    ScenarioRequest request = with({}, {"/model/num_hidden_layers", "2", ""});
    request = with(request, {"/training/zero_stage", "1", ""});
    request = with(request, {"/training/zero_stage", "3", ""});
    request = with(request, {"/model", R"({"preset":"gpt2"})", ""});
    ASSERT_EQ(request.settings.size(), 2U);
    EXPECT_EQ(setting_at(request, "/training/zero_stage"), "3");
    EXPECT_EQ(setting_at(request, "/model"), R"({"preset":"gpt2"})");
    EXPECT_EQ(setting_at(request, "/model/num_hidden_layers"), std::nullopt);
}

TEST(Request, WithoutDropsASettingAndOverridesAFile) {
    const ScenarioRequest plain =
        without(with({}, {"/training/sequence_length", "128", ""}), "/training/sequence_length");
    EXPECT_TRUE(plain.settings.empty());
    ScenarioRequest from_file;
    from_file.file = "job.json";
    from_file = without(from_file, "/training/sequence_length");
    ASSERT_EQ(from_file.settings.size(), 1U);
    EXPECT_EQ(from_file.settings[0].json_value, "null");
    EXPECT_EQ(setting_at(from_file, "/training/sequence_length"), std::nullopt);
}

TEST(Request, SameComparesFileTextAndSettings) {
    const ScenarioRequest a = with({}, {"/training/zero_stage", "3", "form"});
    EXPECT_TRUE(same(a, with({}, {"/training/zero_stage", "3", "--zero"})));
    EXPECT_FALSE(same(a, with({}, {"/training/zero_stage", "2", "form"})));
    EXPECT_FALSE(same(a, {}));
}

// A DeepSpeed file beneath the scenario may state any key, like a scenario file.
TEST(Request, AnImportedFileCountsAsAFile) {
    ScenarioRequest imported;
    imported.imported = {{"ds.json", {{"/training/zero_stage", "2", "zero_optimization.stage"}}, {}, {}}};
    EXPECT_FALSE(same(imported, {}));
    EXPECT_EQ(without(imported, "/training/zero_stage").settings.size(), 1U);
    EXPECT_TRUE(without({}, "/training/zero_stage").settings.empty());
}

TEST(Request, QuotesWords) {
    EXPECT_EQ(quoted("say \"bf16\""), R"("say \"bf16\"")");
    EXPECT_EQ(plain_value(R"("bf16")").toStdString(), "bf16");
    EXPECT_EQ(plain_value("16").toStdString(), "16");
    EXPECT_EQ(plain_value("{\"a\":1}").toStdString(), "{\"a\":1}");
}

TEST(Request, NamesAModelThatIsNothingButANameOrAPath) {
    EXPECT_EQ(model_name_or_path(R"({"preset": "gpt2"})").toStdString(), "gpt2");
    EXPECT_EQ(model_name_or_path(R"({"file": "/m/config.json"})").toStdString(), "/m/config.json");
    EXPECT_EQ(model_name_or_path(R"({"preset": "gpt2", "num_hidden_layers": 2})").toStdString(), "");
    EXPECT_EQ(model_name_or_path("{").toStdString(), "");
}

TEST(Opened, TellsScenariosFromModels) {
    const QTemporaryDir folder;
    const auto write = [&](const char* name, const char* contents) {
        QFile file(folder.filePath(name));
        EXPECT_TRUE(file.open(QIODevice::WriteOnly));
        file.write(contents);
        return folder.filePath(name);
    };
    const ScenarioRequest current = with({}, {"/training/zero_stage", "3", ""});

    const QString scenario = write("job.json", R"({"model": {"preset": "gpt2"}})");
    EXPECT_EQ(opened(current, scenario).file, scenario.toStdString());
    EXPECT_TRUE(opened(current, scenario).settings.empty());

    const QString model = write("config.json", R"({"model_type": "llama", "hidden_size": 64})");
    EXPECT_TRUE(opened(current, model).file.empty());
    EXPECT_EQ(model_name_or_path(setting_at(opened(current, model), "/model").value_or("")),
              QDir::cleanPath(model));
    EXPECT_EQ(setting_at(opened(current, model), "/training/zero_stage"), "3");

    const QString broken = write("broken.json", R"({"model": )");
    EXPECT_EQ(opened(current, broken).file, broken.toStdString());  // whose reader says what is wrong
}

}  // namespace
}  // namespace zeroplan::gui
