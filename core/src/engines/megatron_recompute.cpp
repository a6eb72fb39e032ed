#include "engines/megatron_recompute.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <fmt/format.h>

namespace zeroplan {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_operator(const BlockKind& kind, std::string_view name) {
    return std::any_of(kind.operators.begin(), kind.operators.end(),
                       [name](const Operator& op) { return op.name == name; });
}

/// Whether a norm is a module of its own. Transformer Engine's first linear of attention and of a dense MLP
/// contains the norm before it (LayerNormColumnParallelLinear), which isn't run again.
bool is_separate_norm(const BlockKind& kind, std::string_view name, bool transformer_engine) {
    if (name == "input_layernorm") return !transformer_engine || has_operator(kind, "linear_kv_up_proj");
    return name == "pre_mlp_layernorm" && (!transformer_engine || has_operator(kind, "router"));
}

/// Operators carry the names of Megatron's modules.
bool belongs_to(const BlockKind& kind, const Operator& op, std::string_view module) {
    const std::string_view name = op.name;
    if (module == "core_attention") return op.attention_core;
    if (module == "mlp") return is_one_of(name, {"mlp.linear_fc1", "mlp.activation", "mlp.linear_fc2"});
    if (module == "moe_activation") return name == "experts.activation";
    if (module == "moe")
        return is_one_of(name.substr(0, name.find('.')),
                         {"router", "dispatch", "experts", "combine", "shared_experts"});
    if (module == "mla_up_projection")
        return has_operator(kind, "linear_kv_up_proj") &&
               is_one_of(name, {"q_layernorm", "linear_q_up_proj", "kv_layernorm", "linear_kv_up_proj",
                                "rope.query", "rope"});
    return false;  // norms, which are one segment each
}

[[noreturn]] void fail(ErrorCode code, std::string message, const char* way_out) {
    throw Error(code, std::move(message), way_out, {"", "/training/recompute_modules"});
}

class SegmentsOfKind {
public:
    SegmentsOfKind(const BlockKind& kind, bool transformer_engine)
        : kind_(kind), transformer_engine_(transformer_engine), taken_(kind.operators.size(), false) {}

    void add(std::string_view module) {
        if (module == "norm") return add_norms();
        std::vector<bool> operators(kind_.operators.size(), false);
        for (std::size_t o = 0; o < operators.size(); ++o)
            operators[o] = belongs_to(kind_, kind_.operators[o], module);
        take(std::move(operators));
    }
    RecomputeSegments segments() && { return std::move(segments_); }

private:
    void add_norms() {
        for (std::size_t o = 0; o < kind_.operators.size(); ++o) {
            if (!is_separate_norm(kind_, kind_.operators[o].name, transformer_engine_)) continue;
            std::vector<bool> operators(kind_.operators.size(), false);
            operators[o] = true;
            take(std::move(operators));
        }
    }

    /// An operator of two modules, an activation among experts, runs again with the first.
    void take(std::vector<bool> operators) {
        for (std::size_t o = 0; o < operators.size(); ++o) {
            operators[o] = operators[o] && !taken_[o];
            if (operators[o]) taken_[o] = true;
        }
        if (auto segment = recompute_segment(kind_, std::move(operators)))
            segments_.push_back(std::move(*segment));
    }

    const BlockKind& kind_;
    bool transformer_engine_;
    std::vector<bool> taken_;
    RecomputeSegments segments_;
};

}  // namespace

std::vector<RecomputeSegments> megatron_segments(const ModelSpec& model, const TrainingConfig& training,
                                                 bool transformer_engine) {
    // Wider modules come first, so that narrower ones within them find nothing left.
    constexpr std::string_view order[] = {
        "moe", "mlp", "moe_activation", "mla_up_projection", "core_attention", "norm"};
    const auto& stated = training.recompute_modules;
    std::vector<RecomputeSegments> all;
    for (const BlockKind& kind : model.block_kinds) {
        SegmentsOfKind segments(kind, transformer_engine);
        for (const std::string_view module : order)
            if (kind.is_layer && std::find(stated.begin(), stated.end(), module) != stated.end())
                segments.add(module);
        all.push_back(std::move(segments).segments());
    }
    return all;
}

void check_recompute_modules(const Scenario& scenario, const MegatronOptions& options) {
    const TrainingConfig& t = scenario.training;
    if (t.recompute_modules.empty()) return;
    if (options.generation == MegatronGeneration::lm_2021)
        fail(ErrorCode::not_supported, "Megatron-LM of 2021 has no recompute_modules",
             "use recompute: none, selective or full");
    if (t.recompute != Recompute::none && t.recompute != Recompute::selective)
        fail(ErrorCode::invalid_input,
             fmt::format("recompute_modules say what selective recompute runs again, but recompute is '{}'",
                         to_string(t.recompute)),
             "set recompute to selective, or leave recompute_modules out");
    const bool experts = scenario.model.decoder && scenario.model.decoder->experts;
    const bool latent = scenario.model.decoder && scenario.model.decoder->latent_attention;
    for (const std::string& module : t.recompute_modules) {
        if (module.starts_with("moe") && !experts)
            fail(ErrorCode::invalid_input,
                 fmt::format("recompute_modules has '{}', but {} has no experts", module,
                             scenario.model.architecture),
                 "leave it out, or use mlp");
        if (module == "mla_up_projection" && !latent)
            fail(ErrorCode::invalid_input,
                 fmt::format("recompute_modules has '{}', but {} has no latent attention", module,
                             scenario.model.architecture),
                 "leave it out");
    }
}

}  // namespace zeroplan
