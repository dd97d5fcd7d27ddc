#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Asks a kernel that looks for lost memory whether the module has lost any."""

import pathlib
import sys
import time

LEAKS = pathlib.Path("/sys/kernel/debug/kmemleak")
# An object counts as lost when nothing points to it for so long.
OLD_S = 6


def main():
    if not LEAKS.exists():
        print("SKIP: this kernel does not look for lost memory (kmemleak)")
        return 77
    LEAKS.write_text("scan", encoding="ascii")
    time.sleep(OLD_S)
    LEAKS.write_text("scan", encoding="ascii")
    found = LEAKS.read_text(encoding="utf-8", errors="replace")
    print(found)
    return 1 if "fxk_" in found or "flexsc" in found else 0


if __name__ == "__main__":
    sys.exit(main())
