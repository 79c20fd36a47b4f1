//! `universal` and `shape`: what the form of a tree costs.

use crate::experiment::plan::{Request, Setting};
use crate::experiment::record::{Aim, Outcome, Record, Step, Table};
use crate::report::Row;
use crate::universal::{Config, config_flags, summary};
use crate::{Failure, Result};

use super::directions::{Direction, tell};
use super::recipe::{Stage, prepare, rate, stage};
use super::recipes::{Chains, Recipe};
use super::settings::{TREE, setting};

/// Ten configurations of universal compaction.
pub(super) static UNIVERSAL: Recipe = Recipe {
    name: "universal",
    title: "Ten configurations of universal compaction",
    help: "ten configurations of universal compaction: rate, stalls, write amplification, space",
    about: "Load in key order, overwrite some, wait, overwrite for a time, wait. A configuration \
            is named by compression_size_percent (m1 for -1) and its codecs: one for all data, or \
            three letters for flushes, newer runs and the oldest run (n none, l LZ4, z zstd). The \
            rate and the stalls are those of the last overwriting; bytes and seconds of \
            compactions run from there to the end.",
    settings: &UNIVERSAL_SETTINGS,
    chains: universal,
    size: |request| {
        let (num, duration) = (request.count("num")?, request.count("duration")?);
        let configs = chosen(request)?.len() as u64;
        Ok((configs * (2 * duration + num / 200_000), num * 420 * 4))
    },
    sum: Some((whole, |rows| universal_sum(rows))),
    finish: universal_table,
};

const UNIVERSAL_SETTINGS: [Setting; 3] = [
    setting("num", "300000", "10000000", "keys"),
    setting("duration", "3", "300", "seconds of each overwriting"),
    setting(
        "configs",
        "",
        "",
        "names of configurations with commas between; all unless given",
    ),
];

/// The columns of the published table: figure, head, unit.
const COLUMNS: [(&str, &str, &str); 7] = [
    ("ops_sec", "ips", "ops/s"),
    ("stall%", "stall %", "%"),
    ("w_amp", "w_amp", ""),
    ("c_wsecs", "c_wsecs", "s"),
    ("c_csecs", "c_csecs", "s"),
    ("size_gb", "size, GB", "GB"),
    ("peak_gb", "most, GB", "GB"),
];

fn whole() -> Step {
    Step {
        name: "whole".into(),
        help: "the last overwriting, and what follows from it".into(),
        figure: "ops_sec".into(),
        aim: Aim::More,
        counts: true,
        ..Step::default()
    }
}

fn chosen(request: &Request) -> Result<Vec<&'static Config>> {
    crate::universal::chosen(request.text("configs"))
}

fn universal(request: &Request) -> Result<Chains> {
    let flags = [
        format!("--num={}", request.count("num")?),
        format!("--duration={}", request.count("duration")?),
    ];
    let chain = |config: &&'static Config| {
        let mut all: Vec<String> = TREE.iter().map(|flag| (*flag).to_string()).collect();
        all.extend_from_slice(&flags);
        all.extend(["--compaction_style=1", "--statistics"].map(String::from));
        all.extend(config_flags(config));
        let shown = |benchmark, name: &str, help: &str| {
            let mut part = rate(benchmark, name, help);
            if let Some(step) = &mut part.step {
                step.counts = false;
            }
            part
        };
        let parts = vec![
            shown("fillseq", "load", "load in key order"),
            prepare("waitforcompaction"),
            shown("overwrite", "overwrite once", "overwrite for a time"),
            prepare("waitforcompaction"),
            shown("overwrite", "overwrite", "overwrite again"),
            prepare("waitforcompaction"),
        ];
        (config.0.to_string(), vec![Stage { parts, flags: all }])
    };
    Ok(chosen(request)?.iter().map(chain).collect())
}

fn universal_sum(rows: &[Row]) -> Outcome {
    let last = rows.iter().rev().find(|row| row.test == "overwrite");
    let mut out = last.map_or_else(Outcome::default, super::outcome::outcome);
    for ((name, _, unit), value) in COLUMNS.iter().zip(summary(rows)) {
        if let Some(value) = value {
            out.put(name, value, unit);
        }
    }
    out
}

