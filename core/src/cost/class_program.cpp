#include <algorithm>

#include "cost/constants.hpp"
#include "zeroplan/rank_classes.hpp"

namespace zeroplan {
namespace {

/// The classes whose links a message crosses: activations go to the next stage, gradients back.
std::uint32_t receiver(const AlikeRanks& sender, std::uint32_t channel) {
    return channel % 2 == 0 ? sender.next_stage : sender.previous_stage;
}

/// The receiver's link is none of the sender's flow, but holds it back.
void hold_back(CollectiveCost& cost, const LinkRates& rates, double gpu_link_factor, double nic_factor) {
    const double link = cost.nic_weight > 0 ? rates.nic_bytes_per_s * nic_factor
                                            : intra_rate(rates, cost.on_bridge) * gpu_link_factor;
    cost.cap_bytes_per_s = std::min(cost.cap_bytes_per_s, link);
}

class ClassProgram {
public:
    ClassProgram(TimedProgram program, const RankClasses& classes, const AlikeRanks& own,
                 const LinkRates& rates)
        : program_(std::move(program)), classes_(classes), own_(own), rates_(rates) {}

    TimedProgram take() {
        find_messages();
        for (std::uint32_t c = 0; c < program_.collectives.size(); ++c)
            if (channels_[c] == no_channel)
                slow_down_collective(program_.collectives[c]);
            else
                slow_down_message(program_.collectives[c].cost, channels_[c]);
        for (TimedSection& section : program_.sections) slow_down(section);
        return std::move(program_);
    }

private:
    void find_messages() {
        channels_.assign(program_.collectives.size(), no_channel);
        for (const TimedSection& section : program_.sections)
            for (const TimedNode& node : section.nodes)
                if (node.transfer == TransferSide::send) channels_[node.collective] = node.channel;
    }

    void slow_down_collective(TimedCollective& collective) const {
        const ClassCommunicator& group =
            classes_.communicators[own_.communicator[static_cast<std::size_t>(collective.group)]];
        collective.cost =
            on_slow_links(collective.cost, rates_, group.least_gpu_link_factor, group.least_nic_factor);
    }

    void slow_down_message(CollectiveCost& cost, std::uint32_t channel) const {
        const AlikeRanks& peer = classes_.classes[receiver(own_, channel)];
        const double gpu = std::min(own_.gpu_link_factor, peer.gpu_link_factor);
        const double nic = std::min(own_.nic_factor, peer.nic_factor);
        if (gpu == 1 && nic == 1) return;
        cost = on_slow_links(cost, rates_, gpu, nic);
        hold_back(cost, rates_, gpu, nic);
    }

    void slow_down(TimedSection& section) const {
        std::vector<bool> computes;
        for (TimedNode& node : section.nodes) {
            const bool is_work = node.collective == no_collective && is_device_lane(node.lane);
            computes.push_back(is_work);
            WorkTime work = node.work();
            if (is_work) node.set_work(work /= own_.compute_factor);
            if (node.collective != no_collective)
                node.seconds = program_.collectives[node.collective].cost.seconds();
        }
        for (TimedItem& item : section.items) {
            if (computes[item.node]) {
                item.begin_s /= own_.compute_factor;
                item.end_s /= own_.compute_factor;
            } else if (section.nodes[item.node].collective != no_collective) {
                item.end_s = section.nodes[item.node].seconds;
            }
        }
    }

    TimedProgram program_;
    const RankClasses& classes_;
    const AlikeRanks& own_;
    const LinkRates& rates_;
    std::vector<std::uint32_t> channels_;  ///< of messages, by collective
};

void take_slower(ClassCommunicator& into, const ClassCommunicator& other) {
    into.least_gpu_link_factor = std::min(into.least_gpu_link_factor, other.least_gpu_link_factor);
    into.least_nic_factor = std::min(into.least_nic_factor, other.least_nic_factor);
}

/// One class a program, as slow as its slowest, in communicators as slow as its slowest.
RankClasses slowest_by_program(const RankClasses& classes, std::size_t programs) {
    RankClasses result;
    result.classes.resize(programs);
    result.communicators.resize(programs * group_kind_count);
    for (std::uint32_t p = 0; p < programs; ++p) result.classes[p].program = p;
    for (const AlikeRanks& one : classes.classes) {
        AlikeRanks& slowest = result.classes[one.program];
        slowest.compute_factor = std::min(slowest.compute_factor, one.compute_factor);
        slowest.gpu_link_factor = std::min(slowest.gpu_link_factor, one.gpu_link_factor);
        slowest.nic_factor = std::min(slowest.nic_factor, one.nic_factor);
        slowest.next_stage = classes.classes[one.next_stage].program;
        slowest.previous_stage = classes.classes[one.previous_stage].program;
        for (std::size_t kind = 0; kind < group_kind_count; ++kind) {
            slowest.communicator[kind] = static_cast<std::uint32_t>(one.program * group_kind_count + kind);
            take_slower(result.communicators[slowest.communicator[kind]],
                        classes.communicators[one.communicator[kind]]);
        }
    }
    return result;
}

}  // namespace

CollectiveCost on_slow_links(CollectiveCost cost, const LinkRates& rates, double gpu_link_factor,
                             double nic_factor) {
    if (!(cost.unit_bytes > 0)) return cost;  // nothing flows
    double transfer_s = cost.transfer_s;
    if (cost.intra_weight > 0)
        transfer_s = std::max(transfer_s, cost.intra_weight * cost.unit_bytes /
                                              (intra_rate(rates, cost.on_bridge) * gpu_link_factor));
    if (cost.nic_weight > 0)
        transfer_s =
            std::max(transfer_s, cost.nic_weight * cost.unit_bytes / (rates.nic_bytes_per_s * nic_factor));
    if (cost.algorithm != CollectiveAlgorithm::shared_memory) {
        const double reached = cost.nic_weight > 0 ? rates.network_share : rates.local_share;
        cost.overhead_s += (transfer_s - cost.transfer_s) * (1 / reached - 1);
    }
    cost.transfer_s = transfer_s;
    return cost;
}

TimedProgram as_class(const TimedProgram& program, const RankClasses& classes, std::uint32_t index,
                      const LinkRates& rates) {
    return ClassProgram(program, classes, classes.classes[index], rates).take();
}

std::vector<StepTimeline> closed_form_steps(const Plan& plan, const RankClasses& classes) {
    const RankClasses slowest = slowest_by_program(classes, plan.programs.size());
    const LinkRates rates = link_rates(plan.scenario.cluster);
    const std::vector<TimedProgram> base = time_programs(plan);
    return closed_form_steps([&](const WorkScale& scale) {
        std::vector<TimedProgram> programs;
        for (std::uint32_t p = 0; p < base.size(); ++p)
            programs.push_back(as_class(at_scale(base[p], plan, p, scale), slowest, p, rates));
        return programs;
    });
}

}  // namespace zeroplan
