#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/run-tests.py against a small Meson project with every kind of end."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUNNER = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "run-tests.py"

PROGRAM = """#!/usr/bin/env python3
import os, sys, time
def end(text, status=0):
    print(text, flush=True)
    sys.exit(status)
case = sys.argv[1]
if case == "good": end("fine")
if case == "bad": end("the reason it broke", 3)
if case == "skip": end("SKIP: no such kernel\\nlast line", 77)
if case == "slow": time.sleep(60)
if case == "tap": end("1..3\\nok 1 - a\\nok 2 - b # SKIP no module\\nok 3 - c")
if case == "tapbad": end("1..2\\nok 1 - a\\nnot ok 2 - broken part")
if case == "tapsaid":
    text = "ok 1 - a\\n# why b\\nnot ok 2 - b\\n# why c\\nnot ok 3 - c\\n"
    end("1..99\\n" + text + "".join(f"ok {n} - x\\n" for n in range(4, 100)))
if case == "tapcrash":
    print("1..2\\nok 1 - a", flush=True)
    os.kill(os.getpid(), 9)
"""


class RunTests(unittest.TestCase):
    def run_on(self, *cases, args=()):
        with tempfile.TemporaryDirectory() as top:
            top = pathlib.Path(top)
            program = top / "case.py"
            program.write_text(PROGRAM)
            program.chmod(0o755)
            lines = ["project('x')", "p = find_program('case.py')"]
            for case in cases:
                protocol = "tap" if case.startswith("tap") else "exitcode"
                lines.append(f"test('{case}', p, args: '{case}', timeout: 2, "
                             f"protocol: '{protocol}')")
            (top / "meson.build").write_text("\n".join(lines) + "\n")
            env = {k: v for k, v in os.environ.items() if k != "DESTDIR"}
            subprocess.run(["meson", "setup", top / "b", top], check=True, env=env,
                           stdout=subprocess.DEVNULL)
            done = subprocess.run([RUNNER, str(top / "b"), *args], env=env,
                                  text=True, stdout=subprocess.PIPE, check=False)
        return done.returncode, done.stdout.rstrip().splitlines()

    def test_all_good(self):
        status, lines = self.run_on("good", "tap")
        self.assertEqual(lines[-1], "3 passed, 0 failed, 1 skipped")
        self.assertIn("  no module:", lines)
        self.assertIn("    tap: b", lines)
        self.assertEqual(status, 0)

    def test_every_failure_counts(self):
        status, lines = self.run_on("good", "bad", "slow", "tapbad", "tapcrash", "skip")
        self.assertEqual(lines[-1], "3 passed, 4 failed, 1 skipped")
        text = "\n".join(lines)
        self.assertIn("| the reason it broke", text)
        self.assertIn("  no such kernel:\n    skip\n", text)
        self.assertIn("FAILED tapbad: broken part", text)
        self.assertIn("timed out after", text)
        self.assertEqual(status, 1)

    def test_each_failure_has_its_own_notes(self):
        _, lines = self.run_on("tapsaid")
        for name in "bc":
            said = lines.index(f"FAILED tapsaid: {name}") + 1
            self.assertEqual(lines[said], f"  | why {name}")
        self.assertNotIn("  | ok 99 - x", lines)

    def test_nothing_ran(self):
        for cases in ((), ("skip",)):
            status, lines = self.run_on(*cases)
            self.assertEqual(lines[-1], f"0 passed, 0 failed, {len(cases)} skipped")
            self.assertEqual(status, 1)

    def test_only_what_was_asked_for(self):
        status, lines = self.run_on("good", "bad", args=["good"])
        self.assertEqual(lines[-1], "1 passed, 0 failed, 0 skipped")
        self.assertEqual(status, 0)

    def test_no_build(self):
        done = subprocess.run([RUNNER, "/nonexistent"], check=False, text=True,
                              stdout=subprocess.PIPE)
        self.assertTrue(done.stdout.endswith("0 passed, 1 failed, 0 skipped\n"))
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
