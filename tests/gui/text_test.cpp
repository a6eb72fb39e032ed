#include "zeroplan/gui/text.hpp"

#include <gtest/gtest.h>

namespace zeroplan::gui {
namespace {

TEST(Text, ShowsBothUnitsAndEveryDigit) {
    EXPECT_EQ(both_units(Bytes{84'943'715'697}).toStdString(), "79.11 GiB (84.94 GB)");
    EXPECT_EQ(exact(Bytes{84'943'715'697}).toStdString(), "84,943,715,697 B");
}

TEST(Text, SpeaksCategoriesInWords) {
    EXPECT_EQ(label(Category::master_weights).toStdString(), "master weights");
}

TEST(Text, AnErrorSaysPlaceBothValuesAndWayOut) {
    const Error error(ErrorCode::invalid_input, "100 GPUs do not fill whole nodes of 8", "use 96 or 104",
                      {"job.json", "/cluster/gpus_used"});
    EXPECT_EQ(sentence(error).toStdString(),
              "job.json: /cluster/gpus_used: 100 GPUs do not fill whole nodes of 8. Use 96 or 104.");
}

TEST(Description, ReadsAsLinesAndAsTable) {
    const Description said{"rank 0", {{"parameters", "1,024 B", QColor(Qt::red)}}, "fits <easily>"};
    EXPECT_EQ(plain_text(said).toStdString(), "rank 0\nparameters: 1,024 B\nfits <easily>");
    const QString html = rich_text(said);
    EXPECT_TRUE(html.contains("1,024&nbsp;B"));
    EXPECT_TRUE(html.contains("fits &lt;easily&gt;")) << html.toStdString();
}

}  // namespace
}  // namespace zeroplan::gui
