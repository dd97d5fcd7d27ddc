# SPDX-License-Identifier: MIT
"""An unmodified MariaDB server on a data folder of its own."""

import os
import pathlib
import shutil
import subprocess

from . import process

TABLES = 1


def as_user():
    """Who is root must say that it is meant."""
    return ["--user=root"] if os.geteuid() == 0 else []


def new_data(folder):
    """A fresh data folder, made natively; some seconds."""
    program = process.find("mariadb-install-db", "mysql_install_db")
    done = subprocess.run(
        [program, "--no-defaults", f"--datadir={folder}", *as_user(), "--skip-test-db",
         "--auth-root-authentication-method=normal", "--innodb-log-file-size=32M"],
        capture_output=True, text=True, check=False)
    if done.returncode:
        raise process.Failure(f"{program}: {done.stderr[-500:] or done.stdout[-500:]}")


class MariaDB(process.Server):
    """On a Unix socket; @data is a folder that new_data() made, or a copy."""

    name = "MariaDB"

    def __init__(self, runner, scratch, data, connections=64, cpus=None, options=()):
        program = process.find("mariadbd", "mysqld")
        self.root, self.data = pathlib.Path(scratch), pathlib.Path(data)
        self.root.mkdir(parents=True, exist_ok=True)
        # A socket's path is limited to 107 characters.
        self.socket = str(self.root / "sql.sock")
        super().__init__(runner, [
            program, "--no-defaults", f"--datadir={self.data}", *as_user(),
            f"--socket={self.socket}", f"--pid-file={self.root}/sql.pid",
            f"--log-error={self.root}/error.log", f"--tmpdir={self.root}",
            "--skip-networking", f"--max-connections={connections + 10}",
            f"--back-log={connections + 100}", f"--thread-cache-size={connections}",
            "--innodb-buffer-pool-size=192M", "--innodb-log-file-size=32M", *options],
            self.root / "output", cpus)
        self.wait_ready(lambda: self.sql("select 1", check=False) == "1", 60)

    def client(self):
        return [process.find("mariadb", "mysql"), "--no-defaults", "-uroot",
                f"--socket={self.socket}", "--batch", "--skip-column-names",
                "--connect-timeout=10"]

    def sql(self, text, check=True, database=None, seconds=60):
        """What the statements give, as text."""
        command = self.client() + ([database] if database else [])
        done = subprocess.run([*command, "-e", text], capture_output=True, text=True,
                              timeout=seconds, check=False)
        if done.returncode and check:
            raise process.Failure(f"{text}: {done.stderr.strip()}")
        return done.stdout.strip() if done.returncode == 0 else done.stderr.strip()

    def last_words(self, lines=15):
        log = self.root / "error.log"
        more = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join([super().last_words(lines), *more[-lines:]])


def with_tables(scratch, rows):
    """A data folder with sysbench's tables in it, made natively."""
    from . import load
    folder = pathlib.Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    new_data(folder / "data")
    with MariaDB(process.native(), folder / "run", folder / "data",
                 options=["--innodb-flush-log-at-trx-commit=0"]) as server:
        server.sql("create database sbtest")
        load.sysbench_prepare(server.socket, TABLES, rows)
        server.stop()
    return folder / "data"


def copy(data, folder):
    shutil.copytree(data, folder)
    return folder
