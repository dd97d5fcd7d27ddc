#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/vm-run: what it passes on, and what makes it fail."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/vm-run"
LOADER = importlib.machinery.SourceFileLoader("vm_run", str(TOOL))
vm_run = importlib.util.module_from_spec(importlib.util.spec_from_loader("vm_run", LOADER))
sys.dont_write_bytecode = True
LOADER.exec_module(vm_run)


def run(*command, options=(), **more):
    return subprocess.run([TOOL, "--timeout", "100", *options, "--", *command],
                          capture_output=True, check=False, timeout=150, **more)


class Log(unittest.TestCase):
    """Which lines of a kernel's log are bad news."""

    def test_bad_news(self):
        for line in ("[    1.7] WARNING: CPU: 0 PID: 1 at fs/x.c:2 a+0x11/0x1000 [hello]",
                     "[    1.7] ------------[ cut here ]------------",
                     "[   29.1] BUG: kernel NULL pointer dereference, address: 0000000000000008",
                     "[   29.1] BUG: scheduling while atomic: a/12/0x00000002",
                     "[   29.1] kernel BUG at mm/slub.c:448!",
                     "[   29.1] Oops: 0002 [#1] PREEMPT SMP NOPTI",
                     "[   29.1] general protection fault, probably for non-canonical address 0x6b6b",
                     "[   60.2] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [a:123]",
                     "[   60.2] INFO: task kworker/0:1:12 blocked for more than 120 seconds.",
                     "[   60.2] rcu: INFO: rcu_preempt self-detected stall on CPU",
                     "[   60.2] WARNING: possible circular locking dependency detected",
                     "[   60.2] INFO: trying to register non-static key.",
                     "[   60.2][  T123] BUG: KASAN: slab-use-after-free in f+0x1/0x2",
                     "[   60.2] Kernel panic - not syncing: sysrq triggered crash",
                     "[   60.2] refcount_t: underflow; use-after-free.",
                     "[   60.2] list_add corruption. prev->next should be next"):
            self.assertEqual(vm_run.complaints(f"[ 0.1] fine\n{line}\n"), [line])

    def test_no_news(self):
        for line in ("[    0.8] Key type blacklist registered",
                     "[    0.8] RETBleed: WARNING: Spectre v2 mitigation leaves CPU vulnerable",
                     "[    9.0] a.out[77]: segfault at 0 ip 00401136 sp 7ffd error 6 in a.out",
                     "[    9.0] traps: a.out[78] general protection fault ip:40 sp:7f error:0",
                     "[    9.0] flexsc: loading out-of-tree module taints kernel.",
                     "[    9.0] DEBUG: a word in the middle of another: BUGLE"):
            self.assertEqual(vm_run.complaints(line), [])


class Refusals(unittest.TestCase):
    """Where there can be no machine: a reason, and nothing is fetched."""

    def refused(self, *options):
        said = io.StringIO()
        with mock.patch.object(vm_run.os, "geteuid", return_value=1000), \
                mock.patch.object(vm_run.shutil, "which", return_value="/bin/true"), \
                mock.patch.object(vm_run, "fetch", side_effect=AssertionError), \
                mock.patch.object(sys, "argv", ["vm-run", *options, "--", "true"]), \
                contextlib.redirect_stdout(said):
            return vm_run.main(), said.getvalue()

    def test_not_root(self):
        status, said = self.refused()
        self.assertEqual(status, 77)
        self.assertRegex(said, r"^SKIP: virtiofsd needs root .*\n$")
        status, said = self.refused("--tap")
        self.assertEqual(status, 0)
        self.assertRegex(said, r"^1\.\.0 # SKIP virtiofsd needs root .*\n$")


class Machine(unittest.TestCase):
    def test_relays(self):
        """Output byte by byte, both streams apart, status, folder, environment."""
        script = ("printf 'a\\0\\377\\r\\n'; head -c 3000000 /dev/zero; printf end;"
                  "printf 'e\\n\\n' >&2; echo \"$PWD $WORD\" >&2; exit 37")
        with tempfile.TemporaryDirectory() as folder:
            done = run("sh", "-c", script, cwd=folder, env=dict(os.environ, WORD="a  b"))
            self.assertEqual(done.stderr, f"e\n\n{folder} a  b\n".encode())
        self.assertEqual(done.stdout, b"a\0\xff\r\n" + bytes(3000000) + b"end")
        self.assertEqual(done.returncode, 37)

    def test_private(self):
        """Writes stay in the machine; there is a loopback, and processors as asked."""
        script = ("import os, socket, sys\n"
                  "open('made', 'w').write('x'); os.unlink('kept')\n"
                  "assert not os.path.exists('kept')\n"
                  "s = socket.create_server(('127.0.0.1', 0))\n"
                  "socket.create_connection(s.getsockname())\n"
                  "waiting = open('/proc/sys/net/ipv4/tcp_max_tw_buckets').read()\n"
                  "assert int(waiting) > 100000, waiting\n"
                  "print(os.cpu_count(), os.uname().release.split('.')[:2])\n"
                  "os.kill(os.getpid(), 15)\n")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "kept").write_text("kept")
            done = run(sys.executable, "-c", script, cwd=folder,
                       options=["--kernel", "6.1", "--cpus", "2"])
            self.assertEqual((folder / "kept").read_text(), "kept")
            self.assertFalse((folder / "made").exists())
        self.assertEqual((done.stdout, done.stderr), (b"2 ['6', '1']\n", b""))
        self.assertEqual(done.returncode, 128 + 15)

    def test_left_behind(self):
        """What the command started ends with it."""
        done = run("sh", "-c", "(sleep 50; echo late) & echo early")
        self.assertEqual((done.returncode, done.stdout), (0, b"early\n"))

    def test_warning(self):
        done = run("sh", "-c", "echo '<4>WARNING: CPU: 0 PID: 1 at made/up.c:1' >/dev/kmsg")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"made/up.c", done.stderr)

    def test_panic(self):
        """What was said before it arrives: not of the last moment, so it waits some."""
        done = run("sh", "-c", "echo before; sleep 4; echo c >/proc/sysrq-trigger; sleep 20")
        self.assertEqual(done.returncode, 125)
        self.assertEqual(done.stdout, b"before\n")
        self.assertIn(b"sysrq triggered crash", done.stderr)

    def test_timeout(self):
        done = run("sleep", "1000", options=["--timeout", "5"])
        self.assertEqual(done.returncode, 124)
        self.assertIn(b"not finished after 5 s", done.stderr)

    def test_module(self):
        """One that cannot be loaded is the machine's failure, and said."""
        done = run("true", options=["--module=/etc/hostname"])
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"bad /etc/hostname: Exec format error", done.stderr)


if __name__ == "__main__":
    probe = run("true")
    if probe.returncode == 77:
        print(probe.stdout.decode().strip())
        sys.exit(77)
    unittest.main()
