#include "control_group_memory.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace zeroplan::runner {
namespace {

namespace fs = std::filesystem;

/// A mount point of control groups made of plain files.
class ControlGroups : public testing::Test {
protected:
    ~ControlGroups() override { fs::remove_all(folder_); }

    void file(const std::string& path, const std::string& text) const {
        fs::create_directories((folder_ / path).parent_path());
        std::ofstream(folder_ / path) << text;
    }
    std::optional<Bytes> left(const std::string& membership) const {
        file("membership", membership);
        return control_group_memory((folder_ / "membership").string(), (folder_ / "mount").string());
    }

    fs::path folder_ = fs::temp_directory_path() / ("zeroplan_cgroup_" + std::to_string(::getpid()));
};

TEST_F(ControlGroups, LimitBelowTheRootOfVersion2) {
    file("mount/a/memory.max", "1000");
    file("mount/a/memory.current", "300");
    file("mount/a/b/memory.max", "max");
    file("mount/a/b/memory.current", "200");
    EXPECT_EQ(left("0::/a/b\n"), Bytes{700});  // of the group above the own one
    file("mount/a/b/memory.max", "500");
    EXPECT_EQ(left("0::/a/b\n"), Bytes{300});
}

TEST_F(ControlGroups, LimitOfVersion1IsFoundByItsController) {
    file("mount/memory/job/memory.limit_in_bytes", "4096");
    file("mount/memory/job/memory.usage_in_bytes", "1024");
    EXPECT_EQ(left("5:cpu,memory:/job\n0::/\n"), Bytes{3072});
    EXPECT_EQ(left("5:cpu:/job\n0::/\n"), std::nullopt);
}

TEST_F(ControlGroups, PageCacheThatCanGoIsFree) {
    file("mount/memory.max", "1000");
    file("mount/memory.current", "900");
    file("mount/memory.stat", "anon 300\ninactive_file 500\nfile 600\n");
    EXPECT_EQ(left("0::/of/the/host\n"), Bytes{600});  // a container's mount point is its own group
}

TEST_F(ControlGroups, LeaveNothingWhereMoreIsUsedThanAllowed) {
    file("mount/memory.max", "100");
    file("mount/memory.current", "150");
    EXPECT_EQ(left("0::/\n"), Bytes{0});
}

TEST_F(ControlGroups, HaveNoLimitWhereNoneIsSet) {
    file("mount/memory.max", "max");
    file("mount/memory.current", "150");
    EXPECT_EQ(left("0::/\n"), std::nullopt);
    EXPECT_EQ(left(""), std::nullopt);
}

}  // namespace
}  // namespace zeroplan::runner
