//! `cache`, `ycsb`, `mixgraph`: one question each about a mixed workload.

use crate::experiment::plan::{Request, Setting};
use crate::experiment::ratio::geometric_mean;
use crate::experiment::record::{Chart, Record, Table};
use crate::page::number;
use crate::{Failure, Result};

use super::directions::{Direction, tell};
use super::recipe::{on_tree, prepare, rate};
use super::recipes::{Chains, Recipe, nothing};
use super::settings::{ENTRY, flag, setting};

/// The least-recently-used cache against the clock.
pub(super) static CACHE: Recipe = Recipe {
    name: "cache",
    title: "LRU and clock, by threads",
    help: "readers beside a writer at 1..N threads: LRU and clock cache, fanout, writer rates",
    about: "Data that fits into the block cache is read at random by a growing number of threads \
            beside a writer of a fixed rate, once with the sharded cache by least recent use and \
            once with the lock-free clock. Every engine has both.",
    settings: &CACHE_SETTINGS,
    chains: cache,
    size: |request| {
        let steps = 2 * request.counts("threads")?.len() * request.counts("rates")?.len();
        let fanouts = request.counts("fanout")?.len();
        let duration = request.count("duration")? + 1;
        let num = request.count("num")?;
        Ok((
            fanouts as u64 * (steps as u64 * duration + num / 200_000),
            num * ENTRY * 2,
        ))
    },
    sum: None,
    finish: cache_tables,
};

const CACHE_SETTINGS: [Setting; 6] = [
    setting("num", "400000", "20000000", "keys"),
    setting("duration", "3", "120", "seconds of each step"),
    setting(
        "threads",
        "1,2",
        "1,2,4,8,16",
        "numbers of readers, with commas between",
    ),
    setting(
        "rates",
        "2,8",
        "2,8,32",
        "megabytes a second of the writer, with commas between",
    ),
    setting(
        "fanout",
        "8",
        "8,32",
        "growth of levels, with commas between",
    ),
    setting(
        "l0_trigger",
        "4",
        "4",
        "tables of level 0 that make a compaction",
    ),
];

const CACHES: [(&str, &str); 2] = [("lru", "lru_cache"), ("clock", "hyper_clock_cache")];
/// Megabytes of a memtable and of the first level.
const BUFFER_MB: u64 = 16;
const LEVEL_MB: u64 = 64;

fn cache(request: &Request) -> Result<Chains> {
    let trigger = request.count("l0_trigger")?;
    if trigger * BUFFER_MB > LEVEL_MB {
        return Err(Failure::new(format!(
            "--l0_trigger={trigger}: level 0 would hold {} MB before it is compacted, more than \
             the {LEVEL_MB} MB of the level below; {} is the most",
            trigger * BUFFER_MB,
            LEVEL_MB / BUFFER_MB
        )));
    }
    let num = request.count("num")?;
    let mut out = Vec::new();
    for fanout in request.counts("fanout")? {
        let common = vec![
            flag("num", num),
            flag("compression_type", "none"),
            flag("max_bytes_for_level_multiplier", fanout),
            flag("level0_file_num_compaction_trigger", trigger),
            flag("cache_size", (num * ENTRY * 2).max(64 << 20)),
        ];
        let load = vec![prepare("fillseq"), prepare("waitforcompaction")];
        let mut stages = vec![on_tree(load, &common)];
        for rate_mb in request.counts("rates")? {
            for threads in request.counts("threads")? {
                for (short, policy) in CACHES {
                    let mut flags = common.clone();
                    flags.extend([
                        flag("duration", request.count("duration")?),
                        flag("threads", threads),
                        flag("cache_type", policy),
                        flag("background_write_rate_limit", rate_mb << 20),
                    ]);
                    let name = format!("{short} t{threads} w{rate_mb}");
                    let help = format!("{threads} readers beside {rate_mb} MB/s, {policy}");
                    stages.push(on_tree(
                        vec![rate("readwhilewriting", &name, &help)],
                        &flags,
                    ));
                }
            }
        }
        out.push((format!("f{fanout}"), stages));
    }
    Ok(out)
}

