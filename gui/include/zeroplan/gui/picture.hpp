#pragma once
#include <QString>
#include <QWidget>

namespace zeroplan::gui {

/// Whether a picture can be written to `path`: it ends in .png or .svg.
bool is_picture(const QString& path);
/// Writes what `widget` shows: PNG at twice its size for sharp print, or SVG. Throws Error{not_supported} for
/// another suffix and Error{io} if the file can't be written.
void write_picture(QWidget& widget, const QString& path, double scale = 2);

}  // namespace zeroplan::gui
