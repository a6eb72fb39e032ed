#include "import/config_sizes.hpp"

#include <gtest/gtest.h>

#include "import/config_families.hpp"

namespace zeroplan {
namespace {

// transformers' configuration_starcoder2.py and configuration_gpt2.py, which has no width of the MLP and no
// heads of key and value.
TEST(FamilySizes, AreThoseOfTheConfigurationClass) {
    EXPECT_EQ(family_sizes("starcoder2"), (FamilySizes{.vocab_size = 49152,
                                                       .hidden_size = 3072,
                                                       .intermediate_size = 12288,
                                                       .num_hidden_layers = 30,
                                                       .num_attention_heads = 24,
                                                       .num_key_value_heads = 2,
                                                       .max_position_embeddings = 4096}));
    EXPECT_EQ(family_sizes("gpt2"), (FamilySizes{.vocab_size = 50257,
                                                 .hidden_size = 768,
                                                 .num_hidden_layers = 12,
                                                 .num_attention_heads = 12,
                                                 .max_position_embeddings = 1024}));
}

TEST(FamilySizes, EveryFamilyHasThemButTheGenericOne) {
    for (const ConfigFamily& family : config_families())
        EXPECT_EQ(family_sizes(family.model_type) == FamilySizes{}, family.model_type == "gpt")
            << family.model_type;
}

}  // namespace
}  // namespace zeroplan
