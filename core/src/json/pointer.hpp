#pragma once
#include <string>
#include <string_view>

namespace zeroplan {

/// JSON pointer (RFC 6901) of `key` inside the object at `parent`: '~' and '/' in the key are escaped.
inline std::string child_pointer(const std::string& parent, std::string_view key) {
    std::string result = parent + "/";
    for (const char c : key) {
        if (c == '~')
            result += "~0";
        else if (c == '/')
            result += "~1";
        else
            result += c;
    }
    return result;
}

}  // namespace zeroplan
