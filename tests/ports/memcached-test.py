#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""memcached with ports/memcached, as its clients see it.

    memcached-test.py BUILD [--long] [--engine ENGINE]... [CASE...]

The package's own testapp and a part of its t/ run as well; --long: all of t/,
on the port and on the original, whose lists of passes must be the same; what a
million requests leave, beside the original; and the port under valgrind.
"""

import argparse
import contextlib
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from servers import load, memcached, process  # noqa: E402  pylint: disable=wrong-import-position

PATIENCE = 30  # seconds, for what takes none
PART = ("64bit.t", "flags.t", "getset.t", "incrdecr.t", "maxconns.t", "multiversioning.t",
        "noreply.t", "stats-conns.t", "stats.t", "touch.t", "unixsocket.t")


def expect(true, text):
    if not true:
        raise process.Failure(text)


def until(done, what):
    end = time.monotonic() + PATIENCE
    while not done():
        expect(time.monotonic() < end, f"{what}: not within {PATIENCE} s")
        time.sleep(0.02)


class Client:
    def __init__(self, port, wrap=lambda plain: plain):
        self.socket = wrap(socket.create_connection(("127.0.0.1", port), PATIENCE))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        self.socket.sendall(data)

    def until(self, end):
        data = b""
        while not data.endswith(end):
            more = self.socket.recv(1 << 20)
            expect(more, f"closed after {data[:100]!r}")
            data += more
        return data

    def ask(self, text, end=b"\r\n"):
        self.send(text)
        return self.until(end)

    def store(self, key, value):
        said = self.ask(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
        expect(said == b"STORED\r\n", f"set says {said!r}")

    def get(self, key):
        said = self.ask(b"get %s\r\n" % key, b"END\r\n")
        return said.split(b"\r\n", 1)[1][:-len(b"\r\nEND\r\n")] if said != b"END\r\n" else None

    def stats(self):
        return dict(line.split(" ", 2)[1:] for line in
                    self.ask(b"stats\r\n", b"END\r\n").decode().split("\r\n")[:-2])

    def close(self):
        self.socket.close()


def allow_descriptors(options):
    """As many as it asks for: under valgrind it cannot have another limit."""
    wanted = int(options[options.index("-c") + 1]) if "-c" in options else 1024
    resource.setrlimit(resource.RLIMIT_NOFILE,
                       (wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


class Server:
    def __init__(self, program, engine, *options, before=()):
        self.port = process.free_port()
        user = ["-u", "root"] if os.geteuid() == 0 else []
        self.output = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(
            [*before, program, "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", *user, *options],
            env=dict(os.environ, FLEXSC_ENGINE=engine), stdin=subprocess.DEVNULL,
            stdout=self.output, stderr=subprocess.STDOUT,
            preexec_fn=(lambda: allow_descriptors(options)) if before else None)
        until(lambda: self.process.poll() is not None or process.accepts(self.port), "start")
        expect(self.process.poll() is None, f"it ended: {self.said()}")

    def said(self):
        self.output.seek(0)
        return self.output.read().decode(errors="replace")[-2000:]

    def client(self, **more):
        return Client(self.port, **more)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory_kb(self):
        return process.memory_kb(self.process.pid)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise process.Failure(f"it does not end at signal {number}") from None
        expect(status == 0, f"exit status {status}: {self.said()}")


@contextlib.contextmanager
def server(stage, *options):
    running = Server(stage.program, stage.engine, *options, before=stage.before)
    try:
        yield running
        running.stop()
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()


class Stage:
    def __init__(self, place, engine, scratch):
        self.place, self.engine, self.scratch = place, engine, pathlib.Path(scratch)
        self.program, self.before = str(place / "port/memcached"), []


def value_of(size):
    return bytes((i * 7 + size) % 26 + 97 for i in range(size))


def pieces(stage):
    """Commands and values that arrive in parts of any size."""
    with server(stage, "-o", "slab_chunk_max=16384") as running:
        client = running.client()
        for size in (10, 3000, 9000, 40000):
            for cut in (1, 5, 30, 2000, 4096, 4100, 8000):
                value = value_of(size)
                text = b"set k 0 0 %d\r\n%s\r\n" % (size, value)
                for part in (text[:cut], text[cut:cut + 50], text[cut + 50:]):
                    if part:
                        client.send(part)
                        time.sleep(0.002)
                expect(client.until(b"\r\n") == b"STORED\r\n", f"{size} cut at {cut}")
                expect(client.get(b"k") == value, f"{size} cut at {cut} is another now")


def pipelines(stage):
    with server(stage) as running:
        client = running.client()
        client.store(b"k", value_of(100))
        said = client.ask(b"get k\r\n" * 3000 + b"mn\r\n", b"MN\r\n")
        expect(said.count(value_of(100)) == 3000, "answers are missing")


def slow_reader(stage):
    """More than a socket takes, to somebody who reads late; others go on."""
    with server(stage, "-t", "1", "-I", "8m") as running:
        slow, other = running.client(), running.client()
        value = value_of(573440) * 8
        slow.store(b"big", value)
        for _ in range(3):
            slow.send(b"get big\r\n")
            for _ in range(20):
                expect(other.ask(b"mn\r\n") == b"MN\r\n", "the other one waits")
            said = slow.until(b"END\r\n")
            expect(said == b"VALUE big 0 %d\r\n%s\r\nEND\r\n" % (len(value), value),
                   "it is another now")


def disappearing(stage):
    with server(stage, "-c", "200") as running:
        running.client().close()
        keeper = running.client()
        keeper.store(b"k", b"v")
        before, connections = running.descriptors(), keeper.stats()["curr_connections"]
        for nr in range(300):
            client = running.client()
            client.send((b"set k 0 0 100000\r\nhalf", b"get nothing\r\n", b"get", b"")[nr % 4])
            if nr % 3 == 0:
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                         struct.pack("ii", 1, 0))
            client.close()
        until(lambda: keeper.stats()["curr_connections"] == connections and
              running.descriptors() <= before, "closing what is gone")


def begin_to_connect(port):
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", port))
    return client


def too_many(stage):
    """Who comes when all places are taken is served when one is free."""
    with server(stage, "-c", "64", "-t", "1", "-o", "no_maxconns_fast") as running:
        first = [running.client() for _ in range(30)]
        for client in first:
            expect(client.ask(b"mn\r\n") == b"MN\r\n", "no answer")
        more = [begin_to_connect(running.port) for _ in range(40)]
        until(lambda: first[0].stats()["accepting_conns"] == "0", "all places taken")
        for client in first:
            client.close()
        for client in more:
            client.settimeout(PATIENCE)
            expect(select.select([], [client], [], PATIENCE)[1], "it is not connected")
            client.sendall(b"mn\r\n")
            expect(client.recv(10) == b"MN\r\n", "no answer")
            client.close()


def is_served(client):
    """Or turned away; not left waiting."""
    try:
        client.send(b"mn\r\n")
        return client.until(b"\r\n") == b"MN\r\n"
    except (process.Failure, ConnectionError):
        return False


def little_memory(stage):
    """It gets no more memory: whom it cannot serve it turns away, and lives on."""
    with server(stage, "-t", "1", "-c", "4000") as running:
        keeper = running.client()
        keeper.store(b"k", value_of(100))
        before = running.descriptors()
        process.limit_memory(running.process.pid)
        clients, served = [], 0
        while served == len(clients):
            expect(len(clients) < 3000, "its memory does not end")
            clients.append(running.client())
            served += is_served(clients[-1])
        more = [running.client() for _ in range(100)]
        served = sum(map(is_served, more))
        expect(keeper.get(b"k") == value_of(100), "who was there is not served")
        process.limit_memory(running.process.pid, False)
        for client in clients + more:
            client.close()
        until(lambda: running.descriptors() <= before, "the end of all")
        clients = [running.client() for _ in range(200)]
        expect(all(map(is_served, clients)), "not served afterwards")


def idle_timeout(stage):
    with server(stage, "-o", "idle_timeout=1") as running:
        client = running.client()
        client.store(b"k", b"v")
        expect(client.socket.recv(10) == b"", "it is not closed")
        again = running.client()
        expect(again.get(b"k") == b"v", "lost")
        expect(int(again.stats()["idle_kicks"]) >= 1, "no kick is counted")


def nothing_to_do(stage):
    """Idle connections wake nobody, however many there are."""
    with server(stage, "-t", "1") as running:
        clients = [running.client() for _ in range(500)]
        for client in clients:
            expect(client.ask(b"mn\r\n") == b"MN\r\n", "no answer")
        time.sleep(1)
        before = process.switches_of(running.process.pid)
        time.sleep(2)
        more = process.switches_of(running.process.pid) - before
        expect(more < 300, f"{more} switches in two seconds")


def watched(stage):
    """The server's log thread has a connection, and gives it back."""
    with server(stage) as running:
        watcher, client = running.client(), running.client()
        expect(watcher.ask(b"watch fetchers mutations\r\n") == b"OK\r\n", "no watching")
        until(lambda: [client.store(b"seen", b"v"), client.get(b"seen")] and
              b"key=seen" in watcher.until(b"\n"), "lines of the log")
        watcher.close()
        dump = running.client()
        expect(b"key=seen" in dump.ask(b"lru_crawler metadump all\r\n", b"END\r\n"), "no dump")
        expect(dump.get(b"seen") == b"v", "it is not given back")


