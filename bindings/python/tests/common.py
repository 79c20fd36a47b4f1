"""What the tests share."""

import os
import shutil
import tempfile
import unittest

import esker


class Case(unittest.TestCase):
    """A test with an empty directory."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="esker-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def at(self, name="db"):
        return os.path.join(self.directory, name)

    def open(self, name="db", **options):
        db = esker.DB(self.at(name), create_if_missing=True, **options)
        self.addCleanup(db.close)
        return db
