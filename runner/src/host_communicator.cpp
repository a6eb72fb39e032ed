#include "zeroplan/runner/host_communicator.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "convert.hpp"
#include "shared_counter.hpp"
#include "shared_memory.hpp"

namespace zeroplan::runner {
namespace {

/// Two slots a rank: one is read while the next is written.
constexpr std::size_t slots = 2;
/// The staging of a communicator stays below about 8 MiB however many ranks there are.
constexpr std::size_t slot_bytes_of_all = std::size_t{4} << 20, least_slot = std::size_t{64} << 10,
                      largest_slot = std::size_t{256} << 10;
/// Elements that are summed at a time, small enough for the first-level cache.
constexpr std::size_t tile = 1024;

std::size_t slot_size(std::size_t ranks) {
    return std::clamp(slot_bytes_of_all / ranks, least_slot, largest_slot) / 64 * 64;
}

/// Elements [begin, end) of a piece of n elements that member p of `size` sums up.
struct Part {
    std::size_t begin, end;
};
Part part_of(std::size_t n, std::size_t p, std::size_t size) {
    return {n * p / size, n * (p + 1) / size};
}

void copy_bytes(void* to, const void* from, std::size_t bytes) {
    if (to != from && bytes != 0) std::memcpy(to, from, bytes);
}

}  // namespace

/// Every collective is a sequence of rounds. In a round each member writes its slot and publishes it, reads
/// what it needs from the others' slots, and says that it has. A slot is used again two rounds later, when
/// all have said so.
class HostCommunicator::Impl {
public:
    Impl(const HostWorld& world, std::vector<int> members, const std::string& name)
        : world_(world), members_(std::move(members)), slot_(slot_size(members_.size())) {
        const auto found = std::find(members_.begin(), members_.end(), world.rank());
        if (found == members_.end()) throw std::logic_error("a rank must be a member of its communicator");
        rank_ = static_cast<std::size_t>(found - members_.begin());
        if (members_.size() == 1) return;
        shared_ = std::make_unique<SharedMemory>(share("communicator/" + name));
        barrier();  // the first member must live until all have opened its memory
    }

    std::size_t rank() const { return rank_; }
    std::size_t size() const { return members_.size(); }

    void all_gather(const std::byte* send, std::byte* receive, std::size_t bytes) {
        std::byte* own = receive + rank_ * bytes;
        for (std::size_t at = 0; at < bytes; at += slot_) {
            const std::size_t n = std::min(slot_, bytes - at);
            begin_round();
            copy_bytes(slot(rank_), send + at, n);
            publish();
            copy_bytes(own + at, send + at, n);
            for (const std::size_t peer : others()) {
                await(peer);
                copy_bytes(receive + peer * bytes + at, slot(peer), n);
            }
            end_round();
        }
    }

    void reduce_scatter(const std::byte* send, std::byte* receive, std::size_t elements, DType dtype) {
        const std::size_t width = bytes_per_element(dtype);
        const std::size_t piece = slot_ / size() / width;
        for (std::size_t at = 0; at < elements; at += piece) {
            const std::size_t n = std::min(piece, elements - at);
            begin_round();
            for (const std::size_t peer : others())
                copy_bytes(slot(rank_) + peer * piece * width, send + (peer * elements + at) * width,
                           n * width);
            publish();
            for (const std::size_t peer : others()) await(peer);
            sum(receive + at * width, n, dtype, [&](std::size_t p) {
                return p == rank_ ? send + (rank_ * elements + at) * width : slot(p) + rank_ * piece * width;
            });
            end_round();
        }
    }

    void all_reduce(std::byte* buffer, std::size_t elements, DType dtype) {
        const std::size_t width = bytes_per_element(dtype);
        const std::size_t piece = slot_ / width;
        for (std::size_t at = 0; at < elements; at += piece) {
            const std::size_t n = std::min(piece, elements - at);
            std::byte* here = buffer + at * width;
            const Part own = part_of(n, rank_, size());

            begin_round();
            copy_bytes(slot(rank_), here, n * width);
            publish();
            for (const std::size_t peer : others()) await(peer);
            sum(here + own.begin * width, own.end - own.begin, dtype,
                [&](std::size_t p) { return slot(p) + own.begin * width; });
            end_round();

            begin_round();
            copy_bytes(slot(rank_), here + own.begin * width, (own.end - own.begin) * width);
            publish();
            for (const std::size_t peer : others()) {
                const Part part = part_of(n, peer, size());
                await(peer);
                copy_bytes(here + part.begin * width, slot(peer), (part.end - part.begin) * width);
            }
            end_round();
        }
    }

    void broadcast(std::byte* buffer, std::size_t bytes, std::size_t root) {
        for (std::size_t at = 0; at < bytes; at += slot_) {
            const std::size_t n = std::min(slot_, bytes - at);
            begin_round();
            if (rank_ == root) copy_bytes(slot(rank_), buffer + at, n);
            publish();
            if (rank_ != root) {
                await(root);
                copy_bytes(buffer + at, slot(root), n);
            }
            end_round();
        }
    }

