#include "import/config_sizes.hpp"

#include <algorithm>
#include <iterator>

namespace zeroplan {
namespace {

struct Row {
    std::string_view model_type;
    FamilySizes sizes;
};

// Of transformers' configuration_<model_type>.py, in the order of FamilySizes.
// clang-format off
constexpr Row rows[] = {
    // model_type     vocab  hidden    mlp  layers  heads  kv_heads  head_dim  positions
    {"llama",       { 32000,   4096, 11008,     32,    32,        0,        0,      2048}},
    {"mistral",     { 32000,   4096, 14336,     32,    32,        8,        0,    131072}},
    {"qwen2",       {151936,   4096, 22016,     32,    32,       32,        0,     32768}},
    {"qwen2_vl_text",   {152064, 8192, 29568,    80,    64,        8,        0,     32768}},
    {"qwen2_5_vl_text", {152064, 8192, 29568,    80,    64,        8,        0,     32768}},
    {"qwen3",       {151936,   4096, 22016,     32,    32,       32,      128,     32768}},
    {"mixtral",     { 32000,   4096, 14336,     32,    32,        8,        0,    131072}},
    {"qwen2_moe",   {151936,   2048,  5632,     24,    16,       16,        0,     32768}},
    {"qwen3_moe",   {151936,   2048,  6144,     24,    32,        4,        0,     32768}},
    {"deepseek_v2", { 32000,   4096, 11008,     32,    32,        0,       64,      2048}},
    {"deepseek_v3", {129280,   7168, 18432,     61,   128,        0,       64,      4096}},
    {"gpt2",        { 50257,    768,     0,     12,    12,        0,        0,      1024}},
    {"gemma",       {256000,   3072, 24576,     28,    16,       16,      256,      8192}},
    {"gemma2",      {256000,   2304,  9216,     26,     8,        4,      256,      8192}},
    {"gemma3_text", {262208,   2304,  9216,     26,     8,        4,      256,    131072}},
    {"phi3",        { 32064,   3072,  8192,     32,    32,        0,        0,      4096}},
    {"olmo2",       { 50304,   4096, 11008,     32,    32,        0,        0,      2048}},
    {"olmo",        { 50304,   4096, 11008,     32,    32,        0,        0,      2048}},
    {"glm4",        {151552,   4096, 13696,     40,    32,        2,      128,    131072}},
    {"cohere",      {256000,   8192, 22528,     40,    64,        0,        0,      8192}},
    {"cohere2",     {256000,   8192, 22528,     40,    64,        0,        0,      8192}},
    {"granite",     { 32000,   4096, 11008,     32,    32,        0,        0,      2048}},
    {"smollm3",     {128256,   2048, 11008,     36,    16,        4,        0,     32768}},
    {"gpt_oss",     {201088,   2880,  2880,     36,    64,        8,       64,    131072}},
    {"glm4_moe",    {151552,   4096, 10944,     46,    96,        8,        0,    131072}},
    {"olmoe",       { 50304,   2048,  2048,     16,    16,        0,        0,      4096}},
    {"phimoe",      { 32064,   4096,  6400,     32,    32,        8,        0,    131072}},
    {"llama4_text", {202048,   5120,  8192,     48,    40,        8,      128,    131072}},
    {"mpt",         { 50368,   2048,     0,     24,    16,        0,        0,      2048}},
    {"bloom",       {250880,     64,     0,      2,     8,        0,        0,      2048}},
    {"falcon",      { 65024,   4544,     0,     32,    71,        0,        0,      2048}},
    {"gpt_neox",    { 50432,   6144, 24576,     44,    64,        0,        0,      2048}},
    {"gptj",        { 50400,   4096,     0,     28,    16,        0,        0,      2048}},
    {"gpt_neo",     { 50257,   2048,     0,     24,    16,        0,        0,      2048}},
    {"opt",         { 50272,    768,  3072,     12,    12,        0,        0,      2048}},
    {"phi",         { 51200,   2048,  8192,     24,    32,        0,        0,      2048}},
    {"starcoder2",  { 49152,   3072, 12288,     30,    24,        2,        0,      4096}},
    {"stablelm",    { 50304,   2560,  6912,     32,    32,       32,        0,      4096}},
};
// clang-format on

}  // namespace

FamilySizes family_sizes(std::string_view model_type) {
    const auto* const found = std::find_if(std::begin(rows), std::end(rows),
                                           [&](const Row& row) { return row.model_type == model_type; });
    return found == std::end(rows) ? FamilySizes{} : found->sizes;
}

}  // namespace zeroplan
