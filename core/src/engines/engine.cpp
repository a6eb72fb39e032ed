#include "engines/engine.hpp"

#include <fmt/format.h>

namespace zeroplan {

EngineOutput run_engine(const Scenario& scenario) {
    if (scenario.training.engine == EngineKind::native) return native_engine(scenario);
    if (scenario.training.engine == EngineKind::megatron) return megatron_engine(scenario);
    if (scenario.training.engine == EngineKind::single || scenario.training.engine == EngineKind::ddp ||
        scenario.training.engine == EngineKind::ddp_zero_optimizer)
        return ddp_engine(scenario);
    if (scenario.training.engine == EngineKind::fsdp1) return fsdp1_engine(scenario);
    if (scenario.training.engine == EngineKind::fsdp2) return fsdp2_engine(scenario);
    throw Error(
        ErrorCode::not_supported,
        fmt::format("engine '{}' is not modelled by this version", to_string(scenario.training.engine)),
        "use --engine native (the engine of zeroplan's own runner)", {"", "/training/engine"});
}

}  // namespace zeroplan
