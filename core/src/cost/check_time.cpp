#include "cost/check_time.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "zeroplan/error.hpp"

namespace zeroplan {

namespace {

/// Copies between host and device and the optimizer's step on the host take time that no operation of the
/// program stands for: without it an offloaded step would look faster than one that stays on the device.
void check_offload(const TrainingConfig& training) {
    const std::array<std::pair<const char*, OffloadTarget>, 4> targets{
        {{"offload_optimizer", training.offload_optimizer},
         {"offload_parameters", training.offload_parameters},
         {"offload_activations", training.offload_activations},
         {"offload_gradients", training.offload_gradients}}};
    for (const auto& [key, target] : targets)
        if (target != OffloadTarget::none)
            throw Error(ErrorCode::not_supported,
                        fmt::format("the time of a step with {} = '{}' is not modelled by this version", key,
                                    to_string(target)),
                        "zeroplan plan tells its memory; for a time, keep everything on the device",
                        {"", fmt::format("/training/{}", key)});
}

}  // namespace

void check_time_is_modelled(const TrainingConfig& training) {
    check_offload(training);
}

}  // namespace zeroplan
