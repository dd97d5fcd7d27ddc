# SPDX-License-Identifier: MIT
"""The distribution's nginx, with its own event module or with ports/nginx."""

import os
import pathlib
import signal

from . import process

STREAM = pathlib.Path("/usr/lib/nginx/modules/ngx_stream_module.so")
ORIGINAL = "epoll"
TOOLS = ("nginx", "wrk")
CONFIG = """
{modules}
{user}
daemon off;
pid {root}/pid;
error_log {root}/error.log notice;
worker_processes {workers};
worker_shutdown_timeout 20s;
{main}
events {{
    {events}
    worker_connections {connections};
    {more_events}
}}
http {{
    access_log off;
    client_body_temp_path {root}/tmp/body;
    proxy_temp_path {root}/tmp/proxy;
    fastcgi_temp_path {root}/tmp/fastcgi;
    uwsgi_temp_path {root}/tmp/uwsgi;
    scgi_temp_path {root}/tmp/scgi;
    types {{ text/html html; text/plain txt; }}
    default_type application/octet-stream;
    keepalive_requests 1000000000;
    {sendfile}
    {http}
    server {{
        listen {address} {listen};
        root {root}/files;
        {server}
    }}
}}
{stream}
"""


class Engine(process.Runner):
    """nginx's own event module, or the port with an engine of FlexSC."""

    def __init__(self, engine, module=None):
        super().__init__(f"flexsc-{engine}" if module else engine)
        self.engine, self.module = engine, module

    @property
    def threads(self):
        return False


def original(_module=None):
    return Engine(ORIGINAL)


def build(folder):
    """The module, built if need be: its path. Absent without nginx-dev."""
    return process.built("nginx", folder)


class Nginx(process.Server):
    """@main, @http, ...: more lines of these blocks; @stream: a whole block."""

    name = "nginx"

    def __init__(self, runner, scratch, files=(), workers=1, cpus=None, before=(), **more):
        program = process.find("nginx")
        self.root = pathlib.Path(scratch)
        (self.root / "tmp").mkdir(parents=True, exist_ok=True)
        (self.root / "files").mkdir(exist_ok=True)
        for name, body in dict(files).items():
            path = self.root / "files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
            os.utime(path, (1_700_000_000, 1_700_000_000))
        self.port = process.free_port()
        self.options = dict(more, workers=workers, runner=runner)
        self.configure()
        super().__init__(runner, [*before, program, "-e", str(self.root / "error.log"), "-c",
                                  str(self.root / "nginx.conf")], self.root / "output", cpus)
        self.wait_ready(lambda: process.accepts(self.port), 60 if before else 30)

    def configure(self, **changes):
        self.options.update(changes)
        options = dict({"main": "", "http": "", "server": "", "listen": "", "stream": "",
                        "more_events": "", "connections": 8192}, **self.options)
        runner, root = options["runner"], str(self.root)
        modules = [runner.module] if runner.module else []
        if options["stream"]:
            if not STREAM.exists():
                raise process.Absent(f"{STREAM} is not installed (libnginx-mod-stream)")
            modules.append(STREAM)
        options["modules"] = "\n".join(f"load_module {module};" for module in modules)
        options["events"] = (f"use flexsc; flexsc_engine {runner.engine};" if runner.module
                             else f"use {runner.engine};")
        options["user"] = "user root;" if os.geteuid() == 0 else ""
        options["address"] = f"127.0.0.1:{self.port}"
        options["root"] = root
        options["sendfile"] = "" if "sendfile" in options["http"] else "sendfile on;"
        for block in ("main", "http", "server", "stream"):
            options[block] = options[block].replace("ROOT", root)
        (self.root / "nginx.conf").write_text(CONFIG.format(**options))

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"

    def master(self):
        """Its number; 0 while one hands over to the next."""
        try:
            return int((self.root / "pid").read_text() or 0)
        except OSError:
            return 0

    def workers(self):
        """Processes of the session that nginx's present master has made."""
        master, found = self.master(), []
        for pid in self.pids():
            try:
                if int(process.stat_fields(pid)[1]) == master:
                    found.append(pid)
            except OSError:
                continue
        return found

    def error_log(self):
        path = self.root / "error.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def complaints(self):
        return [line for line in self.error_log().splitlines()
                if "[alert]" in line or "[emerg]" in line or "[crit]" in line]

    def last_words(self, lines=15):
        return "\n".join([super().last_words(lines), *self.error_log().splitlines()[-lines:]])

    def quit(self, seconds=30):
        return self.stop(signal.SIGQUIT, seconds)
