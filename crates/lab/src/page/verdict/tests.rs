//! Verdicts of records that were made up, and of three that were once published.

use super::*;
use crate::experiment::record::Ask;
use crate::page::sample;

/// The record of a page that was once published, with its figures.
fn stored(name: &str) -> Record {
    let path = format!("{}/tests/records/{name}.json", env!("CARGO_MANIFEST_DIR"));
    crate::experiment::state::read_record(path.as_ref()).expect("a record")
}

fn headline_of(record: &Record) -> String {
    headlines(record)[0].clone()
}

#[test]
fn the_first_sentence_has_gains_and_losses_in_absolutes() {
    let said = headline_of(&sample::record());
    // 2.0 and 0.5; the paced writer beside the second step missed its rate on the base.
    assert!(
        said.starts_with("Esker beside RocksDB 11.8.1: 1.00 times the rate over 2 steps"),
        "{said}"
    );
    assert!(
        said.contains("overwrite 0.50 times the rate, 500 ops/s against 1,000 ops/s"),
        "{said}"
    );
    assert!(
        said.contains("2.00 times as much, 191 MB against 95.4 MB"),
        "{said}"
    );
}

#[test]
fn a_step_that_is_not_in_the_mean_is_a_loss_all_the_same() {
    let mut record = sample::record();
    record.steps[2].counts = false;
    let said = headline_of(&record);
    assert!(said.contains("overwrite 0.50 times the rate"), "{said}");
    assert!(said.contains("2.00 times the rate in readrandom"), "{said}");
}

#[test]
fn what_no_run_reached_is_a_loss() {
    let mut record = sample::record();
    record.steps[3].asks = vec![Ask {
        figure: "within_500us".into(),
        what: "commits within 500 us".into(),
        ..Ask::default()
    }];
    for run in record.results.iter_mut().filter(|run| run.step == 3) {
        let rate = if run.engine == 0 { 0.0 } else { 19_613.0 };
        run.put("within_500us", rate, "ops/s");
    }
    let said = headline_of(&record);
    let expected = "commits within 500 us none, where RocksDB 11.8.1 has 19,613 ops/s";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn work_that_is_not_equal_is_in_no_mean_and_no_loss() {
    let mut record = sample::record();
    record.steps[2].asks = vec![Ask {
        figure: "within_500us".into(),
        what: "commits within 500 us".into(),
        ..Ask::default()
    }];
    for run in record.results.iter_mut().filter(|run| run.step == 2) {
        run.put("rows_op", if run.engine == 0 { 206.0 } else { 132.0 }, "");
        let rate = if run.engine == 0 { 0.0 } else { 19_613.0 };
        run.put("within_500us", rate, "ops/s");
    }
    let said = headline_of(&record);
    let left_out = "Not judged, since work is unequal: overwrite (206 rows an operation, 132 on \
                    RocksDB 11.8.1).";
    assert!(said.contains(left_out), "{said}");
    assert_eq!(said.matches("overwrite").count(), 1, "{said}");
    assert!(losses(&record, 0).iter().all(|found| found.step != 2));
}

#[test]
fn a_third_engine_that_is_best_is_named() {
    let mut record = sample::record();
    let mut third = record.engines[0].clone();
    (third.name, third.spec) = ("LMDB".into(), "lmdb".into());
    record.engines.push(third);
    let mut runs = record.results.clone();
    runs.retain(|run| run.engine == 0);
    for run in &mut runs {
        run.engine = 2;
        run.put("ops_sec", 3000.0, "ops/s");
    }
    record.results.extend(runs);
    let said = headline_of(&record);
    assert!(said.contains("LMDB is better in"), "{said}");
    assert!(said.contains("3,000 ops/s"), "{said}");
}

#[test]
fn nothing_is_claimed_from_few_pairs_a_busy_machine_or_a_part() {
    let change = |change: fn(&mut Record)| {
        let mut record = sample::record();
        change(&mut record);
        headline_of(&record)
    };
    type Change = fn(&mut Record);
    let cases: [(Change, &str); 3] = [
        (|record| record.pairs = 1, "(1 pair)"),
        (
            |record| record.complete = false,
            "(the run was stopped before its end)",
        ),
        (
            |record| record.results[5].others = Some(0.69),
            "(others took 69 % of the processors)",
        ),
    ];
    for (break_it, why) in cases {
        let said = change(break_it);
        let start = format!("Nothing can be said for certain {why}.");
        assert!(said.starts_with(&start), "{said}");
        assert!(
            said.contains("overwrite 0.50 times the rate"),
            "hides the loss: {said}"
        );
    }
    assert!(!change(|_| {}).contains("for certain"));
}

#[test]
fn rates_and_instructions_are_not_in_one_mean() {
    let mut record = sample::record();
    record.steps[0].aim = Aim::Less;
    let said = headline_of(&record);
    assert!(said.contains("0.50 times the rate in overwrite"), "{said}");
    assert!(
        said.contains("2.00 times as much or as long in readrandom"),
        "{said}"
    );
}

#[test]
fn the_verdicts_of_stored_records_name_their_known_losses() {
    let byrx = headline_of(&stored("byrx"));
    assert!(
        byrx.contains("compact level 0 2.06 times as long, 0.97 s against 0.47 s"),
        "{byrx}"
    );
    let hot_row = headline_of(&stored("hot-row"));
    let expected = "commits within 500 us none, where RocksDB has 19,613 ops/s";
    assert!(hot_row.contains(expected), "{hot_row}");
    assert!(
        hot_row.starts_with("Nothing can be said for certain (1 pair"),
        "{hot_row}"
    );
    let versus = headline_of(&stored("btree-vs-lsm"));
    assert!(versus.contains("LMDB is better in"), "{versus}");
    assert!(versus.contains("load"), "{versus}");
}

#[test]
fn one_engine_alone_has_its_figures() {
    let mut record = sample::record();
    record.engines[1].missing = Some("is not there".into());
    record.base = 0;
    let said = sentences(&record);
    assert!(
        said[0].starts_with("Esker ran alone: readrandom 2,000 ops/s"),
        "{said:?}"
    );
    record.complete = false;
    assert!(
        sentences(&record)
            .iter()
            .any(|s| s.contains("stopped before its end"))
    );
}

#[test]
fn words_are_listed_as_in_a_sentence() {
    let words = |n: usize| {
        ["a", "b", "c"][..n]
            .iter()
            .map(|w| (*w).into())
            .collect::<Vec<_>>()
    };
    assert_eq!(list(&words(1)), "a");
    assert_eq!(list(&words(3)), "a, b and c");
}
