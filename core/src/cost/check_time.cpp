#include "cost/check_time.hpp"

#include <fmt/format.h>

#include "zeroplan/error.hpp"

namespace zeroplan {

namespace {

[[noreturn]] void refuse(const TrainingConfig& training, const char* key, OffloadTarget target,
                         const char* way_out) {
    throw Error(ErrorCode::not_supported,
                fmt::format("the time of a step with {} = '{}' is not modelled for engine {}{}", key,
                            to_string(target), to_string(training.engine),
                            training.engine == EngineKind::deepspeed
                                ? fmt::format(" at zero_stage {}", training.zero_stage)
                                : std::string{}),
                way_out, {"", fmt::format("/training/{}", key)});
}

/// Without copies and host steps in the program an offloaded step would look as fast as one that stays on the
/// device.
bool steps_optimizer_on_host(const TrainingConfig& training) {
    switch (training.engine) {
        case EngineKind::llm_c:
            return false;
        case EngineKind::deepspeed:
            return training.zero_stage > 0;
        default:
            return true;
    }
}

bool fetches_parameters(const TrainingConfig& training) {
    return training.engine == EngineKind::fsdp1 || training.engine == EngineKind::fsdp2 ||
           training.engine == EngineKind::deepspeed;
}

constexpr const char* keep_on_device = "zeroplan plan tells its memory; for a time, keep it on the device";

}  // namespace

void check_time_is_modelled(const TrainingConfig& training) {
    const bool optimizer = training.offload_optimizer != OffloadTarget::none;
    const bool parameters = training.offload_parameters != OffloadTarget::none;
    if (optimizer && !steps_optimizer_on_host(training))
        refuse(training, "offload_optimizer", training.offload_optimizer, keep_on_device);
    if (parameters && !fetches_parameters(training))
        refuse(training, "offload_parameters", training.offload_parameters, keep_on_device);
    if (training.offload_gradients != OffloadTarget::none && !optimizer && !parameters)
        refuse(training, "offload_gradients", training.offload_gradients,
               "gradients go to the host for an optimizer that steps there: offload the optimizer, too");
}

}  // namespace zeroplan
