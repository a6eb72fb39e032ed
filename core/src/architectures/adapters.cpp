#include "architectures/adapters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

/// "self_attn.q_proj" of "model.layers.3.self_attn.q_proj.weight".
std::string module_of(const std::string& parameter) {
    return parameter.substr(0, parameter.rfind('.'));
}

std::string last_part(const std::string& name) {
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? name : name.substr(dot + 1);
}

bool matches(const std::string& text, std::size_t at, const std::string& pattern, std::size_t from) {
    if (from == pattern.size()) return true;
    if (pattern[from] == '*') {
        for (std::size_t i = at; i <= text.size(); ++i)
            if (matches(text, i, pattern, from + 1)) return true;
        return false;
    }
    return at < text.size() && text[at] == pattern[from] && matches(text, at + 1, pattern, from + 1);
}

bool contains(const std::string& text, const std::string& pattern) {
    for (std::size_t i = 0; i < text.size(); ++i)
        if (matches(text, i, pattern, 0)) return true;
    return false;
}

/// The weight alone decides: a bias's gradient reads nothing but the output's gradient.
bool weight_is_frozen(const ModelSpec& model, const Block& block, const Operator& op) {
    if (op.parameters.empty()) return false;
    return !model.parameters[block.parameters[op.parameters.front()]].trainable;
}

/// A frozen weight's gradient is not wanted: neither is what only that would read.
void forget_inputs_of_frozen(ModelSpec& model) {
    std::vector<bool> done(model.block_kinds.size(), false);
    for (const Block& block : model.blocks) {
        if (done[block.kind]) continue;
        done[block.kind] = true;
        for (Operator& op : model.block_kinds[block.kind].operators) {
            const bool scales = op.kind == OperatorKind::elementwise && !op.parameters.empty();
            if ((op.kind != OperatorKind::linear && !scales) || !weight_is_frozen(model, block, op)) continue;
            std::erase_if(op.saved, [&](std::uint32_t tensor) {
                return std::find(op.inputs.begin(), op.inputs.end(), tensor) != op.inputs.end();
            });
            op.backward_workspace = {};
            if (op.kind == OperatorKind::linear) op.backward_flops = op.forward_flops;
        }
    }
}

class AdapterBuilder {
public:
    AdapterBuilder(ModelSpec& model, const AdapterOptions& options) : model_(model), options_(options) {}

    void build() {
        for (Parameter& parameter : model_.parameters) parameter.trainable = false;
        const std::size_t kinds = model_.block_kinds.size();
        for (std::uint32_t kind = 0; kind < kinds; ++kind)
            if (model_.block_kinds[kind].is_layer) adapt(kind);
        if (options_.all_linear && !found_) refuse("of a transformer layer");
        for (const std::string& target : options_.targets)
            if (std::find(found_targets_.begin(), found_targets_.end(), target) == found_targets_.end())
                refuse(target);
    }

private:
    const Block& first_block_of(std::uint32_t kind) const {
        return *std::find_if(model_.blocks.begin(), model_.blocks.end(),
                             [&](const Block& block) { return block.kind == kind; });
    }

    const std::string& weight_name(const Block& block, const Operator& op) const {
        return model_.parameters[block.parameters[op.parameters.front()]].name;
    }

    /// Parts of a packed projection that are targets: LitGPT adapts query, key and value of one linear each
    /// for itself (LoRAQKVLinear). Their number and the sum of their widths.
    struct PackedParts {
        std::uint64_t count = 0, width = 0;
    };
    PackedParts packed_parts(const Block& block, const Operator& op) const {
        PackedParts parts;
        if (!model_.decoder || op.kind != OperatorKind::linear || op.parameters.empty()) return parts;
        const std::string name = last_part(module_of(weight_name(block, op)));
        if (name != "query_key_value" && name != "Wqkv" && name != "c_attn" && name != "qkv_proj")
            return parts;
        const std::uint64_t query = model_.decoder->num_attention_heads * model_.decoder->head_dim,
                            key = model_.decoder->num_key_value_heads * model_.decoder->head_dim;
        for (const auto& [part, width] :
             {std::pair{"q_proj", query}, std::pair{"k_proj", key}, std::pair{"v_proj", key}})
            if (std::find(options_.targets.begin(), options_.targets.end(), part) != options_.targets.end())
                parts = {parts.count + 1, parts.width + width};
        return parts;
    }

