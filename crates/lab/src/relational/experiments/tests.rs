//! Each relational experiment at a tiny size, through the driver of `esker lab`.
//!
//! The last of them run on a store with a planted bug, which the check at the end has to find.

mod planted;

use super::*;
use crate::experiment::driver;
use crate::experiment::state::State;

const ALL: [&Relational; 6] = [
    &LINKBENCH,
    &INSERT,
    &SYSBENCH,
    &TSBS,
    &HOT_ROW,
    &BTREE_VS_LSM,
];

/// A request with settings that take a second or so.
fn tiny(experiment: &Relational, engines: &[&str]) -> Request {
    let tiny = [
        ("nodes", "300"),
        ("rows", "2000"),
        ("inserts", "500"),
        ("seconds", "0.1"),
        ("rates", "100,200"),
        ("rate", "300"),
        ("hosts", "3"),
        ("hours", "1"),
        ("sweep", "1,2,3,4"),
        ("tries", "2"),
        ("memtable_mb", "1"),
    ];
    Request::of(experiment.name, experiment.settings, true, engines, &tiny)
}

fn record(experiment: &Relational, engines: &[&str]) -> Record {
    let out = tempfile::tempdir().expect("a directory");
    let mut request = tiny(experiment, engines);
    request.scratch = out.path().join("scratch");
    let state = State::open(&out.path().join("out"), &request).expect("a state");
    driver::run(experiment, &request, &state, "esker lab").expect("a run")
}

#[test]
fn every_step_of_every_experiment_has_its_figure() {
    for experiment in ALL {
        let record = record(experiment, &["esker", "nonsense"]);
        assert!(record.complete, "{}", experiment.name);
        assert!(!record.steps.is_empty());
        for (at, step) in record.steps.iter().enumerate() {
            // A rate within the objective may not exist.
            let found = record.median(at, 0, &step.figure);
            assert!(
                found.is_some(),
                "{} {}: {}",
                experiment.name,
                step.name,
                step.figure
            );
        }
        if let Some(at) = record.steps.iter().position(|step| step.name == "verify") {
            assert_eq!(
                record.median(at, 0, "mismatches"),
                Some(0.0),
                "{}",
                experiment.name
            );
            assert!(record.sentences.iter().any(|s| s.contains("are right")));
        }
        if experiment.name == "hot-row" {
            let found = record
                .tables
                .iter()
                .find(|t| t.title.contains("bound of latency"));
            let table = found.expect("a curve");
            let chart = table.chart.as_ref().expect("a chart");
            assert!(!chart.lines[0].1.is_empty(), "{table:?}");
            let rates: Vec<f64> = chart.lines[0].1.iter().map(|(_, rate)| *rate).collect();
            assert!(
                rates.is_sorted(),
                "a wider bound takes nothing away: {rates:?}"
            );
        }
        let missing = record.engines[1].missing.as_deref().unwrap_or_default();
        assert!(
            missing.contains("no engine is called nonsense"),
            "{missing}"
        );
        assert!(
            record
                .sentences
                .iter()
                .any(|s| s.contains("Could not be run: nonsense"))
        );
        assert!(record.engines[0].notes[0].contains("written to the system"));
        assert!(!record.engines[0].options.is_empty());
    }
}

#[test]
fn two_plugins_are_compared_in_two_chains() {
    let out = tempfile::tempdir().expect("a directory");
    let given = [
        ("rows", "2000"),
        ("nodes", "300"),
        ("sweep", "1,8"),
        ("seconds", "0.1"),
        ("memtable_mb", "1"),
    ];
    let engines = ["one=esker", "two=esker"];
    let mut request = Request::of("myrocks", MYROCKS.settings(), true, &engines, &given);
    request.scratch = out.path().join("scratch");
    let state = State::open(&out.path().join("out"), &request).expect("a state");
    let record = driver::run(&MYROCKS, &request, &state, "esker lab").expect("a run");
    assert!(record.complete && record.base == 0);
    for (at, step) in record.steps.iter().enumerate() {
        let found = record.median(at, 1, &step.figure);
        assert!(found.is_some(), "{}: {}", step.name, step.figure);
        if step.name.starts_with("verify") {
            assert_eq!(found, Some(0.0), "{}", step.name);
        }
    }
    let gates = record.tables.iter().find(|table| table.title == "Gates");
    let gates = gates.expect("gates");
    let steps: Vec<&str> = gates.rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(steps, ["mixed-8", "linkbench-8"]);
    let misses = record
        .sentences
        .iter()
        .filter(|text| text.contains("misses a gate"));
    let missed = gates.rows.iter().filter(|row| row[4] == "no");
    assert_eq!(misses.count(), missed.count());
}

#[test]
fn wrong_checks_are_said_loudly() {
    let mut record = record(&LINKBENCH, &["esker"]);
    record.sentences.clear();
    let at = record.steps.iter().position(|step| step.name == "verify");
    for run in &mut record.results {
        if Some(run.step) == at {
            run.put("mismatches", 2.0, "");
        }
    }
    say_checks(&mut record, "Counts");
    assert_eq!(record.sentences, ["Counts are WRONG on Esker."]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut request = tiny(&LINKBENCH, &["esker"]);
    assert!(LINKBENCH.plan(&request).is_ok());
    request.flags = vec!["--bloom_bits=1".into()];
    assert!(LINKBENCH.plan(&request).is_err());
    for (name, value) in [
        ("durability", "perhaps"),
        ("seconds", "0"),
        ("threads", "x"),
    ] {
        let mut request = tiny(&LINKBENCH, &["esker"]);
        for setting in &mut request.settings {
            if setting.0 == name {
                setting.1 = value.into();
            }
        }
        assert!(LINKBENCH.plan(&request).is_err(), "{name}");
    }
    assert_eq!(sessions(&tiny(&LINKBENCH, &["esker"])), Ok(2));
    assert_eq!(sessions(&tiny(&HOT_ROW, &["esker"])), Ok(4));
    let mut only = tiny(&SYSBENCH, &["esker"]);
    for setting in &mut only.settings {
        if setting.0 == "only" {
            setting.1 = "scan,update-one".into();
        }
    }
    assert_eq!(SYSBENCH.plan(&only).expect("a plan").steps().len(), 4);
    assert!(LINKBENCH.supports(&EngineSpec::parse("esker?a=b")).is_err());
    let all = SYSBENCH.plan(&tiny(&SYSBENCH, &["esker"])).expect("a plan");
    assert_eq!(all.steps().len(), 43 + 2);
}
