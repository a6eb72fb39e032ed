#pragma once
#include <string>
#include <string_view>

namespace zeroplan {

/// `text` as a terminal may have it, on one line: control characters (C0, DEL, C1), the marks that turn the
/// direction of writing round, and bytes that are no UTF-8 are escaped, as \n, \x1b, \u{202e}. All else
/// stays.
std::string printable(std::string_view text);

/// The beginning of `text`, at most `longest` bytes, and "…" if something was cut off; no character is cut in
/// two.
std::string shortened(std::string_view text, std::size_t longest);

/// `number` with so many decimals; from 10^15 on, where nobody counts digits, as "1e+300".
std::string fixed(double number, int decimals);

}  // namespace zeroplan
