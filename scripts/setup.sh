#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Installs what a job needs and the machine lacks, from the distribution's own
# packages, and is silent when nothing is missing. It asks for the tool, header
# or module itself, not for a package name, so a machine that has them from
# elsewhere needs neither apt-get nor root.
#
#   scripts/setup.sh [GROUP...]             default: all of them
#   scripts/setup.sh --list [GROUP...]      only say what is missing
#   scripts/setup.sh --optional GROUP...    what cannot be had is no failure
#
# Groups: build, test, conformance, demo, demo-files, debian, which is what
# another release in a folder needs, ports, which is what building ports/ and its
# tests need, kernel, which is what tools/vm-run and building flexsc.ko need,
# kernel-debug, which is what building a kernel needs, and plot, which is what
# `flexsc bench --plot` needs. No server is started that a package brings.

set -euo pipefail

have() { command -v "$1" >/dev/null 2>&1; }
tool() { PATH="$PATH:/usr/sbin:/sbin" have "$1"; } # a server's program
found() { [ -e "$1" ]; } # a pattern has become names
header() { echo "#include <$1>" | cc -E - >/dev/null 2>&1; }
lib() { pkg-config --exists "$1" >/dev/null 2>&1; }
pymod() {
    /usr/bin/python3 -c 'import importlib.util as u, sys
sys.exit(u.find_spec(sys.argv[1]) is None)' "$1" >/dev/null 2>&1
}
links() { # links FLAG...: can clang build a program with these flags?
    echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -x c "$@" -o /dev/null - >/dev/null 2>&1
}

# Debian 12 has it in what qemu-system-x86 depends on, and no package of that name.
serves_files() {
    found /usr/libexec/virtiofsd || found /usr/lib/qemu/virtiofsd ||
        grep -q '^VERSION_CODENAME=bookworm' /etc/os-release
}

# group | package | how to see that it is there
packages='
build | gcc                | have gcc
build | libc6-dev          | test -e /usr/include/stdio.h
build | linux-libc-dev     | test -e /usr/include/linux/io_uring.h
build | pkg-config         | have pkg-config
build | meson              | have meson
build | ninja-build        | have ninja
build | python3            | have /usr/bin/python3
build | liburing-dev       | lib liburing
build | libjson-c-dev      | lib json-c
build | libseccomp-dev     | lib libseccomp
build | libncurses-dev     | lib ncurses
build | systemtap-sdt-dev  | header sys/sdt.h
test  | git                | have git
test  | libcmocka-dev      | lib cmocka
test  | libuv1-dev         | lib libuv
test  | wrk                | have wrk
test  | curl               | have curl
test  | clang              | have clang
test  | libclang-rt-dev    | links -fsanitize=fuzzer,address
test  | clang-format       | have clang-format
test  | mandoc             | have mandoc
test  | strace             | have strace
test  | gdb                | have gdb
test  | procps             | have ps
test  | python3-matplotlib | pymod matplotlib
test  | apache2-bin        | tool apache2
test  | mariadb-server-core | tool mariadbd
test  | mariadb-client-core | have mariadb
test  | sysbench           | have sysbench
test  | bind9              | tool named
test  | dnsperf            | have dnsperf
test  | memcached          | have memcached
test  | redis-tools        | have redis-benchmark
test  | postgresql         | found /usr/lib/postgresql/*/bin/postgres
test  | default-jdk-headless | have javac
test  | g++                | have g++
test  | libjemalloc2       | found /usr/lib/*/libjemalloc.so.2
test  | libtcmalloc-minimal4 | found /usr/lib/*/libtcmalloc_minimal.so.4
test  | dpkg-dev           | have dpkg-source
conformance | dpkg-dev     | have dpkg-source
conformance | g++          | have g++
conformance | cmake        | have cmake
conformance | make         | have make
demo  | apache2-bin        | tool apache2
demo  | mariadb-server-core | tool mariadbd
demo  | mariadb-client-core | have mariadb
demo  | sysbench           | have sysbench
demo  | wrk                | have wrk
demo  | python3-matplotlib | pymod matplotlib
demo-files | wrk           | have wrk
demo-files | curl          | have curl
debian | debootstrap       | tool debootstrap
debian | git               | have git
ports | nginx              | tool nginx
ports | nginx-dev          | test -x /usr/share/nginx/src/configure
ports | libnginx-mod-stream | test -e /usr/lib/nginx/modules/ngx_stream_module.so
ports | libevent-dev       | header event.h
ports | libsasl2-dev       | header sasl/sasl.h
ports | libssl-dev         | header openssl/ssl.h
ports | dpkg-dev           | have dpkg-source
ports | make               | have make
ports | patch              | have patch
ports | curl               | have curl
ports | openssl            | have openssl
ports | wrk                | have wrk
kernel | qemu-system-x86   | have qemu-system-x86_64
kernel | virtiofsd         | serves_files
kernel | gcc-12            | have gcc-12
kernel | make              | have make
kernel | kmod              | tool depmod
kernel | libelf-dev        | found /usr/lib/*/libelf.so.1
kernel-debug | libelf-dev  | test -e /usr/include/gelf.h
kernel-debug | flex        | have flex
kernel-debug | bison       | have bison
kernel-debug | bc          | have bc
plot  | python3            | have /usr/bin/python3
plot  | python3-matplotlib | pymod matplotlib
'

