#include "engines/megatron_fsdp_layout.hpp"

#include <algorithm>
#include <list>
#include <numeric>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

bool is_expert(const Parameter& parameter) {
    return parameter.name.find(".experts.") != std::string::npos;
}

/// Elements of one row: of all dimensions but the first.
std::uint64_t row_numel(const Parameter& parameter) {
    if (parameter.shape.size() < 2) return 1;
    return std::accumulate(parameter.shape.begin() + 1, parameter.shape.end(), std::uint64_t{1},
                           std::multiplies<>{});
}

/// A length that the rows of every parameter of at least that length fill a whole number of times.
std::uint64_t chunk_of(const ModelSpec& model, const std::vector<std::uint32_t>& widest_first) {
    std::uint64_t chunk = row_numel(model.parameters[widest_first.front()]);
    for (const std::uint32_t p : widest_first) {
        const Parameter& parameter = model.parameters[p];
        const std::uint64_t row = row_numel(parameter);
        const bool fits = chunk % row == 0 && parameter.numel % chunk == 0;
        if (row != chunk && !fits && parameter.numel >= chunk) chunk = std::lcm(chunk, row);
    }
    return chunk;
}

/// Places a bucket's parameters so that chunks stay whole: a parameter that ends inside a chunk shares it
/// with the end of another one, and with parameters shorter than a chunk.
/// source: build_data_parallel_buffer_index.
class BucketPlacement {
public:
    BucketPlacement(const ModelSpec& model, FsdpBucket& bucket) : model_(model), bucket_(bucket) {}

    /// The position behind the last one.
    std::uint64_t place() {
        for (std::size_t i = 0; i < bucket_.parameters.size(); ++i)
            (numel(i) < bucket_.chunk ? short_ones_ : long_ones_).push_back(i);
        while (!long_ones_.empty()) {
            const std::size_t i = long_ones_.front();
            long_ones_.pop_front();
            place_long(i);
        }
        for (const std::size_t i : short_ones_) {
            bucket_.offsets[i] = position_;
            position_ += numel(i);
        }
        return position_;
    }

private:
    std::uint64_t numel(std::size_t i) const { return model_.parameters[bucket_.parameters[i]].numel; }
    std::uint64_t rest(std::size_t i) const { return numel(i) % bucket_.chunk; }

    void place_long(std::size_t i) {
        bucket_.offsets[i] = position_;
        if (rest(i) == 0) {
            position_ += numel(i);
            return;
        }
        std::uint64_t gap = position_ + numel(i), space = bucket_.chunk - rest(i);
        position_ += numel(i) - rest(i) + bucket_.chunk;
        place_partner(rest(i), space);
        for (auto s = short_ones_.begin(); s != short_ones_.end();) {
            if (numel(*s) > space) {
                ++s;
                continue;
            }
            bucket_.offsets[*s] = gap;
            gap += numel(*s);
            space -= numel(*s);
            s = short_ones_.erase(s);
        }
    }

    /// The first long one whose own rest goes into the space before position_, which it reaches back into.
    void place_partner(std::uint64_t taken, std::uint64_t& space) {
        const auto partner = std::find_if(long_ones_.begin(), long_ones_.end(), [&](std::size_t other) {
            return rest(other) != 0 && taken + rest(other) <= bucket_.chunk;
        });
        if (partner == long_ones_.end()) return;
        bucket_.offsets[*partner] = position_ - rest(*partner);
        space -= rest(*partner);
        position_ += numel(*partner) - rest(*partner);
        long_ones_.erase(partner);
    }

    const ModelSpec& model_;
    FsdpBucket& bucket_;
    std::list<std::size_t> long_ones_, short_ones_;
    std::uint64_t position_ = 0;
};

/// Parameters of one unit and kind, in registration order.
struct ParameterGroup {
    std::optional<std::uint32_t> unit;
    bool experts = false;
    std::vector<std::uint32_t> parameters;
};

class BucketList {
public:
    BucketList(const ModelSpec& model, const FsdpBucketOptions& options) : model_(model), options_(options) {}

    std::vector<FsdpBucket> of(std::uint32_t first, std::uint32_t end) {
        for (const ParameterGroup& group : groups(first, end)) cut(group);
        return std::move(buckets_);
    }

private:
    std::vector<std::optional<std::uint32_t>> units_of_parameters() const {
        std::vector<std::optional<std::uint32_t>> units(model_.parameters.size());
        if (!options_.pads) return units;
        for (std::uint32_t b = 0; b < model_.blocks.size(); ++b)
            if (model_.block_kinds[model_.blocks[b].kind].is_layer)
                for (const std::uint32_t p : model_.blocks[b].parameters) units[p] = b;
        return units;
    }

