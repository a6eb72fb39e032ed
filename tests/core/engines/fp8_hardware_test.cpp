#include "engines/fp8_hardware.hpp"

#include <gtest/gtest.h>

#include "zeroplan/error.hpp"

namespace zeroplan {
namespace {

/// Where the refusal points; "" if the GPU has what is asked for.
std::string refused(std::uint32_t capability, const char* fp8, DType compute = DType::fp8) {
    Scenario scenario;
    scenario.training.compute_dtype = compute;
    scenario.training.fp8_json = fp8;
    scenario.cluster.gpu = {.name = "test", .compute_capability = capability};
    try {
        check_fp8_hardware(scenario);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_input);
        return error.place().pointer;
    }
    return "";
}

// The support matrix of Transformer Engine: fp8 from Ada on, MXFP8 on 10.0 and 10.3 alone.
TEST(Fp8Hardware, NeedsAda) {
    for (const std::uint32_t without : {70U, 80U, 86U})
        EXPECT_EQ(refused(without, ""), "/training/compute_dtype");
    for (const std::uint32_t with : {89U, 90U, 100U, 120U}) EXPECT_EQ(refused(with, ""), "");
    EXPECT_EQ(refused(80, "", DType::bf16), "");
    EXPECT_EQ(refused(0, ""), "");  // not stated
}

TEST(Fp8Hardware, NeedsBlackwellForBlockScaling) {
    const char* blocks = R"({"recipe":"mxfp8"})";
    for (const std::uint32_t without : {89U, 90U, 120U, 121U})
        EXPECT_EQ(refused(without, blocks), "/training/fp8/recipe");
    for (const std::uint32_t with : {100U, 103U}) EXPECT_EQ(refused(with, blocks), "");
    EXPECT_EQ(refused(90, R"({"recipe":"rowwise"})"), "");
}

}  // namespace
}  // namespace zeroplan
