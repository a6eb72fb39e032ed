#include "engines/refusals.hpp"

#include <fmt/format.h>

namespace zeroplan {

void refuse(const TrainingConfig& training, const char* key, const std::string& value, const char* way_out) {
    throw Error(ErrorCode::not_supported,
                fmt::format("engine {} doesn't model {} = {}", to_string(training.engine), key, value),
                way_out, {"", fmt::format("/training/{}", key)});
}

void refuse_degree(const TrainingConfig& training, const char* key, std::uint64_t degree,
                   const char* way_out) {
    if (degree != 1) refuse(training, key, fmt::format("{}", degree), way_out);
}

void refuse_offload(const TrainingConfig& training, const char* key, OffloadTarget target,
                    const char* way_out) {
    if (target != OffloadTarget::none) refuse(training, key, fmt::format("'{}'", to_string(target)), way_out);
}

void refuse_flag(const TrainingConfig& training, const char* key, bool flag, const char* way_out) {
    if (flag) refuse(training, key, "true", way_out);
}

void refuse_object(const TrainingConfig& training, const char* key, const std::string& json,
                   const char* way_out) {
    if (!json.empty()) refuse(training, key, json, way_out);
}

void refuse_list(const TrainingConfig& training, const char* key, const std::vector<std::string>& list,
                 const char* way_out) {
    if (!list.empty()) refuse(training, key, fmt::format("'{}', …", list[0]), way_out);
}

void refuse_gradients_alone(const TrainingConfig& training, bool gradients_leave, const char* way_out) {
    if (!gradients_leave) refuse_offload(training, "offload_gradients", training.offload_gradients, way_out);
}

}  // namespace zeroplan
