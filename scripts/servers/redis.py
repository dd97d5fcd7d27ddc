# SPDX-License-Identifier: MIT
"""An unmodified Redis server with I/O threads."""

import os
import pathlib
import subprocess

from . import process


class Redis(process.Server):
    """@threads: of I/O, the main one among them."""

    name = "Redis"

    def __init__(self, runner, scratch, threads=4, cpus=None, options=()):
        # One program with two names; Debian's redis-tools has it under this one.
        tool = process.find("redis-check-rdb")
        self.root = pathlib.Path(scratch)
        self.root.mkdir(parents=True, exist_ok=True)
        program = str(self.root / "redis-server")
        os.symlink(tool, program)
        self.port = process.free_port()
        super().__init__(runner, [program, "--port", str(self.port), "--bind", "127.0.0.1",
                                  "--dir", str(self.root), "--save", "", "--io-threads",
                                  str(threads), "--io-threads-do-reads", "yes", *options],
                         self.root / "output", cpus)
        self.wait_ready(lambda: self.cli("ping", check=False) == "PONG")

    def cli(self, *words, check=True):
        done = subprocess.run([process.find("redis-cli"), "-p", str(self.port), *words],
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode and check:
            raise process.Failure(f"redis-cli {words}: {done.stdout}{done.stderr}")
        return done.stdout.strip()
