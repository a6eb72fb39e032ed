#include "host_executor.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "convert.hpp"
#include "run_length.hpp"

namespace zeroplan::runner {
namespace {

constexpr std::size_t tile = 1024;

template <typename... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};

OptimizerSettings settings_of(const Plan& plan, std::uint64_t step) {
    const TrainingConfig& training = plan.scenario.training;
    const std::uint64_t summed = checked_product(training.data_parallel, training.gradient_accumulation_steps,
                                                 "micro-batches of a step");
    return {.kind = training.optimizer,
            .learning_rate = plan.scenario.run.learning_rate,
            .step = step + 1,
            .gradient_scale = 1.0F / static_cast<float>(summed)};
}

[[noreturn]] void refuse_offload() {
    throw Error(ErrorCode::not_supported, "the host back end offloads nothing",
                "keep parameters, gradients, optimizer states and activations on the device",
                {"", "/training"});
}

}  // namespace

const StepProgram& program_of(const Plan& plan, std::uint64_t rank) {
    for (const RankGroup& group : plan.rank_groups)
        for (const RankRange& range : group.ranks)
            if (range.first <= rank && rank <= range.last) return plan.programs.at(group.program);
    throw std::logic_error("the plan has no program for a rank");
}

HostExecutor::HostExecutor(const Plan& plan, HostWorld& world, const Dataset& dataset, Arena& arena)
    : plan_(plan),
      program_(program_of(plan, static_cast<std::uint64_t>(world.rank()))),
      dataset_(dataset),
      arena_(arena),
      place_{static_cast<std::uint64_t>(world.rank()), static_cast<std::uint64_t>(world.size()),
             plan.layout.shard_group},
      schedule_(schedule_of(plan.scenario, dataset)),
      initial_(plan.scenario.model, plan.scenario.run.seed),
      buffers_(program_.buffers, arena),
      communicators_(world, program_, place_),
      row_(dataset.columns()) {
    for (const Stream stream : {Stream::gather, Stream::reduce})
        streams_[static_cast<std::size_t>(stream)] = std::make_unique<StreamThread>();
}

/// Work on one stream waits for the other and for buffers: no stream may go before all have come to rest.
HostExecutor::~HostExecutor() {
    for (const auto& stream : streams_)
        if (stream != nullptr) stream->abandon();
    for (const auto& stream : streams_)
        if (stream != nullptr) stream->join();
}

void HostExecutor::load() {
    run(program_.load);
    run(program_.init);
}

void HostExecutor::step(std::uint64_t number, Trace* trace) {
    step_ = number;
    micro_batches_loaded_ = samples_ = 0;
    batch_ = {};
    trace_ = trace;
    for (const Section& section : program_.step)
        for (std::uint64_t i = 0; i < section.repeat; ++i) run(section);
    trace_ = nullptr;
}

void HostExecutor::save(const ParameterSink& sink) {
    sink_ = &sink;
    next_saved_unit_ = 0;
    run(program_.save);
    save_resident_until(static_cast<std::uint32_t>(plan_.layout.units.size()));
    sink_ = nullptr;
}

// --- issuing

void HostExecutor::run(const Section& section) {
    issued_.clear();
    for (const Operation& operation : section.operations) issued_.push_back(issue(operation));
    for (const auto& stream : streams_)
        if (stream != nullptr) stream->drain();
}

HostExecutor::Issued HostExecutor::issue(const Operation& operation) {
    const bool first = batch_.is_first;
    return std::visit(
        Overloaded{
            [&](const Allocate& body) {
                allocate(body.buffer);
                return Issued{};
            },
            [&](const Free& body) {
                wait_for(operation.waits);
                release(body.buffer);
                return Issued{};
            },
            [&](const Wait&) {
                wait_for(operation.waits);
                return Issued{};
            },
            [&](const LoadBatch& body) {
                wait_for(operation.waits);
                load_batch(body);
                return Issued{};
            },
            [&](const Collective& body) {
                return dispatch(operation,
                                [this, &body, stream = operation.stream] { communicate(body, stream); });
            },
            [&](const Transfer&) -> Issued {
                throw Error(ErrorCode::not_supported, "the host back end runs no pipeline stages",
                            "set pipeline_parallel to 1", {"", "/training/pipeline_parallel"});
            },
            [&](const HostCopy&) -> Issued { refuse_offload(); },
            [&](const HostStep&) -> Issued { refuse_offload(); },
            [&](const Accumulate& body) {
                return dispatch(operation, [this, &body, first] { accumulate(body, first); });
            },
            [&](const OptimizerStep& body) { return dispatch(operation, [this, &body] { update(body); }); },
            [&](const Compute& body) {
                return dispatch(operation, [this, &body] {
                    execute(body, plan_.scenario.model, plan_.layout, buffers_, batch_);
                });
            }},
        operation.body);
}

