#include "zeroplan/gui/picture.hpp"

#include <QBuffer>
#include <QFileInfo>
#include <QImage>
#include <QMainWindow>
#include <QPainter>
#include <QSvgGenerator>

#include "zeroplan/gui/text.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan::gui {

namespace {

Error cannot_be_drawn(QSize size) {
    return {ErrorCode::run_failed,
            QString("a picture of %1x%2 pixels can't be drawn")
                .arg(size.width())
                .arg(size.height())
                .toStdString(),
            "is there memory for it? Choose a smaller one"};
}

QByteArray png(QWidget& widget, double scale) {
    const QSize size = (QSizeF(widget.size()) * scale).toSize();
    QImage image(size, QImage::Format_RGB32);
    if (image.isNull()) throw cannot_be_drawn(size);
    image.setDevicePixelRatio(scale);
    image.fill(widget.palette().color(QPalette::Window));
    widget.render(&image);
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    if (!image.save(&buffer, "PNG")) throw cannot_be_drawn(size);
    return bytes;
}

// Of a window its contents: a menu bar can't be drawn as lines and text.
QByteArray svg(QWidget& whole) {
    const auto* window = qobject_cast<QMainWindow*>(&whole);
    QWidget& widget =
        window != nullptr && window->centralWidget() != nullptr ? *window->centralWidget() : whole;
    QByteArray bytes;
    QBuffer buffer(&bytes);
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setResolution(widget.logicalDpiX());  // or text would be spaced for another one
    generator.setSize(widget.size());
    generator.setViewBox(widget.rect());
    generator.setTitle(widget.window()->windowTitle().remove("[*]"));
    QPainter painter(&generator);
    painter.fillRect(widget.rect(), widget.palette().color(QPalette::Window));
    widget.render(&painter, {}, {}, QWidget::DrawChildren | QWidget::DrawWindowBackground);
    painter.end();
    return bytes;
}

}  // namespace

bool is_picture(const QString& path) {
    const QString suffix = QFileInfo(path).suffix().toLower();
    return suffix == "png" || suffix == "svg";
}

void write_picture(QWidget& widget, const QString& path, double scale) {
    if (!is_picture(path))
        throw Error(ErrorCode::not_supported, "a picture is written as .png or .svg",
                    "choose one of these endings", {path.toStdString(), {}});
    const QByteArray bytes = QFileInfo(path).suffix().toLower() == "svg" ? svg(widget) : png(widget, scale);
    write_text_file(path.toStdString(),
                    std::string_view(bytes.data(), static_cast<std::size_t>(bytes.size())));
}

}  // namespace zeroplan::gui
