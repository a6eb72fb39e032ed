#include "architectures/written_activations.hpp"

namespace zeroplan {
namespace {

using TensorId = BlockBuilder::TensorId;

/// Element-wise steps of one width.
class Steps {
public:
    Steps(BlockBuilder& block, const std::string& name, std::uint64_t width)
        : block_(block), name_(name), width_(width) {}

    /// A step that backward needs nothing of: a sum, a product with a number.
    TensorId plain(const char* step, std::vector<TensorId> inputs) {
        return add(step, std::move(inputs), {});
    }
    /// A product of tensors, or a power: backward reads what went in.
    TensorId product(const char* step, const std::vector<TensorId>& inputs) {
        return add(step, inputs, inputs);
    }
    TensorId tanh(TensorId x) {
        const TensorId out = add("tanh", {x}, {});
        block_.last().saved = {out};
        return out;
    }

private:
    TensorId add(const char* step, std::vector<TensorId> inputs, std::vector<TensorId> saved) {
        const std::string name = name_ + "." + step;
        const TensorId out = block_.tensor(name, width_);
        block_.add({.name = name,
                    .kind = OperatorKind::elementwise,
                    .inputs = std::move(inputs),
                    .outputs = {out},
                    .saved = std::move(saved),
                    .forward_flops = {.per_token = width_},
                    .backward_flops = {.per_token = 2 * width_}});
        return out;
    }

    BlockBuilder& block_;
    const std::string& name_;
    std::uint64_t width_;
};

/// √(2/π) · (x + 0.044715 · x³)
TensorId new_argument(Steps& steps, TensorId x) {
    const TensorId cube = steps.product("cube", {x});
    const TensorId scaled = steps.plain("scaled_cube", {cube});
    return steps.plain("scale", {steps.plain("sum", {x, scaled})});
}

/// (x · 0.797…) · (1 + 0.044715 · x · x)
TensorId fast_argument(Steps& steps, TensorId x) {
    const TensorId scaled = steps.plain("scale", {x});
    const TensorId square = steps.product("square", {steps.plain("coefficient", {x}), x});
    return steps.product("argument", {scaled, steps.plain("one_plus_square", {square})});
}

}  // namespace

bool is_written_activation(std::string_view name) {
    return name == "gelu_new" || name == "gelu_fast";
}

TensorId written_activation(BlockBuilder& block, const std::string& name, TensorId x, std::uint64_t width,
                            std::string_view activation) {
    Steps steps(block, name, width);
    const TensorId half = steps.plain("half", {x});
    const TensorId argument = activation == "gelu_new" ? new_argument(steps, x) : fast_argument(steps, x);
    return steps.product("out", {half, steps.plain("one_plus_tanh", {steps.tanh(argument)})});
}

}  // namespace zeroplan
