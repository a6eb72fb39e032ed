#include "live_tensors.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "buffer_names.hpp"

namespace zeroplan {
namespace {

/// A name around the number of its layer: "model.layers." 3 " mlp.gate".
struct NumberedName {
    std::string before, after;
    std::optional<std::uint64_t> number;
};

bool is_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// The first part between dots or spaces that is a number of at most 9 digits.
NumberedName split_number(const std::string& name) {
    constexpr std::size_t most_digits = 9;
    for (std::size_t begin = 0; begin < name.size();) {
        const std::size_t end = std::min(name.find_first_of(". ", begin), name.size());
        const std::string part = name.substr(begin, end - begin);
        if (!part.empty() && part.size() <= most_digits && std::all_of(part.begin(), part.end(), is_digit))
            return {name.substr(0, begin), name.substr(end), std::stoull(part)};
        begin = end + 1;
    }
    return {name, "", std::nullopt};
}

struct Key {
    std::string before, after;
    BufferRole role;
    Category category;
    DType dtype;
    friend auto operator<=>(const Key&, const Key&) = default;
};

struct Group {
    std::set<std::uint64_t> numbers;
    std::uint64_t count = 0;
    Bytes largest, total;
};

std::string name_of(const Key& key, const Group& group) {
    const std::vector<std::uint64_t> numbers(group.numbers.begin(), group.numbers.end());
    return key.before + number_ranges(numbers) + key.after;
}

}  // namespace

std::string number_ranges(const std::vector<std::uint64_t>& numbers) {
    std::string text;
    for (std::size_t first = 0; first < numbers.size();) {
        std::size_t last = first;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        if (!text.empty()) text += ',';
        text += first == last ? fmt::format("{}", numbers[first])
                              : fmt::format("{}-{}", numbers[first], numbers[last]);
        first = last + 1;
    }
    return text;
}

std::vector<LiveTensors> group_live(const Plan& plan, std::uint32_t program, std::span<const BufferId> live) {
    const ModelSpec& model = model_of(plan, program);
    const ShardLayout& layout = layout_of(plan, program);
    std::map<Key, Group> groups;
    for (const BufferId id : live) {
        const Buffer& buffer = plan.programs[program].buffers[id];
        const Bytes bytes = allocated_bytes(buffer);
        if (bytes == Bytes{}) continue;
        NumberedName name = split_number(tensor_name(buffer, model, layout));
        Group& group = groups[{std::move(name.before), std::move(name.after), buffer.role, buffer.category,
                               buffer.dtype}];
        if (name.number) group.numbers.insert(*name.number);
        ++group.count;
        group.largest = std::max(group.largest, bytes);
        group.total += bytes;
    }
    std::vector<LiveTensors> tensors;
    for (const auto& [key, group] : groups)
        tensors.push_back({.name = name_of(key, group),
                           .role = std::string(to_string(key.role)),
                           .category = key.category,
                           .dtype = key.dtype,
                           .count = group.count,
                           .largest = group.largest,
                           .total = group.total});
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const LiveTensors& a, const LiveTensors& b) { return a.total > b.total; });
    return tensors;
}

}  // namespace zeroplan
