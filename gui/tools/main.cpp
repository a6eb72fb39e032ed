#include <unistd.h>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <QApplication>
#include <QEventLoop>
#include <QTimer>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "zeroplan/command/output.hpp"
#include "zeroplan/command/output_files.hpp"
#include "zeroplan/command/run_command.hpp"
#include "zeroplan/command/scenario_flags.hpp"
#include "zeroplan/command/what_if_flags.hpp"
#include "zeroplan/gui/main_window.hpp"
#include "zeroplan/gui/picture.hpp"
#include "zeroplan/gui/request.hpp"
#include "zeroplan/version.hpp"

namespace {

using namespace zeroplan;
using namespace zeroplan::gui;

constexpr const char* example =
    R"(Example: zeroplan gui --model llama-3-8b --topology dgx-h100 --gpus 16 --zero 3
         zeroplan gui --screenshot plan.png scenario.json
Exit status: 0 done, and it fits or is marginal; 1 it does not fit; 2 bad input; 3 a simulation failed or the picture could not be written)";

constexpr int longest_side = 16384;  ///< of a window, in pixels
constexpr double least_scale = 0.5, most_scale = 8;
constexpr double most_pixels = double{longest_side} * longest_side;  ///< of a PNG: 1 GiB while it is drawn
constexpr int screenshot_limit_ms = 300'000;

struct Arguments {
    command::ScenarioFlags flags;
    command::WhatIfFlags what_if;
    command::OutputFlags output;
    std::string scenario, screenshot, size = "1280x860", theme, page = "memory";
    double scale = 1;
    bool no_simulation = false;
};

void add_arguments(CLI::App& app, Arguments& arguments) {
    app.add_option("SCENARIO", arguments.scenario, "Scenario file to open")->option_text("FILE");
    app.add_option("--screenshot", arguments.screenshot, "Write the window to FILE (.png or .svg) and exit")
        ->type_name("FILE");
    app.add_option("--size", arguments.size, "Size of the window in pixels")
        ->type_name("WxH")
        ->capture_default_str();
    app.add_option("--scale", arguments.scale, "Pixels of a PNG for each of the window's")
        ->capture_default_str();
    app.add_option("--theme", arguments.theme, "Colours; as the system's by default")
        ->check(CLI::IsMember({"light", "dark"}));
    app.add_option("--page", arguments.page, "What is shown first")
        ->check(CLI::IsMember({"memory", "cluster", "what-if"}))
        ->capture_default_str();
    app.add_flag("--no-simulation", arguments.no_simulation,
                 "Show the closed form only, unless asked for more");
    command::add_output_flags(app, arguments.output);
    command::add_scenario_flags(app, arguments.flags);
    command::add_what_if_flags(app, arguments.what_if);
    app.footer(example);
}

[[noreturn]] void refuse(const char* flag, const std::string& message, const std::string& hint) {
    throw Error(ErrorCode::invalid_input, message, hint, {"command line", flag});
}

/// Digits only: a sign or a blank would hide another number.
int read_pixels(std::string_view digits) {
    int pixels = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), pixels);
    return parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size() ? pixels : 0;
}

QSize parse_size(const std::string& size) {
    const std::size_t cross = std::min(size.find('x'), size.size());
    const int width = read_pixels(std::string_view(size).substr(0, cross));
    const int height = read_pixels(std::string_view(size).substr(std::min(cross + 1, size.size())));
    if (width < 640 || height < 480 || width > longest_side || height > longest_side)
        refuse("--size", "\"" + size + "\" is no size of a window",
               "as in --size 1280x860; from 640x480 to 16384x16384");
    return {width, height};
}

/// Also refuses what is no number, which no comparison holds for, and a picture that memory can't hold.
void check_scale(double scale, QSize size, bool png) {
    if (!(scale >= least_scale && scale <= most_scale))
        refuse("--scale", fmt::format("{} is not from {} to {}", scale, least_scale, most_scale),
               "2 gives two pixels of a PNG for each of the window's");
    const double pixels = scale * scale * size.width() * size.height();
    if (png && pixels > most_pixels)
        refuse("--scale",
               fmt::format("{} times {}x{} are {:.0f} million pixels, and a PNG may have {:.0f} million",
                           scale, size.width(), size.height(), pixels / 1e6, most_pixels / 1e6),
               "use a smaller --scale or --size, or write an .svg");
}

std::optional<ScenarioRequest> request_of(Arguments& arguments) {
    if (!arguments.scenario.empty() && !arguments.flags.scenario.empty())
        refuse("--scenario",
               "two scenarios are given: " + arguments.scenario + " and " + arguments.flags.scenario,
               "give one of them");
    if (!arguments.scenario.empty()) arguments.flags.scenario = arguments.scenario;
    arguments.flags.more = command::what_if_settings(arguments.what_if);
    ScenarioRequest request = command::to_request(arguments.flags);
    if (request.file.empty() && request.settings.empty()) return std::nullopt;
    return request;
}

/// A step of deliver(): writes --save-scenario; what can't be resolved is refused before there is a window.
std::function<void()> save_step(const Arguments& arguments) {
    if (arguments.flags.save_scenario.empty()) return [] {};
    return command::save_step(arguments.flags, command::resolve(arguments.flags));
}

