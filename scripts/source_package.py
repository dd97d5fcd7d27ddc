# SPDX-License-Identifier: MIT
"""Source packages of the distribution, for suites that are not in this tree.

A package is fetched with the distribution's own tools through a private apt
configuration, kept in the user's cache, and unpacked into the build folder.
"""

import fcntl
import os
import pathlib
import re
import shutil
import subprocess


class Unavailable(Exception):
    """The package cannot be had here; the text says why."""


def run(command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", check=False, **more)


def source_files():
    """The machine's apt sources, those of its distribution if that can be told."""
    listed = run(["apt-get", "indextargets", "--format", "$(SOURCESENTRY) $(ORIGIN)",
                  "Created-By: Packages"]).stdout
    ours = {line.split()[0].rsplit(":", 1)[0] for line in listed.splitlines()
            if line.split()[1:] in (["Debian"], ["Ubuntu"])}
    every = [pathlib.Path("/etc/apt/sources.list"),
             *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]
    every = [path for path in every
             if path.suffix in (".list", ".sources") and path.is_file()]
    return [path for path in every if str(path) in ours] or every


def as_source(path):
    """The entries of one file of apt sources, asking for sources."""
    text = path.read_text()
    if path.suffix == ".sources":
        return re.sub(r"(?m)^Types:.*$", "Types: deb-src", text)
    return "".join(re.sub(r"^deb(-src)?\s", "deb-src ", line) + "\n"
                   for line in text.splitlines() if re.match(r"deb(-src)?\s", line))


def private_apt(folder, change=as_source):
    """An apt configuration that touches nothing outside this folder.

    change(path) is what becomes of one file of the machine's apt sources.
    """
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for path in source_files():
        (folder / "parts" / path.name).write_text(change(path))
    config = folder / "apt.conf"
    config.write_text(f'Dir::Etc::sourcelist "/dev/null";\n'
                      f'Dir::Etc::sourceparts "{folder}/parts";\n'
                      f'Dir::State::lists "{folder}/lists";\n'
                      f'Dir::Cache "{folder}/cache";\n'
                      f'APT::Sandbox::User "root";\n')
    return dict(os.environ, APT_CONFIG=str(config), LC_ALL="C")


def download(package, cache):
    """The package's .dsc file, downloaded if it is not in the cache."""
    found = sorted(cache.glob(f"{package}_*.dsc"))
    if found:
        return found[-1]
    for tool in ("apt-get", "dpkg-source"):
        if not shutil.which(tool):
            raise Unavailable(f"{tool} is needed to fetch Debian's {package}")
    env = private_apt(cache / "apt")
    run(["apt-get", "-q", "update"], env=env, timeout=300)
    done = run(["apt-get", "-q", "source", "--download-only", package], env=env,
               cwd=cache, timeout=300)
    shutil.rmtree(cache / "apt")
    found = sorted(cache.glob(f"{package}_*.dsc"))
    if not found:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Unavailable(f"apt-get cannot fetch Debian's source package {package}: {last}")
    return found[-1]


def unpack(dsc, place, mend):
    """The source's folder; unpacked beside and renamed, so it is whole or absent."""
    source = place / dsc.stem
    if not source.exists():
        half = place / "unpacking"
        shutil.rmtree(half, ignore_errors=True)
        done = run(["dpkg-source", "--no-check", "-q", "-x", dsc, half])
        if done.returncode:
            raise Unavailable(f"dpkg-source: {done.stderr.strip()}")
        mend(half)
        half.rename(source)
    return source


def cache_folder(own):
    """The user's cache, so that many builds download once; else the build's own."""
    usual = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                         pathlib.Path.home() / ".cache") / "flexsc"
    for folder in (usual, own):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / "lock", "w", encoding="utf-8"):
                return folder
        except OSError as error:
            why = error
    raise Unavailable(f"{own}: {why.strerror}")


def fetch(package, place, mend=lambda source: None):
    """Unpacks the package in a folder: (what it is called, where its source is).

    mend(source) changes what was just unpacked.
    """
    place.mkdir(parents=True, exist_ok=True)
    cache = cache_folder(place)
    with open(cache / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        dsc = download(package, cache)
        return dsc.stem.replace("_", " "), unpack(dsc, place, mend)


def compile_errors(stderr):
    """The first line of a compiler's messages that says what is wrong."""
    lines = [line for line in stderr.splitlines() if "error" in line or
             "undefined reference" in line] or ["no reason given"]
    return re.sub(r"^.*?(error|undefined)", r"\1", lines[0])
