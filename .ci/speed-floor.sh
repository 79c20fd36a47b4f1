#!/usr/bin/env bash
# The speed floor: Esker against RocksDB, paired, with equal options. See docs/benchmarks.md.
#
# usage: .ci/speed-floor.sh /path/to/librocksdb.so [results-directory]
# PAIRS (1), NUM (5000000), SECONDS_EACH (15) and TMPDIR are taken from the environment.
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
