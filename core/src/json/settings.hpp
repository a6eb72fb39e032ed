#pragma once
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "zeroplan/error.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {

/// Puts the setting's value at its pointer (RFC 6901), making the objects on the way; an index into an array
/// replaces an element, "-" or the array's length appends one. Throws Error{invalid_input} at the setting's
/// origin.
void apply_setting(nlohmann::json& document, const Setting& setting);

/// Where a setting stands, for errors: flags are on the command line.
ErrorPlace place_of(const std::string& origin);
/// `path` in full, so that it means the same from elsewhere. Throws Error{not_found} where the folder that a
/// relative path starts in has been removed.
std::string absolute_path(const std::string& path, const std::string& origin);

/// Whether `parent` is `pointer` or holds it.
bool is_prefix(const std::string& parent, const std::string& pointer);

/// The same error, at the flag that put the wrong value there, if one did; `document` is the name that the
/// readers of the merged scenario were given.
Error blame_setting(const Error& error, const std::string& document, std::span<const Setting> settings);

}  // namespace zeroplan
