//! `blob`: values in tables beside values in blob files, by size of values and compression.
//!
//! Every engine that is named runs in two forms on the same flags: inline, and with blob files.
//! Esker has a third, in which medium values are in sorted groups of blob files.
//! All are divided by the first library with blob files, which is RocksDB's BlobDB. Overwriting is
//! one step that begins and ends on a settled tree: what jobs write and compute until nothing is
//! due belongs to it. An engine whose blob form wrote no blob file is refused.

mod forms;
mod gates;
mod settled;

use crate::experiment::plan::{Chain, EngineSpec, Plan, Request, Setting};
use crate::experiment::record::{Aim, Ask, Engine, Record, Step};
use crate::experiment::{Experiment, Run};
use crate::process::memory_bytes;
use crate::{Failure, Result, interrupt};

use super::engine;
use super::recipe::{self, BenchmarkPart, Stage, on_tree, prepare, rate};
use super::settings::{flag, setting};

/// The experiment.
pub(super) static BLOB: Blob = Blob;

/// See the module.
pub(super) struct Blob;

/// Megabytes of the block cache at most, where the machine says how many.
const MOST_CACHE_MB: u64 = 6144;
/// Keys of one multi-get.
const BATCH: u64 = 32;

/// Reads: benchmark, name of the step, what it does.
const READS: [(&str, &str, &str); 4] = [
    ("readrandom", "readrandom", "read a key"),
    ("multireadrandom", "multireadrandom", "read 32 keys at once"),
    ("seekrandom", "seek + 10", "seek, then read ten entries"),
    ("readseq", "readseq", "iterate forward"),
];

const SETTINGS: [Setting; 10] = [
    setting("mb", "96", "800", "megabytes of values"),
    setting(
        "rounds",
        "2",
        "4",
        "times that each key is overwritten on average",
    ),
    setting(
        "duration",
        "2",
        "20",
        "seconds of each timed read; 0: each thread reads its part of the keys, for tests",
    ),
    setting("threads", "2", "2", "threads that overwrite and read"),
    setting(
        "plain",
        "1024,16384",
        "512,1024,4096,16384",
        "bytes of a value in cells without compression, with commas between; may be empty",
    ),
    setting(
        "zstd",
        "1024",
        "1024,16384",
        "bytes of a value in cells with zstd, with commas between; may be empty",
    ),
    setting(
        "reads",
        "readrandom,multireadrandom,seekrandom,readseq",
        "readrandom,multireadrandom,seekrandom,readseq",
        "benchmarks behind the overwriting, with commas between",
    ),
    setting(
        "cache_mb",
        "auto",
        "auto",
        "megabytes of the block cache; auto: a quarter of the machine's memory, 6144 at most",
    ),
    setting(
        "blob_cache_mb",
        "0",
        "0",
        "megabytes of a cache of values in blob files; 0 for none, as RocksDB's default",
    ),
    setting(
        "min_blob",
        "256",
        "256",
        "least bytes of a value that goes into a blob file",
    ),
];

/// A size of values with its compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlobCell {
    size: u64,
    codec: &'static str,
}

impl BlobCell {
    fn name(self) -> String {
        match self.codec {
            "none" => format!("{} B", self.size),
            codec => format!("{} B {codec}", self.size),
        }
    }
}