    bool is_target(const Block& block, const Operator& op) const {
        if (op.kind != OperatorKind::linear || op.parameters.empty()) return false;
        if (packed_parts(block, op).count > 0) return true;
        const std::string name = last_part(module_of(weight_name(block, op)));
        return options_.all_linear ||
               std::any_of(options_.targets.begin(), options_.targets.end(),
                           [&](const std::string& target) { return is_called(target, name); });
    }

    /// output_proj: torchtune's name for the projection behind attention.
    static bool is_called(const std::string& target, const std::string& name) {
        return last_part(target) == name || (target == "output_proj" && name == "o_proj");
    }

    void note_targets(const Block& block, const Operator& op) {
        found_ = true;
        const bool packed = packed_parts(block, op).count > 0;
        const std::string name = last_part(module_of(weight_name(block, op)));
        for (const std::string& target : options_.targets)
            if (is_called(target, name) ||
                (packed && (target == "q_proj" || target == "k_proj" || target == "v_proj")))
                found_targets_.push_back(target);
    }

    void adapt(std::uint32_t kind_index) {
        BlockKind& kind = model_.block_kinds[kind_index];
        const Block first = first_block_of(kind_index);
        std::vector<Operator> operators;
        for (Operator& op : kind.operators) {
            const bool is_linear = op.kind == OperatorKind::linear && !op.parameters.empty();
            if (is_linear) quantise(kind_index, op);
            if (!is_target(first, op)) {
                operators.push_back(op);
                continue;
            }
            note_targets(first, op);
            add_pair(kind, kind_index, op, packed_parts(first, op), operators);
        }
        kind.operators = std::move(operators);
    }

    /// The base weight in its own dtype; quantised ones are written out for each product.
    void quantise(std::uint32_t kind, Operator& op) {
        if (options_.base_storage == ParameterStorage::engine) return;
        for (const Block& block : model_.blocks)
            if (block.kind == kind)
                model_.parameters[block.parameters[op.parameters.front()]].storage = options_.base_storage;
        if (options_.base_storage != ParameterStorage::nf4) return;
        const std::uint64_t weight = checked_product(op.in_features, op.out_features);
        op.forward_workspace.constant = checked_sum(op.forward_workspace.constant, weight);
        frozen_workspaces_.push_back({kind, op.name, weight});
    }

    void add_pair(BlockKind& kind, std::uint32_t kind_index, const Operator& base, const PackedParts& parts,
                  std::vector<Operator>& operators) {
        const bool packed = parts.count > 0;
        const std::uint64_t rank = packed ? parts.count * options_.rank : options_.rank,
                            width = packed ? parts.width : base.out_features;
        const std::uint32_t x = base.inputs.front(), sum = base.outputs.front();
        const auto tensor = [&](const char* what, std::uint64_t per_token) {
            TensorSpec spec = kind.tensors[sum];
            spec.name = base.name + "." + what;
            if (per_token != 0) spec.extent = {.per_token = per_token};
            kind.tensors.push_back(std::move(spec));
            return static_cast<std::uint32_t>(kind.tensors.size() - 1);
        };
        const std::uint32_t product = tensor("base", 0), low = tensor("lora_A", rank),
                            high = tensor("lora_B", width == base.out_features ? 0 : width),
                            scaled = tensor("scaled", 0);
        const std::uint32_t a = add_parameters(kind_index, base, "lora_A", {rank, base.in_features}),
                            b = add_parameters(kind_index, base, "lora_B", {width, options_.rank});
        kind.parameter_count += 2;
        const std::uint64_t backward = kind.tensors[x].needs_gradient ? 4 : 2;

        Operator frozen = base;
        frozen.outputs.front() = product;
        operators.push_back(std::move(frozen));
        operators.push_back(low_rank(base.name + ".lora_A", x, low, a, base.in_features, rank, backward));
        operators.push_back(low_rank(base.name + ".lora_B", low, high, b, options_.rank, width, 4));
        operators.push_back({.name = base.name + ".scale",
                             .kind = OperatorKind::elementwise,
                             .inputs = {high},
                             .outputs = {scaled},
                             .forward_flops = {.per_token = base.out_features},
                             .backward_flops = {.per_token = base.out_features}});
        operators.push_back({.name = base.name + ".add",
                             .kind = OperatorKind::residual_add,
                             .inputs = {product, scaled},
                             .outputs = {sum},
                             .forward_flops = {.per_token = base.out_features}});
    }

