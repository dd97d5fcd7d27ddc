# SPDX-License-Identifier: MIT
"""The Open POSIX test suite, as scripts/conformance.py wants a suite.

Debian's source package `posixtestsuite` (conformance/interfaces): fetched with
the distribution's own tools through a private apt configuration, kept in the
user's cache, built natively into the build folder. A test is a number-number.c
or a script beside it; its exit status is its verdict.
"""

import concurrent.futures
import fcntl
import os
import pathlib
import re
import shutil
import subprocess

TITLE = "Open POSIX test suite"
PACKAGE = "posixtestsuite"
FOLDER = "conformance/interfaces"
VERDICTS = {0: "PASS", 1: "FAIL", 2: "UNRESOLVED", 4: "UNSUPPORTED", 5: "UNTESTED"}
HERE = pathlib.Path(__file__).resolve().parent
PART = HERE / "smoke.txt"
RESULTS = HERE / "RESULTS"

# As the suite's own Makefile builds, but for warnings: compilers have grown
# stricter since the suite was written.
FLAGS = ["-g", "-O2", "-std=gnu99", "-D_POSIX_C_SOURCE=200112L", "-D_GNU_SOURCE",
         "-w", "-Wno-error=implicit-function-declaration", "-Wno-error=int-conversion",
         "-Wno-error=incompatible-pointer-types"]
LIBRARIES = ["-lpthread", "-lrt", "-lm"]


class Unavailable(Exception):
    """The suite cannot be had here; the text says why."""


def run(command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", check=False, **more)


# Fetching -------------------------------------------------------------------------

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


def private_apt(folder):
    """An apt configuration that touches nothing outside this folder."""
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for path in source_files():
        (folder / "parts" / path.name).write_text(as_source(path))
    config = folder / "apt.conf"
    config.write_text(f'Dir::Etc::sourcelist "/dev/null";\n'
                      f'Dir::Etc::sourceparts "{folder}/parts";\n'
                      f'Dir::State::lists "{folder}/lists";\n'
                      f'Dir::Cache "{folder}/cache";\n'
                      f'APT::Sandbox::User "root";\n')
    return dict(os.environ, APT_CONFIG=str(config), LC_ALL="C")


def fetch(cache):
    """The package's .dsc file, downloaded if it is not in the cache."""
    found = sorted(cache.glob(f"{PACKAGE}_*.dsc"))
    if found:
        return found[-1]
    for tool in ("apt-get", "dpkg-source"):
        if not shutil.which(tool):
            raise Unavailable(f"{tool} is needed to fetch Debian's {PACKAGE}")
    cache.mkdir(parents=True, exist_ok=True)
    env = private_apt(cache / "apt")
    run(["apt-get", "-q", "update"], env=env, timeout=300)
    done = run(["apt-get", "-q", "source", "--download-only", PACKAGE], env=env,
               cwd=cache, timeout=300)
    shutil.rmtree(cache / "apt")
    found = sorted(cache.glob(f"{PACKAGE}_*.dsc"))
    if not found:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Unavailable(f"apt-get cannot fetch Debian's source package {PACKAGE}: {last}")
    return found[-1]


def modernize(source):
    """Lets tests of asynchronous input and output run.

    They ask for POSIX of 2001 exactly, and C libraries have moved on since.
    """
    for path in sources(source):
        text = path.read_text(errors="surrogateescape")
        newer = re.sub(r"(#if _POSIX_ASYNCHRONOUS_IO) != 200112L", r"\1 < 200112L", text)
        if newer != text:
            path.write_text(newer, errors="surrogateescape")


def unpack(dsc, place):
    """The suite's folder; unpacked beside and renamed, so it is whole or absent."""
    source = place / dsc.stem
    if not source.exists():
        half = place / "unpacking"
        shutil.rmtree(half, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        done = run(["dpkg-source", "--no-check", "-q", "-x", dsc, half])
        if done.returncode:
            raise Unavailable(f"dpkg-source: {done.stderr.strip()}")
        modernize(half)
        half.rename(source)
    return source


# Building -----------------------------------------------------------------------------

def compile_one(root, path):
    """None, or why it does not build. What has no main() is a test of headers."""
    program, why_not = path.with_suffix(".test"), path.with_suffix(".failed")
    newest = path.stat().st_mtime
    for made in (program, why_not):
        if made.exists() and made.stat().st_mtime >= newest:
            return why_not.read_text() if made is why_not else None
    done = run(["cc", *FLAGS, f"-I{root}/include", path, "-o", program, *LIBRARIES])
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if "error" in line or
             "undefined reference" in line] or ["no reason given"]
    why = re.sub(r"^.*?(error|undefined)", r"\1", lines[0])
    if "to `main'" in done.stderr:
        why = "no main()"
    why_not.write_text(why)
    return why


def sources(root):
    return sorted(path for path in (root / FOLDER).rglob("[0-9]*-*")
                  if path.suffix in (".c", ".sh"))


def is_test(path):
    return bool(re.fullmatch(r"[0-9]+-[0-9]+", path.stem))


def name_of(root, path):
    return str(path.relative_to(root / FOLDER).with_suffix(""))


def cache_folder(build):
    """The user's cache, so that many builds download once; else the build's own."""
    usual = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                         pathlib.Path.home() / ".cache") / "flexsc"
    own = build.resolve() / "posix"
    for folder in (usual, own):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / "lock", "w", encoding="utf-8"):
                return folder
        except OSError as error:
            why = error
    raise Unavailable(f"{own}: {why.strerror}")


def prepare(build, jobs, wanted):
    """Makes the tests whose name wanted() wants.

    Returns (version, [(name, command, folder to run it in)], {name: why it was
    not built}); raises Unavailable.
    """
    cache = cache_folder(build)
    with open(cache / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        dsc = fetch(cache)
        root = unpack(dsc, build.resolve() / "posix")
    tests, broken = [], {}
    paths = [path for path in sources(root)
             if not is_test(path) or wanted(name_of(root, path))]
    compiled = [path for path in paths if path.suffix == ".c"]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        whys = dict(zip(compiled, pool.map(lambda path: compile_one(root, path), compiled)))
    for path in paths:
        if whys.get(path):
            if "buildonly" not in path.stem and whys[path] != "no main()":
                broken[name_of(root, path)] = whys[path]
        elif is_test(path):
            command = ["sh", str(path)] if path.suffix == ".sh" else \
                      [str(path.with_suffix(".test"))]
            tests.append((name_of(root, path), command, root))
    return f"{dsc.stem.replace('_', ' ')}", tests, broken
