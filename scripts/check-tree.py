#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the form of every tracked file; CONTRIBUTING.md says why.

    scripts/check-tree.py [--root DIR]

Licence line, opening comment of a .c file, lengths of files and functions,
trailing blanks, names, markers of unfinished work. Layout is clang-format's
business, includes are check-layers.py's.
"""

import argparse
import pathlib
import re
import subprocess
import sys

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 60

# What may be longer, up to which length, and why. An entry that is no longer
# needed is an error.
#   "path": (lines, "reason")  or  "path:function": (lines, "reason")
EXCEPTIONS = {
}

NEEDS_SPDX = {".c", ".h", ".S", ".py", ".sh", ".map", ".cocci", ".bt"}
NEEDS_SPDX_NAMES = {"meson.build", "meson.options", "meson_options.txt", "Makefile",
                    "Kbuild"}
BAD_NAMES = {"util", "utils", "common", "misc"}
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
VERBATIM = ("LICENSES/",)  # other people's text, kept as it is
SPDX = re.compile(r"SPDX-License-Identifier:\s*(.+?)\s*(?:\*/|-->)?\s*$")
SKIP_FOLDERS = re.compile(r"(^|/)(build[^/]*|\.git|__pycache__|\.cache)(/|$)")


def list_files(root):
    """Tracked files; in an unpacked release, where git is no help, all files."""
    git = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z"],
                         capture_output=True, text=True, check=False)
    if git.returncode == 0 and (root / ".git").exists():
        names = [name for name in git.stdout.split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
        names = [name for name in names if not SKIP_FOLDERS.search(name)]
    return sorted(name for name in names
                  if (root / name).is_file() and not (root / name).is_symlink())


def check_licence(name, lines, licences):
    """The SPDX line is the first, or the second after a #! line."""
    path = pathlib.PurePath(name)
    script = bool(lines) and lines[0].startswith("#!")
    if not (path.suffix in NEEDS_SPDX or path.name in NEEDS_SPDX_NAMES or script):
        return
    where = 1 if script else 0
    match = SPDX.search(lines[where]) if len(lines) > where else None
    if not match:
        yield where + 1, "no SPDX-License-Identifier line"
        return
    for word in re.split(r"\s+(?:OR|AND)\s+|[()\s]+", match.group(1)):
        if word and word not in licences:
            yield where + 1, f"licence {word} has no text in LICENSES/"


def check_opening(name, lines):
    """A .c file says in a comment what its job is before anything else."""
    if not name.endswith(".c"):
        return
    rest = [(number, line) for number, line in enumerate(lines, 1)
            if line.strip() and not SPDX.search(line)]
    if not rest or not rest[0][1].startswith(("/*", "//")):
        yield (rest[0][0] if rest else 1), "no opening comment: what is this file's job?"


def check_text(name, raw, lines):
    if name.startswith(VERBATIM):
        return
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "trailing blank"
        if UNFINISHED.search(line):
            yield number, "unfinished work: finish it, or file an issue"
    if raw and not raw.endswith("\n"):
        yield len(lines), "no newline at the end"
    elif raw.endswith("\n\n"):
        yield len(lines), "empty line at the end"


def check_name(name):
    for part in pathlib.PurePath(name).parts:
        if pathlib.PurePath(part).stem.lower() in BAD_NAMES:
            yield 1, f"'{part}' does not say what is in it"


def functions_of(lines):
    """(name, first line, number of lines from { to }) of the C functions.

    Goes by the layout that clang-format gives: a body opens with a brace in
    the first column and ends with the next one there.
    """
    head, opened = [], None
    for number, line in enumerate(lines, 1):
        if opened is not None:
            if line.startswith("}"):
                if opened[0]:
                    yield (*opened, number - opened[1] + 1)
                opened, head = None, []
        elif line.startswith("{") or re.match(r"^\w.*\)\s*\{\s*$", line):
            found = re.search(r"(\w+)\s*\(", " ".join((*head, line.rstrip("{ "))))
            opened = (found.group(1) if found else "", number)
        elif not line.strip() or line.startswith(("#", "/*", " *", "//")) or \
                line.rstrip().endswith((";", "}")):
            head = []
        else:
            head.append(line)


def check_lengths(name, lines, used):
    def allowed(key, usual):
        if key in EXCEPTIONS:
            used.add(key)
        return EXCEPTIONS.get(key, (usual,))[0]

    def unneeded(key, length, usual):
        return key in EXCEPTIONS and length <= usual

    if not name.endswith((".c", ".h")):
        return
    if len(lines) > allowed(name, MAX_FILE_LINES):
        yield 1, f"{len(lines)} lines, {allowed(name, MAX_FILE_LINES)} allowed"
    elif unneeded(name, len(lines), MAX_FILE_LINES):
        yield 1, "no longer needs its entry in EXCEPTIONS"
    for function, number, length in functions_of(lines):
        key = f"{name}:{function}"
        most = allowed(key, MAX_FUNCTION_LINES)
        if length > most:
            yield number, f"{function}() has {length} lines, {most} allowed"
        elif unneeded(key, length, MAX_FUNCTION_LINES):
            yield number, f"{function}() no longer needs its entry in EXCEPTIONS"


def check_file(root, name, licences, used):
    yield from check_name(name)
    data = (root / name).read_bytes()
    if b"\0" in data:
        return  # an image, a compiled file
    try:
        raw = data.decode("utf-8")
    except UnicodeDecodeError:
        yield 1, "not UTF-8"
        return
    lines = raw.split("\n")
    if lines[-1] == "":
        lines.pop()
    yield from check_licence(name, lines, licences)
    yield from check_opening(name, lines)
    yield from check_text(name, raw, lines)
    yield from check_lengths(name, lines, used)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[1])
    root = parser.parse_args().root.resolve()
    licences = {path.stem for path in (root / "LICENSES").glob("*.txt")}
    names, used, nr_complaints = list_files(root), set(), 0
    for name in names:
        for number, wrong in check_file(root, name, licences, used):
            print(f"{name}:{number}: {wrong}")
            nr_complaints += 1
    for key in sorted(set(EXCEPTIONS) - used):
        print(f"scripts/check-tree.py:1: EXCEPTIONS names {key}, which does not exist")
        nr_complaints += 1
    if not names:
        print(f"check-tree.py: no files under {root}")
        nr_complaints += 1
    if not nr_complaints:
        print(f"{len(names)} files are in form")
    return 1 if nr_complaints else 0


if __name__ == "__main__":
    sys.exit(main())