bool has_display() {
    const auto set = [](const char* name) {
        const char* value = std::getenv(name);
        return value != nullptr && *value != '\0';
    };
    return set("QT_QPA_PLATFORM") || set("DISPLAY") || set("WAYLAND_DISPLAY");
}

[[noreturn]] void no_display(const QString& why) {
    command::print_error(Error(ErrorCode::invalid_input,
                               "there is no display to open a window on" + why.toStdString(),
                               "log in to a desktop or use ssh -X; --screenshot FILE needs no display"));
    std::_Exit(2);
}

/// The plug-in that the environment asks for may be what doesn't work.
QString asked_platform() {
    const QString platform = qEnvironmentVariable("QT_QPA_PLATFORM");
    return platform.isEmpty() ? QString() : QString(" (QT_QPA_PLATFORM is \"%1\")").arg(platform);
}

// Qt ends the process when it can't connect to the display; say what to do about it first.
void on_qt_message(QtMsgType type, const QMessageLogContext&, const QString& message) {
    if (type == QtFatalMsg)  // with its own words where they are about something else
        no_display(message.contains("platform plugin") ? QString(": it does not answer") + asked_platform()
                                                       : " (" + message + ")");
    if (type == QtCriticalMsg || qEnvironmentVariableIsSet("QT_DEBUG_PLUGINS"))
        std::fprintf(stderr, "%s\n", qPrintable(message));
}

void set_up_platform(bool screenshot) {
    // Whatever the environment says is for windows: a picture needs no display, nor a plug-in for one.
    if (screenshot) qputenv("QT_QPA_PLATFORM", "offscreen");
    if (!has_display()) no_display({});
    qInstallMessageHandler(on_qt_message);
}

void wait_until_settled(MainWindow& window) {
    if (window.settled()) return;
    QEventLoop loop;
    QObject::connect(&window, &MainWindow::has_settled, &loop, &QEventLoop::quit);
    QTimer::singleShot(screenshot_limit_ms, &loop, &QEventLoop::quit);
    loop.exec();
}

int take_screenshot(MainWindow& window, const Arguments& arguments, const std::function<void()>& save) {
    wait_until_settled(window);
    if (window.outcome().error) throw *window.outcome().error;
    if (!window.settled() || !window.outcome().planned)
        throw Error(ErrorCode::run_failed, "the plan and its simulation did not end within 5 minutes",
                    "try --no-simulation");
    QCoreApplication::processEvents();
    const Plan& plan = *window.outcome().planned->plan;
    command::deliver(
        {save, [&] { write_picture(window, QString::fromStdString(arguments.screenshot), arguments.scale); },
         [&] {
             if (arguments.output.json) command::print(plan_json(plan));
         }});
    if (!window.simulation_failure().isEmpty())
        throw Error(ErrorCode::run_failed,
                    "the picture shows the closed form: " + window.simulation_failure().toStdString());
    return plan.memory.verdict == Verdict::does_not_fit ? 1 : 0;
}

ResultsPage page_of(const std::string& word) {
    if (word == "cluster") return ResultsPage::cluster;
    return word == "what-if" ? ResultsPage::what_if : ResultsPage::memory;
}

int run(int argc, char** argv, Arguments& arguments) {
    const QSize size = parse_size(arguments.size);
    const bool screenshot = !arguments.screenshot.empty();
    const QString picture = QString::fromStdString(arguments.screenshot);
    check_scale(arguments.scale, size, picture.endsWith(".png", Qt::CaseInsensitive));
    if (screenshot && !is_picture(picture))
        refuse("--screenshot", "\"" + arguments.screenshot + "\" is neither .png nor .svg",
               "choose one of these endings");
    command::check_writable({arguments.screenshot, arguments.flags.save_scenario});
    MainWindow::Options options;
    options.request = request_of(arguments);
    const std::function<void()> save = save_step(arguments);
    options.remember = !screenshot;
    options.simulate_by_itself = !arguments.no_simulation;
    if (screenshot) options.pause_ms = 0;

    set_up_platform(screenshot);
    QApplication application(argc, argv);
    QApplication::setOrganizationName("zeroplan");
    QApplication::setApplicationName("zeroplan-gui");
    QApplication::setApplicationVersion(
        QString::fromUtf8(version().data(), static_cast<qsizetype>(version().size())));
    QApplication::setStyle("Fusion");

    MainWindow window(options);
    if (screenshot || arguments.theme == "light") window.set_theme(ThemeChoice::light);
    if (arguments.theme == "dark") window.set_theme(ThemeChoice::dark);
    window.results().set_page(page_of(arguments.page));
    if (screenshot) window.resize(size);
    window.show();
    if (screenshot) return take_screenshot(window, arguments, save);
    command::deliver({save});
    return QApplication::exec();
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("The window: memory by rank and over the step, streams, verdict, live on every change",
                 "zeroplan gui");
    Arguments arguments;
    add_arguments(app, arguments);
    return command::run_command(app, argc, argv, [&] { return run(argc, argv, arguments); });
}
