//! A made-up record, for tests of the page and for the check in a browser.

use crate::experiment::record::{
    Chart, Device, Engine, Flag, Host, Latency, MEANING, Outcome, Record, Second, Shape, Stall,
    Step, Table, Target,
};
use crate::experiment::validity;

/// Names, figures of both engines, and whether a paced writer runs beside.
const STEPS: [(&str, f64, f64, bool); 4] = [
    ("readrandom", 2000.0, 1000.0, false),
    ("readwhilewriting", 900.0, 300.0, true),
    ("overwrite", 500.0, 1000.0, false),
    (
        "a step with a long name that has to be broken somewhere",
        700.0,
        690.0,
        false,
    ),
];

/// A record with three judged steps, a loss, a missed rate, tables and charts. The fourth step is
/// shown and not judged.
pub fn record() -> Record {
    let mut record = Record {
        format: 1,
        meaning: MEANING,
        experiment: "sample".into(),
        title: "A record that was made up".into(),
        about: "Nothing of this was measured.".into(),
        quick: true,
        pairs: 3,
        command: "esker lab sample --quick".into(),
        settings: vec![("num".into(), "1000".into())],
        began: 1_795_708_984,
        ended: 1_795_709_984,
        complete: true,
        host: host(),
        engines: vec![
            engine("Esker", "0.1.0", "esker", "2"),
            engine("RocksDB 11.8.1", "11.8.1", "lib:librocksdb.so", "8"),
        ],
        base: 1,
        steps: STEPS.iter().enumerate().map(step).collect(),
        tables: vec![table()],
        ..Record::default()
    };
    for pair in 0..3 {
        for turn in 0..2 {
            for (step, spec) in STEPS.iter().enumerate() {
                for engine in 0..2 {
                    let mut run = outcome(spec, engine, (2 * pair + turn) as f64);
                    (run.step, run.engine, run.pair, run.turn) = (step, engine, pair, turn);
                    record.results.push(run);
                }
            }
        }
    }
    record.flags = validity::flags(&record);
    record.flags.push(Flag {
        kind: "noise".into(),
        step: Some(0),
        engine: Some(0),
        text: "an <example> of a flag".into(),
    });
    record
}

fn host() -> Host {
    Host {
        processors: 2,
        facts: vec![
            ("machine".into(), "2 x Processor, 8.0 GiB, Linux 6.1".into()),
            ("filesystem".into(), "ext4 on /dev/vda".into()),
        ],
        warnings: vec!["the machine has swap, which turns memory into latency".into()],
        loads: vec![0.1, 0.4],
    }
}

fn engine(name: &str, version: &str, spec: &str, jobs: &str) -> Engine {
    let option = |name: &str, value: &str| (name.to_string(), value.to_string());
    Engine {
        spec: spec.into(),
        name: name.into(),
        version: version.into(),
        hash: "md5 900150983cd24fb0d6963f7d28e17f72".into(),
        options: [
            option("max_background_jobs", jobs),
            option("num_levels", "7"),
        ]
        .into(),
        findings: vec!["advice: max_open_files: too few; set it to -1".into()],
        ..Engine::default()
    }
}

fn step((at, spec): (usize, &(&str, f64, f64, bool))) -> Step {
    Step {
        name: spec.0.into(),
        help: "what it does".into(),
        figure: "ops_sec".into(),
        counts: at < 3,
        why: if at < 3 { "" } else { "it was made up" }.into(),
        ..Step::default()
    }
}

fn outcome(spec: &(&str, f64, f64, bool), engine: usize, turn: f64) -> Outcome {
    let rate = if engine == 0 { spec.1 } else { spec.2 };
    let latency = Latency {
        percentiles: vec![
            (50.0, 1e6 / rate),
            (99.0, 4e6 / rate),
            (99.9, 9e6 / rate),
            (99.99, 2e7 / rate),
            (100.0, 5e7 / rate),
        ],
    };
    let second = |at: i32| Second {
        operations: rate * (1.0 + 0.1 * f64::from(at % 3)),
        stopped: if engine == 0 && at == 3 {
            400_000.0
        } else {
            0.0
        },
        paced: if engine == 0 { 100_000.0 } else { 0.0 },
        p99: 4e6 / rate,
        worst: 5e7 / rate,
        cpu: 1.1,
        resident: 1e8,
        read_bytes: 1e6,
        write_bytes: 3e6,
        ..Second::default()
    };
    let mut run = Outcome {
        seconds: 10.0,
        others: Some(0.02),
        series: (0..10).map(second).collect(),
        stalls: vec![Stall {
            cause: "memtable-limit".into(),
            kind: "stopped".into(),
            times: 3,
            micros: 400_000,
            writers_micros: 400_000,
        }],
        intended: latency.clone(),
        latency,
        shape_before: shape(),
        shape_after: shape(),
        device: Device {
            rps: 5.0,
            wps: 20.0,
            w_mb: 3.0,
            w_await: 0.5,
            wareq_kb: 120.0,
            ..Device::default()
        },
        memory: vec![("block cache".into(), 6e7), ("memtables".into(), 3e7)],
        write_amp: vec![
            ("log".into(), 1.1),
            ("compaction".into(), 3.0),
            ("device".into(), 3.9),
        ],
        target: spec.3.then_some(Target {
            asked: 2e6,
            reached: if engine == 0 { 2e6 } else { 1.5e6 },
        }),
        ..Outcome::default()
    };
    let memory = if engine == 0 { 2e8 } else { 1e8 };
    for (name, value, unit) in [
        // Turns differ by a hundredth.
        ("ops_sec", rate * (1.0 + turn / 1e5), "ops/s"),
        ("cpu_us_op", 1e6 / rate, "us"),
        ("p99", 4e6 / rate, "us"),
        ("w_amp", 4.1, ""),
        ("rss", memory, "B"),
        ("qps_cv", 0.05, ""),
        ("qps_min", rate * 0.9, "ops/s"),
    ] {
        run.put(name, value, unit);
    }
    run
}

fn shape() -> Shape {
    let mb = 1_048_576.0;
    Shape {
        text: "lsm: mem 1.5 MB imm 0 | L0 2 files 11 MB | L6 40 files 640 MB".into(),
        parts: vec![
            ("mem".into(), 1, 1.5 * mb),
            ("L0".into(), 2, 11.0 * mb),
            ("L6".into(), 40, 640.0 * mb),
        ],
    }
}

fn table() -> Table {
    let cells = |words: [&str; 3]| words.iter().map(|word| (*word).to_string()).collect();
    Table {
        title: "Threads".into(),
        about: "Rates by threads.".into(),
        columns: cells(["threads", "Esker", "RocksDB"]),
        rows: vec![cells(["1", "10", "5"]), cells(["2", "19", "8"])],
        chart: Some(Chart {
            x: "threads".into(),
            y: "ops/s".into(),
            lines: vec![
                ("Esker".into(), vec![(1.0, 10.0), (2.0, 19.0)]),
                ("RocksDB".into(), vec![(1.0, 5.0), (2.0, 8.0)]),
            ],
            log_x: false,
        }),
    }
}
