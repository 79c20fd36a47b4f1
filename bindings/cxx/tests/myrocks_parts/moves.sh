# A directory that moves between Debian's plugin and ours, sourced by tests/myrocks: written by one,
# read and extended by the other, and back. CHECKSUM TABLE has to be equal on both sides.

moves_checks='CHECKSUM TABLE t, r, m; CHECK TABLE t, r, m;
    SELECT COUNT(*), SUM(b), MIN(a), MAX(a) FROM t; SELECT COUNT(*) FROM t FORCE INDEX (b);
    SELECT a FROM t FORCE INDEX (b) WHERE b = 3 ORDER BY b, id LIMIT 5;
    SELECT k, MD5(v) FROM r ORDER BY k DESC'

# moves_write DIRECTORY STEP: more of everything, a part of it in the log only.
moves_write() {
    sql "$1" -e "INSERT INTO t (a, b) SELECT CONCAT('step$2-', seq), seq MOD 9 FROM seq_1_to_3000;
        DELETE FROM t WHERE b = $2;
        INSERT INTO r VALUES (100 + $2, REPEAT('$2', 60000));
        INSERT INTO m SELECT $2 * 10000 + seq, seq FROM seq_1_to_5000;
        SET GLOBAL rocksdb_force_flush_memtable_now = 1;
        SET GLOBAL rocksdb_compact_cf = 'default';
        UPDATE t SET b = b + 1 WHERE id % 10 = $2;
        DELETE FROM m WHERE n % 3 = 0"
}

# moves_step DIRECTORY STEP PLUGINS: opens, compares with what the step before saw, writes.
moves_step() {
    local now
    launch "$1" "$3"
    now=$(sql "$1" -N -e "$moves_checks")
    expect "step $2" "$moves_seen" "$now"
    moves_write "$1" "$2"
    moves_seen=$(sql "$1" -N -e "$moves_checks")
    finish "$1"
}

# moves_from FIRST SECOND NAME: both are directories of plugins.
moves_from() {
    local dir=$work/moves-$3
    new_data "$dir"
    launch "$dir" "$1"
    sql "$dir" --force <bindings/cxx/tests/myrocks.sql >"$dir/said" 2>&1 || true
    sql "$dir" -e "CREATE TABLE m (n BIGINT, x INT, PRIMARY KEY (n) COMMENT 'rev:m', KEY (x))
        ENGINE=ROCKSDB"
    moves_write "$dir" 1
    moves_seen=$(sql "$dir" -N -e "$moves_checks")
    finish "$dir"
    moves_step "$dir" 2 "$2"
    moves_step "$dir" 3 "$1"
    moves_step "$dir" 4 "$2"
}

moves() {
    moves_from "$debian" "$esker" debian
    moves_from "$esker" "$debian" esker
    echo "moves: CHECKSUM TABLE is equal on both plugins, from either and back, three times"
}
