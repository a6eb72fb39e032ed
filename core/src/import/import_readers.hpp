#pragma once
#include <string>
#include <string_view>

#include "zeroplan/import.hpp"

namespace zeroplan {

// One reader a kind of file; each throws Error{invalid_input} with the line for what it can't make sense of.
Import import_launch(std::string_view text, const std::string& file);
Import import_oom(std::string_view text, const std::string& file);
Import import_deepspeed_memory(std::string_view text, const std::string& file);
Import import_topology_matrix(std::string_view text, const std::string& file, const ImportContext& context);
Import import_nccl_topology(std::string_view text, const std::string& file, const ImportContext& context);
Import import_nccl_graph(std::string_view text, const std::string& file);
Import import_nccl_tests(std::string_view text, const std::string& file);

}  // namespace zeroplan
