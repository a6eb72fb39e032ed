#include <gmock/gmock.h>

#include "core/import/import_file.hpp"
#include "core/json/error_of.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;

constexpr double gib = 1073741824.0, mib = 1048576.0;
/// Messages print two decimals.
constexpr double half_digit = 0.005 * gib;

TEST(OomImport, DecomposesTheNewMessage) {
    const Import import = import_file("logs/oom_new_style.txt");
    EXPECT_EQ(import.kind, ImportKind::oom_message);
    EXPECT_EQ(import.figure("requested_bytes"), 388 * mib);
    EXPECT_EQ(import.figure("free_bytes"), 95.75 * mib);
    EXPECT_NEAR(*import.figure("capacity_bytes"), 9.68 * gib, half_digit);
    EXPECT_NEAR(*import.figure("allocated_bytes"), 6.61 * gib, half_digit);
    EXPECT_NEAR(*import.figure("reserved_unallocated_bytes"), 2.57 * gib, half_digit);
    EXPECT_NEAR(*import.figure("outside_torch_bytes"), 0.36 * gib, half_digit);  // 9.54 − 6.61 − 2.57
    const ImportFinding found = finding(import, Finding::warning, "");
    EXPECT_THAT(found.message, HasSubstr("fragmentation: 2.57 GiB (27 % of the process)"));
    EXPECT_THAT(found.hint, HasSubstr("expandable_segments:True"));
}

TEST(OomImport, DecomposesTheOldMessage) {
    const Import import = import_file("logs/oom_old_style.txt");
    EXPECT_NEAR(*import.figure("allocated_bytes"), 77.00 * gib, half_digit);
    EXPECT_NEAR(*import.figure("reserved_unallocated_bytes"), 0.01 * gib, half_digit);
    EXPECT_NEAR(*import.figure("outside_torch_bytes"), 2.20 * gib, half_digit);  // 79.35 − 77.01 − 0.14
    const ImportFinding found = finding(import, Finding::warning, "");
    EXPECT_THAT(found.message, HasSubstr("capacity, not fragmentation"));
    EXPECT_THAT(found.hint, testing::Not(HasSubstr("expandable_segments")));
}

TEST(OomImport, ReadsTheLastMessageOfALog) {
    std::string log = read_text_file(import_path("logs/oom_old_style.txt"));
    log = "step 1\n" + log + "\nstep 2\n" + read_text_file(import_path("logs/oom_new_style.txt"));
    const Import import = import_text(log, "log");
    EXPECT_EQ(import.figure("requested_bytes"), 388 * mib);
    EXPECT_EQ(finding(import, Finding::warning, "").line, 5U);
}

TEST(OomImport, ReadsTracebacksOfSeveralRanks) {
    // Metrics and `[rank0]:` begin as JSON does.
    const Import import = import_file("logs/oom_ranks_torchrun.txt");
    EXPECT_EQ(import.kind, ImportKind::oom_message);
    EXPECT_EQ(import.figure("requested_bytes"), 2 * gib);
    EXPECT_NEAR(*import.figure("allocated_bytes"), 76.02 * gib, half_digit);
    EXPECT_NEAR(*import.figure("reserved_unallocated_bytes"), 612.45 * mib, 0.005 * mib);
    EXPECT_EQ(finding(import, Finding::warning, "").line, 21U);
    EXPECT_THAT(finding(import, Finding::resolved, "").message,
                HasSubstr("2 out-of-memory messages, with 76.02 GiB to 76.11 GiB allocated"));
}

TEST(OomImport, ReadsColouredLinesOfAJournal) {
    const Import import = import_file("logs/oom_journald_colours.txt");
    EXPECT_EQ(import.figure("requested_bytes"), 162 * mib);
    EXPECT_NEAR(*import.figure("allocated_bytes"), 77.00 * gib, half_digit);
    EXPECT_EQ(finding(import, Finding::warning, "").line, 3U);
}

TEST(OomImport, ReadsAMessageThatATerminalBroke) {
    const Import import = import_file("logs/oom_wrapped_elastic.txt");
    EXPECT_EQ(import.figure("requested_bytes"), 388 * mib);
    EXPECT_NEAR(*import.figure("reserved_unallocated_bytes"), 2.57 * gib, half_digit);
}

TEST(OomImport, TakesTheLastWholeMessage) {
    const std::string whole = read_text_file(import_path("logs/oom_old_style.txt"));
    const Import import = import_text(whole + "\nCUDA out of memory. Tried to allocate 2.00 Gi", "log");
    EXPECT_EQ(import.figure("requested_bytes"), 162 * mib);
}

