#pragma once
#include "import/relaxed_json.hpp"
#include "zeroplan/import.hpp"

namespace zeroplan {

/// A DeepSpeed configuration that is parsed already: adds its settings, findings and figures to `import`.
void import_deepspeed_into(Import& import, const RelaxedJson& document, const ImportContext& context);

}  // namespace zeroplan
