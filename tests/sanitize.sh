#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds with a sanitizer and runs conformance on the engines poll and uthread,
# and user threads on poll.
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

# files asks the kernel and nothing else; limits counts threads, and tsan has
# one of its own.
groups='calls-descriptors calls-sockets calls-process blocking stalls sharing
	badinput cancel chains loops trouble'

# The forked child of this test uses memory and makes threads. The allocator of
# gcc 12's libasan stays locked there if another thread was just using it (a
# program of malloc and fork alone hangs, too), and tsan ends a process that
# makes threads after such a fork.
trouble_without=-fork_outstanding

probe=$(mktemp -d) || exit 1
trap 'rm -rf "$probe"' EXIT
echo 'int main(void) { return 0; }' >"$probe/probe.c"
if ! ${CC:-cc} -fsanitize=$sanitize -o "$probe/probe" "$probe/probe.c" 2>/dev/null ||
   ! "$probe/probe"; then
	echo "# no -fsanitize=$sanitize here"
	exit 77
fi

export ASAN_OPTIONS="halt_on_error=1"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
# Children that forked tests make have threads of the library of their own.
export TSAN_OPTIONS="report_thread_leaks=0:die_after_fork=0"
export FLEXSC_TEST_TIMEOUT=60

if [ ! -f "$build/build.ninja" ]; then
	meson setup "$build" "$source" -Db_sanitize=$sanitize -Db_lundef=false \
		>"$probe/log" 2>&1 || { cat "$probe/log"; exit 1; }
fi
for group in $groups; do
	targets="${targets:-} tests/conformance/conformance-$group"
done
others="sched/sched-tasks sched/sched-calls sched/sched-closing
	sched/sched-signals sched/sched-resting unit/unit-hybrid"
for other in $others; do
	targets="$targets tests/$other"
done
# shellcheck disable=SC2086 # a list
ninja -C "$build" $targets >"$probe/log" 2>&1 || { tail -n 30 "$probe/log"; exit 1; }

failed=0
for engine in poll uthread; do
	for group in $groups; do
		without=
		[ "$group" = trouble ] && without=$trouble_without
		if "$build/tests/conformance/conformance-$group" "$engine" \
			$without >"$probe/log" 2>&1; then
			echo "# $group $engine: passed"
			continue
		fi
		failed=$((failed + 1))
		echo "# $group $engine: FAILED"
		grep -v '^ok' "$probe/log" | head -n 60
		grep '^SUMMARY' "$probe/log" | sort | uniq -c
	done
done
for other in $others; do
	"$build/tests/$other" >"$probe/log" 2>&1 && continue
	failed=$((failed + 1))
	echo "# $other: FAILED"
	grep -v '^ok' "$probe/log" | head -n 60
	grep '^SUMMARY' "$probe/log" | sort | uniq -c
done
echo "# $kind: $failed of the groups failed"
[ "$failed" -eq 0 ]
