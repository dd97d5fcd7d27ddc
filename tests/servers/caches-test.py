#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""memcached and Redis with I/O threads, unmodified."""

import random
import sys
import threading
import time

from cases import expect, main
from servers import load, memcached, process, redis

CLIENTS = 24


def together(client, nr=CLIENTS):
    """Runs client(number) in threads; raises what any of them raised."""
    failed = []

    def run(number):
        try:
            client(number)
        except Exception as error:  # pylint: disable=broad-exception-caught
            failed.append(f"client {number}: {error!r}")
    threads = [threading.Thread(target=run, args=(n,)) for n in range(nr)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failed, "; ".join(failed[:3]))


def memcached_keeps_values(stage):
    with memcached.Memcached(stage.runner, stage.folder() / "memcached") as server:
        end = time.monotonic() + stage.seconds

        def client(number):
            dice, session = random.Random(number), server.connect()
            while time.monotonic() < end:
                key, body = f"{number}.{dice.randrange(50)}", dice.randbytes(dice.choice(
                    (0, 10, 3000, 200_000)))
                expect(session.line(f"set {key} 0 0 {len(body)}", body) == "STORED", "not kept")
                expect(session.get(key) == body, f"{key} is not what was set")
            session.close()
        together(client)
        counter = server.connect()
        counter.line("set sum 0 0 1", b"0")
        together(lambda _: [expect(server.connect().line("incr sum 1").isdigit(), "no incr")
                            for _ in range(20)])
        saw = counter.get("sum")
        counter.close()
        return saw, server.stop()


def memcached_forgets_in_time(stage):
    with memcached.Memcached(stage.runner, stage.folder() / "memcached") as server:
        session = server.connect()
        session.line("set a 0 1 1", b"x")
        now = session.get("a")
        time.sleep(2.5)
        return now, session.get("a"), server.stop()


def memcached_idle_uses_no_time(stage):
    with memcached.Memcached(stage.runner, stage.folder() / "memcached") as server:
        sessions = [server.connect() for _ in range(20)]
        for session in sessions:
            session.get("none")
        begin = server.cpu_seconds()
        time.sleep(1)
        used = server.cpu_seconds() - begin
        expect(used < 0.1, f"used {used:.2f} s in a second of rest")
        return server.stop()


def redis_under_load(stage):
    with redis.Redis(stage.runner, stage.folder() / "redis") as server:
        for _ in range(stage.seconds):
            found = load.redis_benchmark(server.port, 50, 20000)
            expect(found.rate, "no requests")
        server.cli("set", "a", "b")
        return server.cli("get", "a"), server.cli("dbsize") != "0", server.stop()


def redis_saves_by_fork(stage):
    """BGSAVE forks while the I/O threads are there; the log's fsync has a thread too."""
    folder = stage.folder() / "redis"
    with redis.Redis(stage.runner, folder, options=["--appendonly", "yes"]) as server:
        for n in range(50):
            server.cli("set", f"key{n}", f"value{n}")
        server.cli("bgsave")
        process.wait_until(lambda: "rdb_bgsave_in_progress:0" in server.cli("info"), 20, "BGSAVE")
        expect("rdb_last_bgsave_status:ok" in server.cli("info"), "BGSAVE failed")
        server.stop()
    (folder / "redis-server").unlink()
    with redis.Redis(stage.runner, folder, options=["--appendonly", "yes"]) as server:
        return server.cli("dbsize"), server.cli("get", "key33"), server.stop()


if __name__ == "__main__":
    sys.exit(main(memcached_keeps_values, memcached_forgets_in_time,
                  memcached_idle_uses_no_time, redis_under_load, redis_saves_by_fork))
