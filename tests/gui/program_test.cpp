// zeroplan-gui as a user meets it: a child process.
#include <gtest/gtest.h>

#include <QFile>
#include <QFileInfo>
#include <QImage>
#include <QProcess>
#include <QTemporaryDir>

namespace {

class ProgramTest : public testing::Test {
protected:
    struct Result {
        int status = -1;
        QString output, errors;
    };
    // Without a display, whatever this machine has.
    Result run(const QStringList& arguments, const char* platform = nullptr) {
        QProcess process;
        auto environment = QProcessEnvironment::systemEnvironment();
        for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) environment.remove(name);
        environment.insert("HOME", folder.path());
        if (platform != nullptr) environment.insert("QT_QPA_PLATFORM", platform);
        process.setProcessEnvironment(environment);
        process.start(ZEROPLAN_BIN_DIR "/zeroplan-gui", arguments);
        EXPECT_TRUE(process.waitForFinished(100'000)) << process.errorString().toStdString();
        EXPECT_EQ(process.exitStatus(), QProcess::NormalExit);
        return {process.exitCode(), QString::fromUtf8(process.readAllStandardOutput()),
                QString::fromUtf8(process.readAllStandardError())};
    }
    QString path(const char* name) const { return folder.filePath(name); }

    QTemporaryDir folder;
};

TEST_F(ProgramTest, HelpNeedsNoDisplayAndGivesAnExample) {
    const Result result = run({"--help"});
    EXPECT_EQ(result.status, 0);
    EXPECT_TRUE(result.output.contains("Example: zeroplan gui --model"));
}

TEST_F(ProgramTest, WithoutADisplayThereIsAWayOut) {
    const Result result = run({});
    EXPECT_EQ(result.status, 2);
    EXPECT_TRUE(result.errors.contains("no display")) << result.errors.toStdString();
    EXPECT_TRUE(result.errors.contains("--screenshot FILE"));
}

TEST_F(ProgramTest, NamesThePlatformThatDoesNotWork) {
    const Result result = run({"--model", "gpt2"}, "nonsense");
    EXPECT_EQ(result.status, 2);
    EXPECT_TRUE(result.errors.startsWith("zeroplan: error: there is no display"))
        << result.errors.toStdString();
    EXPECT_TRUE(result.errors.contains("\"nonsense\"")) << result.errors.toStdString();
}

TEST_F(ProgramTest, ScreenshotsWhateverPlatformIsAskedFor) {
    for (const char* platform : {"xcb", "wayland", "nonsense", ""}) {
        const QString picture = path((std::string("of_") + platform + ".png").c_str());
        const Result result = run({"--screenshot", picture, "--model", "gpt2", "--no-simulation"}, platform);
        EXPECT_EQ(result.status, 0) << platform << result.errors.toStdString();
        EXPECT_EQ(QImage(picture).size(), QSize(1280, 860)) << platform;
    }
}

TEST_F(ProgramTest, ScreenshotsAScenario) {
    QFile file(path("job.json"));
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write(
        R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 2}, "cluster": {"topology": "dgx-a100"}})");
    file.close();
    const Result result = run({"--screenshot", path("a.png"), path("job.json"), "--size", "1000x700"});
    EXPECT_EQ(result.status, 0) << result.errors.toStdString();
    EXPECT_EQ(QImage(path("a.png")).size(), QSize(1000, 700));
    EXPECT_EQ(result.output.toStdString(), "");
}

TEST_F(ProgramTest, ScreenshotsAsSvgInTheDarkAndReports) {
    const Result result = run({"--screenshot", path("a.svg"), "--model", "llama-3-70b", "--gpus", "8",
                               "--zero", "0", "--theme", "dark", "--no-simulation", "--json"});
    EXPECT_EQ(result.status, 1) << result.errors.toStdString();  // it does not fit
    EXPECT_GT(QFileInfo(path("a.svg")).size(), 10'000);
    EXPECT_TRUE(result.output.startsWith('{')) << result.output.toStdString();
    EXPECT_TRUE(result.output.contains("\"does_not_fit\""));
}

TEST_F(ProgramTest, SavesTheScenarioWithThePictureAndNotWithoutIt) {
    const QStringList picture{"--screenshot", path("a.png"),     "--no-simulation", "--model",
                              "gpt2",         "--save-scenario", path("saved.json")};
    EXPECT_EQ(run(picture).status, 0);
    EXPECT_TRUE(QFile::remove(path("saved.json")));
    EXPECT_TRUE(QFile::remove(path("a.png")));
    // Resolves, and is no plan of this version's.
    const Result refused =
        run(picture + QStringList{"--engine", "deepspeed", "--zero", "3", "--pp", "2", "--gpus", "4"});
    EXPECT_EQ(refused.status, 2) << refused.errors.toStdString();
    EXPECT_FALSE(QFile::exists(path("saved.json")));
    EXPECT_FALSE(QFile::exists(path("a.png")));
}

TEST_F(ProgramTest, BadInputIsOneErrorAndNoPicture) {
    const auto fails = [&](const QStringList& arguments, const char* said) {
        const Result result = run(arguments);
        EXPECT_EQ(result.status, 2) << said;
        EXPECT_TRUE(result.errors.contains(said)) << result.errors.toStdString();
        EXPECT_FALSE(QFile::exists(path("a.png")));
    };
    fails({"--screenshot", path("a.png"), path("missing.json")}, "missing.json");
    fails({"--screenshot", path("a.png"), "--model", "gpt2", "--gpus", "100"}, "100");
    fails({"--screenshot", path("a.png"), "--model", "gpt-2"}, "did you mean gpt2");
    fails({"--screenshot", path("a.jpg")}, ".png");
    fails({"--screenshot", path("a.png"), "--size", "big"}, "1280x860");
    fails({"--screenshot", path("a.png"), "--size", "10x10"}, "640x480");
    for (const char* size : {"-4294966016x860", "1280x 860", "+1280x860", "1280x860x2", "1280", "x860",
                             "20000x860", "nanx860", "1e3x1e3"})
        fails({"--screenshot", path("a.png"), "--model", "gpt2", "--size", size}, "is no size of a window");
    for (const char* scale : {"nan", "inf", "-inf", "0", "-1", "0.49", "8.1"})
        fails({"--screenshot", path("a.png"), "--model", "gpt2", "--scale", scale}, "is not from 0.5 to 8");
    fails({"--screenshot", path("a.png"), "--model", "gpt2", "--size", "16384x16384", "--scale", "8"},
          "a PNG may have 268 million");
    fails({"--screenshoot", path("a.png")}, "--screenshot");
    fails({"a.json", "--scenario", "b.json"}, "b.json");
}

TEST_F(ProgramTest, APictureThatCannotBeWrittenIsAnError) {
    const Result result = run({"--screenshot", "/nonexistent/a.png", "--model", "gpt2", "--no-simulation"});
    EXPECT_EQ(result.status, 2);
    EXPECT_TRUE(result.errors.contains("/nonexistent/a.png")) << result.errors.toStdString();
}

}  // namespace
