#include "cost/check_time.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "zeroplan/error.hpp"

namespace zeroplan {

void check_time_is_modelled(const TrainingConfig& training) {
    const std::array<std::pair<const char*, std::uint64_t>, 4> degrees{
        {{"tensor_parallel", training.tensor_parallel},
         {"pipeline_parallel", training.pipeline_parallel},
         {"context_parallel", training.context_parallel},
         {"expert_parallel", training.expert_parallel}}};
    for (const auto& [key, degree] : degrees)
        if (degree != 1)
            throw Error(
                ErrorCode::not_supported,
                fmt::format("the time of a step with {} = {} is not modelled by this version", key, degree),
                "zeroplan plan tells its memory; for a time, use data parallelism alone",
                {"", fmt::format("/training/{}", key)});
}

}  // namespace zeroplan
