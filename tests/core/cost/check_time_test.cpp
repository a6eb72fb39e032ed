#include "cost/check_time.hpp"

#include <gtest/gtest.h>

#include "zeroplan/error.hpp"

namespace zeroplan {
namespace {

TEST(CheckTime, AcceptsDataParallelismAlone) {
    EXPECT_NO_THROW(check_time_is_modelled({.data_parallel = 64, .shard_group = 64}));
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
