#include "zeroplan/gui/link_classes.hpp"

#include <algorithm>

#include "zeroplan/collective_cost.hpp"

namespace zeroplan::gui {

namespace {

// The load of the fullest links of that name: "nic", "nic at 0.5", "leaf uplink, fullest".
const LinkLoad* fullest(const std::vector<LinkLoad>& loads, const std::string& name) {
    const LinkLoad* most = nullptr;
    for (const LinkLoad& load : loads) {
        const bool named =
            load.name == name || load.name.starts_with(name + " at ") || load.name.starts_with(name + ",");
        if (named && (most == nullptr || load.utilisation > most->utilisation)) most = &load;
    }
    return most;
}

class Classes {
public:
    explicit Classes(const std::vector<LinkLoad>& loads) : loads_(loads) {}

    // `load` is what zeroplan-sim calls them.
    LinkClass& add(LinkKind kind, const QString& name, const QString& rate, const std::string& load) {
        LinkClass one{kind, name, rate, {}, {name, {}, {}}};
        row(one, QObject::tr("bandwidth"), rate);
        if (const LinkLoad* busy = load.empty() ? nullptr : fullest(loads_, load)) {
            one.utilisation = busy->utilisation;
            row(one, QObject::tr("carried by the fullest in a step"), carried(busy->bytes));
            row(one, QObject::tr("of what it could carry"), percent(busy->utilisation));
        }
        all.push_back(std::move(one));
        return all.back();
    }
    static void row(LinkClass& one, const QString& label, const QString& value) {
        one.description.rows.push_back({label, value, {}});
    }