def encrypted(stage):
    key, cert = stage.scratch / "key.pem", stage.scratch / "cert.pem"
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
                           "2", "-subj", "/CN=localhost", "-keyout", key, "-out", cert],
                          check=False, capture_output=True)
    expect(done.returncode == 0, done.stderr.decode())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with server(stage, "-Z", "-o", f"ssl_chain_cert={cert},ssl_key={key}") as running:
        clients = [running.client(wrap=context.wrap_socket) for _ in range(40)]
        for nr, client in enumerate(clients):
            client.store(b"k%d" % nr, value_of(300000 + nr))
        for nr, client in enumerate(clients):
            expect(client.get(b"k%d" % nr) == value_of(300000 + nr), "it is another now")


def stops_and_goes_on(stage):
    """A graceful stop with connections open; its memory is there again."""
    options = ("-e", str(stage.scratch / "memory"), "-m", "64")
    with server(stage, *options) as running:
        clients = [running.client() for _ in range(30)]
        clients[0].store(b"kept", value_of(5000))
        clients[1].send(b"set never 0 0 100\r\nhalf")
        running.stop(signal.SIGUSR1)
        running.stop = lambda: None
    time.sleep(1.1)  # it does not believe in clocks that do not go on
    with server(stage, *options) as running:
        expect(running.client().get(b"kept") == value_of(5000), "it is not kept")