void HostExecutor::wait_for(const std::vector<OperationId>& operations) const {
    for (const OperationId id : operations) {
        const Issued& issued = issued_.at(id);
        if (issued.stream != nullptr) issued.stream->wait(issued.ticket);
    }
}

HostExecutor::Issued HostExecutor::dispatch(const Operation& operation, std::function<void()> work) {
    if (trace_ != nullptr) work = traced(operation, std::move(work));
    StreamThread* stream = streams_[static_cast<std::size_t>(operation.stream)].get();
    if (stream == nullptr) {  // compute: here and now
        wait_for(operation.waits);
        work();
        return {};
    }
    std::vector<Issued> others;
    for (const OperationId id : operation.waits)
        if (const Issued& other = issued_.at(id); other.stream != nullptr && other.stream != stream)
            others.push_back(other);
    const auto ticket = stream->submit([others = std::move(others), work = std::move(work)] {
        for (const Issued& other : others) other.stream->wait(other.ticket);
        work();
    });
    return {stream, ticket};
}

std::function<void()> HostExecutor::traced(const Operation& operation, std::function<void()> work) {
    return [work = std::move(work), trace = trace_, stream = operation.stream,
            name = describe(operation, program_, plan_.scenario.model, plan_.layout)] {
        const TimePoint begin = std::chrono::steady_clock::now();
        work();
        trace->add(TraceSpan{name, stream, begin, std::chrono::steady_clock::now()});
    };
}

void HostExecutor::trace_memory() {
    if (trace_ != nullptr) trace_->add(TraceMemory{std::chrono::steady_clock::now(), arena_.live()});
}

// --- what the host does

void HostExecutor::allocate(BufferId buffer) {
    buffers_.allocate(buffer);
    initialise(buffer);
    trace_memory();
}

void HostExecutor::initialise(BufferId buffer) {
    const Buffer& spec = buffers_.spec(buffer);
    std::byte* memory = static_cast<std::byte*>(buffers_.memory(buffer));
    const std::size_t bytes = spec.elements * bytes_per_element(spec.dtype);
    switch (spec.role) {
        case BufferRole::parameters:
        case BufferRole::master_weights: {
            const UnitLayout& unit = plan_.layout.units.at(spec.owner);
            const bool whole = spec.elements == unit.padded_numel;
            const ElementRange range =
                whole ? ElementRange{0, unit.padded_numel} : plan_.layout.slice(spec.owner, place_.slice());
            initial_.fill(unit, range, memory, spec.dtype);
            return;
        }
        case BufferRole::momentum:
        case BufferRole::variance:
            std::memset(memory, 0, bytes);
            return;
        case BufferRole::gradients:
        case BufferRole::gradient_bucket: {
            // No operator writes the padding, but collectives and the optimizer read it.
            const UnitLayout& unit = plan_.layout.units.at(spec.owner);
            if (spec.elements != unit.padded_numel) return;
            const std::size_t used = unit.numel * bytes_per_element(spec.dtype);
            std::memset(memory + used, 0, bytes - used);
            return;
        }
        default:
            return;
    }
}

void HostExecutor::release(BufferId buffer) {
    const Buffer& spec = buffers_.spec(buffer);
    if (sink_ != nullptr && spec.role == BufferRole::consolidated) {
        save_resident_until(spec.owner);
        save_unit(spec.owner, buffer);
    }
    buffers_.release(buffer);
    trace_memory();
}

void HostExecutor::load_batch(const LoadBatch& load) {
    const BatchSchedule::Batch batch = schedule_.batch(place_.rank, step_, micro_batches_loaded_);
    batch_.samples = batch.size;
    batch_.is_first = micro_batches_loaded_ == 0;
    ++micro_batches_loaded_;
    samples_ += batch.size;

    const DType dtype = buffers_.spec(load.batch).dtype;
    void* features = buffers_.memory(load.batch);
    for (std::uint64_t i = 0; i < batch.size; ++i) {
        dataset_.read_row(batch.row(i), row_.data());
        narrow(row_.data(), element(features, dtype, i * row_.size()), dtype, row_.size());
    }
    if (load.labels == no_buffer) return;
    auto* labels = static_cast<std::int64_t*>(buffers_.memory(load.labels));
    for (std::uint64_t i = 0; i < batch.size; ++i)
        labels[i] = dataset_.label(batch.row(i), plan_.scenario.model.vocabulary);
}

// --- what the streams do

void* HostExecutor::address(const Operand& operand) const {
    if (operand.buffer == no_buffer) return nullptr;
    const std::uint64_t offset = operand.own_slice ? place_.slice() * elements(operand) : 0;
    return element(buffers_.memory(operand.buffer), buffers_.spec(operand.buffer).dtype, offset);
}

