"""Transactions of both kinds."""

import threading
import time
import unittest

import esker
from common import Case


class Transactions(Case):
    def opened(self, kind):
        db = kind(self.at(kind.__name__), create_if_missing=True)
        self.addCleanup(db.close)
        return db

    def each(self):
        for kind in esker.TransactionDB, esker.OptimisticTransactionDB:
            with self.subTest(kind.__name__), self.opened(kind) as db:
                yield db

    def test_changes_are_written_together(self):
        for db in self.each():
            users = db.create_column_family("users")
            db[b"a"] = b"1"
            db.update({b"y": b"25"})
            with db.begin(sync=True) as txn:
                txn[b"b"] = b"2"
                txn.family("users")[b"u"] = b"3"
                txn.update([(b"c", b"4")])
                del txn[b"a"]
                self.assertEqual(txn[b"b"], b"2")
                self.assertNotIn(b"a", txn)
                self.assertIn(b"a", db)
                self.assertEqual(list(txn), [b"b", b"c", b"y"])
                self.assertEqual(list(txn.keys(reverse=True)), [b"y", b"c", b"b"])
                self.assertEqual(txn.multi_get([b"a", b"b"]), [None, b"2"])
            self.assertEqual((list(db), users[b"u"]), ([b"b", b"c", b"y"], b"3"))
            for call in (txn.commit, txn.rollback, lambda: txn.get(b"b"), lambda: txn[b"b"]):
                with self.assertRaises(esker.ClosedError):
                    call()
            with self.assertRaises(ZeroDivisionError):
                with db.begin() as txn:
                    txn[b"never"] = b""
                    1 / 0
            self.assertNotIn(b"never", db)
            with self.assertRaises(esker.NotSupportedError):
                db.delete_range(b"a", b"z")

    def test_save_points_and_snapshots(self):
        for db in self.each():
            db[b"k"] = b"old"
            txn = db.begin(set_snapshot=True)
            txn[b"a"] = b"1"
            txn.set_save_point()
            txn[b"b"] = b"2"
            txn.rollback_to_save_point()
            db[b"k"] = b"new"
            self.assertEqual((txn[b"k"], txn.at_snapshot()[b"k"]), (b"new", b"old"))
            self.assertEqual(list(txn.at_snapshot().items()), [(b"a", b"1"), (b"k", b"old")])
            txn.clear_snapshot()
            with self.assertRaises(esker.InvalidArgumentError):
                txn.at_snapshot()
            txn.commit()
            self.assertEqual(list(db), [b"a", b"k"])

    def test_an_optimistic_conflict_is_found_at_the_commit(self):
        with self.opened(esker.OptimisticTransactionDB) as db:
            first, second = db.begin(), db.begin()
            first[b"k"] = b"1"
            self.assertIsNone(second.get_for_update(b"k"))
            second[b"other"] = b"2"
            first.commit()
            with self.assertRaises(esker.BusyError):
                second.commit()
            second.rollback()
            with self.assertRaises(esker.BusyError):
                with db.begin() as txn:
                    txn[b"k"] = b"3"
                    db[b"k"] = b"4"
            self.assertEqual(dict(db.items()), {b"k": b"4"})

    def test_a_lock_is_waited_for_while_python_runs(self):
        with self.opened(esker.TransactionDB) as db:
            holder = db.begin()
            holder[b"k"] = b"1"
            seen = []

            def wait():
                with db.begin(lock_timeout=20_000) as txn:
                    seen.append(txn.get_for_update(b"k"))
                    txn[b"k"] = b"2"

            thread = threading.Thread(target=wait)
            thread.start()
            # Were Python's lock held in the wait, this thread would not get here in time.
            time.sleep(0.2)
            self.assertEqual(seen, [])
            holder.commit()
            thread.join(20)
            self.assertEqual((seen, db[b"k"]), ([b"1"], b"2"))
            with db.begin() as txn:
                txn[b"k"] = b"3"
                with self.assertRaises(esker.TimedOutError):
                    db.begin(lock_timeout=10).put(b"k", b"4")
                with self.assertRaises(esker.TimedOutError):
                    db.begin(lock_timeout=0).get_for_update(b"k", exclusive=False)

    def test_a_deadlock_is_found(self):
        with self.opened(esker.TransactionDB) as db:
            options = {"deadlock_detect": True, "lock_timeout": 20_000}
            one, two = db.begin(**options), db.begin(**options)
            one[b"a"] = b""
            two[b"b"] = b""
            thread = threading.Thread(target=lambda: one.put(b"b", b""))
            thread.start()
            with self.assertRaises(esker.DeadlockError):
                while True:
                    time.sleep(0.05)
                    two.get_for_update(b"a")
            two.rollback()
            thread.join(20)
            one.commit()
            self.assertEqual(list(db), [b"a", b"b"])

    def test_a_commit_in_two_phases_survives(self):
        with self.opened(esker.TransactionDB) as db:
            txn = db.begin()
            txn.set_name(b"first")
            self.assertEqual(txn.name, b"first")
            txn[b"k"] = b"v"
            txn.prepare()
            del txn
        with self.opened(esker.TransactionDB) as db:
            self.assertNotIn(b"k", db)
            (txn,) = db.prepared_transactions()
            self.assertEqual(txn.name, b"first")
            txn.commit()
            self.assertEqual((db[b"k"], db.prepared_transactions()), (b"v", []))

    def test_options_of_a_transaction(self):
        locks = {"default_lock_timeout": 10, "num_stripes": 4}
        db = esker.TransactionDB(
            self.at(), create_if_missing=True, transaction_db_options=locks, families=[]
        )
        with db:
            txn = db.begin()
            txn[b"k"] = b""
            with self.assertRaises(esker.TimedOutError):
                db[b"k"] = b""
            with self.assertRaises(esker.InvalidArgumentError):
                txn.put(b"k", b"", sync=True)
            with self.assertRaises(esker.InvalidArgumentError):
                db.begin(no_such=1)
            txn.undo_get_for_update(b"k")
            txn.rollback()


if __name__ == "__main__":
    unittest.main()
