#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds with a sanitizer and runs conformance on the engines poll and uthread.
#
#	tests/sanitize.sh asan|tsan [BUILD-DIRECTORY]
#
# asan is AddressSanitizer with UBSan. Exit status 77 where the compiler has
# no such sanitizer.
set -u

source=$(cd "$(dirname "$0")/.." && pwd)
kind=${1:-asan}
build=${2:-$source/build-$kind}

case $kind in
asan) sanitize=address,undefined ;;
tsan) sanitize=thread ;;
*) echo "usage: $0 asan|tsan [BUILD-DIRECTORY]" >&2; exit 2 ;;
esac

# loops and limits take longest, and measure time.
groups='calls-descriptors calls-sockets calls-process sharing badinput
	cancel chains trouble'

probe=$(mktemp -d) || exit 1
trap 'rm -rf "$probe"' EXIT
echo 'int main(void) { return 0; }' >"$probe/probe.c"
if ! ${CC:-cc} -fsanitize=$sanitize -o "$probe/probe" "$probe/probe.c" 2>/dev/null ||
   ! "$probe/probe"; then
	echo "# no -fsanitize=$sanitize here"
	exit 77
fi

# Known and looked at. Counters read outside their lock as a hint, which is
# asked again under it; park->shared, set before the first other thread; flags
# of an entry that another consumer was faster to take.
cat >"$probe/suppressions" <<'EOF'
race:^fx_pool_stalled$
race:^fx_pool_busy$
race:^fx_park_due$
race:^core_main$
race:^lock$
race:^unlock$
race:^peek_chain$
EOF
export ASAN_OPTIONS="halt_on_error=1"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
export TSAN_OPTIONS="suppressions=$probe/suppressions:report_thread_leaks=0"
export FLEXSC_TEST_TIMEOUT=60

if [ ! -f "$build/build.ninja" ]; then
	meson setup "$build" "$source" -Db_sanitize=$sanitize -Db_lundef=false \
		>"$probe/log" 2>&1 || { cat "$probe/log"; exit 1; }
fi
for group in $groups; do
	targets="${targets:-} tests/conformance/conformance-$group"
done
# shellcheck disable=SC2086 # a list
ninja -C "$build" $targets >"$probe/log" 2>&1 || { tail -n 30 "$probe/log"; exit 1; }

# Even a suppressed report of tsan costs time and changes errno, which fails
# tests: there only what it reports counts.
only_disturbed() {
	[ "$kind" = tsan ] && ! grep -q 'WARNING: ThreadSanitizer' "$probe/log"
}

failed=0
for engine in poll uthread; do
	for group in $groups; do
		# fork_outstanding does not end under asan, cause not yet known.
		[ "$kind $group" = "asan trouble" ] && continue
		if "$build/tests/conformance/conformance-$group" "$engine" \
			>"$probe/log" 2>&1 || only_disturbed; then
			echo "# $group $engine: passed"
			continue
		fi
		failed=$((failed + 1))
		echo "# $group $engine: FAILED"
		grep -v '^ok' "$probe/log" | head -n 60
		grep '^SUMMARY' "$probe/log" | sort | uniq -c
	done
done
echo "# $kind: $failed of the groups failed"
[ "$failed" -eq 0 ]
