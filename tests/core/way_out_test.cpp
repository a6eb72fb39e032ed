#include <gtest/gtest.h>

#include "core/json/error_of.hpp"
#include "zeroplan/import.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

/// Text that a reader refuses.
struct Refused {
    const char* name;
    void (*read)();
};

void PrintTo(const Refused& refused, std::ostream* stream) {
    *stream << refused.name;
}

class WayOut : public testing::TestWithParam<Refused> {};

TEST_P(WayOut, IsNamedBesideThePlace) {
    const Error error = error_of(GetParam().read);
    EXPECT_NE(error.hint(), "");
    EXPECT_NE(error.place().file + error.place().pointer, "");
}

void resolve_with(const char* setting) {
    (void)resolve_scenario({"",
                            R"({"model": {"preset": "gpt2"}, "training": {"freeze": ["wte"]}})",
                            {parse_setting(setting, "--set")},
                            {}});
}

INSTANTIATE_TEST_SUITE_P(
    Readers, WayOut,
    testing::Values(
        Refused{"RowTwice", [] { (void)import_text("\tGPU0\tGPU1\nGPU0\tX\tNV1\nGPU0\tX\tNV1\n", "t"); }},
        Refused{"RowsDiffer", [] { (void)import_text("\tGPU0\tGPU1\nGPU0\tX\tNV1\nGPU1\tNV2\tX\n", "t"); }},
        Refused{"NotItself", [] { (void)import_text("\tGPU0\tGPU1\nGPU0\tNV1\tX\nGPU1\tNV1\tX\n", "t"); }},
        Refused{"ChannelsMissing",
                [] {
                    (void)import_text(R"(<graphs version="1"><graph id="0" pattern="4" nchannels="2">
                                         <channel><gpu dev="0"/></channel></graph></graphs>)",
                                      "g.xml");
                }},
        Refused{"DeviceMissing",
                [] {
                    (void)import_text(R"(<graphs version="1"><graph id="0" pattern="4" nchannels="1">
                                         <channel><gpu/></channel></graph></graphs>)",
                                      "g.xml");
                }},
        Refused{"YamlList", [] { (void)import_accelerate("distributed_type: [FSDP]\n", "a.yaml"); }},
        Refused{"NestedTooDeep",
                [] {
                    (void)resolve_scenario({"", std::string(2000, '['), {}, {}});
                }},
        Refused{"IndexBeyondTheList", [] { resolve_with("/training/freeze/3=x"); }},
        Refused{"PointerIntoANumber", [] { resolve_with("/model/preset/name=x"); }},
        Refused{"TildeAlone", [] { resolve_with("/training/~=1"); }},
        Refused{"LayersDoNotAddUp",
                [] {
                    resolve_with(R"(/training={"pipeline_parallel": 2, "engine": "megatron",
                                               "pipeline_layout": [1, 2]})");
                }}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace zeroplan
