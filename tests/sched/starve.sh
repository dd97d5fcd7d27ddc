#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the tests of user threads beside more spinning processes than there are
# processors: carriers lose their processor at any point.
#
#	tests/sched/starve.sh DIRECTORY [SECONDS]
#
# Begins no round after SECONDS. Each round is the whole of all programs.
set -u

programs=$1
seconds=${2:-20}
nr=$(($(nproc) + 2))
log=$(mktemp) || exit 1
spinners=

finish() {
	# shellcheck disable=SC2086 # a list
	kill $spinners 2>/dev/null
	rm -f "$log"
}
trap finish EXIT
trap 'exit 1' INT TERM
while [ "$nr" -gt 0 ]; do
	(while :; do :; done) &
	spinners="$spinners $!"
	nr=$((nr - 1))
done

begin=$(date +%s)
failed=0
ran=0
while [ $(($(date +%s) - begin)) -lt "$seconds" ]; do
	for part in tasks calls closing signals; do
		ran=$((ran + 1))
		"$programs/sched-$part" >"$log" 2>&1 && continue
		failed=$((failed + 1))
		echo "# round $ran, $part: FAILED"
		grep -v '^ok' "$log" | head -n 40
	done
done
echo "# starve: $ran runs in $(($(date +%s) - begin)) s, $failed failed"
[ "$failed" -eq 0 ]
