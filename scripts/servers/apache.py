# SPDX-License-Identifier: MIT
"""An unmodified Apache httpd, worker MPM, with a configuration of its own."""

import os
import pathlib
import signal

from . import process

MODULES = pathlib.Path("/usr/lib/apache2/modules")
CONFIG = """
ServerRoot "{root}"
ServerName localhost
PidFile "{root}/httpd.pid"
DefaultRuntimeDir "{root}"
Listen 127.0.0.1:{port}
ListenBacklog 4096
{modules}
{user}
ErrorLog "{root}/error.log"
LogLevel warn
Timeout 60
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
ServerLimit 8
ThreadLimit {threads}
ThreadsPerChild {threads}
StartServers 1
MinSpareThreads 1
MaxSpareThreads {spare}
MaxRequestWorkers {workers}
GracefulShutdownTimeout 5
DocumentRoot "{root}/files"
TypesConfig /dev/null
AddType text/html .html
<Directory />
    AllowOverride None
    Require all denied
</Directory>
<Directory "{root}/files">
    Require all granted
</Directory>
{more}
"""
CGI = """
ScriptAlias /cgi/ "{root}/cgi/"
<Directory "{root}/cgi">
    Require all granted
</Directory>
"""
SCRIPT = """#!/bin/sh
echo 'Content-Type: text/plain'
echo
echo "query=$QUERY_STRING method=$REQUEST_METHOD"
[ "$REQUEST_METHOD" = POST ] && cat
exit 0
"""


def module(name):
    path = MODULES / f"mod_{name}.so"
    if not path.exists():
        raise process.Absent(f"{path} is not installed (package apache2-bin)")
    return f"LoadModule {name}_module {path}"


def user_lines():
    """Who is root may not serve as root."""
    return "User nobody\nGroup nogroup" if os.geteuid() == 0 else ""


class Apache(process.Server):
    """@threads: how many connections it can hold; @cgi: None, cgi or cgid."""

    name = "Apache"

    def __init__(self, runner, scratch, files, threads=64, cgi=None, cpus=None,
                 children=1, more=""):
        program = process.find("apache2", "httpd")
        self.root = pathlib.Path(scratch)
        self.root.mkdir(parents=True, exist_ok=True)
        self.port = process.free_port()
        (self.root / "files").mkdir()
        for name, body in files.items():
            (self.root / "files" / name).write_bytes(body)
        names = ["mpm_worker", "authz_core", "mime", "dir"]
        if cgi:
            names += [cgi, "alias"]
            more += CGI.format(root=self.root)
            more += f'ScriptSock "{self.root}/cgid.sock"\n' if cgi == "cgid" else ""
            self.add_script()
        (self.root / "httpd.conf").write_text(CONFIG.format(
            root=self.root, port=self.port, user=user_lines(), threads=threads,
            workers=threads * children, spare=threads * children + 1,
            modules="\n".join(map(module, names)), more=more))
        super().__init__(runner, [program, "-d", str(self.root), "-f",
                                  str(self.root / "httpd.conf"), "-DFOREGROUND"],
                         self.root / "output", cpus)
        self.wait_ready(lambda: process.accepts(self.port))

    def add_script(self):
        folder = self.root / "cgi"
        folder.mkdir()
        (folder / "say").write_text(SCRIPT)
        (folder / "say").chmod(0o755)

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name.replace(' ', '%20')}"

    def last_words(self, lines=15):
        log = self.root / "error.log"
        more = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join([super().last_words(lines), *more[-lines:]])

    def graceful(self):
        self.send(signal.SIGUSR1)
