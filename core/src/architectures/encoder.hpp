#pragma once
#include <cstdint>

#include "architectures/bert_names.hpp"
#include "zeroplan/build_model.hpp"

namespace zeroplan {

/// What stands on a BERT encoder.
enum class BertHead : std::uint8_t {
    none,                     ///< BertModel: the pooled output alone
    sequence_classification,  ///< a class a sequence, from the pooled first token
    token_classification,     ///< a class a token
    masked_language_model,    ///< the vocabulary for every token
    pretraining               ///< masked_language_model, and two classes from the pooled first token
};

/// BERT and its kin as transformers write them: post-norm layers, learned positions, segments where
/// config.token_types says so. `labels`: classes of a classification.
ModelSpec build_bert(const DecoderConfig& config, BertKin kin, BertHead head, std::uint64_t labels,
                     const LoweringOptions& options);

/// T5 as transformers writes it: RMSNorm without biases, relative positions that the first layer of each
/// stack holds, an encoder whose output every decoder layer attends to.
ModelSpec build_t5(const EncoderDecoderConfig& config, const LoweringOptions& options);

}  // namespace zeroplan
