# Runs a job that counts, on the stock library and on ours, kills it with `kill -9` and restarts it.
# Sourced by spark/run and flink/run after bindings/jni/tests/suite.sh. They define:
#   job PATH DIRECTORY    becomes the job, with the library in PATH, on what DIRECTORY has; it ends
#                         with 1 if a count is wrong
#   progress DIRECTORY    prints how many steps the job has completed
#   log DIRECTORY TEXT    prints what the library logged; TEXT is the output of the job

pid=
# Whatever happens, no process stays and nothing of a job's data.
finish() {
    local status=$?
    if [ -n "$pid" ]; then
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    fi
    if [ $status = 0 ]; then
        rm -rf "$work"
    else
        rm -rf "$work/stock" "$work/ours" "$work/classes"
        echo "the output of the jobs is in $work" >&2
    fi
}
trap finish EXIT

# TEXT: ends the script with an error and the output of the job.
fail() {
    tail -n 20 "$text" >&2
    echo "$1" >&2
    exit 1
}

# SIDE DIRECTORY: begins the job on a library.
runs=0
begin() {
    local path=$work/nothing
    [ "$1" = ours ] && path=$library
    runs=$((runs + 1))
    text=$work/run-$runs-$1.txt
    mkdir -p "$work/$2"
    job "$path" "$work/$2" >"$text" 2>&1 &
    pid=$!
}

# SIDE DIRECTORY: waits until the job has completed four steps more, on the library that it was to
# run on.
advance() {
    local target left=6000
    target=$(($(progress "$work/$2") + 4))
    until [ "$(progress "$work/$2")" -ge "$target" ]; do
        kill -0 "$pid" 2>/dev/null || fail "the job ended on its own"
        left=$((left - 1))
        [ $left -gt 0 ] || fail "the job does not get on"
        sleep 0.1
    done
    loaded "$1" "$2"
}

# SIDE DIRECTORY: the process has the right library in memory, and that alone, and what the library
# logged agrees.
loaded() {
    local files engine ours
    files=$(grep -o '/[^ ]*librocksdbjni[^ ]*' "/proc/$pid/maps" | sort -u) || true
    engine=$(log "$work/$2" "$text" | grep -o 'RocksDB version: .*' | sort -u) || true
    ours=$(readlink -f "$library/librocksdbjni.so")
    if [ "$1" = ours ]; then
        [ "$files" = "$ours" ] || fail "expected $ours in memory, not '$files'"
        [[ $engine = *'the engine is Esker'* ]] || fail "not logged by Esker: '$engine'"
    else
        [[ -n $files && $files != *"$ours"* ]] || fail "expected the stock library, not '$files'"
        [[ -n $engine && $engine != *Esker* ]] || fail "not logged by RocksDB: '$engine'"
    fi
}

# SIDE DIRECTORY: runs the job on a library for some steps and kills it in the middle of one.
killed() {
    begin "$1" "$2"
    advance "$1" "$2"
    sleep "0.$((RANDOM % 10))"
    kill -KILL "$pid" 2>/dev/null || fail "the job ended before it was killed"
    wait "$pid" 2>/dev/null || true
    pid=
    echo "$1: killed after $(progress "$work/$2") steps"
}

# SIDE DIRECTORY: runs the job on a library to its end.
completed() {
    begin "$1" "$2"
    advance "$1" "$2"
    wait "$pid" || fail "the job failed"
    pid=
    echo "$1: completed, $(tail -n 1 "$text")"
}

# Two jobs, one begun on each library. Each is killed twice on the library it was begun on and once
# on the other, and completes on the first.
restarts() {
    local first other
    for first in stock ours; do
        other=$([ $first = stock ] && echo ours || echo stock)
        killed $first $first
        killed $first $first
        killed $other $first
        completed $first $first
    done
}
