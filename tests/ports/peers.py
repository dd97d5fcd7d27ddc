# SPDX-License-Identifier: MIT
"""What stands behind nginx in the tests: echoes, an upgrade, FastCGI."""

import http.server
import socketserver
import struct
import threading

RECORD = struct.Struct(">BBHHBx")
BEGIN, PARAMS, STDIN, STDOUT, END = 1, 4, 5, 6, 3


class Thread:
    """A server of socketserver's kind in a thread, as long as this is open."""

    def __init__(self, *servers):
        self.servers = servers
        for server in servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()


class Asked(http.server.BaseHTTPRequestHandler):
    """POST comes back; GET /wait is never answered; /chat is upgraded."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path != "/chat":
            self.connection.settimeout(20)
            self.connection.recv(1)  # until nginx gives up
            self.close_connection = True
            return
        self.send_response(101)
        self.send_header("Upgrade", "chat")
        self.send_header("Connection", "Upgrade")
        self.end_headers()
        self.wfile.flush()
        while line := self.rfile.readline():
            self.wfile.write(line)
        self.close_connection = True


class Raw(socketserver.BaseRequestHandler):
    def handle(self):
        while part := self.request.recv(65536):
            self.request.sendall(part)


class Datagram(socketserver.BaseRequestHandler):
    def handle(self):
        self.request[1].sendto(self.request[0], self.client_address)


class Echo(Thread):
    def __init__(self):
        web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Asked)
        raw = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Raw)
        udp = socketserver.UDPServer(("127.0.0.1", 0), Datagram)
        self.port, self.raw_port = web.server_address[1], raw.server_address[1]
        self.udp_port = udp.server_address[1]
        super().__init__(web, raw, udp)


def params_of(data):
    """Name-value pairs, whose lengths have one byte or four."""
    found, at = {}, 0

    def length():
        nonlocal at
        if data[at] < 128:
            at += 1
            return data[at - 1]
        at += 4
        return struct.unpack(">I", data[at - 4:at])[0] & 0x7fffffff
    while at < len(data):
        name, value = length(), length()
        found[data[at:at + name].decode()] = data[at + name:at + name + value].decode()
        at += name + value
    return found


class Responder(socketserver.StreamRequestHandler):
    """One request a connection: query, method and body come back."""

    def record(self):
        head = self.rfile.read(RECORD.size)
        if len(head) < RECORD.size:
            return None, b""
        _, kind, _, size, padding = RECORD.unpack(head)
        data = self.rfile.read(size)
        self.rfile.read(padding)
        return kind, data

    def handle(self):
        params, body = b"", b""
        while True:
            kind, data = self.record()
            if kind is None or (kind == STDIN and not data):
                break
            params += data if kind == PARAMS else b""
            body += data if kind == STDIN else b""
        asked = params_of(params)
        self.server.owner.requests += 1
        text = (f"Content-Type: text/plain\r\n\r\n{asked['QUERY_STRING']} "
                f"{asked['REQUEST_METHOD']} ").encode() + body
        for kind, data in ((STDOUT, text), (STDOUT, b""), (END, bytes(8))):
            self.wfile.write(RECORD.pack(1, kind, 1, len(data), 0) + data)


class FastCGI(Thread):
    def __init__(self, path):
        self.path, self.requests = path, 0
        server = socketserver.ThreadingUnixStreamServer(str(path), Responder)
        server.owner = self
        super().__init__(server)
        path.chmod(0o777)
