#include "engines/program_builder.hpp"

namespace zeroplan {

void ProgramBuilder::wait_for_all() {
    std::vector<OperationId> waits;
    for (const OperationId id : last_)
        if (id != no_operation) waits.push_back(id);
    if (!waits.empty()) append(Wait{}, Stream::compute, std::move(waits));
}

}  // namespace zeroplan