def slabs_move(stage):
    """Pages change hands while values are received into them and sent from them."""
    with server(stage, "-m", "8", "-o", "slab_reassign,slab_automove=0,no_lru_crawler") as running:
        client, slow = running.client(), running.client()
        small, large = value_of(900), value_of(9000)
        for nr in range(4000):
            client.store(b"small%d" % nr, small)
        slow.send(b"set slow 0 0 900\r\n" + small[:100])
        stats = client.ask(b"stats slabs\r\n", b"END\r\n").decode()
        source = max(re.findall(r"STAT (\d+):total_pages (\d+)", stats),
                     key=lambda found: int(found[1]))[0]
        client.ask(b"set large 0 0 9000\r\n" + large + b"\r\n")
        stats = client.ask(b"stats slabs\r\n", b"END\r\n").decode()
        target = max(map(int, re.findall(r"STAT (\d+):total_pages", stats)))
        for turn in range(3):
            until(lambda: client.ask(f"slabs reassign {source} {target}\r\n".encode()) ==
                  b"OK\r\n", "a page to move")
            for nr in range(0, 4000, 7):
                expect(client.get(b"small%d" % nr) in (None, small), "it is another now")
            expect(client.get(b"large") in (None, large), "the large one is another now")
            if turn == 0:  # its page could not move before
                slow.send(small[100:] + b"\r\n")
                expect(slow.until(b"\r\n") == b"STORED\r\n", "what came slowly is not kept")
        until(lambda: int(client.stats()["slabs_moved"]) >= 2, "pages are moved")
        expect(slow.get(b"slow") in (None, small), "what came slowly is another now")


