#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `flexsc doctor` says: here, on one processor, without io_uring.

    tests/check-doctor.py FLEXSC

The text fits 80 columns, the JSON has its fields and agrees with the text, and
what was taken away is named.
"""

import ctypes
import errno
import json
import os
import struct
import subprocess
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SYS_IO_URING_SETUP = 425
RET_ALLOW, RET_ERRNO = 0x7fff0000, 0x00050000
ENGINES = ["kmod", "kcore", "hybrid", "uthread", "poll", "uring", "sync"]
FIELDS = {"kernel": str, "cpu": str, "cpus": int, "cpus_online": int,
          "mitigations": str, "engines": list, "auto": str, "auto_reason": str,
          "fsgsbase": bool, "membarrier": bool, "nofile_soft": int,
          "nofile_hard": int, "crossing_ns": float, "getppid_ns": float,
          "disturbed": bool, "module": dict}
MODULE = {"installed", "loaded", "device", "usable", "preempt_notifiers",
          "signatures_enforced", "secure_boot", "lockdown"}


def forbid_io_uring():
    """A seccomp filter: io_uring_setup fails with EPERM, as in containers."""
    program = b"".join(struct.pack("HBBI", *step) for step in (
        (0x20, 0, 0, 0),                        # load the number
        (0x15, 0, 1, SYS_IO_URING_SETUP),       # is it this one?
        (0x06, 0, 0, RET_ERRNO | errno.EPERM),
        (0x06, 0, 0, RET_ALLOW)))
    steps = ctypes.create_string_buffer(program)
    filter_ = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or \
       libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def one_processor():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def ask(command, before):
    return subprocess.run(command, preexec_fn=before, capture_output=True, text=True,
                          check=True, timeout=50).stdout


def faults(flexsc, before):
    """(what is wrong, the JSON)"""
    text = ask([flexsc, "doctor"], before)
    found = [f"more than 80 columns: {line}" for line in text.splitlines()
             if len(line) > 80]
    facts = json.loads(ask([flexsc, "doctor", "--json"], before))
    found += [f"{name} is {facts.get(name)!r}" for name, kind in FIELDS.items()
              if not isinstance(facts.get(name), kind)]
    engines = {engine["name"]: engine for engine in facts["engines"]}
    if list(engines) != ENGINES:
        found.append(f"the engines are {list(engines)}")
    for name, engine in engines.items():
        said = f"{name:8} " + ("usable" if engine["usable"] else "not usable")
        if said not in text:
            found.append(f"the text does not say '{said}'")
        if engine["usable"] != (engine["overhead_ns"] is not None):
            found.append(f"{name}: overhead {engine['overhead_ns']}")
        if not engine["reason"]:
            found.append(f"{name}: no reason")
    if set(facts["module"]) != MODULE:
        found.append(f"of the module it says {facts['module']}")
    elif facts["module"]["usable"] and not engines.get("kmod", {}).get("usable", True):
        found.append("the device is usable, the engine is not")
    if "\nModule\n  flexsc.ko    " not in text:
        found.append("the text says nothing of the module")
    if f"Automatic choice: {facts['auto']}\n" not in text:
        found.append("the text names another automatic choice")
    return found, facts


def main():
    flexsc, bad = sys.argv[1], []
    for title, before in (("here", None), ("on one processor", one_processor),
                          ("without io_uring", forbid_io_uring)):
        found, facts = faults(flexsc, before)
        if before is one_processor and (facts["cpus"] != 1 or
                                        facts["roundtrip_ns"] is not None):
            found.append(f"{facts['cpus']} processors, {facts['roundtrip_ns']} ns")
        uring = facts["engines"][ENGINES.index("uring")]
        if before is forbid_io_uring and (uring["usable"] or
                                          "seccomp" not in uring["reason"]):
            found.append(f"uring: {uring['usable']}, {uring['reason']}")
        bad += [f"{title}: {fault}" for fault in found]
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
