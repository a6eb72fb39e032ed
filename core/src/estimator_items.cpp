#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "deciding_peak.hpp"
#include "live_tensors.hpp"
#include "zeroplan/deepspeed_estimator.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan {
namespace {

/// What the estimate counts of each category on one GPU: the multipliers of its comments, the optimizer's
/// share taking what truncation leaves.
CategoryBytes estimated(const EstimatorInput& in, const EstimatorRow& row) {
    CategoryBytes bytes;
    const Bytes params{in.total_params}, layer{in.largest_layer_params};
    const std::uint64_t gpus = in.nodes * in.gpus_per_node;
    const auto share = [&](std::uint64_t multiplier) { return Bytes{(multiplier * params).count() / gpus}; };
    if (row.stage == 3) {
        bytes[Category::gathered_parameters] = 2 * layer;
        bytes[Category::communication_buffers] = 2 * layer;
    }
    if (row.stage == 2) bytes[Category::parameters] = 2 * params;
    if (row.stage == 3 && !row.offload_parameters) bytes[Category::parameters] = share(2);
    if (!row.offload_optimizer) {
        bytes[Category::gradients] = share(row.stage == 2 ? 6 : 4);
        bytes[Category::master_weights] = share(4);
        bytes[Category::optimizer_states] = row.gpu - bytes.total();
    } else {
        bytes[Category::parameters] += row.gpu - bytes.total();
    }
    return bytes;
}

bool close(Bytes a, Bytes b) {
    const Bytes larger = std::max(a, b), smaller = std::min(a, b);
    return larger - smaller <= Bytes{larger.count() / 100};
}

class Reasons {
public:
    Reasons(const Plan& plan, const EstimatorInput& input, const EstimatorRow& row)
        : plan_(plan),
          training_(plan.scenario.training),
          input_(input),
          row_(row),
          peak_(deciding_peak(plan)) {
        const std::uint32_t program = plan.rank_groups[peak_.group].program;
        live_ = group_live(plan, program, peak_.live);
    }

    std::string of(Category category, Bytes estimated, Bytes planned) const {
        const bool state = category <= Category::optimizer_states;
        if (state && close(estimated, planned)) return "agreed; what is left is padding to whole shards";
        switch (category) {
            case Category::parameters:
                return state_reasons(parameters(planned));
            case Category::gradients:
                return state_reasons(gradients(planned));
            case Category::master_weights:
                return state_reasons(master_weights(planned));
            case Category::optimizer_states:
                return state_reasons(optimizer_states(planned));
            case Category::gathered_parameters:
                return gathered(planned);
            case Category::communication_buffers:
                return buckets(planned);
            case Category::activations:
                return activations();
            case Category::logits:
                return fmt::format("left out: the loss over {} words a token",
                                   format_count(plan_.scenario.model.vocabulary));
            case Category::temporaries:
                return "left out: workspaces of kernels and the optimizer's temporaries";
        }
        return {};
    }

private:
    /// What the estimate can't know about any of the sharded state, behind `first`.
    std::string state_reasons(std::string first) const {
        const auto add = [&](const std::string& reason) { first += (first.empty() ? "" : "; ") + reason; };
        const std::uint64_t inner = training_.tensor_parallel * training_.pipeline_parallel;
        if (inner > 1) add(fmt::format("it knows no tensor or pipeline parallelism, of {} here", inner));
        const std::uint64_t gpus = input_.nodes * input_.gpus_per_node;
        if (training_.shard_group * inner != gpus)
            add(fmt::format("{} ranks share the state, the estimate divides by all {} GPUs",
                            training_.shard_group, gpus));
        const ModelSpec& model = plan_.scenario.model;
        if (model.trainable_parameter_count() != model.parameter_count())
            add(fmt::format("only {} parameters are trained",
                            format_count(model.trainable_parameter_count())));
        return first.empty() ? "the engine's own layout" : first;
    }

    std::string parameters(Bytes planned) const {
        if (planned == Bytes{}) return "kept on the host";
        return is_16_bit(training_.parameter_dtype) ? ""
                                                    : fmt::format("kept in {}; the estimate takes 16 bit",
                                                                  to_string(training_.parameter_dtype));
    }

    std::string gradients(Bytes planned) const {
        const std::string live = dtypes(Category::gradients);
        if (row_.offload_optimizer)
            return "the estimate counts none on the GPU; live at this peak: " +
                   (live.empty() ? "none" : live);
        std::string text = row_.stage == 2 ? "the estimate takes fp32 gradients (4 B a parameter) beside "
                                             "16-bit ones (2 B)"
                                           : "the estimate takes fp32 gradients (4 B a parameter)";
        return text + (planned == Bytes{} ? "; none is live at this peak" : "; live at this peak: " + live);
    }

    std::string master_weights(Bytes planned) const {
        if (!training_.master_dtype) return "none: the stored parameters are the master weights";
        if (row_.offload_optimizer || planned == Bytes{}) return "kept on the host";
        return *training_.master_dtype == DType::fp32
                   ? ""
                   : fmt::format("kept in {}", to_string(*training_.master_dtype));
    }

