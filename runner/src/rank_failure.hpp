#pragma once
#include <optional>
#include <string>

#include "zeroplan/error.hpp"

namespace zeroplan::runner {

/// A rank's last words: the error that ended it, and whether that only says that another rank has ended.
struct RankFailure {
    Error error;
    bool is_echo = false;
};

std::string encode(const RankFailure& failure);
std::optional<RankFailure> decode_rank_failure(const std::string& bytes);

}  // namespace zeroplan::runner
