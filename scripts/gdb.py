# SPDX-License-Identifier: MIT
"""gdb for processes on FlexSC-Threads, running or in a core file.

gdb loads this by itself where it is installed (libflexsc-threads.so-gdb.py in
its auto-load folder); in a build tree: source scripts/gdb.py

A user thread has a kernel thread of its own, and so a number in gdb. While it
is parked the backtrace of that thread is the user thread's: whatever runs on a
carrier is shown there, as the carrier's. No register is changed for that.

    info flexsc threads       what user threads do and wait for
    flexsc thread N           select thread N, or the carrier that runs it
    flexsc apply all COMMAND  a command for each user thread, where it runs
"""

import struct

import gdb
import gdb.unwinder

MAGIC, VERSION = 0x72504346, 1
RUNNING, PARKING, PARKED, AT_HOME, READY = range(5)
ON_CALL = 1
# struct flexsc_process of <flexsc/observe.h>, to the end of the layouts.
PROCESS = struct.Struct("<4I7Q2I2Q48x16H16H16H")


class Process:
    """What the process says of itself; raises gdb.error where it says nothing."""

    def __init__(self):
        # Without debugging information the symbol has no type.
        pointer = gdb.parse_and_eval("*(unsigned long *)&flexsc_process")
        if not int(pointer):
            raise gdb.error("the process has no user threads")
        values = PROCESS.unpack(read(int(pointer), PROCESS.size))
        if values[0] != MAGIC or values[1] != VERSION:
            raise gdb.error("the library is of another version than this script")
        (self.threads, _, self.carriers, _, _, _, self.parked_pc) = values[4:11]
        self.lend_begin, self.lend_end = values[13:15]
        names = ("next tid state carrier where since_ms on cpu_ns stays sp tls").split()
        self.thread = dict(zip(names, values[15:31]))
        self.carrier = dict(zip("next tid queue switches lost".split(), values[47:63]))


def read(address, size):
    return gdb.selected_inferior().read_memory(address, size).tobytes()


def number(address, kind="Q"):
    return struct.unpack("<" + kind, read(address, struct.calcsize(kind)))[0]


def text(address):
    try:
        return gdb.Value(address).cast(gdb.lookup_type("char").pointer()).string()
    except (gdb.error, UnicodeDecodeError):
        return "?"


# Frames

class FrameId:
    """What gdb tells frames apart by."""

    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class Parked(gdb.unwinder.Unwinder):
    """Behind the kernel thread that waits for a user thread: that one's stack."""

    def __init__(self):
        super().__init__("flexsc")
        self.process = None

    def __call__(self, frame):
        # Unwinding must not fail for what is none of ours.
        try:
            return self.unwind(frame)
        except (gdb.error, gdb.MemoryError):
            return None

    def unwind(self, frame):
        pc = int(frame.read_register("rip"))
        if self.process is None:
            self.process = Process()
        p = self.process
        if not p.lend_begin <= pc < p.lend_end:
            return None
        # fx_arch_lend() keeps the context there, which begins by @sp.
        record = int(frame.read_register("rbx")) - p.thread["sp"]
        tls, state = number(record + p.thread["tls"]), number(record + p.thread["state"])
        if tls != int(frame.read_register("fs_base")) % 2 ** 64 or \
                state & 0xff not in (PARKED, READY):
            return None
        sp = number(record + p.thread["sp"])
        long = gdb.lookup_type("unsigned long")
        # As if it were called from there: gdb wants stacks to grow one way.
        unwound = frame.create_unwind_info(
            FrameId(gdb.Value(sp - 16).cast(long), gdb.Value(pc).cast(long)))
        unwound.add_saved_register("rsp", gdb.Value(sp).cast(long))
        unwound.add_saved_register("rip", gdb.Value(p.parked_pc).cast(long))
        return unwound


PARKED_UNWINDER = Parked()


def forget(*_):
    """Another process, or another library: look again."""
    PARKED_UNWINDER.process = None


# Threads

