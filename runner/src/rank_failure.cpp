#include "rank_failure.hpp"

#include <vector>

namespace zeroplan::runner {

std::string encode(const RankFailure& failure) {
    const Error& error = failure.error;
    const char separator = '\0';
    return std::to_string(static_cast<int>(error.code())) + separator + (failure.is_echo ? "1" : "0") +
           separator + error.message() + separator + error.hint() + separator + error.place().file +
           separator + error.place().pointer + separator;
}

std::optional<RankFailure> decode_rank_failure(const std::string& bytes) {
    std::vector<std::string> fields;
    for (std::size_t begin = 0, end = 0; (end = bytes.find('\0', begin)) != std::string::npos;
         begin = end + 1)
        fields.push_back(bytes.substr(begin, end - begin));
    if (fields.size() != 6 || fields[0].size() != 1) return std::nullopt;
    const auto code = static_cast<ErrorCode>(fields[0][0] - '0');
    return RankFailure{Error(code, fields[2], fields[3], {fields[4], fields[5]}), fields[1] == "1"};
}

}  // namespace zeroplan::runner
