#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""nginx with ports/nginx: what it sees must be what nginx's own module sees.

    nginx-test.py BUILD [--long] [--engine ENGINE]... [CASE...]

A case runs with `use epoll` first, then with `use flexsc` on each engine.
Clients talk bytes over sockets, so answers are compared to the last one.
"""

import argparse
import hashlib
import os
import pathlib
import random
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "servers"))
import cases  # noqa: E402  pylint: disable=wrong-import-position
from cases import expect  # noqa: E402  pylint: disable=wrong-import-position
from servers import load, nginx, process  # noqa: E402  pylint: disable=wrong-import-position
import peers  # noqa: E402  pylint: disable=wrong-import-position,wrong-import-order

LONG = False
BUILD = pathlib.Path()
RANDOM = random.Random(5)
SIZES = (0, 1, 64, 1023, 1024, 8191, 8192, 8193, 65537, 1_000_000)
FILES = {f"{size}.bin": RANDOM.randbytes(size) for size in SIZES}
FILES |= {"page.html": b"<p>hello</p>\n" * 80, "text.txt": b"all work and no play\n" * 3000,
          "with space.html": b"blanks", "folder/index.html": b"the index", "big.bin": b""}
FILES["big.bin"] = FILES["1000000.bin"] * 5
GZIP = "gzip on; gzip_types text/plain; gzip_min_length 100;"


def start(stage, **options):
    options.setdefault("files", FILES)
    return nginx.Nginx(stage.runner, stage.folder() / "nginx", **options)


def connect(server, seconds=30):
    return socket.create_connection(("127.0.0.1", server.port), seconds)


def read_all(conn):
    parts = []
    while part := conn.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)


def ask(server, text, pause=0.0, step=0):
    """All bytes that come back for these, sent at once or in steps."""
    with connect(server) as conn:
        for at in range(0, len(text), step or len(text)):
            conn.sendall(text[at:at + (step or len(text))])
            if pause:
                time.sleep(pause)
        return read_all(conn)


def get(path, *headers, method="GET", last=True, version="1.1"):
    lines = [f"{method} {path} HTTP/{version}", "Host: a", *headers]
    if last:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def plain(answer):
    """Without what differs from one moment to the next."""
    answer = re.sub(rb"(?m)^Date: .*\r$", b"Date:\r", answer)
    answer = re.sub(rb"(?m)^Location: http://a:\d+", b"Location: http://a", answer)
    for mark in set(re.findall(rb"boundary=(\d+)", answer)):
        answer = answer.replace(mark, b"MARK")
    return answer


def digest(answer):
    head = plain(answer)
    return len(head), hashlib.sha256(head).hexdigest()


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else 0


def calm(server, *allowed):
    """Nothing worse than an error in the log."""
    lines = [line for line in server.complaints()
             if not any(word in line for word in allowed)]
    expect(not lines, f"the log says {lines[:5]}")


def uses_engine(server, runner):
    """What was asked for, and not what the library could have in its place."""
    if not runner.module:
        return
    process.wait_until(lambda: "flexsc: engine " in server.error_log(), 20, "its first words")
    used = re.search(r"flexsc: engine (\w+)", server.error_log())[1]
    if used != runner.engine and runner.engine != "auto":
        raise process.Absent(f"engine {runner.engine} is not to be had, but {used}")


def crawl(stage):
    """Files of all sizes, HEAD, ranges, 304, errors, redirections, pipelines."""
    with start(stage, http="etag on;") as server:
        uses_engine(server, stage.runner)
        texts = [get("/" + name.replace(" ", "%20"), method=method, version=version)
                 for name in FILES for method in ("GET", "HEAD") for version in ("1.0", "1.1")]
        tag = re.search(rb'ETag: "(.*?)"', ask(server, get("/1024.bin")))[1].decode()
        for size in (1024, 8193, 1_000_000):
            for part in ("0-0", "10-99", "-5", "900-", "0-9,20-29,1000-1010", "5000000-", "9-3"):
                texts.append(get(f"/{size}.bin", f"Range: bytes={part}"))
        texts += [
            get("/1024.bin", f'If-None-Match: "{tag}"'),
            get("/1024.bin", "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT"),
            get("/1024.bin", "If-Match: \"no\""),
            get("/1024.bin", f'If-Range: "{tag}"', "Range: bytes=0-9"),
            get("/absent"), get("/folder"), get("/folder/"), get("/folder/absent/x"),
            get("/page.html/x"), get("/%00"), get("/../etc/passwd"), get("/" + "x" * 300),
            get("/page.html", "Content-Length: 4", method="POST") + b"body",
            get("/page.html", "Content-Length: 4") + b"body",
            get("/page.html", method="DELETE"), b"nonsense\r\n\r\n",
            get("/" + "x" * 20000), get("/page.html", "X: " + "y" * 6000),
            b"".join(get(f"/{size}.bin", last=False) for size in SIZES) + get("/page.html"),
        ]
        saw = [digest(ask(server, text)) for text in texts]
        saw.append(digest(ask(server, get("/page.html", "X: 1"), pause=0.001, step=7)))
        (server.root / "files/secret").write_bytes(b"x")
        (server.root / "files/secret").chmod(0)
        os.utime(server.root / "files/secret", (1_700_000_000, 1_700_000_000))
        saw.append(digest(ask(server, get("/secret"))))
        for name, body in FILES.items():
            answer = ask(server, get("/" + name.replace(" ", "%20")))
            expect(answer.endswith(b"\r\n\r\n" + body), f"{name} comes back different")
        calm(server)
        return saw, server.quit()


def filters(stage):
    """gzip, chunks, SSI with subrequests, errors with pages, limits of rate."""
    with start(stage, http=GZIP, server="""
            error_page 404 /page.html;
            location /slow/ { alias ROOT/files/; limit_rate 300k; }
            location /ssi/ { alias ROOT/ssi/; ssi on; ssi_types *; }
            location /cached/ { alias ROOT/files/; open_file_cache max=10; }
            location /copied/ { alias ROOT/files/; sendfile off; }
            location /direct/ { alias ROOT/files/; directio 4k; }
            location /plain/ { alias ROOT/files/; flexsc_static off; }
            location /pushed/ { alias ROOT/files/; tcp_nopush on; }
            """ if stage.runner.module else """
            error_page 404 /page.html;
            location /slow/ { alias ROOT/files/; limit_rate 300k; }
            location /ssi/ { alias ROOT/ssi/; ssi on; ssi_types *; }
            location /cached/ { alias ROOT/files/; open_file_cache max=10; }
            location /copied/ { alias ROOT/files/; sendfile off; }
            location /direct/ { alias ROOT/files/; directio 4k; }
            location /plain/ { alias ROOT/files/; }
            location /pushed/ { alias ROOT/files/; tcp_nopush on; }
            """) as server:
        (server.root / "ssi").mkdir()
        (server.root / "ssi/a").write_text(
            '1 <!--#include virtual="/1024.bin" --> 2 <!--#include virtual="/text.txt" --> 3'
            '<!--#include virtual="/absent" --> 4 <!--#include virtual="/0.bin" --> 5')
        saw = [digest(ask(server, get(path, *headers)))
               for path in ("/text.txt", "/page.html", "/0.bin", "/absent")
               for headers in ([], ["Accept-Encoding: gzip"],
                               ["Accept-Encoding: gzip", "Range: bytes=5-50"])]
        answer = ask(server, get("/ssi/a"))
        saw.append(len(answer))
        expect(FILES["1024.bin"] in answer and answer.rstrip().endswith(b"0"), "SSI differs")
        for where in ("slow", "cached", "copied", "direct", "plain", "pushed"):
            saw += [digest(ask(server, get(f"/{where}/{name}")))
                    for name in ("1024.bin", "65537.bin", "0.bin", "absent")]
        saw += [digest(ask(server, get("/direct/big.bin"))),
                digest(ask(server, get("/copied/big.bin")))]
        calm(server)
        return saw, server.quit()


SMALL_BUFFER = "sndbuf=64k"


def slow_reader(server):
    """Asks for much and does not read it yet: it cannot be sent at once."""
    conn = socket.socket()
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 131072)
    conn.settimeout(30)
    conn.connect(("127.0.0.1", server.port))
    conn.sendall(get("/1000000.bin"))
    return conn


def slow_and_gone(stage):
    """Clients that read slowly, stop in the middle, never ask; others go on."""
    with start(stage, listen=SMALL_BUFFER,
               http="client_header_timeout 1s; send_timeout 20s;") as server:
        slow = slow_reader(server)
        for how in range(60):
            with connect(server) as gone:
                gone.sendall(get("/big.bin", last=how % 2)[:[1, 20, 99999][how % 3]])
                if how % 3 == 2 and how % 4 == 0:
                    gone.recv(1000)
                if how % 5 == 0:  # with a reset
                    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                    b"\x01\0\0\0\0\0\0\0")
        silent = connect(server)
        silent.sendall(b"GET /")
        expect(ask(server, get("/1024.bin")).endswith(FILES["1024.bin"]), "others are not served")
        expect(read_all(silent) == b"", "a client that does not ask is not put out")
        body = b""
        while part := slow.recv(50_000):
            body += part
            time.sleep(0.002)
        expect(body.endswith(FILES["1000000.bin"]), f"only {len(body)} bytes came slowly")
        calm(server)
        return server.quit()


def idle(stage):
    """Connections that wait cost nothing, and are served afterwards."""
    number = 5000 if LONG else 400
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit[1] < 2 * number + 200:
        raise process.Absent(f"only {limit[1]} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    with start(stage, main="worker_rlimit_nofile 12000;", http="keepalive_timeout 300;") as server:
        conns = [connect(server) for _ in range(number)]
        for conn in conns[::2]:  # kept alive; the others have never asked
            conn.sendall(get("/1024.bin", last=False))
            conn.recv(4096)
        process.wait_until(lambda: rest(server) < 0.02, 20, "the rest of idle connections")
        for conn in conns:
            conn.sendall(get("/64.bin"))
        for conn in conns:
            expect(read_all(conn).endswith(FILES["64.bin"]), "not served after a rest")
        calm(server)
        return server.quit()


def rest(server):
    """Processor time of all of it in a second."""
    begin = server.cpu_seconds()
    time.sleep(1)
    return server.cpu_seconds() - begin


def certificate(folder):
    done = subprocess.run([process.find("openssl"), "req", "-x509", "-newkey", "rsa:2048",
                           "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout",
                           folder / "key", "-out", folder / "cert"], check=False,
                          capture_output=True)
    expect(done.returncode == 0, f"openssl: {done.stderr[-300:]}")


def with_tls(stage, listen):
    folder = stage.folder()
    certificate(folder)
    return start(stage, listen=listen,
                 server=f"ssl_certificate {folder}/cert; ssl_certificate_key {folder}/key;")


def tls(stage):
    with with_tls(stage, "ssl") as server:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        saw = []
        for name in ("0.bin", "1024.bin", "65537.bin", "big.bin", "absent"):
            with context.wrap_socket(connect(server)) as conn:
                for turn in range(3):
                    conn.sendall(get(f"/{name}", last=turn == 2))
                    time.sleep(0.01)
                saw.append(digest(read_all(conn)))
        with connect(server) as conn:  # not TLS at all; and gone in the handshake
            conn.sendall(get("/1024.bin"))
            saw.append(status(read_all(conn)))
        with connect(server) as conn:
            conn.sendall(b"\x16\x03\x01")
        calm(server)
        return saw, server.quit()


def http2(stage):
    with with_tls(stage, "ssl http2") as server:
        names = ["1024.bin", "0.bin", "65537.bin", "big.bin", "page.html", "text.txt"] * 3
        out = server.root / "got"
        out.mkdir()
        config = "\n".join(f'url = "https://127.0.0.1:{server.port}/{name}"\n'
                           f'output = "{out}/{at}"' for at, name in enumerate(names))
        done = subprocess.run([process.find("curl"), "-sk", "--http2", "--parallel",
                               "--write-out", "%{http_version} %{http_code}\n", "-K", "-"],
                              input=config, text=True, check=False, capture_output=True,
                              timeout=60)
        expect(done.returncode == 0, f"curl: {done.returncode} {done.stderr}")
        expect(done.stdout.split() == ["2", "200"] * len(names), f"curl: {done.stdout}")
        for at, name in enumerate(names):
            expect((out / str(at)).read_bytes() == FILES[name], f"{name} comes back different")
        calm(server)
        return server.quit()


PROXY = """
    location /up/ {{ proxy_pass http://back/; proxy_http_version 1.1;
        proxy_set_header Connection ""; }}
    location /slow/ {{ proxy_pass http://127.0.0.1:{echo}/; proxy_buffering off;
        proxy_request_buffering off; proxy_http_version 1.1; }}
    location /chat {{ proxy_pass http://127.0.0.1:{echo}; proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade"; }}
    location /none/ {{ proxy_pass http://127.0.0.1:1/; }}
    location /app {{ fastcgi_pass unix:{fastcgi}; fastcgi_param QUERY_STRING $query_string;
        fastcgi_param REQUEST_METHOD $request_method;
        fastcgi_param CONTENT_LENGTH $content_length; }}
"""


def upstreams(stage):
    """proxy_pass with and without kept connections, FastCGI, an upgrade."""
    back = start(stage)
    folder = stage.folder()
    with back, peers.Echo() as echo, peers.FastCGI(folder / "fastcgi") as app:
        with start(stage, server=PROXY.format(echo=echo.port, fastcgi=app.path),
                   http=f"upstream back {{ server 127.0.0.1:{back.port}; keepalive 8; }}"
                   ) as server:
            saw = [digest(ask(server, get(f"/up/{name}")))
                   for name in ("0.bin", "1024.bin", "65537.bin", "big.bin", "absent")]
            saw.append(digest(ask(server, b"".join(
                get("/up/1024.bin", last=turn == 9) for turn in range(10)))))
            saw.append(status(ask(server, get("/none/"))))
            body = RANDOM.randbytes(300_000)
            answer = ask(server, get("/slow/x", f"Content-Length: {len(body)}",
                                     method="POST") + body, step=50_000, pause=0.005)
            expect(answer.endswith(body), f"only {len(answer)} bytes of the echo")
            with connect(server) as chat:
                chat.sendall(get("/chat", "Upgrade: chat", "Connection: upgrade", last=False))
                expect(status(chat.recv(4096)) == 101, "no upgrade")
                for turn in range(20):
                    chat.sendall(b"line %d\n" % turn)
                    expect(chat.recv(100) == b"line %d\n" % turn, "the echo differs")
                    time.sleep(0.002 * (turn % 3))
            for turn in range(3):
                answer = ask(server, get(f"/app?{turn}", "Content-Length: 5",
                                         method="POST") + b"hello")
                expect(b"%d POST hello" % turn in answer, f"FastCGI: {answer[-99:]}")
            with connect(server) as gone:  # while the other side is still to answer
                gone.sendall(get("/slow/wait"))
            expect(app.requests == 3, f"{app.requests} FastCGI requests")
            calm(server)
            return saw, server.quit(), back.quit()


def streams(stage):
    """stream{}: TCP both ways at once, half closed; UDP stays nginx's."""
    port, udp = process.free_port(), process.free_port()
    with peers.Echo() as echo, start(stage, stream=f"""stream {{
            server {{ listen 127.0.0.1:{port}; proxy_pass 127.0.0.1:{echo.raw_port};
                proxy_half_close on; }}
            server {{ listen 127.0.0.1:{udp} udp; proxy_pass 127.0.0.1:{echo.udp_port};
                proxy_responses 1; }} }}""") as server:
        body = RANDOM.randbytes(2_000_000)
        with socket.create_connection(("127.0.0.1", port), 20) as conn:
            sender = threading.Thread(target=lambda: (conn.sendall(body),
                                                      conn.shutdown(socket.SHUT_WR)))
            sender.start()
            got = read_all(conn)
            sender.join()
        expect(got == body, f"{len(got)} bytes of {len(body)} came back")
        with socket.socket(type=socket.SOCK_DGRAM) as conn:
            conn.settimeout(10)
            for turn in range(50):
                conn.sendto(b"%d" % turn, ("127.0.0.1", udp))
                expect(conn.recv(99) == b"%d" % turn, "a datagram differs")
        calm(server)
        return server.quit()


def limits(stage):
    """limit_req delays and refuses; limit_conn."""
    with start(stage, http="limit_req_zone $binary_remote_addr zone=a:1m rate=20r/s;",
               server="location /few/ { limit_req zone=a burst=3; alias ROOT/files/; }") as server:
        conns = [connect(server) for _ in range(8)]
        begin = time.monotonic()
        for conn in conns:
            conn.sendall(get("/few/1024.bin"))
        found = sorted(status(read_all(conn)) for conn in conns)
        expect(found.count(200) >= 4 and 503 in found, f"limit_req: {found}")
        expect(time.monotonic() - begin > 0.1, "limit_req did not delay")
        calm(server)
        return server.quit()


class Askers:
    """Clients, each with a new connection for each request; failures are kept."""

    def __init__(self, server, number=3):
        self.server, self.failed, self.served = server, [], 0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(number)]

    def run(self):
        while not self.over.is_set():
            try:
                answer = ask(self.server, get("/1024.bin"))
                if answer.endswith(FILES["1024.bin"]):
                    self.served += 1
                else:
                    self.failed.append(f"{len(answer)} bytes")
            except OSError as error:
                self.failed.append(repr(error))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def more(self, number=20):
        """So many more have been served."""
        goal = self.served + number
        process.wait_until(lambda: self.served >= goal or self.failed, 30, "more requests")

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def replaced(server, old):
    process.wait_until(lambda: not set(old) & set(server.pids()), 40,
                       "the end of the old workers")


def reloads(stage):
    """HUP under load: no request may fail, old workers end."""
    with start(stage, workers=2) as server:
        with Askers(server) as askers:
            for _ in range(3):
                process.wait_until(lambda: len(server.workers()) == 2, 30, "two workers")
                old = server.workers()
                askers.more()
                server.send(signal.SIGHUP)
                process.wait_until(lambda: set(server.workers()) - set(old), 30, "new workers")
                replaced(server, old)
            askers.more()
        expect(not askers.failed, f"{len(askers.failed)} failed: {askers.failed[:3]}")
        calm(server)
        return server.quit()


def quits_gracefully(stage):
    """QUIT with a request half asked and one half answered: both are finished."""
    with start(stage, listen=SMALL_BUFFER) as server:
        half, kept, slow = connect(server), connect(server), slow_reader(server)
        half.sendall(get("/1024.bin")[:10])
        kept.sendall(get("/64.bin", last=False))
        answer = b""
        while not answer.endswith(FILES["64.bin"]):
            answer += kept.recv(4096)
        begun = slow.recv(1000)
        time.sleep(0.2)
        server.send(signal.SIGQUIT)
        expect(read_all(kept) == b"", "an idle connection is kept")
        process.wait_until(lambda: not process.accepts(server.port), 20, "the end of listening")
        half.sendall(get("/1024.bin")[10:])
        expect(read_all(half).endswith(FILES["1024.bin"]), "half a request is not answered")
        expect((begun + read_all(slow)).endswith(FILES["1000000.bin"]), "half an answer is lost")
        return server.popen.wait(20)


# It upgrades only if it is not the child of who has started it.
ORPHAN = ["sh", "-c", '("$@" & while ! [ -s "${0%/*}/pid" ]; do sleep 0.02; done); exec sleep 600']


def upgrades(stage):
    """USR2, then QUIT to the old master: a new program serves, nobody fails."""
    folder = stage.folder() / "nginx"
    with nginx.Nginx(stage.runner, folder, FILES,
                     before=[*ORPHAN, str(folder / "x")]) as server:
        first = server.master()
        with Askers(server) as askers:
            askers.more()
            os.kill(first, signal.SIGUSR2)
            process.wait_until(lambda: server.master() not in (0, first), 30, "a new master")
            process.wait_until(server.workers, 30, "new workers")
            askers.more()
            second = server.master()
            os.kill(first, signal.SIGQUIT)
            process.wait_until(lambda: first not in server.pids(), 40, "the old program's end")
            askers.more()
        expect(not askers.failed, f"{len(askers.failed)} failed: {askers.failed[:3]}")
        os.kill(second, signal.SIGQUIT)
        process.wait_until(lambda: server.pids() == [server.pid], 30,
                           "the end of the new program")
        return True


def respawns(stage):
    with start(stage) as server:
        for _ in range(3):
            process.wait_until(lambda: len(server.workers()) == 1, 30, "one worker")
            old = server.workers()
            os.kill(old[0], signal.SIGKILL)
            process.wait_until(lambda: set(server.workers()) - set(old), 30, "a new worker")
            expect(ask(server, get("/1024.bin")).endswith(FILES["1024.bin"]), "not served")
        calm(server, "exited on signal 9")
        return server.quit()


def many_workers(stage):
    """Several workers on one listener: each way to share it."""
    saw = []
    for more in ({}, {"more_events": "accept_mutex on; multi_accept on;"},
                 {"listen": "reuseport", "main": "timer_resolution 50ms;"}):
        with start(stage, workers=3, **more) as server:
            found = load.wrk(server.url("1024.bin"), 24, stage.seconds, close=True)
            expect(not found.errors and found.requests > 20, f"{found.errors} {more}")
            process.wait_until(lambda: rest(server) < 0.03, 20, f"rest with {more}")
            calm(server)
            saw.append(server.quit())
    return saw


def few_descriptors(stage):
    """More connections than descriptors, than connections: then all is well."""
    for more in ({"main": "worker_rlimit_nofile 40;"}, {"connections": 30}):
        with start(stage, **more) as server:
            conns = []
            for _ in range(60):
                conns.append(connect(server))
                conns[-1].sendall(get("/1024.bin", last=False))
            time.sleep(0.6)
            for conn in conns:
                conn.close()
            process.wait_until(lambda: ask(server, get("/1024.bin")).endswith(
                FILES["1024.bin"]), 20, "serving again")
            expect(rest(server) < 0.1, "it does not rest")
            calm(server, "Too many open files", "not enough")
            expect(server.quit() == 0, "it did not end well")
    return True


def half_asked(server, number):
    """Connections with all but the last byte of a request; those put out are left out."""
    conns = []
    for _ in range(number):
        try:
            conns.append(connect(server))
            conns[-1].sendall(get("/1024.bin")[:-1])
        except OSError:
            continue
    return conns


def answer_of(conn):
    """What comes for the rest of its request; nothing if it was put out."""
    try:
        conn.sendall(b"\n")
        return read_all(conn)
    except OSError:
        return b""


def little_memory(stage):
    """The worker gets no more memory: whom it cannot serve it turns away, and lives on."""
    with start(stage) as server:
        for name in ("1024.bin", "65537.bin"):
            ask(server, get("/" + name))
        process.wait_until(lambda: rest(server) < 0.1, 20, "rest")
        workers, descriptors = server.workers(), open_count(server)
        process.limit_memory(workers[0])
        conns = half_asked(server, 600)
        process.wait_until(lambda: "Cannot allocate memory" in server.error_log(), 30,
                           "the end of its memory")
        answers = [answer_of(conn) for conn in conns[:300]]
        served = sum(answer.endswith(FILES["1024.bin"]) for answer in answers)
        refused = sum(not answer or status(answer) >= 500 for answer in answers)
        expect(served + refused == len(answers),
               f"of {len(answers)} {served} were served, {refused} turned away")
        process.limit_memory(workers[0], False)
        for conn in conns:
            conn.close()
        process.wait_until(lambda: open_count(server) == descriptors, 20, "the end of all")
        for name in ("1024.bin", "65537.bin"):
            expect(ask(server, get("/" + name)).endswith(FILES[name]), "not served afterwards")
        expect(server.workers() == workers, "the worker has ended")
        process.wait_until(lambda: rest(server) < 0.1, 20, "rest afterwards")
        calm(server, "Cannot allocate memory")
        return server.quit()


def open_count(server):
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in server.workers())


def leaves_nothing(stage):
    """Descriptors and memory after many requests are as before."""
    wanted, served = 1_000_000 if LONG else 1, 0
    if not stage.runner.module:
        return 0
    with start(stage) as server:
        for close in (False, True):
            load.wrk(server.url("1024.bin"), 32, stage.seconds, close=close)
        process.wait_until(lambda: rest(server) < 0.02, 20, "rest")
        before, memory = open_count(server), server.memory_mb()
        while served < wanted:
            for close, name in ((False, "1024.bin"), (True, "1024.bin"), (False, "65537.bin")):
                found = load.wrk(server.url(name), 32, stage.seconds, close=close)
                expect(not found.errors, f"the client saw {found.errors}")
                served += found.requests
        process.wait_until(lambda: rest(server) < 0.02, 20, "rest")
        expect(open_count(server) == before, f"{before} descriptors, then {open_count(server)}")
        expect(server.memory_mb() < memory * 1.1 + 2, f"{memory} MB, then {server.memory_mb()}")
        calm(server)
        return server.quit()


def checked_by_valgrind(stage):
    """Under load, connections cut: no error of memory."""
    if not stage.runner.module:
        return True
    log = stage.folder() / "valgrind"
    with start(stage, main="master_process off;", before=[
            process.find("valgrind"), "-q", f"--log-file={log}.%p", "--error-exitcode=9",
            "--soname-synonyms=somalloc=nouserintercepts"]) as server:
        for name, close in (("1024.bin", False), ("65537.bin", True), ("big.bin", False)):
            load.wrk(server.url(name), 16, 2 * stage.seconds, close=close)
        server.stop(signal.SIGTERM, 60)
        text = "".join(path.read_text() for path in log.parent.glob("valgrind.*"))
        expect("ngx_flexsc" not in text and "libflexsc" not in text, text[:3000])
        return True


def can_be_measured(stage):
    """The script of `flexsc bench servers --server nginx` says its rows."""
    if not stage.runner.module:
        return True
    command = [sys.executable, str(pathlib.Path(nginx.__file__).parent / "measure_ports.py"),
               "--server", "nginx", "--flexsc", str(BUILD / "cli/flexsc"), "--quick", "--engine",
               stage.runner.engine]
    done = subprocess.run(command, check=False, text=True, capture_output=True, timeout=100)
    expect(done.returncode == 0, f"{done.stdout[-500:]} {done.stderr[-500:]}")
    for name in (nginx.ORIGINAL, stage.runner.name):
        expect(re.search(rf'"runner": "{name}", "metric": "CPU"', done.stdout),
               f"no figures of {name}: {done.stdout[-1000:]}")
    return True


SMOKE = (crawl, filters, slow_and_gone, idle, tls, http2, upstreams, streams, limits, reloads,
         quits_gracefully, upgrades, respawns, many_workers, few_descriptors, little_memory,
         leaves_nothing,
         can_be_measured)
MORE = (checked_by_valgrind,)


def main():
    global LONG, BUILD  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("case", nargs="*")
    parser.add_argument("--engine", action="append", default=[])
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seconds", type=int, default=1)
    args = parser.parse_args()
    LONG, BUILD = args.long, pathlib.Path(args.build).resolve()
    if LONG:
        FILES["huge.bin"] = FILES["1000000.bin"] * 100
    try:
        module = nginx.build(args.build)
        process.find("nginx")
        process.find("wrk")
    except process.Absent as absent:
        print(f"SKIP: {absent}")
        return 77
    runners = [nginx.original(), *(nginx.Engine(engine, module)
                                   for engine in args.engine or ["poll"])]
    wanted = [case for case in SMOKE + (MORE if LONG else ()) if not args.case or
              any(part in case.__name__ for part in args.case)]
    if args.case:
        wanted += [case for case in MORE if not LONG and case.__name__ in args.case]
    print(f"1..{len(wanted)}", flush=True)
    bad = 0
    for number, case in enumerate(wanted, 1):
        begin = time.monotonic()
        verdict, comment = cases.attempt(case, runners, args.seconds)
        name = case.__name__.replace("_", " ")
        for line in comment.splitlines() if verdict == "not ok" else ():
            print(f"# {line[:2000]}")
        word = f" # SKIP {comment}" if verdict == "skip" else ""
        print(f"{'ok' if verdict == 'skip' else verdict} {number} - {name}{word}")
        print(f"# {time.monotonic() - begin:.1f} s", flush=True)
        bad += verdict == "not ok"
    return 1 if bad else 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
