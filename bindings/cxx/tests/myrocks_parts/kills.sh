# Rounds of SIGKILL with the binlog on, sourced by tests/myrocks. Half of the rounds have no InnoDB;
# in the others each transaction writes to a table of InnoDB, too. Clients move amounts between
# accounts, note both sides in a ledger, and add rows to a table of another column family. After a
# round: every acknowledged commit is there, no transaction is there in part, CHECK TABLE finds
# nothing, and a second server, which Debian's plugin serves and nobody kills, has the same tables
# after it replayed the round's binlog.

kills_clients=4
# Log and binlog are synced before a commit is acknowledged.
kills_synced=(--log-bin=bin --binlog-format=row --sync-binlog=1 --server-id=1
              --rocksdb-flush-log-at-trx-commit=1 --innodb-flush-log-at-trx-commit=1)

# kills_tables ENGINE: the tables; `side` is of ENGINE.
kills_tables() {
    cat <<SQL
CREATE TABLE account (id INT PRIMARY KEY, amount BIGINT) ENGINE=ROCKSDB;
CREATE TABLE ledger (n BIGINT PRIMARY KEY, id INT, moved BIGINT, KEY (id)) ENGINE=ROCKSDB;
CREATE TABLE extra (n BIGINT, v VARCHAR(99), PRIMARY KEY (n) COMMENT 'rev:extra', KEY (v))
    ENGINE=ROCKSDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin;
CREATE TABLE side (n BIGINT PRIMARY KEY) ENGINE=$1;
INSERT INTO account SELECT seq, 1000 FROM seq_1_to_50;
SQL
}

# kills_load ROUND CLIENT: the transactions of a client in a round. What they select after their
# commit acknowledges it. Accounts are taken in order, so that no client waits in a circle, and
# without snapshots, which conflict with what others commit.
kills_load() {
    echo 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;'
    echo 'SET rocksdb_lock_wait_timeout = 1000;'
    awk -v round="$1" -v client="$2" 'BEGIN {
        srand(round * 100 + client)
        for (i = 0; i < 2000; i++) {
            n = (round * 100 + client) * 10000 + 2 * i
            low = 1 + int(rand() * 49); high = low + 1 + int(rand() * (50 - low))
            moved = int(rand() * 20) - 10
            printf "BEGIN; UPDATE account SET amount = amount + %d WHERE id = %d; ", moved, low
            printf "UPDATE account SET amount = amount - %d WHERE id = %d; ", moved, high
            printf "INSERT INTO ledger VALUES (%d, %d, %d), (%d, %d, %d); ",
                n, low, moved, n + 1, high, -moved
            printf "INSERT INTO side VALUES (%d); ", n
            printf "INSERT INTO extra VALUES (%d, REPEAT(\"v\", %d)); COMMIT; SELECT %d;\n",
                n, 1 + i % 90, n
        }
    }'
}

# What is wrong in the tables: a line for each finding.
kills_findings="
SELECT 'amounts', SUM(amount) FROM account HAVING SUM(amount) <> 50000;
SELECT 'account', id, amount, total FROM account
    LEFT JOIN (SELECT id, SUM(moved) total FROM ledger GROUP BY id) sums USING (id)
    WHERE amount <> 1000 + IFNULL(total, 0);
SELECT 'half of a ledger', n DIV 2 FROM ledger GROUP BY n DIV 2 HAVING COUNT(*) <> 2;
SELECT 'ledger alone', n FROM ledger LEFT JOIN extra USING (n) WHERE n % 2 = 0 AND v IS NULL;
SELECT 'extra alone', n FROM extra LEFT JOIN ledger USING (n) WHERE id IS NULL;
SELECT 'side alone', n FROM side LEFT JOIN ledger USING (n) WHERE id IS NULL;
SELECT 'extra without side', n FROM extra LEFT JOIN side USING (n) WHERE side.n IS NULL;
SELECT 'index', COUNT(*) FROM extra FORCE INDEX (v) WHERE v >= ''
    HAVING COUNT(*) <> (SELECT COUNT(*) FROM extra FORCE INDEX (PRIMARY));