impl Experiment for Blob {
    fn name(&self) -> &'static str {
        "blob"
    }

    fn title(&self) -> &'static str {
        "Values in files of their own"
    }

    fn help(&self) -> &'static str {
        "values inline and in blob files, by size and compression, beside RocksDB's BlobDB"
    }

    fn about(&self) -> &'static str {
        "Every engine runs with its values in the tables (inline) and in blob files (blobs), \
         Esker with values below 8 KB in sorted groups of them as well (tiers), on the same flags. Every key is written once in random order, all is flushed, and \
         compactions are waited for. Then keys are overwritten at random, the same number on \
         every engine, all is flushed, and compactions are waited for again: bytes, processor time \
         and space of the overwriting are those from the settled tree before it to the settled \
         tree behind it. Bytes to the device are those that the process wrote, less those that it \
         gave up before they were written out. On that tree, once all entries were read, keys are \
         read at random, 32 at once, ranges of ten are read, and entries forward. Garbage \
         collection of blob files is on with RocksDB's defaults. Each cell is named by the bytes \
         of a value and by its compression, that of tables and blob files."
    }

    fn settings(&self) -> &'static [Setting] {
        &SETTINGS
    }

    fn engines(&self, named: Vec<EngineSpec>) -> Vec<EngineSpec> {
        named.into_iter().flat_map(forms::of).collect()
    }

    fn base(&self, engines: &[EngineSpec]) -> usize {
        forms::base(engines)
    }

    fn supports(&self, engine: &EngineSpec) -> Result<()> {
        engine::supports(engine)
    }

    fn plan(&self, request: &Request) -> Result<Plan> {
        let mut chains = Vec::new();
        for cell in cells(request)? {
            let stages = stages(request, cell)?;
            recipe::check(request, &stages)?;
            let mut chain: Chain = recipe::chain(&cell.name(), &stages);
            chain.steps.push(overwrite(cell));
            chains.push(chain);
        }
        if chains.is_empty() {
            return Err(Failure::new("--plain and --zstd name no size of values"));
        }
        let (mb, rounds) = (request.count("mb")?, request.count("rounds")?);
        let reads = chosen(request)?.len() as u64 * request.count("duration")?;
        Ok(Plan {
            seconds: chains.len() as u64 * (mb * (rounds + 2) / 40 + reads + 5),
            bytes: (mb << 20) * (rounds + 3),
            chains,
        })
    }

    fn describe(&self, request: &Request, spec: &EngineSpec) -> Result<Engine> {
        let mut engine = engine::describe(spec)?;
        engine.name = forms::named(&engine.name, spec);
        if forms::has_blobs(spec) {
            engine.notes.push(blob_cache_note(request)?);
        }
        Ok(engine)
    }

    fn run(&self, request: &Request, run: &mut Run<'_>) -> Result<()> {
        let mut all = cells(request)?.into_iter();
        let cell = all.find(|cell| cell.name() == run.chain.name);
        let cell = cell.ok_or_else(|| Failure::new("no such chain"))?;
        let mut stages = stages(request, cell)?;
        if forms::has_blobs(run.engine) {
            let cache = blob_cache(request)?;
            stages
                .iter_mut()
                .for_each(|s| s.flags.extend(cache.clone()));
        }
        let rows = recipe::run(request, run, &stages)?;
        if run.engine.label.is_empty() {
            run.facts.name = forms::named(&run.facts.name, run.engine);
        }
        let wanted: usize = stages.iter().map(|stage| stage.parts.len()).sum();
        if rows.len() < wanted || interrupt::stopped() {
            return Ok(());
        }
        let mut outcome = settled::outcome(&rows)?;
        let blobs = settled::blob_bytes(run.directory)?;
        if forms::has_blobs(run.engine) && blobs == 0 {
            return Err(Failure::new("it wrote no blob file"));
        }
        outcome.put("blob_sz", blobs as f64, "B");
        run.keep(run.chain.steps.len() - 1, outcome)
    }

    fn finish(&self, request: &Request, record: &mut Record) {
        record.sentences.extend(cache_sentence(request));
        gates::tell(record);
    }
}

/// The sizes and codecs that are asked for.
fn cells(request: &Request) -> Result<Vec<BlobCell>> {
    let least = request.count("min_blob")?;
    let mut out = Vec::new();
    for (setting, codec) in [("plain", "none"), ("zstd", "zstd")] {
        if request.words(setting).is_empty() {
            continue;
        }
        for size in request.counts(setting)? {
            if size < least.max(1) {
                return Err(Failure::new(format!(
                    "--{setting}={size}: values below --min_blob={least} stay in the tables"
                )));
            }
            out.push(BlobCell { size, codec });
        }
    }
    Ok(out)
}

