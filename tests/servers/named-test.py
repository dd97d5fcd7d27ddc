#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""BIND's named, unmodified: answers over UDP and TCP, reload, end."""

import signal
import sys
import time

from cases import expect, main
from servers import bind, load


def start(stage, threads=4):
    return bind.Named(stage.runner, stage.folder() / "named", threads)


def no_errors(found):
    expect(not found.errors, f"dnsperf saw {found.errors}")
    expect(found.requests, "no queries")


def answers(stage):
    with start(stage) as server:
        names = [f"host{n}.example.test" for n in (0, 7, 999, 5000)]
        return ([server.ask_udp(name) for name in names],
                [server.ask_tcp(name) for name in names], server.stop())


def load_udp(stage):
    with start(stage) as server:
        no_errors(load.dnsperf(server.port, server.queries, stage.seconds))
        return server.stop()


def load_tcp(stage):
    with start(stage) as server:
        no_errors(load.dnsperf(server.port, server.queries, stage.seconds, tcp=True))
        return server.stop()


def reads_its_zone_again(stage):
    with start(stage) as server:
        zone = server.root / "zone"
        zone.write_text(zone.read_text().replace("root.example.test. 1 ", "root.example.test. 2 ")
                        + "late A 10.9.9.9\n")
        before = server.ask_udp("late.example.test")
        server.send(signal.SIGHUP)
        for _ in range(100):
            answer = server.ask_udp("late.example.test")
            if answer != before:
                break
            time.sleep(0.1)
        expect(answer != before, "the new zone is not served")
        return before, answer, server.stop()


def ends_by_interrupt(stage):
    with start(stage) as server:
        return server.stop(signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main(answers, load_udp, load_tcp, reads_its_zone_again, ends_by_interrupt))
