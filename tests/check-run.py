#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `flexsc run` makes of programs: nothing that they would notice.

    tests/check-run.py FLEXSC CC...

Exit status and death by a signal are the program's own; usual programs print
the same as without it; what cannot work runs natively after one line that says
why; the environment holds what the library reads. Without the library in the
build the last is left out.
"""

import os
import pathlib
import signal
import stat
import struct
import subprocess
import sys
import tempfile

NOTE = """
__asm__(".pushsection .note.go.buildid,\\"a\\",@note\\n"
	".long 4, 4, 4\\n.asciz \\"Go\\\\0\\"\\n.long 0\\n.popsection");
"""
EXIT = "int main(void) { return 7; }\n"
CAPABILITY = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)  # net_bind_service
NOBODY = 65534
faults = []


def check(good, text):
    if not good:
        faults.append(text)


class Bench:
    """The programs under test, in a folder of their own."""

    def __init__(self, flexsc, compiler, folder):
        self.flexsc, self.compiler, self.folder = flexsc, compiler, folder
        self.library = pathlib.Path(flexsc).resolve().parents[1] / \
            "src/libflexsc-threads.so"

    def build(self, name, text, *flags):
        path = self.folder / name
        done = subprocess.run([*self.compiler, "-x", "c", "-", "-o", path, *flags],
                              input=text, text=True, capture_output=True, check=False)
        return None if done.returncode else path

    def run(self, *command, options=(), **more):
        return subprocess.run([self.flexsc, "run", *options, "--", *command],
                              stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=60, **more)


def check_status(bench):
    check(bench.run("sh", "-c", "exit 42").returncode == 42, "exit 42")
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
        died = bench.run("sh", "-c", f"kill -{int(number)} $$").returncode
        check(died == -number, f"{number.name} became {died}")
    with subprocess.Popen([bench.flexsc, "run", "sleep", "60"]) as sleeper:
        sleeper.send_signal(signal.SIGINT)
        check(sleeper.wait(10) == -signal.SIGINT, "SIGINT is not passed on")
    for name, status in (("no-such-program", 127), ("/no/such/program", 127),
                         ("/etc", 126), ("/etc/passwd", 126)):
        done = bench.run(name, options=["--quiet"])
        check(done.returncode == status and name in done.stderr,
              f"{name}: {done.returncode}, {done.stderr!r}")
    for wrong in ([], ["--engine", "steam", "true"], ["--cores", "0", "true"],
                  ["--cores", "two", "true"], ["--nonsense", "true"]):
        done = subprocess.run([bench.flexsc, "run", *wrong], check=False,
                              capture_output=True, text=True)
        check(done.returncode == 64 and done.stderr, f"{wrong}: {done.returncode}")


def check_arguments(bench):
    done = bench.run("printf", "%s|", "-n", "--", "--engine", "a b", "")
    check(done.stdout == "-n|--|--engine|a b||", f"arguments: {done.stdout!r}")
    done = subprocess.run([bench.flexsc, "run", "printf", "%s|", "--quiet"],
                          capture_output=True, text=True, check=False)
    check(done.stdout == "--quiet|", f"options of the program: {done.stdout!r}")


def check_same(bench):
    """Usual programs, beside themselves."""
    source = bench.folder / "page.c"
    source.write_text(EXIT)
    (bench.folder / "script").write_text("#!/bin/sh\necho \"$0 $1\"\nexit 3\n")
    (bench.folder / "script").chmod(0o755)
    (bench.folder / "plain").write_text("echo no interpreter; exit 4\n")
    (bench.folder / "plain").chmod(0o755)
    threads = "import threading, time\n" \
        "all = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(20)]\n" \
        "[t.start() for t in all]; [t.join() for t in all]; print('done')"
    asan = bench.build("asan", "int main(void) { return 8; }\n", "-fsanitize=address")
    for command in ([asan or "true"], ["ls", "-la", "/usr"],
                    ["bash", "-c", "for i in 1 2 3; do (echo $i) | cat; done; exit 5"],
                    [*bench.compiler, "-S", "-o", "-", source],
                    ["git", "init", "-q", bench.folder / "repository"],
                    ["git", "--version"],
                    ["python3", "-c", "import sys; print(sys.argv); sys.exit(6)", "a"],
                    ["python3", "-c", threads],
                    ["curl", "-s", f"file://{source}"],
                    ["env", "ls", "/"],
                    [bench.folder / "script", "one"], [bench.folder / "plain"]):
        plain = subprocess.run(["env", *command], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, check=False)
        done = bench.run(*command, options=["--quiet"])
        check((done.returncode, done.stdout, done.stderr) ==
              (plain.returncode, plain.stdout, plain.stderr),
              f"{command}: {done.returncode} {done.stdout[-200:]!r} {done.stderr[-200:]!r}, "
              f"natively {plain.returncode} {plain.stdout[-200:]!r}")


def patched(path, name, offset, value):
    """A copy of a program with some bytes of its header changed."""
    data = bytearray(path.read_bytes())
    data[offset:offset + len(value)] = value
    copy = path.with_name(name)
    copy.write_bytes(data)
    copy.chmod(0o755)
    return copy


def check_refusal(bench, path, what, status=7, **more):
    """Runs without the library, says why in one line, or nothing if quiet."""
    if not path:
        print(f"no compiler for: {what}")
        return
    done = bench.run(path, **more)
    if status is None:  # the kernel's business
        check(what in done.stderr, f"{what}: said {done.stderr!r}")
        return
    check(done.returncode == status, f"{what}: exit status {done.returncode}")
    check(what in done.stderr.splitlines()[0] and "running without it" in done.stderr,
          f"{what}: said {done.stderr!r}")
    check(len(done.stderr.splitlines()) == (1 if status == 7 else 2),
          f"{what}: said {done.stderr!r}")
    quiet = bench.run(path, options=["--quiet"], **more)
    check(quiet.returncode == status and (status != 7 or not quiet.stderr),
          f"{what}, quiet: {quiet.returncode}, {quiet.stderr!r}")


def check_refusals(bench):
    usual = bench.build("usual", EXIT)
    check_refusal(bench, bench.build("static", EXIT, "-static"), "statically linked")
    check_refusal(bench, bench.build("static-pie", EXIT, "-static-pie"),
                  "statically linked")
    check_refusal(bench, bench.build("go", NOTE + EXIT), "Go program")
    info = '__attribute__((section(".go.buildinfo"))) int info = 1;\n'
    check_refusal(bench, bench.build("go-stripped", info + EXIT, "-s"), "Go program")
    musl = bench.build("musl", EXIT, "-Wl,--dynamic-linker=/nowhere/ld-musl-x86_64.so.1")
    check_refusal(bench, musl, "musl", 127)
    other = bench.build("other", EXIT, "-Wl,--dynamic-linker=/nowhere/rtld")
    check_refusal(bench, other, "loader", 127)
    check_refusal(bench, patched(usual, "narrow", 4, b"\1"), "32-bit", None)
    check_refusal(bench, patched(usual, "foreign", 18, b"\x08\0"), "another machine", None)
    script = bench.folder / "static-script"
    script.write_text(f"#!{bench.folder}/static\n")
    script.chmod(0o755)
    check_refusal(bench, script, "statically linked")
    script.write_text("#!/usr/bin/env -S A=1 static\n")
    path = {"PATH": f"{bench.folder}:{os.environ['PATH']}"}
    check_refusal(bench, script, "statically linked", env=dict(os.environ, **path))
    # What is cut short is no reason to crash.
    data = usual.read_bytes()
    for size in (1, 5, 20, 63, 64, 100, 400, 1000):
        usual.with_name("cut").write_bytes(data[:size])
        usual.with_name("cut").chmod(0o755)
        done = bench.run(usual.with_name("cut"), options=["--quiet"])
        check(done.returncode >= 0 or size > 400, f"cut at {size}: {done.returncode}")


def check_privileges(bench):
    """Programs that gain rights; only root can make them."""
    if os.geteuid() != 0 or os.statvfs(bench.folder).f_flag & os.ST_NOSUID:
        return
    bench.folder.chmod(0o755)
    for name, mode, owner, what in (("uid", stat.S_ISUID, (NOBODY, 0), "setuid"),
                                    ("gid", stat.S_ISGID, (0, NOBODY), "setgid")):
        path = bench.build(name, EXIT)
        os.chown(path, *owner)
        path.chmod(0o755 | mode)
        check_refusal(bench, path, what)
    path = bench.build("capable", EXIT)
    try:
        os.setxattr(path, "security.capability", CAPABILITY)
    except OSError:
        return
    if os.access(bench.flexsc, os.X_OK) and reachable(bench.flexsc):
        check_refusal(bench, path, "capabilities", user=NOBODY, group=NOBODY)


def reachable(path):
    """May anybody go there? Build folders in a home directory are not."""
    return all(folder.stat().st_mode & stat.S_IXOTH
               for folder in pathlib.Path(path).resolve().parents)


def check_environment(bench):
    if not bench.library.exists():
        print(f"{bench.library} is missing: environment not checked")
        return
    show = "env | grep -E '^(LD_PRELOAD|GLIBC_TUNABLES|FLEXSC_.*)=' | sort"
    plain = dict(os.environ, LC_ALL="C")
    for name in ("LD_PRELOAD", "GLIBC_TUNABLES", "FLEXSC_ENGINE", "FLEXSC_QUIET"):
        plain.pop(name, None)

    def shown(options, env):
        return bench.run("sh", "-c", show, options=options, env=env,
                         cwd=bench.folder).stdout.split()

    rseq, library = "glibc.pthread.rseq=0", str(bench.library)
    got = shown([], plain)
    check(got == [f"GLIBC_TUNABLES={rseq}", f"LD_PRELOAD={library}"], f"got {got}")
    got = shown(["--engine", "poll", "--cores=1", "--stats", "s.json", "--quiet"], plain)
    check(got == ["FLEXSC_CORES=1", "FLEXSC_ENGINE=poll", "FLEXSC_QUIET=1",
                  f"FLEXSC_STATS={bench.folder}/s.json", f"GLIBC_TUNABLES={rseq}",
                  f"LD_PRELOAD={library}"], f"got {got}")
    other = dict(plain, LD_PRELOAD="libm.so.6", GLIBC_TUNABLES="glibc.malloc.check=0")
    got = shown([], other)
    check(got == [f"GLIBC_TUNABLES=glibc.malloc.check=0:{rseq}",
                  f"LD_PRELOAD={library}:libm.so.6"], f"got {got}")
    got = bench.run(bench.flexsc, "run", "--", "sh", "-c", show, env=plain).stdout.split()
    check(got == [f"GLIBC_TUNABLES={rseq}", f"LD_PRELOAD={library}"], f"nested: {got}")
    got = bench.run("env", "sh", "-c", "exec env", options=["--no-inherit"],
                    env=plain).stdout
    check(f"LD_PRELOAD={library}\n" in got, f"no-inherit, executed: {got}")
    # A shell that runs env as its child; the child has none of it.
    got = shown(["--no-inherit"], plain)
    check(got == [f"GLIBC_TUNABLES={rseq}"],
          f"no-inherit: {got}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(str(pathlib.Path(sys.argv[1]).resolve()),
                      sys.argv[2:] or ["cc"], pathlib.Path(folder).resolve())
        for part in (check_status, check_arguments, check_same, check_refusals,
                     check_privileges, check_environment):
            part(bench)
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
