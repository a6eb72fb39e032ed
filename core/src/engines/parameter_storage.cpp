#include "engines/parameter_storage.hpp"

namespace zeroplan {

StoredAs stored_as(const Parameter& parameter, DType by_default) {
    switch (parameter.storage) {
        case ParameterStorage::fp32:
            return {DType::fp32};
        case ParameterStorage::fp16:
            return {DType::fp16};
        case ParameterStorage::bf16:
            return {DType::bf16};
        case ParameterStorage::nf4:
            return {DType::uint8, true};
        case ParameterStorage::engine:
            break;
    }
    return {by_default};
}

std::uint64_t statistics_bytes(const Parameter& parameter) {
    if (parameter.storage != ParameterStorage::nf4) return 0;
    const std::uint64_t blocks = (parameter.numel + 63) / 64;
    return blocks + 4 * ((blocks + 255) / 256);
}

}  // namespace zeroplan
