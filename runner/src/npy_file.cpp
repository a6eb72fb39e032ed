#include "npy_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <regex>

#include "zeroplan/error.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan::runner {
namespace {

constexpr const char* way_out =
    "save it with numpy.save(file, array.astype(numpy.float32)), array of two dimensions";
constexpr std::size_t largest_header = 1 << 16;

Error wrong(const std::string& path, const std::string& what) {
    return {ErrorCode::invalid_input, what, way_out, {path, ""}};
}

std::string read_at(const FileDescriptor& file, const std::string& path, std::uint64_t offset,
                    std::size_t n) {
    std::string bytes(n, '\0');
    if (pread(file.get(), bytes.data(), n, static_cast<off_t>(offset)) != static_cast<ssize_t>(n))
        throw wrong(path, "the file ends too early");
    return bytes;
}

std::uint64_t little_endian(const std::string& bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

std::uint64_t number(const std::string& path, const std::string& digits) {
    try {
        return std::stoull(digits);
    } catch (const std::out_of_range&) {
        throw wrong(path, fmt::format("dimension {} is too large", digits));
    }
}

/// Rows are read from wherever they are, every epoch anew: a pipe, whose opening may also wait for ever, or a
/// device won't do.
FileDescriptor open_data(const std::string& path) {
    const char* hint = "/run/data is synthetic:ROWSxCOLUMNS or a .npy file";
    FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file)
        throw Error(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                    fmt::format("can't open the data file: {}", std::strerror(errno)), hint, {path, ""});
    struct stat status {};
    if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
        throw Error(ErrorCode::invalid_input,
                    fmt::format("this is {}, not a file",
                                S_ISDIR(status.st_mode) ? "a folder" : "a pipe or a device"),
                    hint, {path, ""});
    return file;
}

}  // namespace

// Format: numpy.lib.format; "\x93NUMPY", two bytes of version, length of the header, the header: a Python
// dict.
NpyFile::NpyFile(const std::string& path) : path_(path), file_(open_data(path)) {
    if (read_at(file_, path, 0, 6) != "\x93NUMPY") throw wrong(path, "this is no .npy file");
    const auto version = static_cast<unsigned char>(read_at(file_, path, 6, 1)[0]);
    const std::size_t length_bytes = version == 1 ? 2 : 4;
    const std::uint64_t header_length = little_endian(read_at(file_, path, 8, length_bytes));
    if (version < 1 || version > 3 || header_length > largest_header)
        throw wrong(path, fmt::format(".npy version {} with a header of {} bytes isn't one we know", version,
                                      header_length));
    const std::string header = read_at(file_, path, 8 + length_bytes, header_length);
    data_offset_ = 8 + length_bytes + header_length;

    std::smatch match;
    if (!std::regex_search(header, match, std::regex("'descr': *'([^']*)'")) || match[1] != "<f4")
        throw wrong(path, fmt::format("the elements are {}, not float32 ('<f4')",
                                      match.empty() ? "of a compound type" : "'" + match[1].str() + "'"));
    if (header.find("'fortran_order': False") == std::string::npos)
        throw wrong(path, "the array is stored by columns (Fortran order)");
    if (!std::regex_search(header, match, std::regex("'shape': *\\(([0-9]+), *([0-9]+)\\)")))
        throw wrong(path, "the array doesn't have two dimensions: samples and features");
    rows_ = number(path, match[1]);
    columns_ = number(path, match[2]);

    struct stat status {};
    fstat(file_.get(), &status);
    const std::uint64_t expected = file_size();
    if (static_cast<std::uint64_t>(status.st_size) < expected)
        throw wrong(path, fmt::format("the file has {} bytes, {} × {} samples need {}", status.st_size, rows_,
                                      columns_, expected));
}

std::uint64_t NpyFile::file_size() const {
    try {
        const std::uint64_t elements = checked_product(rows_, columns_, "the array");
        return checked_sum(data_offset_, checked_product(elements, sizeof(float), "the array"), "the array");
    } catch (const Error& error) {
        throw error.in_file(path_);
    }
}

void NpyFile::read_row(std::uint64_t row, float* to) const {
    const std::size_t bytes = columns_ * sizeof(float);
    if (pread(file_.get(), to, bytes, static_cast<off_t>(data_offset_ + row * bytes)) !=
        static_cast<ssize_t>(bytes))
        throw Error(ErrorCode::io, fmt::format("can't read row {}: {}", row, std::strerror(errno)), "",
                    {path_, ""});
}

}  // namespace zeroplan::runner
