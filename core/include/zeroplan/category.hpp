#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "zeroplan/units.hpp"

namespace zeroplan {

/// What a byte inside the allocator is for. `runtime` bytes (context, NCCL, library workspaces) stand
/// outside.
enum class Category : std::uint8_t {
    parameters,
    gradients,
    master_weights,
    optimizer_states,
    gathered_parameters,
    communication_buffers,
    activations,
    logits,
    temporaries
};
inline constexpr std::size_t category_count = 9;

/// "master_weights" …; the key used in reports.
std::string_view to_string(Category category);

/// Bytes of each category, indexed by Category.
class CategoryBytes {
public:
    Bytes& operator[](Category c) { return bytes_[static_cast<std::size_t>(c)]; }
    Bytes operator[](Category c) const { return bytes_[static_cast<std::size_t>(c)]; }
    Bytes total() const {
        Bytes sum;
        for (const Bytes b : bytes_) sum += b;
        return sum;
    }
    friend bool operator==(const CategoryBytes&, const CategoryBytes&) = default;

private:
    std::array<Bytes, category_count> bytes_{};
};

/// All categories in report order, for range-for.
inline constexpr std::array<Category, category_count> all_categories{
    Category::parameters,          Category::gradients,
    Category::master_weights,      Category::optimizer_states,
    Category::gathered_parameters, Category::communication_buffers,
    Category::activations,         Category::logits,
    Category::temporaries};

}  // namespace zeroplan
