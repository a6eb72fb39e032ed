#pragma once
#include <stdexcept>
#include <string>

namespace zeroplan {

enum class ErrorCode {
    invalid_input,  ///< a value, key or file the user gave is wrong
    not_supported,  ///< well formed, but not modelled by this version: refused rather than guessed
    not_found,      ///< a file, preset, topology or GPU that does not exist
    io,             ///< reading or writing failed
    overflow,       ///< a size exceeds 2^64 − 1
    run_failed      ///< a run or a simulation started and failed
};

/// Where the wrong value stands: a file (or "command line") and a JSON pointer, flag or line in it. Either
/// may be empty.
struct ErrorPlace {
    std::string file;
    std::string pointer;
    friend bool operator==(const ErrorPlace&, const ErrorPlace&) = default;
};

/// The one exception of the project. `message` names both values of a contradiction; `hint` says what to do.
/// what() is "file: pointer: message" with the hint on a second line.
class Error : public std::runtime_error {
public:
    Error(ErrorCode code, std::string message, std::string hint = {}, ErrorPlace place = {});

    ErrorCode code() const { return code_; }
    const std::string& message() const { return message_; }
    const std::string& hint() const { return hint_; }
    const ErrorPlace& place() const { return place_; }

    /// The same error, its file filled in if it had none; readers of files add the name they know.
    Error in_file(const std::string& file) const;
    /// Exit status of the command line: 3 for run_failed, else 2.
    int exit_status() const { return code_ == ErrorCode::run_failed ? 3 : 2; }

private:
    ErrorCode code_;
    std::string message_, hint_;
    ErrorPlace place_;
};

/// Throws Error{overflow}: "`what` exceeds 2^64 - 1".
[[noreturn]] void throw_overflow(const char* what);

}  // namespace zeroplan
