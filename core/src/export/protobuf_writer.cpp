#include "export/protobuf_writer.hpp"

#include <bit>

namespace zeroplan {
namespace {

constexpr std::uint32_t varint_type = 0, fixed64_type = 1, delimited_type = 2;

}  // namespace

void ProtobufWriter::append_varint(std::string& to, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
    to += static_cast<char>(value);
}

void ProtobufWriter::tag(std::uint32_t field, std::uint32_t wire_type) {
    append_varint(bytes_, std::uint64_t{field} << 3 | wire_type);
}

ProtobufWriter& ProtobufWriter::varint(std::uint32_t field, std::uint64_t value) {
    tag(field, varint_type);
    append_varint(bytes_, value);
    return *this;
}

ProtobufWriter& ProtobufWriter::text(std::uint32_t field, std::string_view value) {
    tag(field, delimited_type);
    append_varint(bytes_, value.size());
    bytes_ += value;
    return *this;
}

ProtobufWriter& ProtobufWriter::real(std::uint32_t field, double value) {
    tag(field, fixed64_type);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(bits >> (8 * byte));
    return *this;
}

ProtobufWriter& ProtobufWriter::message(std::uint32_t field, const ProtobufWriter& value) {
    return text(field, value.bytes_);
}

std::string ProtobufWriter::delimited() const {
    std::string result;
    append_varint(result, bytes_.size());
    return result += bytes_;
}

}  // namespace zeroplan
