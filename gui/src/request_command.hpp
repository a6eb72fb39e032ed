#pragma once
#include <QUndoCommand>

#include "zeroplan/gui/main_window.hpp"

namespace zeroplan::gui {

/// One change of the request. Changes of one series, such as a slider's way, are one step of undo.
class RequestCommand : public QUndoCommand {
public:
    RequestCommand(MainWindow& window, ScenarioRequest before, ScenarioRequest after, const QString& what,
                   int series)
        : QUndoCommand(what),
          window_(window),
          before_(std::move(before)),
          after_(std::move(after)),
          series_(series) {}

    void undo() override { window_.apply(before_); }
    void redo() override { window_.apply(after_); }
    int id() const override { return series_; }
    bool mergeWith(const QUndoCommand* other) override {
        after_ = static_cast<const RequestCommand*>(other)->after_;
        return true;
    }

private:
    MainWindow& window_;
    ScenarioRequest before_, after_;
    int series_;
};

}  // namespace zeroplan::gui
