#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Apache, worker MPM, unmodified: what it serves and how it starts and ends."""

import hashlib
import http.client
import os
import random
import signal
import sys
import threading
import time

from cases import expect, main
from servers import apache, load, process

BIG = random.Random(7).randbytes(3_000_000)
FILES = {"page.html": b"<p>hello</p>\n" * 80, "empty.txt": b"", "big.bin": BIG,
         "a name with blanks.txt": b"blanks"}


def start(stage, **options):
    return apache.Apache(stage.runner, stage.folder() / "apache", FILES, **options)


def get(connection, path, method="GET", body=None):
    connection.request(method, path.replace(" ", "%20"), body)
    answer = connection.getresponse()
    return answer.status, answer.read()


def connect(server, seconds=20):
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=seconds)


def serves(server):
    try:
        return get(connect(server), "/page.html")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def no_errors(found):
    expect(not found.errors, f"the client saw {found.errors}")
    expect(found.requests, "no requests")


def static_files_are_identical(stage):
    with start(stage) as server:
        one = connect(server)  # all on one connection
        saw = [(status, hashlib.sha256(body).hexdigest()) for status, body in
               (get(one, "/" + name) for name in (*FILES, "absent", "page.html"))]
        for name, (status, digest) in zip(FILES, saw):
            expect(status == 200 and digest == hashlib.sha256(FILES[name]).hexdigest(),
                   f"{name} comes back different")
        one.request("GET", "/big.bin", headers={"Range": "bytes=1000000-2000000"})
        part = one.getresponse()
        expect(part.status == 206 and part.read() == BIG[1000000:2000001], "a range differs")
        return saw, server.stop()


def keeps_connections(stage):
    with start(stage, threads=80) as server:
        no_errors(load.wrk(server.url("page.html"), 64, stage.seconds))
        return server.stop()


def closes_connections(stage):
    with start(stage, threads=80) as server:
        no_errors(load.wrk(server.url("page.html"), 64, stage.seconds, close=True))
        return server.stop()


def sends_big_files_to_many(stage):
    with start(stage, threads=40, children=2) as server:
        no_errors(load.wrk(server.url("big.bin"), 32, stage.seconds))
        return server.stop()


def more_connections_than_threads(stage):
    with start(stage, threads=16) as server:
        no_errors(load.wrk(server.url("page.html"), 48, max(stage.seconds, 2), close=True))
        return server.stop()


def run_scripts(stage, module):
    with start(stage, threads=32, cgi=module) as server:
        saw, lock = [], threading.Lock()

        def ask(number):
            one = connect(server)
            for turn in range(5):
                body = f"{number} {turn} " + "x" * 1000
                answer = get(one, f"/cgi/say?{number}.{turn}", "POST", body)
                with lock:
                    saw.append((number, turn, answer[0], answer[1].decode()))
        askers = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        expect(len(saw) == 40 and all(
            answer == f"query={n}.{turn} method=POST\n{n} {turn} " + "x" * 1000
            for n, turn, status, answer in saw), f"scripts said {saw[:3]}")
        return server.stop()


def scripts_by_fork(stage):
    return run_scripts(stage, "cgi")


def scripts_by_daemon(stage):
    return run_scripts(stage, "cgid")


def restarts_gracefully(stage):
    """Under load no request may fail, and new children serve."""
    with start(stage, threads=40, children=2) as server:
        before = set(server.pids())
        failed, served, over = [], [0], threading.Event()

        def ask():
            while not over.is_set():
                try:
                    one = connect(server)
                    status, body = get(one, "/page.html")
                    one.close()
                    if (status, body) != (200, FILES["page.html"]):
                        failed.append(status)
                    served[0] += 1
                except (OSError, http.client.HTTPException) as error:
                    failed.append(repr(error))
        askers = [threading.Thread(target=ask) for _ in range(4)]
        for asker in askers:
            asker.start()
        for _ in range(3):
            time.sleep(0.3)
            server.graceful()
        process.wait_until(lambda: not before & set(server.pids()) - {server.pid}, 30,
                           "the end of the old children")
        time.sleep(0.2)
        over.set()
        for asker in askers:
            asker.join()
        expect(not failed, f"{len(failed)} of {served[0]} requests failed: {failed[:3]}")
        expect(served[0], "no requests")
        return server.stop()


def restarts_at_once(stage):
    with start(stage, threads=40) as server:
        for _ in range(2):
            server.send(signal.SIGHUP)
            time.sleep(0.5)
            process.wait_until(lambda: serves(server), 20, "serving again")
        return server.stop()


def ends_under_load(stage):
    """SIGTERM with connections open: it ends, and leaves nobody behind."""
    with start(stage, threads=70) as server:
        loader = threading.Thread(target=lambda: load.wrk(server.url("page.html"), 64, 3))
        loader.start()
        time.sleep(1)
        begin = time.monotonic()
        status = server.stop()
        expect(time.monotonic() - begin < 15, "the end took more than 15 s")
        expect(not (server.root / "httpd.pid").exists(), "it left its pid file behind")
        loader.join()
        return status


def ends_gracefully(stage):
    with start(stage, threads=20) as server:
        one = connect(server)
        get(one, "/page.html")
        one.close()
        return server.stop(signal.SIGWINCH)


def idle_connections_use_no_time(stage):
    with start(stage, threads=70) as server:
        idle = [connect(server) for _ in range(60)]
        for one in idle:
            expect(get(one, "/page.html")[0] == 200, "not served")
        time.sleep(0.3)
        begin = server.cpu_seconds()
        time.sleep(1)
        used = server.cpu_seconds() - begin
        expect(used < 0.1, f"used {used:.2f} s in a second of rest")
        for one in idle:
            expect(get(one, "/page.html")[0] == 200, "not served after a rest")
        return server.stop()


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(
        static_files_are_identical, keeps_connections, closes_connections,
        sends_big_files_to_many, more_connections_than_threads, scripts_by_fork,
        scripts_by_daemon, restarts_gracefully, restarts_at_once, ends_under_load,
        ends_gracefully, idle_connections_use_no_time))
