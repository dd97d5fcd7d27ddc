# SPDX-License-Identifier: MIT
"""An unmodified memcached."""

import os
import pathlib
import socket

from . import process


class Memcached(process.Server):
    """@threads: its worker threads."""

    name = "memcached"

    def __init__(self, runner, scratch, threads=4, cpus=None):
        program = process.find("memcached")
        root = pathlib.Path(scratch)
        root.mkdir(parents=True, exist_ok=True)
        self.port = process.free_port()
        user = ["-u", "root"] if os.geteuid() == 0 else []
        super().__init__(runner, [program, "-l", "127.0.0.1", "-p", str(self.port), "-U", "0",
                                  "-t", str(threads), "-c", "4096", *user],
                         root / "output", cpus)
        self.wait_ready(lambda: process.accepts(self.port))

    def connect(self):
        return Session(self.port)


class Session:
    """One connection that speaks the text protocol."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.stream = self.socket.makefile("rwb")

    def line(self, text, body=None):
        self.stream.write(text.encode() + b"\r\n" + (body + b"\r\n" if body is not None else b""))
        self.stream.flush()
        return self.stream.readline().strip().decode()

    def get(self, key):
        head = self.line(f"get {key}")
        if head == "END":
            return None
        body = self.stream.read(int(head.split()[3]) + 2)[:-2]
        self.stream.readline()
        return body

    def close(self):
        self.stream.close()
        self.socket.close()
