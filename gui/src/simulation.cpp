#include "zeroplan/gui/simulation.hpp"

#include <QCoreApplication>
#include <QFile>
#include <QFileInfo>
#include <QtConcurrent>
#include <variant>

#include "zeroplan/io.hpp"
#include "zeroplan/what_if_io.hpp"

namespace zeroplan::gui {

namespace {

QByteArray contents(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

// The child's own words, without the program's name and the temporary file's.
QString last_words(const QByteArray& standard_error, const QString& scenario) {
    QStringList sentences;
    for (QString line : QString::fromUtf8(standard_error).split('\n', Qt::SkipEmptyParts)) {
        for (const QString& noise : {QString("zeroplan: error: "), scenario + ": ", QString("hint: ")})
            line = line.replace(noise, "").trimmed();
        if (!line.isEmpty()) sentences << as_sentence(line);
    }
    return sentences.mid(std::max<qsizetype>(0, sentences.size() - 6)).join(' ');
}

}  // namespace

Simulation::Simulation(QString program, QObject* parent) : QObject(parent), program_(std::move(program)) {
    if (program_.isEmpty()) program_ = QCoreApplication::applicationDirPath() + "/zeroplan-sim";
}

Simulation::~Simulation() {
    drop_process();
}

bool Simulation::available() const {
    return QFileInfo(program_).isExecutable();
}

void Simulation::drop_process() {
    reading_ = false;
    if (process_ == nullptr) return;
    process_->disconnect(this);
    process_->kill();
    process_->waitForFinished(2000);
    process_->deleteLater();
    process_ = nullptr;
    folder_.reset();
}

void Simulation::start(std::shared_ptr<const Plan> plan, const WhatIf& what_if) {
    drop_process();
    ++started_;
    plan_ = std::move(plan);
    folder_ = std::make_unique<QTemporaryDir>();
    const QString scenario = folder_->filePath("scenario.json"), table = folder_->filePath("operations.csv");
    try {
        if (!folder_->isValid()) throw Error(ErrorCode::io, folder_->errorString().toStdString());
        write_text_file(scenario.toStdString(), scenario_json(plan_->scenario, what_if));
    } catch (const Error& error) {
        return fail(sentence(error));
    }
    process_ = new QProcess(this);
    connect(process_, &QProcess::finished, this, &Simulation::finish);
    connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart)
            fail(tr("%1 could not be started: %2").arg(program_, process_->errorString()));
    });
    process_->start(program_, {"--scenario", scenario, "--json", "--quiet", "--csv", table});
}

void Simulation::cancel() {
    if (!running()) return;
    drop_process();
    ++started_;
    Q_EMIT cancelled();
}

void Simulation::finish(int status, QProcess::ExitStatus how) {
    const QByteArray report = process_->readAllStandardOutput();
    const QString words = last_words(process_->readAllStandardError(), folder_->filePath("scenario.json"));
    if (how == QProcess::CrashExit) return fail(tr("zeroplan-sim crashed. %1").arg(words));
    // 1: it was simulated, and memory does not fit.
    if (status != 0 && status != 1)
        return fail(words.isEmpty() ? tr("zeroplan-sim ended with status %1.").arg(status) : words,
                    status == 2);
    const QByteArray table = contents(folder_->filePath("operations.csv"));
    drop_process();
    read(report, table);
}

// A large model's step has a hundred thousand operations: read off the window's thread.
void Simulation::read(const QByteArray& report, const QByteArray& table) {
    using Result = std::variant<Simulated, QString>;
    reading_ = true;
    const auto work = [report, table, plan = plan_]() -> Result {
        try {
            return read_simulation(report, table, plan);
        } catch (const Error& error) {
            return sentence(error);
        }
    };
    QtConcurrent::run(work).then(this, [this, number = started_](const Result& result) {
        if (number != started_) return;
        reading_ = false;
        if (const auto* why = std::get_if<QString>(&result)) return fail(*why);
        Q_EMIT simulated(std::get<Simulated>(result));
    });
}

void Simulation::fail(const QString& why, bool refused) {
    drop_process();
    Q_EMIT failed(why, refused);
}

}  // namespace zeroplan::gui
