#include "zeroplan/io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace zeroplan {
namespace {

/// More than any scenario or report holds; reading a device by mistake ends here and not when memory does.
constexpr std::size_t largest_text = std::size_t{1} << 30;

class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    int number() const { return number_; }
    /// Reports what close() alone may find out: a full disk on a network file system.
    int close() { return ::close(std::exchange(number_, -1)); }

private:
    int number_;
};

[[noreturn]] void throw_io(const char* doing, const std::string& path, int error, std::string hint = {}) {
    const auto code = error == ENOENT ? ErrorCode::not_found : ErrorCode::io;
    throw Error(code, fmt::format("cannot {}: {}", doing, std::strerror(error)), std::move(hint), {path, ""});
}

void write_all(const Descriptor& file, std::string_view text, const std::string& path) {
    while (!text.empty()) {
        const ssize_t written = ::write(file.number(), text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw_io("write", path, errno);
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// Where a rename has to put the file: behind symbolic links, or `path` itself if nothing is there yet.
std::string link_target(const std::string& path) {
    char* resolved = ::realpath(path.c_str(), nullptr);
    if (resolved == nullptr) return path;
    std::string target = resolved;
    std::free(resolved);
    return target;
}

/// A new file beside `target`, which nobody else has: its name is tried until it is new.
std::pair<int, std::string> create_beside(const std::string& target) {
    constexpr int most_tries = 100;
    for (int number = 0;; ++number) {
        std::string path = fmt::format("{}.{}-{}.tmp", target, ::getpid(), number);
        const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST || number == most_tries) return {file, std::move(path)};
    }
}

/// Who may read the file that is replaced may read the new one, and nobody else.
void take_mode_of(const std::string& target, const Descriptor& file, const std::string& path) {
    struct stat status {};
    if (::stat(target.c_str(), &status) != 0) return;  // nothing is replaced
    if (::fchmod(file.number(), status.st_mode & 07777U) != 0) throw_io("write", path, errno);
}

bool is_no_regular_file(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

/// A terminal, a pipe or /dev/null can't be renamed over.
void write_in_place(const std::string& path, std::string_view text) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.number() < 0) throw_io("write", path, errno);
    write_all(file, text, path);
}

}  // namespace

std::string read_text_file(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number() < 0)
        throw_io("open", path, errno, "check the path; relative paths start where you are");
    std::string text;
    std::size_t size = 0;
    for (;;) {
        if (text.size() - size < 4096) text.resize(text.size() * 2 + 65536);
        const ssize_t count = ::read(file.number(), text.data() + size, text.size() - size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0)
            throw_io("read", path, errno, errno == EISDIR ? "a file is expected, not a folder" : "");
        if (count == 0) break;
        size += static_cast<std::size_t>(count);
        if (size > largest_text)
            throw Error(ErrorCode::io, "larger than 1 GiB: not read as text",
                        "is it the right file? a checkpoint is given with --model", {path, ""});
    }
    text.resize(size);
    return text;
}

void write_text_file(const std::string& path, std::string_view text) {
    if (is_no_regular_file(path)) return write_in_place(path, text);
    const std::string target = link_target(path);
    const auto [number, temporary] = create_beside(target);
    Descriptor file(number);
    if (file.number() < 0) throw_io("write", path, errno, "does its folder exist, and may you write there?");
    try {
        take_mode_of(target, file, path);
        write_all(file, text, path);
        if (::fsync(file.number()) != 0 || file.close() != 0) throw_io("write", path, errno);
        if (::rename(temporary.c_str(), target.c_str()) != 0) throw_io("replace", path, errno);
    } catch (const Error&) {
        ::unlink(temporary.c_str());
        throw;
    }
}

}  // namespace zeroplan
