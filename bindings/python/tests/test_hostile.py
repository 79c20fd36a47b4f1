"""Calls that no program should make: each comes to an exception or an answer, none ends Python."""

import gc
import os
import random
import subprocess
import sys
import threading
import unittest

import esker
from common import Case
from esker import _esker


def methods(thing):
    """The names of what can be called."""
    inherited = {"__getitem__", "__setitem__", "__delitem__", "__contains__", "__iter__", "__len__"}
    own = [name for name in dir(thing) if not name.startswith("_") or name in inherited]
    return [name for name in own if name != "closed"]


class Closed(Case):
    def objects(self, kind):
        """A database with one of everything that belongs to it."""
        db = kind(self.at(kind.__name__), create_if_missing=True)
        db.create_column_family("users")
        db.update((b"%d" % n, b"v") for n in range(100))
        items = db.items()
        next(items)
        iterator = db.iterator()
        iterator.seek_to_first()
        snapshot = db.snapshot()
        all_of_it = [db, db.family("users"), items, iterator, snapshot, snapshot.family("users")]
        all_of_it.append(db.batch())
        if kind is not esker.DB:
            txn = db.begin(set_snapshot=True)
            txn[b"k"] = b"v"
            all_of_it += [txn, txn.family("users"), txn.items(), txn.at_snapshot()]
        return db, all_of_it

    def test_whatever_belongs_to_a_closed_database_raises(self):
        arguments = {
            "__setitem__": (b"k", b"v"), "put": (b"k", b"v"), "merge": (b"k", b"v"),
            "delete_range": (b"a", b"b"), "update": ({b"k": b"v"},), "multi_get": ([b"k"],),
            "property": ("rocksdb.stats",), "int_property": ("rocksdb.estimate-num-keys",),
            "approximate_size": (b"a", b"b"), "family": ("users",), "ingest": ([],),
            "create_column_family": ("new",), "drop_column_family": ("users",),
            "checkpoint": (self.at("copy"),), "write": (esker.WriteBatch(),),
        }
        keyed = {"__getitem__", "__contains__", "__delitem__", "get", "delete", "single_delete",
                 "seek", "seek_for_prev", "key_may_exist", "get_for_update",
                 "undo_get_for_update", "set_name"}
        # What a batch holds is its own until it is written.
        fine = {"close", "path", "release"}
        seen = 0
        for kind in esker.DB, esker.TransactionDB, esker.OptimisticTransactionDB:
            db, all_of_it = self.objects(kind)
            db.close()
            db.close()
            self.assertIn("closed", repr(db))
            for thing in all_of_it:
                if isinstance(thing, esker.WriteBatch):
                    thing.put(b"k", b"v")
                    with self.assertRaises(esker.ClosedError):
                        thing.__exit__(None, None, None)
                    continue
                for name in methods(thing):
                    with self.subTest(kind=kind, thing=type(thing), name=name):
                        if name in fine:
                            getattr(thing, name)
                            continue
                        if name in ("__iter__",) and isinstance(thing, esker.Scan):
                            name = "__next__"
                        given = arguments.get(name, (b"k",) if name in keyed else ())
                        with self.assertRaises(esker.ClosedError):
                            member = getattr(thing, name)
                            member(*given)
                        seen += 1
            with esker.DB(db.path, read_only=True) as again:
                self.assertEqual(again[b"7"], b"v")
        self.assertGreater(seen, 300)

    def test_objects_outlive_the_name_of_their_database(self):
        db, all_of_it = self.objects(esker.TransactionDB)
        del db
        all_of_it.pop(0)
        gc.collect()
        self.assertEqual(len(list(all_of_it[1])), 99)
        del all_of_it
        gc.collect()
        esker.DB(self.at("TransactionDB")).close()


