#include "zeroplan/gui/ingredients_table.hpp"

#include <gtest/gtest.h>

#include "gui/sample_plan.hpp"

namespace zeroplan::gui {
namespace {

TEST(IngredientsTable, CopiesEveryDigit) {
    const Plan plan = test::uniform_plan(8);
    IngredientsTable table;
    table.set_groups(plan.rank_groups[0], nullptr);
    EXPECT_EQ(table.tab_separated().toStdString(),
              "At the peak\tBytes\tSize\tShare\n"
              "device\t7,936\t7.75 KiB\t100.0 %\n"
              "runtime\t4,096\t4.00 KiB\t51.6 %\n"
              "reserved only\t256\t256 B\t3.2 %\n"
              "allocated\t3,584\t3.50 KiB\t45.2 %\n"
              "activations\t2,048\t2.00 KiB\t25.8 %\n"
              "gradients\t512\t512 B\t6.5 %\n"
              "parameters\t1,024\t1.00 KiB\t12.9 %\n");
}

TEST(IngredientsTable, PutsTheBaselineBeside) {
    const Plan now = test::uniform_plan(8),
               before = test::sample_plan({{{{0, 7}}, 4096, 0, 256, 4096}}, 16384);
    IngredientsTable table;
    table.set_groups(now.rank_groups[0], &before.rank_groups[0]);
    const QString text = table.tab_separated();
    EXPECT_TRUE(text.contains("activations\t2,048\t2.00 KiB\t25.8 %\t4,096\t−2,048\n")) << text.toStdString();
    EXPECT_TRUE(text.contains("parameters\t1,024\t1.00 KiB\t12.9 %\t1,024\t0\n"));
}

}  // namespace
}  // namespace zeroplan::gui
