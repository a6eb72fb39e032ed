#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "json/object_reader.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// What reports of schema 1 always have (CLI.md). Each throws Error{invalid_input} at `key` if it is missing,
/// null or of another type. Reports hold more than is read: unknown keys are nobody's mistake.
ObjectReader required_object(const ObjectReader& parent, std::string_view key);
const nlohmann::json& required_list(const ObjectReader& parent, std::string_view key);
/// Bytes or a number of things.
std::uint64_t required_count(const ObjectReader& parent, std::string_view key, std::uint64_t least = 0);
/// At least 0.
double required_number(const ObjectReader& parent, std::string_view key);
std::string required_string(const ObjectReader& parent, std::string_view key);
/// One of `known`.
std::string required_word(const ObjectReader& parent, std::string_view key,
                          std::span<const std::string_view> known);

/// "ranks" of a rank group, "0-6,8": the inverse of to_string(ranks).
std::vector<RankRange> read_ranks(const ObjectReader& group);
/// Throws at `key` unless every rank of the world stands in `ranges` exactly once.
void check_every_rank_once(const ObjectReader& report, std::string_view key, std::vector<RankRange> ranges,
                           std::uint64_t world_size);

}  // namespace zeroplan
