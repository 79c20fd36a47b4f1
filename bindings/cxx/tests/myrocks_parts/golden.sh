# Directories that RocksDB 6.29 wrote through Debian's plugin, for the golden set, sourced by
# tests/myrocks: made, and read by a newer RocksDB, which says what is in them.

# golden_start NAME [OPTION ...]: a server on Debian's plugin with a directory of its own, $dir.
golden_start() {
    dir=$work/golden-$1
    new_data "$dir"
    launch "$dir" "$debian" "${@:2}"
}

# golden_keep NAME: the plugin's directory goes into the set; notes how much RocksDB finds in it.
# The log of what RocksDB did is no part of it.
golden_keep() {
    local of="$work/golden-$1/data/#rocksdb" to=$golden/6.29/$1
    mkdir -p "$to"
    find "$of" -maxdepth 1 -type f ! -name 'LOG*' ! -name LOCK -exec cp '{}' "$to" \;
    rm -rf "$work/golden-copy"
    cp -r "$to" "$work/golden-copy"
    LD_LIBRARY_PATH=$work/native "$work/golden_dump" "$work/golden-copy" >"$work/golden.txt"
    printf '6.29\t%s\t%s\t%s\n' "$1" "$(wc -l <"$work/golden.txt")" \
        "$(md5sum <"$work/golden.txt" | cut -d' ' -f1)" >>"$golden/expected.tsv"
}

# golden_compile: the program that reads with RocksDB's library.
golden_compile() {
    local crates=${CARGO_HOME:-$HOME/.cargo}/registry/src
    local headers=("$crates"/*/librocksdb-sys-*11.8.1/rocksdb/include)
    if [ -z "${ROCKSDB_NATIVE:-}" ] || [ ! -d "${headers[0]}" ]; then
        echo "--golden needs ROCKSDB_NATIVE, the directory of a librocksdb.so 11.8, and" \
            "librocksdb-sys unpacked by Cargo" >&2
        exit 2
    fi
    mkdir -p "$work/native"
    ln -sf "$(realpath "$ROCKSDB_NATIVE")/librocksdb.so" "$work/native/librocksdb.so.11"
    g++ -std=c++20 -O1 -fno-rtti -I"${headers[0]}" \
        bindings/cxx/tests/myrocks_parts/golden_dump.cc "$work/native/librocksdb.so.11" \
        -lpthread -o "$work/golden_dump"
}

# Rows of kills.sh, in the log only: the server is killed.
golden_log() {
    golden_start log
    kills_tables ROCKSDB | sql "$dir"
    kills_load 1 1 | sed -n 1,300p | sql "$dir" >"$dir/said"
    slay
}

# A transaction that is prepared and not committed, with one that is; the server is killed.
golden_prepared() {
    golden_start prepared
    kills_tables ROCKSDB | sql "$dir"
    sql "$dir" -e "XA START 'one'; INSERT INTO ledger VALUES (1, 1, 1); XA END 'one';
        XA PREPARE 'one'"
    sql "$dir" -e "XA START 'two'; INSERT INTO ledger VALUES (2, 2, 2); XA END 'two';
        XA PREPARE 'two'; XA COMMIT 'two'; INSERT INTO side VALUES (9)"
    slay
}

# Rows that were loaded in bulk, as files that are ingested, with indexes in families of their own,
# compressed with and without dictionaries.
golden_bulk() {
    local family="compression=kZSTD;compression_opts=-14:3:0:4096;bottommost_compression=kZSTD"
    golden_start bulk \
        --rocksdb-override-cf-options="default={$family};rev:down={compression=kLZ4Compression}"
    sql "$dir" -e "SET rocksdb_bulk_load_allow_sk = 1; SET rocksdb_bulk_load = 1;
        CREATE TABLE b (n INT, v VARCHAR(60), PRIMARY KEY (n), KEY (v) COMMENT 'rev:down')
            ENGINE=ROCKSDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin;
        INSERT INTO b SELECT seq, REPEAT(CONCAT('row ', seq % 97), 5) FROM seq_1_to_4000;
        SET rocksdb_bulk_load = 0;
        UPDATE b SET v = CONCAT('changed ', n) WHERE n % 50 = 0; DELETE FROM b WHERE n % 50 = 1;
        SET GLOBAL rocksdb_force_flush_memtable_now = 1;
        UPDATE b SET v = CONCAT('again ', n) WHERE n % 100 = 2"
    finish "$dir"
}

# All of myrocks.sql, then more of everything, in several levels.
golden_sql() {
    golden_start sql
    sql "$dir" --force <bindings/cxx/tests/myrocks.sql >"$dir/said" 2>&1 || true
    sql "$dir" -e "CREATE TABLE m (n BIGINT, x INT, PRIMARY KEY (n) COMMENT 'rev:m', KEY (x))
        ENGINE=ROCKSDB"
    moves_write "$dir" 1
    moves_write "$dir" 2
    finish "$dir"
}

golden() {
    local name dir expected=$golden/expected.tsv
    golden_compile
    mkdir -p "$golden"
    touch "$expected"
    rm -rf "$golden/6.29"
    sed -i '/^6\.29\t/d' "$expected"
    for name in bulk log prepared sql; do
        "golden_$name"
        golden_keep "$name"
    done
    grep '^6\.29' "$expected"
}
