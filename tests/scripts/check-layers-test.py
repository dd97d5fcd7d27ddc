#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/check-layers.py against small trees, good and bad."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-layers.py"

TABLE = """# Some text

| directory | holds | may include |
|---|---|---|
| src/base | lists | libc (model) |
| src/page | entries | base, uapi |
| src/engine | engines | page and below |
| src/loop | the loop | engine and below, public |
| cli, bench | programs | public |
| tests/model | checker | base |
| tests | tests | everything |

| another | table | here |
"""


class CheckLayers(unittest.TestCase):
    def check(self, files, table=TABLE):
        with tempfile.TemporaryDirectory() as top:
            top = pathlib.Path(top)
            (top / "ARCHITECTURE.md").write_text(table)
            for name, text in files.items():
                (top / name).parent.mkdir(parents=True, exist_ok=True)
                (top / name).write_text(text)
            done = subprocess.run([CHECK, "--root", top], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def good(self, files):
        self.assertEqual(self.check(files)[0], 0, self.check(files)[1])

    def bad(self, files, *words, table=TABLE):
        status, text = self.check(files, table)
        self.assertNotEqual(status, 0, text)
        for word in words:
            self.assertIn(word, text)

    def test_allowed(self):
        self.good({
            "src/base/list.c": '#include <stdio.h>\n#include "base/list.h"\n',
            "src/base/atomic.h": '#include "model/atomic.h"\n',
            "src/engine/poll.c": '#include "base/list.h"\n# include "page/ring.h"\n'
                                 "#include <linux/flexsc.h>\n",
            "src/loop/loop.c": '#include <flexsc.h>\n#include "engine/engine.h"\n',
            "cli/main.c": '#include <flexsc/calls.h>\n#include "cli/doctor.h"\n',
            "tests/x.c": '#include "loop/loop.h"\n#include <flexsc.h>\n',
            "tests/model/x.c": '#include "base/list.h"\n#include "model/x.h"\n',
        })

    def test_upwards(self):
        self.bad({"src/base/list.c": '\n#include "page/ring.h"\n'},
                 "src/base/list.c:2: src/base may not include page (page/ring.h)",
                 "may include: base, libc, model")
        self.bad({"src/engine/arm/poll.c": '#include "loop/loop.h"\n'}, "poll.c:1:")

    def test_header_counts_too(self):
        self.bad({"src/page/ring.h": '#  include\t"engine/engine.h"\n'}, "ring.h:1:")

    def test_programs_see_public_headers_only(self):
        self.bad({"cli/main.c": '#include "base/list.h"\n'}, "cli may not include base")
        self.bad({"bench/b.c": '#include "cli/doctor.h"\n'}, "may not include cli")
        self.bad({"cli/main.c": "#include <linux/flexsc.h>\n"}, "include uapi")

    def test_public_and_uapi_headers_are_layers(self):
        self.bad({"src/engine/poll.c": "#include <flexsc.h>\n"}, "include public")
        self.bad({"src/base/list.c": "#include <linux/flexsc.h>\n"}, "include uapi")

    def test_brackets_are_not_passed_on(self):
        self.bad({"src/page/x.c": '#include "model/atomic.h"\n'}, "include model")
        self.bad({"src/page/x.c": '#include "model/atomic.h"\n'}, "include model",
                 table=TABLE.replace("base, uapi", "base and below, uapi"))

    def test_form(self):
        self.bad({"src/base/list.c": '#include "list.h"\n'}, "does not name its layer")
        self.bad({"src/base/list.c": '#include "../base/list.h"\n'}, "relative path")
        self.bad({"src/base/list.c": '#include "nosuch/list.h"\n'}, "no layer nosuch")

    def test_folder_without_row(self):
        self.bad({"src/extra/x.c": "\n"}, "src/extra has no row")

    def test_table(self):
        files = {"src/base/list.c": "\n"}
        self.bad(files, "no table", table="# nothing\n")
        self.bad(files, "'nosuch', which has no row",
                 table=TABLE.replace("base, uapi", "nosuch"))
        self.bad(files, "a circle",
                 table=TABLE.replace("base, uapi", "engine and below"))
        self.bad(files, "two rows", table=TABLE.replace("src/page", "src/base"))

    def test_nothing_to_look_at(self):
        self.bad({"src/base/readme": "\n"}, "no source file")


if __name__ == "__main__":
    sys.exit(unittest.main())
