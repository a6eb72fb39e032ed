#!/bin/sh
# include_rules.sh [root]: which part may include what. Prints every line that breaks a rule; fails if there is one.
set -eu
cd "${1:-$(dirname "$0")/../..}"

qt='Q[A-Za-z]+[>/]'
cuda='(cuda|nccl|cublas|cudnn|nvml)'
broken=0

# forbid <pattern of what is included> <reason> <places> [<pattern of places that are exempt>]
forbid() {
    # shellcheck disable=SC2086
    lines=$(grep -rnE --include='*.[ch]pp' --include='*.h' --include='*.cu' --include='*.cuh' -- \
        "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($1)" $3 2>/dev/null | grep -vE "^(${4:-$})" || true)
    [ -n "$lines" ] || return 0
    printf '%s\n  ^ %s\n' "$lines" "$2"
    broken=1
}

# headers_of <part>...: the public headers of the parts, as a pattern
headers_of() {
    for part; do
        [ ! -d "$part/include" ] || (cd "$part/include" && find . -name '*.hpp' | sed 's|^\./||; s/[.]/[.]/g')
        echo "$part/"
    done | paste -sd '|'
}

forbid "$qt|simgrid/|$cuda|$(headers_of sim runner gui)" 'core knows no Qt, SimGrid or CUDA and none of the other parts' core
forbid "$qt|$cuda|$(headers_of runner gui)" 'sim knows core only' sim
forbid "$qt|simgrid/|$(headers_of sim gui)" 'runner knows core only' runner
forbid "simgrid/|$cuda|$(headers_of sim runner)" 'gui knows core only' gui

forbid 'simgrid/' 'SimGrid stays in sim/src' 'sim/include sim/tools'
forbid "$cuda" 'CUDA stays in the plug-in: linked elsewhere it ends the program on a machine without' runner 'runner/cuda/'
forbid 'nlohmann/' 'JSON stays in src/json, src/import and the report writers' 'core sim runner gui' \
    'core/src/(json|import)/|(sim|runner)/src/(json/|[^:]*report[^:/]*:)'
forbid '(yaml-cpp/|pugixml)' 'YAML and XML are read in core/src/import' 'core sim runner gui' 'core/src/import/'

exit $broken
