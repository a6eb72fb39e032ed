#pragma once
#include <cstdint>
#include <string>

#include "file_descriptor.hpp"

namespace zeroplan::runner {

/// A two-dimensional float32 array in NumPy's .npy format (versions 1 to 3, little-endian, C order), read row
/// by row.
class NpyFile {
public:
    /// Throws Error{not_found, io, invalid_input} naming file and what is wrong with it.
    explicit NpyFile(const std::string& path);

    std::uint64_t rows() const { return rows_; }
    std::uint64_t columns() const { return columns_; }
    /// Throws Error{io} if the file has become shorter.
    void read_row(std::uint64_t row, float* to) const;

private:
    std::uint64_t file_size() const;

    std::string path_;
    FileDescriptor file_;
    std::uint64_t data_offset_ = 0, rows_ = 0, columns_ = 0;
};

}  // namespace zeroplan::runner
