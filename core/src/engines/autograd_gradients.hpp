#pragma once
#include <cstdint>
#include <vector>

#include "engines/program_builder.hpp"
#include "zeroplan/model_spec.hpp"

namespace zeroplan {

/// Gradients as torch.autograd makes them: a tensor for each use of a parameter; those of a tied weight are
/// added to the first one. A parameter's gradient is complete once all its uses have contributed.
class AutogradGradients {
public:
    AutogradGradients(const ModelSpec& model, ProgramBuilder& builder, DType dtype);

    /// Where backward writes a use's gradient; no_buffer for a frozen parameter. Tied weights go by their
    /// owner.
    BufferId fresh(std::uint32_t parameter);

    struct Complete {
        std::uint32_t parameter = 0;
        BufferId gradient = no_buffer;
    };
    /// Adds up what the operator that has just run made, and hands over what is complete now.
    std::vector<Complete> collect();

private:
    const ModelSpec& model_;
    ProgramBuilder& builder_;
    DType dtype_;
    std::vector<std::uint32_t> uses_, contributions_;  ///< by parameter
    std::vector<BufferId> sums_;                       ///< by parameter: of uses so far
    std::vector<Complete> made_;
};

}  // namespace zeroplan
