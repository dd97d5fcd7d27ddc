# SPDX-License-Identifier: MIT
"""May a process look at another one of the same user here? For tests of that."""

import ctypes
import os
import subprocess
import sys


class Part(ctypes.Structure):
    """struct iovec"""
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def may_observe():
    """Tried on a process that is no child of the one which tries."""
    text = ctypes.create_string_buffer(b"x" * 8)
    script = "import sys; sys.path.insert(0, sys.argv[1]); import observing; " \
             "sys.exit(not observing.may_read(int(sys.argv[2]), int(sys.argv[3])))"
    done = subprocess.run([sys.executable, "-c", script, os.path.dirname(__file__),
                           str(os.getpid()), str(ctypes.addressof(text))], check=False)
    return done.returncode == 0


def may_read(pid, address):
    here = ctypes.create_string_buffer(8)
    local, remote = Part(ctypes.addressof(here), 8), Part(address, 8)
    read = ctypes.CDLL(None).process_vm_readv
    return read(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) == 8


def skip_unless_observing():
    if not may_observe():
        print("SKIP: processes may not look at each other here (yama, or a container)")
        sys.exit(77)
