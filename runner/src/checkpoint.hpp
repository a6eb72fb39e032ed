#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "file_descriptor.hpp"
#include "zeroplan/error.hpp"
#include "zeroplan/model_spec.hpp"

namespace zeroplan::runner {

/// Writes <directory>/model.safetensors: all parameters as fp32 in registration order, tied ones once. The
/// file appears under its name when it is whole and on the disk; until then it is
/// <directory>/model.safetensors.partial.
class CheckpointWriter {
public:
    /// Makes the directory if it isn't there and takes the disk space, where the file system can tell
    /// beforehand. Throws Error{io} naming the directory or file.
    CheckpointWriter(const std::string& directory, const ModelSpec& model);
    CheckpointWriter(const CheckpointWriter&) = delete;
    CheckpointWriter& operator=(const CheckpointWriter&) = delete;
    /// Removes what commit() hasn't made whole.
    ~CheckpointWriter();

    /// The next values. Throws Error{run_failed}: the run that made them is lost, unlike one refused at its
    /// beginning.
    void write(const float* values, std::size_t n);
    /// Makes the file whole and puts it in its place. Throws Error{run_failed}.
    void commit();

private:
    void reserve(std::uint64_t bytes);
    void flush();
    Error failure(ErrorCode code, const std::string& what) const;

    std::string directory_, path_, partial_;
    FileDescriptor file_;
    std::string buffered_;
    bool committed_ = false;
};

/// The header of such a file, its length included: https://github.com/huggingface/safetensors#format.
std::string safetensors_header(const ModelSpec& model);

}  // namespace zeroplan::runner
