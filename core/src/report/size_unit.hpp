#pragma once
#include <string>

#include "zeroplan/units.hpp"

namespace zeroplan {

/// A pair of neighbouring units, binary and decimal, that all rows of one table share so that they compare by
/// eye.
struct SizeUnit {
    const char* binary = "B";  ///< "GiB"
    double binary_size = 1;
    const char* decimal = "B";  ///< "GB"
    double decimal_size = 1;

    /// "12.34": two decimals, none for bytes; "<0.01" for what would round to zero without being it.
    std::string in_binary(Bytes bytes) const;
    std::string in_decimal(Bytes bytes) const;
    bool is_bytes() const { return binary_size <= 1; }
};

/// The unit in which `largest` is at least 1: GiB from a tenth of a GiB on, since that is what memory is sold
/// in.
SizeUnit unit_for(Bytes largest);

}  // namespace zeroplan
