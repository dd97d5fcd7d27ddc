#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds flexsc.ko for Debian's stock kernels, in the build folder.

    scripts/build_kmod.py BUILD [SERIES...]

For each kernel of scripts/fetch_kernels.py the sources are laid out in
BUILD/kmod/RELEASE as `make install-kmod` lays them out for DKMS, and built
there; prints the module's path. A warning is a failure.
"""

import argparse
import fcntl
import os
import pathlib
import re
import shutil
import sys

from fetch_kernels import SERIES, fetch
from source_package import Unavailable, run

TREE = pathlib.Path(__file__).resolve().parent.parent
SOURCES = re.compile(r".*\.[chS]$|.*\.inc$|Kbuild$|Makefile$")
# The kernel's packages are built by another build of the same compiler.
HARMLESS = re.compile(r"the compiler differs|Skipping BTF generation|^  (The kernel|You are)")


def sources():
    """(file, where it goes) of all that a build of the module needs."""
    for path in sorted((TREE / "kmod").iterdir()):
        # What a build in the tree has left behind is not a source.
        if SOURCES.match(path.name) and not path.name.endswith(".mod.c"):
            yield path, path.name
    yield TREE / "include/uapi/linux/flexsc.h", "include/uapi/linux/flexsc.h"


def lay_out(folder):
    """Copies what has changed; a file that is no more a source goes away."""
    wanted = set()
    for path, name in sources():
        target = folder / name
        wanted.add(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != path.read_bytes():
            shutil.copyfile(path, target)
    for path in folder.iterdir():
        if SOURCES.match(path.name) and path not in wanted and \
                not path.name.endswith(".mod.c"):
            path.unlink()


def build(build_folder, series):
    """The path of a module that is up to date; raises RuntimeError."""
    kernel = fetch(series)
    folder = pathlib.Path(build_folder).resolve() / "kmod" / kernel.release
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lay_out(folder)
        if not shutil.which("make"):
            raise Unavailable("make is not installed")
        env = {name: value for name, value in os.environ.items()
               if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CC", "CFLAGS")}
        done = run(["make", "-s", "-C", folder, f"KDIR={kernel.headers}", "modules"],
                   env=env, timeout=600)
    said = [line for line in (done.stdout + done.stderr).splitlines()
            if line.strip() and not HARMLESS.search(line)]
    if done.returncode or any("warning" in line.lower() for line in said):
        # What had been built from other sources must not be taken for this.
        (folder / "flexsc.ko").unlink(missing_ok=True)
        raise RuntimeError("\n".join(said) or f"make: exit status {done.returncode}")
    return folder / "flexsc.ko"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("series", nargs="*", metavar="SERIES", help=" or ".join(SERIES))
    options = parser.parse_args()
    for series in options.series or SERIES:
        try:
            print(build(options.build, series))
        except Unavailable as error:
            print(f"SKIP: {error}")
            return 77
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
