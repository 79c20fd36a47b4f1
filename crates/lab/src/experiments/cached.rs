//! `cached`: reads of a database that is in the block cache as a whole, by number of threads and
//! size of values.
//!
//! Every stage first reads all entries once, so that no timed step fills the cache. Engines of
//! other kinds (`lmdb`, `fjall`) run the same benchmarks where they are built in. Instructions and
//! misses of an operation are counted on one thread, where valgrind is installed.

use crate::experiment::plan::{Chain, EngineSpec, Plan, Request, Setting};
use crate::experiment::record::{Engine, Record};
use crate::experiment::{Experiment, Run};
use crate::{Failure, Result};

use super::engine;
use super::instructions::{self, CountedBenchmark, CountingPlan, count_all, not_counted};
use super::recipe::{self, BenchmarkPart, Stage, on_tree, prepare, rate};
use super::settings::setting;

/// The experiment.
pub(super) static CACHED: Cached = Cached;

/// See the module.
pub(super) struct Cached;

/// Bytes of a key.
const KEY: u64 = 20;

const SETTINGS: [Setting; 7] = [
    setting("num", "100000", "3000000", "keys"),
    setting("duration", "2", "30", "seconds of each timed step"),
    setting(
        "threads",
        "1,2",
        "1,2,8,40",
        "numbers of threads, with commas between",
    ),
    setting(
        "values",
        "100,400",
        "100,400",
        "bytes of values, with commas between",
    ),
    setting(
        "shape",
        "levels",
        "levels",
        "levels: level 0 and levels, as compactions leave them; one: one sorted run",
    ),
    setting(
        "rate",
        "2",
        "2",
        "megabytes a second of the writer beside readers",
    ),
    setting(
        "instructions",
        "5000",
        "10000",
        "operations to count instructions and misses of; 0 for none",
    ),
];

const COUNTED: [CountedBenchmark; 5] = [
    CountedBenchmark {
        name: "readrandom",
        benchmark: "readrandom",
        before: &["fillseq", "compactall"],
        limit: "reads",
        flags: &[],
    },
    CountedBenchmark {
        name: "readseq",
        benchmark: "readseq",
        before: &["fillseq", "compactall", "readtocache"],
        limit: "reads",
        flags: &[],
    },
    CountedBenchmark {
        name: "readreverse",
        benchmark: "readreverse",
        before: &["fillseq", "compactall", "readtocache"],
        limit: "reads",
        flags: &[],
    },
    CountedBenchmark {
        name: "fwdrange",
        benchmark: "seekrandom",
        before: &["fillseq", "compactall"],
        limit: "reads",
        flags: &[],
    },
    CountedBenchmark {
        name: "revrange",
        benchmark: "seekrandom",
        before: &["fillseq", "compactall"],
        limit: "reads",
        flags: &["--reverse_iterator=true"],
    },
];

impl Experiment for Cached {
    fn name(&self) -> &'static str {
        "cached"
    }

    fn title(&self) -> &'static str {
        "Cached reads"
    }

    fn help(&self) -> &'static str {
        "reads from a warm cache at 1, 2, 8 and 40 threads; also on lmdb and fjall"
    }

    fn about(&self) -> &'static str {
        "Keys of 20 bytes are loaded in key order, each is overwritten once on average at random, \
         and compactions are waited for (or all is compacted into one run). The block cache is \
         larger than the database and is filled before each group of steps. Then keys are read at \
         random, entries forward and backward, and ranges of ten both ways, by each number of \
         threads; then the same at random beside a paced writer. Each thread of readseq and \
         readreverse walks its part of the number of keys, again and again. LMDB runs with \
         MDB_WRITEMAP and MDB_NOSYNC."
    }

    fn settings(&self) -> &'static [Setting] {
        &SETTINGS
    }

    fn supports(&self, engine: &EngineSpec) -> Result<()> {
        engine::supports_peer(engine)
    }

    fn plan(&self, request: &Request) -> Result<Plan> {
        let (num, duration) = (request.count("num")?, request.count("duration")?);
        let (threads, values) = (request.counts("threads")?, request.counts("values")?);
        let mut chains = Vec::new();
        for value in &values {
            let stages = stages(request, *value)?;
            recipe::check(request, &stages)?;
            let name = format!("{value} B");
            let mut chain: Chain = recipe::chain(&name, &stages);
            for counted in counted(request)? {
                let mut step = counted.step();
                step.name = format!("{name} {}", step.name);
                chain.steps.push(step);
            }
            chains.push(chain);
        }
        let steps = (values.len() * threads.len() * 8) as u64;
        let largest = values.iter().max().copied().unwrap_or(0) + KEY;
        Ok(Plan {
            chains,
            seconds: steps * (duration + num / 400_000) + values.len() as u64 * num / 50_000,
            bytes: num * largest * 3,
        })
    }

    fn describe(&self, _request: &Request, engine: &EngineSpec) -> Result<Engine> {
        engine::describe(engine)
    }

    fn run(&self, request: &Request, run: &mut Run<'_>) -> Result<()> {
        let values = request.counts("values")?;
        let mut named = values.into_iter();
        let value = named.find(|value| format!("{value} B") == run.chain.name);
        let value = value.ok_or_else(|| Failure::new("no such chain"))?;
        let stages = stages(request, value)?;
        let timed = recipe::chain("", &stages).steps.len();
        recipe::run(request, run, &stages)?;
        let how = CountingPlan {
            flags: vec![
                format!("--value_size={value}"),
                "--disable_wal=true".into(),
                cache(request, value)?,
            ],
            misses: true,
        };
        count_all(request, run, timed, counted(request)?, &how)
    }

    fn finish(&self, request: &Request, record: &mut Record) {
        record.sentences.push(match request.text("shape") {
            "one" => "The tree is one sorted run.".into(),
            _ => "The tree is as compactions leave it after the overwrites.".to_string(),
        });
        record.flags.extend(not_counted(request));
    }
}