/// The published table, and whether the published directions are seen.
fn universal_table(_: &Request, record: &mut Record) {
    let mut head = vec!["configuration".to_string(), "engine".to_string()];
    head.extend(COLUMNS.iter().map(|(_, head, _)| (*head).to_string()));
    let mut rows = Vec::new();
    let is_whole = |step: &&(usize, &Step)| step.1.name.ends_with(" whole");
    for (at, step) in record.steps.iter().enumerate().filter(|s| is_whole(&s)) {
        for (engine, info) in record.present() {
            if record.runs(at, engine).next().is_none() {
                continue;
            }
            let mut row = vec![step.chain.clone(), info.name.clone()];
            for (figure, _, _) in COLUMNS {
                let value = record.median(at, engine, figure);
                row.push(value.map_or("-".into(), |value| format!("{value:.2}")));
            }
            rows.push(row);
        }
    }
    record.tables.push(Table {
        title: "Configurations".into(),
        about: "Medians of the runs.".into(),
        columns: head,
        rows,
        chart: None,
    });
    let found = universal_directions(record);
    tell(record, &found);
}

/// Figures of which a configuration has more than another one: what, figure, the one, the other.
const UNIVERSAL_DIRECTIONS: [(&str, &str, &str, &str); 6] = [
    (
        "none takes more space than LZ4",
        "size_gb",
        "m1.none",
        "m1.lz4",
    ),
    (
        "LZ4 takes more space than zstd",
        "size_gb",
        "m1.lz4",
        "m1.zstd",
    ),
    (
        "zstd takes more processor time of compactions than LZ4",
        "c_csecs",
        "m1.zstd",
        "m1.lz4",
    ),
    (
        "zstd for all runs takes more processor time than zstd for the oldest run alone",
        "c_csecs",
        "m1.zstd",
        "90.nnz",
    ),
    (
        "newer runs without compression take more space than with LZ4",
        "peak_gb",
        "90.nnz",
        "90.nlz",
    ),
    (
        "overwriting is faster without compression than with zstd",
        "ops_sec",
        "m1.none",
        "m1.zstd",
    ),
];

fn universal_directions(record: &Record) -> Vec<Direction> {
    let mut out = Vec::new();
    for (engine, _) in record.present() {
        let of = |config: &str, figure: &str| {
            let name = format!("{config} whole");
            let step = record.steps.iter().position(|step| step.name == name)?;
            record.median(step, engine, figure)
        };
        for (what, figure, more, less) in UNIVERSAL_DIRECTIONS {
            let place = format!("{more} and {less}");
            out.extend(Direction::of(
                engine,
                &place,
                what,
                of(more, figure),
                of(less, figure),
            ));
        }
    }
    out
}

/// Six shapes of a tree, read by range and by key.
pub(super) static SHAPE: Recipe = Recipe {
    name: "shape",
    title: "The shape of a tree and its reads",
    help: "six shapes of a tree x ranges and points, with Bloom filters and without",
    about: "A tree is filled in random order until compactions end. Without automatic compactions \
            a tenth is overwritten, and the tree is read after each command that changes its \
            shape: with memtable and level 0 (pre_flush), after a flush (post_flush), after level 0 \
            was merged down (compact_l0), after the first level below it was (compact_l1), after \
            all was merged (compact_all), and with one more tenth in level 0 above the last level \
            (l0_and_lmax). Each is read by ranges of ten entries and by key.",
    settings: &SHAPE_SETTINGS,
    chains: shape,
    size: |request| {
        let keys = request.counts("keys")?;
        let fanouts = request.counts("fanout")?.len() as u64;
        let most = keys.iter().copied().max().unwrap_or(0);
        let sum: u64 = keys.iter().sum();
        Ok((2 * fanouts * (sum / 25_000 + 10), most * 420 * 3))
    },
    sum: None,
    finish: shape_table,
};

const SHAPE_SETTINGS: [Setting; 4] = [
    setting(
        "keys",
        "200000",
        "1000000,10000000",
        "numbers of keys, with commas between",
    ),
    setting(
        "fanout",
        "8",
        "8,10",
        "growth of levels, with commas between",
    ),
    setting(
        "reads",
        "60000",
        "1000000",
        "reads of each kind on each shape",
    ),
    setting(
        "buffer_mb",
        "2",
        "16",
        "megabytes of a memtable; a level is four times as large",
    ),
];