    std::string optimizer_states(Bytes planned) const {
        const bool adam = training_.optimizer == Optimizer::adam || training_.optimizer == Optimizer::adamw;
        if (!adam)
            return fmt::format("the estimate takes Adam (8 B a parameter) for every optimizer, this is {}",
                               to_string(training_.optimizer));
        if (planned == Bytes{}) return "kept on the host";
        return training_.optimizer_state_dtype == DType::fp32
                   ? ""
                   : fmt::format("kept in {}", to_string(training_.optimizer_state_dtype));
    }

    std::string gathered(Bytes planned) const {
        std::string text =
            row_.stage == 3 ? "the estimate takes the largest layer's weights (2 B); " : "left out; ";
        return text + (planned == Bytes{} ? "none are gathered at this peak"
                                          : "gathered at this peak: " + names(Category::gathered_parameters));
    }

    std::string buckets(Bytes planned) const {
        std::string text =
            row_.stage == 3 ? "the estimate takes the largest layer's gradients (2 B); " : "left out; ";
        return text + (planned == Bytes{} ? "no bucket is live at this peak"
                                          : "live at this peak: " + names(Category::communication_buffers));
    }

    std::string activations() const {
        std::string text = fmt::format("left out: micro-batch {}", training_.micro_batch_size);
        if (plan_.scenario.model.batch != BatchKind::tokens) return text + " samples";
        return text + fmt::format(" × {} tokens, recompute {}", format_count(training_.sequence_length),
                                  to_string(training_.recompute));
    }

    std::string dtypes(Category category) const {
        std::set<std::string_view> words;
        for (const LiveTensors& tensors : live_)
            if (tensors.category == category) words.insert(to_string(tensors.dtype));
        return fmt::format("{}", fmt::join(words, ", "));
    }

    /// The largest of a category by name.
    std::string names(Category category) const {
        constexpr std::size_t most = 3;
        std::vector<std::string> found;
        for (const LiveTensors& tensors : live_) {
            if (tensors.category != category) continue;
            found.push_back(found.size() == most ? "…" : tensors.name);
            if (found.size() > most) break;
        }
        return fmt::format("{}", fmt::join(found, ", "));
    }

    const Plan& plan_;
    const TrainingConfig& training_;
    const EstimatorInput& input_;
    const EstimatorRow& row_;
    DecidingPeak peak_;
    std::vector<LiveTensors> live_;
};

std::vector<EstimatorItem> items(const Plan& plan, const EstimatorInput& input, const EstimatorRow& row) {
    const CategoryBytes estimate = estimated(input, row);
    const PeakIngredients planned = peak_ingredients(plan);
    const Reasons reasons(plan, input, row);
    std::vector<EstimatorItem> list;
    for (const Category category : all_categories) {
        const Bytes a = estimate[category], b = planned.categories[category];
        if (a > Bytes{} || b > Bytes{})
            list.push_back({std::string(to_string(category)), a, b, reasons.of(category, a, b)});
    }
    if (planned.holes > Bytes{})
        list.push_back({"allocator_holes", Bytes{}, planned.holes,
                        "left out: what the allocator reserves and can't fill"});
    list.push_back({"runtime", Bytes{}, planned.runtime,
                    plan.scenario.cluster.gpu.is_host ? "left out: libraries, stacks"
                                                      : "left out: context, NCCL's buffers, libraries"});
    return list;
}

bool uses_nvme(const TrainingConfig& training) {
    return training.offload_optimizer == OffloadTarget::nvme ||
           training.offload_parameters == OffloadTarget::nvme;
}

bool is_asked_for(const EstimatorRow& row, const TrainingConfig& training) {
    if (uses_nvme(training)) return false;
    const bool optimizer = training.offload_optimizer == OffloadTarget::cpu;
    const bool parameters = training.offload_parameters == OffloadTarget::cpu;
    if (row.stage != training.zero_stage || row.old_formula || row.offload_optimizer != optimizer)
        return false;
    return row.stage == 2 || (row.offload_parameters == parameters && row.zero_init);
}

std::string why_no_row(const TrainingConfig& training) {
    if (training.zero_stage < 2)
        return fmt::format("DeepSpeed estimates stages 2 and 3 only; this plan is of stage {}",
                           training.zero_stage);
    if (uses_nvme(training)) return "the estimate knows no offload to NVMe";
    return "the estimate offloads parameters only together with the optimizer";
}

}  // namespace

EstimatorComparison against_deepspeed_estimator(const Plan& plan) {
    EstimatorComparison comparison{.input = estimator_input(plan.scenario)};
    comparison.rows = deepspeed_estimate(comparison.input);
    const TrainingConfig& training = plan.scenario.training;
    const auto row = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                                  [&](const EstimatorRow& r) { return is_asked_for(r, training); });
    if (row == comparison.rows.end()) {
        comparison.why_none = why_no_row(training);
        return comparison;
    }
    comparison.matching = static_cast<std::size_t>(row - comparison.rows.begin());
    comparison.items = items(plan, comparison.input, *row);
    return comparison;
}

}  // namespace zeroplan
