#include "zeroplan/command/output_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "zeroplan/error.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan::command {
namespace {

[[noreturn]] void refuse(const std::string& path, int error) {
    throw Error(error == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                fmt::format("cannot write: {}", std::strerror(error)),
                "does its folder exist, and may you write there?", {path, ""});
}

/// Whether a new file can be made where `path` is, or where the link `path` leads to; 0 or errno. Permission
/// bits don't tell: a file system may be read-only, or its owner root.
int try_beside(const std::string& path) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
    std::string trial = (error ? std::filesystem::path(path) : target).string() + ".XXXXXX";
    const int file = ::mkstemp(trial.data());
    if (file < 0) return errno;
    ::close(file);
    ::unlink(trial.c_str());
    return 0;
}

/// The same failure of something that is done.
Error lost(const Error& error) {
    const bool unwritten = error.code() == ErrorCode::io || error.code() == ErrorCode::not_found;
    return unwritten ? Error(ErrorCode::run_failed, error.message(), error.hint(), error.place()) : error;
}

}  // namespace

void check_writable(const std::string& path) {
    if (path.empty()) return;
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) refuse(path, EISDIR);
    if (exists && !S_ISREG(status.st_mode)) {  // a terminal, a pipe, /dev/null: written in place
        if (::access(path.c_str(), W_OK) != 0) refuse(path, errno);
    } else if (const int error = try_beside(path); error != 0) {
        refuse(path, error);
    }
}

void deliver(std::initializer_list<std::function<void()>> steps) {
    std::optional<Error> first;
    for (const auto& step : steps) {
        try {
            step();
        } catch (const Error& error) {
            if (!first) first = lost(error);
        }
    }
    if (first) throw Error(*first);
}

std::function<void()> file_step(const std::string& path, std::function<std::string()> text) {
    return [path, text = std::move(text)] {
        if (!path.empty()) write_text_file(path, text());
    };
}

}  // namespace zeroplan::command
