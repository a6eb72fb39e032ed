#pragma once
#include "import/safetensors.hpp"

namespace zeroplan {

/// gpt-oss is published in MXFP4: the experts' weights are blocks of 32 four-bit numbers, 16 bytes each, with
/// a scale a block. Returns the checkpoint as the class holds it once they are unpacked: "…_blocks" [experts,
/// out, in / 32, 16] and "…_scales" become one tensor [experts, in, out]. Blocks without scales are left as
/// they are. source: transformers/integrations/mxfp4.py, convert_moe_packed_tensors
CheckpointHeader with_unpacked_blocks(CheckpointHeader checkpoint);

}  // namespace zeroplan
