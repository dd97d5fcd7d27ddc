#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turn src/call/syscalls.tbl into C, header, man pages and Markdown.

Usage: gen-syscalls.py TBL [--out-KIND FILE]...   KIND is table, kmod, decls,
wrappers, arguments, man3, man7 or md; several in one run are fine.  The format of the
table is described at its top.  This script refuses what it cannot parse; that
the table is also *right* is the business of tests/check-syscalls.py, which
imports the parser from here.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

CLASSES = {
    "never": "does not block",
    "disk": "may wait for storage",
    "fd": "waits until {fd} is {ready}",
    "wait": "may wait for ever",
    "none": "refused",
    "absent": "not implemented on x86-64",
}
WHO = ("any", "self", "-")
MARKS = {"newfd": "FX_CALL_NEWFD", "closes": "FX_CALL_CLOSES"}
READY = {"in": "readable", "out": "writable"}
POST_ARGS = 6
SHORT_ARGS = 4  # of fx_post_short()

# Unsigned types of 32 bits. The kernel looks at no more than those; passed on as
# they are they would be widened with zeros, and FLEXSC_RESULT(n) is negative.
NARROW = {"unsigned int", "uint32_t", "mode_t", "uid_t", "gid_t", "id_t",
          "socklen_t"}

# Types that wrappers use only behind a pointer need no header of their own.
STRUCT_RE = re.compile(r"\bstruct (\w+)")


class TableError(Exception):
    """A line of the table that cannot be understood."""


class Wrapper:
    """A typed function flexsc_NAME that posts one call."""

    def __init__(self, text, call):
        match = re.fullmatch(
            r"(\w+): (\w+)\(([^()]*)\)(?: = (.*?))?(?: if (\w+) else (\w+))?",
            text.strip())
        if not match:
            raise TableError(f"wrapper '{text.strip()}' is not understood")
        self.call = call
        (self.group, self.name, params, args, self.condition,
         self.otherwise) = match.groups()
        self.params = ([] if params == "void"
                       else [p.strip() for p in params.split(",")])
        self.names = [re.search(r"(\w+)$", p).group(1) for p in self.params]
        self.args = ([a.strip() for a in args.split(",")] if args
                     else list(self.names))
        self.narrow = {n for n, p in zip(self.names, self.params)
                       if p[:-len(n)].strip() in NARROW}

    def argument(self, arg):
        """An argument of flexsc_post()."""
        if arg in self.narrow:
            return f"(int){arg}"
        if arg in self.names:
            return f"(long){arg}"
        return "0L" if arg == "NULL" else f"{int(arg, 0)}L"

    def number(self):
        """The number that is posted, as C."""
        call = f"{self.call.number} /* {self.call.name} */"
        if not self.condition:
            return call
        other = f"{self.otherwise.number} /* {self.otherwise.name} */"
        return f"{self.condition} ? {call} : {other}"

    def fd_name(self):
        """The parameter that stands for the call's descriptor."""
        return self.args[self.call.fd]


class Call:
    """One system call number."""

    def __init__(self, fields, wrapper, text):
        if len(fields) != 8:
            raise TableError(f"{len(fields)} columns where 8 are expected")
        self.number, self.name = int(fields[0]), fields[1]
        self.nr_args, self.call_class = int(fields[2]), fields[3]
        self.who, uring, marks = fields[5:]
        index, _, self.ready = fields[4].partition(":")
        self.fd = -1 if index == "-" else int(index)
        self.uring = "" if uring == "-" else uring.rstrip("?")
        self.uring_partial = uring.endswith("?")
        self.marks = [] if marks == "-" else marks.split(",")
        self.text = text
        self.wrapper = Wrapper(wrapper, self) if wrapper else None
        self.check()

    def check(self):
        """Refuse values that do not exist."""
        for value, known, what in ((self.call_class, CLASSES, "class"),
                                   (self.who, WHO, "who"),
                                   (self.ready, ("", *READY), "readiness")):
            if value not in known:
                raise TableError(f"unknown {what} '{value}'")
        if self.who == "self" and self.call_class != "never":
            raise TableError("who makes the call must not wait for a thread")
        for mark in self.marks:
            if mark not in MARKS:
                raise TableError(f"unknown mark '{mark}'")

    def flags(self):
        """The FX_CALL_ flags of src/engine/desc.h."""
        flags = ["FX_CALL_SELF"] if self.who == "self" else []
        if self.ready == "out":
            flags.append("FX_CALL_OUT")
        flags += [MARKS[mark] for mark in self.marks]
        if self.uring:
            flags.append("FX_CALL_URING")
        return " | ".join(flags) or "0"

    def behaviour(self, fd_name="the descriptor"):
        """The class in plain words."""
        words = CLASSES[self.call_class].format(
            fd=fd_name, ready=READY.get(self.ready, ""))
        if self.who == "self":
            words += "; runs on the calling thread"
        return words