    std::vector<LinkClass> all;

private:
    static QString carried(double bytes) { return both_units(Bytes{static_cast<std::uint64_t>(bytes)}); }
    const std::vector<LinkLoad>& loads_;
};

// "nvlink4" → "NVLink 4", "pcie5" → "PCIe 5".
QString link_word(const std::string& link) {
    static const std::array<std::pair<const char*, const char*>, 4> words{
        {{"nvlink", "NVLink"}, {"pcie", "PCIe"}, {"xgmi", "xGMI"}, {"shared_memory", "Shared memory"}}};
    for (const auto& [key, word] : words)
        if (link.starts_with(key))
            return (QString(word) + ' ' + text(link.substr(std::string_view(key).size()))).trimmed();
    return text(link);
}

QString capital(const QString& words) {
    return words.left(1).toUpper() + words.mid(1);
}

QString network_word(InterNodeKind kind) {
    switch (kind) {
        case InterNodeKind::infiniband:
            return "InfiniBand";
        case InterNodeKind::roce:
            return "RoCE";
        case InterNodeKind::efa:
            return "EFA";
        case InterNodeKind::ethernet:
            return "Ethernet";
        case InterNodeKind::slingshot:
            return "Slingshot";
        case InterNodeKind::omni_path:
            return "Omni-Path";
        case InterNodeKind::nvlink:
            return QObject::tr("NVLink between nodes");
        case InterNodeKind::none:
            break;
    }
    return QObject::tr("network");
}

QString intra_node_name(const ClusterSpec& cluster) {
    return link_word(cluster.gpu.is_host ? cluster.gpu.link : intra_node_link_name(cluster));
}

// What the closing sentence of a description says.
QString source_words(const std::string& source) {
    return source.empty() ? QString() : QObject::tr("Source: %1").arg(text(source));
}

bool over_pcie(const ClusterSpec& cluster) {
    return cluster.intra_node == IntraNode::pcie || cluster.intra_node == IntraNode::nvlink_pairs;
}

void add_inside_node(Classes& classes, const Planned& planned) {
    const ClusterSpec& cluster = planned.plan->scenario.cluster;
    const LinkRates rates = link_rates(cluster);
    const bool bus = over_pcie(cluster) && !cluster.gpu.is_host;
    const bool is_pcie = cluster.gpu.link.starts_with("pcie");
    const double line = bus && !is_pcie ? cluster.host.pcie_bytes_per_s : cluster.gpu.link_bytes_per_s;
    LinkClass& gpu =
        classes.add(bus ? LinkKind::pcie : LinkKind::gpu, intra_node_name(cluster),
                    QObject::tr(cluster.gpu.is_host ? "%1 a process" : "%1 a GPU").arg(rate_words(line)),
                    intra_node_link_name(cluster));
    Classes::row(gpu, QObject::tr("payload, as NCCL counts with it"),
                 rate_words(rates.intra_node_bytes_per_s));
    gpu.description.closing = source_words(bus && !is_pcie ? planned.sources.pcie : planned.sources.gpu_link);
    if (rates.bridge_bytes_per_s > 0)
        classes
            .add(LinkKind::bridge, QObject::tr("NVLink bridge"),
                 QObject::tr("%1 payload a pair").arg(rate_words(rates.bridge_bytes_per_s)), bridge_name)
            .description.closing = source_words(planned.sources.intra_node);
    if (!bus && !cluster.gpu.is_host)
        classes
            .add(LinkKind::pcie, QObject::tr("PCIe to the host"),
                 QObject::tr("%1 a GPU").arg(rate_words(cluster.host.pcie_bytes_per_s)), {})
            .description.closing = source_words(planned.sources.pcie);
}

LinkKind fabric_kind(const std::string& name) {
    if (name.starts_with("pod")) return LinkKind::pod;
    return name.starts_with("torus") ? LinkKind::torus : LinkKind::leaf;
}

// Those that block, as core has them, and switches' links that pass all that comes from below.
void add_fabric(Classes& classes, const Planned& planned) {
    const ClusterSpec& cluster = planned.plan->scenario.cluster;
    const FabricSpec fabric = fabric_of(planned.what_if);
    const std::uint64_t nodes = std::max(planned.sites.nodes, nodes_in_use(cluster));
    const FabricRoutes routes = fabric_routes(planned.what_if, cluster, nodes);
    for (const FabricLinks& links : routes.links()) {
        if (!links.upwards) continue;
        const LinkKind kind = fabric_kind(links.name);
        const double ratio =
            kind == LinkKind::pod ? fabric.pod_oversubscription : fabric.leaf_oversubscription;
        LinkClass& one =
            classes.add(kind, capital(text(links.name)),
                        kind == LinkKind::torus
                            ? QObject::tr("%1 each way").arg(rate_words(links.bytes_per_s))
                            : QObject::tr("%1, %2 to 1").arg(rate_words(links.bytes_per_s)).arg(ratio),
                        links.name);
        one.description.closing = QObject::tr("By the fabric that the what-if asks for.");
    }
    const bool tree = fabric.kind == FabricKind::fat_tree || fabric.kind == FabricKind::rail_optimised;
    const auto add_open = [&](LinkKind kind, const QString& name) {
        if (find_class(classes.all, kind) == nullptr)
            classes.add(kind, name, QObject::tr("1 to 1, doesn't block"), {});
    };
    if (tree)
        add_open(LinkKind::leaf, fabric.kind == FabricKind::fat_tree ? QObject::tr("Leaf uplink")
                                                                     : QObject::tr("Rail uplink"));
    if (tree && fabric.leaves_per_pod > 0) add_open(LinkKind::pod, QObject::tr("Pod uplink"));
}

}  // namespace

QString rate_words(double bytes_per_s) {
    const bool tera = bytes_per_s >= 1e12;
    return QString("%1 %2").arg(bytes_per_s / (tera ? 1e12 : 1e9), 0, 'g', 4).arg(tera ? "TB/s" : "GB/s");
}

std::vector<LinkClass> link_classes(const Planned& planned, const std::vector<LinkLoad>& loads) {
    const ClusterSpec& cluster = planned.plan->scenario.cluster;
    Classes classes(loads);
    add_inside_node(classes, planned);
    if (nodes_in_use(cluster) < 2) return classes.all;
    classes
        .add(LinkKind::nic, network_word(cluster.inter_node.kind),
             QObject::tr("%1 a GPU").arg(rate_words(cluster.inter_node.bytes_per_s_per_gpu)), "nic")
        .description.closing = source_words(planned.sources.inter_node);
    add_fabric(classes, planned);
    return classes.all;
}

const LinkClass* find_class(const std::vector<LinkClass>& classes, LinkKind kind) {
    const auto found =
        std::find_if(classes.begin(), classes.end(), [&](const LinkClass& c) { return c.kind == kind; });
    return found == classes.end() ? nullptr : &*found;
}

}  // namespace zeroplan::gui