class WrongTypes(Case):
    def test_any_argument_is_an_answer_or_an_exception(self):
        os.chdir(self.directory)
        self.addCleanup(os.chdir, "/")
        rng = random.Random(int(os.environ.get("ESKER_SEED", "1")))
        db = esker.TransactionDB(self.at(), create_if_missing=True)
        plain = self.open("plain")
        weird = [None, 0, -1, 1 << 70, 1.5, "text", "\udc80", b"", b"k", bytearray(b"k"),
                 memoryview(b"kk"), memoryview(b"abcdef")[::2], [], [b"k"], [1], {}, {b"k": b"v"},
                 {"k": 1}, (b"k", b"v"), object(), len, type, db, plain, esker.WriteBatch(),
                 True, float("nan"), range(3), iter([b"a"])]
        things = [db, plain, plain.create_column_family("f"), plain.snapshot(), plain.items(),
                  plain.iterator(), db.begin(), db.begin(set_snapshot=True), esker.WriteBatch(),
                  plain.batch(), esker.DB, esker.WriteBatch, esker.TransactionDB, esker]
        names = ["sync", "prefix", "reverse", "family", "default", "read_tier", "no_such",
                 "timeout", "start", "stop", "set_snapshot", "options", "families"]
        answers = exceptions = 0
        for _ in range(20_000):
            thing = rng.choice(things)
            name = rng.choice([n for n in dir(thing) if n not in ("__class__", "close")])
            # Interpreter-level odds and ends are Python's own.
            if name.startswith("__") and name not in methods(thing):
                name = rng.choice(methods(thing))
            given = [rng.choice(weird) for _ in range(rng.randint(0, 3))]
            named = {rng.choice(names): rng.choice(weird) for _ in range(rng.randint(0, 2))}
            try:
                answer = getattr(thing, name)
                if callable(answer) and name not in ("close", "ingest"):
                    answer(*given, **named)
                answers += 1
            except Exception as error:
                self.assertNotIsInstance(error, esker.PanicError)
                exceptions += 1
        self.assertGreater(answers, 1000)
        self.assertGreater(exceptions, 1000)
        db.close()
        plain.close()

    def test_text_is_refused_with_a_reason(self):
        with self.open() as db:
            for call in (lambda: db["k"], lambda: db.put(b"k", 1), lambda: "k" in db):
                with self.assertRaisesRegex(TypeError, "bytes-like"):
                    call()

    @unittest.skipUnless(hasattr(_esker, "_panic"), "only a debug build has a call that panics")
    def test_a_panic_is_an_exception(self):
        with self.assertRaisesRegex(esker.PanicError, "on purpose"):
            _esker._panic()


class Threads(Case):
    def run_threads(self, body, count=8):
        errors = []

        def guarded(n):
            try:
                body(n)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        return errors

    def test_threads_share_a_database(self):
        with self.open(write_buffer_size=1 << 20) as db:
            def body(n):
                for i in range(2000):
                    key = b"%d-%d" % (n, i)
                    db[key] = key * 10
                    self.assertEqual(db[key], key * 10)
                    if i % 500 == 0:
                        self.assertGreater(len(list(db.keys(prefix=b"%d-" % n))), i // 2)

            self.assertEqual(self.run_threads(body), [])
            self.assertEqual(sum(1 for _ in db), 16_000)

    def test_threads_share_everything_else(self):
        db = esker.TransactionDB(self.at(), create_if_missing=True)
        self.addCleanup(db.close)
        db.update((b"%05d" % n, b"v") for n in range(20_000))
        scan, iterator, batch, txn = db.keys(), db.iterator(), db.batch(), db.begin()
        seen = []

        def body(n):
            seen.append(len(list(scan)))
            for i in range(300):
                iterator.seek(b"%05d" % (i * n))
                iterator.valid()
                iterator.next()
                batch.put(b"batch%d" % i, b"v")
                txn.put(b"txn%d" % n, b"%d" % i)
                txn.get(b"txn%d" % n)
            db.write(batch)

        self.assertEqual(self.run_threads(body), [])
        self.assertEqual(sum(seen), 20_000)
        self.assertEqual(len(batch), 2400)
        txn.commit()
        self.assertEqual(len(list(db.keys(prefix=b"txn"))), 8)

    def test_a_database_is_closed_under_its_users(self):
        for _ in range(5):
            db = esker.DB(self.at(), create_if_missing=True)
            db.update((b"%04d" % n, b"v" * 100) for n in range(2000))

            def body(n):
                if n == 0:
                    db.close()
                    return
                while True:
                    db.get(b"0001")
                    db.put(b"%d" % n, b"v")
                    list(db.keys())

            errors = self.run_threads(body)
            self.assertEqual(len(errors), 7)
            for error in errors:
                kinds = (esker.ClosedError, esker.ShutdownInProgressError)
                self.assertIsInstance(error, kinds, repr(error))


class Exits(Case):
    def script(self, text):
        run = subprocess.run(
            [sys.executable, "-c", text, self.at()], capture_output=True, text=True, timeout=60
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr, "")

    def test_python_may_end_with_databases_open(self):
        self.script(
            "import esker, sys, threading\n"
            "db = esker.TransactionDB(sys.argv[1], create_if_missing=True)\n"
            "db[b'k'] = b'v'\n"
            "txn = db.begin(); txn[b'l'] = b'w'\n"
            "keep = [db.items(), db.iterator(), db.snapshot(), db.batch()]\n"
            "def spin():\n"
            "    while True: db.get(b'k')\n"
            "threading.Thread(target=spin, daemon=True).start()\n"
        )
        with esker.DB(self.at()) as db:
            self.assertEqual(list(db), [b"k"])


if __name__ == "__main__":
    unittest.main()
