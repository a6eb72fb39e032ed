#include "control_group_memory.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <vector>

namespace zeroplan::runner {
namespace {

/// One version of the interface: where its groups are and what its files are called.
struct Interface {
    const char* folder;  ///< below the mount point
    const char *limit, *used, *reclaimable;
};
constexpr std::array version_2{
    Interface{"", "memory.max", "memory.current", "inactive_file"},
    Interface{"/unified", "memory.max", "memory.current", "inactive_file"},  // beside version 1
};
constexpr Interface version_1{"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                              "total_inactive_file"};

/// Nothing if the file is not there or says "max".
std::optional<std::uint64_t> number_in(const std::string& path) {
    std::ifstream file(path);
    std::uint64_t value = 0;
    return file >> value ? std::optional(value) : std::nullopt;
}

std::uint64_t statistic(const std::string& path, const std::string& name) {
    std::ifstream file(path);
    std::string word;
    std::uint64_t value = 0;
    while (file >> word >> value)
        if (word == name) return value;
    return 0;
}

/// "/a/b" gives "/a/b", "/a", "".
std::vector<std::string> upwards(std::string path) {
    std::vector<std::string> groups;
    while (!path.empty() && path.back() == '/') path.pop_back();
    while (!path.empty()) {
        groups.push_back(path);
        path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
    groups.emplace_back();  // in a container the mount point is the own group
    return groups;
}

class Least {
public:
    void look(const std::string& mount, const Interface& interface, const std::string& path) {
        for (const std::string& group : upwards(path)) {
            const std::string folder = mount + interface.folder + group + "/";
            const auto limit = number_in(folder + interface.limit), used = number_in(folder + interface.used);
            if (!limit || !used) continue;
            const std::uint64_t cache = statistic(folder + "memory.stat", interface.reclaimable);
            const std::uint64_t held = *used - std::min(*used, cache);
            const Bytes left{*limit - std::min(*limit, held)};
            least_ = least_ ? std::min(*least_, left) : left;
        }
    }
    std::optional<Bytes> value() const { return least_; }

private:
    std::optional<Bytes> least_;
};

bool has_word(const std::string& list, const std::string& wanted) {
    std::istringstream words(list);
    std::string word;
    while (std::getline(words, word, ','))
        if (word == wanted) return true;
    return false;
}

}  // namespace

std::optional<Bytes> control_group_memory(const std::string& membership, const std::string& mount) {
    Least least;
    std::ifstream file(membership);
    std::string number, controllers, path;
    while (std::getline(file, number, ':') && std::getline(file, controllers, ':') &&
           std::getline(file, path)) {
        if (number == "0" && controllers.empty())
            for (const Interface& interface : version_2) least.look(mount, interface, path);
        else if (has_word(controllers, "memory"))
            least.look(mount, version_1, path);
    }
    return least.value();
}

}  // namespace zeroplan::runner
