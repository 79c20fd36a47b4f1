# Faults of one kind each, sourced by tests/myrocks: a lock wait that KILL QUERY ends, a full disk,
# a damaged table file.

# seconds_since TIME: TIME is of `date +%s.%N`.
seconds_since() {
    awk -v from="$1" -v to="$(date +%s.%N)" 'BEGIN { printf "%.2f", to - from }'
}

# query_of DIRECTORY TEXT: the connection whose statement begins with TEXT; waits for it.
query_of() {
    local id
    for _ in $(seq 100); do
        id=$(sql "$1" -N -e "SELECT id FROM information_schema.processlist
            WHERE info LIKE '$2%' AND time_ms > 300")
        if [ -n "$id" ]; then
            echo "$id"
            return
        fi
        sleep 0.1
    done
    return 1
}

kill_query() {
    local dir=$work/kill-query holder waiter id from took said rows
    new_data "$dir"
    launch "$dir" "$esker"
    sql "$dir" -e "CREATE TABLE t (k INT PRIMARY KEY, v INT) ENGINE=ROCKSDB;
        INSERT INTO t VALUES (1, 0), (2, 0)"
    sql "$dir" -e 'BEGIN; UPDATE t SET v = 1 WHERE k = 1; SELECT SLEEP(1000)' >/dev/null 2>&1 &
    holder=$!
    id=$(query_of "$dir" 'SELECT SLEEP')
    sql "$dir" -e 'SET rocksdb_lock_wait_timeout = 1000; UPDATE t SET v = 2 WHERE k = 1' \
        >"$dir/said" 2>&1 &
    waiter=$!
    local waiting
    waiting=$(query_of "$dir" 'UPDATE t')
    from=$(date +%s.%N)
    sql "$dir" -e "KILL QUERY $waiting"
    wait "$waiter" || true
    took=$(seconds_since "$from")
    said=$(grep -o 'ERROR 1317' "$dir/said" || cat "$dir/said")
    expect 'KILL QUERY of a lock wait' 'ERROR 1317' "$said"
    # The lock goes to who comes next, once its holder is gone.
    sql "$dir" -e "KILL $id"
    wait "$holder" || true
    sql "$dir" -e 'SET rocksdb_lock_wait_timeout = 20; UPDATE t SET v = v + 3 WHERE k = 1'
    rows=$(sql "$dir" -N -e 'SELECT k, v FROM t ORDER BY k' | tr '\t\n' ': ')
    expect 'rows after KILL QUERY' '1:3 2:0 ' "$rows"
    finish "$dir"
    if awk -v took="$took" 'BEGIN { exit !(took > 1) }'; then
        echo "kill query: the wait ended after $took s; it may take 1 s" >&2
        exit 1
    fi
    echo "kill query: the wait for a row lock ended after $took s"
}

# fill DIRECTORY: adds rows that no compressor makes small, until a statement fails. What was
# acknowledged is in `acknowledged`, and the error in `said`.
fill() {
    awk 'BEGIN {
        for (n = 1; n < 20000; n++) {
            v = ""
            for (i = 0; i < 1000; i++) v = v sprintf("%08x", int(rand() * 4294967296))
            printf "BEGIN; INSERT INTO a SELECT %d, v, MD5(v) FROM (SELECT \"%s\" v) made; ", n, v
            printf "INSERT INTO b VALUES (%d); COMMIT; SELECT %d;\n", n, n
        }
    }' | sql "$1" -N -n >"$1/acknowledged" 2>"$1/said" || true
}