/// The reads that are asked for.
fn chosen(request: &Request) -> Result<Vec<BenchmarkPart>> {
    let wanted = request.words("reads").into_iter().map(|word| {
        let known = READS.iter().find(|(benchmark, _, _)| *benchmark == word);
        let (benchmark, name, help) = known.ok_or_else(|| {
            let names = READS.map(|(benchmark, _, _)| benchmark).join(", ");
            Failure::new(format!("--reads={word}: there are {names}"))
        })?;
        Ok(rate(benchmark, name, help))
    });
    wanted.collect()
}

/// The step that overwrites, and what it asks for beside the rate.
fn overwrite(cell: BlobCell) -> Step {
    let ask = |figure: &str, what: &str, aim| Ask {
        figure: figure.into(),
        what: what.into(),
        aim,
    };
    Step {
        name: format!("{} overwrite", cell.name()),
        help: "overwrite at random, from a settled tree to a settled tree".into(),
        figure: "ops_sec".into(),
        aim: Aim::More,
        counts: true,
        asks: vec![
            ask(settled::RATE, "rate with debts paid", Aim::More),
            ask(settled::WRITTEN, "bytes to the device", Aim::Less),
            ask(settled::CPU, "processor time with debts paid", Aim::Less),
            ask(settled::SPACE, "space at the end", Aim::Less),
        ],
        ..Step::default()
    }
}

fn stages(request: &Request, cell: BlobCell) -> Result<Vec<Stage>> {
    let positive = |name: &str| match request.count(name)? {
        0 => Err(Failure::new(format!("--{name}=0: a number from 1 on"))),
        count => Ok(count),
    };
    let threads = positive("threads")?;
    let num = ((positive("mb")? << 20) / cell.size).max(100);
    let common = [
        flag("num", num),
        flag("value_size", cell.size),
        flag("compression_type", cell.codec),
        flag("blob_compression_type", cell.codec),
        flag("min_blob_size", request.count("min_blob")?),
        flag("enable_blob_garbage_collection", true),
        flag("cache_size", cache_mb(request)? << 20),
    ];
    let make = |parts, more: &[String]| on_tree(parts, &[&common[..], more].concat());
    let settle = |first| {
        vec![
            prepare(first),
            prepare("flush"),
            prepare("waitforcompaction"),
        ]
    };
    let writes = (num * positive("rounds")? / threads).max(1);
    let mut reads = vec![prepare("readtocache")];
    reads.extend(chosen(request)?);
    Ok(vec![
        make(
            settle("filluniquerandom"),
            &["--disable_wal=true".to_string()],
        ),
        make(
            settle(settled::BENCHMARK),
            &[flag("threads", threads), flag("writes", writes)],
        ),
        make(
            reads,
            &[
                flag("threads", threads),
                flag("duration", request.count("duration")?),
                flag("reads", (num / threads).max(BATCH)),
                flag("repeat_walks", true),
                flag("seek_nexts", 10),
                flag("batch_size", BATCH),
                flag("multiread_batched", true),
            ],
        ),
    ])
}

/// Megabytes of the block cache.
fn cache_mb(request: &Request) -> Result<u64> {
    match request.text("cache_mb") {
        "auto" => Ok(((memory_bytes() >> 20) / 4).clamp(8, MOST_CACHE_MB)),
        _ => request.count("cache_mb"),
    }
}

/// The size of the block cache, in a sentence.
fn cache_sentence(request: &Request) -> Option<String> {
    let mb = cache_mb(request).ok()?;
    let why = match request.text("cache_mb") {
        "auto" => format!(", a quarter of the machine's memory and {MOST_CACHE_MB} MB at most"),
        _ => String::new(),
    };
    let values = request.count("mb").ok()?;
    Some(format!(
        "The block cache of every engine has {mb} MB{why}; there are {values} MB of values in each \
         cell."
    ))
}

