#include "zeroplan/error.hpp"

#include <utility>

namespace zeroplan {
namespace {

std::string compose(const std::string& message, const std::string& hint, const ErrorPlace& place) {
    std::string text;
    if (!place.file.empty()) text += place.file + ": ";
    if (!place.pointer.empty()) text += place.pointer + ": ";
    text += message;
    if (!hint.empty()) text += "\n  " + hint;
    return text;
}

}  // namespace

Error::Error(ErrorCode code, std::string message, std::string hint, ErrorPlace place)
    : std::runtime_error(compose(message, hint, place)),
      code_(code),
      message_(std::move(message)),
      hint_(std::move(hint)),
      place_(std::move(place)) {}

Error Error::in_file(const std::string& file) const {
    ErrorPlace place = place_;
    if (place.file.empty()) place.file = file;
    return Error(code_, message_, hint_, place);
}

void throw_overflow(const char* what) {
    throw Error(ErrorCode::overflow, std::string(what) + " exceeds 2^64 - 1",
                "a size in the scenario is far too large: check dimensions, batch and sequence length");
}

}  // namespace zeroplan
