#pragma once
#include <string>

#include "import/launch_environment.hpp"
#include "zeroplan/import.hpp"

namespace zeroplan {

/// PYTORCH_ALLOC_CONF or its old name, "key:value,key:[a,b]": states what changes the plan, rejects what
/// PyTorch refuses, and reports every other option. Options of the allocator are stated where the import says
/// which engine trains, for the native one has none.
void import_allocator(Import& import, const std::string& name, const EnvironmentVariable& variable);

}  // namespace zeroplan
