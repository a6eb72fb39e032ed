#pragma once
#include <gtest/gtest.h>

#include <QComboBox>
#include <QDragEnterEvent>
#include <QFile>
#include <QMimeData>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>

#include "zeroplan/gui/main_window.hpp"

namespace zeroplan::gui {

inline constexpr int patience_ms = 60'000;

/// A window without a simulator that has planned what it begins with.
class MainWindowTest : public testing::Test {
protected:
    MainWindowTest() : window(options()) { wait(); }

    static MainWindow::Options options() {
        MainWindow::Options options;
        options.simulator = "/nonexistent/zeroplan-sim";
        options.simulate_by_itself = false;
        return options;
    }
    void wait() {
        ASSERT_TRUE(QTest::qWaitFor([this] { return window.settled(); }, patience_ms));
    }
    QComboBox& combo(const char* pointer) {
        return *qobject_cast<QComboBox*>(window.form().control(pointer));
    }
    QSpinBox& spin(const char* pointer) { return *qobject_cast<QSpinBox*>(window.form().control(pointer)); }
    void choose(const char* pointer, const char* word) {
        combo(pointer).setCurrentIndex(combo(pointer).findData(word));
        wait();
    }
    const Plan& plan() { return *window.results().planned()->plan; }
    QLineEdit& line_edit(const char* pointer) {
        return *qobject_cast<QLineEdit*>(window.form().control(pointer));
    }
    void type(const char* pointer, const char* words) {
        QLineEdit& edit = line_edit(pointer);
        edit.selectAll();
        QTest::keyClick(&edit, Qt::Key_Delete);
        QTest::keyClicks(&edit, words);
        QTest::keyClick(&edit, Qt::Key_Return);
        wait();
    }
    QString write(const char* name, const char* contents) {
        QFile file(folder.filePath(name));
        EXPECT_TRUE(file.open(QIODevice::WriteOnly));
        file.write(contents);
        return folder.filePath(name);
    }
    void drop(const QString& path) {
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(path)});
        QDragEnterEvent enter({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, {});
        QCoreApplication::sendEvent(&window, &enter);
        QDropEvent dropped(QPointF(10, 10), Qt::CopyAction, &data, Qt::LeftButton, {});
        QCoreApplication::sendEvent(&window, &dropped);
        wait();
    }

    QTemporaryDir folder;
    MainWindow window;
};

}  // namespace zeroplan::gui
