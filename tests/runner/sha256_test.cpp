#include "sha256.hpp"

#include <gtest/gtest.h>

namespace zeroplan::runner {
namespace {

std::string hash_of(const std::string& text, std::size_t piece = std::string::npos) {
    Sha256 hash;
    for (std::size_t at = 0; at < text.size(); at += std::min(piece, text.size()))
        hash.add(text.data() + at, std::min(piece, text.size() - at));
    return hash.finish();
}

// Examples of FIPS 180-4 as published by NIST.
TEST(Sha256, HashesTheStandardsExamples) {
    EXPECT_EQ(hash_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hash_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hash_of(std::string(1'000'000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
    const std::string text(1000, 'x');
    for (const std::size_t piece : {1UL, 7UL, 63UL, 64UL, 65UL, 500UL})
        EXPECT_EQ(hash_of(text, piece), hash_of(text));
}

}  // namespace
}  // namespace zeroplan::runner