# kept DIRECTORY WHAT: every acknowledged row is there, and none in part.
kept() {
    local found
    sql "$1" -N -e 'SELECT n FROM a' | sort >"$1/rows"
    found=$(sort "$1/acknowledged" | comm -23 - "$1/rows")
    expect "$2: acknowledged rows that are lost" '' "$found"
    found=$(sql "$1" -N -e "SELECT n FROM a LEFT JOIN b USING (n) WHERE b.n IS NULL;
        SELECT n FROM b LEFT JOIN a USING (n) WHERE a.n IS NULL;
        SELECT n FROM a WHERE MD5(v) <> sum")
    expect "$2: rows in part" '' "$found"
    found=$(sql "$1" -N -e 'CHECK TABLE a, b' | cut -f 4 | sort -u)
    expect "$2: CHECK TABLE" OK "$found"
}

# ended DIRECTORY: waits for a server that is gone; how it went is in $went. The plugin ends it by
# `abort` where the log cannot be written or data is damaged, and says so in its log before.
ended() {
    local dir=$1 status=0
    reap || status=$?
    if [ "$status" != 134 ] || grep -q 'got signal 11' "$dir/error.log" ||
        ! grep -qE 'MyRocks: aborting|data corruption detected' "$dir/error.log"; then
        echo "the server ended with status $status, and not as the plugin ends it:" >&2
        grep -E 'ERROR|signal' "$dir/error.log" >&2
        exit 1
    fi
    went='was ended by the plugin'
}

# full_disk_on NAME PLUGINS: the data is on a filesystem of 192 MB in memory; prints what happened.
full_disk_on() {
    local dir=$work/full-disk-$1 went='went on'
    local with=(--skip-innodb --default-storage-engine=ROCKSDB --rocksdb-flush-log-at-trx-commit=1
                --rocksdb-override-cf-options='default={write_buffer_size=4m}')
    new_data "$dir"
    rm "$dir"/data/ib*
    mv "$dir/data" "$dir/seed"
    mkdir "$dir/data"
    mount -t tmpfs -o size=192m esker "$dir/data"
    cp -r "$dir/seed/." "$dir/data"
    # What goes away later to make room.
    head -c 120M /dev/zero >"$dir/data/ballast"
    launch "$dir" "$2" "${with[@]}"
    sql "$dir" -e 'CREATE TABLE a (n INT PRIMARY KEY, v BLOB, sum VARBINARY(32)) ENGINE=ROCKSDB;
        CREATE TABLE b (n INT PRIMARY KEY) ENGINE=ROCKSDB'
    fill "$dir"
    local first_error rows
    first_error=$(grep -o 'ERROR.*' "$dir/said" | head -n 1)
    rows=$(wc -l <"$dir/acknowledged")
    if [ -z "$first_error" ]; then
        echo "$1: the disk is full, and no statement failed" >&2
        exit 1
    fi
    if sql "$dir" -e 'SELECT 1' >/dev/null 2>&1; then kept "$dir" "$1, while it is full"; fi
    rm "$dir/data/ballast"
    sleep 1
    if sql "$dir" -e 'SELECT 1' >/dev/null 2>&1; then
        # Background work tries again by itself.
        for _ in $(seq 60); do
            if sql "$dir" -e 'INSERT INTO b VALUES (0); DELETE FROM b WHERE n = 0' \
                >/dev/null 2>&1; then break; fi
            sleep 0.5
        done
    else
        ended "$dir"
        # The plugin's default takes no log with a torn end, which a full disk may leave.
        if ! launch "$dir" "$2" "${with[@]}" 2>/dev/null; then
            went+=' and starts only with rocksdb_wal_recovery_mode=0'
            launch "$dir" "$2" "${with[@]}" --rocksdb-wal-recovery-mode=0
        fi
    fi
    kept "$dir" "$1, with room again"
    sql "$dir" -e "INSERT INTO a VALUES (1000000, 'last', MD5('last'));
        INSERT INTO b VALUES (1000000)"
    echo 1000000 >>"$dir/acknowledged"
    finish "$dir"
    launch "$dir" "$2" "${with[@]}"
    kept "$dir" "$1, after a restart"
    finish "$dir"
    umount "$dir/data"
    echo "full disk, $1: $rows commits, then $first_error; the server $went; nothing is lost"
}

# full_disk runs in namespaces of its own, where it may mount.
full_disk() {
    if [ -z "${MYROCKS_APART-}" ]; then
        if ! unshare --user --map-root-user --mount true 2>/dev/null; then
            echo 'full disk: no filesystem may be mounted here; not tested'
            return
        fi
        MYROCKS_APART=yes unshare --user --map-root-user --mount \
            bindings/cxx/tests/myrocks --full-disk --keep "$work" --library "$library"
        return
    fi
    full_disk_on debian "$debian"
    full_disk_on esker "$esker"
}

# damage_on NAME PLUGINS
damage_on() {
    local dir=$work/damage-$1 file found whole said went='went on'
    local with=(--skip-innodb --default-storage-engine=ROCKSDB)
    new_data "$dir"
    launch "$dir" "$2" "${with[@]}"
    sql "$dir" -e "CREATE TABLE a (n INT PRIMARY KEY, v TEXT) ENGINE=ROCKSDB;
        CREATE TABLE b (n INT, PRIMARY KEY (n) COMMENT 'other') ENGINE=ROCKSDB;
        INSERT INTO a SELECT seq, REPEAT(MD5(seq), 20) FROM seq_1_to_20000;
        INSERT INTO b SELECT seq FROM seq_1_to_1000;
        SET GLOBAL rocksdb_force_flush_memtable_now = 1"
    whole=$(sql "$dir" -N -e 'CHECKSUM TABLE a, b')
    finish "$dir"
    # The largest file is of table a; the damage is in its blocks of data.
    file=$(find "$dir/data" -name '*.sst' -printf '%s %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2)
    cp "$file" "$dir/good"
    printf 'damaged by the test' | dd of="$file" bs=1 seek=200000 conv=notrunc status=none
    launch "$dir" "$2" "${with[@]}"
    sql "$dir" -e 'CHECKSUM TABLE b; SELECT COUNT(v) FROM a' >"$dir/said" 2>&1 || true
    said=$(grep -o 'ERROR.*' "$dir/said" | head -n 1)
    if [ -z "$said" ]; then
        echo "$1: a damaged table was read without an error:" >&2
        cat "$dir/said" >&2
        exit 1
    fi
    if sql "$dir" -e 'SELECT 1' >/dev/null 2>&1; then
        found=$(sql "$dir" -N -e 'SELECT COUNT(*) FROM b')
        expect "$1: a table that is not damaged" 1000 "$found"
        finish "$dir"
    else
        ended "$dir"
    fi
    cp "$dir/good" "$file"
    # The plugin's own mark that data was found damaged: it starts only once that is away.
    find "$dir/data" -name 'ROCKSDB_CORRUPTED' -delete
    launch "$dir" "$2" "${with[@]}"
    found=$(sql "$dir" -N -e 'CHECKSUM TABLE a, b')
    expect "$1: tables with the file back" "$whole" "$found"
    found=$(sql "$dir" -N -e 'CHECK TABLE a, b' | cut -f 4 | sort -u)
    expect "$1: CHECK TABLE" OK "$found"
    finish "$dir"
    echo "damage, $1: $said; the server $went; nothing is lost with the file back"
}

damage() {
    damage_on debian "$debian"
    damage_on esker "$esker"
}
