#include "zeroplan/command/output_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
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

/// The file that `path` leads to. Absolute first: weakly_canonical() leaves the name of a new file relative,
/// but not "./" before it.
std::filesystem::path target_of(const std::string& path) {
    std::error_code error;
    std::filesystem::path target = std::filesystem::absolute(path, error);
    if (!error) target = std::filesystem::weakly_canonical(target, error);
    return error ? std::filesystem::path(path) : target;
}

/// Whether a new file can be made where `path` is, or where the link `path` leads to; 0 or errno. Permission
/// bits don't tell: a file system may be read-only, or its owner root.
int try_beside(const std::string& path) {
    std::string trial = target_of(path).string() + ".XXXXXX";
    const int file = ::mkstemp(trial.data());
    if (file < 0) return errno;
    ::close(file);
    ::unlink(trial.c_str());
    return 0;
}

/// A terminal, a pipe, /dev/null.
bool is_written_in_place(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

void check_one(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) refuse(path, EISDIR);
    if (is_written_in_place(path)) {
        if (::access(path.c_str(), W_OK) != 0) refuse(path, errno);
    } else if (const int error = try_beside(path); error != 0) {
        refuse(path, error);
    }
}

/// The same failure of something that is done.
Error lost(const Error& error) {
    const bool unwritten = error.code() == ErrorCode::io || error.code() == ErrorCode::not_found;
    return unwritten ? Error(ErrorCode::run_failed, error.message(), error.hint(), error.place()) : error;
}

/// A file's text beside the file, until it takes its place or goes away.
class Draft {
public:
    Draft(const std::string& path, const std::string& text)
        : path_(path),
          target_(target_of(path)),
          draft_(fmt::format("{}.{}.part", target_.string(), ::getpid())) {
        try {
            take_mode();
            write_text_file(draft_, text);
        } catch (const Error& error) {
            ::unlink(draft_.c_str());
            throw Error(error.code(), error.message(), error.hint(), {path_, ""});
        }
    }
    Draft(Draft&& other) noexcept
        : path_(std::move(other.path_)),
          target_(std::move(other.target_)),
          draft_(std::exchange(other.draft_, std::string())) {}
    Draft& operator=(Draft&&) = delete;
    ~Draft() {
        if (!draft_.empty()) ::unlink(draft_.c_str());
    }
    void put_in_place() {
        std::error_code error;
        std::filesystem::rename(draft_, target_, error);
        if (error) refuse(path_, error.value());
        draft_.clear();
    }

private:
    /// Who may read the file that will be replaced may read the draft from its first byte on, and nobody
    /// else: write_text_file() keeps the mode of what it replaces.
    void take_mode() {
        struct stat status {};
        if (::stat(target_.c_str(), &status) != 0) return;  // nothing is replaced
        write_text_file(draft_, "");
        if (::chmod(draft_.c_str(), status.st_mode & 07777U) != 0) refuse(path_, errno);
    }

    std::string path_;
    std::filesystem::path target_;
    std::string draft_;  ///< "" when it is in place
};

void write_all_or_none(const std::vector<std::string>& paths,
                       const std::function<std::string(std::size_t)>& text) {
    std::vector<Draft> drafts;
    drafts.reserve(paths.size());
    for (std::size_t i = 0; i < paths.size(); ++i) {
        // Nothing can be beside a pipe or /dev/null, nor take its place.
        if (is_written_in_place(paths[i]))
            write_text_file(paths[i], text(i));
        else
            drafts.emplace_back(paths[i], text(i));
    }
    for (Draft& draft : drafts) draft.put_in_place();
}

}  // namespace

void check_writable(const std::vector<std::string>& paths) {
    std::set<std::filesystem::path> files;
    for (const std::string& path : paths) {
        if (path.empty()) continue;
        if (!is_written_in_place(path) && !files.insert(target_of(path)).second)
            throw Error(ErrorCode::invalid_input,
                        "two results are to be written to this file, one over the other",
                        "name one file for each", {path, ""});
        check_one(path);
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

std::function<void()> files_step(std::vector<std::string> paths,
                                 std::function<std::string(std::size_t)> text) {
    return [paths = std::move(paths), text = std::move(text)] { write_all_or_none(paths, text); };
}

}  // namespace zeroplan::command