    void barrier() {
        begin_round();
        publish();
        for (const std::size_t peer : others()) await(peer);
        end_round();
    }

private:
    SharedMemory share(const std::string& key) const {
        if (rank_ != 0) return SharedMemory::open(world_.get(key, members_[0]));
        SharedMemory memory = SharedMemory::create(size() * (2 * sizeof(SharedCounter) + slots * slot_));
        world_.store().set(key, memory.handle());
        return memory;
    }

    SharedCounter& published(std::size_t rank) const {
        return reinterpret_cast<SharedCounter*>(shared_->data())[2 * rank];
    }
    SharedCounter& consumed(std::size_t rank) const {
        return reinterpret_cast<SharedCounter*>(shared_->data())[2 * rank + 1];
    }
    std::byte* slot(std::size_t rank) const {
        return shared_->data() + size() * 2 * sizeof(SharedCounter) + (rank * slots + round_ % slots) * slot_;
    }

    /// The other members, beginning behind this one so that not all read the same slot at once.
    std::vector<std::size_t> others() const {
        std::vector<std::size_t> result;
        for (std::size_t i = 1; i < size(); ++i) result.push_back((rank_ + i) % size());
        return result;
    }

    void begin_round() const {
        const std::uint32_t free_since = round_ - static_cast<std::uint32_t>(slots) + 1;
        if (rounds_ >= slots)
            for (const std::size_t peer : others())
                world_.wait_for(consumed(peer), free_since, members_[peer]);
    }
    void publish() const { published(rank_).advance_to(round_ + 1); }
    void await(std::size_t peer) const { world_.wait_for(published(peer), round_ + 1, members_[peer]); }
    void end_round() {
        ++round_;
        ++rounds_;
        consumed(rank_).advance_to(round_);
    }

    /// to = part(0) + part(1) + …, in fp32, rounded once. `to` may be one of the parts.
    template <typename PartOfRank>
    void sum(std::byte* to, std::size_t elements, DType dtype, PartOfRank part) const {
        std::array<float, tile> total;
        for (std::size_t at = 0; at < elements; at += tile) {
            const std::size_t n = std::min(tile, elements - at);
            widen(element(part(0), dtype, at), dtype, total.data(), n);
            for (std::size_t p = 1; p < size(); ++p)
                add_widened(element(part(p), dtype, at), dtype, total.data(), n);
            narrow(total.data(), element(to, dtype, at), dtype, n);
        }
    }

    const HostWorld& world_;
    std::vector<int> members_;
    std::size_t rank_ = 0, slot_;
    std::unique_ptr<SharedMemory> shared_;
    std::uint32_t round_ = 0;   ///< wraps around, as the counters do
    std::uint64_t rounds_ = 0;  ///< doesn't
};

HostCommunicator::HostCommunicator(const HostWorld& world, std::vector<int> members, const std::string& name)
    : impl_(std::make_unique<Impl>(world, std::move(members), name)) {}
HostCommunicator::HostCommunicator(HostCommunicator&&) noexcept = default;
HostCommunicator& HostCommunicator::operator=(HostCommunicator&&) noexcept = default;
HostCommunicator::~HostCommunicator() = default;

int HostCommunicator::rank() const {
    return static_cast<int>(impl_->rank());
}
int HostCommunicator::size() const {
    return static_cast<int>(impl_->size());
}

void HostCommunicator::all_gather(const void* send, void* receive, std::uint64_t elements, DType dtype) {
    const std::size_t bytes = elements * bytes_per_element(dtype);
    if (size() == 1) return copy_bytes(receive, send, bytes);
    impl_->all_gather(static_cast<const std::byte*>(send), static_cast<std::byte*>(receive), bytes);
}

void HostCommunicator::reduce_scatter(const void* send, void* receive, std::uint64_t elements, DType dtype) {
    if (size() == 1) return copy_bytes(receive, send, elements * bytes_per_element(dtype));
    impl_->reduce_scatter(static_cast<const std::byte*>(send), static_cast<std::byte*>(receive), elements,
                          dtype);
}

void HostCommunicator::all_reduce(void* buffer, std::uint64_t elements, DType dtype) {
    if (size() > 1) impl_->all_reduce(static_cast<std::byte*>(buffer), elements, dtype);
}

void HostCommunicator::broadcast(void* buffer, std::uint64_t elements, DType dtype, int root) {
    if (size() > 1)
        impl_->broadcast(static_cast<std::byte*>(buffer), elements * bytes_per_element(dtype),
                         static_cast<std::size_t>(root));
}

void HostCommunicator::barrier() {
    if (size() > 1) impl_->barrier();
}

}  // namespace zeroplan::runner
