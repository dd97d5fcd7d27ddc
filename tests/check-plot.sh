#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Each benchmark can be drawn, and what cannot be drawn is refused before
# anything is measured. Exit status 77 without matplotlib.
#
#   tests/check-plot.sh FLEXSC

set -eu
flexsc=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

if ! /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
    echo 'SKIP: no matplotlib; scripts/setup.sh plot installs it'
    exit 77
fi
for name in $("$flexsc" bench --list | cut -d' ' -f1); do
    "$flexsc" bench "$name" --quick --plot "$folder/$name.svg" >/dev/null
    grep -q '</svg>' "$folder/$name.svg"
done
for name in "$folder/absent/x.svg" "$folder/x.txt" "$folder/x"; do
    if "$flexsc" bench call --plot "$name" >"$folder/out" 2>"$folder/err"; then
        echo "$name: was drawn"
        exit 1
    fi
    # One sentence, and no figures.
    [ "$(grep -c '^flexsc: ' "$folder/err")" = 1 ] && [ ! -s "$folder/out" ]
done
