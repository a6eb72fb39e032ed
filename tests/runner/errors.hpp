#pragma once
#include <gtest/gtest.h>

#include <string>

#include "zeroplan/error.hpp"

namespace zeroplan::runner {

/// Runs `body`, which has to throw an Error, and returns it.
template <typename Body>
Error error_of(Body body) {
    try {
        body();
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return {ErrorCode::run_failed, "nothing was thrown"};
}

}  // namespace zeroplan::runner
