#include <fmt/format.h>

#include <iterator>

#include "zeroplan/critical_path.hpp"
#include "zeroplan/trace.hpp"

namespace zeroplan {
namespace {

/// Quoted as RFC 4180 says, if it has to be.
std::string field(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

}  // namespace

std::string step_csv(const Plan& plan, const std::vector<StepTimeline>& timelines) {
    std::string out = "rank_group,section,iteration,stream,operation,start_s,end_s,critical\n";
    for (std::size_t g = 0; g < timelines.size(); ++g) {
        const std::uint32_t number = plan.rank_groups[g].program;
        const StepProgram& program = plan.programs[number];
        const std::string ranks = field(to_string(plan.rank_groups[g].ranks));
        const std::vector<bool> critical = is_critical(program, timelines[g]);
        for (std::size_t i = 0; i < timelines[g].operations.size(); ++i) {
            const TimedOperation& timed = timelines[g].operations[i];
            const Section& section = program.step[timed.section];
            const std::string name = describe(section.operations[timed.operation], program,
                                              model_of(plan, number), layout_of(plan, number));
            fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{:.9g},{:.9g},{}\n", ranks,
                           field(section.name), timed.iteration, to_string(timed.stream), field(name),
                           timed.start_s, timed.end_s, critical[i] ? 1 : 0);
        }
    }
    return out;
}

}  // namespace zeroplan