class UserThread:
    """One record, as it is now."""

    def __init__(self, process, record):
        offset = process.thread
        self.tid = number(record + offset["tid"], "i")
        self.tls = number(record + offset["tls"])
        self.state = number(record + offset["state"]) & 0xff
        self.carrier = number(record + offset["carrier"])
        self.on = number(record + offset["on"])
        where = number(record + offset["where"])
        self.where = text(where) if self.state in (PARKED, AT_HOME) and where else ""
        self.carrier_tid = number(self.carrier + process.carrier["tid"], "i") \
            if self.carrier else 0

    @property
    def kept(self):
        return self.where == "idle"

    def doing(self):
        if self.state in (PARKED, AT_HOME):
            if self.on & ~ON_CALL and not self.on & ON_CALL:
                return f"parked: {self.where} {self.on:#x}"
            if self.on & ON_CALL:
                return f"parked: {self.where}({self.first_argument()})"
            return f"parked: {self.where}"
        if self.state == READY:
            return "ready"
        return f"running, on carrier {self.carrier_tid}" if self.carrier else "at home"

    def first_argument(self):
        """Of the posted call: a descriptor, for most calls that wait."""
        try:
            nr_args, value = number((self.on & ~ON_CALL) + 6, "B"), \
                number((self.on & ~ON_CALL) + 8, "q")
        except gdb.MemoryError:
            return "?"
        return f"{value}{', ...' if nr_args > 1 else ''}" if nr_args else ""


def user_threads():
    """Those of the selected inferior that have not ended."""
    process = Process()
    record, last = number(process.threads), 0
    while record and record != last:
        thread = UserThread(process, record)
        if thread.tid and not thread.kept:
            yield thread
        record, last = number(record + process.thread["next"]), record


def by_lwp():
    """gdb's threads by what the process calls them, in a container too."""
    threads = gdb.selected_inferior().threads()
    return {thread.ptid[1]: thread for thread in threads}


def gdb_threads(thread, lwps):
    """(its own kernel thread, where it is to be looked at) in gdb's terms."""
    home = lwps.get(thread.tid)
    on_carrier = thread.state in (RUNNING, PARKING) and thread.carrier
    return home, lwps.get(thread.carrier_tid) if on_carrier else home


def show(home, thread):
    return f"{home.num if home else '-':>5} {thread.tid:>8} " \
           f"{(home.name if home else None) or '':<16} {thread.doing()}"


class InfoFlexsc(gdb.Command):
    """About FlexSC."""

    def __init__(self):
        super().__init__("info flexsc", gdb.COMMAND_STATUS, prefix=True)


class InfoThreads(gdb.Command):
    """What user threads do and wait for; the number is that of gdb's thread."""

    def __init__(self):
        super().__init__("info flexsc threads", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        lwps = by_lwp()
        print(f"{'Id':>5} {'LWP':>8} {'Name':<16} State")
        for thread in user_threads():
            print(show(gdb_threads(thread, lwps)[0], thread))


class Flexsc(gdb.Command):
    """User threads of FlexSC."""

    def __init__(self):
        super().__init__("flexsc", gdb.COMMAND_RUNNING, prefix=True)


class Thread(gdb.Command):
    """flexsc thread N: select user thread N, on the carrier if one runs it."""

    def __init__(self):
        super().__init__("flexsc thread", gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        lwps = by_lwp()
        for thread in user_threads():
            home, there = gdb_threads(thread, lwps)
            if home and there and str(home.num) == argument.strip():
                there.switch()
                print(show(home, thread))
                gdb.execute("frame")
                return
        raise gdb.GdbError(f"no user thread has the number '{argument}': "
                           "info flexsc threads")


class Apply(gdb.Command):
    """flexsc apply all COMMAND: for each user thread, in its own frames."""

    def __init__(self):
        super().__init__("flexsc apply", gdb.COMMAND_RUNNING)

    def invoke(self, argument, from_tty):
        which, _, command = argument.partition(" ")
        if not command.strip():
            raise gdb.GdbError("flexsc apply all COMMAND, or: flexsc apply N COMMAND")
        before, lwps = gdb.selected_thread(), by_lwp()
        for thread in user_threads():
            home, there = gdb_threads(thread, lwps)
            if not there or which not in ("all", str(home.num if home else 0)):
                continue
            there.switch()
            print(f"\n{show(home, thread)}")
            try:
                gdb.execute(command)
            except gdb.error as error:
                print(error)
        if before:
            before.switch()


for command in (InfoFlexsc, InfoThreads, Flexsc, Thread, Apply):
    command()
gdb.unwinder.register_unwinder(None, PARKED_UNWINDER, replace=True)
for event in (gdb.events.new_objfile, gdb.events.clear_objfiles, gdb.events.exited):
    event.connect(forget)
