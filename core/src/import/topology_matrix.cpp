#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include <fmt/ranges.h>

#include "import/import_builder.hpp"
#include "import/import_readers.hpp"
#include "import/node_facts.hpp"
#include "import/text_lines.hpp"

namespace zeroplan {
namespace {

/// Machines have up to 16 GPUs, and as many adapters; more is no matrix of one.
constexpr std::size_t most_devices = 256;
constexpr const char* paste_again = "paste the output of nvidia-smi topo -m whole";

struct Row {
    std::size_t line = 0;
    std::vector<std::string> cells;  ///< one a device of the header
};

/// nvidia-smi topo -m, as it stands.
struct Matrix {
    std::size_t line = 0;              ///< of the header
    std::vector<std::string> devices;  ///< columns: GPU0 … NIC0 …, or mlx5_0 in older drivers
    std::map<std::string, Row> rows;
};

bool is_gpu(std::string_view device) {
    return device.starts_with("GPU") && device.size() > 3 &&
           device.find_first_not_of("0123456789", 3) == device.npos;
}

/// The columns of devices; "CPU Affinity" and what follows it are none.
std::vector<std::string> header_devices(const std::string& line) {
    std::vector<std::string> devices = words_of(line);
    devices.erase(std::find(devices.begin(), devices.end(), "CPU"), devices.end());
    return devices;
}

/// Number of bonded NVLinks of "NV18".
std::optional<std::uint64_t> nvlinks(std::string_view cell) {
    if (!cell.starts_with("NV")) return std::nullopt;
    std::uint64_t count = 0;
    const char* end = cell.data() + cell.size();
    const auto parsed = std::from_chars(cell.data() + 2, end, count);
    if (parsed.ec != std::errc{} || parsed.ptr != end || count == 0 || count > 64) return std::nullopt;
    return count;
}

bool is_known(std::string_view cell) {
    for (const char* word : {"X", "SYS", "NODE", "PHB", "PXB", "PIX", "PSB"})
        if (cell == word) return true;
    return nvlinks(cell).has_value();
}

Row read_row(const Import& import, const Matrix& matrix, const TextLine& line,
             std::vector<std::string> words) {
    const std::string name = words.front();
    words.erase(words.begin());
    if (words.size() < matrix.devices.size())
        fail_at(import, line.number, name,
                fmt::format("{} columns, but the header has {} devices", words.size(), matrix.devices.size()),
                paste_again);
    words.resize(matrix.devices.size());
    for (std::size_t i = 0; i < words.size(); ++i)
        if (!is_known(words[i]))
            fail_at(import, line.number, fmt::format("{}, column {}", name, matrix.devices[i]),
                    fmt::format("\"{}\" is no connection", words[i].substr(0, 20)),
                    "one of: X, NV1 to NV64, PIX, PXB, PHB, NODE, SYS");
    return {line.number, std::move(words)};
}

Matrix read_matrix(const Import& import, std::string_view text) {
    Matrix matrix;
    for (const TextLine& line : text_lines(text)) {
        std::vector<std::string> words = words_of(line.text);
        if (words.empty()) continue;
        if (matrix.devices.empty()) {
            if (!is_gpu(words.front()) || (words.size() > 1 && words[1] == "X")) continue;
            matrix.line = line.number;
            matrix.devices = header_devices(line.text);
            if (matrix.devices.size() > most_devices)
                fail_at(import, line.number, "",
                        fmt::format("{} devices in one machine are more than {}", matrix.devices.size(),
                                    most_devices),
                        paste_again);
        } else if (std::find(matrix.devices.begin(), matrix.devices.end(), words.front()) !=
                   matrix.devices.end()) {
            const std::string name = words.front();
            if (matrix.rows.contains(name))
                fail_at(import, line.number, name, "this row stands here twice", paste_again);
            matrix.rows[name] = read_row(import, matrix, line, std::move(words));
        } else if (words.front().starts_with("Legend")) {
            break;
        }
    }
    if (matrix.devices.empty()) fail_at(import, 0, "", "no header with GPU0, GPU1, …", paste_again);
    return matrix;
}

/// What stands in both rows has to be the same; a device without a row has only the others' columns.
void check_symmetry(const Import& import, const Matrix& matrix) {
    for (std::size_t i = 0; i < matrix.devices.size(); ++i) {
        const auto row = matrix.rows.find(matrix.devices[i]);
        if (row == matrix.rows.end()) {
            if (!is_gpu(matrix.devices[i])) continue;
            fail_at(import, matrix.line, matrix.devices[i], fmt::format("{} has no row", matrix.devices[i]),
                    paste_again);
        }
        if (row->second.cells[i] != "X")
            fail_at(import, row->second.line, matrix.devices[i],
                    fmt::format("to itself {} has X, but here stands \"{}\"", matrix.devices[i],
                                row->second.cells[i]),
                    paste_again);
        for (std::size_t j = 0; j < i; ++j) {
            const auto other = matrix.rows.find(matrix.devices[j]);
            if (other == matrix.rows.end() || other->second.cells[i] == row->second.cells[j]) continue;
            fail_at(import, row->second.line, matrix.devices[i],
                    fmt::format("{} to {} is {}, but {} to {} is {} (line {})", matrix.devices[i],
                                matrix.devices[j], row->second.cells[j], matrix.devices[j], matrix.devices[i],
                                other->second.cells[i], other->second.line),
                    paste_again);
        }
    }
}

std::vector<std::size_t> columns(const Matrix& matrix, bool gpus) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < matrix.devices.size(); ++i)
        if (is_gpu(matrix.devices[i]) == gpus) found.push_back(i);
    return found;
}

