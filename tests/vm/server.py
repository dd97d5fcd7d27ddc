#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A server on engine kmod, and that the module has had its calls.

    tests/vm/server.py TEST FLEXSC CASE...     cases of tests/servers/TEST-test.py
"""

import fcntl
import os
import pathlib
import struct
import subprocess
import sys

DEVICE = "/dev/flexsc"
SIZE, ENTRIES = 288, 21  # struct flexsc_stats; all.entries in 64-bit words
REQUEST = 2 << 30 | SIZE << 16 | 0xfc << 8 | 8  # FLEXSC_IOC_STATS


def nr_entries():
    fd = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    stats = bytearray(SIZE)
    fcntl.ioctl(fd, REQUEST, stats)
    os.close(fd)
    return struct.unpack(f"{SIZE // 8}Q", stats)[ENTRIES]


def main():
    if not os.path.exists(DEVICE):
        print(f"SKIP: no {DEVICE}")
        return 77
    os.chmod(DEVICE, 0o666)  # not all servers are root
    before = nr_entries()
    tests = pathlib.Path(__file__).resolve().parents[1] / "servers"
    done = subprocess.run([tests / f"{sys.argv[1]}-test.py", *sys.argv[2:], "--option=--engine", "--option=kmod"],
                          check=False)
    if nr_entries() - before < 10:
        print(f"the module had {nr_entries() - before} calls of it")
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
