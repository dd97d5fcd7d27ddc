#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Each public header compiles by itself, without a warning, as the strictest C
# that programs use, as today's, and as C++ where there is a compiler for it.
#
#   tests/check-headers.sh SOURCE BUILD CC [ARGUMENT...]

set -u
source=$1 build=$2
shift 2
cc=("$@")
flags=(-Wall -Wextra -pedantic -Werror -fsyntax-only
    -I "$source/include" -I "$source/include/uapi" -I "$build/include")
status=0

check() { # check HEADER COMPILER...
    local header=$1 said
    shift
    said=$(echo "#include <$header>" | "$@" "${flags[@]}" - 2>&1) && return
    echo "$header with $*:"
    echo "$said"
    status=1
}

for header in flexsc.h flexsc/calls.h flexsc/counters.h linux/flexsc.h; do
    for std in c99 c11 gnu17; do
        check "$header" "${cc[@]}" "-std=$std" -x c
    done
    for cxx in g++ clang++; do
        command -v "$cxx" >/dev/null || continue
        # It may be there without a standard library.
        echo '#include <stdint.h>' | "$cxx" -x c++ -fsyntax-only - 2>/dev/null || continue
        check "$header" "$cxx" -std=c++11 -x c++
    done
done
exit "$status"