class Table:
    """The whole of syscalls.tbl."""

    def __init__(self, path):
        self.calls, self.groups, self.wrappers = {}, {}, []
        aliases = []
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    self.parse(line.strip(), aliases)
                except (TableError, ValueError) as error:
                    raise TableError(f"{path}:{number}: {error}") from None
        by_name = {call.name: call for call in self.calls.values()}
        for target, wrapper in aliases:
            if target not in by_name:
                raise TableError(f"{path}: alias of unknown call '{target}'")
            self.wrappers.append(Wrapper(wrapper, by_name[target]))
        for wrapper in self.wrappers:
            if wrapper.otherwise:
                wrapper.otherwise = by_name[wrapper.otherwise]
        self.nr_calls = max(self.calls) + 1

    def parse(self, line, aliases):
        """Take in one line."""
        if not line or line.startswith("#"):
            return
        if line.startswith("group "):
            _, key, title = line.split(None, 2)
            self.groups[key] = title
            return
        if line.startswith("alias "):
            target, _, wrapper = line[len("alias "):].partition("|")
            aliases.append((target.strip(), wrapper))
            return
        match = re.fullmatch(r'([^|"]*)(?:\|([^"]*))?(?:"([^"]*)")?', line)
        if not match:
            raise TableError("not a line of the table")
        columns, wrapper, text = match.groups()
        call = Call(columns.split(), wrapper, text or "")
        if call.number in self.calls:
            raise TableError(f"number {call.number} stands twice")
        self.calls[call.number] = call
        if call.wrapper:
            self.wrappers.append(call.wrapper)

    def grouped(self):
        """Yield (title, wrappers) in the order of the groups."""
        for key, title in self.groups.items():
            found = [w for w in self.wrappers if w.group == key]
            yield title, sorted(found, key=lambda w: w.call.number)

    def ordered(self):
        """The calls by number."""
        return [self.calls[number] for number in sorted(self.calls)]


def c_head(job):
    """The first lines of a generated C file."""
    return ["/* SPDX-License-Identifier: MIT */",
            "/*",
            f" * {job}",
            " * Made by scripts/gen-syscalls.py from src/call/syscalls.tbl;",
            " * change that instead.",
            " */",
            ""]


