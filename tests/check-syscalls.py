#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check src/call/syscalls.tbl against itself and the kernel's headers.

Usage: check-syscalls.py [--strict] [TBL] [UNISTD_64_H]
One line per failure and exit status 1; else a summary and 0.  77: no headers.
Numbers newer than the table are told of, and fail only with --strict: a newer
kernel does not make an installed FlexSC wrong.
"""

import importlib.util
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
           "/usr/include/asm/unistd_64.h")
# The kernel left these out so that later numbers agree on all machines.
GAP = range(337, 424)
NEWEST = 469
MIN_WRAPPERS = 90
# "self" runs on the owner, which must not wait for ever.
SELF_CLASSES = ("never", "disk")
RETURN_FD = re.compile(r"(open(at2?)?|creat|dup[23]?|socket|accept4?|"
                       r"(epoll|timerfd|memfd|io_uring|inotify|fanotify)_"
                       r"(create1?|init1?|setup)|eventfd2?|signalfd4?|"
                       r"memfd_secret|pidfd_(open|getfd)|userfaultfd)")


def load_generator():
    """The parser of the table lives in the generator."""
    path = ROOT / "scripts" / "gen-syscalls.py"
    spec = importlib.util.spec_from_file_location("gen_syscalls", path)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def header_calls(path):
    """Number to name, as the kernel's header has them."""
    pattern = re.compile(r"#define __NR_(\w+)\s+(\d+)")
    with open(path, encoding="utf-8") as file:
        return {int(m.group(2)): m.group(1)
                for m in map(pattern.match, file) if m}


def check_numbers(table):
    """Every number exists once, the gap excepted; names differ."""
    for number in range(NEWEST + 1):
        if (number in table.calls) == (number in GAP):
            yield f"{number}: " + ("does not exist" if number in GAP
                                   else "is missing")
    if max(table.calls) > NEWEST:
        yield f"{max(table.calls)}: is newer than NEWEST in this check"
    names = [call.name for call in table.calls.values()]
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"{name}: has two numbers"


def check_call(call):
    """One line agrees with itself."""
    if not 0 <= call.nr_args <= 6:
        yield f"{call.nr_args} arguments"
    if call.fd >= call.nr_args:
        yield f"descriptor {call.fd} of {call.nr_args} arguments"
    if (call.call_class == "fd") != bool(call.ready):
        yield f"class {call.call_class} with readiness '{call.ready}'"
    if call.who == "self" and call.call_class not in SELF_CLASSES:
        yield f"class {call.call_class} must not run on the owner"
    if call.call_class == "none" and not call.text:
        yield "refused without a reason"
    if call.uring_partial and "io_uring: " not in call.text:
        yield "the text does not say which arguments io_uring takes"
    if "closes" in call.marks and call.fd < 0:
        yield "closes no known descriptor"
    if call.call_class in ("none", "absent"):
        if (call.who, call.fd, call.uring, call.marks) != ("-", -1, "", []):
            yield "never made, yet it has more than a class"
        if call.wrapper:
            yield "never made, yet it has a wrapper"
    elif call.who == "-":
        yield "who may make it?"
    elif RETURN_FD.fullmatch(call.name) and "newfd" not in call.marks:
        yield "returns a descriptor and lacks the mark newfd"


def check_wrapper(wrapper, groups):
    """A wrapper passes what its call reads."""
    call = wrapper.call
    if wrapper.group not in groups:
        yield f"unknown group '{wrapper.group}'"
    if len(wrapper.args) != call.nr_args:
        yield f"{len(wrapper.args)} arguments where {call.name} reads " \
              f"{call.nr_args}"
    for arg in wrapper.args:
        if arg not in wrapper.names and not re.fullmatch(r"NULL|\d+", arg):
            yield f"argument '{arg}' is no parameter"
    for name in wrapper.names:
        if name not in wrapper.args:
            yield f"parameter '{name}' is not passed on"
    if len(set(wrapper.names)) != len(wrapper.names) or "ev" in wrapper.names:
        yield "two parameters of one name"
    if call.call_class == "none":
        yield f"{call.name} is refused"
    if 0 <= call.fd < len(wrapper.args):
        param = wrapper.args[call.fd]
        kinds = [p for p, n in zip(wrapper.params, wrapper.names)
                 if n == param]
        if not kinds or not re.match(r"(unsigned )?int \w+$", kinds[0]):
            yield f"argument {call.fd} is no descriptor"


def check_headers(table, header):
    """The kernel agrees about numbers and names."""
    for number, name in sorted(header.items()):
        call = table.calls.get(number)
        if call and call.name != name:
            yield f"{number}: is {name} in the header, {call.name} here"
        elif not call and number <= NEWEST:
            yield f"{number}: {name} is in the header only"
    for number, call in sorted(table.calls.items()):
        if number <= max(header) and number not in header:
            # uretprobe and uprobe came late to low numbers
            if call.call_class != "none":
                yield f"{number}: {call.name} is not in the header"


def check_module(lines):
    """What the module carries out, kept in the tree, is what the table says."""
    path = ROOT / "kmod" / "calls.inc"
    if path.read_text(encoding="utf-8").splitlines() != lines:
        yield "kmod/calls.inc is not what gen-syscalls.py --out-kmod makes"


def check_all(table, header):
    """Every failure, as a line."""
    yield from check_numbers(table)
    for call in table.ordered():
        yield from (f"{call.name}: {fault}" for fault in check_call(call))
    for wrapper in table.wrappers:
        yield from (f"flexsc_{wrapper.name}: {fault}"
                    for fault in check_wrapper(wrapper, table.groups))
    names = [wrapper.name for wrapper in table.wrappers]
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"flexsc_{name}: stands twice"
    if len(names) < MIN_WRAPPERS:
        yield f"{len(names)} wrappers, fewer than {MIN_WRAPPERS}"
    yield from check_headers(table, header)


def main(argv):
    """Run all checks."""
    strict = "--strict" in argv
    paths = [arg for arg in argv if arg != "--strict"]
    tbl = paths[0] if paths else ROOT / "src" / "call" / "syscalls.tbl"
    headers = [path for path in paths[1:2] or HEADERS
               if pathlib.Path(path).exists()]
    if not headers:
        print("skipped: no asm/unistd_64.h; install the kernel's headers")
        return 77
    generator = load_generator()
    try:
        table = generator.Table(tbl)
    except generator.TableError as error:
        print(error)
        return 1
    header = header_calls(headers[0])
    if not header:
        print(f"{headers[0]}: no __NR_ definitions")
        return 1
    failures = list(check_all(table, header))
    if not paths:
        failures += check_module(generator.out_kmod(table))
    newer = [f"{number} {name}" for number, name in sorted(header.items())
             if number > NEWEST]
    if newer and strict:
        failures.append("newer than the table: " + ", ".join(newer))
    if failures:
        print("\n".join(failures))
        return 1
    refused = sum(c.call_class == "none" for c in table.calls.values())
    print(f"{len(table.calls)} calls, {refused} refused, "
          f"{len(table.wrappers)} wrappers; {len(header)} numbers agree with "
          f"{headers[0]}"
          + (f"; newer than the table: {', '.join(newer)}" if newer else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
