#include "engines/muon.hpp"

#include <algorithm>

#include "cost/matrix_product.hpp"

namespace zeroplan {

bool trained_by_muon(const Parameter& parameter) {
    const auto names = [&](const char* part) { return parameter.name.find(part) != std::string::npos; };
    return parameter.shape.size() == 2 && !names("embed") && !names("lm_head");
}

std::vector<Orthogonalised> muon_matrices(const ModelSpec& model,
                                          const std::vector<std::uint32_t>& parameters) {
    std::vector<Orthogonalised> matrices;
    for (const std::uint32_t p : parameters) {
        const Parameter& parameter = model.parameters[p];
        if (!trained_by_muon(parameter)) continue;
        const Orthogonalised matrix{parameter.shape[0], parameter.shape[1], 1};
        const auto same = std::find_if(matrices.begin(), matrices.end(), [&](const Orthogonalised& other) {
            return other.rows == matrix.rows && other.columns == matrix.columns;
        });
        if (same == matrices.end())
            matrices.push_back(matrix);
        else
            ++same->count;
    }
    return matrices;
}

std::uint64_t orthogonalising_workspace(const std::vector<Orthogonalised>& matrices) {
    std::uint64_t most = 0;
    for (const Orthogonalised& matrix : matrices) {
        const std::uint64_t side = std::min(matrix.rows, matrix.columns);
        most = std::max(most, 2 * matrix.rows * matrix.columns + 2 * side * side);
    }
    return most;
}

Constant newton_schulz_constant() {
    return {"newton_schulz_steps", cost::newton_schulz_steps, "1",
            "Muon (Keller Jordan; torch.optim.Muon): quintic iterations in bf16 on whole matrices, which "
            "every rank that shards them gathers and orthogonalises",
            "assumption"};
}

}  // namespace zeroplan
