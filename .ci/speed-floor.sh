#!/usr/bin/env bash
# The speed floor: Esker against RocksDB, paired, with equal options. See docs/benchmarks/reads-2026-11.md.
#
# usage: .ci/speed-floor.sh /path/to/librocksdb.so [results-directory]
# PAIRS (1), NUM (5000000), SECONDS_EACH (15), CACHED_NUM (1000000), CACHED_SECONDS (5),
# CACHED_THREADS (1,2,8,40), CACHED_VALUES (100,400), CACHED_INSTRUCTIONS (0: none are counted) and
# TMPDIR are taken from the environment.
set -euo pipefail
library=${1:?usage: .ci/speed-floor.sh /path/to/librocksdb.so [results-directory]}
results=${2:-.}
here=$(cd "$(dirname "$0")/.." && pwd)
esker=${ESKER:-}
if [ -z "$esker" ]; then
    (cd "$here" && cargo build --release -p esker-cli)
    esker=${CARGO_TARGET_DIR:-$here/target}/release/esker
fi
common=(
    --engine=esker "--engine=lib:$library" "--pairs=${PAIRS:-1}" "--num=${NUM:-5000000}"
    --key_size=20 --value_size=400 --compression_type=none --threads=2
    --seek_nexts=10 "--duration=${SECONDS_EACH:-15}"
)
rows=fillrandom,fillseq,waitforcompaction,readrandom,readseq,seekrandom,overwrite,readwhilewriting
"$esker" bench compare "${common[@]}" --benchmarks=$rows --json="$results/floor-forward.json"
"$esker" bench compare "${common[@]}" --benchmarks=fillseq,waitforcompaction,seekrandom \
    --reverse_iterator=true --json="$results/floor-reverse.json"

# Cached reads: every step must be at 1 or above; see `esker lab cached --help`.
"$esker" lab cached --engine=esker "--engine=lib:$library" "--pairs=${PAIRS:-1}" \
    "--num=${CACHED_NUM:-1000000}" "--duration=${CACHED_SECONDS:-5}" \
    "--threads=${CACHED_THREADS:-1,2,8,40}" "--values=${CACHED_VALUES:-100,400}" \
    "--instructions=${CACHED_INSTRUCTIONS:-0}" "--out=$results/floor-cached" \
    "--scratch=${TMPDIR:-/tmp}"