/// Whether some GPU reaches the adapter in column `adapter` by one of `words`.
bool near_a_gpu(const Matrix& matrix, std::size_t adapter, const std::vector<std::string_view>& words) {
    for (const std::size_t gpu : columns(matrix, true)) {
        const std::string& cell = matrix.rows.at(matrix.devices[gpu]).cells[adapter];
        if (std::find(words.begin(), words.end(), cell) != words.end()) return true;
    }
    return false;
}

/// Adapters under the PCIe switch of a GPU; where no GPU has one, under its host bridge. Others serve storage
/// and management.
std::vector<std::string> find_rails(const Matrix& matrix) {
    std::vector<std::string> rails;
    const std::array<std::vector<std::string_view>, 2> nearest_first{{{"PIX", "PXB"}, {"PHB"}}};
    for (const auto& words : nearest_first) {
        for (const std::size_t adapter : columns(matrix, false))
            if (near_a_gpu(matrix, adapter, words)) rails.push_back(matrix.devices[adapter]);
        if (!rails.empty()) break;
    }
    return rails;
}

void note_adapters(Import& import, const Matrix& matrix, const std::vector<std::string>& rails) {
    std::vector<std::string> others;
    for (const std::size_t adapter : columns(matrix, false))
        if (std::find(rails.begin(), rails.end(), matrix.devices[adapter]) == rails.end())
            others.push_back(matrix.devices[adapter]);
    if (!others.empty())
        note(import, Finding::resolved, "", matrix.line,
             fmt::format("{}: near no GPU, so no rail; for storage or management", fmt::join(others, ", ")));
}

void note_traffic(Import& import, const Matrix& matrix, const NodeFacts& facts) {
    if (facts.gpus < 2 || intra_node_of(facts, 0) != IntraNode::pcie) return;
    bool across = false;
    for (const std::size_t i : columns(matrix, true))
        for (const std::size_t j : columns(matrix, true))
            across = across || matrix.rows.at(matrix.devices[i]).cells[j] == "SYS";
    note(import, Finding::warning, "", matrix.line,
         fmt::format(
             "no NVLink: traffic between GPUs takes PCIe{}; GeForce cards have no peer-to-peer, theirs goes "
             "through host memory",
             across ? " and, between sockets, the processors' link" : ""));
}

}  // namespace

Import import_topology_matrix(std::string_view text, const std::string& file, const ImportContext& context) {
    Import import;
    import.kind = ImportKind::topology_matrix;
    import.file = import.scenario.file = file;
    const Matrix matrix = read_matrix(import, text);
    check_symmetry(import, matrix);
    const std::vector<std::size_t> gpus = columns(matrix, true);
    NodeFacts facts;
    facts.source = "nvidia-smi topo -m";
    facts.gpus = gpus.size();
    for (const std::size_t i : gpus) {
        facts.links.emplace_back();
        for (const std::size_t j : gpus)
            facts.links.back().push_back(nvlinks(matrix.rows.at(matrix.devices[i]).cells[j]).value_or(0));
    }
    const std::vector<std::string> rails = find_rails(matrix);
    facts.rails = rails.size();
    facts.rail_bytes_per_s = context.nic_bytes_per_s;
    note_adapters(import, matrix, rails);
    note_traffic(import, matrix, facts);
    add_topology(import, facts, context);
    return import;
}

}  // namespace zeroplan
