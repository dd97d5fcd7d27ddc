# SPDX-License-Identifier: MIT
"""The C library's own tests, as scripts/conformance.py wants a suite.

The distribution's source package `glibc`, of which only what an installed C
library can be tested with is taken: its support library, and the tests about
threads, processes, signals, timers and blocking calls. They are built as
ordinary programs for the installed C library; a test that needs its private
headers or symbols does not build and is listed as such.
"""

import concurrent.futures
import pathlib
import re
import shlex
import threading

from source_package import Unavailable, compile_errors, fetch, run

TITLE = "The C library's own tests"
VERDICTS = {0: "PASS", 1: "FAIL", 77: "UNSUPPORTED"}
HERE = pathlib.Path(__file__).resolve().parent
PART = HERE / "smoke.txt"
RESULTS = HERE / "RESULTS"
LONGEST = 300.0  # some take 100 s

# Short name and folder of the tests, and what a test's text must hold to be ours.
THREADS = r"pthread_|thrd_|xthread\.h"
PROCESSES = THREADS + (r"|fork|exec|spawn|wait|popen|system *\(|kill|sig|alarm|sleep|"
                       r"poll|select|pipe|timer")
FOLDERS = {
    "nptl": ("nptl", ""), "pthread": ("sysdeps/pthread", ""),
    "linux": ("sysdeps/unix/sysv/linux", ""), "rt": ("rt", ""),
    "signal": ("signal", ""), "socket": ("socket", ""), "io": ("io", PROCESSES),
    "posix": ("posix", PROCESSES), "misc": ("misc", PROCESSES),
    "stdlib": ("stdlib", PROCESSES), "time": ("time", PROCESSES),
    "setjmp": ("setjmp", ""), "debug": ("debug", THREADS),
    "stdio": ("stdio-common", THREADS), "libio": ("libio", PROCESSES),
    "malloc": ("malloc", THREADS), "dlfcn": ("dlfcn", THREADS),
    "elf": ("elf", THREADS), "resolv": ("resolv", THREADS),
    "locale": ("localedata", THREADS), "gmon": ("gmon", THREADS),
}
# Without the shared C library; the same again where time has 64 bits anyway; parts.
NOT_OURS = re.compile(r".*-(static|time64|skeleton|common|audit.*)")

FLAGS = ["-g", "-O2", "-std=gnu11", "-D_GNU_SOURCE", "-w"]
# Folders of the library that its support library asks for.
PATHS = {"OBJDIR": ".", "SRCDIR": ".", "OBJDIR_ELF_LDSO": "/lib64/ld-linux-x86-64.so.2",
         "INSTDIR": "/usr", "LIBDIR": "/usr/lib", "BINDIR": "/usr/bin",
         "SBINDIR": "/usr/sbin", "SLIBDIR": "/lib", "ROOTSBINDIR": "/sbin",
         "COMPLOCALEDIR": "/usr/lib/locale"}
SUPPORT_FLAGS = ["-fexceptions", *[f'-D{name}_PATH="{path}"' for name, path in PATHS.items()]]
LIBRARIES = ["-lpthread", "-lrt", "-ldl", "-lresolv", "-lm"]
# Headers of the source that stand alone, beside the installed ones.
HEADERS = ["include/array_length.h", "include/intprops.h", "include/libc-diag.h",
           "include/libc-pointer-arith.h", "include/scratch_buffer.h", "include/set-hooks.h",
           "sysdeps/x86_64/stackinfo.h", "sysdeps/generic/tst-stack-align.h",
           "test-skeleton.c", "malloc", "posix", "stdlib", "support", "sysdeps"]
# In place of what the library's own build defines, and of a private header.
PRELUDE = """\
#include <limits.h>
#define TIMEOUTFACTOR 1
#define attribute_hidden
#define __set_errno(number) (errno = (number))
#define libc_hidden_def(name)
#define libc_hidden_proto(name)
"""
ALLOCATE_ONCE = """\
static inline void *allocate_once(void **place, void *(*allocate)(void *),
                                  void (*deallocate)(void *, void *), void *closure)
{
    void *made = __atomic_load_n(place, __ATOMIC_ACQUIRE), *other = 0;

    if (made || !(made = allocate(closure)))
        return made;
    if (__atomic_compare_exchange_n(place, &other, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    deallocate(closure, made);
    return other;
}
"""


class Tree:
    """The source, what its makefiles say of tests, and where programs go."""

    def __init__(self, source, place):
        self.source, self.place = source, place
        self.include = source / "flexsc-include"  # "../x" is found from here, too
        self.support = place / "libsupport.a"
        self.flags, self.arguments, self.modules = {}, {}, {}
        for folder, _ in FOLDERS.values():
            for name in ("Makefile", "Makefile.in"):
                if (source / folder / name).exists():
                    self.read_rules((source / folder / name).read_text())

    def read_rules(self, text):
        """Flags, arguments and modules of tests; what needs variables is left out."""
        for line in re.sub(r"\\\n", " ", text).splitlines():
            flags = re.match(r"(?:CFLAGS|CPPFLAGS|LDFLAGS|LDLIBS)-([\w-]+)(?:\.[co]|\.so)? *"
                             r"[+:]?= *([^$]*)$", line)
            arguments = re.match(r"([\w-]+)-ARGS *= *(.*)$", line)
            needs = re.match(r"\$\(objpfx\)([\w-]+)(\.out)?: (.*)$", line)
            if flags:
                self.flags.setdefault(flags[1], []).extend(shlex.split(flags[2]))
            elif arguments:
                self.arguments[arguments[1]] = arguments[2]
            elif needs:
                linked, beside = self.modules.setdefault(needs[1], (set(), set()))
                found = re.findall(r"\$\(objpfx\)([\w-]+)\.so", needs[3])
                (beside if needs[2] else linked).update(
                    module for module in found if not module.startswith("lib"))

    def compiler(self, folder):
        """cc, its flags and includes: a test may borrow files of other folders."""
        borrowed = [path for path, _ in FOLDERS.values()]
        return ["cc", *FLAGS, "-include", str(self.include / "prelude.h"),
                f"-I{self.include}", *[word for path in (folder, *borrowed)
                                       for word in ("-iquote", str(self.source / path))]]


