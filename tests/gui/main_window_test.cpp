#include "zeroplan/gui/main_window.hpp"

#include <gtest/gtest.h>

#include <QAccessible>
#include <QClipboard>
#include <QComboBox>
#include <QFile>
#include <QMenuBar>
#include <QPushButton>
#include <QSet>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>

#include "gui/main_window_fixture.hpp"
#include "zeroplan/command/scenario_flags.hpp"
#include "zeroplan/gui/picture.hpp"
#include "zeroplan/gui/request.hpp"

namespace zeroplan::gui {
namespace {

TEST_F(MainWindowTest, BeginsWithAPlan) {
    EXPECT_EQ(plan().scenario.model.name, "llama-3-8b");
    EXPECT_EQ(plan().scenario.world_size(), 16U);
    EXPECT_EQ(window.results().verdict().headline(), verdict_sentence(plan()));
    EXPECT_EQ(spin("/cluster/nodes").value(), 2);  // a default, shown all the same
    EXPECT_EQ(window.command().text().toStdString(),
              "zeroplan plan --model llama-3-8b --topology dgx-h100 --gpus 16 --zero 3");
}

TEST_F(MainWindowTest, EveryControlChangesThePlan) {
    const auto choose_and_check = [&](const char* pointer, const char* word) {
        const Scenario before = plan().scenario;
        choose(pointer, word);
        EXPECT_FALSE(window.results().verdict().shows_error())
            << pointer << ": " << window.results().verdict().details().toStdString();
        EXPECT_FALSE(plan().scenario == before) << pointer;
        EXPECT_EQ(field(pointer).value(plan().scenario).toStdString(), word) << pointer;
    };
    choose_and_check("/training/zero_stage", "2");
    choose_and_check("/training/recompute", "full");
    choose_and_check("/training/attention", "eager");
    choose_and_check("/training/optimizer", "sgd");
    choose_and_check("/training/compute_dtype", "fp32");
    choose_and_check("/cluster/topology", "dgx-a100");
    choose_and_check("/model", "gpt2");
    const auto type_and_check = [&](const char* pointer, int value) {
        spin(pointer).setValue(value);
        wait();
        EXPECT_EQ(field(pointer).value(plan().scenario).toInt(), value) << pointer;
    };
    type_and_check("/cluster/nodes", 4);
    EXPECT_EQ(plan().scenario.world_size(), 32U);
    type_and_check("/cluster/gpus_used", 64);
    EXPECT_EQ(plan().scenario.cluster.nodes, 8U);
    type_and_check("/training/micro_batch_size", 3);
    type_and_check("/training/gradient_accumulation_steps", 5);
    type_and_check("/training/sequence_length", 512);
    window.form().slider("/training/micro_batch_size")->setValue(4);
    wait();
    EXPECT_EQ(plan().scenario.training.micro_batch_size, 16U);
}

TEST_F(MainWindowTest, TheCommandPlansTheSame) {
    choose("/training/recompute", "selective");
    spin("/training/micro_batch_size").setValue(2);
    wait();
    command::ScenarioFlags flags;  // as the command line would be read
    const QStringList words = window.command().text().split(' ').mid(2);
    for (qsizetype i = 0; i + 1 < words.size(); i += 2)
        flags.values[words[i].toStdString()] = words[i + 1].toStdString();
    EXPECT_EQ(command::resolve(flags), plan().scenario);
}

TEST_F(MainWindowTest, ASlidersWayIsOneStepOfUndo) {
    const ScenarioRequest before = window.request();
    QSlider* slider = window.form().slider("/cluster/gpus_used");
    for (int power = 5; power <= 9; ++power) slider->setValue(power);
    wait();
    EXPECT_EQ(plan().scenario.world_size(), 512U);
    EXPECT_EQ(window.undo_stack().count(), 1);
    window.undo_stack().undo();
    wait();
    EXPECT_TRUE(same(window.request(), before));
    EXPECT_EQ(plan().scenario.world_size(), 16U);
    EXPECT_EQ(spin("/cluster/gpus_used").value(), 16);
    window.undo_stack().redo();
    wait();
    EXPECT_EQ(plan().scenario.world_size(), 512U);
}

TEST_F(MainWindowTest, ChoicesAreStepsOfTheirOwn) {
    choose("/training/zero_stage", "1");
    choose("/training/zero_stage", "2");
    EXPECT_EQ(window.undo_stack().count(), 2);
    window.undo_stack().undo();
    wait();
    EXPECT_EQ(plan().scenario.training.zero_stage, 1U);
    EXPECT_EQ(combo("/training/zero_stage").currentData().toString().toStdString(), "1");
}

TEST_F(MainWindowTest, TheLastOfManyChangesWins) {
    for (int i = 1; i <= 40; ++i) spin("/training/micro_batch_size").setValue(i);
    wait();
    EXPECT_EQ(plan().scenario.training.micro_batch_size, 40U);
    EXPECT_EQ(window.outcome().request.settings.back().json_value, "40");
}

TEST_F(MainWindowTest, WhatCannotBeIsSaidInPlaceAndForgottenWhenMended) {
    spin("/cluster/gpus_used").setValue(100);
    wait();
    ASSERT_TRUE(window.outcome().error);
    EXPECT_TRUE(window.results().verdict().shows_error());
    EXPECT_TRUE(window.results().verdict().details().contains("100"))
        << window.results().verdict().details().toStdString();
    EXPECT_TRUE(window.results().verdict().details().startsWith("GPUs"));
    EXPECT_EQ(spin("/cluster/gpus_used").value(), 100);  // what was typed stays
    EXPECT_EQ(plan().scenario.world_size(), 16U);        // the last plan stays visible
    EXPECT_FALSE(window.save(folder.filePath("a.json")));
    spin("/cluster/gpus_used").setValue(104);
    wait();
    EXPECT_FALSE(window.results().verdict().shows_error());
}

TEST_F(MainWindowTest, AnErrorIsSaidBelowItsControl) {
    spin("/cluster/gpus_used").setValue(100);
    wait();
    EXPECT_TRUE(window.form().error_at("/cluster/gpus_used").contains("100"))
        << window.form().error_at("/cluster/gpus_used").toStdString();
    EXPECT_EQ(window.form().error_at("/cluster/nodes").toStdString(), "");
    EXPECT_FALSE(spin("/cluster/gpus_used").accessibleDescription().isEmpty());
    spin("/cluster/gpus_used").setValue(104);
    wait();
    EXPECT_EQ(window.form().error_at("/cluster/gpus_used").toStdString(), "");
}

// With a message among them and others hidden, the controls stand one below the other, in tab order.
TEST_F(MainWindowTest, AMessageMovesTheControlsBelowIt) {
    window.show();
    spin("/cluster/gpus_used").setValue(100);
    wait();
    QTest::qWait(50);
    int bottom = 0;
    for (const Field& field : fields()) {
        const QWidget* control = window.form().control(field.pointer);
        if (!control->isVisible()) continue;
        const int top = control->mapTo(&window.form(), QPoint(0, 0)).y();
        EXPECT_GE(top, bottom) << field.pointer;
        EXPECT_GE(control->height(), 15) << field.pointer;
        bottom = top + control->height();
    }
}

TEST_F(MainWindowTest, DegreesOfParallelismShowWhereTheEngineHasThem) {
    window.show();
    EXPECT_FALSE(spin("/training/tensor_parallel").isVisible());
    choose("/training/zero_stage", "1");
    window.change(edited(window.request(), nullptr, "/training/engine", "megatron"), "engine");
    wait();
    EXPECT_TRUE(spin("/training/tensor_parallel").isVisible());
    spin("/training/tensor_parallel").setValue(4);
    spin("/training/pipeline_parallel").setValue(2);
    wait();
    EXPECT_EQ(plan().scenario.training.tensor_parallel, 4U);
    EXPECT_EQ(plan().scenario.training.data_parallel, 2U);
    EXPECT_TRUE(window.command().text().endsWith("--tp 4 --pp 2")) << window.command().text().toStdString();
    // What is stated stays in sight, or nobody would find what the error is about.
    window.change(edited(window.request(), nullptr, "/training/engine", "native"), "engine");
    wait();
    EXPECT_TRUE(spin("/training/tensor_parallel").isVisible());
    EXPECT_TRUE(window.form().error_at("/training/tensor_parallel").contains("tensor_parallel"));
}

TEST_F(MainWindowTest, WithoutATimeTheStreamsSayWhyAndMemoryIsShown) {
    window.change(with(window.request(), {"/training/engine", "\"deepspeed\"", ""}), "engine");
    window.change(with(window.request(), {"/training/zero_stage", "0", ""}), "stage");
    window.change(with(window.request(), {"/training/offload_optimizer", "\"cpu\"", ""}), "offload");
    wait();
    ASSERT_TRUE(window.results().planned()->no_time) << window.results().verdict().details().toStdString();
    const QString why = reason(*window.results().planned()->no_time);
    EXPECT_TRUE(window.results().lanes().placeholder().contains(why));
    EXPECT_TRUE(window.results().verdict().time().contains(why));
    EXPECT_FALSE(window.results().simulation_bar().simulate_button()->isEnabled());
    EXPECT_TRUE(window.results().simulation_bar().message().startsWith("Nothing to simulate"));
    EXPECT_GT(window.results().timeline().memory().moments.size(), 10U);
    window.simulate();  // F5 does no harm
    EXPECT_TRUE(window.settled());
}

TEST_F(MainWindowTest, WhatDoesNotFitSaysWhatWould) {
    EXPECT_EQ(window.results().verdict().remedies().toStdString(), "");
    spin("/training/micro_batch_size").setValue(2);
    wait();
    ASSERT_EQ(plan().memory.verdict, Verdict::does_not_fit);
    EXPECT_TRUE(window.results().verdict().remedies().contains("--recompute"))
        << window.results().verdict().remedies().toStdString();
    spin("/training/micro_batch_size").setValue(1);
    wait();
    EXPECT_EQ(window.results().verdict().remedies().toStdString(), "");
}

TEST_F(MainWindowTest, OpensAndSavesScenarios) {
    const QString job = write("job.json", R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 1},
                                              "cluster": {"topology": "dgx-a100", "nodes": 1},
                                              "what_if": {"stragglers": [{"rank": 3, "factor": 0.8}]}})");
    window.open(job);
    wait();
    EXPECT_EQ(plan().scenario.model.name, "gpt2");
    EXPECT_EQ(combo("/model").currentText().toStdString(), "gpt2");
    EXPECT_TRUE(window.windowTitle().startsWith("job.json"));
    EXPECT_FALSE(window.isWindowModified());
    choose("/training/zero_stage", "2");
    EXPECT_TRUE(window.isWindowModified());
    EXPECT_TRUE(window.command().text().contains("--scenario " + job + " --zero 2"));

