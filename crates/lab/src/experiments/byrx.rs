//! `byrx`, `iobuf`, `iodir`: one list of steps, with data in the block cache, through the page
//! cache and past it.
//!
//! The order is that of the scripts with which RocksDB's releases are compared on the blog Small
//! Datum: load in key order without a log, let the debt drain, read, overwrite a tenth, flush and
//! compact level 0, read beside a paced writer, overwrite and wait.

use crate::Result;
use crate::experiment::plan::{Request, Setting};

use super::recipe::{Stage, on_tree, prepare, rate, seconds};
use super::recipes::{Chains, Recipe, nothing};
use super::settings::{AGE, ENTRY, setting};

const NUM: &str = "keys";
const DURATION: &str = "seconds of each timed step";
const THREADS: &str = "threads of readers and of the last overwrite";
const RATE: &str = "megabytes a second of the writer beside readers";
const COMPRESSION: &str = "none, lz4 or zstd";

const CACHED: [Setting; 6] = [
    setting("num", "1000000", "40000000", NUM),
    setting("duration", "4", "600", DURATION),
    setting("threads", "1", "1", THREADS),
    setting("rate", "2", "2", RATE),
    setting("compression", "none", "none", COMPRESSION),
    AGE,
];

const LARGE: [Setting; 7] = [
    setting("num", "1500000", "800000000", NUM),
    setting("duration", "4", "600", DURATION),
    setting("threads", "1", "1", THREADS),
    setting("rate", "2", "2", RATE),
    setting("compression", "none", "lz4", COMPRESSION),
    setting("cache_mb", "64", "2048", "megabytes of the block cache"),
    AGE,
];

/// The block cache holds everything.
pub(super) static BYRX: Recipe = Recipe {
    name: "byrx",
    title: "Data in the block cache",
    help: "load, read, overwrite and read beside a writer; the block cache holds all data",
    about: "Keys of 20 bytes with values of 400 are loaded in key order without a log. When \
            compactions have ended, the database is read by key, by range and in batches; then a \
            tenth of it is overwritten, memtables are flushed and level 0 is compacted; then it is \
            read beside a writer of a fixed rate; then one writer overwrites at full speed, and \
            the debt that it leaves is waited for. The block cache is larger than the database.",
    settings: &CACHED,
    chains: byrx,
    size: |request| size(request, 1.6),
    sum: None,
    finish: nothing,
};

/// Larger than the block cache, through the page cache.
pub(super) static IOBUF: Recipe = Recipe {
    name: "iobuf",
    title: "Data larger than the cache, buffered I/O",
    help: "the steps of byrx with a small block cache, through the page cache",
    about: "The steps of byrx with a block cache much smaller than the database; reads that miss \
            it go to the page cache of the system. Unless the machine has less memory than the \
            database, or the run is confined to less, the device sees few reads.",
    settings: &LARGE,
    chains: iobuf,
    size: |request| size(request, 1.6),
    sum: None,
    finish: nothing,
};

/// Larger than the block cache, past the page cache.
pub(super) static IODIR: Recipe = Recipe {
    name: "iodir",
    title: "Data larger than the cache, direct I/O",
    help: "the steps of byrx with a small block cache, past the page cache",
    about: "The steps of byrx with a block cache much smaller than the database and direct I/O \
            for reads, flushes and compactions: every miss is a request to the device.",
    settings: &LARGE,
    chains: iodir,
    size: |request| size(request, 2.5),
    sum: None,
    finish: nothing,
};

/// Seconds and bytes of a run: eight timed steps, and as much as `factor` of that for the rest.
fn size(request: &Request, factor: f64) -> Result<(u64, u64)> {
    let (num, duration) = (request.count("num")?, request.count("duration")?);
    let load = num * ENTRY / 100_000_000;
    let seconds = ((8 * duration + load) as f64 * factor) as u64;
    Ok((seconds, num * ENTRY * 2))
}

fn byrx(request: &Request) -> Result<Chains> {
    let bytes = request.count("num")? * ENTRY * 2;
    let cache = format!("--cache_size={}", bytes.max(64 << 20));
    Ok(vec![(String::new(), stages(request, &[&cache])?)])
}

fn small_cache(request: &Request) -> Result<String> {
    Ok(format!("--cache_size={}", request.count("cache_mb")? << 20))
}

fn iobuf(request: &Request) -> Result<Chains> {
    let cache = small_cache(request)?;
    Ok(vec![(String::new(), stages(request, &[&cache])?)])
}

fn iodir(request: &Request) -> Result<Chains> {
    let cache = small_cache(request)?;
    let own = [
        cache.as_str(),
        "--use_direct_reads=true",
        "--use_direct_io_for_flush_and_compaction=true",
    ];
    Ok(vec![(String::new(), stages(request, &own)?)])
}

fn stages(request: &Request, own: &[&str]) -> Result<Vec<Stage>> {
    let num = request.count("num")?;
    let duration = format!("--duration={}", request.count("duration")?);
    let write_rate = format!(
        "--background_write_rate_limit={}",
        request.count("rate")? << 20
    );
    let common = [
        format!("--num={num}"),
        format!("--compression_type={}", request.text("compression")),
    ];
    let threads = format!("--threads={}", request.count("threads")?);
    let some = format!("--writes={}", (num / 10).max(1));
    let make = |parts, more: &[&str]| {
        let more = own.iter().chain(more).map(|flag| (*flag).to_string());
        let flags: Vec<String> = common.iter().cloned().chain(more).collect();
        on_tree(parts, &flags)
    };
    let reads = [duration.as_str(), &threads, "--seek_nexts=10"];
    let beside = [duration.as_str(), &threads, "--seek_nexts=10", &write_rate];
    let batches = [
        duration.as_str(),
        &threads,
        "--batch_size=10",
        "--multiread_batched=true",
    ];
    Ok(vec![
        make(
            vec![
                rate("fillseq", "fillseq", "load in key order, no log"),
                seconds("waitforcompaction", "load debt", "wait for compactions"),
            ],
            &["--disable_wal=true", "--statistics"],
        ),
        make(
            vec![
                rate("readrandom", "readrandom", "read one random key"),
                rate("seekrandom", "fwdrange", "seek, then read ten entries"),
            ],
            &reads,
        ),
        make(
            vec![rate(
                "multireadrandom",
                "multireadrandom",
                "read ten keys at once",
            )],
            &batches,
        ),
        make(
            vec![
                rate("overwrite", "overwritesome", "overwrite a tenth at random"),
                seconds("flush", "flush", "write memtables out"),
                seconds("compact0", "compact level 0", "merge level 0 down"),
                prepare("waitforcompaction"),
            ],
            &[&some, "--statistics"],
        ),
        make(
            vec![
                rate(
                    "revrangewhilewriting",
                    "revrangewhilewriting",
                    "ranges backward beside a paced writer",
                ),
                rate(
                    "fwdrangewhilewriting",
                    "fwdrangewhilewriting",
                    "ranges forward beside a paced writer",
                ),
                rate(
                    "readwhilewriting",
                    "readwhilewriting",
                    "random keys beside a paced writer",
                ),
            ],
            &beside,
        ),
        make(
            vec![
                rate("overwrite", "overwrite", "overwrite at full speed"),
                seconds(
                    "waitforcompaction",
                    "overwrite debt",
                    "wait for compactions",
                ),
            ],
            &[&duration, &threads, "--statistics"],
        ),
    ])
}
