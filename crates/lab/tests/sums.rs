//! Sums that have to add up in a short real run: the ledger of stalls, memory by owner, writes by
//! part.
//!
//! It takes a minute or two: `cargo test -p esker-lab --test sums -- --ignored --nocapture`.

use std::path::{Path, PathBuf};

use esker_lab::experiment::plan::Request;
use esker_lab::experiment::record::Record;
use esker_lab::experiment::state::State;
use esker_lab::experiment::validity::{DEVICE_OFF, PARTS_OFF};
use esker_lab::{experiment::driver, experiments, page};

/// The steps of `byrx` at a small size, on a small memtable, so that writers are held back.
fn run(out: &Path) -> Record {
    let experiment = experiments::named("byrx").expect("an experiment");
    let own = [("num", "200000"), ("duration", "1"), ("age", "1")];
    let program = PathBuf::from(env!("CARGO_BIN_EXE_esker-bench"));
    let engine = format!("bin:{}", program.display());
    let request = Request {
        flags: vec!["--write_buffer_size=4194304".into()],
        scratch: out.join("scratch"),
        ..Request::of("byrx", experiment.settings(), true, &[&engine], &own)
    };
    let state = State::open(&out.join("out"), &request).expect("a state");
    driver::run(experiment, &request, &state, "").expect("a run")
}

#[test]
#[ignore = "a real run takes minutes: cargo test -p esker-lab --test sums -- --ignored"]
fn stalls_memory_and_writes_add_up() {
    let out = tempfile::tempdir().expect("a directory");
    let record = run(out.path());
    let median = |step: usize, figure: &str| record.median(step, 0, figure);
    let (mut ledgers, mut memories, mut writes) = (0, 0, 0);
    let (mut held, mut wrong) = (0.0, Vec::new());
    for (at, step) in record.steps.iter().enumerate() {
        let name = &step.name;
        let [ledger, off, memory, parts, device] = [
            "ledger_sec",
            "ledger_off%",
            "memory_named%",
            PARTS_OFF,
            DEVICE_OFF,
        ]
        .map(|figure| median(at, figure));
        println!("{name}: {ledger:?} s, {off:?}; memory {memory:?}; {parts:?}; {device:?}");
        if let Some(run) = record.runs(at, 0).next() {
            println!("  {:?}", run.memory);
        }
        if let (Some(seconds), Some(off)) = (ledger, off) {
            (ledgers, held) = (ledgers + 1, held + seconds);
            if off > 1.0 {
                wrong.push(format!("{name}: the ledger is {off} % off"));
            }
        }
        // Small processes have none.
        if let Some(named) = memory {
            memories += 1;
            // Owners that claimed the same twice would make up for memory without one.
            if !(95.0..=102.0).contains(&named) {
                wrong.push(format!("{name}: {named} % of the memory has an owner"));
            }
        }
        // A filesystem in memory has no writes to compare with.
        if let Some(off) = parts {
            writes += 1;
            if off > 5.0 {
                wrong.push(format!("{name}: the parts are {off} % off"));
            }
        }
    }
    println!("{ledgers} ledgers with {held:.3} s, {memories} memories, {writes} writes");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(ledgers >= 5 && memories >= 5, "{ledgers} and {memories}");
    assert!(held > 0.01, "writers were held back for {held} s");
    let of = |kind: &str| record.flags.iter().filter(|flag| flag.kind == kind).count();
    assert_eq!([of("ledger"), of("memory"), of("writes")], [0; 3]);
    let html = page::page(&[&record], &[]);
    assert!(html.contains("Sums: stalls, memory, writes"));
    assert!(html.contains("Tail latency by step and engine"));
    assert!(html.contains("each database was overwritten at random"));
}
