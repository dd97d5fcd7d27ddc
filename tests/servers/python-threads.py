# SPDX-License-Identifier: MIT
"""Threads of CPython; prints what must not depend on the threads package."""

import concurrent.futures
import http.server
import queue
import socket
import subprocess
import sys
import threading
import time
import urllib.request


def counts():
    total, lock = [0], threading.Lock()

    def add():
        for _ in range(2000):
            with lock:
                total[0] += 1
    threads = [threading.Thread(target=add) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("lock", total[0])


def queues():
    jobs, done = queue.Queue(10), queue.Queue()

    def work():
        while (job := jobs.get()) is not None:
            done.put(job * job)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for n in range(1000):
        jobs.put(n)
    for _ in threads:
        jobs.put(None)
    for thread in threads:
        thread.join()
    print("queue", sum(done.get() for _ in range(1000)))


def timers():
    event, fired = threading.Event(), []
    for n in range(10):
        threading.Timer(0.01 * n, fired.append, (n,)).start()
    begin = time.monotonic()
    in_time = event.wait(0.3)
    print("timers", sorted(fired), in_time, 0.25 < time.monotonic() - begin < 2)


def barriers():
    barrier, order = threading.Barrier(6), []

    def step(who):
        for n in range(50):
            barrier.wait(20)
            if who == 0:
                order.append(n)
            barrier.wait(20)
    threads = [threading.Thread(target=step, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("barrier", order == list(range(50)))


def serves():
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):  # pylint: disable=invalid-name
            body = f"hello {self.path}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    base = f"http://127.0.0.1:{server.server_port}/"

    def ask(n):
        with urllib.request.urlopen(base + str(n), timeout=20) as answer:
            return answer.read().decode() == f"hello /{n}"
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        print("http", sum(pool.map(ask, range(300))))
    server.shutdown()
    thread.join()
    server.server_close()


def timeouts():
    one, other = socket.socketpair()
    late = []

    def wait():
        one.settimeout(0.05)
        try:
            one.recv(1)
        except TimeoutError:
            late.append(True)
    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    other.close()
    print("timeout", late)


def programs():
    def run(n):
        return subprocess.run(["sh", "-c", f"exit {n}"], check=False).returncode
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        print("programs", list(pool.map(run, range(20))))


def locals_of_threads():
    own, wrong = threading.local(), []

    def use(n):
        if hasattr(own, "n"):
            wrong.append(n)
        own.n = n
        time.sleep(0.001)
        if own.n != n:
            wrong.append(n)
    for _ in range(3):
        threads = [threading.Thread(target=use, args=(n,)) for n in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print("local", wrong)


counts()
queues()
timers()
barriers()
serves()
timeouts()
programs()
locals_of_threads()
sys.stdout.flush()