"

# kills_load_and_kill DIRECTORY ROUND: what was acknowledged is in `acknowledged`.
kills_load_and_kill() {
    local dir=$1 round=$2 client clients=()
    rm -f "$dir"/acknowledged.*
    for client in $(seq "$kills_clients"); do
        kills_load "$round" "$client" | sql "$dir" -N -n >"$dir/acknowledged.$client" \
            2>"$dir/client.$client" &
        clients+=($!)
    done
    sleep "$((RANDOM % 2)).$((RANDOM % 8 + 2))$((RANDOM % 10))"
    slay
    wait "${clients[@]}" || true
    if grep -h ERROR "$dir"/client.* | grep -vE 'ERROR (1927|2002|2006|2013|2026) '; then
        echo "round $round: a client has another error than a lost connection" >&2
        exit 1
    fi
    sort "$dir"/acknowledged.* >"$dir/acknowledged"
    acknowledged=$((acknowledged + $(wc -l <"$dir/acknowledged")))
}

# kills_replay DIRECTORY: passes the binlog, without the running server's file, to the second one.
kills_replay() {
    local dir=$1 logs log
    logs=("$dir"/data/bin.0*)
    for log in "${logs[@]::${#logs[@]}-1}"; do
        LD_LIBRARY_PATH=$libraries "$server/usr/bin/mariadb-binlog" --no-defaults "$log" \
            2>"$dir/binlog.err" | sql "$dir/replica"
    done
    sql "$dir" -e "PURGE BINARY LOGS TO '$(basename "${logs[-1]}")'"
}

# kills_check DIRECTORY ROUND
kills_check() {
    local dir=$1 round="round $2" found ours replicas
    found=$(sql "$dir" -N -e "$kills_findings")
    expect "$round" '' "$found"
    found=$(sql "$dir" -N -e 'CHECK TABLE account, ledger, extra, side' | cut -f 4 | sort -u)
    expect "$round: CHECK TABLE" OK "$found"
    sql "$dir" -N -e 'SELECT n FROM extra' | sort >"$dir/rows"
    found=$(comm -23 "$dir/acknowledged" "$dir/rows")
    expect "$round: acknowledged rows that are lost" '' "$found"
    kills_replay "$dir"
    ours=$(sql "$dir" -N -e 'CHECKSUM TABLE account, ledger, extra, side')
    replicas=$(sql "$dir/replica" -N -e 'CHECKSUM TABLE account, ledger, extra, side')
    expect "$round: tables, and what the binlog makes of them" "$replicas" "$ours"
}

# kills_rounds NAME ENGINE FIRST LAST [OPTION ...]
kills_rounds() {
    local dir=$work/kills-$1 of=$2 first=$3 last=$4 round replica
    local kills_more=("${@:5}")
    new_data "$dir"
    new_data "$dir/replica"
    launch "$dir/replica" "$debian" --rocksdb-flush-log-at-trx-commit=0 --server-id=2 \
        --innodb-flush-log-at-trx-commit=0 "${kills_more[@]}"
    replica=$pid
    launch "$dir" "$esker" "${kills_synced[@]}" "${kills_more[@]}"
    kills_tables "$of" | sql "$dir"
    for round in $(seq "$first" "$last"); do
        kills_load_and_kill "$dir" "$round"
        launch "$dir" "$esker" "${kills_synced[@]}" "${kills_more[@]}"
        kills_check "$dir" "$round"
    done
    finish "$dir"
    pid=$replica
    finish "$dir/replica"
}

# kills ROUNDS
kills() {
    acknowledged=0
    local half=$((($1 + 1) / 2))
    kills_rounds alone ROCKSDB 1 "$half" --skip-innodb --default-storage-engine=ROCKSDB
    kills_rounds beside InnoDB "$((half + 1))" "$1"
    echo "kills: $1 rounds, $acknowledged acknowledged commits: none lost, none in part," \
        "binlog and tables agree"
}
