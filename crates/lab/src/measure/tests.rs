//! The printed forms, merging, and steadiness.

use super::*;

fn measured(done: u64, millis: u64, bytes: u64) -> Measurement {
    let start = Instant::now();
    let mut run = Measurement::between(start, start + Duration::from_millis(millis), done);
    run.bytes = bytes;
    run
}

#[test]
fn the_line_is_db_benchs() {
    let mut run = measured(1000, 2000, 10 << 20);
    assert_eq!(
        run.line("fillseq"),
        "fillseq      :    2000.000 micros/op 500 ops/sec 2.000 seconds 1000 operations;    5.0 MB/s"
    );
    run.bytes = 0;
    run.message = "(7 of 9 found)".into();
    assert_eq!(
        run.line("readrandomwriterandom"),
        "readrandomwriterandom :    2000.000 micros/op 500 ops/sec 2.000 seconds 1000 operations; (7 of 9 found)"
    );
}

#[test]
fn threads_are_summed_but_the_clock_is_not() {
    let mut one = measured(1000, 2000, 0);
    let mut two = measured(3000, 1000, 0);
    two.start = one.start;
    two.finish = one.start + Duration::from_millis(1000);
    one.merge(two);
    assert_eq!(
        (one.done, one.seconds(), one.thread_seconds),
        (4000, 2.0, 3.0)
    );
    assert_eq!(one.ops_per_second(), 2000.0);
}

#[test]
fn percentiles_have_the_fields_that_scripts_grep() {
    let slot = Slot::default();
    let mut meter = Meter::start(&slot, true);
    for _ in 0..100 {
        meter.finished(1);
    }
    assert_eq!(slot.get(), 100);
    let text = meter
        .stop()
        .percentiles()
        .expect("a histogram was asked for");
    assert!(text.starts_with("Count: 100 Average: "), "{text}");
    let line = text
        .lines()
        .find(|l| l.starts_with("Percentiles: P50: "))
        .expect("the line");
    for name in ["P75: ", "P99: ", "P99.9: ", "P99.99: "] {
        assert!(line.contains(name), "{line}");
    }
}

#[test]
fn background_threads_do_not_count() {
    let slot = Slot::default();
    let mut meter = Meter::start(&slot, false);
    meter.set_background();
    meter.finished(5);
    assert_eq!((slot.get(), meter.done()), (0, 5));
}

#[test]
fn steadiness_finds_the_bad_seconds() {
    let steady = RateStability::of(&[100, 100, 100, 100]).expect("enough");
    assert_eq!(
        (steady.cv, steady.min, steady.below_half_median),
        (0.0, 100, 0)
    );
    let stalled = RateStability::of(&[100, 10, 100, 100, 0]).expect("enough");
    assert_eq!((stalled.min, stalled.below_half_median), (0, 2));
    assert!(stalled.cv > 0.5);
    assert!(RateStability::of(&[1]).is_none());
}
