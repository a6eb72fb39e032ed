#include "zeroplan/gui/simulation.hpp"

#include <gtest/gtest.h>

#include <QFile>
#include <QFileInfo>
#include <QSignalSpy>
#include <QTest>

#include "gui/sample_plan.hpp"
#include "zeroplan/gui/main_window.hpp"
#include "zeroplan/gui/request.hpp"
#include "zeroplan/what_if_io.hpp"

namespace zeroplan::gui {
namespace {

// A program in place of zeroplan-sim that does what a shell script says.
class SimulationTest : public testing::Test {
protected:
    QString script(const char* body) {
        const QString path = folder.filePath("zeroplan-sim");
        QFile file(path);
        EXPECT_TRUE(file.open(QIODevice::WriteOnly));
        file.write(QByteArray("#!/bin/sh\n") + body);
        file.close();
        file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        return path;
    }
    QString failure_of(const char* body) {
        Simulation simulation(script(body));
        QSignalSpy failed(&simulation, &Simulation::failed);
        simulation.start(plan);
        EXPECT_TRUE(failed.count() == 1 || failed.wait(20'000));
        EXPECT_FALSE(simulation.running());
        return failed.isEmpty() ? QString() : failed.first().first().toString();
    }
    QTemporaryDir folder;
    std::shared_ptr<const Plan> plan =
        std::make_shared<const Plan>(make_plan(resolve_scenario(starting_request())));
};

TEST_F(SimulationTest, RepeatsWhatTheChildSaysOfItsError) {
    EXPECT_EQ(failure_of("echo 'zeroplan: error: no route between nodes' >&2; exit 3").toStdString(),
              "No route between nodes.");
    EXPECT_EQ(failure_of("exit 3").toStdString(), "zeroplan-sim ended with status 3.");
}

TEST_F(SimulationTest, SaysWhenTheChildCrashes) {
    EXPECT_TRUE(failure_of("echo 'deep in the solver' >&2; kill -ABRT $$")
                    .startsWith("zeroplan-sim crashed. Deep in"));
}

TEST_F(SimulationTest, RefusesWhatIsNoReport) {
    EXPECT_TRUE(failure_of("echo '{\"kind\": \"sim\"}'").contains("zeroplan-sim wrote no number"));
    EXPECT_TRUE(failure_of("echo not json").contains("no JSON object"));
}

TEST_F(SimulationTest, SaysWhenTheProgramIsMissing) {
    Simulation simulation("/nonexistent/zeroplan-sim");
    EXPECT_FALSE(simulation.available());
    QSignalSpy failed(&simulation, &Simulation::failed);
    simulation.start(plan);
    EXPECT_TRUE(failed.count() == 1 || failed.wait(20'000));
    EXPECT_TRUE(failed.first().first().toString().contains("/nonexistent/zeroplan-sim"));
}

TEST_F(SimulationTest, CancelEndsTheChild) {
    Simulation simulation(script("exec sleep 600"));
    QSignalSpy cancelled(&simulation, &Simulation::cancelled);
    QSignalSpy failed(&simulation, &Simulation::failed);
    simulation.start(plan);
    EXPECT_TRUE(simulation.running());
    simulation.cancel();
    EXPECT_FALSE(simulation.running());
    EXPECT_EQ(cancelled.count(), 1);
    simulation.cancel();
    EXPECT_EQ(cancelled.count(), 1);
    QTest::qWait(50);
    EXPECT_EQ(failed.count(), 0);
}

TEST_F(SimulationTest, AWindowShowsTheFailureAndKeepsTheClosedForm) {
    MainWindow::Options options;
    options.simulator = script("echo 'zeroplan: error: the solver gave up' >&2; exit 3");
    options.pause_ms = 0;
    MainWindow window(options);
    ASSERT_TRUE(QTest::qWaitFor([&] { return window.settled(); }, 60'000));
    EXPECT_EQ(window.simulation_failure().toStdString(), "The solver gave up.");
    EXPECT_EQ(window.results().simulation_bar().message().toStdString(), "The solver gave up.");
    EXPECT_FALSE(window.results().lanes().lanes().empty());
    EXPECT_EQ(window.results().lanes().details().toStdString(), "closed form");
}

TEST_F(SimulationTest, ANewChangeEndsASimulationThatRuns) {
    MainWindow::Options options;
    options.simulator = script("exec sleep 600");
    options.pause_ms = 0;
    MainWindow window(options);
    auto& bar = window.results().simulation_bar();
    ASSERT_TRUE(QTest::qWaitFor([&] { return bar.message() == "Simulating …"; }, 60'000));
    window.cancel_simulation();
    EXPECT_TRUE(window.settled());
    EXPECT_TRUE(bar.message().startsWith("Simulation cancelled"));
}

TEST_F(SimulationTest, TheChildIsAskedWhatTheWindowIsAsked) {
    Simulation simulation(script("cat \"$2\" >&2; exit 3"));
    QSignalSpy failed(&simulation, &Simulation::failed);
    WhatIf what_if;
    what_if.stragglers = {{5, 0.8}};
    simulation.start(plan, what_if);
    ASSERT_TRUE(failed.count() == 1 || failed.wait(20'000));
    EXPECT_TRUE(failed.first().first().toString().contains("\"factor\": 0.8"))
        << failed.first().first().toString().toStdString();
}

TEST_F(SimulationTest, AWindowSaysWhatAWhatIfComesTo) {
    MainWindow::Options options;
    options.simulator = ZEROPLAN_BIN_DIR "/zeroplan-sim";
    if (!QFileInfo(options.simulator).isExecutable()) GTEST_SKIP() << "zeroplan-sim isn't built";
    options.pause_ms = 0;
    options.request = edited(edited(starting_request(), nullptr, "/what_if/stragglers", "5=0.8"), nullptr,
                             "/what_if/slow_links", "nic:9=0.5");
    MainWindow window(options);
    ASSERT_TRUE(QTest::qWaitFor([&] { return window.settled(); }, 60'000));
    EXPECT_EQ(window.simulation_failure().toStdString(), "");
    for (const char* words :
         {"What if, each cause on top of those above it", "rank 5 computes at 0.8 of its speed",
          "the NIC of rank 9 at 0.5 of its bandwidth", "everybody waits for rank 5"})
        EXPECT_TRUE(window.results().what_if().contains(words)) << words;
    const QString time = window.results().verdict().time(), bar = window.results().simulation_bar().message();
    EXPECT_TRUE(time.contains("Without the what-ifs "));
    EXPECT_TRUE(time.contains("(mean over all ranks)")) << time.toStdString();
    const QString step = time.section(' ', 1, 2);  // "Step 1.221 s (coupled flows)"
    EXPECT_TRUE(bar.contains("a step takes " + step + ", the closed form says ")) << bar.toStdString();
    const Planned& planned = *window.results().planned();
    EXPECT_GT(planned.slowest->step_time_s, 1.1 * planned.timeline->step_time_s);
    EXPECT_TRUE(bar.contains(text(format_seconds(planned.slowest->step_time_s)))) << bar.toStdString();
    EXPECT_TRUE(
        window.results().topology().accessibleDescription().contains("InfiniBand: 50 GB/s a GPU, busy "));
}

}  // namespace
}  // namespace zeroplan::gui
