#include <gtest/gtest.h>

#include <QApplication>

#include "zeroplan/gui/theme.hpp"

// Widgets need an application, and no display is promised where tests are built and run.
int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    QApplication::setStyle("Fusion");
    QApplication::setPalette(zeroplan::gui::light_palette());
    return RUN_ALL_TESTS();
}
