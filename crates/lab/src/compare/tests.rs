//! The statistics of paired ratios.

use super::*;

#[test]
fn the_median_and_its_interval() {
    let ratio = Ratio::of(&[1.9, 2.0, 2.1, 2.0, 1.95, 2.05, 2.0, 1.98, 2.02, 2.0]).expect("ratios");
    assert_eq!((ratio.median, ratio.min, ratio.max), (2.0, 1.9, 2.1));
    assert!(ratio.low >= 1.9 && ratio.low <= 2.0 && ratio.high >= 2.0 && ratio.high <= 2.1);
    assert_eq!(ratio.verdict(), "win");
    assert!(Ratio::of(&[]).is_none());
}

#[test]
fn noise_is_neither_win_nor_loss() {
    assert_eq!(
        Ratio::of(&[0.8, 1.3, 1.2, 0.9, 1.1, 0.95])
            .expect("ratios")
            .verdict(),
        "even"
    );
    assert_eq!(
        Ratio::of(&[1.01, 1.02, 1.02, 1.0, 1.01, 1.02])
            .expect("ratios")
            .verdict(),
        "even"
    );
    assert_eq!(
        Ratio::of(&[0.5, 0.52, 0.51, 0.5, 0.52, 0.51])
            .expect("ratios")
            .verdict(),
        "loss"
    );
}

#[test]
fn two_ratios_have_no_interval_and_no_verdict() {
    let ratio = Ratio::of(&[2.5, 2.7]).expect("ratios");
    assert_eq!((ratio.median, ratio.verdict()), (2.6, "-"));
    assert_eq!(ratio.interval(), "too few pairs");
}

#[test]
fn every_run_is_in_the_report_second_by_second() {
    let row = json!({
        "test": "overwrite", "ops_sec": 15.0, "qps": [10, 20],
        "intervals": [
            {"second": 1, "count": 10, "p50": 1.5, "p99": 2.0, "p99.9": 3.0, "max": 4.0},
            {"second": 2, "count": 20, "p50": 1.25, "p99": 2.0, "p99.9": 3.0, "max": 9.0}
        ]
    });
    let run = |engine, step| Run {
        engine,
        pair: 1,
        step,
        load: 0.25,
        rows: vec![Row::from_json(&row).expect("a row")],
    };
    let runs = [run("A", 1), run("B", 2)];
    let lines = report_lines(&runs);
    assert_eq!(lines.lines().count(), 5, "{lines}");
    assert!(
        lines.contains("\nA,1,1,overwrite,1,10,1.5,2,3,4\n"),
        "{lines}"
    );
    assert!(
        lines.ends_with("\nB,1,2,overwrite,2,20,1.25,2,3,9\n"),
        "{lines}"
    );
    assert_eq!(runs[1].json()["rows"][0]["qps"], json!([10, 20]));
    assert!(loads(&runs).starts_with("load before each run: 0.25..0.25, at end: "));
}
