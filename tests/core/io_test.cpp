#include "zeroplan/io.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json/error_of.hpp"

namespace zeroplan {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TextFile : public testing::Test {
protected:
    TextFile() { fs::create_directories(folder_); }
    ~TextFile() override { fs::remove_all(folder_); }
    std::string path(const char* name) const { return (folder_ / name).string(); }
    std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
    }

    fs::path folder_ = fs::temp_directory_path() / ("zeroplan_io_test_" + std::to_string(::getpid()));
};

TEST_F(TextFile, ComesBackAsItWasWritten) {
    const std::string text("a\0b\r\n\xff", 7);
    write_text_file(path("x"), text);
    EXPECT_EQ(read_text_file(path("x")), text);
    write_text_file(path("x"), "");
    EXPECT_EQ(read_text_file(path("x")), "");
    const std::string large(3'000'000, 'z');
    write_text_file(path("x"), large);
    EXPECT_EQ(read_text_file(path("x")), large);
    EXPECT_EQ(files(), 1U);  // no temporary file stays
}

TEST_F(TextFile, KeepsTheModeOfWhatItReplaces) {
    write_text_file(path("x"), "secret");
    ASSERT_EQ(::chmod(path("x").c_str(), 0640), 0);
    write_text_file(path("x"), "another secret");
    struct stat status {};
    ASSERT_EQ(::stat(path("x").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0640U);
}

TEST_F(TextFile, LeavesAloneWhatHasItsTemporaryName) {
    const std::string taken = path("x") + "." + std::to_string(::getpid()) + "-0.tmp";
    write_text_file(path("elsewhere"), "precious");
    fs::create_symlink(path("elsewhere"), taken);
    write_text_file(path("x"), "new");
    EXPECT_EQ(read_text_file(path("x")), "new");
    EXPECT_EQ(read_text_file(path("elsewhere")), "precious");
}

TEST_F(TextFile, IsWrittenBehindALink) {
    write_text_file(path("x"), "old");
    fs::create_symlink(path("x"), path("link"));
    write_text_file(path("link"), "new");
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_EQ(read_text_file(path("x")), "new");
}

TEST_F(TextFile, MayBeADevice) {
    EXPECT_NO_THROW(write_text_file("/dev/null", "x"));
    const Error error = error_of([] { write_text_file("/dev/full", "x"); });
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_EQ(error.place().file, "/dev/full");
}

TEST_F(TextFile, ThatIsMissingIsNotFound) {
    const Error error = error_of([&] { read_text_file(path("none.json")); });
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_EQ(error.place().file, path("none.json"));
    EXPECT_FALSE(error.hint().empty());
}

TEST_F(TextFile, ThatIsAFolderIsAnError) {
    EXPECT_EQ(error_of([&] { read_text_file(folder_.string()); }).code(), ErrorCode::io);
    EXPECT_EQ(error_of([&] { write_text_file(folder_.string(), "x"); }).code(), ErrorCode::io);
}

TEST_F(TextFile, InAMissingFolderIsAnError) {
    const Error error = error_of([&] { write_text_file(path("none/x"), "x"); });
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.hint(), HasSubstr("folder"));
}

}  // namespace
}  // namespace zeroplan
