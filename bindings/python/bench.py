"""Measures the package beside rocksdict, RocksDB's Python package.

    pip install rocksdict WHEEL
    python3 bench.py [--entries N] [--pairs N] [--workloads put,get,scan,batch]
        [--keys db_bench|decimal]

Both engines have their default options, without compression, and both get the same keys and
values. A pair is one run of each, in processes of their own, in turns; the figure of a pair is
Esker's rate divided by rocksdict's. Printed are the median pair and the range. Keys have 16 bytes:
a number and zeros as RocksDB's db_bench makes them, or decimal digits, of which the first ten are
zeros.

put    one writer, keys in random order, the log without syncs
get    random keys that exist, from tables, which are in the block cache or the page cache
scan   all pairs of key and value, in order, from the same tables
batch  as put, a thousand entries in each write batch
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

WORKLOADS = ["put", "get", "scan", "batch"]


KEYS = {
    "db_bench": lambda n: n.to_bytes(8, "big") + b"00000000",
    "decimal": lambda n: b"%016d" % n,
}


def entries(count, kind):
    """Keys in random order, with values of 100 bytes."""
    rng = random.Random(7)
    numbers = list(range(count))
    rng.shuffle(numbers)
    return [KEYS[kind](n) for n in numbers], [rng.randbytes(100) for _ in range(1000)]


class Esker:
    def __init__(self, path):
        import esker

        self.new_batch = esker.WriteBatch
        self.db = esker.DB(path, create_if_missing=True, compression="kNoCompression")


class Rocksdict:
    def __init__(self, path):
        import rocksdict

        options = rocksdict.Options(raw_mode=True)
        options.set_compression_type(rocksdict.DBCompressionType.none())
        self.new_batch = lambda: rocksdict.WriteBatch(raw_mode=True)
        self.db = rocksdict.Rdict(path, options)


ENGINES = {"esker": Esker, "rocksdict": Rocksdict}


def put(engine, keys, values):
    db, size = engine.db, len(values)
    for n, key in enumerate(keys):
        db[key] = values[n % size]


def batch(engine, keys, values):
    db, size = engine.db, len(values)
    for at in range(0, len(keys), 1000):
        records = engine.new_batch()
        for n, key in enumerate(keys[at : at + 1000]):
            records.put(key, values[n % size])
        db.write(records)


def get(engine, keys, values):
    db = engine.db
    for key in keys:
        db[key]


def scan(engine, keys, values):
    seen = 0
    for _key, _value in engine.db.items():
        seen += 1
    assert seen == len(keys)


def measure(name, workload, count, kind):
    """Nanoseconds of one operation."""
    directory = tempfile.mkdtemp(prefix="esker-bench-")
    try:
        keys, values = entries(count, kind)
        engine = ENGINES[name](os.path.join(directory, "db"))
        if workload in ("get", "scan"):
            batch(engine, keys, values)
            engine.db.flush()
            keys = random.Random(8).sample(keys, len(keys))
            # Once before, so that neither engine reads from the disk.
            globals()[workload](engine, keys, values)
        begin = time.perf_counter_ns()
        globals()[workload](engine, keys, values)
        taken = time.perf_counter_ns() - begin
        engine.db.close()
        return taken / count
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def in_process(name, workload, count, kind):
    command = [sys.executable, __file__, "--one", name, "--workloads", workload]
    command += ["--entries", str(count), "--keys", kind]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--keys", choices=list(KEYS), default="db_bench")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    workloads = arguments.workloads.split(",")
    if arguments.one:
        print(measure(arguments.one, workloads[0], arguments.entries, arguments.keys))
        return
    print(f"{arguments.entries} entries, keys as {arguments.keys}, {arguments.pairs} pairs")
    print("workload  esker ns  rocksdict ns  esker / rocksdict (range)")
    for workload in workloads:
        pairs = []
        for n in range(arguments.pairs):
            names = list(ENGINES) if n % 2 == 0 else list(reversed(ENGINES))
            took = {
                name: in_process(name, workload, arguments.entries, arguments.keys)
                for name in names
            }
            pairs.append((took["esker"], took["rocksdict"]))
        ratios = sorted(theirs / ours for ours, theirs in pairs)
        ours, theirs = (statistics.median(side) for side in zip(*pairs))
        middle = statistics.median(ratios)
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        print(f"{workload:8}  {ours:8.0f}  {theirs:12.0f}  {middle:.2f} ({spread})")


if __name__ == "__main__":
    main()
