#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds kernels that check themselves, of Debian's linux-source packages.

    scripts/build_debug_kernel.py [NAME...]     default: all of tools/kernels

tools/kernels/NAME.config says what a kernel checks, base.config what all have.
The kernel goes into the user's cache beside the stock kernels and looks like
them, so that `tools/vm-run --kernel NAME` boots it and scripts/build_kmod.py
builds the module for it. It takes some 15 minutes of two processors and 4 GB
for each; one that was built from the same configuration is kept.
"""

import fcntl
import os
import pathlib
import shutil
import subprocess
import sys

from fetch_kernels import (CHECKED, Kernel, as_kernel_source, configuration, is_built,
                           kernels_folder)
from source_package import Unavailable, private_apt, run

TOOLS = {"make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "gcc-12": "gcc-12"}
NOT_NEEDED_LATER = ("*.o", "*.a", "*.cmd")


def unpack_source(series, place):
    """Debian's source of that series, in place/source."""
    env = private_apt(place / "apt", as_kernel_source)
    run(["apt-get", "-q", "update"], env=env, timeout=300)
    done = run(["apt-get", "-q", "download", f"linux-source-{series}"], env=env, cwd=place,
               timeout=900)
    shutil.rmtree(place / "apt")
    if done.returncode:
        raise Unavailable(f"apt-get download: {done.stderr.strip().splitlines()[-1]}")
    deb = next(place.glob("*.deb"))
    source = place / "source"
    source.mkdir()
    for command in (["dpkg-deb", "-x", deb, place],
                    ["tar", "-xJf", place / f"usr/src/linux-source-{series}.tar.xz",
                     "-C", source, "--strip-components=1"]):
        done = run(command)
        if done.returncode:
            raise Unavailable(f"{command[0]}: {done.stderr.strip()}")
    deb.unlink()
    shutil.rmtree(place / "usr")
    return source


def make(source, *arguments, log):
    """Make in the kernel's source; raises RuntimeError with the end of its log."""
    command = ["make", "-s", f"-j{len(os.sched_getaffinity(0))}", "CC=gcc-12",
               "HOSTCC=gcc-12", *arguments]
    with open(log, "wb") as out:
        done = subprocess.run(command, cwd=source, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=out, check=False)
    if done.returncode:
        text = log.read_text(errors="replace").splitlines()
        raise RuntimeError("\n".join([" ".join(command), *text[-20:]]))


def configure(source, wanted, log):
    """As asked, everything else off; what the kernel does not know is an error."""
    (source / "wanted.config").write_text(wanted, encoding="utf-8")
    make(source, "KCONFIG_ALLCONFIG=wanted.config", "allnoconfig", log=log)
    got = set((source / ".config").read_text(encoding="utf-8").splitlines())
    missing = [line for line in wanted.splitlines()
               if line.startswith("CONFIG_") and line not in got]
    if missing:
        raise RuntimeError(f"this kernel has no {', '.join(missing)}")


def build_in(name, place):
    """Source, kernel and what modules are built against, in an empty folder."""
    source, log = unpack_source(name.split("-")[0], place), place / "log"
    configure(source, configuration(name), log)
    make(source, "bzImage", "modules", log=log)
    release = run(["make", "-s", "kernelrelease"], cwd=source).stdout.strip()
    for folder in ("boot", f"lib/modules/{release}", "usr/src"):
        (place / folder).mkdir(parents=True)
    shutil.copyfile(source / "arch/x86/boot/bzImage", place / f"boot/vmlinuz-{release}")
    shutil.copyfile(source / "System.map", place / f"boot/System.map-{release}")
    (place / f"usr/src/linux-headers-{release}").symlink_to("../../source")
    # The rest of a source tree's gigabytes.
    for pattern in NOT_NEEDED_LATER:
        for path in source.rglob(pattern):
            if "scripts" not in path.parts and "tools" not in path.parts:
                path.unlink()
    for folder in ("Documentation", "drivers/gpu", "drivers/net", "sound"):
        shutil.rmtree(source / folder)


def build(name):
    """A Kernel of that name, which is one of CHECKED."""
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            raise Unavailable(f"{tool} is needed to build a kernel (package {package})")
    cache = kernels_folder()
    cache.mkdir(exist_ok=True)
    with open(cache / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = cache / name
        if not is_built(name):
            print(f"Building Linux {name}: some 15 minutes", flush=True)
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            build_in(name, place)
            (place / "configuration").write_text(configuration(name), encoding="utf-8")
    return Kernel(name, place)


def main():
    names = sys.argv[1:] or CHECKED
    if any(name not in CHECKED for name in names):
        print(__doc__.split("\n\n", 2)[1], file=sys.stderr)
        print(f"NAME is one of {', '.join(CHECKED)}", file=sys.stderr)
        return 64
    for name in names:
        try:
            kernel = build(name)
        except (Unavailable, RuntimeError, OSError) as error:
            print(f"build_debug_kernel.py: {error}", file=sys.stderr)
            return 1
        print(kernel.series, kernel.release, kernel.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
