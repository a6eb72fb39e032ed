#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace zeroplan {

/// One protobuf message's fields in the wire format, as far as Chakra's traces need it.
/// source: protobuf.dev/programming-guides/encoding: varints, length-delimited fields, fixed 64-bit ones.
class ProtobufWriter {
public:
    ProtobufWriter& varint(std::uint32_t field, std::uint64_t value);
    ProtobufWriter& text(std::uint32_t field, std::string_view value);
    ProtobufWriter& real(std::uint32_t field, double value);
    ProtobufWriter& message(std::uint32_t field, const ProtobufWriter& value);

    const std::string& bytes() const { return bytes_; }
    /// With its length before it, as streams of messages have it.
    std::string delimited() const;

private:
    static void append_varint(std::string& to, std::uint64_t value);
    void tag(std::uint32_t field, std::uint32_t wire_type);

    std::string bytes_;
};

}  // namespace zeroplan