/// Rates by threads for each fanout and writer rate, and what the clock is worth.
fn cache_tables(request: &Request, record: &mut Record) {
    let (Ok(threads), Ok(rates), Ok(fanouts)) = (
        request.counts("threads"),
        request.counts("rates"),
        request.counts("fanout"),
    ) else {
        return;
    };
    let engines: Vec<usize> = record.present().map(|(at, _)| at).collect();
    let value = |engine: usize, name: &str| {
        let step = record.steps.iter().position(|step| step.name == name)?;
        record.median(step, engine, "ops_sec")
    };
    let mut tables = Vec::new();
    for fanout in &fanouts {
        for rate_mb in &rates {
            let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
            for engine in &engines {
                for (short, _) in CACHES {
                    let points = threads.iter().filter_map(|t| {
                        let name = format!("f{fanout} {short} t{t} w{rate_mb}");
                        Some((*t as f64, value(*engine, &name)?))
                    });
                    let name = format!("{}, {short}", record.engines[*engine].name);
                    lines.push((name, points.collect()));
                }
            }
            let title = format!("Readers by threads, fanout {fanout}, writer {rate_mb} MB/s");
            tables.push(by_x(&title, "threads", lines));
        }
    }
    let found = cache_directions(&engines, &threads, &rates, &fanouts, &value);
    record.tables.extend(tables);
    tell(record, &found);
}

/// Compares with the published results about the clock, threads and writers; `value` gives the rate
/// of a step.
fn cache_directions(
    engines: &[usize],
    threads: &[u64],
    rates: &[u64],
    fanouts: &[u64],
    value: &impl Fn(usize, &str) -> Option<f64>,
) -> Vec<Direction> {
    let most = |numbers: &[u64]| numbers.iter().copied().max().unwrap_or(1);
    let least = |numbers: &[u64]| numbers.iter().copied().min().unwrap_or(1);
    let (few, many) = (least(threads), most(threads));
    let (slow, fast) = (least(rates), most(rates));
    let mut out = Vec::new();
    for engine in engines {
        let mean = |short: &str, t: u64, r: u64| {
            let rates = fanouts
                .iter()
                .filter_map(|f| value(*engine, &format!("f{f} {short} t{t} w{r}")));
            geometric_mean(rates.filter(|rate| *rate > 0.0))
        };
        let mut is = |place: String, what, above, below| {
            out.extend(Direction::of(*engine, &place, what, above, below));
        };
        for r in rates {
            is(
                format!("{many} threads, writer of {r} MB/s"),
                "the clock is faster than LRU with many threads",
                mean("clock", many, *r),
                mean("lru", many, *r),
            );
        }
        if few < many {
            is(
                format!("clock, {many} threads against {few}"),
                "more threads read more",
                mean("clock", many, slow),
                mean("clock", few, slow),
            );
        }
        if slow < fast {
            is(
                format!("clock, {slow} against {fast} MB/s"),
                "a slower writer leaves more to readers",
                mean("clock", many, slow),
                mean("clock", many, fast),
            );
        }
    }
    out
}

/// A table with its chart: a row for each x, a column for each line.
fn by_x(title: &str, x: &str, lines: Vec<(String, Vec<(f64, f64)>)>) -> Table {
    let mut xs: Vec<f64> = lines
        .iter()
        .flat_map(|(_, points)| points)
        .map(|p| p.0)
        .collect();
    xs.sort_unstable_by(f64::total_cmp);
    xs.dedup();
    let row = |x: &f64| {
        let mut cells = vec![number(*x).trim_end_matches(".00").to_string()];
        cells.extend(lines.iter().map(|(_, points)| {
            let point = points.iter().find(|point| point.0 == *x);
            point.map_or("-".into(), |point| number(point.1))
        }));
        cells
    };
    let mut columns = vec![x.to_string()];
    columns.extend(lines.iter().map(|(name, _)| name.clone()));
    Table {
        title: title.to_string(),
        about: "Operations a second, medians of the runs.".into(),
        columns,
        rows: xs.iter().map(row).collect(),
        chart: Some(Chart {
            x: x.to_string(),
            y: "ops/s".into(),
            lines,
            log_x: false,
        }),
    }
}

