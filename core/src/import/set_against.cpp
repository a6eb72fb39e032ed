#include "import/import_builder.hpp"

#include "printable.hpp"

namespace zeroplan {
namespace {

std::string gib(double bytes) {
    return fixed(bytes / 1073741824.0, 2) + " GiB";
}

double as_double(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

/// A plan and a measurement that differ by less than this agree: what steps of one run differ by. Assumption.
constexpr double agreement = 0.05;

void compare(Import& import, const char* what, double measured, double planned) {
    figure(import, fmt::format("planned_{}_bytes", what), planned, "B",
           "of the plan that the flags describe");
    if (measured <= 0 || planned <= 0) return;
    const double error = planned / measured - 1;
    if (error < -agreement)
        note(import, Finding::warning, "", 0,
             fmt::format("{} {} here, {} in the plan ({}{} %): the job holds more than the flags say", what,
                         gib(measured), gib(planned), error < 0 ? "" : "+", fixed(100 * error, 0)),
             "is the sequence longer, recomputation off, a second model loaded, or attention eager?");
    else
        note(import, Finding::resolved, "", 0,
             fmt::format("{} {} here, {} in the plan ({}{} %){}", what, gib(measured), gib(planned),
                         error < 0 ? "" : "+", fixed(100 * error, 0),
                         error > agreement
                             ? ": the failure came before the peak, or the flags say more than the job"
                             : ""));
}

}  // namespace

void set_against(Import& import, const Plan& plan) {
    const RankGroup& worst = plan.rank_groups.at(plan.memory.worst_group);
    const auto value = [&](const char* peak, const char* now) {
        return import.figure(peak).value_or(import.figure(now).value_or(0));
    };
    compare(import, "allocated", value("peak_allocated_bytes", "allocated_bytes"),
            as_double(worst.steady.allocated));
    compare(import, "reserved", value("peak_reserved_bytes", "reserved_bytes"),
            as_double(worst.peak_reserved));
    compare(import, "outside_torch", import.figure("outside_torch_bytes").value_or(0),
            as_double(worst.runtime));
    figure(import, "planned_device_bytes", as_double(plan.memory.overall_peak_device), "B",
           "reserved and outside PyTorch");
    note(import, Finding::resolved, "", 0,
         fmt::format("the plan {}: peak in {}, of {}",
                     plan.memory.verdict == Verdict::fits       ? "fits"
                     : plan.memory.verdict == Verdict::marginal ? "may fit or not"
                                                                : "does not fit",
                     to_string(plan.memory.peak_phase), plan.memory.peak_operation));
}

}  // namespace zeroplan
