# SPDX-License-Identifier: MIT
"""An unmodified BIND name server, authoritative for one zone of its own."""

import pathlib
import socket
import struct

from . import process

HOSTS = 1000
CONFIG = """
options {{
    directory "{root}";
    pid-file "{root}/named.pid";
    session-keyfile "{root}/session.key";
    listen-on port {port} {{ 127.0.0.1; }};
    listen-on-v6 {{ none; }};
    recursion no;
    dnssec-validation no;
    notify no;
}};
controls {{ }};
zone "example.test" {{ type primary; file "{root}/zone"; }};
"""


def question(name, number=1):
    """A query for the address of @name."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"


class Named(process.Server):
    """@threads: its worker threads."""

    name = "BIND"

    def __init__(self, runner, scratch, threads=4, cpus=None):
        program = process.find("named")
        self.root = pathlib.Path(scratch)
        self.root.mkdir(parents=True, exist_ok=True)
        self.port = process.free_port()
        (self.root / "named.conf").write_text(CONFIG.format(root=self.root, port=self.port))
        zone = ["$TTL 300", "@ SOA ns.example.test. root.example.test. 1 1h 1h 1w 1h",
                "@ NS ns", "ns A 127.0.0.1"]
        zone += [f"host{i} A 10.0.{i // 250}.{i % 250 + 1}" for i in range(HOSTS)]
        (self.root / "zone").write_text("\n".join(zone) + "\n")
        self.queries = self.root / "queries"
        self.queries.write_text("".join(f"host{i}.example.test A\n" for i in range(HOSTS)))
        super().__init__(runner, [program, "-g", "-n", str(threads), "-c",
                                  str(self.root / "named.conf")],
                         self.root / "output", cpus)
        self.wait_ready(self.answers)

    def answers(self):
        """It fails at first, until the zone is read."""
        answer = self.ask_udp("ns.example.test", 0.2)
        return answer is not None and answer[1] & 15 == 0

    def ask_udp(self, name, seconds=5):
        """The answer's bytes without its number, or None."""
        with socket.socket(type=socket.SOCK_DGRAM) as s:
            s.settimeout(seconds)
            try:
                s.connect(("127.0.0.1", self.port))
                s.send(question(name))
                return s.recv(4096)[2:]
            except OSError:
                return None

    def ask_tcp(self, name):
        with socket.create_connection(("127.0.0.1", self.port), 5) as s:
            query = question(name)
            s.sendall(struct.pack(">H", len(query)) + query)
            stream = s.makefile("rb")
            size, = struct.unpack(">H", stream.read(2))
            return stream.read(size)[2:]