    ASSERT_TRUE(window.save(folder.filePath("saved.json")));
    EXPECT_FALSE(window.isWindowModified());
    const std::string saved = read_text_file(folder.filePath("saved.json").toStdString());
    EXPECT_NE(saved.find("stragglers"), std::string::npos);  // which the window doesn't show, but keeps
    const Scenario scenario = plan().scenario;
    window.open(folder.filePath("saved.json"));
    wait();
    EXPECT_EQ(plan().scenario, scenario);
    // A saved scenario states every default; they follow all the same.
    spin("/cluster/gpus_used").setValue(32);
    wait();
    EXPECT_FALSE(window.results().verdict().shows_error())
        << window.results().verdict().details().toStdString();
    EXPECT_EQ(plan().scenario.training.data_parallel, 32U);
}

TEST_F(MainWindowTest, ABadFileIsAnErrorWithItsPlaceAndUndoLeadsBack) {
    window.open(write("bad.json", R"({"model": {"preset": "gpt2"}, "training": {"zero_stge": 1}})"));
    wait();
    EXPECT_TRUE(window.results().verdict().details().contains("bad.json"));
    EXPECT_TRUE(window.results().verdict().details().contains("zero_stage"));  // the nearest known key
    window.open(folder.filePath("missing.json"));
    wait();
    EXPECT_TRUE(window.results().verdict().details().contains("missing.json"));
    window.open(write("cut.json", R"({"model": {"preset": "gp)"));
    wait();
    EXPECT_TRUE(window.results().verdict().shows_error());
    while (window.undo_stack().canUndo()) window.undo_stack().undo();
    wait();
    EXPECT_FALSE(window.results().verdict().shows_error());
}

TEST_F(MainWindowTest, ADroppedFileIsOpened) {
    drop(write("job.json", R"({"model": {"preset": "gpt2-xl"}})"));
    EXPECT_EQ(plan().scenario.model.name, "gpt2-xl");
    drop(write("config.json",
               R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 1000,
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": false})"));
    EXPECT_FALSE(window.results().verdict().shows_error())
        << window.results().verdict().details().toStdString();
    EXPECT_EQ(plan().scenario.model.layers, 2U);
    EXPECT_TRUE(combo("/model").currentText().endsWith("/config.json"));
}

TEST_F(MainWindowTest, ABaselineStandsBesideOnOneScale) {
    ResultsView& results = window.results();
    results.pin_baseline();
    choose("/training/zero_stage", "0");
    window.resize(1200, 800);
    window.grab();
    EXPECT_FALSE(results.baseline_ranks().isHidden());
    EXPECT_TRUE(results.baseline_ranks().details().contains("ZeRO 3"));
    EXPECT_TRUE(results.ranks().details().contains("ZeRO 0"));
    EXPECT_TRUE(results.table().tab_separated().contains("Difference"));
    EXPECT_TRUE(results.verdict().difference().contains("llama-3-8b, ZeRO 3, 16 GPUs"));
    EXPECT_TRUE(results.verdict().difference().contains("device peak +"));
    EXPECT_TRUE(results.verdict().difference().contains(", step "));
    EXPECT_TRUE(results.verdict().pin_button()->isChecked());
    results.verdict().pin_button()->click();
    EXPECT_EQ(results.verdict().difference().toStdString(), "");
    EXPECT_TRUE(results.baseline_ranks().isHidden());
    EXPECT_FALSE(results.table().tab_separated().contains("Difference"));
}

TEST_F(MainWindowTest, CopiesTableAndCommand) {
    for (const auto* button : window.findChildren<QPushButton*>())
        if (button->text() == "&Copy") const_cast<QPushButton*>(button)->click();
    EXPECT_EQ(QGuiApplication::clipboard()->text(), window.command().text());
}

TEST_F(MainWindowTest, CopiesTheVerdict) {
    window.results().verdict().copy_button()->click();
    const QString copied = QGuiApplication::clipboard()->text();
    EXPECT_TRUE(copied.startsWith(verdict_sentence(plan())));
    EXPECT_TRUE(copied.contains(window.results().verdict().time()));
}

TEST_F(MainWindowTest, WritesPictures) {
    window.resize(1000, 700);
    for (const char* name : {"a.png", "a.svg"}) {
        ASSERT_TRUE(window.export_picture(folder.filePath(name)));
        EXPECT_GT(QFileInfo(folder.filePath(name)).size(), 5000) << name;
    }
    EXPECT_FALSE(window.export_picture(folder.filePath("a.xyz")));
    EXPECT_FALSE(window.export_picture("/nonexistent/a.png"));
    const QImage image(folder.filePath("a.png"));
    QSet<QRgb> colours;
    for (int y = 0; y < image.height(); y += 3)
        for (int x = 0; x < image.width(); x += 3) colours.insert(image.pixel(x, y));
    EXPECT_GT(colours.size(), 20);
}

TEST_F(MainWindowTest, TheDarkThemeReachesEveryPart) {
    window.resize(1000, 700);
    window.set_theme(ThemeChoice::dark);
    QCoreApplication::processEvents();
    EXPECT_TRUE(is_dark(window.results().ranks().palette()));
    EXPECT_LT(window.results().ranks().grab().toImage().pixelColor(1, 1).lightness(), 80);
    EXPECT_LT(window.results().verdict().grab().toImage().pixelColor(2, 2).lightness(), 80);
    window.set_theme(ThemeChoice::light);
}

TEST_F(MainWindowTest, SelectingARankShowsItsGroup) {
    window.results().ranks().select_rank(5);
    EXPECT_EQ(window.results().ranks().selected_rank(), 5U);
    choose("/training/zero_stage", "1");
    EXPECT_EQ(window.results().ranks().selected_rank(), 5U);  // stays over plans
    window.results().set_axis(StepAxis::operations);
    EXPECT_EQ(window.results().timeline().memory().axis, StepAxis::operations);
}

TEST_F(MainWindowTest, TheClusterFollowsThePlanAndTheSelectedRank) {
    ResultsView& results = window.results();
    EXPECT_EQ(results.page(), ResultsPage::memory);
    EXPECT_EQ(results.topology().details().toStdString(),
              "dgx-h100, 16 GPUs, 2 nodes, one switch, the job packed");
    spin("/cluster/nodes").setValue(4);
    wait();
    EXPECT_TRUE(results.topology().details().contains("32 GPUs"));
    results.ranks().select_rank(20);
    EXPECT_EQ(results.topology().selected_rank(), 20U);
    results.set_page(ResultsPage::cluster);
    QTest::keyClick(&results.topology(), Qt::Key_Right);
    EXPECT_EQ(results.ranks().selected_rank(), 21U);
}

TEST_F(MainWindowTest, NoTwoShareAShortcutLetter) {
    QStringList labels;
    for (const Field& field : fields()) labels << field.label;
    for (const QAction* menu : window.menuBar()->actions()) labels << menu->text();
    for (const auto* button : window.findChildren<QPushButton*>()) labels << button->text();
    QSet<QString> taken;
    for (const QString& label : labels) {
        const qsizetype mark = label.indexOf('&');
        if (mark < 0) continue;
        const QString letter = label.mid(mark + 1, 1).toUpper();
        EXPECT_FALSE(taken.contains(letter)) << label.toStdString();
        taken.insert(letter);
    }
}

TEST_F(MainWindowTest, EveryControlHasANameAndCanBeReachedByKeyboard) {
    QSet<QWidget*> chain;
    for (QWidget* w = &window; !chain.contains(w); w = w->nextInFocusChain()) chain.insert(w);
    for (const Field& field : fields()) {
        QWidget* control = window.form().control(field.pointer);
        EXPECT_TRUE(chain.contains(control)) << field.pointer;
        auto* accessible = QAccessible::queryAccessibleInterface(control);
        EXPECT_FALSE(accessible->text(QAccessible::Name).isEmpty()) << field.pointer;
    }
    EXPECT_TRUE(chain.contains(&window.results().ranks()));
}

}  // namespace
}  // namespace zeroplan::gui
