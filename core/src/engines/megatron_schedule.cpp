#include "engines/megatron_schedule.hpp"

#include <algorithm>
#include <vector>

#include "engines/pipeline_schedule.hpp"

namespace zeroplan {
namespace {

bool is_last_backward(const std::vector<PipelineAction>& actions, std::size_t a) {
    return std::none_of(
        actions.begin() + static_cast<std::ptrdiff_t>(a) + 1, actions.end(),
        [&](const PipelineAction& later) { return !later.forward && later.chunk == actions[a].chunk; });
}

/// In the steady part the gradient of the next backward comes with the input of the forward before it.
void run_all(const MegatronStage& stage, MegatronFlights& flights, const std::vector<PipelineAction>& actions,
             std::size_t from, std::size_t to) {
    for (std::size_t a = from; a < to; ++a) {
        const PipelineAction& action = actions[a];
        if (!action.forward) {
            flights.backward(action.micro_batch, action.chunk, is_last_backward(actions, a));
            continue;
        }
        const bool steady = a + 1 < actions.size() && !actions[a + 1].forward;
        if (steady && !stage.has_head(actions[a + 1].chunk))
            flights.receive_gradient_ahead(actions[a + 1].chunk);
        flights.forward(action.micro_batch, action.chunk);
    }
}

/// After two groups of micro-batches the steady part repeats itself. What lies beyond is stored as one
/// micro-batch forward and backward through every chunk, on top of what is in flight then: no more than
/// the true order has live at once, and the same work.
void run_in_order(const MegatronStage& stage, MegatronFlights& flights, ProgramBuilder& builder,
                  PipelineShape shape) {
    const std::uint32_t explicit_groups = shape.schedule == PipelineSchedule::gpipe ? ~0U : 2;
    const std::uint32_t groups = (shape.micro_batches + shape.stages - 1) / shape.stages;
    const std::uint32_t beyond = groups > explicit_groups ? (groups - explicit_groups) * shape.stages : 0;
    shape.micro_batches -= beyond;
    const std::vector<PipelineAction> actions = pipeline_schedule(shape, stage.number());
    const auto first_backward =
        std::find_if(actions.begin(), actions.end(), [](const PipelineAction& a) { return !a.forward; });
    const auto middle = static_cast<std::size_t>(first_backward - actions.begin()) + 1;
    run_all(stage, flights, actions, 0, middle);
    if (beyond > 0) {
        builder.begin_step("steady_micro_batches", beyond);
        for (Chunk c = 0; c < stage.chunk_count(); ++c) flights.pass_alone(c);
        builder.begin_step("last_micro_batches_and_step", 1);
    }
    run_all(stage, flights, actions, middle, actions.size());
}

void steady_pass(MegatronFlights& flights, std::uint32_t micro_batch, bool last) {
    flights.forward(micro_batch, 0);
    flights.backward(micro_batch, 0, last);
}

/// The steady part repeats one forward and one backward of equal sizes, so that it is stored once. What is
/// live at any time is the same as with the oldest micro-batch going backward.
void run_one_forward_one_backward(const MegatronStage& stage, MegatronFlights& flights,
                                  ProgramBuilder& builder, const PipelineShape& shape) {
    const std::uint32_t warm_up = std::min(shape.stages - 1 - stage.number(), shape.micro_batches);
    for (std::uint32_t m = 0; m < warm_up; ++m) flights.forward(m, 0);
    const std::uint32_t steady = shape.micro_batches - warm_up;
    if (steady > 0) steady_pass(flights, warm_up, warm_up == 0 && steady == 1);
    if (steady > 2) {
        builder.begin_step("steady_micro_batches", steady - 2);
        const MegatronFlights::Held held = flights.held();
        steady_pass(flights, warm_up + 1, false);
        flights.restore(held);
        builder.begin_step("last_micro_batches_and_step", 1);
    }
    if (steady > 1) steady_pass(flights, warm_up + 2, warm_up == 0);
    for (std::uint32_t m = warm_up; m-- > 0;) flights.backward(m, 0, m == 0);
}

}  // namespace

void run_megatron_schedule(const MegatronStage& stage, MegatronFlights& flights, ProgramBuilder& builder) {
    const TrainingConfig& training = stage.training();
    const PipelineShape shape{training.pipeline_schedule,
                              static_cast<std::uint32_t>(training.pipeline_parallel), stage.chunk_count(),
                              static_cast<std::uint32_t>(training.gradient_accumulation_steps)};
    const bool one_forward_one_backward =
        shape.chunks == 1 && (shape.stages == 1 || shape.schedule != PipelineSchedule::gpipe);
    if (one_forward_one_backward)
        run_one_forward_one_backward(stage, flights, builder, shape);
    else
        run_in_order(stage, flights, builder, shape);
}

}  // namespace zeroplan
