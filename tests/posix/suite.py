# SPDX-License-Identifier: MIT
"""The Open POSIX test suite, as scripts/conformance.py wants a suite.

Debian's source package `posixtestsuite` (conformance/interfaces), built
natively into the build folder. A test is a number-number.c or a script beside
it; its exit status is its verdict.
"""

import concurrent.futures
import pathlib
import re

from source_package import Unavailable, compile_errors, fetch, run

TITLE = "Open POSIX test suite"
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


def modernize(source):
    """Lets tests of asynchronous input and output run.

    They ask for POSIX of 2001 exactly, and C libraries have moved on since.
    """
    for path in sources(source):
        text = path.read_text(errors="surrogateescape")
        newer = re.sub(r"(#if _POSIX_ASYNCHRONOUS_IO) != 200112L", r"\1 < 200112L", text)
        if newer != text:
            path.write_text(newer, errors="surrogateescape")


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
    why = "no main()" if "to `main'" in done.stderr else compile_errors(done.stderr)
    why_not.write_text(why)
    return why


def sources(root):
    return sorted(path for path in (root / FOLDER).rglob("[0-9]*-*")
                  if path.suffix in (".c", ".sh"))


def is_test(path):
    return bool(re.fullmatch(r"[0-9]+-[0-9]+", path.stem))


def name_of(root, path):
    return str(path.relative_to(root / FOLDER).with_suffix(""))


def starves(command):
    """With a real-time priority it takes the processors from others' time limits."""
    source = pathlib.Path(command[-1]).with_suffix(".c")
    return source.exists() and re.search(r"SCHED_(FIFO|RR)",
                                         source.read_text(errors="replace")) is not None


def prepare(build, jobs, wanted):
    """Makes the tests whose name wanted() wants.

    Returns (version, [(name, command, folder to run it in)], {name: why it was
    not built}); raises Unavailable.
    """
    version, root = fetch("posixtestsuite", build.resolve() / "posix", modernize)
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
    return version, tests, broken
