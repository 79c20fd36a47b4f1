"""A database as a mapping: values, walks, bounds, batches, snapshots and families."""

import os
import pathlib
import random
import unittest

import esker
from common import Case


class Values(Case):
    def test_a_database_is_a_mapping(self):
        with self.open() as db:
            db[b"a"] = b"1"
            db[bytearray(b"b")] = memoryview(b"2")
            db.put(b"c", b"", sync=True)
            self.assertEqual(db[b"a"], b"1")
            self.assertEqual(db.get(b"b"), b"2")
            self.assertEqual(db[b"c"], b"")
            self.assertIn(b"c", db)
            self.assertNotIn(b"d", db)
            self.assertIsNone(db.get(b"d"))
            self.assertEqual(db.get(b"d", 7), 7)
            self.assertEqual(db.multi_get([b"b", b"x", b"a"]), [b"2", None, b"1"])
            with self.assertRaises(KeyError) as missing:
                db[b"d"]
            self.assertEqual(missing.exception.args, (b"d",))
            del db[b"a"]
            del db[b"not there"]
            db.single_delete(b"c")
            self.assertEqual(list(db), [b"b"])
            db.update({b"m": b"3", b"n": b"4"})
            db.update([(b"o", b"5")])
            self.assertEqual(dict(db.items()), {b"b": b"2", b"m": b"3", b"n": b"4", b"o": b"5"})
            db.delete_range(b"m", b"o")
            self.assertEqual(list(db.values()), [b"2", b"5"])
        self.assertTrue(db.closed)

    def test_values_survive_and_can_be_read_elsewhere(self):
        with self.open() as db:
            db[b"k"] = b"v" * 100_000
            db.flush()
            db[b"l"] = b"2"
            self.assertEqual(db.path, pathlib.Path(self.at()))
            db.checkpoint(self.at("copy"))
        for arguments in {}, {"read_only": True}, {"secondary": self.at("second")}:
            with esker.DB(self.at(), **arguments) as db:
                self.assertEqual((len(db[b"k"]), db[b"l"]), (100_000, b"2"))
        with esker.DB(pathlib.Path(self.at("copy")), read_only=True) as copy:
            self.assertEqual(copy[b"l"], b"2")
            with self.assertRaises(esker.NotSupportedError):
                copy[b"l"] = b"3"

    def test_a_secondary_catches_up(self):
        with self.open() as db, esker.DB(self.at(), secondary=self.at("second")) as second:
            db[b"k"] = b"v"
            self.assertIsNone(second.get(b"k"))
            second.try_catch_up_with_primary()
            self.assertEqual(second[b"k"], b"v")

    def test_operands_are_merged(self):
        with self.open(merge_operator="stringappend") as db:
            db.merge(b"k", b"a")
            db.merge(b"k", b"b")
            self.assertEqual(db[b"k"], b"a,b")

    def test_values_with_a_time_to_live(self):
        with self.open(time_to_live=3600) as db:
            db[b"k"] = b"v"
            self.assertEqual(db[b"k"], b"v")
        with esker.DB(self.at(), read_only=True, time_to_live=0) as db:
            self.assertEqual(db[b"k"], b"v")

    def test_administration(self):
        with self.open(statistics=True) as db:
            db.update((f"{n:05}".encode(), os.urandom(100)) for n in range(2000))
            db.flush()
            db.compact_range(bottommost_level_compaction=2)
            db.wait_for_compact(timeout=60)
            db.verify_checksums()
            db.flush_wal(sync=True)
            self.assertEqual(db.latest_sequence_number(), 2000)
            self.assertEqual(db.int_property("rocksdb.estimate-num-keys"), 2000)
            self.assertIsNone(db.property("no.such"))
            self.assertGreater(db.approximate_size(b"0", b"1"), 100_000)
            self.assertTrue(db.key_may_exist(b"00001"))
            self.assertIn("rocksdb_number_keys_written_total", db.metrics())
            db.set_options(write_buffer_size=1 << 20)
            self.assertEqual(db.options()["write_buffer_size"], str(1 << 20))
            db.set_db_options(max_background_jobs=3)
            self.assertEqual(db.db_options()["max_background_jobs"], "3")