/// The core workloads of the Yahoo! Cloud Serving Benchmark.
pub(super) static YCSB: Recipe = Recipe {
    name: "ycsb",
    title: "YCSB A to F",
    help: "the six core workloads of YCSB: at full speed, and at a fixed rate",
    about: "Records are loaded in random order; then the six core workloads run, with Zipfian keys, \
            first at full speed in a closed loop and then at a fixed rate, where latencies count \
            from the intended start: A half reads and half updates, B 5 % updates, C reads, D \
            reads of the latest with 5 % inserts, E short scans with 5 % inserts, F half reads and \
            half reads with an update.",
    settings: &YCSB_SETTINGS,
    chains: ycsb,
    size: |request| {
        let (num, duration) = (request.count("num")?, request.count("duration")?);
        Ok((12 * (duration + 1) + num / 100_000, num * ENTRY * 3))
    },
    sum: None,
    finish: nothing,
};

const YCSB_SETTINGS: [Setting; 4] = [
    setting("num", "500000", "20000000", "records"),
    setting("duration", "3", "300", "seconds of each step"),
    setting("threads", "1", "8", "threads"),
    setting(
        "rate",
        "5000",
        "20000",
        "operations a second of the steps at a fixed rate",
    ),
];

const WORKLOADS: [(&str, &str, &str); 6] = [
    ("ycsba", "A", "half reads, half updates"),
    ("ycsbb", "B", "95 % reads, 5 % updates"),
    ("ycsbc", "C", "reads"),
    ("ycsbd", "D", "reads of the latest, 5 % inserts"),
    ("ycsbe", "E", "short scans, 5 % inserts"),
    ("ycsbf", "F", "half reads, half reads with an update"),
];

fn ycsb(request: &Request) -> Result<Chains> {
    let common = vec![
        flag("num", request.count("num")?),
        flag("compression_type", "none"),
        flag(
            "cache_size",
            (request.count("num")? * ENTRY / 3).max(32 << 20),
        ),
    ];
    let with = |more: &[String]| [common.clone(), more.to_vec()].concat();
    let timed = [
        flag("duration", request.count("duration")?),
        flag("threads", request.count("threads")?),
        flag("ops_between_duration_checks", 100),
    ];
    let load = vec![
        rate("ycsbload", "load", "every record once"),
        prepare("waitforcompaction"),
    ];
    let mut full = Vec::new();
    let mut paced = Vec::new();
    for (benchmark, letter, help) in WORKLOADS {
        full.push(rate(benchmark, letter, help));
        let mut part = rate(benchmark, &format!("{letter} paced"), help);
        if let Some(step) = &mut part.step {
            // All engines have the same rate; the latencies are compared.
            (step.figure, step.aim) = ("p99_intended".into(), crate::experiment::record::Aim::Less);
        }
        paced.push(part);
    }
    let fixed = [
        timed.to_vec(),
        vec![flag("benchmark_read_rate_limit", request.count("rate")?)],
    ];
    Ok(vec![(
        String::new(),
        vec![
            on_tree(load, &common),
            on_tree(full, &with(&timed)),
            on_tree(paced, &with(&fixed.concat())),
        ],
    )])
}

/// The social graph by fitted distributions.
pub(super) static MIXGRAPH: Recipe = Recipe {
    name: "mixgraph",
    title: "The social graph, by fitted distributions",
    help: "reads, writes and scans with the published distributions of keys and sizes",
    about: "The workload of a social graph as it was published: the part of reads, writes and \
            scans, how often ranges of keys and keys within them are met, and the sizes of values \
            and scans follow fitted distributions.",
    settings: &MIXGRAPH_SETTINGS,
    chains: mixgraph,
    size: |request| {
        Ok((
            request.count("num")? / 20_000 + 20,
            request.count("num")? * 500,
        ))
    },
    sum: None,
    finish: nothing,
};

