#include "what_if_fields.hpp"

#include <QRegularExpression>

#include "zeroplan/gui/flag_texts.hpp"
#include "zeroplan/what_if_io.hpp"

namespace zeroplan::gui {

namespace {

// Several, with commas or blanks between them.
std::vector<std::string> several(const std::string& text) {
    static const QRegularExpression between("[,\\s]+");
    std::vector<std::string> all;
    for (const QString& one : QString::fromStdString(text).split(between, Qt::SkipEmptyParts))
        all.push_back(one.toStdString());
    return all;
}

Setting stragglers(const std::string& text, const std::string& origin) {
    return straggler_setting(several(text), origin);
}
Setting slow_links(const std::string& text, const std::string& origin) {
    return slow_link_setting(several(text), origin);
}

template <const char* Pointer>
Setting duration(const std::string& text, const std::string& origin) {
    return duration_setting(Pointer, text, origin);
}
template <const char* Pointer>
Setting number(const std::string& text, const std::string& origin) {
    return text_setting(Pointer, text, origin);
}

constexpr char gpu_mtbf[] = "/what_if/failures/gpu_mtbf_s";
constexpr char node_mtbf[] = "/what_if/failures/node_mtbf_s";
constexpr char bandwidth[] = "/what_if/failures/checkpoint_bytes_per_second";
constexpr char interval[] = "/what_if/failures/checkpoint_interval_s";
constexpr char restart[] = "/what_if/failures/restart_s";

Field typed(std::string pointer, QString label, std::string flag, QString example, QString tooltip,
            Setting (*setting)(const std::string&, const std::string&),
            QStringList (*flag_texts)(const std::string&)) {
    Field field{Field::Kind::text, std::move(pointer), std::move(label),
                std::move(flag),   std::move(tooltip), {}};
    field.example = std::move(example);
    field.setting = setting;
    field.flag_texts = flag_texts;
    return field;
}

Field in_section(const QString& section, Field field) {
    field.section = section;
    return field;
}

}  // namespace

std::vector<Field> what_if_fields() {
    const auto tr = [](const char* words) { return QObject::tr(words); };
    Field background = typed("/what_if/background", tr("Background"), "--background", tr("a scenario file"),
                             tr("A second job on the same fabric, on nodes that this one leaves free"),
                             background_setting, background_texts);
    background.takes_file = true;
    return {
        in_section(
            tr("What if"),
            typed("/what_if/stragglers", tr("Stragglers"), "--straggler", "5=0.8",
                  tr("RANK=FACTOR: the rank computes at this factor of its speed; several with commas"),
                  stragglers, factor_texts)),
        typed(
            "/what_if/slow_links", tr("Slow links"), "--slow-link", "nic:9=0.5",
            tr("LINK=FACTOR: a link at this factor of its bandwidth; nic:RANK, gpu:RANK (to the GPUs of its "
               "node) or node:NODE (all its NICs); several with commas"),
            slow_links, factor_texts),
        typed("/what_if/fabric", tr("Fabric"), "--fabric", "fat-tree:4:2",
              tr("What joins the nodes: single-switch, rail-optimised:NODES:RATIO, "
                 "fat-tree:NODES:RATIO[:LEAVES:RATIO] or torus:4x4x2[:B/S]; RATIO to 1 oversubscribed"),
              fabric_setting, fabric_texts),
        typed("/what_if/placement", tr("Placement"), "--placement", "packed",
              tr("The job's nodes on the fabric: packed, spread, or a list as 0-3,8"), placement_setting,
              placement_texts),
        background,
        in_section(tr("Failures over a long run"),
                   typed(gpu_mtbf, tr("GPU MTBF"), "--gpu-mtbf", "50000h",
                         tr("Mean time between failures of one GPU: seconds, or as 50000h, 30d, 5y"),
                         duration<gpu_mtbf>, duration_texts)),
        typed(node_mtbf, tr("Node MTBF"), "--node-mtbf", "5y",
              tr("Mean time between failures of one node, beside its GPUs"), duration<node_mtbf>,
              duration_texts),
        typed(bandwidth, tr("Storage B/s"), "--checkpoint-bandwidth", "20e9",
              tr("Bytes a second that storage takes from all ranks together"), number<bandwidth>,
              number_texts),
        typed(interval, tr("Save every"), "--checkpoint-interval", tr("the best"),
              tr("Work between checkpoints, as 30m; the best one is told in any case"), duration<interval>,
              duration_texts),
        typed(restart, tr("Restart"), "--restart-time", "5m",
              tr("From a failure to the first step, loading included"), duration<restart>, duration_texts),
    };
}

}  // namespace zeroplan::gui