class Walks(Case):
    def test_bounds_prefixes_and_directions(self):
        with self.open() as db:
            keys = [bytes([a, b]) for a in (0, 1, 254, 255) for b in range(0, 256, 5)]
            db.update((key, key * 2) for key in keys)
            rng = random.Random(1)
            for _ in range(300):
                start, stop, prefix = (
                    rng.choice([None, rng.randbytes(rng.randint(0, 2)), rng.choice(keys)])
                    for _ in range(3)
                )
                if prefix is not None:
                    prefix = prefix[: rng.randint(0, 2)]
                wanted = [
                    key
                    for key in keys
                    if (start is None or key >= start)
                    and (stop is None or key < stop)
                    and (prefix is None or key.startswith(prefix))
                ]
                bounds = {"start": start, "stop": stop, "prefix": prefix}
                self.assertEqual(list(db.keys(**bounds)), wanted, bounds)
                backwards = list(db.items(reverse=True, **bounds))
                self.assertEqual(backwards, [(k, k * 2) for k in reversed(wanted)], bounds)
                it = db.iterator(**bounds)
                it.seek_to_last()
                self.assertEqual(it.valid(), bool(wanted))
                if wanted:
                    self.assertEqual(it.key(), wanted[-1])

    def test_large_values_and_many_small_ones(self):
        with self.open() as db:
            db.update((b"big%d" % n, bytes([n]) * 300_000) for n in range(10))
            db.update((b"small%05d" % n, b"%d" % n) for n in range(20_000))
            values = list(db.values(prefix=b"big"))
            self.assertEqual(values, [bytes([n]) * 300_000 for n in range(10)])
            items = list(db.items(b"small"))
            self.assertEqual(items, [(b"small%05d" % n, b"%d" % n) for n in range(20_000)])
            self.assertEqual(len(list(db.keys(reverse=True))), 20_010)

    def test_a_walk_sees_the_state_of_its_beginning(self):
        with self.open() as db:
            db.update((b"%04d" % n, b"old") for n in range(3000))
            walk = db.items()
            first = next(walk)
            db.update((b"%04d" % n, b"new") for n in range(4000))
            db.flush()
            rest = list(walk)
            self.assertEqual(first, (b"0000", b"old"))
            self.assertEqual((len(rest), {value for _, value in rest}), (2999, {b"old"}))

    def test_an_iterator_moves_both_ways(self):
        with self.open() as db:
            db.update((b"%d" % n, b"v%d" % n) for n in range(1, 6))
            with db.iterator() as it:
                self.assertFalse(it.valid())
                with self.assertRaises(esker.InvalidArgumentError):
                    it.key()
                it.seek(b"25")
                self.assertEqual(it.item(), (b"3", b"v3"))
                it.prev()
                self.assertEqual(it.key(), b"2")
                it.seek_for_prev(b"45")
                it.next()
                self.assertEqual(it.value(), b"v5")
                it.next()
                self.assertFalse(it.valid())
                it.next()
                it.seek_to_first()
                self.assertEqual(it.key(), b"1")
            with self.assertRaises(esker.ClosedError):
                it.valid()

    def test_the_order_may_be_another(self):
        with self.open(comparator="rocksdb.ReverseBytewiseComparator") as db:
            db.update((key, b"") for key in (b"a", b"b", b"c"))
            self.assertEqual(list(db), [b"c", b"b", b"a"])
            self.assertEqual(list(db.keys(b"b")), [b"b", b"a"])
            self.assertEqual(list(db.keys(b"c", b"a", reverse=True)), [b"b", b"c"])
            with self.assertRaises(esker.NotSupportedError):
                db.keys(prefix=b"a")


class Batches(Case):
    def test_a_batch_is_written_at_the_end_of_its_block(self):
        with self.open() as db:
            meta = db.create_column_family("meta")
            db[b"gone"] = b""
            with db.batch(sync=True) as batch:
                batch[b"a"] = b"1"
                batch.put(b"b", b"2", family="meta")
                batch.put(b"c", b"3", meta)
                batch.update({b"d": b"4"})
                del batch[b"gone"]
                self.assertEqual(len(batch), 5)
                self.assertEqual(list(db), [b"gone"])
            self.assertEqual(dict(db.items()), {b"a": b"1", b"d": b"4"})
            self.assertEqual(dict(meta.items()), {b"b": b"2", b"c": b"3"})
            with self.assertRaises(ZeroDivisionError):
                with db.batch() as batch:
                    batch[b"never"] = b""
                    1 / 0
            self.assertNotIn(b"never", db)

    def test_a_batch_of_its_own(self):
        with self.open() as db:
            batch = esker.WriteBatch()
            batch.put(b"a", b"1")
            batch.set_save_point()
            batch.put(b"b", b"2")
            batch.rollback_to_save_point()
            batch.delete_range(b"x", b"z")
            copy = esker.WriteBatch(batch.data())
            db.write(copy)
            db.write(copy, sync=True)
            self.assertEqual(list(db), [b"a"])
            with self.assertRaises(esker.CorruptionError):
                esker.WriteBatch(b"short")
            with self.assertRaises(esker.InvalidArgumentError):
                batch.put(b"k", b"v", "default")
            with self.assertRaises(esker.InvalidArgumentError):
                with esker.WriteBatch():
                    pass

    def test_families_of_other_databases_are_refused(self):
        with self.open("one") as one, self.open("two") as two:
            theirs = two.create_column_family("theirs")
            one.create_column_family("own")
            batch = esker.WriteBatch()
            batch.put(b"k", b"v", theirs)
            for refused in (
                lambda: one.write(batch),
                lambda: batch.put(b"k", b"v", one.family("own")),
                lambda: one.batch().put(b"k", b"v", theirs),
                lambda: one.drop_column_family(theirs),
                lambda: one.snapshot().family(theirs),
            ):
                with self.assertRaises(esker.InvalidArgumentError):
                    refused()
            two.write(batch)
            self.assertEqual(theirs[b"k"], b"v")


