#!/bin/sh
# A check that never complains is worth nothing: every rule of include_rules.sh has to catch its breach, and to leave
# alone what is allowed.
set -eu
check=$(dirname "$(readlink -f "$0")")/include_rules.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0
for part in sim runner; do
    mkdir -p "$tree/$part/include/zeroplan/$part"
    echo '#pragma once' >"$tree/$part/include/zeroplan/$part/report.hpp"
done

# expect <caught|allowed> <file> <what it includes>
expect() {
    mkdir -p "$tree/$(dirname "$2")"
    printf '#pragma once\n#  include %s\n' "$3" >"$tree/$2"
    if sh "$check" "$tree" >/dev/null; then verdict=allowed; else verdict=caught; fi
    [ "$verdict" = "$1" ] || { echo "$2 including $3: $verdict, but should be $1"; failed=1; }
    rm "$tree/$2"
}

expect caught core/src/plan.cpp '<QString>'
expect caught core/src/plan.cpp '<QtCore/QString>'
expect caught core/include/zeroplan/plan.hpp '<simgrid/s4u.hpp>'
expect caught core/src/plan.cpp '<cuda_runtime.h>'
expect caught core/src/plan.cpp '"zeroplan/sim/report.hpp"'
expect caught core/tools/zeroplan.cpp '<nlohmann/json.hpp>'
expect caught core/include/zeroplan/io.hpp '<nlohmann/json_fwd.hpp>'
expect allowed core/src/json/reader.cpp '<nlohmann/json.hpp>'
expect allowed core/src/import/topo.cpp '<nlohmann/json.hpp>'
expect allowed core/src/plan.cpp '"zeroplan/scenario.hpp"'
expect caught sim/src/step.cpp '"zeroplan/runner/report.hpp"'
expect caught sim/include/zeroplan/sim/step.hpp '<simgrid/s4u.hpp>'
expect allowed sim/src/step.cpp '<simgrid/s4u.hpp>'
expect caught sim/src/step.cpp '<nlohmann/json.hpp>'
expect allowed sim/src/report.cpp '<nlohmann/json.hpp>'
expect caught runner/src/host.cpp '<nccl.h>'
expect caught runner/src/host.cpp '"zeroplan/sim/report.hpp"'
expect allowed runner/cuda/backend.cu '<nccl.h>'
expect caught gui/src/window.cpp '"zeroplan/runner/report.hpp"'
expect caught gui/src/window.cpp '<nlohmann/json.hpp>'
expect allowed gui/src/window.cpp '<QWidget>'
exit $failed
