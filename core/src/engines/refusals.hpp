#pragma once
#include <string>
#include <vector>

#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// Throws Error{not_supported}: the scenario's engine doesn't model training.`key` = `value`.
[[noreturn]] void refuse(const TrainingConfig& training, const char* key, const std::string& value,
                         const char* way_out);

/// The same where the key says anything at all: a degree above 1, a target, true, an object or a list.
void refuse_degree(const TrainingConfig& training, const char* key, std::uint64_t degree,
                   const char* way_out);
void refuse_offload(const TrainingConfig& training, const char* key, OffloadTarget target,
                    const char* way_out);
void refuse_flag(const TrainingConfig& training, const char* key, bool flag, const char* way_out);
void refuse_object(const TrainingConfig& training, const char* key, const std::string& json,
                   const char* way_out);
void refuse_list(const TrainingConfig& training, const char* key, const std::vector<std::string>& list,
                 const char* way_out);

/// The same where a word is the one that is refused.
template <typename Word>
void refuse_word(const TrainingConfig& training, const char* key, Word stated, Word refused,
                 const char* way_out) {
    if (stated == refused) refuse(training, key, "'" + std::string(to_string(stated)) + "'", way_out);
}

/// Gradients go to the host with what is stepped there, and by no key of their own.
void refuse_gradients_alone(const TrainingConfig& training, bool gradients_leave, const char* way_out);

}  // namespace zeroplan