class Families(Case):
    def test_families_have_their_own_keys_and_options(self):
        with self.open() as db:
            users = db.create_column_family("users", write_buffer_size=1 << 20)
            users[b"k"] = b"users"
            db[b"k"] = b"default"
            self.assertEqual((users.name, db.name, db.id), ("users", "default", 0))
            self.assertEqual(users.options()["write_buffer_size"], str(1 << 20))
            self.assertEqual(db.column_families(), ["default", "users"])
            self.assertEqual(db.family("users")[b"k"], b"users")
            with self.assertRaises(esker.NotFoundError):
                db.family("no such")
            with self.assertRaises(esker.InvalidArgumentError):
                db.create_column_family("users")
            with self.assertRaises(esker.InvalidArgumentError):
                db.create_column_family("more", max_background_jobs=3)
        self.assertEqual(esker.list_column_families(self.at()), ["default", "users"])
        with self.assertRaises(esker.InvalidArgumentError):
            esker.DB(self.at(), families=["default"])
        families = {"users": {"max_write_buffer_number": 5}, "new": None}
        with self.open(families=families, create_missing_column_families=True) as db:
            self.assertEqual(db.family("users").options()["max_write_buffer_number"], "5")
            self.assertEqual(db.family("new").options()["max_write_buffer_number"], "2")
            db.drop_column_family("users")
            self.assertEqual(db.column_families(), ["default", "new"])

    def test_a_snapshot_shows_all_families_as_they_were(self):
        with self.open() as db:
            users = db.create_column_family("users")
            users[b"k"] = db[b"k"] = b"old"
            with db.snapshot() as before:
                users[b"k"] = db[b"k"] = b"new"
                self.assertEqual(before[b"k"], b"old")
                self.assertEqual(list(before.items()), [(b"k", b"old")])
                self.assertEqual(before.family("users")[b"k"], b"old")
                self.assertEqual(before.multi_get([b"k"]), [b"old"])
                self.assertEqual(before.sequence_number, 2)
                walk = before.values()
            with self.assertRaises(esker.ClosedError):
                before[b"k"]
            self.assertEqual(list(walk), [b"old"])
            before.release()


class Directories(Case):
    def test_options_are_checked(self):
        for options in (
            {"no_such_option": 1},
            {"write_buffer_size": "many"},
            {"block_based_table_factory": {"no_such": 1}},
            {"compression": "kNoSuch"},
        ):
            with self.subTest(options), self.assertRaises(esker.InvalidArgumentError) as refused:
                self.open(**options)
            self.assertEqual(refused.exception.code, 4)
        with self.assertRaises(TypeError):
            self.open(write_buffer_size=object())
        with self.open(block_based_table_factory={"block_size": 8192}) as db:
            self.assertIn("block_size=8192", db.options()["block_based_table_factory"])
            for call in (
                lambda: db.get(b"k", no_such=1),
                lambda: db.put(b"k", b"v", no_such=1),
                lambda: db.flush(no_such=1),
                lambda: db.compact_range(no_such=1),
            ):
                with self.assertRaises(esker.InvalidArgumentError):
                    call()
            with self.assertRaises(TypeError):
                db.put(b"k", b"v", sync="yes")
            self.assertIsNone(db.get(b"k", fill_cache=False, read_tier=1))

    def test_errors_say_what_and_where(self):
        with self.assertRaises(esker.InvalidArgumentError):
            esker.DB(self.at())
        with self.open() as db:
            db[b"k"] = b"v"
            with self.assertRaises(esker.LockedError) as locked:
                esker.DB(self.at())
            self.assertIsInstance(locked.exception, esker.IoError)
            self.assertTrue(locked.exception.file.endswith("LOCK"))
        with open(os.path.join(self.at(), "CURRENT"), "w") as file:
            file.write("no MANIFEST")
        with self.assertRaises(esker.CorruptionError) as damaged:
            esker.DB(self.at())
        self.assertEqual(damaged.exception.code, 2)
        esker.repair_db(self.at())
        with self.open() as db:
            self.assertEqual(db[b"k"], b"v")
        esker.destroy_db(self.at())
        self.assertFalse(os.path.exists(os.path.join(self.at(), "CURRENT")))


if __name__ == "__main__":
    unittest.main()
