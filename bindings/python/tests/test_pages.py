"""Programs of the documentation run, and the type stubs say what is there."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import unittest

import esker
from common import Case

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = ["bindings/python/README.md", "README.md", "docs/guide/2-moving.md"]


class Pages(Case):
    def test_programs_run(self):
        seen = 0
        for page in PAGES:
            text = (ROOT / page).read_text()
            for program in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
                seen += 1
                with self.subTest(page=page, program=program):
                    os.makedirs(self.at(str(seen)))
                    # Only the first of a page says so.
                    command = [sys.executable, "-c", "import esker\n" + program]
                    done = subprocess.run(
                        command, cwd=self.at(str(seen)), capture_output=True, text=True, timeout=60
                    )
                    self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(seen, 5)

    def test_all_that_is_compiled_is_exported(self):
        compiled = {name for name in dir(esker._esker) if not name.startswith("_")}
        self.assertEqual(compiled | {"__version__"}, set(esker.__all__))

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_stubs_are_true(self):
        command = [sys.executable, "-m", "mypy.stubtest", "esker", "--ignore-missing-stub"]
        done = subprocess.run(
            command, cwd=self.directory, capture_output=True, text=True, timeout=120
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
