#include <algorithm>
#include <map>

#include "import/import_readers.hpp"
#include "import/node_facts.hpp"
#include "import/xml_document.hpp"

namespace zeroplan {
namespace {

/// source: nccl/src/graph/xml.h: limits of NCCL's own reader are 640 children and 255 characters
constexpr std::uint64_t most_gpus = 640, most_links = 64;

struct Gpu {
    std::string bus;                             ///< busid of the <pci> around it, else its number
    std::map<std::string, std::uint64_t> links;  ///< bus of the other end → count, to GPUs
    std::uint64_t switch_links = 0;
    std::uint64_t sm = 0;
};

struct Network {
    double bytes_per_s = 0;
    bool ethernet = false;
};

/// Everything of interest, wherever it is nested.
struct System {
    std::vector<Gpu> gpus;
    std::vector<Network> networks;
};

/// PCI classes of the other end of an NVLink. source: nccl/src/graph/topo.h, nvlink tclass
bool is_switch(std::string_view target_class) {
    return target_class.starts_with("0x068000");
}

Gpu read_gpu_node(const XmlDocument& xml, const pugi::xml_node& node) {
    Gpu gpu;
    gpu.bus = node.parent().attribute("busid").value();
    if (gpu.bus.empty()) gpu.bus = node.attribute("dev").value();
    gpu.sm = xml.integer(node, "sm", 1000).value_or(0);
    for (const pugi::xml_node& link : node.children("nvlink")) {
        const std::uint64_t count = xml.integer(link, "count", most_links).value_or(0);
        if (is_switch(link.attribute("tclass").value()))
            gpu.switch_links += count;
        else if (!std::string_view(link.attribute("tclass").value()).starts_with("0x068001"))  // no processor
            gpu.links[link.attribute("target").value()] += count;
    }
    return gpu;
}

/// pugixml's own traversal: no recursion, however deep the file nests.
struct Collect : pugi::xml_tree_walker {
    explicit Collect(const XmlDocument& document) : xml(&document) {}
    bool for_each(pugi::xml_node& node) override {
        const std::string_view name = node.name();
        if (name == "gpu") {
            if (system.gpus.size() == most_gpus)
                xml->fail(node, fmt::format("more than {} GPUs", most_gpus),
                          "a topology is that of one machine: NCCL_TOPO_DUMP_FILE=FILE writes it");
            system.gpus.push_back(read_gpu_node(*xml, node));
        } else if (name == "net") {
            // Mb/s; source: nccl/src/graph/topo.cc, ncclTopoAddNet: speed / 8000 GB/s
            const auto speed = xml->number(node, "speed", 1e9);
            system.networks.push_back({speed.value_or(0) * 1e6 / 8,
                                       std::string_view(node.attribute("name").value()).starts_with("eth")});
        }
        return true;
    }
    const XmlDocument* xml;
    System system;
};

/// The fastest adapters; slower ones serve storage and management.
void add_networks(NodeFacts& facts, const System& system) {
    for (const Network& network : system.networks)
        if (network.bytes_per_s > facts.rail_bytes_per_s) {
            facts.rail_bytes_per_s = network.bytes_per_s;
            facts.network = network.ethernet ? InterNodeKind::ethernet : InterNodeKind::infiniband;
        }
    facts.rails = static_cast<std::uint64_t>(
        std::count_if(system.networks.begin(), system.networks.end(), [&](const Network& network) {
            return network.bytes_per_s > 0 && network.bytes_per_s >= facts.rail_bytes_per_s;
        }));
}

void add_links(NodeFacts& facts, const System& system) {
    for (const Gpu& from : system.gpus) {
        facts.switched = facts.switched || from.switch_links > 0;
        facts.links.emplace_back();
        for (const Gpu& to : system.gpus) {
            const auto direct = from.links.find(to.bus);
            const std::uint64_t count = direct == from.links.end() ? 0 : direct->second;
            facts.links.back().push_back(&from == &to ? 0
                                                      : count + std::min(from.switch_links, to.switch_links));
        }
    }
}

}  // namespace

Import import_nccl_topology(std::string_view text, const std::string& file, const ImportContext& context) {
    Import import;
    import.kind = ImportKind::nccl_topology;
    import.file = import.scenario.file = file;
    const XmlDocument xml(import, text, "system");
    Collect found(xml);
    xml.root().traverse(found);
    const System& system = found.system;
    if (system.gpus.empty())
        xml.fail(xml.root(), "no <gpu> in this machine",
                 "dump it with NCCL_TOPO_DUMP_FILE from a run that uses its GPUs");
    NodeFacts facts;
    facts.source = "NCCL topology XML";
    facts.gpus = system.gpus.size();
    facts.compute_capability = static_cast<std::uint32_t>(system.gpus.front().sm);
    add_links(facts, system);
    add_networks(facts, system);
    if (facts.rail_bytes_per_s <= 0) facts.rail_bytes_per_s = context.nic_bytes_per_s;
    if (facts.rails < system.networks.size())
        note(import, Finding::resolved, "", 0,
             fmt::format("{} of {} network adapters are slower than the others: no rails",
                         system.networks.size() - facts.rails, system.networks.size()));
    add_topology(import, facts, context);
    return import;
}

}  // namespace zeroplan
