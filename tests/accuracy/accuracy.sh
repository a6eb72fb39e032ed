#!/bin/sh
# accuracy.sh ZEROPLAN [--update]: predicts the measured runs and collectives beside this file and compares the error
# tables with docs/accuracy.md and README.md, so that no change makes a prediction worse, or better, unseen. --update
# writes them there.
set -eu
here=$(dirname "$(readlink -f "$0")")
root=$here/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

{
    cat "$here/introduction.md"
    printf '\n# Memory and step times\n\n'
    "$1" score "$here/cases_dev.jsonl" --markdown
    printf '\n# Collectives\n\n'
    "$1" score --collectives "$here/collectives_dev.jsonl" --markdown
    printf '\n# Where it is off, and why\n\n'
    cat "$here/analysis.md"
} >"$work/accuracy.md"

# README's share: the first table of means, and the other planners' table of the introduction.
{
    awk '/^## Mean over sources/ { inside = 1; next } /^$/ && inside { exit } inside' "$work/accuracy.md"
    echo
    sed -n '/^For comparison/,$p' "$here/introduction.md"
} >"$work/tables.md"
awk -v tables="$work/tables.md" '
    /^<!-- accuracy: / { print; while ((getline line < tables) > 0) print line; skipping = 1 }
    /^<!-- end of accuracy/ { skipping = 0 }
    !skipping' "$root/README.md" >"$work/README.md"

if [ "${2-}" = --update ]; then
    cp "$work/accuracy.md" "$root/docs/accuracy.md"
    cp "$work/README.md" "$root/README.md"
    exit 0
fi
same=yes
diff -u "$root/docs/accuracy.md" "$work/accuracy.md" || same=no
diff -u "$root/README.md" "$work/README.md" || same=no
[ $same = yes ] || { echo "The errors are not those on file. If that is meant: sh tests/accuracy/accuracy.sh $1 --update"; exit 1; }