const MIXGRAPH_SETTINGS: [Setting; 3] = [
    setting("num", "500000", "50000000", "keys"),
    setting("accesses", "300000", "42000000", "operations of each step"),
    setting("threads", "1", "4", "threads"),
];

const GRAPH: [&str; 13] = [
    "--key_size=48",
    "--value_size=43",
    "--key_dist_a=0.002312",
    "--key_dist_b=0.3467",
    "--keyrange_dist_a=14.18",
    "--keyrange_dist_b=-2.917",
    "--keyrange_dist_c=0.0164",
    "--keyrange_dist_d=-0.08082",
    "--keyrange_num=30",
    "--value_k=0.2615",
    "--value_sigma=25.45",
    "--iter_k=2.517",
    "--iter_sigma=14.236",
];

fn mixgraph(request: &Request) -> Result<Chains> {
    let mut common = vec![
        flag("num", request.count("num")?),
        flag("compression_type", "none"),
        flag("cache_size", 256 << 20),
    ];
    common.extend(GRAPH.map(String::from));
    let ratios = |get, put, seek| {
        let ratios = [
            flag("mix_get_ratio", get),
            flag("mix_put_ratio", put),
            flag("mix_seek_ratio", seek),
            flag("mix_accesses", request.text("accesses")),
            flag("reads", request.text("accesses")),
            flag("threads", request.text("threads")),
        ];
        [common.clone(), ratios.to_vec()].concat()
    };
    let step = |name: &str, help: &str| vec![rate("mixgraph", name, help)];
    let load = vec![prepare("filluniquerandom"), prepare("waitforcompaction")];
    Ok(vec![(
        String::new(),
        vec![
            on_tree(load, &common),
            on_tree(step("reads", "reads alone"), &ratios(1.0, 0.0, 0.0)),
            on_tree(
                step("published mix", "83 % reads, 14 % writes, 3 % scans"),
                &ratios(0.83, 0.14, 0.03),
            ),
            on_tree(
                step("writes", "half reads, half writes"),
                &ratios(0.5, 0.5, 0.0),
            ),
        ],
    )])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(settings: &[Setting]) -> Request {
        Request::of("x", settings, true, &[], &[])
    }

    #[test]
    fn a_level_0_that_is_larger_than_the_level_below_is_refused() {
        let mut wrong = request(&CACHE_SETTINGS);
        assert!(cache(&wrong).is_ok());
        wrong.settings.retain(|(name, _)| name != "l0_trigger");
        wrong.settings.push(("l0_trigger".into(), "5".into()));
        let said = cache(&wrong).expect_err("80 MB above 64").to_string();
        assert!(
            said.contains("80 MB") && said.contains("4 is the most"),
            "{said}"
        );
    }

    #[test]
    fn the_clock_is_judged_at_the_most_threads() {
        let rate = |name: &str, rate| (format!("f8 {name}"), rate);
        let all = [
            rate("lru t1 w2", 100.0),
            rate("clock t1 w2", 100.0),
            rate("lru t2 w2", 100.0),
            rate("clock t2 w2", 150.0),
        ];
        let mut record = Record::of_rates(&all);
        cache_tables(&request(&CACHE_SETTINGS), &mut record);
        let said = &record.sentences[0];
        assert!(
            said.contains("confirms 2 of 2 published directions"),
            "{said}"
        );
        let rows = &record.tables.last().expect("the directions").rows;
        let ratios: Vec<&str> = rows.iter().map(|row| row[3].as_str()).collect();
        assert_eq!(ratios, ["1.50", "1.50"]);
        let table = &record.tables[0];
        assert_eq!(table.rows[1], ["2", "100", "150"]);
        assert_eq!(table.chart.as_ref().map(|chart| chart.lines.len()), Some(2));
    }
}
