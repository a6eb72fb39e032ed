#pragma once
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace zeroplan {

/// A kind of JSON file, told by a key that only it has, and what takes it.
struct JsonLook {
    std::string_view key, what, hint;
};

/// What a JSON object is by its keys; nullptr if nothing known. For the reader of another kind, which was
/// given it by mistake.
const JsonLook* json_look(const nlohmann::json& object);

/// Whether it has one of the keys by which a DeepSpeed configuration is told.
bool is_deepspeed(const nlohmann::json& object);

}  // namespace zeroplan
