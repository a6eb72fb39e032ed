#include "export/protobuf_writer.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

using namespace std::string_literals;

// The first two are the worked examples of protobuf.dev/programming-guides/encoding.
TEST(ProtobufWriter, EncodesAsTheFormatsGuideShows) {
    EXPECT_EQ(ProtobufWriter().varint(1, 150).bytes(), "\x08\x96\x01"s);
    EXPECT_EQ(ProtobufWriter().text(2, "testing").bytes(), "\x12\x07testing"s);
    EXPECT_EQ(ProtobufWriter().message(3, ProtobufWriter().varint(1, 150)).bytes(), "\x1a\x03\x08\x96\x01"s);
    EXPECT_EQ(ProtobufWriter().real(1, 1.0).bytes(), "\x09\0\0\0\0\0\0\xf0\x3f"s);
    EXPECT_EQ(ProtobufWriter().varint(16, 0).bytes(), "\x80\x01\0"s);
}

TEST(ProtobufWriter, PutsTheLengthBeforeAMessageOfAStream) {
    EXPECT_EQ(ProtobufWriter().delimited(), "\0"s);
    EXPECT_EQ(ProtobufWriter().text(1, std::string(200, 'x')).delimited().substr(0, 2), "\xcb\x01"s);
}

}  // namespace
}  // namespace zeroplan