/// The benchmarks whose instructions are counted; none without valgrind.
fn counted(request: &Request) -> Result<impl Iterator<Item = &'static CountedBenchmark>> {
    let is_on = instructions::are_counted(request)?;
    Ok(COUNTED.iter().filter(move |_| is_on))
}

/// A cache that holds everything twice.
fn cache(request: &Request, value: u64) -> Result<String> {
    let bytes = request.count("num")? * (KEY + value) * 4;
    Ok(format!("--cache_size={}", bytes.max(64 << 20)))
}

fn stages(request: &Request, value: u64) -> Result<Vec<Stage>> {
    let num = request.count("num")?;
    let settled = match request.text("shape") {
        "levels" => "waitforcompaction",
        "one" => "compactall",
        other => return Err(Failure::new(format!("--shape={other}: levels or one"))),
    };
    let common = [
        format!("--num={num}"),
        format!("--value_size={value}"),
        cache(request, value)?,
        "--compression_type=none".to_string(),
    ];
    let make =
        |parts: Vec<BenchmarkPart>, more: &[String]| on_tree(parts, &[&common[..], more].concat());
    let duration = format!("--duration={}", request.count("duration")?);
    let rate_limit = format!(
        "--background_write_rate_limit={}",
        request.count("rate")? << 20
    );
    let nexts = "--seek_nexts=10".to_string();
    let mut stages = vec![make(
        vec![
            prepare("fillseq"),
            prepare("overwrite"),
            prepare("waitforcompaction"),
            prepare(settled),
        ],
        &["--disable_wal=true".to_string()],
    )];
    let threads = request.counts("threads")?;
    for t in &threads {
        let own = format!("--threads={t}");
        let timed = [own.clone(), duration.clone(), nexts.clone()];
        let step =
            |benchmark, what: &str, help: &str| rate(benchmark, &format!("{t}t {what}"), help);
        stages.push(make(
            vec![
                prepare("readtocache"),
                step("readrandom", "readrandom", "read a key"),
                step("seekrandom", "fwdrange", "seek, then read ten entries"),
            ],
            &timed,
        ));
        let back = "--reverse_iterator=true".to_string();
        stages.push(make(
            vec![
                prepare("readtocache"),
                step("seekrandom", "revrange", "the same backward"),
            ],
            &[&timed[..], &[back]].concat(),
        ));
        stages.push(make(
            vec![
                prepare("readtocache"),
                step("readseq", "readseq", "iterate forward"),
                step("readreverse", "readreverse", "iterate backward"),
            ],
            &[
                own,
                format!("--reads={}", (num / t.max(&1)).max(1)),
                duration.clone(),
                "--repeat_walks=true".to_string(),
            ],
        ));
    }
    for t in &threads {
        let beside = |benchmark: &'static str| {
            rate(
                benchmark,
                &format!("{t}t {benchmark}"),
                "beside a paced writer",
            )
        };
        stages.push(make(
            vec![
                prepare("readtocache"),
                beside("readwhilewriting"),
                beside("fwdrangewhilewriting"),
                beside("revrangewhilewriting"),
            ],
            &[
                format!("--threads={t}"),
                duration.clone(),
                nexts.clone(),
                rate_limit.clone(),
            ],
        ));
    }
    Ok(stages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(settings: &[(&str, &str)]) -> Request {
        Request::of("cached", &SETTINGS, false, &["esker"], settings)
    }

    #[test]
    fn each_number_of_threads_has_eight_steps_and_each_size_of_values_a_chain() {
        let plan = CACHED
            .plan(&request(&[("instructions", "0")]))
            .expect("a plan");
        assert_eq!(plan.chains.len(), 2);
        assert_eq!(plan.steps().len(), 2 * 4 * 8);
        let names: Vec<String> = plan.steps().into_iter().map(|step| step.name).collect();
        for wanted in ["100 B 1t readrandom", "400 B 40t revrangewhilewriting"] {
            assert!(names.iter().any(|name| name == wanted), "{names:?}");
        }
    }

    #[test]
    fn every_timed_stage_fills_the_cache_first_and_the_shape_is_as_asked() {
        let all = stages(&request(&[("shape", "one")]), 100).expect("stages");
        assert_eq!(all[0].parts[3].benchmark, "compactall");
        for stage in &all[1..] {
            assert_eq!(stage.parts[0], prepare("readtocache"));
            assert!(stage.parts[1..].iter().all(|part| part.step.is_some()));
        }
        let walks = all.iter().filter(|s| s.parts[1].benchmark == "readseq");
        let again = |s: &Stage| s.flags.iter().any(|f| f == "--repeat_walks=true");
        assert!(walks.clone().all(again), "a pass takes less than a step");
        let reads = |s: &Stage| s.flags.iter().any(|f| f == "--reads=75000");
        assert_eq!(walks.filter(|s| reads(s)).count(), 1, "40 threads");
        assert!(stages(&request(&[("shape", "flat")]), 100).is_err());
    }
}
