#pragma once
#include <gtest/gtest.h>

#include "zeroplan/error.hpp"

namespace zeroplan {

/// The Error that `call` throws; a failure if it throws none.
template <class Call>
Error error_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return {ErrorCode::invalid_input, ""};
}

}  // namespace zeroplan
