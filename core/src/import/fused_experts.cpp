#include "import/fused_experts.hpp"

#include <array>
#include <set>
#include <string>

namespace zeroplan {
namespace {

/// How one family calls an expert layer's parts.
struct Naming {
    std::string module;
    std::array<std::string, 3> parts;  ///< gate, up, down
};

const std::array<Naming, 2> namings{
    Naming{"mlp.", {"gate_proj.weight", "up_proj.weight", "down_proj.weight"}},
    Naming{"block_sparse_moe.", {"w1.weight", "w3.weight", "w2.weight"}}};

using Shape = std::vector<std::uint64_t>;

class Layer {
public:
    Layer(CheckpointHeader& checkpoint, std::string prefix, const Naming& naming)
        : checkpoint_(checkpoint), prefix_(std::move(prefix)), naming_(naming) {}

    void fuse() {
        std::uint64_t count = 0;
        while (find(count, 0) != nullptr) ++count;
        const CheckpointTensor* gate = find(0, 0);
        if (gate == nullptr || gate->shape.size() != 2) return;
        const std::uint64_t width = gate->shape[0], hidden = gate->shape[1];
        const std::array<Shape, 3> shapes{Shape{width, hidden}, Shape{width, hidden}, Shape{hidden, width}};
        for (std::uint64_t expert = 0; expert < count; ++expert)
            for (std::size_t part = 0; part < shapes.size(); ++part)
                if (const auto* found = find(expert, part); found == nullptr || found->shape != shapes[part])
                    return;
        CheckpointTensor fused = *gate;
        for (std::uint64_t expert = 0; expert < count; ++expert)
            for (std::size_t part = 0; part < shapes.size(); ++part)
                checkpoint_.tensors.erase(name(expert, part));
        fused.shape = {count, 2 * width, hidden};
        checkpoint_.tensors[prefix_ + "mlp.experts.gate_up_proj"] = fused;
        fused.shape = {count, hidden, width};
        checkpoint_.tensors[prefix_ + "mlp.experts.down_proj"] = fused;
        rename_router();
    }

private:
    std::string name(std::uint64_t expert, std::size_t part) const {
        return prefix_ + naming_.module + "experts." + std::to_string(expert) + "." + naming_.parts[part];
    }
    const CheckpointTensor* find(std::uint64_t expert, std::size_t part) const {
        const auto found = checkpoint_.tensors.find(name(expert, part));
        return found == checkpoint_.tensors.end() ? nullptr : &found->second;
    }
    void rename_router() {
        const auto router = checkpoint_.tensors.find(prefix_ + naming_.module + "gate.weight");
        if (router == checkpoint_.tensors.end()) return;
        CheckpointTensor moved = std::move(router->second);
        checkpoint_.tensors.erase(router);
        checkpoint_.tensors[prefix_ + "mlp.gate.weight"] = std::move(moved);
    }

    CheckpointHeader& checkpoint_;
    std::string prefix_;
    const Naming& naming_;
};

}  // namespace

CheckpointHeader with_fused_experts(CheckpointHeader checkpoint) {
    for (const Naming& naming : namings) {
        const std::string first = naming.module + "experts.0." + naming.parts[0];
        std::set<std::string> prefixes;
        for (const auto& [name, tensor] : checkpoint.tensors)
            if (name.ends_with(first)) prefixes.insert(name.substr(0, name.size() - first.size()));
        for (const std::string& prefix : prefixes) Layer(checkpoint, prefix, naming).fuse();
    }
    return checkpoint;
}

}  // namespace zeroplan