    std::vector<ParameterGroup> groups(std::uint32_t first, std::uint32_t end) const {
        const std::vector<std::optional<std::uint32_t>> units = units_of_parameters();
        std::vector<ParameterGroup> groups;
        for (std::uint32_t p = first; p < end; ++p) {
            if (model_.parameters[p].shared_with) continue;
            const bool experts = is_expert(model_.parameters[p]);
            // Groups of a layer follow each other: looking from the end finds them at once.
            auto found = std::find_if(groups.rbegin(), groups.rend(), [&](const ParameterGroup& group) {
                return group.unit == units[p] && group.experts == experts;
            });
            if (found != groups.rend())
                found->parameters.push_back(p);
            else
                groups.push_back({units[p], experts, {p}});
        }
        return groups;
    }

    void cut(const ParameterGroup& group) {
        std::vector<std::uint32_t> members;
        std::uint64_t held = 0;
        const auto close = [&] {
            if (!members.empty()) append(group, std::move(members));
            members.clear();
            held = 0;
        };
        for (const std::uint32_t p : group.parameters) {
            const Parameter& parameter = model_.parameters[p];
            const bool alone = options_.shared_embedding == p;
            if (alone) close();
            members.push_back(p);
            held += parameter.numel;
            if (alone || (!group.unit && options_.bucket_size && held >= *options_.bucket_size)) close();
        }
        close();
    }

    /// Widest rows first, whatever the order of registration.
    void append(const ParameterGroup& group, std::vector<std::uint32_t> members) {
        std::stable_sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
            return row_numel(model_.parameters[a]) > row_numel(model_.parameters[b]);
        });
        FsdpBucket bucket{.parameters = std::move(members),
                          .shards = group.experts ? options_.expert_shards : options_.shards,
                          .unit = group.unit,
                          .experts = group.experts};
        bucket.offsets.resize(bucket.parameters.size());
        bucket.chunk = chunk_of(model_, bucket.parameters);
        const std::uint64_t used = BucketPlacement(model_, bucket).place();
        bucket.numel = options_.pads ? round_up(used, checked_product(bucket.shards, bucket.chunk)) : used;
        buckets_.push_back(std::move(bucket));
    }

    const ModelSpec& model_;
    const FsdpBucketOptions& options_;
    std::vector<FsdpBucket> buckets_;
};

}  // namespace

std::vector<FsdpBucket> fsdp_buckets(const ModelSpec& model, std::uint32_t first, std::uint32_t end,
                                     const FsdpBucketOptions& options) {
    return BucketList(model, options).of(first, end);
}

std::vector<FsdpPiece> fsdp_pieces(const ModelSpec& model, const FsdpBucket& bucket, std::uint64_t rank) {
    const std::uint64_t slice = bucket.numel / bucket.shards, first = rank * slice, last = first + slice;
    std::vector<FsdpPiece> pieces;
    for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
        const std::uint64_t start = bucket.offsets[i],
                            stop = start + model.parameters[bucket.parameters[i]].numel;
        const std::uint64_t begin = std::max(first, start), end = std::min(last, stop);
        if (end > begin) pieces.push_back({bucket.parameters[i], begin - start, end - start});
    }
    return pieces;
}

std::uint64_t rank_that_owns_most(const ModelSpec& model, const std::vector<const FsdpBucket*>& buckets,
                                  std::uint64_t shards) {
    std::vector<std::uint64_t> owned(shards, 0);
    for (const FsdpBucket* bucket : buckets) {
        const std::uint64_t slice = bucket->numel / shards;
        for (std::size_t i = 0; i < bucket->parameters.size(); ++i) {
            const std::uint64_t stop = bucket->offsets[i] + model.parameters[bucket->parameters[i]].numel;
            for (std::uint64_t at = bucket->offsets[i]; at < stop;) {
                const std::uint64_t next = std::min(stop, (at / slice + 1) * slice);
                owned[at / slice] += next - at;
                at = next;
            }
        }
    }
    return static_cast<std::uint64_t>(std::max_element(owned.begin(), owned.end()) - owned.begin());
}

}  // namespace zeroplan
