#pragma once
#include <cstdint>
#include <string>

#include "architectures/decoder_names.hpp"

namespace zeroplan {

/// Encoders of one architecture under different names.
enum class BertKin : std::uint8_t { bert, roberta, distilbert };

/// What the modules of one of them are called in transformers, and in what its heads differ.
struct BertNames {
    DecoderNames layers;
    std::string embeddings, layer_path;               ///< "bert.embeddings", "bert.encoder.layer"
    std::string pooler;                               ///< of the encoder itself; "" = it has none
    std::string sequence_dense, sequence_classifier;  ///< of a classification of sequences
    bool relu_before_classifier = false;              ///< else tanh
    std::string transform, transform_norm, output_weight, output_bias;  ///< of masked tokens
    bool bias_behind_norm = false;       ///< the output's bias is registered last, not first
    std::uint64_t unused_positions = 0;  ///< rows of the position table that no token takes
};

/// source: transformers, modeling_bert.py, modeling_roberta.py, modeling_distilbert.py
const BertNames& bert_names(BertKin kin);

}  // namespace zeroplan
