#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/object_reader.hpp"

namespace zeroplan {

/// Names of one value, the field's first: {"hidden_size", "n_embd"}.
using KeyNames = std::vector<std::string_view>;

/// A config.json and the keys of a scenario that override it. A value may have several names; one given under
/// two names in the same object with different values is an error.
class ConfigObject {
public:
    explicit ConfigObject(ObjectReader config) : config_(std::move(config)) {}
    ConfigObject(ObjectReader config, ObjectReader overrides)
        : config_(std::move(config)), overrides_(std::move(overrides)) {}

    /// A whole number in [1, most].
    std::optional<std::uint64_t> size(const KeyNames& names, std::uint64_t most) const;
    std::optional<bool> boolean(std::string_view key) const;
    std::optional<std::string> string(const KeyNames& names) const;
    bool has(std::string_view key) const;

    /// The object that has `key`: the overrides if they do, else the config.
    const ObjectReader& holder(std::string_view key) const;
    /// Throws Error{code} at the first of `names` that is given, else at the config.
    [[noreturn]] void fail(const KeyNames& names, std::string message, std::string hint,
                           ErrorCode code = ErrorCode::invalid_input) const;

    const ObjectReader& config() const { return config_; }
    const std::optional<ObjectReader>& overrides() const { return overrides_; }

private:
    /// The name under which a value is given, overrides first; "" if it isn't.
    std::string_view given_as(const KeyNames& names) const;

    ObjectReader config_;
    std::optional<ObjectReader> overrides_;
};

}  // namespace zeroplan