/// The flag of a blob cache, where one is asked for.
fn blob_cache(request: &Request) -> Result<Option<String>> {
    let mb = request.count("blob_cache_mb")?;
    Ok((mb > 0).then(|| flag("options", format!("blob_cache={}", mb << 20))))
}

fn blob_cache_note(request: &Request) -> Result<String> {
    Ok(match request.count("blob_cache_mb")? {
        0 => "values of blob files have no cache but that of the system".into(),
        mb => format!("values of blob files have a cache of {mb} MB"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(given: &[(&str, &str)]) -> Request {
        Request::of("blob", &SETTINGS, false, &["esker"], given)
    }

    #[test]
    fn each_cell_has_the_reads_and_the_overwriting() {
        let plan = BLOB.plan(&request(&[])).expect("a plan");
        assert_eq!(plan.chains.len(), 6);
        let names: Vec<String> = plan.steps().into_iter().map(|step| step.name).collect();
        assert_eq!(names.len(), 6 * 5);
        for wanted in [
            "512 B overwrite",
            "16384 B zstd seek + 10",
            "1024 B readseq",
        ] {
            assert!(names.iter().any(|name| name == wanted), "{names:?}");
        }
        let some = request(&[("reads", "readrandom"), ("plain", ""), ("zstd", "4096")]);
        let steps = BLOB.plan(&some).expect("a plan").steps();
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["4096 B zstd readrandom", "4096 B zstd overwrite"]);
    }

    #[test]
    fn engines_overwrite_the_same_number_of_keys_on_a_settled_tree() {
        let given = request(&[("mb", "8"), ("rounds", "3"), ("cache_mb", "7")]);
        let cell = BlobCell {
            size: 4096,
            codec: "zstd",
        };
        let all = stages(&given, cell).expect("stages");
        let benchmarks = |stage: &Stage| -> Vec<&str> {
            stage.parts.iter().map(|part| part.benchmark).collect()
        };
        for (stage, first) in all.iter().zip(["filluniquerandom", "overwrite"]) {
            assert_eq!(benchmarks(stage), [first, "flush", "waitforcompaction"]);
        }
        assert_eq!(benchmarks(&all[2])[0], "readtocache");
        let has = |stage: &Stage, flag: &str| stage.flags.iter().any(|own| own == flag);
        assert!(has(&all[1], "--writes=3072") && has(&all[1], "--threads=2"));
        for stage in &all {
            assert!(has(stage, "--num=2048") && has(stage, "--cache_size=7340032"));
            assert!(has(stage, "--blob_compression_type=zstd"));
        }
        assert!(cache_sentence(&given).is_some_and(|said| said.contains("has 7 MB; ")));
        let own = request(&[("blob_cache_mb", "2")]);
        let expected = Some("--options=blob_cache=2097152".to_string());
        assert_eq!(
            (blob_cache(&given), blob_cache(&own)),
            (Ok(None), Ok(expected))
        );
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        for (given, expected) in [
            (("plain", "128"), "--min_blob=256 stay in the tables"),
            (
                ("reads", "readrandom,scan"),
                "--reads=scan: there are readrandom",
            ),
            (("rounds", "0"), "--rounds=0: a number from 1 on"),
            (("cache_mb", "much"), "--cache_mb=much"),
            (("zstd", "1024,x"), "--zstd=1024,x"),
        ] {
            let said = BLOB
                .plan(&request(&[given]))
                .expect_err("is refused")
                .to_string();
            assert!(said.contains(expected), "{said}");
        }
        let none = request(&[("plain", ""), ("zstd", "")]);
        assert!(BLOB.plan(&none).is_err(), "no cell");
    }
}
