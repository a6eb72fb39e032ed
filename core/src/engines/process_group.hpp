#pragma once
#include <utility>
#include <vector>

#include "engines/program_builder.hpp"

namespace zeroplan {

/// The collectives of one process group run one after another in the order of their issue, whatever streams
/// they were issued on: c10d gives a group one stream of its own on a device.
/// source: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (ncclStreams_)
class ProcessGroup {
public:
    explicit ProcessGroup(ProgramBuilder& builder) : builder_(builder) {}

    OperationId issue(Stream stream, Collective collective, std::vector<OperationId> waits = {}) {
        if (section_ == builder_.section_number()) waits.push_back(last_);
        last_ = builder_.on_stream(stream, std::move(collective), std::move(waits));
        section_ = builder_.section_number();
        return last_;
    }

private:
    ProgramBuilder& builder_;
    OperationId last_ = 0;
    std::uint32_t section_ = 0;  ///< the builder counts from 1
};

}  // namespace zeroplan
