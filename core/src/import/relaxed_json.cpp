#include "import/relaxed_json.hpp"

#include <algorithm>

#include "json/parse.hpp"
#include "json/pointer.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

/// Overwrites what strict JSON lacks with spaces: every other byte keeps its place, so that errors and lines
/// are those of the original.
class Strict {
public:
    explicit Strict(std::string_view text) : text_(text) {
        if (text_.starts_with("\xef\xbb\xbf")) blank(0, 3);  // a byte order mark
        while (at_ < text_.size()) step();
    }
    std::string take() { return std::move(text_); }
    std::optional<std::size_t> first_comment, first_trailing_comma;

private:
    void step() {
        const char c = text_[at_];
        if (c == '"')
            skip_string();
        else if (c == '#' || text_.compare(at_, 2, "//") == 0)
            blank_comment(text_.find('\n', at_));
        else if (text_.compare(at_, 2, "/*") == 0)
            blank_block();
        else
            see(c);
    }
    void skip_string() {
        comma_.reset();
        for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_)
            if (text_[at_] == '\\') ++at_;
        ++at_;
    }
    void see(char c) {
        if ((c == '}' || c == ']') && comma_) {
            if (!first_trailing_comma) first_trailing_comma = line_at(*comma_);
            text_[*comma_] = ' ';
        }
        if (c == ',')
            comma_ = at_;
        else if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            comma_.reset();
        ++at_;
    }
    void blank_block() {
        const auto end = text_.find("*/", at_ + 2);
        blank_comment(end == std::string::npos ? end : end + 2);
    }
    void blank_comment(std::size_t end) {
        if (!first_comment) first_comment = line_at(at_);
        blank(at_, std::min(end, text_.size()));
    }
    void blank(std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            if (text_[i] != '\n') text_[i] = ' ';
        at_ = end;
    }
    std::size_t line_at(std::size_t offset) const {
        const auto end = text_.begin() + static_cast<std::ptrdiff_t>(offset);
        return 1 + static_cast<std::size_t>(std::count(text_.begin(), end, '\n'));
    }

    std::string text_;
    std::size_t at_ = 0;
    std::optional<std::size_t> comma_;  // one that nothing has followed yet
};

/// Notes the line of every key of a text that is valid JSON, no deeper than parse_json allows.
class Lines {
public:
    Lines(std::string_view text, std::map<std::string, std::size_t>& lines) : text_(text), lines_(lines) {
        value("");
    }

private:
    void value(const std::string& pointer) {
        skip_space();
        lines_.emplace(pointer, line_);
        if (text_[at_] == '{')
            members(pointer, '}');
        else if (text_[at_] == '[')
            members(pointer, ']');
        else if (text_[at_] == '"')
            string();
        else
            at_ = std::min(text_.find_first_of(",}] \t\r\n", at_), text_.size());
    }
    void members(const std::string& pointer, char close) {
        ++at_;
        skip_space();
        for (std::size_t index = 0; text_[at_] != close; ++index) {
            std::string name = std::to_string(index);
            if (close == '}') {
                name = json::parse(string()).get<std::string>();
                skip_space();
                ++at_;  // the colon
            }
            value(child_pointer(pointer, name));
            skip_space();
            if (text_[at_] == ',') ++at_;
            skip_space();
        }
        ++at_;
    }
    std::string_view string() {
        const std::size_t begin = at_;
        for (++at_; text_[at_] != '"'; ++at_)
            if (text_[at_] == '\\') ++at_;
        ++at_;
        return text_.substr(begin, at_ - begin);
    }
    void skip_space() {
        for (; at_ < text_.size(); ++at_) {
            if (text_[at_] == '\n')
                ++line_;
            else if (text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\r')
                return;
        }
    }

    std::string_view text_;
    std::map<std::string, std::size_t>& lines_;
    std::size_t at_ = 0, line_ = 1;
};

}  // namespace

std::size_t RelaxedJson::line_of(std::string pointer) const {
    for (;;) {
        if (const auto found = lines.find(pointer); found != lines.end()) return found->second;
        const auto slash = pointer.rfind('/');
        if (slash == std::string::npos) return 0;
        pointer.resize(slash);
    }
}

RelaxedJson parse_relaxed_json(std::string_view text, const std::string& file) {
    Strict strict(text);
    RelaxedJson result;
    result.first_comment = strict.first_comment;
    result.first_trailing_comma = strict.first_trailing_comma;
    const std::string plain = strict.take();
    result.value = parse_json(plain, file);
    Lines(plain, result.lines);
    return result;
}

}  // namespace zeroplan
