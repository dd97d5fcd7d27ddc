# SPDX-License-Identifier: MIT
"""memcached: the distribution's, or ports/memcached and what it is beside."""

import os
import pathlib
import socket

from . import process

ORIGINAL = "libevent"
TOOLS = ()


class Engine(process.Runner):
    """The port with an engine of FlexSC, or the original of the same source."""

    def __init__(self, engine, port):
        original = engine == ORIGINAL
        super().__init__(engine if original else f"flexsc-{engine}",
                         env={} if original else {"FLEXSC_ENGINE": engine})
        self.program = str(pathlib.Path(port).parents[1] / "original/memcached"
                           if original else port)

    @property
    def threads(self):
        return False


def original(port):
    return Engine(ORIGINAL, port)


def build(folder, *options):
    """Both, built if need be: the port's path. Absent without a source package."""
    return process.built("memcached", folder, *options)


class Memcached(process.Server):
    """@threads: its worker threads; @options: of the command line."""

    name = "memcached"

    def __init__(self, runner, scratch, threads=4, cpus=None, options=()):
        program = getattr(runner, "program", None) or process.find("memcached")
        root = pathlib.Path(scratch)
        root.mkdir(parents=True, exist_ok=True)
        self.port = process.free_port()
        user = ["-u", "root"] if os.geteuid() == 0 else []
        super().__init__(runner, [program, "-l", "127.0.0.1", "-p", str(self.port), "-U", "0",
                                  "-t", str(threads), "-c", "4096", *user, *options],
                         root / "output", cpus)
        self.wait_ready(lambda: process.accepts(self.port))

    def connect(self):
        return Session(self.port)

    def keep(self, names, body):
        """Stores the same value under all of these names."""
        session = self.connect()
        for name in names:
            session.stream.write(b"set %s 0 0 %d noreply\r\n%s\r\n" %
                                 (name.encode(), len(body), body))
        said = session.line("mn")
        session.close()
        if said != "MN":
            raise process.Failure(f"memcached says {said}")

    def worker_tid(self):
        """Of its first worker thread."""
        for tid in sorted(map(int, os.listdir(f"/proc/{self.pid}/task"))):
            name = pathlib.Path(f"/proc/{self.pid}/task/{tid}/comm").read_text().strip()
            if name == "mc-worker":
                return tid
        raise process.Failure("no thread of memcached's is called mc-worker")


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
