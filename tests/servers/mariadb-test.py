#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""MariaDB, unmodified: load, KILL, time-outs, shutdown, recovery after a kill."""

import functools
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from cases import expect, main
from servers import load, mariadb, process

ROWS = 2000
made = pathlib.Path(tempfile.mkdtemp(prefix="flexsc-mariadb-"))


@functools.cache
def tables():
    """Made once, natively; each server gets a copy."""
    process.find("mariadbd", "mysqld")
    process.find("sysbench")
    return mariadb.with_tables(made / "tables", ROWS)


def start(stage, connections=100, data=None, options=()):
    folder = stage.folder()
    data = data or mariadb.copy(tables(), folder / "data")
    return mariadb.MariaDB(stage.runner, folder / "run", data, connections,
                           options=options)


def in_background(function, *args):
    result = []
    thread = threading.Thread(target=lambda: result.append(function(*args)))
    thread.start()
    return thread, result


def no_errors(found):
    expect(not found.errors, f"sysbench saw {found.errors}")
    expect(found.requests, "no queries")


def run_script(stage, script, *connections):
    with start(stage, max(connections)) as server:
        for nr in connections:
            no_errors(load.sysbench(server.socket, script, nr, stage.seconds, ROWS))
        expect("OK" in server.sql("check table sbtest.sbtest1"), "the table is damaged")
        return server.stop()


def point_select(stage):
    return run_script(stage, "point_select", 16, 64)


def read_only(stage):
    return run_script(stage, "read_only", 16)


def read_write(stage):
    return run_script(stage, "read_write", 16)


def many_connections(stage):
    return run_script(stage, "point_select", 512)


def same_answers(stage):
    """What is written comes back, from several clients at once."""
    with start(stage) as server:
        server.sql("create table test (who int, number int, text varchar(200))",
                   database="sbtest")
        def write(who):
            rows = ",".join(f"({who},{n},repeat('{n % 10}',{n % 200}))" for n in range(300))
            for _ in range(3):
                server.sql(f"insert into test values {rows}", database="sbtest")
        writers = [in_background(write, who)[0] for who in range(6)]
        for writer in writers:
            writer.join()
        saw = server.sql("select who, count(*), sum(number), sum(length(text)) from test "
                         "group by who order by who; checksum table sbtest1",
                         database="sbtest")
        return saw, server.stop()


def kill_query(stage):
    """KILL QUERY ends a sleep, a lock wait and a long computation."""
    with start(stage) as server:
        saw = []
        holder = subprocess.Popen(
            [*server.client(), "--unbuffered", "sbtest"], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, text=True)
        holder.stdin.write("begin; select * from sbtest1 where id=1 for update;\n")
        holder.stdin.flush()
        time.sleep(0.3)
        for what in ("select sleep(60)", "update sbtest1 set k=k+1 where id=1",
                     "select benchmark(2000000000, md5('x'))"):
            begin = time.monotonic()
            client, said = in_background(
                lambda what=what: server.sql(what, check=False, database="sbtest"))
            ident = find_query(server, what)
            server.sql(f"kill query {ident}")
            client.join(20)
            expect(not client.is_alive(), f"KILL QUERY did not end: {what}")
            expect(time.monotonic() - begin < 10, f"KILL QUERY was late: {what}")
            saw.append(re.sub(r"\d+", "N", said[0]))
        holder.stdin.close()
        holder.wait(20)
        return saw, server.stop()


def find_query(server, what):
    """The number of the connection that runs it."""
    found = []

    def look():
        found[:] = server.sql("select id from information_schema.processlist where info="
                              + "'" + what.replace("'", "''") + "'").split()
        return found
    process.wait_until(look, 20, "the start of a query")
    time.sleep(0.2)
    return found[0]


def kill_connection(stage):
    with start(stage) as server:
        client, said = in_background(lambda: server.sql("select sleep(60)", check=False))
        server.sql(f"kill {find_query(server, 'select sleep(60)')}")
        client.join(20)
        expect(not client.is_alive(), "KILL did not end the connection")
        return re.sub(r"\d+", "N", said[0]), server.stop()


def wait_timeout(stage):
    """An idle connection is closed in time, a busy one is not."""
    with start(stage, options=["--wait-timeout=1"]) as server:
        idle = subprocess.Popen(
            [*server.client(), "--skip-reconnect", "--unbuffered", "--force"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        idle.stdin.write("set wait_timeout=1; select 1;\n")
        idle.stdin.flush()
        expect(idle.stdout.readline().strip() == "1", "no answer")
        count = "select count(*) from information_schema.processlist where user='root'"
        expect(server.sql(count) == "2", "the idle connection is not there")
        begin = time.monotonic()
        process.wait_until(lambda: server.sql(count) == "1", 10, "the end of the idle one")
        took = time.monotonic() - begin
        expect(0.3 < took < 5, f"the idle connection was closed after {took:.1f} s")
        idle.stdin.write("select 2;\n")
        idle.stdin.close()
        said = idle.stdout.read()
        idle.wait(10)
        expect(server.sql("set wait_timeout=1; select sleep(2), 3").split() == ["0", "3"],
               "a busy connection was closed")
        return re.sub(r"at line \d+", "", said), server.stop()


def refuses_too_many(stage):
    with start(stage, connections=5, options=["--max-connections=10"]) as server:
        clients = [in_background(lambda: server.sql("select sleep(2), 4", check=False))
                   for _ in range(30)]
        for client, _ in clients:
            client.join(30)
        said = {text[0].replace("\t", " ").split(" at ")[0] for _, text in clients}
        process.wait_until(lambda: server.sql("select 5", check=False) == "5", 10, "room")
        return sorted(said), server.stop()


def ends_under_load(stage):
    with start(stage) as server:
        loader, _ = in_background(attempt_load, server)
        time.sleep(1)
        status = server.stop(seconds=40)
        loader.join(60)
        log = (server.root / "error.log").read_text()
        expect("Shutdown complete" in log, f"no clean shutdown:\n{log[-1500:]}")
        return status


def attempt_load(server):
    try:
        load.sysbench(server.socket, "read_write", 32, 4, ROWS)
    except process.Failure:
        pass  # its server has gone


def shutdown_statement(stage):
    with start(stage) as server:
        server.sql("shutdown")
        return server.popen.wait(30)


def recovers_after_kill(stage):
    """What was committed is there after kill -9 in the middle of writing."""
    folder = stage.folder()
    data = mariadb.copy(tables(), folder / "data")
    with start(stage, data=data) as server:
        server.sql("create table done (n int primary key) engine=innodb", database="sbtest")
        loader, _ = in_background(attempt_load, server)
        committed = 0
        for n in range(100):
            server.sql(f"insert into done values ({n})", database="sbtest")
            committed += 1
        server.send(signal.SIGKILL)
        server.kill()
        loader.join(60)
    with start(stage, data=data) as server:
        expect(server.sql("select count(*) from done", database="sbtest") == str(committed),
               "committed rows are gone")
        expect("OK" in server.sql("check table sbtest.sbtest1 extended"), "damaged")
        return server.stop()


def pool_of_threads(stage):
    """Its own scheduler: epoll in user threads."""
    with start(stage, options=["--thread-handling=pool-of-threads"]) as server:
        no_errors(load.sysbench(server.socket, "read_only", 32, stage.seconds, ROWS))
        return server.stop()


if __name__ == "__main__":
    try:
        status = main(
            point_select, read_only, read_write, many_connections, same_answers,
            kill_query, kill_connection, wait_timeout, refuses_too_many, ends_under_load,
            shutdown_statement, recovers_after_kill, pool_of_threads)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    sys.exit(status)
