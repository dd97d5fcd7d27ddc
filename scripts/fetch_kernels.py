#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fetches Debian's stock kernels, with headers, into the user's cache.

    scripts/fetch_kernels.py [SERIES...]     default: all that tools/vm-run knows

Prints a line for each: series, release, folder. Nothing is installed: packages
are unpacked beside each other below ~/.cache/flexsc/kernels/SERIES, so that
KDIR=FOLDER/usr/src/linux-headers-RELEASE builds a module for that kernel. The
mirror is the machine's own, from its apt sources.
"""

import argparse
import fcntl
import lzma
import pathlib
import re
import shutil
import sys

from source_package import Unavailable, cache_folder, private_apt, run

SERIES = ("6.1", "6.12")
CONFIGURATIONS = pathlib.Path(__file__).resolve().parent.parent / "tools/kernels"
# Kernels that check themselves; scripts/build_debug_kernel.py builds them.
CHECKED = tuple(sorted(path.stem for path in CONFIGURATIONS.glob("*-*.config")))
FLAVOUR = "cloud-amd64"
SUITE = "bookworm"  # its tools run on every later Debian, too


class Kernel:
    """An unpacked kernel."""

    def __init__(self, series, folder):
        self.series, self.folder = series, folder
        self.image = next((folder / "boot").glob("vmlinuz-*"))
        self.release = self.image.name.removeprefix("vmlinuz-")
        self.modules = folder / "lib/modules" / self.release
        self.headers = folder / "usr/src" / f"linux-headers-{self.release}"

    def module(self, name):
        """The bytes of one of the kernel's modules; None if it is built in."""
        for path in (self.modules / "kernel").rglob(f"{name}.ko*"):
            data = path.read_bytes()
            return lzma.decompress(data) if path.suffix == ".xz" else data
        return None


def codename():
    text = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r"^VERSION_CODENAME=(\S+)", text, re.MULTILINE)
    return found.group(1) if found else SUITE


def as_kernel_source(path):
    """The entries of one file of apt sources, for SUITE and its backports."""
    own = rf"\b(?:{re.escape(codename())}|stable|testing|unstable|sid)"
    backports = rf"\b{SUITE}(?![-\w])(?! {SUITE}-backports)"
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if re.match(r"(deb\s|Suites:)", line):
            line = re.sub(own, SUITE, line)
            line = re.sub(backports, f"{SUITE} {SUITE}-backports", line, count=1) \
                if path.suffix == ".sources" else line
        elif not path.suffix == ".sources":
            continue
        lines.append(line)
        # One-line entries have one suite each.
        if path.suffix == ".list" and re.search(backports, line):
            lines.append(re.sub(backports, f"{SUITE}-backports", line, count=1))
    return "\n".join(lines) + "\n"


def newest(series, env):
    """The newest release of which both image and headers are to be had."""
    listed = run(["apt-cache", "pkgnames", f"linux-image-{series}."], env=env).stdout
    shape = re.compile(rf"linux-image-({re.escape(series)}\.[\d.]+\S*-{FLAVOUR})$")
    found = {match.group(1) for match in map(shape.match, listed.split()) if match}
    headers = run(["apt-cache", "pkgnames", f"linux-headers-{series}."], env=env).stdout
    both = [release for release in found if f"linux-headers-{release}" in headers.split()]
    if not both:
        raise Unavailable(f"the apt sources have no Linux {series} of {SUITE} "
                          f"for {FLAVOUR}")
    return max(both, key=lambda release: [int(n) for n in re.findall(r"\d+", release)])


def packages_of(release, env):
    """Image, headers, and what the headers lean on."""
    headers = f"linux-headers-{release}"
    needs = run(["apt-cache", "depends", "--no-recommends", headers], env=env).stdout
    return [f"linux-image-{release}", headers,
            *re.findall(r"Depends: (linux-(?:headers|kbuild)-\S+)", needs)]


def unpack(series, cache, env, place):
    release = newest(series, env)
    debs = place / "debs"
    debs.mkdir(parents=True)
    done = run(["apt-get", "-q", "download", *packages_of(release, env)],
               env=env, cwd=debs, timeout=600)
    if done.returncode:
        raise Unavailable(f"apt-get download: {done.stderr.strip().splitlines()[-1]}")
    for deb in debs.iterdir():
        done = run(["dpkg-deb", "-x", deb, place])
        if done.returncode:
            raise Unavailable(f"dpkg-deb: {done.stderr.strip()}")
    shutil.rmtree(debs)
    # The headers' Makefile names the place where the package would put it.
    headers = place / "usr/src" / f"linux-headers-{release}"
    makefile = headers / "Makefile"
    text = makefile.read_text(encoding="utf-8")
    makefile.write_text(text.replace("/usr/src/", f"{cache / series}/usr/src/"),
                        encoding="utf-8")
    # Types for BTF; a module is built without them, and so without pahole.
    (headers / "vmlinux").unlink(missing_ok=True)
    # So that modprobe works in the machine that tools/vm-run boots.
    depmod = shutil.which("depmod", path="/usr/sbin:/sbin:/usr/bin")
    if depmod:
        run([depmod, "-b", place, release])


def kernels_folder():
    own = pathlib.Path(__file__).resolve().parent.parent / "build"
    return cache_folder(own).resolve() / "kernels"


def configuration(name):
    """What a kernel that checks itself is built with."""
    return "".join((CONFIGURATIONS / f"{part}.config").read_text(encoding="utf-8")
                   for part in ("base", name))


def is_built(name):
    """Whether the cache has that kernel, whole, and of this configuration."""
    try:
        built = (kernels_folder() / name / "configuration").read_text(encoding="utf-8")
    except OSError:
        return False
    return built == configuration(name)


def fetch(series):
    """A Kernel of that series, downloaded if it is not in the cache."""
    cache = kernels_folder()
    cache.mkdir(exist_ok=True)
    if series in CHECKED:
        if not is_built(series):
            raise Unavailable(f"make check-kernel-debug builds Linux {series}")
        return Kernel(series, cache / series)
    with open(cache / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / series).exists():
            for tool in ("apt-get", "dpkg-deb"):
                if not shutil.which(tool):
                    raise Unavailable(f"{tool} is needed to fetch Debian's kernels")
            half = cache / f"{series}.unpacking"
            shutil.rmtree(half, ignore_errors=True)
            env = private_apt(cache / "apt", as_kernel_source)
            try:
                run(["apt-get", "-q", "update"], env=env, timeout=300)
                unpack(series, cache, env, half)
            finally:
                shutil.rmtree(cache / "apt")
            half.rename(cache / series)
    return Kernel(series, cache / series)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("series", nargs="*", metavar="SERIES", help=" or ".join(SERIES))
    for series in parser.parse_args().series or SERIES:
        try:
            kernel = fetch(series)
        except (Unavailable, OSError) as error:
            print(f"fetch_kernels.py: {error}", file=sys.stderr)
            return 1
        print(kernel.series, kernel.release, kernel.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
