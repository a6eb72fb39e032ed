#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace zeroplan {

using Colours = std::vector<std::uint32_t>;

/// Numbers things in the order in which they are met first.
template <typename Key>
class Numbering {
public:
    std::uint32_t number(const Key& key) {
        return numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second;
    }
    std::size_t size() const { return numbers_.size(); }

private:
    std::map<Key, std::uint32_t> numbers_;
};

}  // namespace zeroplan
