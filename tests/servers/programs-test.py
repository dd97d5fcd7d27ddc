#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Threads of other languages, clients, and other libraries preloaded beside."""

import glob
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys

from cases import expect, main
from servers import process

HERE = pathlib.Path(__file__).resolve().parent


def succeed(stage, command, seconds=60, **options):
    status, output = stage.run(command, seconds, **options)
    expect(status == 0, f"{command[0]}: status {status}:\n{output[-3000:]}")
    return output


def compile_natively(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"{command[0]}: {done.stderr[-2000:]}")


def cxx_program(stage):
    program = stage.folder() / "threads20"
    compile_natively([process.find("g++"), "-std=c++20", "-O1", "-pthread", "-o", str(program),
                      str(HERE / "threads20.cpp")])
    return str(program)


def cpython(stage):
    return succeed(stage, ["/usr/bin/python3", str(HERE / "python-threads.py")])


def cxx20(stage):
    return succeed(stage, [cxx_program(stage)])


def java(stage):
    folder = stage.folder()
    compile_natively([process.find("javac"), "-d", str(folder), str(HERE / "Threads.java")])
    return succeed(stage, [process.find("java"), "-Xmx128m", "-XX:+UseParallelGC",
                           "-cp", str(folder), "Threads"], 120)


def beside(stage, pattern):
    found = glob.glob(pattern)
    if not found:
        raise process.Absent(f"{os.path.basename(pattern)} is not installed")
    program = cxx_program(stage)
    stage.runner = stage.runner.with_preload(found[0])
    return succeed(stage, [program]), succeed(
        stage, ["/usr/bin/python3", str(HERE / "python-threads.py")])


def jemalloc(stage):
    return beside(stage, "/usr/lib/*/libjemalloc.so.2")


def tcmalloc(stage):
    return beside(stage, "/usr/lib/*/libtcmalloc_minimal.so.4")


def postgres_folder():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found:
        raise process.Absent("postgres is not installed")
    return pathlib.Path(found[-1])


def as_postgres(command):
    """The server refuses to be root."""
    if os.geteuid() != 0:
        return command
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        raise process.Absent("there is no user postgres") from None
    return [process.find("setpriv"), "--reuid=postgres", "--regid=postgres",
            "--clear-groups", *command]


def pgbench_as_client(stage):
    """The server natively; the client with threads is what is looked at."""
    tools, folder = postgres_folder(), stage.folder()
    if not (tools / "pgbench").exists():
        raise process.Absent("pgbench is not installed")
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
        folder.parent.chmod(0o755)
    compile_natively(as_postgres([str(tools / "initdb"), "-D", str(folder / "data"), "-A", "trust",
                                  "-U", "postgres", "--no-sync"]))
    (folder / "log").touch()
    server = process.Process(process.native(), as_postgres(
        [str(tools / "postgres"), "-D", str(folder / "data"), "-k", str(folder), "-c",
         "listen_addresses=", "-c", "fsync=off"]), folder / "log")
    client = ["-h", str(folder), "-U", "postgres", "postgres"]
    try:
        server.wait_ready(lambda: (folder / ".s.PGSQL.5432").exists() and subprocess.run(
            [tools / "pg_isready", "-h", folder], capture_output=True, check=False
        ).returncode == 0)
        compile_natively([str(tools / "pgbench"), "-i", "-q", *client])
        output = succeed(stage, [str(tools / "pgbench"), "-S", "-c", "16", "-j", "8", "-T",
                                 str(stage.seconds), *client])
        processed = re.search(r"actually processed: (\d+)", output)
        expect(processed and int(processed.group(1)) > 50, output)
        counted = succeed(stage, [str(tools / "pgbench"), "-N", "-c", "8", "-j", "8", "-t",
                                  "20", *client])
        return re.findall(r"actually processed.*|number of failed.*", counted)
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(main(cpython, cxx20, java, jemalloc, tcmalloc, pgbench_as_client))
