#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `make check` on another release of Debian, in a folder that debootstrap makes
# from the mirror that this machine's apt has; the kernel is this machine's.
# What is committed is tested, in a clone.
#
#   scripts/check-debian.sh [--folder DIR] [--record FILE] [--command CMD] RELEASE
#
# RELEASE is a name like trixie. The folder (build/debian-RELEASE) is kept, 2 GB,
# and used again: then only the sources are renewed. --record keeps the result.

set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
folder= record= command='make check'
while [ $# -gt 1 ]; do
    case $1 in
    --folder) folder=$2 ;;
    --record) record=$(realpath "$2") ;;
    --command) command=$2 ;;
    *) break ;;
    esac
    shift 2
done
if [ $# != 1 ] || [ "${1#-}" != "$1" ]; then
    sed -n '/^#   scripts/s/^# *//p' "$0" >&2
    exit 64
fi
release=$1
folder=${folder:-$root/build/debian-$release}

if [ "$(id -u)" != 0 ]; then
    echo "check-debian.sh: debootstrap and chroot need root" >&2
    exit 77
fi
"$root/scripts/setup.sh" debian

mirror() {
    apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' \
        'Created-By: Packages' | awk '$1 == "Debian" && $2 == "main" && !/-security/ {
            print $3; exit }'
}

if [ ! -e "$folder/etc/debian_version" ]; then
    from=$(mirror)
    if [ -z "$from" ]; then
        echo "check-debian.sh: apt has no mirror of Debian" >&2
        exit 77
    fi
    echo "Making Debian $release in $folder"
    rm -rf "$folder.part"
    mkdir -p "$folder.part"
    PATH="$PATH:/usr/sbin:/sbin" debootstrap --variant=minbase \
        --include=make,git,ca-certificates "$release" "$folder.part" "$from" \
        >"$folder.log" 2>&1 || { tail -n 5 "$folder.log" >&2; exit 1; }
    # Sources too: the conformance suites are source packages.
    echo "deb-src $from $release main" >"$folder.part/etc/apt/sources.list.d/source.list"
    mv "$folder.part" "$folder"
fi

# Its build folder stays; what is tested is what git has here.
sources=$folder/root/flexsc
mkdir -p "$sources"
if [ ! -d "$sources/.git" ]; then
    git clone --quiet --no-hardlinks "$root" "$sources"
else
    git -C "$sources" fetch --quiet "$root" HEAD
    git -C "$sources" reset --quiet --hard FETCH_HEAD
fi
cp -L /etc/resolv.conf "$folder/etc/resolv.conf"

# Mounts of its own, which end with it.
inside() {
    unshare --mount --propagation private bash -ec '
        mount -t proc proc "$1/proc"
        mount --rbind /sys "$1/sys"
        mount --rbind /dev "$1/dev"
        mount -t tmpfs tmpfs "$1/tmp"
        exec chroot "$1" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
            TERM="${TERM:-dumb}" PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            ${http_proxy:+http_proxy="$http_proxy"} \
            ${https_proxy:+https_proxy="$https_proxy"} \
            bash -c "cd /root/flexsc && $2"' - "$folder" "$1"
}

status=0
inside "$command" 2>&1 | tee "$folder.out" || status=$?
if [ -n "$record" ]; then
    {
        echo "$(date +%F), Debian $(cat "$folder/etc/debian_version"), $(inside \
            'ldd --version | sed -n "1s/.* /glibc /p"'), $(inside \
            'gcc -dumpfullversion | sed "s/^/gcc /"'), Linux $(uname -r), $(nproc) processors"
        echo "$command: $(grep ' passed, ' "$folder.out" | tail -n 1)"
        grep '^FAILED ' "$folder.out" || true
    } >"$record"
fi
exit "$status"
