#include "engines/fp8_hardware.hpp"

#include <fmt/format.h>

#include "zeroplan/error.hpp"

namespace zeroplan {
namespace {

// Compute capabilities, × 10: Ada has fp8, Blackwell's data-centre GPUs have block scaling in hardware.
constexpr std::uint32_t first_with_fp8 = 89, first_with_mxfp8 = 100, first_without_mxfp8 = 120;

std::string capability(std::uint32_t times_ten) {
    return fmt::format("{}.{}", times_ten / 10, times_ten % 10);
}

[[noreturn]] void refuse(const Scenario& scenario, const char* key, const char* word,
                         const std::string& needs, const char* way_out) {
    const GpuSpec& gpu = scenario.cluster.gpu;
    throw Error(ErrorCode::invalid_input,
                fmt::format("{} is '{}', which needs compute capability {}, but {} has {}", key, word, needs,
                            gpu.name, capability(gpu.compute_capability)),
                way_out, {"", fmt::format("/training/{}", key)});
}

}  // namespace

void check_fp8_hardware(const Scenario& scenario) {
    const std::uint32_t has = scenario.cluster.gpu.compute_capability;
    if (scenario.training.compute_dtype != DType::fp8 || has == 0) return;
    if (has < first_with_fp8)
        refuse(scenario, "compute_dtype", "fp8", fmt::format("{} or more", capability(first_with_fp8)),
               "use bf16 or fp16, or a GPU with fp8 such as h100-sxm-80gb");
    const bool blocks = scenario.training.fp8_json.find("\"mxfp8\"") != std::string::npos;
    if (blocks && (has < first_with_mxfp8 || has >= first_without_mxfp8))
        refuse(scenario, "fp8/recipe", "mxfp8",
               fmt::format("{} or more, below {}", capability(first_with_mxfp8),
                           capability(first_without_mxfp8)),
               "use tensorwise or rowwise scaling, or a GPU with MXFP8 such as b200-sxm-180gb");
}

}  // namespace zeroplan
