#include "zeroplan/version.hpp"

namespace zeroplan {

std::string_view version() {
    return ZEROPLAN_VERSION;
}

}  // namespace zeroplan
