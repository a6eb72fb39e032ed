#include "zeroplan/runner/launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "file_descriptor.hpp"
#include "launch_environment.hpp"
#include "rank_failure.hpp"
#include "zeroplan/runner/host_world.hpp"
#include "zeroplan/runner/tcp_store.hpp"

extern char** environ;

namespace zeroplan::runner {
namespace {

using Clock = std::chrono::steady_clock;

/// The others notice a failed rank by themselves within moments; these are for those that don't.
constexpr std::chrono::seconds grace_before_term{1}, grace_before_kill{3};

/// Blocks the signals that launch() waits for, and puts everything back.
class BlockedSignals {
public:
    BlockedSignals() {
        sigemptyset(&signals_);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals_, signal);
        sigprocmask(SIG_BLOCK, &signals_, &before_);
    }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;
    ~BlockedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

    const sigset_t& before() const { return before_; }
    /// The next of them, or 0 after a while.
    int wait() const {
        const timespec patience{0, 100'000'000};
        const int signal = sigtimedwait(&signals_, nullptr, &patience);
        return signal > 0 ? signal : 0;
    }

private:
    sigset_t signals_{}, before_{};
};

/// A null-terminated array of C strings, made before fork(): between fork and exec nothing may be allocated.
class CStrings {
public:
    explicit CStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
        for (std::string& text : strings_) pointers_.push_back(text.data());
        pointers_.push_back(nullptr);
    }
    char* const* get() const { return pointers_.data(); }

private:
    std::vector<std::string> strings_;
    std::vector<char*> pointers_;
};

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
    const auto name = [](const std::string& entry) { return entry.substr(0, entry.find('=') + 1); };
    std::vector<std::string> result = added;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        bool replaced = false;
        for (const std::string& one : added) replaced = replaced || name(one) == name(text);
        if (!replaced) result.push_back(text);
    }
    return result;
}

struct Process {
    int rank = 0;
    pid_t pid = 0;
    FileDescriptor errors;      ///< what the rank writes its error to
    std::optional<int> status;  ///< of waitpid(), once it has ended
};

[[noreturn]] void become(const CStrings& command, const CStrings& environment, int errors,
                         const sigset_t& signals, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);  // it has died before we could ask to follow it
    fcntl(errors, F_SETFD, 0);          // stays open in the program
    sigprocmask(SIG_SETMASK, &signals, nullptr);
    execve("/proc/self/exe", command.get(), environment.get());
    _exit(127);
}

Process start(int rank, int ranks, const std::vector<std::string>& command, const StoreAddress& store,
              const BlockedSignals& signals) {
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw Error(ErrorCode::run_failed,
                    fmt::format("can't start rank {}: {}", rank, std::strerror(errno)));
    Process process{rank, 0, FileDescriptor(ends[0]), {}};
    const FileDescriptor writing(ends[1]);
    const CStrings arguments(command);
    const CStrings environment(
        environment_with({fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank),
                          fmt::format("WORLD_SIZE={}", ranks), fmt::format("LOCAL_WORLD_SIZE={}", ranks),
                          "MASTER_ADDR=" + store.host, fmt::format("MASTER_PORT={}", store.port),
                          "OPENBLAS_NUM_THREADS=1", fmt::format("{}={}", launched_by_us, writing.get())}));
    const pid_t parent = getpid();
    process.pid = fork();
    if (process.pid == 0) become(arguments, environment, writing.get(), signals.before(), parent);
    if (process.pid < 0)
        throw Error(ErrorCode::run_failed, fmt::format("can't start rank {}: {}", rank, std::strerror(errno)),
                    "use fewer ranks, or raise the limit on processes (ulimit -u)");
    return process;
}

std::string all_of(const FileDescriptor& pipe) {
    std::string result;
    char bytes[4096];
    for (ssize_t n = 0; (n = read(pipe.get(), bytes, sizeof(bytes))) > 0;)
        result.append(bytes, static_cast<std::size_t>(n));
    return result;
}

bool has_failed(int status) {
    return WIFSIGNALED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 1);
}