list_only=no
optional=no
case ${1:-} in
--list) list_only=yes && shift ;;
--optional) optional=yes && shift ;;
esac
groups=" ${*:-build test conformance demo demo-files debian ports kernel kernel-debug plot} "
purpose=
for group in $groups; do
    case $group in
    build | test | conformance | demo | demo-files | debian | ports | kernel | kernel-debug | plot) purpose+=" and $group" ;;
    *)
        echo "setup.sh: no group '$group' (there are build, test, conformance, demo, demo-files, debian, ports, kernel, kernel-debug, plot)" >&2
        exit 2
        ;;
    esac
done

# Sets `missing` to the packages of the wanted groups that are not there.
find_missing() {
    local group package probe
    missing=()
    while IFS='|' read -r group package probe; do
        group=${group// /}
        package=${package// /}
        [ -n "$group" ] || continue
        [[ $groups == *" $group "* ]] || continue
        [[ " ${missing[*]-} " != *" $package "* ]] || continue
        # shellcheck disable=SC2086
        $probe || missing+=("$package")
    done <<<"$packages"
}

by_hand() {
    if [ "$optional" = yes ]; then
        echo "setup.sh: going on without: ${missing[*]} ($1)" >&2
        exit 0
    fi
    echo "setup.sh: $1" >&2
    echo "Needed and not found: ${missing[*]}" >&2
    echo "$2" >&2
    exit 1
}

find_missing
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$list_only" = yes ]; then
    printf '%s\n' "${missing[@]}"
    exit 0
fi

if ! have apt-get; then
    by_hand "this machine has no apt-get." \
        "Those are Debian's package names: install what your distribution calls them, then run make again."
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
    have sudo || by_hand "installing packages needs root, and there is no sudo." \
        "As root: apt-get install ${missing[*]}   then run make again."
    as_root=(sudo)
    # Without a terminal nobody can type a password: fail rather than hang.
    [ -t 0 ] || as_root=(sudo -n)
fi

echo "setup: installing what this needs (${purpose# and }): ${missing[*]}"
log=$(mktemp "${TMPDIR:-/tmp}/flexsc-setup.XXXXXX")
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -q -y -o DPkg::Lock::Timeout=120 "$@" </dev/null >>"$log" 2>&1
}
# Debian's packages start their servers unless this file says no.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ] && printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null; then
    "${as_root[@]}" chmod 755 $policy
    trap '"${as_root[@]}" rm -f $policy' EXIT
fi
# The lists may be too old to hold the packages; a failing update may be
# harmless (one dead source of several), so only the installation decides.
apt update || true
if ! apt install --no-install-recommends "${missing[@]}"; then
    tail -n 15 "$log" >&2
    by_hand "apt-get could not install them (all of its output: $log)." \
        "Mend that, or install them by hand, then run make again."
fi

wanted=${missing[*]}
hash -r
find_missing
if [ ${#missing[@]} -gt 0 ]; then
    by_hand "apt-get installed $wanted, yet something is still missing." \
        "All of apt-get's output: $log"
fi
rm -f "$log"
