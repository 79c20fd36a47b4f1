"""Children of a fork: they get an exception for what they inherit, and never hang."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

import esker
from common import Case

# A child that hangs is killed after this many seconds.
PATIENCE = 30


def child_of(body):
    """Runs `body` in a child of a fork and returns how it ended."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            body()
            code = 0
        except BaseException as error:
            print(f"in the child: {error!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return wait_for(pid)


def wait_for(pid):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "it hung"


def use_another(path):
    with esker.DB(path, create_if_missing=True) as db:
        db[b"k"] = b"v"
        db.flush()


class Forks(Case):
    def test_a_child_gets_an_exception_for_all_that_it_has(self):
        db = esker.TransactionDB(self.at(), create_if_missing=True)
        self.addCleanup(db.close)
        db.update((b"%d" % n, b"v") for n in range(100))
        txn, items, iterator = db.begin(), db.items(), db.iterator()
        txn[b"t"] = b"1"
        next(items)
        iterator.seek_to_first()
        snapshot, batch = db.snapshot(), db.batch()
        stop = threading.Event()

        def load():
            n = 0
            while not stop.is_set():
                n += 1
                db.put(b"load%d" % (n % 1000), b"v" * 1000)
                db.get(b"load7")
                list(db.keys(prefix=b"load9"))
                if n % 500 == 0:
                    db.flush()

        threads = [threading.Thread(target=load) for _ in range(3)]
        for thread in threads:
            thread.start()
        calls = [
            lambda: db[b"1"], lambda: db.put(b"k", b"v"), lambda: next(items), iterator.next,
            lambda: snapshot[b"1"], lambda: snapshot.release(), lambda: txn.get(b"t"), txn.commit,
            lambda: batch.put(b"k", b"v"), lambda: db.write(batch), db.close, db.flush, db.metrics,
            lambda: list(db), lambda: esker.DB(self.at("other"), create_if_missing=True),
            lambda: esker.list_column_families(self.at()), lambda: esker.destroy_db(self.at()),
        ]

        def body():
            for call in calls:
                try:
                    call()
                except esker.ForkedError:
                    continue
                raise AssertionError("no exception")
            names = [name for name in globals()]
            del names
            gc.collect()

        try:
            for _ in range(30):
                self.assertEqual(child_of(body), 0)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        txn.commit()
        self.assertEqual(db[b"t"], b"1")

    def test_a_child_ends_as_python_ends(self):
        script = (
            "import esker, os, sys\n"
            "db = esker.DB(sys.argv[1], create_if_missing=True)\n"
            "db[b'k'] = b'v'\n"
            "keep = [db.items(), db.iterator(), db.snapshot()]\n"
            "list(db.items()); del keep[0]\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    del db\n"
            "    sys.exit(3)\n"
            "code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
            "db[b'l'] = b'w'\n"
            "db.close()\n"
            "sys.exit(0 if code == 3 else 1)\n"
        )
        for _ in range(5):
            run = subprocess.run([sys.executable, "-c", script, self.at()], timeout=PATIENCE)
            self.assertEqual(run.returncode, 0)

    def test_a_child_may_use_what_its_parent_did_not(self):
        script = (
            "import esker, os, sys\n"
            "batch = esker.WriteBatch(); batch.put(b'k', b'v')\n"
            "pid = os.fork()\n"
            "name = 'child' if pid == 0 else 'parent'\n"
            "with esker.DB(sys.argv[1] + name, create_if_missing=True) as db:\n"
            "    db.write(batch); db.flush(); assert db[b'k'] == b'v'\n"
            "if pid == 0: os._exit(0)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        )
        run = subprocess.run([sys.executable, "-c", script, self.at()], timeout=PATIENCE)
        self.assertEqual(run.returncode, 0)

    def test_processes_that_are_spawned_are_free(self):
        with self.open() as db:
            db[b"k"] = b"v"
            context = multiprocessing.get_context("spawn")
            process = context.Process(target=use_another, args=(self.at("other"),))
            process.start()
            process.join(PATIENCE)
            self.assertEqual(process.exitcode, 0)
        with esker.DB(self.at("other")) as other:
            self.assertEqual(other[b"k"], b"v")


if __name__ == "__main__":
    unittest.main()