RankFailure failure_of(const Process& process) {
    if (WIFSIGNALED(*process.status)) {
        const int signal = WTERMSIG(*process.status);
        const char* hint = signal == SIGKILL ? "did the system run out of memory? Its log (dmesg) says so"
                                             : "please report it with the scenario";
        return {Error(ErrorCode::run_failed,
                      fmt::format("rank {} (process {}) was killed by signal {} ({})", process.rank,
                                  process.pid, signal, strsignal(signal)),
                      hint)};
    }
    if (auto failure = decode_rank_failure(all_of(process.errors))) return *failure;
    return {Error(ErrorCode::run_failed,
                  fmt::format("rank {} (process {}) ended with status {}", process.rank, process.pid,
                              WEXITSTATUS(*process.status)),
                  "its own message may stand above")};
}

/// All ranks, until the last has ended.
class Ranks {
public:
    ~Ranks() {
        signal_all(SIGKILL);
        for (Process& process : processes_)
            if (!process.status) waitpid(process.pid, nullptr, 0);
    }
    void add(Process process) { processes_.push_back(std::move(process)); }

    bool are_running() const {
        for (const Process& process : processes_)
            if (!process.status) return true;
        return false;
    }
    void signal_all(int signal) const {
        for (const Process& process : processes_)
            if (!process.status) kill(process.pid, signal);
    }

    /// Notes who has ended; remembers the first failure that isn't an echo of another's.
    void collect() {
        for (Process& process : processes_) {
            int status = 0;
            if (process.status || waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
            process.status = status;
            if (!has_failed(status)) continue;
            if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) {
                reader_has_gone_ = true;
                begin_ending();
                continue;
            }
            // Those that we ended ourselves have nothing to say.
            if (ending_since_ && Clock::now() - *ending_since_ > grace_before_term && WIFSIGNALED(status))
                continue;
            RankFailure failure = failure_of(process);
            if (!failure_ || (failure_->is_echo && !failure.is_echo)) failure_ = std::move(failure);
            if (!ending_since_) ending_since_ = Clock::now();
        }
    }

    /// Helps those to end that don't by themselves.
    void hurry() const {
        if (!ending_since_) return;
        const auto passed = Clock::now() - *ending_since_;
        if (passed > grace_before_kill) {
            signal_all(SIGKILL);
        } else if (passed > grace_before_term) {
            signal_all(SIGTERM);
        }
    }
    void begin_ending() {
        if (!ending_since_) ending_since_ = Clock::now();
    }

    const std::optional<RankFailure>& failure() const { return failure_; }
    /// Who read the report or the messages has closed the pipe: the run's end, and nobody's failure.
    bool reader_has_gone() const { return reader_has_gone_; }
    int status_of_rank_0() const { return WEXITSTATUS(*processes_.front().status); }

private:
    std::vector<Process> processes_;
    std::optional<RankFailure> failure_;
    bool reader_has_gone_ = false;
    std::optional<Clock::time_point> ending_since_;
};

}  // namespace

int launch(int ranks, const std::vector<std::string>& command) {
    int ended_by = 0;
    int status = 0;
    {
        const BlockedSignals signals;
        const TcpStoreServer server({.host = "127.0.0.1", .port = 0, .local_name = {}});
        Ranks running;
        for (int rank = 0; rank < ranks; ++rank)
            running.add(start(rank, ranks, command, server.address(), signals));
        while (running.are_running()) {
            const int signal = signals.wait();
            if (signal != 0 && signal != SIGCHLD) {
                ended_by = signal;
                running.signal_all(signal);
                running.begin_ending();
            }
            running.collect();
            running.hurry();
        }
        if (ended_by == 0 && running.reader_has_gone()) ended_by = SIGPIPE;
        if (ended_by == 0 && running.failure()) throw Error(running.failure()->error);
        if (ended_by == 0) status = running.status_of_rank_0();
    }
    if (ended_by != 0) {  // as if nobody had caught it
        signal(ended_by, SIG_DFL);
        raise(ended_by);
    }
    return status;
}

bool report_to_launcher(const Error& error) {
    const char* descriptor = std::getenv(launched_by_us);
    if (descriptor == nullptr) return false;
    const bool is_echo = dynamic_cast<const PeerFailure*>(&error) != nullptr;
    const std::string bytes = encode({error, is_echo});
    return write(std::atoi(descriptor), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

}  // namespace zeroplan::runner
