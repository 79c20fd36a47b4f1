# Shared by the tests of MyRocks, which source it after plugin.sh: servers and clients. A server has
# a directory: `data`, `sock`, and `error.log`. Nothing listens on the network.

# server_options DIRECTORY: sets $options, what every start of MariaDB takes.
server_options() {
    options=(--no-defaults --basedir="$server/usr" --datadir="$1/data" --tmpdir="$1/tmp"
             --lc-messages-dir="$server/usr/share/mysql" --innodb-buffer-pool-size=16M
             --innodb-log-file-size=4M --user="$(id -un)"
             --character-sets-dir="$server/usr/share/mysql/charsets")
}

# new_data DIRECTORY: makes MariaDB's own tables and a database `test` in it.
new_data() {
    local dir=$1 seed=$work/seed
    if [ ! -e "$seed/made" ]; then
        rm -rf "$seed"
        mkdir -p "$seed/data" "$seed/tmp"
        server_options "$seed"
        {
            printf 'create database mysql;\nuse mysql;\n'
            cat "$server"/usr/share/mysql/mysql_system_tables{,_data}.sql
            printf 'create database test;\n'
        } | LD_LIBRARY_PATH=$libraries "$server/usr/sbin/mariadbd" "${options[@]}" --bootstrap \
            >"$seed/bootstrap.log" 2>&1
        touch "$seed/made"
    fi
    rm -rf "$dir"
    mkdir -p "$dir/tmp"
    cp -r "$seed/data" "$dir/data"
}

# launch DIRECTORY PLUGINS [OPTION ...]: starts a server; its process is $pid. Waits until it
# answers, and fails where it ends before.
launch() {
    local dir=$1 plugins=$2
    shift 2
    server_options "$dir"
    LD_LIBRARY_PATH=$libraries "$server/usr/sbin/mariadbd" "${options[@]}" --socket="$dir/sock" \
        --skip-networking --skip-grant-tables --plugin-dir="$plugins" \
        --plugin-load-add=ha_rocksdb.so --plugin-maturity=unknown \
        --log-error="$dir/error.log" "$@" >>"$dir/server.log" 2>&1 &
    pid=$!
    servers+=("$pid")
    for _ in $(seq 600); do
        if sql "$dir" -e 'select 1' >/dev/null 2>&1; then return; fi
        if ! kill -0 "$pid" 2>/dev/null; then break; fi
        sleep 0.1
    done
    if ! kill -0 "$pid" 2>/dev/null; then reap || true; fi
    echo "mariadbd does not start; its log is $dir/error.log" >&2
    tail -n 20 "$dir/error.log" >&2
    return 1
}

# sql DIRECTORY [OPTION ...]: the client.
sql() {
    local dir=$1
    shift
    LD_LIBRARY_PATH=$libraries "$server/usr/bin/mariadb" --no-defaults --socket="$dir/sock" \
        test "$@"
}

# reap: waits for the server's end, and has its status.
reap() {
    local status=0 others=() other
    { wait "$pid"; } 2>/dev/null || status=$?
    # Its number may be another process's from now on.
    for other in "${servers[@]}"; do
        if [ "$other" != "$pid" ]; then others+=("$other"); fi
    done
    servers=("${others[@]}")
    return "$status"
}

# finish DIRECTORY: shuts the server down.
finish() {
    sql "$1" -e shutdown || true
    if ! reap; then
        echo "mariadbd failed; its log is $1/error.log" >&2
        tail -n 30 "$1/error.log" >&2
        return 1
    fi
}

# slay: ends the server with SIGKILL.
slay() {
    kill -9 "$pid"
    reap || true
}

# expect WHAT WANTED GOT: fails where both differ.
expect() {
    if [ "$2" != "$3" ]; then
        printf '%s: expected\n%s\nbut there is\n%s\n' "$1" "$2" "$3" >&2
        exit 1
    fi
}
