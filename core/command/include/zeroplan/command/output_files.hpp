#pragma once
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace zeroplan::command {

/// Before the work rather than after it: throws Error{io, not_found} naming a file that could not be written,
/// by making one beside it that goes away again, and Error{invalid_input} if two results would be written to
/// one file. "" is no file. What only writing tells, a full
/// disk, is left to deliver().
void check_writable(const std::vector<std::string>& paths);

/// What a subcommand hands over when its work is done: files first, since the reader of the report may close
/// the pipe, then the report. Every step is taken, whatever becomes of those before it; then the first Error
/// is thrown. One that says that something can't be written becomes Error{run_failed}: the work is done, and
/// its result is lost.
void deliver(std::initializer_list<std::function<void()>> steps);

/// A step of deliver(): writes what `text` returns, unless no file is named.
std::function<void()> file_step(const std::string& path, std::function<std::string()> text);
/// The same for files that are of use only together: all are written, `text` by index into `paths`, or none,
/// and what was there before stays.
std::function<void()> files_step(std::vector<std::string> paths,
                                 std::function<std::string(std::size_t)> text);

}  // namespace zeroplan::command
