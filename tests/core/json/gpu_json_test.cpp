#include "json/gpu_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "embedded_files.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Error error_of(const json& gpu) {
    try {
        read_gpu(gpu, {"f.json", "/cluster/gpu"});
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "accepted: " << gpu;
    return Error(ErrorCode::invalid_input, "");
}

const json card = {
    {"memory_usable_bytes", 16'000'000'000}, {"hbm_bytes_per_s", 5e11}, {"dense_fp16_flop_per_s", 1e14}};

TEST(ReadGpu, ReadsEveryFileOfTheCatalogue) {
    for (const embedded::File& file : embedded::gpus()) {
        const GpuSpec gpu = read_gpu(std::string(file.name), {});
        EXPECT_EQ(gpu.name, file.name);
        EXPECT_GT(gpu.fp32_flop_per_s, 0) << file.name;
        EXPECT_EQ(gpu.is_host, file.name == "host-cpu");
        EXPECT_EQ(read_gpu(gpu_json(gpu), {}), gpu);
        EXPECT_EQ(gpu.multiprocessors > 0, !gpu.is_host) << file.name;
        const json text = json::parse(file.text);
        for (const auto& [key, value] : text.items()) {
            if (!value.is_object()) continue;
            EXPECT_FALSE(value.at("source").get<std::string>().empty()) << file.name << " " << key;
        }
    }
    EXPECT_GE(embedded::gpus().size(), 23U);
}

/// A figure nobody looked up says so both in words and by its mark.
TEST(ReadGpu, FindsTheMarkOfWhatIsRecalledBesideTheWord) {
    for (const embedded::File& file : embedded::gpus()) {
        const json text = json::parse(file.text);
        for (const auto& [key, figure] : text.items()) {
            if (!figure.is_object()) continue;
            const bool says_so = figure.at("source").get<std::string>().find("recalled") != std::string::npos;
            EXPECT_EQ(figure.value("recalled", false), says_so) << file.name << " " << key;
        }
    }
}

TEST(ReadGpu, HasThePublishedFigures) {
    const GpuSpec h100 = read_gpu("h100-sxm-80gb", {});
    EXPECT_EQ(h100.memory_usable.count(), 84'943'715'697U);
    EXPECT_EQ(h100.hbm_bytes_per_s, 3.35e12);
    EXPECT_EQ(h100.bf16_flop_per_s, 989.4e12);
    EXPECT_EQ(h100.link_bytes_per_s, 450e9);
    EXPECT_EQ(h100.compute_capability, 90U);
    EXPECT_EQ(read_gpu("v100-sxm-32gb", {}).bf16_flop_per_s, 0);
}

TEST(ReadGpu, ReadsAnObjectOfFigures) {
    json mine = card;
    mine["hbm_bytes_per_s"] = {{"value", 6e11}, {"source", "measured"}};
    const GpuSpec gpu = read_gpu(mine, {});
    EXPECT_EQ(gpu.name, "custom");
    EXPECT_EQ(gpu.hbm_bytes_per_s, 6e11);
    EXPECT_EQ(gpu.link, "none");
    EXPECT_EQ(read_gpu(gpu_json(gpu), {}), gpu);
}

TEST(ReadGpu, CountsMultiprocessorsInWholeNumbers) {
    json gpu = card;
    gpu["multiprocessors"] = 114;
    EXPECT_EQ(read_gpu(gpu, {}).multiprocessors, 114U);
    EXPECT_EQ(read_gpu(gpu_json(read_gpu(gpu, {})), {}), read_gpu(gpu, {}));
    for (const double wrong : {0.0, 0.5, 113.5, -1.0, 1e6}) {
        gpu["multiprocessors"] = wrong;
        EXPECT_EQ(error_of(gpu).place().pointer, "/cluster/gpu/multiprocessors") << wrong;
    }
}

TEST(ReadGpu, NamesTheNearestGpu) {
    const Error error = error_of("h100-sxm-80g");
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_EQ(error.place(), (ErrorPlace{"f.json", "/cluster/gpu"}));
    EXPECT_THAT(error.hint(), HasSubstr("did you mean \"h100-sxm-80gb\"?"));
}

TEST(ReadGpu, RefusesWhatNoGpuIs) {
    json zero = card, absurd = card, unknown = card, rateless = card, link = card;
    zero["memory_usable_bytes"] = 0;
    absurd["hbm_bytes_per_s"] = 1e30;
    unknown["hbm_byte_per_s"] = 1e12;
    rateless.erase("dense_fp16_flop_per_s");
    link["link"] = "nvlink44";
    EXPECT_THAT(error_of(zero).message(), HasSubstr("above 0"));
    EXPECT_EQ(error_of(absurd).place().pointer, "/cluster/gpu/hbm_bytes_per_s");
    EXPECT_THAT(error_of(unknown).hint(), HasSubstr("hbm_bytes_per_s"));
    EXPECT_THAT(error_of(rateless).message(), HasSubstr("dense rate"));
    EXPECT_THAT(error_of(link).hint(), HasSubstr("nvlink4"));
    EXPECT_THAT(error_of(7).message(), HasSubstr("object"));
}

}  // namespace
}  // namespace zeroplan
