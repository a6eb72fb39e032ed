#include "import/batch_equation.hpp"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

std::uint64_t product(std::uint64_t micro_batch, std::uint64_t accumulation, std::uint64_t ranks) {
    return checked_product(checked_product(micro_batch, accumulation, "sequences of a step"), ranks,
                           "sequences of a step");
}

/// "make train_batch_size 128; or gradient_accumulation_steps 16; or run on 16 ranks".
std::string ways_out(const BatchSizes& sizes, std::uint64_t ranks) {
    std::vector<std::string> ways{
        fmt::format("make train_batch_size {}", product(*sizes.micro_batch, *sizes.accumulation, ranks))};
    const auto way = [&](const char* words, std::uint64_t a, std::uint64_t b) {
        const std::uint64_t divisor = checked_product(a, b);
        if (divisor != 0 && *sizes.train >= divisor && *sizes.train % divisor == 0)
            ways.push_back(fmt::format(fmt::runtime(words), *sizes.train / divisor));
    };
    way("make gradient_accumulation_steps {}", *sizes.micro_batch, ranks);
    way("make train_micro_batch_size_per_gpu {}", *sizes.accumulation, ranks);
    way("run on {} ranks", *sizes.micro_batch, *sizes.accumulation);
    return fmt::format("{}; or put \"auto\" where Hugging Face's Trainer fills it in",
                       fmt::join(ways, "; or "));
}

}  // namespace

BatchSizes complete(const BatchSizes& stated, std::uint64_t ranks, const ErrorPlace& place) {
    BatchSizes sizes = stated;
    if (sizes.train) {
        if (sizes.micro_batch && !sizes.accumulation)
            sizes.accumulation = *sizes.train / *sizes.micro_batch / ranks;
        else if (!sizes.micro_batch && sizes.accumulation)
            sizes.micro_batch = *sizes.train / ranks / *sizes.accumulation;
        else if (!sizes.micro_batch)
            sizes = {sizes.train, *sizes.train / ranks, 1};
    } else {
        if (!sizes.accumulation) sizes.accumulation = 1;
        sizes.train = product(*sizes.micro_batch, *sizes.accumulation, ranks);
    }
    const std::uint64_t sum = product(*sizes.micro_batch, *sizes.accumulation, ranks);
    if (sum == 0)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("train_batch_size {} leaves nothing for some of {} data-parallel ranks",
                                *sizes.train, ranks),
                    fmt::format("make it a multiple of {}, or run on fewer ranks",
                                checked_product(ranks, stated.micro_batch.value_or(1))),
                    place);
    if (sum != *sizes.train)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("train_batch_size {} is not train_micro_batch_size_per_gpu {} × "
                                "gradient_accumulation_steps {} × {} data-parallel ranks = {}",
                                *sizes.train, *sizes.micro_batch, *sizes.accumulation, ranks, sum),
                    ways_out(sizes, ranks), place);
    return sizes;
}

std::string batch_in_words(const BatchSizes& sizes) {
    if (!sizes.train) return "train_batch_size = micro-batch × accumulation steps × data-parallel ranks";
    if (sizes.micro_batch && sizes.accumulation) {
        const std::uint64_t divisor = checked_product(*sizes.micro_batch, *sizes.accumulation);
        if (*sizes.train % divisor == 0)
            return fmt::format("{} = {} × {} × ranks holds for {} data-parallel ranks only", *sizes.train,
                               *sizes.micro_batch, *sizes.accumulation, *sizes.train / divisor);
        return fmt::format("{} = {} × {} × ranks holds for no number of ranks", *sizes.train,
                           *sizes.micro_batch, *sizes.accumulation);
    }
    const char* derived =
        sizes.micro_batch ? "gradient_accumulation_steps" : "train_micro_batch_size_per_gpu";
    const std::uint64_t known = sizes.micro_batch.value_or(sizes.accumulation.value_or(1));
    std::vector<std::string> examples;
    for (std::uint64_t ranks = 1; ranks <= 64; ranks *= 2)
        if (*sizes.train % checked_product(known, ranks) == 0)
            examples.push_back(fmt::format("{} on {}", *sizes.train / known / ranks, ranks));
    if (examples.empty())
        return fmt::format("{} = {} × {} × ranks: {} is no multiple of {}", *sizes.train, known, derived,
                           *sizes.train, known);
    return fmt::format("{} follows from {} = {} × ranks × it: {}", derived, *sizes.train, known,
                       fmt::join(examples, ", "));
}

std::string batch_in_words(const BatchSizes& sizes, std::uint64_t ranks) {
    return fmt::format("{} = micro-batch {} × accumulation {} × {} data-parallel ranks", *sizes.train,
                       *sizes.micro_batch, *sizes.accumulation, ranks);
}

}  // namespace zeroplan