# Building -----------------------------------------------------------------------------

def lay_out(tree):
    """The folder of headers: the tests' own, and those that stand alone."""
    tree.include.mkdir(exist_ok=True)
    headers = [tree.source / path for path in HEADERS]
    for folder, _ in FOLDERS.values():
        headers += (tree.source / folder).glob("tst-*.h")
    headers += (tree.source / "support").glob("*.h")
    for path in headers:
        link = tree.include / path.name
        if path.exists() and not link.is_symlink():
            link.symlink_to(path)
    (tree.include / "config.h").touch()
    (tree.include / "prelude.h").write_text(PRELUDE)
    (tree.include / "allocate_once.h").write_text(ALLOCATE_ONCE)


def make_support(tree, jobs):
    """The archive of the support library; what does not build is left out."""
    if tree.support.exists():
        return
    folder = tree.place / "support"
    folder.mkdir(exist_ok=True)
    paths = [path for path in sorted((tree.source / "support").glob("*.c"))
             if not re.match(r"tst-|README|.*-container|test-run-command|links-dso", path.name)]

    def compile_support(path):
        made = folder / f"{path.stem}.o"
        words = [*tree.compiler("support"), *SUPPORT_FLAGS, "-c", path, "-o", made]
        return made if run(words).returncode == 0 else None

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        made = [path for path in pool.map(compile_support, paths) if path]
    half = tree.place / "libsupport.a.half"
    half.unlink(missing_ok=True)
    if run(["ar", "rcs", half, *made]).returncode:
        raise Unavailable("the support library cannot be built")
    half.rename(tree.support)


def compile_part(tree, path, output, more):
    """A program or a module: None, or why it does not build."""
    flags = tree.flags.get(path.stem, [])
    language = ["-x", "c++"] if "-std=gnu++11" in flags else []
    words = [*tree.compiler(path.parent.relative_to(tree.source)), *language,
             f'-DOBJPFX="{output.parent}/"',
             *[flag for flag in flags if not flag.startswith("-l")], path]
    if language:
        words[words.index("-std=gnu11")] = "-std=gnu++11"
        words += ["-x", "none"]
    half = output.with_name(f"{output.name}.{threading.get_ident()}")
    words += ["-o", half, "-Wl,-rpath,$ORIGIN", *more, str(tree.support),
              *[flag for flag in flags if flag.startswith("-l")], *LIBRARIES]
    done = run(words)
    if done.returncode == 0:
        half.rename(output)
        return None
    if re.search(r"to `main'|multiple definition of `main'", done.stderr):
        return "no main()"
    return compile_errors(done.stderr)


def compile_test(tree, name, path):
    """A test with the modules that it needs: None, or why it does not build."""
    folder = tree.place / name.rpartition("/")[0]
    output, why_not = folder / path.stem, folder / f"{path.stem}.failed"
    if output.exists() or why_not.exists():
        return why_not.read_text().strip() if why_not.exists() else None
    linked, beside = tree.modules.get(path.stem, ((), ()))
    why = None
    for module in sorted({*linked, *beside}):
        source, made = path.parent / f"{module}.c", folder / f"{module}.so"
        if not made.exists():
            why = why or compile_part(tree, source, made, ["-shared", "-fPIC"])
    why = why or compile_part(tree, path, output,
                              [str(folder / f"{module}.so") for module in sorted(linked)])
    if why:
        why_not.write_text(why + "\n")
    return why


def command(tree, name, path):
    """What runs the test: it has a limit of its own, made longer for slow machines."""
    program = tree.place / name
    words = tree.arguments.get(path.stem, "")
    words = words.replace("$(host-test-program-cmd)", str(program))
    words = words.replace("$(objpfx)", f"{program.parent}/").replace("$(objdir)", str(tree.place))
    if "$" in words or "`" in words:
        words = ""
    return ["env", "TIMEOUTFACTOR=4", str(program), *shlex.split(words)]


def sources(tree):
    """Names and files of the tests that are about what we replace."""
    modules = {module for needs in tree.modules.values() for part in needs for module in part}
    for short, (folder, about) in FOLDERS.items():
        for path in sorted((tree.source / folder).glob("*.c")):
            if not re.match(r"tst-|bug-|test-", path.stem) or \
               NOT_OURS.fullmatch(path.stem) or path.stem in modules:
                continue
            if re.search(about, path.read_text(errors="replace")):
                yield f"{short}/{path.stem}", path


def prepare(build, jobs, wanted):
    """Makes the tests whose name wanted() wants.

    Returns (version, [(name, command, folder to run it in)], {name: why it was
    not built}); raises Unavailable.
    """
    place = build.resolve() / "glibc"
    version, source = fetch("glibc", place)
    tree = Tree(source, place)
    lay_out(tree)
    make_support(tree, jobs)
    chosen = [(name, path) for name, path in sources(tree) if wanted(name)]
    for folder in {name.rpartition("/")[0] for name, _ in chosen}:
        (place / folder).mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        whys = list(pool.map(lambda test: compile_test(tree, *test), chosen))
    tests = [(name, command(tree, name, path), path.parent)
             for (name, path), why in zip(chosen, whys) if not why]
    broken = {name: why for (name, _), why in zip(chosen, whys)
              if why and why != "no main()"}
    return version, tests, broken
