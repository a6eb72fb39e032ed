#include "dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "counter_random.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan::runner {
namespace {

/// Streams of random numbers far from those of the parameters, which are numbered from 0.
constexpr std::uint64_t feature_stream = 1ULL << 62, label_stream = feature_stream + 1;

Error bad_data(ErrorCode code, const std::string& message, const std::string& hint) {
    return {code, message, hint, {"", "/run/data"}};
}

std::uint64_t count(const std::string& digits) {
    // Twelve digits are a sample for every byte of a large machine.
    if (digits.size() > 12)
        throw bad_data(ErrorCode::invalid_input, fmt::format("{} is too many", digits),
                       "give fewer rows or columns");
    return std::stoull(digits);
}

}  // namespace

Dataset::Dataset(const std::string& data, std::uint64_t seed, std::uint64_t width, bool needs_labels)
    : seed_(seed) {
    static const std::regex synthetic("synthetic:([0-9]+)x([0-9]+)");
    std::smatch match;
    if (std::regex_match(data, match, synthetic)) {
        rows_ = count(match[1]);
        columns_ = count(match[2]);
    } else if (data.rfind("synthetic", 0) == 0) {
        throw bad_data(ErrorCode::invalid_input, fmt::format("'{}' is not synthetic:ROWSxCOLUMNS", data),
                       "for example synthetic:1000x100");
    } else if (needs_labels) {
        throw bad_data(ErrorCode::not_supported,
                       fmt::format("'{}' has no labels, and the loss is a cross entropy", data),
                       "use synthetic:ROWSxCOLUMNS, whose labels are made up, or the loss mse");
    } else {
        const NpyFile& file = source_.emplace<NpyFile>(data);
        rows_ = file.rows();
        columns_ = file.columns();
    }
    if (rows_ == 0)
        throw bad_data(ErrorCode::invalid_input, fmt::format("'{}' has no samples", data),
                       "give at least one row");
    if (columns_ != width)
        throw bad_data(ErrorCode::invalid_input,
                       fmt::format("'{}' has {} columns, the model takes {} features", data, columns_, width),
                       fmt::format("for example synthetic:{}x{}", rows_, width));
}

void Dataset::read_row(std::uint64_t row, float* to) const {
    if (const auto* file = std::get_if<NpyFile>(&source_)) return file->read_row(row, to);
    for (std::uint64_t column = 0; column < columns_; ++column)
        to[column] = standard_normal(random_bits(seed_, feature_stream, row * columns_ + column));
}

std::int64_t Dataset::label(std::uint64_t row, std::uint64_t classes) const {
    return static_cast<std::int64_t>(random_bits(seed_, label_stream, row) % classes);
}

std::uint64_t BatchSchedule::steps_per_epoch() const {
    const std::uint64_t batches =
        (rows_of(0) + micro_batch_size - 1) / micro_batch_size;  // rank 0 has the most
    return (batches + micro_batches - 1) / micro_batches;
}

BatchSchedule::Batch BatchSchedule::batch(std::uint64_t rank, std::uint64_t step,
                                          std::uint64_t micro_batch) const {
    const std::uint64_t mine = rows_of(rank);
    const std::uint64_t sample =
        ((step % steps_per_epoch()) * micro_batches + micro_batch) * micro_batch_size;
    if (sample >= mine) return {rank, ranks, 0};
    return {sample * ranks + rank, ranks, std::min(micro_batch_size, mine - sample)};
}

}  // namespace zeroplan::runner