TEST(OomImport, NamesOtherProcessesOfTheGpu) {
    const Import import = import_text(
        "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 1.00 GiB is free. "
        "Including "
        "non-PyTorch memory, this process has 39.00 GiB memory in use. Of the allocated memory 38.00 GiB is "
        "allocated by "
        "PyTorch, and 0.50 GiB is reserved by PyTorch but unallocated.",
        "log");
    EXPECT_EQ(import.figure("other_processes_bytes"), 40 * gib);
    EXPECT_EQ(count(import, Finding::warning), 2U);
}

TEST(OomImport, RefusesHalfAMessage) {
    const Error error =
        error_of([] { (void)import_text("\nCUDA out of memory. Tried to allocate 2.00 GiB", "log"); });
    EXPECT_EQ(error.place(), (ErrorPlace{"log", "line 2"}));
    EXPECT_THAT(error.hint(), HasSubstr("paste it whole"));
}

TEST(OomImport, StandsBesideThePlanOfTheSameJob) {
    Import import = import_file("logs/oom_old_style.txt");
    ScenarioRequest request;
    request.text = R"({"model": {"preset": "gpt2"}, "cluster": {"topology": "dgx-a100"}})";
    const Plan plan = make_plan(resolve_scenario(request));
    set_against(import, plan);
    const RankGroup& worst = plan.rank_groups[plan.memory.worst_group];
    EXPECT_EQ(import.figure("planned_allocated_bytes"), static_cast<double>(worst.steady.allocated.count()));
    EXPECT_EQ(import.figure("planned_outside_torch_bytes"), static_cast<double>(worst.runtime.count()));
    // GPT-2 is far from 77 GiB: the job is another one.
    EXPECT_THAT(import.findings[1].message, HasSubstr("more than the flags say"));
}

TEST(DeepSpeedMemoryImport, TellsAllocatedFromReserved) {
    // After microsoft/DeepSpeed#4700: the model was on the GPU before it was partitioned.
    const Import import = import_text(
        "Before initializing optimizer states\n"
        "MA 26.38 GB         Max_MA 26.38 GB         CA 26.71 GB         Max_CA 27 GB \n"
        "CPU Virtual Memory:  used = 50.1 GB, percent = 5.0%\n"
        "After initializing ZeRO optimizer\n"
        "MA 0.58 GB         Max_MA 0.60 GB         CA 26.71 GB         Max_CA 27 GB \n",
        "log");
    EXPECT_EQ(import.kind, ImportKind::deepspeed_memory);
    EXPECT_DOUBLE_EQ(*import.figure("allocated_bytes"), 0.58 * gib);
    EXPECT_DOUBLE_EQ(*import.figure("peak_allocated_bytes"), 26.38 * gib);
    EXPECT_DOUBLE_EQ(*import.figure("reserved_bytes"), 26.71 * gib);
    EXPECT_DOUBLE_EQ(*import.figure("peak_reserved_bytes"), 27 * gib);
    const ImportFinding warning = finding(import, Finding::warning, "");
    EXPECT_EQ(warning.line, 5U);
    EXPECT_THAT(warning.message, HasSubstr("26.71 GiB stay reserved while 0.58 GiB are allocated"));
    EXPECT_THAT(warning.hint, HasSubstr("zero.Init"));
}

TEST(DeepSpeedMemoryImport, ReadsTheLoggersLines) {
    for (const char* name : {"logs/deepspeed_memory.txt", "logs/deepspeed_memory_srun.txt"}) {
        const Import import = import_file(name);
        EXPECT_EQ(import.kind, ImportKind::deepspeed_memory);
        EXPECT_DOUBLE_EQ(*import.figure("allocated_bytes"), 2.05 * gib);
        EXPECT_DOUBLE_EQ(*import.figure("peak_reserved_bytes"), 15.32 * gib);
        EXPECT_EQ(import.findings[0].message,
                  "Before creating fp16 partitions: allocated 15.10 GiB, peak 15.10 GiB; reserved 15.32 GiB");
    }
}

TEST(DeepSpeedMemoryImport, RefusesACutLine) {
    EXPECT_THAT(error_of([] { (void)import_text("MA 26.38 GB Max_MA 26.38", "log"); }).message(),
                HasSubstr("no whole line"));
}

}  // namespace
}  // namespace zeroplan
