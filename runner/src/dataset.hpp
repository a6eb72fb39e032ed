#pragma once
#include <cstdint>
#include <string>
#include <variant>

#include "npy_file.hpp"

namespace zeroplan::runner {

/// Training samples: rows of features, made up ("synthetic:ROWSxCOLUMNS": standard normal, by seed) or of a
/// .npy file.
class Dataset {
public:
    /// `data`: /run/data. `width`: features that the model takes. `needs_labels`: the loss is a cross
    /// entropy. Throws Error{invalid_input, not_supported} naming both values.
    Dataset(const std::string& data, std::uint64_t seed, std::uint64_t width, bool needs_labels);

    std::uint64_t rows() const { return rows_; }
    std::uint64_t columns() const { return columns_; }
    void read_row(std::uint64_t row, float* to) const;
    /// A class in [0, classes), by seed and row. Synthetic data only.
    std::int64_t label(std::uint64_t row, std::uint64_t classes) const;

private:
    std::uint64_t seed_, rows_ = 0, columns_ = 0;
    std::variant<std::monostate, NpyFile> source_;
};

/// Which samples a rank sees when: sample k of rank r is row k · ranks + r, so a step at any world size sees
/// the same rows as long as ranks · micro-batch size stays the same. Each row is seen once an epoch; the last
/// batch may be smaller, down to empty on ranks that have run out of rows.
struct BatchSchedule {
    std::uint64_t rows = 0, ranks = 1, micro_batch_size = 1, micro_batches = 1;  ///< micro-batches a step

    std::uint64_t rows_of(std::uint64_t rank) const {
        return rows > rank ? (rows - rank - 1) / ranks + 1 : 0;
    }
    std::uint64_t steps_per_epoch() const;

    /// Samples of a micro-batch: rows first, first + stride, …
    struct Batch {
        std::uint64_t first = 0, stride = 1, size = 0;
        std::uint64_t row(std::uint64_t sample) const { return first + sample * stride; }
    };
    /// `step` counts over the epochs.
    Batch batch(std::uint64_t rank, std::uint64_t step, std::uint64_t micro_batch) const;
};

}  // namespace zeroplan::runner
