//! `regress` on real counts: a build with work on top of each operation is found by its
//! instructions, and the same build once more is not.
//!
//! `cargo test -p esker-lab --test planted -- --ignored --nocapture` takes some minutes. Without
//! valgrind it says that it skips.

use std::path::PathBuf;

use esker_lab::experiment::plan::Request;
use esker_lab::experiment::state::State;
use esker_lab::experiment::{driver, ratio, record::Record};
use esker_lab::experiments;

fn has_valgrind() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join("valgrind").is_file())
}

/// Counts instructions of `readrandom` on some engines.
fn counted(out: &std::path::Path, engines: &[String], pairs: usize, name: &str) -> Record {
    let experiment = experiments::named("regress").expect("an experiment");
    let own = [
        ("only", "instructions of readrandom"),
        ("instructions", "4000"),
    ];
    let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
    let request = Request {
        pairs,
        scratch: out.join("scratch"),
        ..Request::of("regress", experiment.settings(), true, &engines, &own)
    };
    let state = State::open(&out.join(name), &request).expect("a state");
    driver::run(experiment, &request, &state, "").expect("a run")
}

#[test]
#[ignore = "minutes under valgrind: cargo test -p esker-lab --test planted -- --ignored"]
fn a_planted_slowdown_is_found_by_instructions() {
    if !has_valgrind() {
        println!("SKIPPED: valgrind is not installed");
        return;
    }
    let out = tempfile::tempdir().expect("a directory");
    let program = PathBuf::from(env!("CARGO_BIN_EXE_esker-bench"));
    let build = format!("bin:{}", program.display());
    let slowed = |rounds: u64| format!("{build}?lab.planted_rounds={rounds}");
    // How many instructions an operation has, and a round.
    let record = counted(out.path(), &[build.clone(), slowed(1000)], 1, "measure");
    let of = |engine| record.median(0, engine, "instructions_op");
    let (plain, with) = (of(0).expect("a count"), of(1).expect("a count"));
    assert!(plain > 1000.0 && with > plain, "{plain} and {with}");
    let rounds = (0.05 * plain / ((with - plain) / 1000.0)).ceil() as u64;
    println!("{plain:.0} instructions an operation; {rounds} rounds for 5 %");
    // Three pairs are enough for a single step.
    let engines = [build.clone(), build.clone(), slowed(rounds)];
    let record = counted(out.path(), &engines, 3, "run");
    let ratio = ratio::of(&record, 0, 2).expect("a ratio");
    println!("planted {:.4}..{:.4}", ratio.min, ratio.max);
    assert_eq!(ratio::told_apart(&record, 2).len(), 1, "{ratio:?}");
    assert!((0.93..0.965).contains(&ratio.median), "{ratio:?}");
    let same = ratio::of(&record, 0, 1).expect("a ratio");
    println!("identical {:.4}..{:.4}", same.min, same.max);
    assert!(ratio::told_apart(&record, 1).is_empty(), "{same:?}");
    let said = record.sentences.join(" ");
    assert!(said.contains("are not told apart"), "{said}");
    assert!(said.contains("instructions of readrandom (0.9"), "{said}");
}
