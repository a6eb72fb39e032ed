#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// Appends operations to one section of a program at a time and numbers them.
class ProgramBuilder {
public:
    explicit ProgramBuilder(StepProgram& program) : program_(program) { last_.fill(no_operation); }

    /// Operations go to `section` from now on; it must outlive their appending.
    void begin(Section& section) {
        section_ = &section;
        ++section_number_;
        last_.fill(no_operation);
        for (auto& waits : held_) waits.clear();
    }

    /// Begins a further section of the step, once the one before it has ended.
    void begin_step(std::string name, std::uint64_t repeat) {
        if (!program_.step.empty()) wait_for_all();
        program_.step.push_back({std::move(name), repeat, {}});
        begin(program_.step.back());
    }

    /// Makes room for about that many more operations: they are large, and moving them takes its time.
    void expect(std::size_t operations) {
        std::vector<Operation>& all = section_->operations;
        const std::size_t needed = all.size() + operations;
        if (needed > all.capacity()) all.reserve(std::max(needed, 2 * all.capacity()));
    }
    BufferId declare(Buffer buffer) {
        program_.buffers.push_back(buffer);
        return static_cast<BufferId>(program_.buffers.size() - 1);
    }
    /// `stream` is the one that is current where the buffer is allocated: it chooses the allocator's pool.
    BufferId allocate(Buffer buffer, Stream stream = Stream::compute) {
        const BufferId id = declare(buffer);
        append(Allocate{id}, stream);
        return id;
    }
    /// A buffer that was freed is there again.
    void allocate_again(BufferId buffer) { append(Allocate{buffer}); }
    OperationId free(BufferId buffer, std::vector<OperationId> waits = {}) {
        return append(Free{buffer}, Stream::compute, std::move(waits));
    }
    /// Frees a buffer that may be there, and forgets it.
    void free_if_there(BufferId& buffer) {
        if (buffer != no_buffer) free(buffer);
        buffer = no_buffer;
    }
    /// Puts an operation on a stream, behind what was issued there before.
    OperationId on_stream(Stream stream, OperationBody body, std::vector<OperationId> waits = {}) {
        std::vector<OperationId>& held = held_[static_cast<std::size_t>(stream)];
        waits.insert(waits.end(), held.begin(), held.end());
        held.clear();
        const OperationId id = append(std::move(body), stream, std::move(waits));
        last_[static_cast<std::size_t>(stream)] = id;
        return id;
    }
    /// What is issued next on `stream` also waits for `operation`.
    void hold(Stream stream, OperationId operation) {
        held_[static_cast<std::size_t>(stream)].push_back(operation);
    }
    /// What is held for the next operation on `stream`.
    const std::vector<OperationId>& held(Stream stream) const {
        return held_[static_cast<std::size_t>(stream)];
    }
    OperationId load_batch(BufferId batch, BufferId labels) { return append(LoadBatch{batch, labels}); }

    /// The last operation issued on `stream` in this section, as a list for `waits`: empty if there is none.
    std::vector<OperationId> last(Stream stream) const {
        const OperationId id = last_[static_cast<std::size_t>(stream)];
        return id == no_operation ? std::vector<OperationId>{} : std::vector<OperationId>{id};
    }
    /// Counts calls of begin(): operations of different sections never wait for each other.
    std::uint32_t section_number() const { return section_number_; }
    /// Number that the next operation of this section gets.
    OperationId next() const { return static_cast<OperationId>(section_->operations.size()); }
    /// The host waits until every stream is empty.
    void wait_for_all();

    const Buffer& buffer(BufferId id) const { return program_.buffers[id]; }

private:
    static constexpr OperationId no_operation = 0xffffffffU;

    OperationId append(OperationBody body, Stream stream = Stream::compute,
                       std::vector<OperationId> waits = {}) {
        section_->operations.push_back({std::move(body), stream, std::move(waits)});
        return static_cast<OperationId>(section_->operations.size() - 1);
    }

    StepProgram& program_;
    Section* section_ = nullptr;
    std::uint32_t section_number_ = 0;
    std::array<OperationId, stream_count> last_{};
    std::array<std::vector<OperationId>, stream_count> held_;
};

}  // namespace zeroplan