def c_wrap(head, items, tail, columns=80):
    """HEAD(ITEMS)TAIL as kernel-style C of at most so many columns."""
    indent = len(head) + 1
    if indent > 48:
        indent = 8
    lead = "\t" * (indent // 8) + " " * (indent % 8)
    lines, line, width = [], head + "(", len(head) + 1
    for place, item in enumerate(items):
        end = tail if place == len(items) - 1 else ","
        space = "" if line.endswith(("(", "\t")) or not line.strip() else " "
        if width + len(space) + len(item) + len(end) > columns:
            lines.append(line)
            line, width, space = lead, indent, ""
        line += space + item + end
        width += len(space) + len(item) + len(end)
    return lines + [line]


def out_table(table):
    """call-table.c: what every number means, for the engines."""
    lines = c_head("What posting each system call number means.")
    lines += ["#include <stddef.h>", "", '#include "engine/desc.h"', "",
              f"_Static_assert(FX_NR_CALLS >= {table.nr_calls},",
              '\t       "FX_NR_CALLS is too small for syscalls.tbl");', "",
              "/* What is not listed is zero: FX_CALL_ABSENT. */",
              "const struct fx_call_desc fx_call_table[FX_NR_ROWS] = {",
              '\t[FX_READY_IN] = { "ready_in", NULL, FX_CALL_FD, 2, 0, 0 },',
              '\t[FX_READY_OUT] = { "ready_out", NULL, FX_CALL_FD, 2, 0, FX_CALL_OUT },']
    for call in table.ordered():
        reason = f'"{call.text}"' if call.call_class == "none" else "NULL"
        lines.append(
            f'\t[{call.number}] = {{ "{call.name}", {reason}, '
            f"FX_CALL_{call.call_class.upper()}, {call.nr_args}, {call.fd}, "
            f"{call.flags()} }},")
    lines += ["};", "",
              "/* One more than the newest number in the table. */",
              f"const unsigned fx_nr_calls = {table.nr_calls};"]
    return lines


# Those that SIGPIPE or SIGXFSZ can come of; as fx_call_signals has them.
LOUD = {"write", "writev", "pwrite64", "pwritev", "pwritev2", "sendfile",
        "splice", "tee", "vmsplice", "copy_file_range", "truncate",
        "ftruncate", "fallocate", "sendto", "sendmsg", "sendmmsg"}


def out_kmod(table):
    """kmod/calls.inc: what the module carries out, and how."""
    lines = ["/* SPDX-License-Identifier: GPL-2.0-only */",
             "/* Made by scripts/gen-syscalls.py --out-kmod; see calls.c. */"]
    for call in table.ordered():
        if call.call_class == "absent":
            continue
        refused = call.who == "self"
        marks = ["FXK_OUT"] if call.ready == "out" else []
        # close_range says itself which ones, and closes without a record.
        if "closes" in call.marks and call.name != "close_range":
            marks.append("FXK_CLOSES")
        if call.name in LOUD:
            marks.append("FXK_LOUD")
        name = "NONE" if refused else call.call_class.upper()
        lines.append(f"\tCALL({call.number}, {name}, {call.nr_args}, "
                     f"{' | '.join(marks) or '0'}), /* {call.name} */")
    return lines


def out_decls(table):
    """flexsc/calls.h: the prototypes."""
    structs = sorted({name for w in table.wrappers for p in w.params
                      for name in STRUCT_RE.findall(p)} | {"flexsc_event"})
    lines = c_head("Typed wrappers that post system calls: flexsc_calls(3).")
    lines += ["#ifndef FLEXSC_CALLS_H", "#define FLEXSC_CALLS_H", ""]
    lines += [f"#include <{name}.h>" for name in (
        "poll", "signal", "stddef", "stdint", "sys/select", "sys/socket",
        "sys/types", "sys/wait", "time")]
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += [f"struct {name};" for name in structs]
    lines += ["",
              "/*",
              " * All return 0 when the call is posted, or -errno of the",
              " * posting.  The call's own result is in the event when its",
              " * handler runs.  Buffers stay the caller's and must live",
              " * until then.  Call them on the loop's thread; none is",
              " * async-signal-safe.",
              " */",
              "#pragma GCC visibility push(default)"]
    for title, wrappers in table.grouped():
        lines += ["", f"/* {title} */"]
        for wrapper in wrappers:
            fd_name = "@" + wrapper.fd_name() if wrapper.call.fd >= 0 else ""
            lines += ["", f"/** flexsc_{wrapper.name}() - "
                      f"{wrapper.call.name}: "
                      f"{wrapper.call.behaviour(fd_name)}. */"]
            lines += c_wrap(f"int flexsc_{wrapper.name}",
                            ["struct flexsc_event *ev", *wrapper.params],
                            ");")
    lines += ["", "#pragma GCC visibility pop", "",
              "#ifdef __cplusplus", "}", "#endif", "",
              "#endif /* FLEXSC_CALLS_H */"]
    return lines


def out_wrappers(table):
    """call-wrappers.c: the bodies."""
    lines = c_head("Bodies of the typed wrappers; they only widen arguments.")
    lines += ['#include "loop/loop.h"']
    for _, wrappers in table.grouped():
        for wrapper in wrappers:
            args = [wrapper.argument(a) for a in wrapper.args]
            short = len(args) <= SHORT_ARGS
            args += ["0L"] * ((SHORT_ARGS if short else POST_ARGS) - len(args))
            lines.append("")
            lines += c_wrap(f"int flexsc_{wrapper.name}",
                            ["struct flexsc_event *ev", *wrapper.params], ")")
            lines.append("{")
            lines += ["\t" + line for line in c_wrap(
                "return " + ("fx_post_short" if short else "fx_post_long"),
                ["ev", wrapper.number(), *args], ");", 80 - 8)]
            lines.append("}")
    return lines


ARGUMENTS = set("dAiuxp~gLOo0RwPfa@+DTGEeHcIqQh#$%CJsSBVMknyt2zjFU*bvmKlNXr&!Y134567|-_")
STRUCT = 0x80  # of the letters of structures: twice their number, 1 more: after the call


class Arguments:
    """arguments.tbl: what the arguments of calls are, by name."""

    def __init__(self, path, table):
        self.structs, self.kinds = [], {}
        calls = {call.name: call for call in table.calls.values()}
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                words = line.split()
                if not words or line.startswith("#"):
                    continue
                try:
                    if words[0] == "struct":
                        self.structs.append((words[1], int(words[2])))
                    else:
                        self.take(words, calls)
                except (TableError, ValueError):
                    raise TableError(f"{path}:{number}: '{line.strip()}' "
                                     "does not fit") from None

    def take(self, words, calls):
        """Every line must fit its call."""
        name, text = words
        kinds = [self.letter(*match.groups()) for match in
                 re.finditer(r"\{(\w+)\}|\[(\w+)\]|(.)", text)]
        if name not in calls or name in self.kinds or len(kinds) != calls[name].nr_args:
            raise TableError(name)
        self.kinds[name] = "".join(kinds)

    def letter(self, before, after, plain):
        """One kind, as C."""
        if plain:
            if plain not in ARGUMENTS:
                raise TableError(plain)
            return plain
        names = [name for name, _ in self.structs]
        return chr(STRUCT + 2 * names.index(before or after) + bool(after))

    def c_string(self, call):
        """What is not listed is numbers."""
        kinds = self.kinds.get(call.name, "x" * call.nr_args)
        return "".join(c if ord(c) < STRUCT else f"\\{ord(c):03o}" for c in kinds)


def out_arguments(table, path):
    """flexsc/arguments.h: a letter for each argument of each call."""
    arguments = Arguments(path, table)
    lines = c_head("What the arguments of calls are: see src/call/arguments.tbl.")
    lines += ["#ifndef FLEXSC_ARGUMENTS_H", "#define FLEXSC_ARGUMENTS_H", "",
              "/* Structures: what lies there before the call, and, 1 more, after it. */",
              "enum flexsc_struct {"]
    lines += [f"\tFLEXSC_STRUCT_{name.upper()} = {STRUCT + 2 * n}," for n, (name, _) in
              enumerate(arguments.structs)]
    lines += ["};", "", "static const unsigned short flexsc_struct_size[] = {",
              "\t" + ", ".join(str(size) for _, size in arguments.structs), "};", "",
              "static const char *const flexsc_arguments[512] = {"]
    for call in table.ordered():
        if call.call_class != "absent":
            lines.append(f'\t[{call.number}] = "{arguments.c_string(call)}", '
                         f'/* {call.name} */')
    return lines + ["};", "", "#endif /* FLEXSC_ARGUMENTS_H */"]


def fill(template, parts):
    """The lines of TEMPLATE with each @NAME@ line replaced by its part."""
    lines = []
    with open(template, encoding="utf-8") as file:
        for line in file.read().splitlines():
            match = re.fullmatch(r"@(\w+)@", line)
            if match:
                lines += parts[match.group(1)]
            else:
                lines.append(line)
    return lines


def mdoc(text):
    """Text that mdoc takes literally."""
    return text.replace("\\", "\\e").replace("-", "\\-")


def out_man3(table, template):
    """flexsc_calls(3): prototypes by group, functions by what they wait for."""
    synopsis = []
    for title, wrappers in table.grouped():
        synopsis.append(f".Ss {title}")
        for wrapper in wrappers:
            synopsis += [".Ft int", f".Fo flexsc_{wrapper.name}"]
            synopsis += [f'.Fa "{param}"' for param in
                         ["struct flexsc_event *ev", *wrapper.params]]
            synopsis.append(".Fc")
    kinds = (("do not block", "never", ""),
             ("may wait for storage or a look-up, but end by themselves",
              "disk", ""),
             ("wait until the descriptor is readable", "fd", "in"),
             ("wait until the descriptor is writable", "fd", "out"),
             ("may wait for ever", "wait", ""))
    waits = [".Bl -tag -width Ds"]
    for title, call_class, ready in kinds:
        names = sorted(w.name for w in table.wrappers
                       if w.call.call_class == call_class
                       and (call_class != "fd" or w.call.ready == ready))
        waits.append(f".It These {title}:")
        waits += [f".Fn flexsc_{name} ," for name in names[:-1]]
        waits.append(f".Fn flexsc_{names[-1]} .")
    waits.append(".El")
    return fill(template, {"SYNOPSIS": synopsis, "WAITS": waits})


def call_columns(call):
    """The columns of the reference table, as words."""
    fd = "" if call.fd < 0 else str(call.fd + 1)
    if call.ready:
        fd += " " + call.ready
    uring = call.uring + ("?" if call.uring_partial else "")
    return [str(call.number), call.name, call.call_class,
            "" if call.who == "-" else call.who, fd, uring]


def out_man7(table, template):
    """flexsc_syscalls(7): the whole table, reasons, remarks."""
    rows = []
    for call in table.ordered():
        cells = [mdoc(cell) or "\\-" for cell in call_columns(call)]
        rows.append(".It " + " Ta ".join(cells))
    def texts(refused):
        lines = []
        for call in table.ordered():
            if call.text and (call.call_class == "none") == refused:
                lines += [f".It {mdoc(call.name)}", mdoc(call.text) + "."]
        return lines
    return fill(template, {"TABLE": rows, "REFUSED": texts(True),
                           "REMARKS": texts(False)})


def out_md(table):
    """The same reference as Markdown."""
    lines = ["<!-- SPDX-License-Identifier: MIT -->",
             "<!-- Generated by scripts/gen-syscalls.py from "
             "src/call/syscalls.tbl; do not edit. -->",
             "# System calls", "",
             "Every x86-64 system call number that Linux 6.18 knows and what "
             "posting it means; flexsc_syscalls(7) explains the columns. "
             "`?` after an io_uring operation: only for some arguments.", "",
             "| number | call | class | who | descriptor | io_uring | "
             "wrapper | remark |",
             "|--:|---|---|---|---|---|---|---|"]
    wrappers = {}
    for wrapper in table.wrappers:
        wrappers.setdefault(wrapper.call.number, []).append(
            f"`flexsc_{wrapper.name}`")
    for call in table.ordered():
        cells = call_columns(call)
        cells[1] = f"`{call.name}`"
        cells += [", ".join(wrappers.get(call.number, [])), call.text]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main():
    """Write every output that was asked for."""
    parser = argparse.ArgumentParser(
        description="Generate code and documentation from syscalls.tbl.")
    parser.add_argument("table", metavar="TBL")
    for kind in ("table", "kmod", "decls", "wrappers", "arguments", "man3", "man7",
                 "md"):
        parser.add_argument(f"--out-{kind}", metavar="FILE")
    parser.add_argument("--arguments", metavar="FILE",
                        default=ROOT / "src" / "call" / "arguments.tbl")
    parser.add_argument("--man3-in", metavar="FILE",
                        default=ROOT / "man" / "flexsc_calls.3.in")
    parser.add_argument("--man7-in", metavar="FILE",
                        default=ROOT / "man" / "flexsc_syscalls.7.in")
    options = parser.parse_args()
    try:
        table = Table(options.table)
    except TableError as error:
        sys.exit(f"gen-syscalls: {error}")
    outputs = (
        (options.out_table, lambda: out_table(table)),
        (options.out_kmod, lambda: out_kmod(table)),
        (options.out_decls, lambda: out_decls(table)),
        (options.out_wrappers, lambda: out_wrappers(table)),
        (options.out_arguments, lambda: out_arguments(table, options.arguments)),
        (options.out_man3, lambda: out_man3(table, options.man3_in)),
        (options.out_man7, lambda: out_man7(table, options.man7_in)),
        (options.out_md, lambda: out_md(table)))
    for path, make in outputs:
        if not path:
            continue
        try:
            lines = make()
        except TableError as error:
            sys.exit(f"gen-syscalls: {error}")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