/// The shapes, and the commands that lead to each from the one before.
const SHAPES: [(&str, &[&str]); 6] = [
    ("pre_flush", &["overwrite"]),
    ("post_flush", &["flush"]),
    ("compact_l0", &["compact0"]),
    ("compact_l1", &["compact1"]),
    ("compact_all", &["compact"]),
    ("l0_and_lmax", &["overwrite", "flush"]),
];

fn shape(request: &Request) -> Result<Chains> {
    let buffer = request.count("buffer_mb")? << 20;
    if buffer == 0 {
        return Err(Failure::new("--buffer_mb is 1 or more"));
    }
    let (reads, mut out) = (request.count("reads")?, Vec::new());
    for num in request.counts("keys")? {
        for fanout in request.counts("fanout")? {
            for (filter, bits) in [("bloom", 10), ("plain", -1)] {
                let flags = vec![
                    format!("--num={num}"),
                    format!("--bloom_bits={bits}"),
                    format!("--max_bytes_for_level_multiplier={fanout}"),
                    format!("--write_buffer_size={buffer}"),
                    format!("--target_file_size_base={buffer}"),
                    format!("--max_bytes_for_level_base={}", 4 * buffer),
                    format!("--cache_size={}", (num * 900).max(64 << 20)),
                    "--seek_nexts=10".into(),
                    "--compression_type=none".into(),
                ];
                let name = format!("{}k.f{fanout}.{filter}", num / 1000);
                out.push((name, shape_stages(num, reads, &flags)));
            }
        }
    }
    Ok(out)
}

fn shape_stages(num: u64, reads: u64, flags: &[String]) -> Vec<Stage> {
    let with = |more: &[String]| {
        let tree = TREE.iter().map(|flag| (*flag).to_string());
        tree.chain(flags.iter().cloned())
            .chain(more.iter().cloned())
            .collect()
    };
    let load = Stage {
        flags: with(&[]),
        ..stage(
            vec![prepare("filluniquerandom"), prepare("waitforcompaction")],
            &[],
        )
    };
    let mut parts = Vec::new();
    for (shape, commands) in SHAPES {
        parts.extend(commands.iter().map(|command| prepare(command)));
        let help = format!("{shape}: a range of ten");
        parts.push(rate("seekrandom", &format!("{shape} range"), &help));
        let help = format!("{shape}: a key");
        parts.push(rate("readrandom", &format!("{shape} point"), &help));
    }
    let limits = [
        format!("--reads={reads}"),
        format!("--writes={}", (num / 10).max(1)),
        "--disable_auto_compactions=true".into(),
        "--level0_slowdown_writes_trigger=1000".into(),
        "--level0_stop_writes_trigger=1000".into(),
        "--max_write_buffer_number=4".into(),
    ];
    let read = Stage {
        flags: with(&limits),
        ..stage(parts, &[])
    };
    vec![load, read]
}

/// Shapes against kinds of reads, and whether the published directions are seen.
fn shape_table(_: &Request, record: &mut Record) {
    let kinds = [("range", "bloom"), ("point", "bloom"), ("point", "plain")];
    let find = |shape: &str, kind: &str, filter: &str, chain: &str| {
        let chain = format!(
            "{}.{filter}",
            chain.rsplit_once('.').map_or(chain, |(c, _)| c)
        );
        let name = format!("{chain} {shape} {kind}");
        record.steps.iter().position(|step| step.name == name)
    };
    let chains: Vec<String> = record.steps.iter().map(|step| step.chain.clone()).collect();
    let mut chains: Vec<&String> = chains
        .iter()
        .filter(|chain| chain.ends_with(".bloom"))
        .collect();
    chains.dedup();
    let (mut tables, mut found) = (Vec::new(), Vec::new());
    for chain in chains {
        let mut rows = Vec::new();
        for (engine, info) in record.present() {
            let value = |shape: &str, kind: (&str, &str)| {
                let step = find(shape, kind.0, kind.1, chain)?;
                record.median(step, engine, "ops_sec")
            };
            for (shape, _) in SHAPES {
                let mut row = vec![shape.to_string(), info.name.clone()];
                row.extend(
                    kinds.map(|kind| value(shape, kind).map_or("-".into(), crate::page::number)),
                );
                rows.push(row);
            }
            let place = chain.trim_end_matches(".bloom");
            found.extend(shape_directions(engine, place, &value));
        }
        tables.push(Table {
            title: format!("Shapes, {}", chain.trim_end_matches(".bloom")),
            about: "Operations a second, medians.".into(),
            columns: [
                "shape",
                "engine",
                "range",
                "point, Bloom",
                "point, no filter",
            ]
            .map(String::from)
            .into(),
            rows,
            chart: None,
        });
    }
    record.tables.extend(tables);
    tell(record, &found);
}

