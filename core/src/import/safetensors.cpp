#include "import/safetensors.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/parse.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t length_bytes = 8, longest_header = 100'000'000;

struct DTypeBits {
    std::string_view name;
    std::uint64_t bits;
};
constexpr DTypeBits dtypes[] = {
    {"F64", 64},    {"F32", 32},    {"F16", 16}, {"BF16", 16}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},   {"I64", 64},  {"I32", 32},    {"I16", 16},    {"I8", 8},
    {"U64", 64},    {"U32", 32},    {"U16", 16}, {"U8", 8},    {"BOOL", 8},    {"C64", 64}};

struct DataRange {
    std::uint64_t begin, end;
    std::string tensor;
};

[[noreturn]] void refuse(const std::string& path, std::string message, std::string hint = {}) {
    throw Error(ErrorCode::invalid_input, std::move(message), std::move(hint), {path, ""});
}

struct HeaderText {
    std::string text;
    std::uint64_t data_bytes = 0;  // of the file, behind the header
};

HeaderText read_header_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw Error(ErrorCode::io, "the file cannot be opened", "may you read it?", {path, ""});
    const auto size = static_cast<std::uint64_t>(file.tellg());
    file.seekg(0);
    std::array<unsigned char, length_bytes> bytes{};
    if (size < length_bytes || !file.read(reinterpret_cast<char*>(bytes.data()), length_bytes))
        refuse(path,
               fmt::format("{} bytes are too few for a safetensors file, which begins with 8 bytes of length",
                           size),
               "the download may have been cut off");
    std::uint64_t length = 0;
    for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | bytes[i];
    if (length > longest_header)
        refuse(path,
               fmt::format("a header of {} bytes is stated, the format allows {}", length, longest_header),
               "is this a safetensors file?");
    if (length > size - length_bytes)
        refuse(path,
               fmt::format("a header of {} bytes is stated, but only {} bytes follow", length,
                           size - length_bytes),
               "the download may have been cut off");
    HeaderText header{std::string(length, '\0'), size - length_bytes - length};
    if (!file.read(header.text.data(), static_cast<std::streamsize>(length)))
        throw Error(ErrorCode::io, "the header cannot be read", "may you read it?", {path, ""});
    return header;
}

std::uint64_t bytes_of(const ObjectReader& tensor, const CheckpointTensor& spec) {
    const auto found = std::find_if(std::begin(dtypes), std::end(dtypes),
                                    [&](const DTypeBits& dtype) { return dtype.name == spec.dtype; });
    if (found == std::end(dtypes))
        tensor.fail("dtype", fmt::format("unknown dtype \"{}\"", spec.dtype),
                    "known: F32, F16, BF16, F8_E4M3 …");
    std::uint64_t bits = found->bits;
    for (const std::uint64_t size : spec.shape) bits = checked_product(bits, size, "size of a tensor");
    return (bits + 7) / 8;
}

DataRange read_range(const ObjectReader& tensor, const std::string& name, const CheckpointTensor& spec) {
    const auto offsets = tensor.integers("data_offsets");
    if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1])
        tensor.fail("data_offsets", "\"data_offsets\" must be [begin, end] with begin ≤ end");
    const DataRange range{(*offsets)[0], (*offsets)[1], name};
    const std::uint64_t expected = bytes_of(tensor, spec);
    if (range.end - range.begin != expected)
        tensor.fail("data_offsets",
                    fmt::format("{} has {} bytes of data, but {} {} needs {}", name, range.end - range.begin,
                                spec.dtype, fmt::format("[{}]", fmt::join(spec.shape, ", ")), expected));
    return range;
}

void check_ranges(std::vector<DataRange> ranges, std::uint64_t data_bytes, CheckpointHeader& header) {
    std::sort(ranges.begin(), ranges.end(), [](const DataRange& a, const DataRange& b) {
        return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
    });
    const std::string path = header.path.string();
    for (std::size_t i = 1; i < ranges.size(); ++i)
        if (ranges[i].begin < ranges[i - 1].end)
            refuse(path,
                   fmt::format("the data of {} and {} overlap: [{}, {}) and [{}, {})", ranges[i - 1].tensor,
                               ranges[i].tensor, ranges[i - 1].begin, ranges[i - 1].end, ranges[i].begin,
                               ranges[i].end),
                   "the file is damaged: download it again");
    if (ranges.empty() || ranges.back().end <= data_bytes) return;
    if (data_bytes != 0)
        refuse(path,
               fmt::format("{} ends at byte {} of the data, but the file has {} bytes of it",
                           ranges.back().tensor, ranges.back().end, data_bytes),
               "the download may have been cut off");
    header.notes.push_back(fmt::format("{} is a header without its data", header.path.filename().string()));
}

}  // namespace

CheckpointHeader read_safetensors(const fs::path& path) {
    CheckpointHeader header{.path = path, .tensors = {}, .notes = {}};
    const HeaderText text = read_header_text(path.string());
    const json value = parse_json(text.text, path.string());
    const ObjectReader reader(value, {path.string(), ""});
    std::vector<DataRange> ranges;
    for (const auto& item : value.items()) {
        if (item.key() == "__metadata__") {
            if (const auto metadata = reader.object(item.key()))
                header.stack = metadata->string("zeroplan_stack").value_or("");
            continue;
        }
        const ObjectReader tensor(item.value(), reader.place(item.key()));
        CheckpointTensor spec{tensor.string("dtype").value_or(""), {}, path.string()};
        if (const auto shape = tensor.integers("shape")) spec.shape = *shape;
        if (!tensor.has("shape")) tensor.fail("shape", "a tensor needs a \"shape\"");
        ranges.push_back(read_range(tensor, item.key(), spec));
        header.tensors.emplace(item.key(), std::move(spec));
    }
    if (ranges.empty())
        refuse(path.string(), "the header lists no tensors",
               "is it the right file? config.json alone will do");
    check_ranges(std::move(ranges), text.data_bytes, header);
    return header;
}

CheckpointHeader read_index(const ObjectReader& index, const fs::path& path) {
    CheckpointHeader result{.path = path, .tensors = {}, .notes = {}};
    const ObjectReader map = *index.object("weight_map");
    if (map.value().empty())
        index.fail("weight_map", "\"weight_map\" lists no tensors",
                   "it says which file has which tensor: download it again, or give the config.json");
    std::map<std::string, CheckpointHeader> shards;
    for (const auto& item : map.value().items()) {
        const std::string name = map.string(item.key()).value_or("");
        if (!shards.contains(name)) {
            const fs::path shard = path.parent_path() / name;
            std::error_code error;
            if (name.empty() || !fs::is_regular_file(shard, error))
                throw Error(ErrorCode::not_found, fmt::format("the shard \"{}\" is missing", shard.string()),
                            "its header is needed for the shapes; config.json alone will do as well",
                            map.place(item.key()));
            shards.emplace(name, read_safetensors(shard));
        }
        const CheckpointHeader& shard = shards.at(name);
        const auto tensor = shard.tensors.find(item.key());
        if (tensor == shard.tensors.end())
            map.fail(item.key(),
                     fmt::format("{} is said to be in {}, which does not have it", item.key(), name),
                     "index and files are of different models or downloads: get both again");
        result.tensors.insert(*tensor);
    }
    for (const auto& [name, shard] : shards)
        result.notes.insert(result.notes.end(), shard.notes.begin(), shard.notes.end());
    return result;
}

}  // namespace zeroplan
