#include "checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace zeroplan::runner {
namespace {

constexpr std::size_t buffer_limit = 1 << 20;

}  // namespace

CheckpointWriter::CheckpointWriter(const std::string& directory, const ModelSpec& model)
    : directory_(directory), path_(directory + "/model.safetensors"), partial_(path_ + ".partial") {
    std::error_code error;
    std::filesystem::create_directories(directory_, error);
    if (error)
        throw Error(ErrorCode::io, fmt::format("can't make the checkpoint's directory: {}", error.message()),
                    "give /run/checkpoint a directory that can be written", {directory_, ""});
    file_ = FileDescriptor(open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file_) throw failure(ErrorCode::io, "open");
    buffered_ = safetensors_header(model);
    reserve(buffered_.size() + model.parameter_count() * sizeof(float));
}

CheckpointWriter::~CheckpointWriter() {
    if (!committed_) unlink(partial_.c_str());
}

void CheckpointWriter::reserve(std::uint64_t bytes) {
    if (fallocate(file_.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return;
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR) return;  // writing will tell
    const Error error = failure(ErrorCode::io, fmt::format("reserve {} for", format_bytes(Bytes{bytes})));
    unlink(partial_.c_str());  // the destructor of what isn't made won't
    throw Error(error);
}

void CheckpointWriter::write(const float* values, std::size_t n) {
    buffered_.append(reinterpret_cast<const char*>(values), n * sizeof(float));
    if (buffered_.size() >= buffer_limit) flush();
}

void CheckpointWriter::flush() {
    for (std::size_t done = 0; done < buffered_.size();) {
        const ssize_t n = ::write(file_.get(), buffered_.data() + done, buffered_.size() - done);
        if (n < 0 && errno != EINTR) throw failure(ErrorCode::run_failed, "write");
        if (n > 0) done += static_cast<std::size_t>(n);
    }
    buffered_.clear();
}

void CheckpointWriter::commit() {
    flush();
    if (fsync(file_.get()) != 0) throw failure(ErrorCode::run_failed, "sync");
    if (std::rename(partial_.c_str(), path_.c_str()) != 0) throw failure(ErrorCode::run_failed, "rename");
    committed_ = true;
    const FileDescriptor directory(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory || fsync(directory.get()) != 0)
        throw failure(ErrorCode::run_failed, "sync the directory of");
}

Error CheckpointWriter::failure(ErrorCode code, const std::string& what) const {
    return {code,
            fmt::format("can't {} the checkpoint: {}", what, std::strerror(errno)),
            "is the disk full, or the directory not writable?",
            {partial_, ""}};
}

}  // namespace zeroplan::runner