/// The directions of one engine and tree; `value` gives the rate of a kind of reads on a shape.
fn shape_directions(
    engine: usize,
    place: &str,
    value: &impl Fn(&str, (&str, &str)) -> Option<f64>,
) -> Vec<Direction> {
    const RANGE: (&str, &str) = ("range", "bloom");
    const BLOOM: (&str, &str) = ("point", "bloom");
    const PLAIN: (&str, &str) = ("point", "plain");
    let gain = |kind| Some(value("compact_all", kind)? / value("post_flush", kind)?);
    let is = |what, above, below| Direction::of(engine, place, what, above, below);
    let all = [
        is(
            "ranges are faster on one sorted run than on many",
            value("compact_all", RANGE),
            value("post_flush", RANGE),
        ),
        is(
            "ranges are faster without runs of level 0 above the last level",
            value("compact_all", RANGE),
            value("l0_and_lmax", RANGE),
        ),
        is(
            "points without a filter are faster on one sorted run than on many",
            value("compact_all", PLAIN),
            value("post_flush", PLAIN),
        ),
        is(
            "points on many runs are faster with Bloom filters",
            value("post_flush", BLOOM),
            value("post_flush", PLAIN),
        ),
        is(
            "one sorted run is worth more to points without a filter than with one",
            gain(PLAIN),
            gain(BLOOM),
        ),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::record::Engine;

    #[test]
    fn the_sum_of_a_configuration_is_the_last_overwriting() {
        let row = |value| Row::from_json(&value).expect("a row");
        let rows = [
            row(serde_json::json!({"test": "overwrite", "ops_sec": 5.0, "w_amp": 1.0})),
            row(
                serde_json::json!({"test": "overwrite", "ops_sec": 7.0, "w_amp": 2.0,
                                   "bytes": 100, "written_bytes": 300, "seconds": 4.0}),
            ),
            row(
                serde_json::json!({"test": "waitforcompaction", "written_bytes": 100,
                                   "lsm_sz": 1u64 << 30}),
            ),
        ];
        let sum = universal_sum(&rows);
        assert_eq!(
            (sum.figure("ops_sec"), sum.figure("w_amp")),
            (Some(7.0), Some(4.0))
        );
        assert_eq!((sum.figure("size_gb"), sum.seconds), (Some(1.0), 4.0));
    }

    #[test]
    fn a_direction_is_confirmed_or_contradicted() {
        let step = |name: &str| Step {
            name: format!("1k.f8.bloom {name}"),
            chain: "1k.f8.bloom".into(),
            figure: "ops_sec".into(),
            ..Step::default()
        };
        let run = |step: usize, rate: f64| {
            let mut run = Outcome {
                step,
                ..Outcome::default()
            };
            run.put("ops_sec", rate, "ops/s");
            run
        };
        let mut record = Record {
            complete: true,
            pairs: 3,
            engines: vec![Engine::default()],
            steps: vec![step("post_flush range"), step("compact_all range")],
            results: vec![run(0, 100.0), run(1, 300.0)],
            ..Record::default()
        };
        let request = Request::of("shape", &SHAPE_SETTINGS, true, &[], &[]);
        shape_table(&request, &mut record);
        let said = record.sentences[0].clone();
        assert!(
            said.contains("confirms 1 of 1 published directions"),
            "{said}"
        );
        assert_eq!(record.tables[0].rows.len(), 6);
        assert_eq!(record.tables[1].rows[0][3..], ["3.00", "confirmed"]);
        record.results[1] = run(1, 50.0);
        record.sentences.clear();
        shape_table(&request, &mut record);
        let said = &record.sentences[0];
        assert!(
            said.contains("contradicted is that ranges are faster on one"),
            "{said}"
        );
    }
}
