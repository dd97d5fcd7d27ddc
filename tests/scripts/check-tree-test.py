#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/check-tree.py against small trees, good and bad."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-tree.py"
# The script around its own exceptions, which are of no use in a small tree.
BEFORE, AFTER = re.fullmatch(r"(.*^EXCEPTIONS = \{\n).*?(^\}\n.*)",
                             CHECK.read_text(encoding="utf-8"),
                             re.DOTALL | re.MULTILINE).groups()

HEAD = "/* SPDX-License-Identifier: MIT */\n/* Its job. */\n"
MARK = "TO" "DO"


def function(nr_lines, name="work", head="static int {}(int a,\n\t\tint b)\n"):
    """A function whose body has this many lines, both braces counted."""
    return head.format(name) + "{\n" + "\ta++;\n" * (nr_lines - 2) + "}\n"


class CheckTree(unittest.TestCase):
    def check(self, files, exceptions="", track=None):
        with tempfile.TemporaryDirectory() as top:
            top = pathlib.Path(top)
            check = top / "scripts" / "check-tree.py"
            files = {"LICENSES/MIT.txt": "MIT  \n", "scripts/check-tree.py":
                     BEFORE + exceptions + AFTER, **files}
            for name, content in files.items():
                (top / name).parent.mkdir(parents=True, exist_ok=True)
                if isinstance(content, bytes):
                    (top / name).write_bytes(content)
                else:
                    (top / name).write_text(content)
            if track is not None:
                subprocess.run(["git", "init", "-q", top], check=True)
                subprocess.run(["git", "-C", top, "add", *track], check=True)
            done = subprocess.run([sys.executable, check], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def good(self, files, **kwargs):
        status, text = self.check(files, **kwargs)
        self.assertEqual(status, 0, text)

    def bad(self, files, *words, **kwargs):
        status, text = self.check(files, **kwargs)
        self.assertEqual(status, 1, text)
        for word in words:
            self.assertIn(word, text)

    def test_good(self):
        self.good({
            "src/a.c": HEAD + "#include <a.h>\n\n" + function(60) + "\n" + function(3),
            "src/a.h": "/* SPDX-License-Identifier: MIT */\nint a;\n",
            "src/a.py": "#!/usr/bin/env python3\n# SPDX-License-Identifier: MIT\n",
            "README.md": "text, \"/tmp/fileXXXXXX\"\n",
            "docs/a.png": b"\0  \n\n\n",
        })

    def test_licence(self):
        self.bad({"a.h": "int a;\n"}, "a.h:1: no SPDX")
        self.bad({"meson.build": "project('x')\n"}, "meson.build:1: no SPDX")
        self.bad({"run": "#!/bin/sh\necho\n"}, "run:2: no SPDX")
        self.bad({"a.h": "/* SPDX-License-Identifier: BSD-2-Clause OR MIT */\n"},
                 "a.h:1: licence BSD-2-Clause has no text")

    def test_opening_comment(self):
        self.bad({"a.c": "/* SPDX-License-Identifier: MIT */\n\nint a;\n"},
                 "a.c:3: no opening comment")

    def test_lengths(self):
        self.bad({"a.c": HEAD + function(61)}, "a.c:5: work() has 61 lines, 60 allowed")
        self.bad({"a.h": HEAD + function(61, head="int {}(void)\n")}, "work() has 61")
        self.bad({"a.c": HEAD + "int work(void) {\n" + "\ta++;\n" * 60 + "}\n"},
                 "work() has 62")
        self.bad({"a.c": HEAD + "int a;\n" * 799}, "a.c:1: 801 lines, 800 allowed")
        self.good({"a.c": HEAD + "static int table[] = {\n" + "\t1,\n" * 90 + "};\n"})

    def test_exceptions(self):
        long = {"a.c": HEAD + function(80)}
        self.good(long, exceptions='"a.c:work": (80, "why"),\n')
        self.bad(long, "80 lines, 79 allowed", exceptions='"a.c:work": (79, "why"),\n')
        self.bad({"a.c": HEAD + function(60)}, "no longer needs",
                 exceptions='"a.c:work": (80, "why"),\n')
        self.bad({"a.c": HEAD}, "does not exist", exceptions='"b.c": (900, "why"),\n')

    def test_text(self):
        self.bad({"a.md": "one \n"}, "a.md:1: trailing blank")
        self.bad({"a.md": "one\r\ntwo\n"}, "a.md:1: trailing blank")
        self.bad({"a.md": "one"}, "a.md:1: no newline at the end")
        self.bad({"a.md": "one\n\n"}, "a.md:2: empty line at the end")
        self.bad({"a.c": HEAD + f"/* {MARK}: later */\n"}, "a.c:3: unfinished work")
        self.bad({"a.md": b"\xff\n"}, "not UTF-8")

    def test_names(self):
        self.bad({"src/utils.c": HEAD}, "'utils.c' does not say")
        self.bad({"common/a.c": HEAD}, "'common' does not say")

    def test_only_tracked_files_count(self):
        track = ["LICENSES", "scripts", "a.md"]
        self.good({"a.md": "one\n", "draft.md": "two \n"}, track=track)
        self.bad({"a.md": "one \n", "draft.md": "two \n"}, "a.md:1", track=track)


if __name__ == "__main__":
    sys.exit(unittest.main())
