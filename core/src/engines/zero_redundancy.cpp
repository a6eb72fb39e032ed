#include "engines/zero_redundancy.hpp"

#include <algorithm>
#include <map>
#include <queue>

namespace zeroplan {

std::vector<std::uint64_t> zero_redundancy_owners(const ModelSpec& model, std::uint64_t ranks) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t p = 0; p < model.parameters.size(); ++p)
        if (model.parameters[p].trainable && !model.parameters[p].shared_with) order.push_back(p);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return model.parameters[a].numel > model.parameters[b].numel;
    });
    using Load = std::pair<std::uint64_t, std::uint64_t>;  // elements, rank
    std::priority_queue<Load, std::vector<Load>, std::greater<>> lightest;
    for (std::uint64_t r = 0; r < ranks; ++r) lightest.push({0, r});
    std::vector<std::uint64_t> owner(model.parameters.size(), ranks);
    for (const std::uint32_t p : order) {
        auto [elements, rank] = lightest.top();
        lightest.pop();
        owner[p] = rank;
        lightest.push({elements + model.parameters[p].numel, rank});
    }
    for (std::uint32_t p = 0; p < model.parameters.size(); ++p)
        if (const auto shared = model.parameters[p].shared_with) owner[p] = owner[*shared];
    return owner;
}

std::vector<std::vector<std::uint64_t>> zero_redundancy_groups(const ModelSpec& model,
                                                               const std::vector<std::uint64_t>& owners,
                                                               std::uint64_t ranks) {
    std::vector<std::vector<std::uint64_t>> sizes(ranks);
    for (std::size_t p = 0; p < owners.size(); ++p)
        if (owners[p] < ranks && !model.parameters[p].shared_with)
            sizes[owners[p]].push_back(model.parameters[p].numel);
    std::map<std::vector<std::uint64_t>, std::vector<std::uint64_t>> groups;
    for (std::uint64_t r = 0; r < ranks; ++r) {
        std::sort(sizes[r].begin(), sizes[r].end());
        groups[std::move(sizes[r])].push_back(r);
    }
    std::vector<std::vector<std::uint64_t>> result;
    for (auto& [size, members] : groups) result.push_back(std::move(members));
    std::sort(result.begin(), result.end());
    return result;
}

}  // namespace zeroplan
