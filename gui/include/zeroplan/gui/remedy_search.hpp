#pragma once
#include <QFutureWatcher>
#include <QObject>
#include <QThreadPool>
#include <QTimer>
#include <memory>
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan::gui {

/// Looks for the changes that make a plan fit. Each is a plan of its own, so it waits for a pause in the
/// user's changes and works off the window's thread.
class RemedySearch : public QObject {
    Q_OBJECT
public:
    explicit RemedySearch(int pause_ms, QObject* parent = nullptr);
    ~RemedySearch() override;

    /// After the pause, unless another plan or forget() comes first.
    void start(std::shared_ptr<const Plan> plan);
    /// No result will be told of what was started.
    void forget();
    /// A search waits for its pause, or runs.
    bool busy() const { return pause_.isActive() || running_; }

Q_SIGNALS:
    void found(const std::vector<zeroplan::Remedy>& remedies);
    /// A search that was forgotten has ended.
    void idle();

private:
    void run();
    void finish();

    QThreadPool thread_;
    QFutureWatcher<std::vector<Remedy>> watcher_;
    QTimer pause_;
    std::shared_ptr<const Plan> plan_, searched_;
    bool running_ = false;
};

}  // namespace zeroplan::gui
