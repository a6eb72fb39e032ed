#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace zeroplan::runner {

/// What goes over a store's connection: a greeting each way, then requests and their answers. Numbers are in
/// the machine's byte order: all ranks are on one machine.
inline constexpr std::string_view store_greeting = "zeroplan store 1\n";
inline constexpr std::uint32_t store_key_limit = 1024, store_value_limit = 1U << 20;

enum class StoreVerb : std::uint32_t { set = 1, get = 2 };

struct StoreRequest {
    StoreVerb verb = StoreVerb::set;
    std::uint32_t timeout_ms = 0;  ///< of get
    std::string key, value;
};

struct StoreAnswer {
    bool found = true;  ///< false: a get ran out of time
    std::string value;
};

namespace store_detail {
inline void put(std::string& out, std::uint32_t number) {
    char bytes[sizeof(number)];
    std::memcpy(bytes, &number, sizeof(number));
    out.append(bytes, sizeof(number));
}
inline std::uint32_t number_at(std::string_view in, std::size_t offset) {
    std::uint32_t number = 0;
    std::memcpy(&number, in.data() + offset, sizeof(number));
    return number;
}
}  // namespace store_detail

inline std::string encode(const StoreRequest& request) {
    std::string out;
    store_detail::put(out, static_cast<std::uint32_t>(request.verb));
    store_detail::put(out, request.timeout_ms);
    store_detail::put(out, static_cast<std::uint32_t>(request.key.size()));
    store_detail::put(out, static_cast<std::uint32_t>(request.value.size()));
    return out + request.key + request.value;
}

inline std::string encode(const StoreAnswer& answer) {
    std::string out;
    store_detail::put(out, answer.found ? 1 : 0);
    store_detail::put(out, static_cast<std::uint32_t>(answer.value.size()));
    return out + answer.value;
}

/// Whether a request's header, once it is there, can be one of ours.
inline bool plausible_request(std::string_view in) {
    if (in.size() < 16) return true;
    const std::uint32_t verb = store_detail::number_at(in, 0);
    return (verb == 1 || verb == 2) && store_detail::number_at(in, 8) <= store_key_limit &&
           store_detail::number_at(in, 12) <= store_value_limit;
}

/// Takes one whole request from the front of `in`, or nothing if it isn't complete.
inline std::optional<StoreRequest> take_request(std::string& in) {
    if (in.size() < 16) return std::nullopt;
    const std::size_t key = store_detail::number_at(in, 8), value = store_detail::number_at(in, 12);
    if (in.size() < 16 + key + value) return std::nullopt;
    StoreRequest request{static_cast<StoreVerb>(store_detail::number_at(in, 0)),
                         store_detail::number_at(in, 4), in.substr(16, key), in.substr(16 + key, value)};
    in.erase(0, 16 + key + value);
    return request;
}

inline std::optional<StoreAnswer> take_answer(std::string& in) {
    if (in.size() < 8) return std::nullopt;
    const std::size_t value = store_detail::number_at(in, 4);
    if (in.size() < 8 + value) return std::nullopt;
    StoreAnswer answer{store_detail::number_at(in, 0) == 1, in.substr(8, value)};
    in.erase(0, 8 + value);
    return answer;
}

}  // namespace zeroplan::runner
