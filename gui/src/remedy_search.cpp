#include "zeroplan/gui/remedy_search.hpp"

#include <QtConcurrent>

#include "zeroplan/remedies.hpp"

namespace zeroplan::gui {

namespace {

// Whatever goes wrong, the verdict itself stands: it is shown without advice.
std::vector<Remedy> search(const std::shared_ptr<const Plan>& plan) {
    try {
        return find_remedies(*plan);
    } catch (const std::exception&) {
        return {};
    }
}

}  // namespace

RemedySearch::RemedySearch(int pause_ms, QObject* parent) : QObject(parent) {
    thread_.setMaxThreadCount(1);
    pause_.setSingleShot(true);
    pause_.setInterval(pause_ms);
    connect(&pause_, &QTimer::timeout, this, &RemedySearch::run);
    connect(&watcher_, &QFutureWatcherBase::finished, this, &RemedySearch::finish);
}

RemedySearch::~RemedySearch() {
    watcher_.waitForFinished();
}

void RemedySearch::start(std::shared_ptr<const Plan> plan) {
    plan_ = std::move(plan);
    pause_.start();
}

void RemedySearch::forget() {
    plan_.reset();
    pause_.stop();
}

void RemedySearch::run() {
    if (running_) return;  // finish() goes on with what came meanwhile
    running_ = true;
    searched_ = plan_;
    watcher_.setFuture(QtConcurrent::run(&thread_, search, searched_));
}

void RemedySearch::finish() {
    running_ = false;
    if (plan_ == searched_) {
        Q_EMIT found(watcher_.result());
    } else if (plan_ && !pause_.isActive()) {
        run();
    } else {
        Q_EMIT idle();
    }
}

}  // namespace zeroplan::gui
