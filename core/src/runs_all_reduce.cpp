#include "runs_all_reduce.hpp"

namespace zeroplan {

bool runs_all_reduce(const std::vector<StepProgram>& programs) {
    for (const StepProgram& program : programs)
        for (const Section& section : program.step)
            for (const Operation& operation : section.operations)
                if (const auto* collective = std::get_if<Collective>(&operation.body);
                    collective != nullptr && collective->kind == CollectiveKind::all_reduce)
                    return true;
    return false;
}

}  // namespace zeroplan
