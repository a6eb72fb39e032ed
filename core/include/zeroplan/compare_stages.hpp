#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// A ZeRO stage on a number of GPUs, planned with the same micro-batch a rank.
struct StagePoint {
    std::uint32_t stage = 0;
    std::uint64_t gpus = 0;
    std::string refused;  ///< why it can't be planned; "" = it can
    Bytes peak_device;    ///< of the fullest rank, as MemorySummary::overall_peak_device
    Verdict verdict = Verdict::fits;
    std::vector<std::pair<std::string, Bytes>> ingredients;  ///< those of the peak; sum to peak_device
    friend bool operator==(const StagePoint&, const StagePoint&) = default;
};

/// A stage that takes more device memory than a lower one.
struct CostlierStage {
    std::uint32_t lower = 0, higher = 0;
    std::vector<std::uint64_t> gpus;                   ///< where it does
    std::uint64_t worst_gpus = 0;                      ///< where the difference is largest …
    Bytes more;                                        ///< … and how much it is there
    std::vector<std::pair<std::string, Bytes>> grown;  ///< ingredients that grew there, most first
    friend bool operator==(const CostlierStage&, const CostlierStage&) = default;
};

struct StageComparison {
    Bytes capacity;
    std::vector<std::uint64_t> gpus;
    std::vector<StagePoint> points;  ///< stage by stage, each over `gpus`
    std::vector<CostlierStage> costlier;
    friend bool operator==(const StageComparison&, const StageComparison&) = default;
};

/// Plans the scenario of `plan` at stages 0 to 3 on each of `gpus` GPUs. Without counts: on one node and
/// twice as many GPUs again and again up to 1024, or on powers of two up to the node where nodes are not
/// linked; and on as many as the plan has.
StageComparison compare_stages(const Plan& plan, std::vector<std::uint64_t> gpus = {});

/// Counts of "8,64,512". Throws Error{invalid_input} for what is no list of counts.
std::vector<std::uint64_t> parse_gpu_counts(const std::string& text);

}  // namespace zeroplan
