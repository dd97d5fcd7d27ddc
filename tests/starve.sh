#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs conformance beside more spinning processes than there are processors:
# threads lose their processor at any point, and wake-ups come late.
#
#	tests/starve.sh DIRECTORY-OF-CONFORMANCE [SECONDS]
#
# Groups that measure time are left out, and those that wait for nobody. What
# runs when the time is over is finished. FLEXSC_STARVE_ROUNDS: repeat so often.
set -u

programs=$1
seconds=${2:-40}
rounds=${FLEXSC_STARVE_ROUNDS:-1}
nr=$(($(nproc) + 2))
log=$(mktemp) || exit 1
spinners=
export FLEXSC_TEST_TIMEOUT=30

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
while [ "$rounds" -gt 0 ]; do
	rounds=$((rounds - 1))
	for group in sharing chains cancel stalls trouble blocking; do
		for engine in uthread poll uring; do
			[ $(($(date +%s) - begin)) -lt "$seconds" ] || break 3
			ran=$((ran + 1))
			"$programs/conformance-$group" $engine >"$log" 2>&1 &&
				continue
			failed=$((failed + 1))
			echo "# $group $engine: FAILED"
			grep -v '^ok' "$log" | head -n 40
		done
	done
done
echo "# starve: $ran groups in $(($(date +%s) - begin)) s, $failed failed"
[ "$failed" -eq 0 ] && [ "$ran" -gt 0 ]