std::uint64_t HostExecutor::elements(const Operand& operand) const {
    const std::uint64_t all = buffers_.spec(operand.buffer).elements;
    return operand.own_slice ? all / place_.shard_group : all;
}

void HostExecutor::communicate(const Collective& collective, Stream stream) {
    HostCommunicator& communicator = communicators_.of(stream, collective.group);
    const auto members = static_cast<std::uint64_t>(communicator.size());
    const std::uint64_t part = collective.elements / members;
    const void* send = address(collective.send);
    void* receive = address(collective.receive);
    switch (collective.kind) {
        case CollectiveKind::all_gather:
            return communicator.all_gather(send, receive, part, collective.dtype);
        case CollectiveKind::reduce_scatter:
            return communicator.reduce_scatter(send, receive, part, collective.dtype);
        case CollectiveKind::all_reduce:
            if (send != receive)
                std::memcpy(receive, send, collective.elements * bytes_per_element(collective.dtype));
            return communicator.all_reduce(receive, collective.elements, collective.dtype);
        case CollectiveKind::broadcast:
            if (send != receive && communicator.rank() == 0)
                std::memcpy(receive, send, collective.elements * bytes_per_element(collective.dtype));
            return communicator.broadcast(receive, collective.elements, collective.dtype, 0);
        case CollectiveKind::all_to_all:
            throw Error(ErrorCode::not_supported, "the host back end has no all-to-all",
                        "set expert_parallel to 1", {"", "/training/expert_parallel"});
    }
}

void HostExecutor::accumulate(const Accumulate& accumulate, bool first_micro_batch) {
    const bool add = accumulate.always_add || !first_micro_batch;
    const DType from_dtype = buffers_.spec(accumulate.from.buffer).dtype;
    const DType to_dtype = buffers_.spec(accumulate.to.buffer).dtype;
    const std::uint64_t n = elements(accumulate.to);
    std::array<float, tile> sum;
    for (std::uint64_t at = 0; at < n; at += tile) {
        const std::size_t count = std::min<std::uint64_t>(tile, n - at);
        std::byte* to = element(address(accumulate.to), to_dtype, at);
        const std::byte* from = element(address(accumulate.from), from_dtype, at);
        if (add) {
            widen(to, to_dtype, sum.data(), count);
            add_widened(from, from_dtype, sum.data(), count);
        } else {
            widen(from, from_dtype, sum.data(), count);
        }
        narrow(sum.data(), to, to_dtype, count);
    }
}

void HostExecutor::update(const OptimizerStep& step) {
    const auto state = [this](const Operand& operand) { return static_cast<float*>(address(operand)); };
    optimizer_step(settings_of(plan_, step_),
                   {.parameters = address(step.parameters),
                    .parameter_dtype = buffers_.spec(step.parameters.buffer).dtype,
                    .gradients = address(step.gradients),
                    .gradient_dtype = buffers_.spec(step.gradients.buffer).dtype,
                    .master = state(step.master),
                    .momentum = state(step.momentum),
                    .variance = state(step.variance)},
                   step.elements);
}

// --- saving

BufferId HostExecutor::resident_values(std::uint32_t unit) const {
    BufferId found = no_buffer;
    for (BufferId id = 0; id < buffers_.size(); ++id) {
        const Buffer& spec = buffers_.spec(id);
        if (spec.owner != unit || !buffers_.is_live(id)) continue;
        if (spec.role == BufferRole::master_weights) return id;
        if (spec.role == BufferRole::parameters) found = id;
    }
    return found;
}

/// Units that the program doesn't gather are whole on every rank.
void HostExecutor::save_resident_until(std::uint32_t unit) {
    while (next_saved_unit_ < unit) {
        const std::uint32_t next = next_saved_unit_;
        if (plan_.layout.units[next].numel == 0) {
            ++next_saved_unit_;
        } else {
            save_unit(next, resident_values(next));
        }
    }
}

void HostExecutor::save_unit(std::uint32_t unit, BufferId buffer) {
    const UnitLayout& layout = plan_.layout.units[unit];
    const Buffer& spec = buffers_.spec(buffer);
    if (unit != next_saved_unit_ || spec.elements != layout.padded_numel)
        throw std::logic_error("the program doesn't gather the parameters unit by unit");
    ++next_saved_unit_;
    std::array<float, tile> values;
    for (const PlacedParameter& placed : layout.parameters) {
        const std::uint64_t n = plan_.scenario.model.parameters.at(placed.parameter).numel;
        for (std::uint64_t at = 0; at < n; at += tile) {
            const std::size_t count = std::min<std::uint64_t>(tile, n - at);
            widen(element(buffers_.memory(buffer), spec.dtype, placed.offset + at), spec.dtype, values.data(),
                  count);
            (*sink_)(values.data(), count);
        }
    }
}

}  // namespace zeroplan::runner
