#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Puts the sources of flexsc.ko where DKMS looks for them, with the rule and the
# group of its device, and has DKMS build, sign and install the module for the
# running kernel; without DKMS the kernel's own build does that, once.
#
#   scripts/install-kmod.sh install|uninstall
#
# With DESTDIR nothing but the files is put in place: a package's job.

set -euo pipefail
cd "$(dirname "$0")/.."
version=$(cat VERSION)
dest=${DESTDIR:-}
sources=$dest/usr/src/flexsc-$version
release=$(uname -r)
PATH=$PATH:/usr/sbin:/sbin

have() { command -v "$1" >/dev/null 2>&1; }

# file in kmod/ | where it goes
extras="60-flexsc.rules|usr/lib/udev/rules.d/60-flexsc.rules
flexsc.sysusers|usr/lib/sysusers.d/flexsc.conf
flexsc.modules-load|usr/lib/modules-load.d/flexsc.conf"

need_root() {
    if [ -z "$dest" ] && [ "$(id -u)" != 0 ]; then
        echo "install-kmod.sh: as root, please (or with DESTDIR)" >&2
        exit 1
    fi
}

put_files() {
    rm -rf "$sources"
    install -d "$sources/include/uapi/linux"
    # What git knows, or what a release has: not what was built here.
    for file in kmod/*.[chS] kmod/*.inc kmod/Kbuild kmod/Makefile; do
        case $file in *.mod.c | *'*'*) continue ;; esac
        install -m 644 "$file" "$sources/"
    done
    install -m 644 include/uapi/linux/flexsc.h "$sources/include/uapi/linux/"
    sed "s/#MODULE_VERSION#/$version/" kmod/dkms.conf >"$sources/dkms.conf"
    while IFS='|' read -r from to; do
        install -D -m 644 "kmod/$from" "$dest/$to"
    done <<<"$extras"
}

build_by_dkms() {
    dkms add -m flexsc -v "$version" >/dev/null
    dkms build -m flexsc -v "$version" -k "$release"
    dkms install -m flexsc -v "$version" -k "$release" --force
}

build_here() {
    echo "There is no dkms: the module is built for $release only."
    [ -e "/lib/modules/$release/build" ] || {
        echo "The kernel's headers are missing (Debian: linux-headers-$release)." >&2
        exit 1
    }
    make -C "$sources" modules
    install -D -m 644 "$sources/flexsc.ko" "/lib/modules/$release/updates/flexsc.ko"
    make -C "$sources" clean >/dev/null
    depmod "$release"
}

activate() {
    getent group flexsc >/dev/null || groupadd --system flexsc
    if have udevadm; then udevadm control --reload 2>/dev/null || true; fi
    if modprobe flexsc; then
        echo "flexsc.ko is loaded. Members of the group flexsc may use it: adduser USER flexsc"
    else
        echo "flexsc.ko is installed, but was not loaded; \`flexsc doctor\` knows more." >&2
    fi
}

forget_dkms() {
    if [ -z "$dest" ] && have dkms && [ -n "$(dkms status -m flexsc -v "$version")" ]; then
        dkms remove -m flexsc -v "$version" --all >/dev/null
    fi
}

case ${1:-} in
install)
    need_root
    forget_dkms
    put_files
    [ -z "$dest" ] || exit 0
    if have dkms; then build_by_dkms; else build_here; fi
    activate
    ;;
uninstall)
    need_root
    if [ -z "$dest" ]; then
        modprobe -r flexsc 2>/dev/null || true
        forget_dkms
        rm -f /lib/modules/*/updates/flexsc.ko
        depmod "$release" 2>/dev/null || true
    fi
    rm -rf "$sources"
    while IFS='|' read -r _ to; do rm -f "$dest/$to"; done <<<"$extras"
    echo "Removed; the group flexsc, if there was one, is left."
    ;;
*)
    echo "usage: scripts/install-kmod.sh install|uninstall" >&2
    exit 2
    ;;
esac
