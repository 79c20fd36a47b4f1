"""RocksDB's C interface from Python, with nothing but ctypes: the same page as c/quickstart.c.

    LD_LIBRARY_PATH=PREFIX/lib python3 quickstart.py DIRECTORY
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_ubyte, c_uint64, c_void_p

lib = ctypes.CDLL("librocksdb.so.11")


def function(name, result, *arguments):
    """Tells ctypes what a function takes and returns. A pointer that is not told is cut to 32 bits."""
    found = getattr(lib, "rocksdb_" + name)
    found.restype, found.argtypes = result, arguments
    return found


# Every call that can fail takes the address of a string, its last argument.
ERROR = POINTER(c_void_p)
free = function("free", None, c_void_p)
options_create = function("options_create", c_void_p)
options_destroy = function("options_destroy", None, c_void_p)
set_create_if_missing = function("options_set_create_if_missing", None, c_void_p, c_ubyte)
set_error_if_exists = function("options_set_error_if_exists", None, c_void_p, c_ubyte)
open_db = function("open", c_void_p, c_void_p, c_char_p, ERROR)
open_for_read_only = function("open_for_read_only", c_void_p, c_void_p, c_char_p, c_ubyte, ERROR)
close = function("close", None, c_void_p)
readoptions_create = function("readoptions_create", c_void_p)
readoptions_destroy = function("readoptions_destroy", None, c_void_p)
readoptions_set_snapshot = function("readoptions_set_snapshot", None, c_void_p, c_void_p)
writeoptions_create = function("writeoptions_create", c_void_p)
writeoptions_destroy = function("writeoptions_destroy", None, c_void_p)
put_ = function("put", None, c_void_p, c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, ERROR)
get_ = function("get", c_void_p, c_void_p, c_void_p, c_char_p, c_size_t, POINTER(c_size_t), ERROR)
batch_create = function("writebatch_create", c_void_p)
batch_put = function("writebatch_put", None, c_void_p, c_char_p, c_size_t, c_char_p, c_size_t)
batch_delete = function("writebatch_delete", None, c_void_p, c_char_p, c_size_t)
batch_destroy = function("writebatch_destroy", None, c_void_p)
write = function("write", None, c_void_p, c_void_p, c_void_p, ERROR)
create_iterator = function("create_iterator", c_void_p, c_void_p, c_void_p)
iter_destroy = function("iter_destroy", None, c_void_p)
iter_valid = function("iter_valid", c_ubyte, c_void_p)
iter_seek_to_first = function("iter_seek_to_first", None, c_void_p)
iter_seek_for_prev = function("iter_seek_for_prev", None, c_void_p, c_char_p, c_size_t)
iter_next = function("iter_next", None, c_void_p)
iter_prev = function("iter_prev", None, c_void_p)
iter_key = function("iter_key", c_void_p, c_void_p, POINTER(c_size_t))
iter_value = function("iter_value", c_void_p, c_void_p, POINTER(c_size_t))
iter_get_error = function("iter_get_error", None, c_void_p, ERROR)
create_snapshot = function("create_snapshot", c_void_p, c_void_p)
release_snapshot = function("release_snapshot", None, c_void_p, c_void_p)
checkpoint_object_create = function("checkpoint_object_create", c_void_p, c_void_p, ERROR)
checkpoint_create = function("checkpoint_create", None, c_void_p, c_char_p, c_uint64, ERROR)
checkpoint_object_destroy = function("checkpoint_object_destroy", None, c_void_p)
backup_engine_open = function("backup_engine_open", c_void_p, c_void_p, c_char_p, ERROR)
backup_engine_close = function("backup_engine_close", None, c_void_p)
backup_create = function("backup_engine_create_new_backup", None, c_void_p, c_void_p, ERROR)
backup_restore = function(
    "backup_engine_restore_db_from_latest_backup", None, c_void_p, c_char_p, c_char_p, c_void_p, ERROR
)
restore_options_create = function("restore_options_create", c_void_p)
restore_options_destroy = function("restore_options_destroy", None, c_void_p)


class RocksError(Exception):
    """What a call reported."""


def call(function_, *arguments):
    """Calls, and raises what the call reports."""
    error = c_void_p()
    result = function_(*arguments, byref(error))
    if error.value:
        message = ctypes.string_at(error.value).decode()
        free(error)
        raise RocksError(message)
    return result


class Db:
    """A database, with options that stay the same."""

    def __init__(self, db):
        self.db, self.read, self.how = db, readoptions_create(), writeoptions_create()

    def put(self, key, value):
        call(put_, self.db, self.how, key, len(key), value, len(value))

    def get(self, key):
        length = c_size_t()
        found = call(get_, self.db, self.read, key, len(key), byref(length))
        if not found:
            return None
        value = ctypes.string_at(found, length.value)
        free(found)
        return value

    def scan(self, before=None):
        """Pairs in order; backwards from `before`, if that is given."""
        it = create_iterator(self.db, self.read)
        try:
            if before is None:
                iter_seek_to_first(it)
            else:
                iter_seek_for_prev(it, before, len(before))
            length = c_size_t()
            while iter_valid(it):
                key = ctypes.string_at(iter_key(it, byref(length)), length.value)
                value = ctypes.string_at(iter_value(it, byref(length)), length.value)
                yield key.decode(), value.decode()
                (iter_next if before is None else iter_prev)(it)
            call(iter_get_error, it)
        finally:
            iter_destroy(it)

    def close(self):
        readoptions_destroy(self.read)
        writeoptions_destroy(self.how)
        close(self.db)


def main(directory):
    options = options_create()
    set_create_if_missing(options, 1)
    path = f"{directory}/db".encode()
    db = Db(call(open_db, options, path))

    db.put(b"colour", b"green")
    print("colour =", db.get(b"colour").decode())
    print("missing:", "found" if db.get(b"missing") else "not found")

    # Several writes, all or nothing.
    batch = batch_create()
    for key, value in (b"apple", b"1"), (b"banana", b"2"), (b"cherry", b"3"):
        batch_put(batch, key, len(key), value, len(value))
    batch_delete(batch, b"colour", 6)
    call(write, db.db, db.how, batch)
    batch_destroy(batch)

    pairs = [f"{key}={value}" for key, value in db.scan()]
    print(f"{len(pairs)} entries:", *pairs)
    print("backwards from c:", *(key for key, _ in db.scan(before=b"c")))

    # A snapshot keeps what was there.
    snapshot = create_snapshot(db.db)
    for key, value in (b"apple", b"10"), (b"damson", b"4"), (b"elder", b"5"):
        db.put(key, value)
    readoptions_set_snapshot(db.read, snapshot)
    then = db.get(b"apple").decode()
    readoptions_set_snapshot(db.read, None)
    print(f"snapshot sees apple={then}, now apple={db.get(b'apple').decode()}")
    release_snapshot(db.db, snapshot)

    # A checkpoint is a database of its own, made of links to the same files.
    maker = call(checkpoint_object_create, db.db)
    checkpoint = f"{directory}/checkpoint".encode()
    call(checkpoint_create, maker, checkpoint, 0)
    checkpoint_object_destroy(maker)
    copy = Db(call(open_for_read_only, options, checkpoint, 0))
    print(f"checkpoint: {len(list(copy.scan()))} entries")
    copy.close()

    # Backups share files with each other, not with the database.
    backups = call(backup_engine_open, options, f"{directory}/backups".encode())
    call(backup_create, backups, db.db)
    restored = f"{directory}/restored".encode()
    how = restore_options_create()
    call(backup_restore, backups, restored, restored, how)
    restore_options_destroy(how)
    backup_engine_close(backups)
    copy = Db(call(open_for_read_only, options, restored, 0))
    print(f"restored backup: {len(list(copy.scan()))} entries")
    copy.close()

    # An error is text that begins with its kind.
    db.close()
    set_error_if_exists(options, 1)
    try:
        call(open_db, options, path)
    except RocksError as error:
        print("refused:", str(error).split(":")[0])
    options_destroy(options)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: quickstart.py DIRECTORY")
    main(sys.argv[1])