def drive(stage, port, connections, seconds):
    """Load by the client of `flexsc bench`; @port: its server's."""
    texts = [(0, b"get key%07d\r\n" % nr) if nr % 10 else
             (1, b"set key%07d 0 0 100\r\n%s\r\n" % (nr, value_of(100))) for nr in range(1000)]
    messages = stage.scratch / "messages"
    messages.write_bytes(b"".join(b"%d %d\n%s" % (kind, len(text), text)
                                  for kind, text in texts))
    return load.paced(stage.place.parents[1] / "cli/flexsc", port, f"@{messages}", connections, 0,
                      seconds).requests


def kept(running):
    """So that all gets of drive() have an answer of the same length."""
    client = running.client()
    for nr in range(1000):
        client.store(b"key%07d" % nr, value_of(100))
    client.close()


MILLION = 1_000_000


def alone(running):
    """Until nobody is connected but who asks."""
    client = running.client()
    until(lambda: client.stats()["curr_connections"] == "1", "all are gone")
    client.close()


def growth(stage):
    """(descriptors, KB) that a million requests add."""
    with server(stage, "-t", "2", "-c", "1024") as running:
        kept(running)
        drive(stage, running.port, 200, 2)
        alone(running)
        before, memory, nr = running.descriptors(), running.memory_kb(), 0
        while nr < MILLION:
            nr += drive(stage, running.port, 200, 3)
        for _ in range(1000):
            client = running.client()
            expect(client.ask(b"mn\r\n") == b"MN\r\n", "no answer")
            client.close()
        alone(running)
        until(lambda: running.descriptors() <= before, "the descriptors of before")
        return running.memory_kb() - memory


def a_million_requests(stage):
    mine = growth(stage)
    stage.program = str(stage.place / "original/memcached")
    original = growth(stage)
    print(f"# after {MILLION:,} requests: {mine} KB more, the original {original} KB", flush=True)
    expect(mine < max(original, 0) + 1024, f"{mine} KB more, the original {original} KB")


def checked_by_valgrind(stage):
    """The cases, and load, and connections cut: no error of memory."""
    log = stage.scratch / "valgrind"
    stage.before = [process.find("valgrind"), "-q", f"--log-file={log}.%p", "--fair-sched=yes"]
    for case in (pieces, pipelines, slow_reader, disappearing, idle_timeout, slabs_move):
        case(stage)
    with server(stage, "-t", "2") as running:
        kept(running)
        for _ in range(3):
            expect(drive(stage, running.port, 64, 2) > 0, "no answers")
    text = "".join(path.read_text() for path in stage.scratch.glob("valgrind.*"))
    expect("mc_" not in text and "libflexsc" not in text, text[:3000])


def environment(stage):
    return dict(os.environ, FLEXSC_ENGINE=stage.engine)


def own_testapp(stage):
    done = subprocess.run(["./testapp"], cwd=stage.place / "port", env=environment(stage),
                          check=False, capture_output=True, text=True, timeout=200)
    expect(done.returncode == 0, f"{done.stdout[-500:]} {done.stderr[-500:]}")


