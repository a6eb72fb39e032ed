#include "cost/check_time.hpp"

#include <gtest/gtest.h>

#include "zeroplan/error.hpp"

namespace zeroplan {
namespace {

TEST(CheckTime, AcceptsWhatTheEnginesProgramsCarry) {
    EXPECT_NO_THROW(check_time_is_modelled({.data_parallel = 64, .shard_group = 64}));
    for (const EngineKind engine : {EngineKind::fsdp1, EngineKind::fsdp2})
        EXPECT_NO_THROW(check_time_is_modelled({.engine = engine,
                                                .offload_optimizer = OffloadTarget::cpu,
                                                .offload_parameters = OffloadTarget::cpu}));
    EXPECT_NO_THROW(check_time_is_modelled({.engine = EngineKind::deepspeed,
                                            .zero_stage = 3,
                                            .offload_optimizer = OffloadTarget::nvme,
                                            .offload_parameters = OffloadTarget::nvme,
                                            .offload_activations = OffloadTarget::cpu}));
    EXPECT_NO_THROW(check_time_is_modelled(
        {.engine = EngineKind::megatron, .zero_stage = 1, .offload_optimizer = OffloadTarget::cpu}));
    EXPECT_NO_THROW(check_time_is_modelled({.engine = EngineKind::single,
                                            .offload_optimizer = OffloadTarget::cpu,
                                            .offload_gradients = OffloadTarget::cpu}));
}

std::string refused(const TrainingConfig& training) {
    try {
        check_time_is_modelled(training);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_supported);
        return error.place().pointer;
    }
    return "";
}

TEST(CheckTime, NamesTheOffloadThatIsNotTimed) {
    const TrainingConfig llm_c{.engine = EngineKind::llm_c, .offload_optimizer = OffloadTarget::cpu};
    EXPECT_EQ(refused(llm_c), "/training/offload_optimizer");
    EXPECT_EQ(refused({.engine = EngineKind::ddp, .offload_parameters = OffloadTarget::cpu}),
              "/training/offload_parameters");
    EXPECT_EQ(refused({.engine = EngineKind::single, .offload_gradients = OffloadTarget::cpu}),
              "/training/offload_gradients");
    // DeepSpeed offloads from stage 1 on.
    EXPECT_EQ(refused({.engine = EngineKind::deepspeed, .offload_optimizer = OffloadTarget::cpu}),
              "/training/offload_optimizer");
    try {
        check_time_is_modelled(llm_c);
    } catch (const Error& error) {
        EXPECT_NE(error.message().find("offload_optimizer = 'cpu'"), std::string::npos);
    }
}

}  // namespace
}  // namespace zeroplan
