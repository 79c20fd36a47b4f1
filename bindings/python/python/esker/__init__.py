"""Esker: an embedded key-value storage engine that reads and writes RocksDB's files.

    import esker

    with esker.DB("first.db", create_if_missing=True) as db:
        db[b"key"] = b"value"
        for key, value in db.items(prefix=b"k"):
            print(key, value)

Keys and values are bytes. Options have RocksDB's names. Errors are below `esker.Error`.
"""

from ._esker import (
    DB,
    AbortedError,
    BusyError,
    ClosedError,
    ColumnFamilyDroppedError,
    CompactionTooLargeError,
    CorruptionError,
    DeadlockError,
    Error,
    ExpiredError,
    Family,
    ForkedError,
    IncompleteError,
    InvalidArgumentError,
    IoError,
    Iterator,
    LockedError,
    MergeInProgressError,
    NotFoundError,
    NotSupportedError,
    OptimisticTransactionDB,
    PanicError,
    Reader,
    Scan,
    ShutdownInProgressError,
    Snapshot,
    TimedOutError,
    Transaction,
    TransactionDB,
    TryAgainError,
    WriteBatch,
    Writer,
    __version__,
    destroy_db,
    list_column_families,
    repair_db,
)

__all__ = [
    "DB",
    "AbortedError",
    "BusyError",
    "ClosedError",
    "ColumnFamilyDroppedError",
    "CompactionTooLargeError",
    "CorruptionError",
    "DeadlockError",
    "Error",
    "ExpiredError",
    "Family",
    "ForkedError",
    "IncompleteError",
    "InvalidArgumentError",
    "IoError",
    "Iterator",
    "LockedError",
    "MergeInProgressError",
    "NotFoundError",
    "NotSupportedError",
    "OptimisticTransactionDB",
    "PanicError",
    "Reader",
    "Scan",
    "ShutdownInProgressError",
    "Snapshot",
    "TimedOutError",
    "Transaction",
    "TransactionDB",
    "TryAgainError",
    "WriteBatch",
    "Writer",
    "__version__",
    "destroy_db",
    "list_column_families",
    "repair_db",
]