def prove(folder, tests, env, jobs):
    """{test: its line} of what prove says of the package's own tests."""
    command = ["prove", f"-j{jobs}", *(f"t/{name}" for name in tests)]
    # A file: servers that a test leaves behind would keep a pipe open.
    with tempfile.TemporaryFile() as output, \
         subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=output,
                          stderr=subprocess.DEVNULL, start_new_session=True) as program:
        try:
            program.wait(1500)
        finally:
            for pid in process.members_of(program.pid):
                os.kill(pid, signal.SIGKILL)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return dict(re.findall(r"^t/(\S+\.t) \.+ (ok|skipped|[^\n]*)", text, re.MULTILINE))


def own_tests(stage):
    found = prove(stage.place / "port", PART, environment(stage), 2)
    bad = {name: found.get(name) for name in PART if found.get(name) != "ok"}
    expect(not bad, f"{bad}")


def all_own_tests(stage):
    tests = sorted(path.name for path in (stage.place / "original/t").glob("*.t")
                   if path.name != "whitespace.t")  # of its source's layout
    saw = [prove(stage.place / name, tests, environment(stage), 2)
           for name in ("original", "port")]
    worse = [name for name in tests if saw[0].get(name) == "ok" != saw[1].get(name)]
    print(f"# {sum(line == 'ok' for line in saw[0].values())} of {len(tests)} pass on the "
          "original", flush=True)
    expect(not worse, f"only the original passes {worse}")


def can_be_measured(stage):
    """The script of `flexsc bench servers --server memcached` says its rows."""
    command = [sys.executable, str(pathlib.Path(memcached.__file__).parent / "measure_ports.py"),
               "--server", "memcached", "--flexsc", str(stage.place.parents[1] / "cli/flexsc"),
               "--quick", "--engine", stage.engine]
    done = subprocess.run(command, check=False, text=True, capture_output=True, timeout=300)
    expect(done.returncode == 0, f"{done.stdout[-500:]} {done.stderr[-500:]}")
    for name in (memcached.ORIGINAL, f"flexsc-{stage.engine}"):
        expect(f'"runner": "{name}", "metric": "CPU"' in done.stdout,
               f"no figures of {name}: {done.stdout[-1000:]}")


SMOKE = (pieces, pipelines, slow_reader, disappearing, too_many, little_memory, watched, encrypted, slabs_move,
         stops_and_goes_on)
ONCE = (idle_timeout, nothing_to_do, own_testapp, own_tests, can_be_measured)  # with the first engine
LONG = (all_own_tests, a_million_requests, checked_by_valgrind)


def play(case, stage):
    try:
        case(stage)
    except (process.Failure, OSError, subprocess.SubprocessError) as failure:
        return f"{failure}"
    return ""


def build(folder):
    try:
        return pathlib.Path(memcached.build(folder)).parent.parent
    except process.Absent as absent:
        print(f"SKIP: {absent}")
        sys.exit(77)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("case", nargs="*")
    parser.add_argument("--engine", action="append", default=[])
    parser.add_argument("--long", action="store_true")
    args = parser.parse_args()
    place = build(args.build)
    engines = args.engine or ["poll", "uthread"]
    todo = [(case, engine) for engine in engines for case in
            SMOKE + (ONCE + (LONG if args.long or args.case else ())
                     if engine == engines[0] else ())
            if not args.case or case.__name__ in args.case]
    print(f"1..{len(todo)}", flush=True)
    bad = 0
    for number, (case, engine) in enumerate(todo, 1):
        scratch = tempfile.mkdtemp(prefix="flexsc-memcached-")
        begin = time.monotonic()
        try:
            why = play(case, Stage(place, engine, scratch))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        for line in why.splitlines():
            print(f"# {line[:2000]}")
        print(f"{'not ok' if why else 'ok'} {number} - {case.__name__} {engine}")
        print(f"# {time.monotonic() - begin:.1f} s", flush=True)
        bad += bool(why)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