    static Operator low_rank(std::string name, std::uint32_t x, std::uint32_t out, std::uint32_t parameter,
                             std::uint64_t in, std::uint64_t out_features, std::uint64_t backward) {
        const std::uint64_t products = checked_product(in, out_features, "linear operations");
        return {.name = std::move(name),
                .kind = OperatorKind::linear,
                .inputs = {x},
                .outputs = {out},
                .saved = {x},
                .parameters = {parameter},
                .forward_flops = {.per_token = 2 * products},
                .backward_flops = {.per_token = backward * products},
                .in_features = in,
                .out_features = out_features};
    }

    /// One parameter for every block of the kind; the position in the blocks' tables.
    std::uint32_t add_parameters(std::uint32_t kind, const Operator& base, const char* name,
                                 std::vector<std::uint64_t> shape) {
        std::uint32_t position = 0;
        for (Block& block : model_.blocks) {
            if (block.kind != kind) continue;
            position = static_cast<std::uint32_t>(block.parameters.size());
            const std::string module = module_of(weight_name(block, base));
            block.parameters.push_back(static_cast<std::uint32_t>(model_.parameters.size()));
            model_.parameters.push_back({.name = fmt::format("{}.{}.weight", module, name),
                                         .shape = shape,
                                         .numel = checked_product(shape[0], shape[1])});
        }
        return position;
    }

    [[noreturn]] void refuse(const std::string& target) const {
        std::vector<std::string> names;
        for (const Block& block : model_.blocks) {
            if (!model_.block_kinds[block.kind].is_layer) continue;
            for (const Operator& op : model_.block_kinds[block.kind].operators)
                if (op.kind == OperatorKind::linear)
                    names.push_back(last_part(module_of(weight_name(block, op))));
            break;
        }
        throw Error(
            ErrorCode::invalid_input, fmt::format("no linear layer of {} is called {}", model_.name, target),
            fmt::format("its linear layers: {}", fmt::join(names, ", ")), {"", "/training/adapter/targets"});
    }

    struct FrozenWorkspace {
        std::uint32_t kind;
        std::string op;
        std::uint64_t weight;
    };

public:
    /// Backward writes quantised weights out as well.
    void add_backward_workspaces() {
        for (const FrozenWorkspace& frozen : frozen_workspaces_)
            for (Operator& op : model_.block_kinds[frozen.kind].operators)
                if (op.name == frozen.op && op.kind == OperatorKind::linear)
                    op.backward_workspace.constant = frozen.weight;
    }

private:
    ModelSpec& model_;
    const AdapterOptions& options_;
    std::vector<FrozenWorkspace> frozen_workspaces_;
    bool found_ = false;
    std::vector<std::string> found_targets_;
};

}  // namespace

void apply_adapter(ModelSpec& model, const AdapterOptions& options) {
    AdapterBuilder builder(model, options);
    builder.build();
    forget_inputs_of_frozen(model);
    builder.add_backward_workspaces();
}

void freeze_parameters(ModelSpec& model, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
        bool found = false;
        for (Parameter& parameter : model.parameters) {
            if (!contains(parameter.name, pattern)) continue;
            parameter.trainable = false;
            found = true;
        }
        if (!found)
            throw Error(ErrorCode::invalid_input,
                        fmt::format("freeze names '{}', but no parameter of {} is called like that", pattern,
                                    model.name),
                        fmt::format("such as '{}'", model.parameters.front().name), {"", "/training/freeze"});
    }
    if (!patterns.empty()) forget_inputs_of_frozen(model);
}

}  // namespace zeroplan
