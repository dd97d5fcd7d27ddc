#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The tables of `flexsc bench` fit 80 columns, and an early end, by a signal or
# because nobody reads any more, leaves no files behind.
#
#   tests/check-bench.sh FLEXSC

set -u
flexsc=$1
status=0
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

names=$("$flexsc" bench --list | cut -d' ' -f1)
for name in $names; do
    "$flexsc" bench "$name" --quick >"$TMPDIR/table" || status=1
    if grep -E '^.{81}' "$TMPDIR/table"; then
        echo "$name: those lines are wider than 80 columns"
        status=1
    fi
done
rm "$TMPDIR/table"

for name in pipeline call pollution wsc; do
    for signal in INT HUP TERM; do
        timeout -s "$signal" 0.1 "$flexsc" bench "$name" --quick >/dev/null 2>&1
    done
    "$flexsc" bench "$name" --quick 2>/dev/null | head -n 1 >/dev/null
    if [ -n "$(ls "$TMPDIR")" ]; then
        echo "$name: leaves $(ls "$TMPDIR")"
        status=1
        rm -rf "${TMPDIR:?}"/*
    fi
done
exit "$status"
