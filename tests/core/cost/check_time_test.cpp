#include "cost/check_time.hpp"

#include <gtest/gtest.h>

#include "zeroplan/error.hpp"

namespace zeroplan {
namespace {

TEST(CheckTime, AcceptsDataParallelismAlone) {
    EXPECT_NO_THROW(check_time_is_modelled({.data_parallel = 64, .shard_group = 64}));
}

TEST(CheckTime, NamesTheDegreeThatIsNotTimed) {
    try {
        check_time_is_modelled({.pipeline_parallel = 4});
        FAIL() << "accepted pipeline parallelism";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_supported);
        EXPECT_EQ(error.place().pointer, "/training/pipeline_parallel");
        EXPECT_NE(error.message().find("pipeline_parallel = 4"), std::string::npos);
    }
    EXPECT_THROW(check_time_is_modelled({.tensor_parallel = 2}), Error);
    EXPECT_THROW(check_time_is_modelled({.context_parallel = 2}), Error);
    EXPECT_THROW(check_time_is_modelled({.expert_parallel = 2}), Error);
}

TEST(CheckTime, AcceptsWhatTheEnginesProgramsCommunicate) {
    EXPECT_NO_THROW(check_time_is_modelled({.engine = EngineKind::megatron,
                                            .tensor_parallel = 2,
                                            .pipeline_parallel = 4,
                                            .context_parallel = 2,
                                            .expert_parallel = 2}));
    EXPECT_NO_THROW(check_time_is_modelled({.engine = EngineKind::fsdp2, .tensor_parallel = 8}));
}

TEST(CheckTime, NamesTheOffloadThatIsNotTimed) {
    try {
        check_time_is_modelled({.offload_optimizer = OffloadTarget::cpu});
        FAIL() << "accepted an optimizer on the host";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_supported);
        EXPECT_EQ(error.place().pointer, "/training/offload_optimizer");
        EXPECT_NE(error.message().find("offload_optimizer = 'cpu'"), std::string::npos);
    }
    EXPECT_THROW(check_time_is_modelled({.offload_parameters = OffloadTarget::nvme}), Error);
    EXPECT_THROW(check_time_is_modelled({.offload_activations = OffloadTarget::cpu}), Error);
    EXPECT_THROW(check_time_is_modelled({.offload_gradients = OffloadTarget::cpu}), Error);
}

}  // namespace
}  // namespace zeroplan
