#!/bin/sh
# SPDX-License-Identifier: MIT
# gdb unwinds the stack of a parked task, and the process goes on after it.
#
#	tests/sched/gdb.sh GDB-TARGET
set -u

target=$1
source=$(cd "$(dirname "$0")/../.." && pwd)

if ! command -v gdb >/dev/null; then
	echo "SKIP: no gdb here"
	exit 77
fi
out=$(timeout 100 gdb -nx -batch -ex 'set confirm off' \
	-ex 'set debuginfod enabled off' -ex "source $source/scripts/flexsc.gdb" \
	-ex 'break look_now' -ex run -ex 'flexsc-bt parked_task' \
	-ex continue "$target" 2>&1)
case $out in
*"ptrace: Operation not permitted"* | *"Could not trace"*)
	echo "SKIP: may not trace"
	exit 77
	;;
esac
# In this order, to the outermost frame.
for wanted in parks_here outer_function begin start_thread 'went on'; do
	case $out in
	*"$wanted"*) out=${out#*"$wanted"} ;;
	*)
		echo "not found: $wanted"
		echo "$out"
		exit 1
		;;
	esac
done
