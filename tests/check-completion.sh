#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# What cli/flexsc.bash offers after some words, as bash would ask for it.
#
#   tests/check-completion.sh SOURCE FLEXSC

set -u
source=$1 flexsc=$2
status=0
# shellcheck source=/dev/null
. "$source/cli/flexsc.bash"

offers() { # offers "WANTED..." WORD...: the last word is being typed
    local wanted=$1 got
    shift
    COMP_WORDS=("$flexsc" "$@") COMP_CWORD=$#
    COMPREPLY=()
    _flexsc
    got="${COMPREPLY[*]}"
    if [ "$got" != "$wanted" ]; then
        echo "after '$*': '$got', not '$wanted'"
        status=1
    fi
}

offers 'doctor run stat top trace compare bench --help --version' ''
offers 'doctor' d
offers '--json --help' doctor ''
offers 'pipeline pollution' bench p
offers '--list' bench --l
offers 'kmod kcore hybrid uthread poll uring sync' bench --engine ''
offers 'uthread uring' bench -e u
offers 'kmod kcore hybrid uthread poll uring sync' bench --engine =
offers 'poll' bench --engine = po
offers '' bench --runs ''
offers '' bench --runs = 3
offers '--count --interval --json --prometheus --help' stat -
offers '' stat --interval ''
offers '--interval --help' top -
offers "$$" stat "$$"
offers '--follow-forks' trace --fo
offers "$$" trace -p "$$"
offers 'trace=%network' trace -e trace=%n
offers 'gzexe' trace -f gzex
offers '--cores --engine --json --load --plot --ready --ready-cmd --runs --wait --help' compare -
offers '--cores --engine --no-inherit --quiet --stats --verbose --help' run -
offers 'uthread uring' run -e u
offers 'auto kmod kcore hybrid uthread poll uring sync' run --engine =
offers 'uthread uring' run --quiet --engine = u
offers '' run --cores ''
offers 'gzexe' run --cores 2 gzex
offers 'gzexe' run -q -- gzex
cd "$source" || exit 1
offers 'README.md' run --engine = poll cat READ
offers 'README.md' run -- cat --engine READ
offers 'README.md' run --stats READ
offers 'README.md' bench --plot READ
offers 'README.md' bench --plot = READ
offers '' nothing ''
exit "$status"
