#include "pickle_writer.hpp"

namespace zeroplan {
namespace {

// Opcodes by their names in Python's pickletools.
constexpr char proto = '\x80', stop = '.', mark = '(';
constexpr char empty_dict = '}', setitems = 'u', empty_list = ']', appends = 'e';
constexpr char binunicode = 'X', binput = 'q', binget = 'h';
constexpr char binint1 = 'K', binint2 = 'M', binint = 'J', long1 = '\x8a';
constexpr char newtrue = '\x88', newfalse = '\x89';
constexpr std::size_t memo_size = 256;  // what binput can number

}  // namespace

PickleWriter::PickleWriter() {
    out_ = {proto, 2};
}

void PickleWriter::begin_dict() {
    out_ += {empty_dict, mark};
}
void PickleWriter::end_dict() {
    out_ += setitems;
}
void PickleWriter::begin_list() {
    out_ += {empty_list, mark};
}
void PickleWriter::end_list() {
    out_ += appends;
}

void PickleWriter::string(std::string_view text) {
    if (const auto known = memo_.find(text); known != memo_.end()) {
        out_ += binget;
        out_ += static_cast<char>(known->second);
        return;
    }
    out_ += binunicode;
    little_endian(text.size(), 4);
    out_ += text;
    if (memo_.size() == memo_size) return;
    const auto number = static_cast<std::uint8_t>(memo_.size());
    memo_.emplace(text, number);
    out_ += binput;
    out_ += static_cast<char>(number);
}

void PickleWriter::integer(std::uint64_t value) {
    if (value <= 0xffU) {
        out_ += binint1;
        little_endian(value, 1);
    } else if (value <= 0xffffU) {
        out_ += binint2;
        little_endian(value, 2);
    } else if (value <= 0x7fffffffU) {
        out_ += binint;
        little_endian(value, 4);
    } else {
        // Two's complement: a ninth byte keeps the highest bit from being a sign.
        const bool ninth = (value >> 63U) != 0;
        out_ += long1;
        out_ += static_cast<char>(ninth ? 9 : 8);
        little_endian(value, 8);
        if (ninth) out_ += '\0';
    }
}

void PickleWriter::boolean(bool value) {
    out_ += value ? newtrue : newfalse;
}

std::string PickleWriter::take() {
    out_ += stop;
    std::string pickle = std::move(out_);
    *this = PickleWriter();
    return pickle;
}

void PickleWriter::little_endian(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) out_ += static_cast<char>((value >> (8 * i)) & 0xffU);
}

}  // namespace zeroplan
