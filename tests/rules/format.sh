#!/bin/sh
# format.sh <clang-format> [-i]: whether the sources are laid out as .clang-format says; -i mends them.
set -eu
cd "$(dirname "$0")/../.."
clang_format=$1
mode=${2:---dry-run}
find core sim runner gui tests \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 -n 20 -P 2 "$clang_format" --Werror "$mode"
