// What-ifs in the window: from the form to the plan, the command and the file.
#include "gui/main_window_fixture.hpp"
#include "zeroplan/gui/request.hpp"

namespace zeroplan::gui {
namespace {

TEST_F(MainWindowTest, WhatIfsTravelToPlanCommandAndFile) {
    type("/what_if/stragglers", "5=0.8");
    type("/what_if/fabric", "fat-tree:1:4");
    type("/what_if/placement", "1,0");
    type("/what_if/failures/gpu_mtbf_s", "50000h");
    type("/what_if/failures/checkpoint_bytes_per_second", "20e9");
    const WhatIf& asked = window.results().planned()->what_if;
    EXPECT_EQ(asked.stragglers, (std::vector<Straggler>{{5, 0.8}}));
    EXPECT_EQ(asked.fabric->leaf_oversubscription, 4);
    EXPECT_EQ(asked.placement.nodes, (std::vector<std::uint64_t>{1, 0}));
    EXPECT_EQ(asked.failures->gpu_mtbf_s, 50000 * 3600.0);
    EXPECT_EQ(plan().rank_groups.size(), 2U);  // rank 5 and the others
    EXPECT_TRUE(window.command().text().startsWith("zeroplan sim --model llama-3-8b"));
    EXPECT_TRUE(
        window.command().text().endsWith("--straggler 5=0.8 --fabric fat-tree:1:4 --placement 1,0 --gpu-mtbf "
                                         "50000h --checkpoint-bandwidth 20e9"));
    ASSERT_TRUE(window.save(folder.filePath("asked.json")));
    while (window.undo_stack().canUndo()) window.undo_stack().undo();
    wait();
    EXPECT_TRUE(window.results().planned()->what_if.empty());
    EXPECT_EQ(line_edit("/what_if/fabric").text().toStdString(), "");
    window.open(folder.filePath("asked.json"));
    wait();
    EXPECT_EQ(window.results().planned()->what_if.stragglers.size(), 1U);
    EXPECT_EQ(line_edit("/what_if/stragglers").text().toStdString(), "5=0.8");
    EXPECT_EQ(line_edit("/what_if/fabric").text().toStdString(), "fat-tree:1:4");
    EXPECT_EQ(line_edit("/what_if/placement").text().toStdString(), "1,0");
    EXPECT_EQ(line_edit("/what_if/failures/gpu_mtbf_s").text().toStdString(), "50000h");
    EXPECT_EQ(window.command().text(), "zeroplan sim --scenario " + folder.filePath("asked.json"));
    type("/what_if/stragglers", "");  // what is taken away leaves the others
    EXPECT_TRUE(window.command().text().startsWith("zeroplan sim --scenario"));
}

TEST_F(MainWindowTest, ABadWhatIfSaysSoBesideItsFieldAndIsKept) {
    const auto error_after = [&](const char* pointer, const char* words) {
        type(pointer, words);
        EXPECT_TRUE(window.results().verdict().shows_error()) << words;
        EXPECT_EQ(line_edit(pointer).text().toStdString(), words);
        return window.form().error_at(pointer).toStdString();
    };
    EXPECT_TRUE(error_after("/what_if/stragglers", "5").starts_with("\"5\" has no \"=\""));
    EXPECT_TRUE(error_after("/what_if/stragglers", "99=0.5").starts_with("There is no rank 99"));
    choose("/training/zero_stage", "2");  // another edit loses nothing
    EXPECT_EQ(line_edit("/what_if/stragglers").text().toStdString(), "99=0.5");
    type("/what_if/stragglers", "");
    EXPECT_FALSE(window.results().verdict().shows_error());
    EXPECT_EQ(window.form().error_at("/what_if/stragglers").toStdString(), "");
    EXPECT_NE(error_after("/what_if/slow_links", "nik:5=0.5"), "");
    type("/what_if/slow_links", "");
    EXPECT_NE(error_after("/what_if/placement", "spred"), "");
    type("/what_if/placement", "");
    EXPECT_NE(error_after("/what_if/fabric", "mesh:4"), "");
    type("/what_if/fabric", "");
    EXPECT_NE(error_after("/what_if/background", "/nonexistent.json"), "");
    type("/what_if/background", "");
    type("/what_if/failures/gpu_mtbf_s", "50000h");  // the one that is missing says so
    EXPECT_NE(window.form().error_at("/what_if/failures/checkpoint_bytes_per_second").toStdString(), "");
    type("/what_if/failures/checkpoint_bytes_per_second", "20e9");
    EXPECT_FALSE(window.results().verdict().shows_error());
}

TEST_F(MainWindowTest, GoodputNeedsNoSimulation) {
    type("/what_if/failures/gpu_mtbf_s", "50000h");
    type("/what_if/failures/checkpoint_bytes_per_second", "20e9");
    const QString phrase = text(goodput_phrase(*window.results().planned()->goodput));
    EXPECT_TRUE(window.results().verdict().time().contains(as_sentence(phrase)));
    EXPECT_TRUE(window.results().what_if().startsWith("A long run with failures\n  the job fails every"));
}

}  // namespace
}  // namespace zeroplan::gui
