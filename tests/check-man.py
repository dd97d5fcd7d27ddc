#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the manual pages with include/flexsc.h.

    tests/check-man.py SOURCE BUILD [CC...]

Every function has a page, or a .so page that leads to one; its prototype
there is the header's; mandoc(1) finds nothing to warn of; and the program in
flexsc(7) compiles. Exit status 77 without mandoc.
"""

import pathlib
import re
import shutil
import subprocess
import sys


def normal(prototype):
    """One spelling: single blanks, none beside stars and brackets."""
    text = " ".join(prototype.split())
    return re.sub(r" ?([*(),]) ?", r"\1", text)


def header_prototypes(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    found = {}
    for match in re.finditer(r"^(?!typedef)((?:const )?\w[\w ]*[ *])(flexsc_\w+)\(([^()]*)\);",
                             text, flags=re.M):
        found[match[2]] = normal(match[0].rstrip(";"))
    return found


def macro_arguments(rest):
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', rest)]


def page_prototypes(text):
    """From .Ft, .Fn, .Fo, .Fa and .Fc of the SYNOPSIS."""
    synopsis = re.search(r"^\.Sh SYNOPSIS\n(.*?)^\.Sh ", text, flags=re.S | re.M)
    found = {}
    result, name, arguments = "", "", []
    for line in synopsis[1].splitlines() if synopsis else []:
        macro, _, rest = line.partition(" ")
        if macro == ".Ft":
            result = rest
        elif macro == ".Fn":
            name, *arguments = macro_arguments(rest)
        elif macro == ".Fo":
            name, arguments = rest, []
        elif macro == ".Fa":
            arguments += macro_arguments(rest)
        if macro in (".Fn", ".Fc"):
            found[name] = normal(f"{result} {name}({', '.join(arguments)})")
    return found


def read_page(name, folders):
    """The page's text, through one .so line; None if there is none."""
    for folder in folders:
        path = folder / name
        if path.exists():
            text = path.read_text()
            if text.startswith(".so "):
                return read_page(pathlib.PurePath(text.split()[1]).name, folders)
            return text
    return None


def check_prototypes(prototypes, folders):
    for name, prototype in prototypes.items():
        text = read_page(name + ".3", folders)
        if text is None:
            yield f"{name}: no page"
        else:
            shown = page_prototypes(text).get(name)
            if shown != prototype:
                yield f"{name}: the header says {prototype}, the page {shown}"
            if not re.search(rf"^\.Nm {name}\b", text, flags=re.M):
                yield f"{name}: is not in NAME of its page"


def check_extra(prototypes, folders):
    """Pages must not describe what the header does not declare."""
    for folder in folders:
        for path in folder.glob("flexsc_*.3"):
            if path.name == "flexsc_calls.3":  # generated with its header
                continue
            for name in page_prototypes(path.read_text()):
                if name not in prototypes:
                    yield f"{path.name}: {name} is not in the header"


def check_lint(folders):
    for folder in folders:
        for path in sorted(folder.glob("flexsc*.[13478]")):
            if path.read_text().startswith(".so "):
                continue
            lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path],
                                  capture_output=True, text=True, check=False)
            yield from lint.stdout.splitlines()


def check_parameters(source, folders):
    """flexsc(4) has the module's parameters, all of them and no others."""
    declared = set()
    for path in (source / "kmod").glob("*.c"):
        declared |= set(re.findall(r"^module_param(?:_\w+)?\((\w+)", path.read_text(),
                                   flags=re.M))
    section = re.search(r"^\.Ss Parameters\n(.*?)^\.S[sh] ", read_page("flexsc.4", folders),
                        flags=re.S | re.M)
    described = set(re.findall(r"^\.It Cm (\w+)", section[1], flags=re.M))
    for name in declared ^ described:
        yield f"flexsc.4: parameter {name} is " + ("missing" if name in declared else
                                                   "not the module's")


def check_program(page, includes, compiler):
    program = re.search(r"^\.Bd -literal\n(#include.*?)^\.Ed", page, flags=re.S | re.M)
    if not program:
        yield "flexsc.7: no program"
        return
    compiled = subprocess.run(
        [*compiler, "-x", "c", "-Wall", "-Werror", "-fsyntax-only",
         *(f"-I{folder}" for folder in includes), "-"],
        input=program[1].replace("\\e", "\\"), capture_output=True, text=True,
        check=False)
    yield from compiled.stderr.splitlines()


def main():
    if not shutil.which("mandoc"):
        print("mandoc is not installed")
        sys.exit(77)
    source, build = map(pathlib.Path, sys.argv[1:3])
    folders = [source / "man", build / "man"]
    includes = [source / "include", build / "include", source / "include/uapi"]
    prototypes = header_prototypes((source / "include/flexsc.h").read_text())
    problems = [*check_prototypes(prototypes, folders),
                *check_extra(prototypes, folders),
                *check_lint(folders),
                *check_parameters(source, folders),
                *check_program(read_page("flexsc.7", folders), includes,
                               sys.argv[3:] or ["cc"])]
    if not prototypes:
        problems.append("include/flexsc.h: found no functions")
    for problem in problems:
        print(problem)
    print(f"{len(prototypes)} functions, {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
