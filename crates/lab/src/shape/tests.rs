//! The texts of real databases, read by name.

use super::*;

#[test]
fn levelstats_are_read_by_header() {
    let text = "Level Files Size(MB)\n--------------------\n  0        2       11\n  6       10      640\n";
    assert_eq!(level_sizes(text), [(0, 11), (6, 640)]);
    assert!(level_sizes("").is_empty());
}

#[test]
fn tickers_are_found_by_name() {
    let text = "rocksdb.wal.bytes COUNT : 1234\nrocksdb.wal.bytes.other COUNT : 9\n\
                rocksdb.db.get.micros P50 : 1.0 P95 : 2.0\n";
    assert_eq!(ticker(text, "rocksdb.wal.bytes"), Some(1234));
    assert_eq!(ticker(text, "rocksdb.db.get.micros"), None);
}

#[test]
fn stall_time_is_a_clock() {
    let text = "Uptime(secs): 1.0 total\nCumulative stall: 00:01:2.500 H:M:S, 4.1 percent\n";
    assert_eq!(stall_time(text), Some(62.5));
    assert_eq!(stall_time("nothing"), None);
}

#[test]
fn stalls_are_those_of_the_database_since_the_step_began() {
    let text = "cause                      kind        times             us       us_max    writers_us of\n\
                memtable-limit             stops           3        1500000       700000        3000000 (database)\n\
                low-priority               delays          1         100000       100000         100000 (database)\n\
                memtable-limit             stops           3        1500000       700000        3000000 default\n";
    let now = parse_stalls(text);
    assert_eq!(now.len(), 2);
    assert_eq!((now[0].times, now[0].micros), (3, 1_500_000));
    let mut before = now.clone();
    before[0].times = 1;
    before[0].micros = 500_000;
    before[0].writers_micros = 1_000_000;
    let grown = stalls_since(now, &before);
    assert_eq!(grown.len(), 1);
    assert_eq!((grown[0].times, grown[0].micros), (2, 1_000_000));
    assert_eq!(grown[0].writers_micros, 2_000_000);
    // Two writers for four seconds each.
    let table = stall_table(&grown, 8.0).expect("a table");
    let last: Vec<&str> = table
        .lines()
        .last()
        .expect("a line")
        .split_whitespace()
        .collect();
    assert_eq!(last, ["all", "2", "2.000", "25.0"]);
    assert_eq!(stall_table(&[], 8.0), None);
    // From the record of a run as well.
    let around = crate::report::StepContext {
        stalls: grown.clone(),
        keeps_ledger: true,
        ..Default::default()
    };
    // Of the eight seconds one is in calls of a millisecond and more.
    let mut latencies = hdrhistogram::Histogram::new(3).expect("a histogram");
    for ns in [999_999, 400_000_000, 600_000_000] {
        latencies.record(ns).expect("in range");
    }
    let now = std::time::Instant::now();
    let finish = now + std::time::Duration::from_secs(4);
    let run = crate::measure::Measurement {
        thread_seconds: 8.0,
        histogram: Some(Box::new(latencies)),
        ..crate::measure::Measurement::between(now, finish, 1)
    };
    let row = crate::report::Row::new("fill", &run, &around, true);
    let row = crate::report::Row::from_json(&row.json()).expect("a row");
    assert_eq!(row.stalls(), grown);
    let share = |name| row.number(name);
    assert_eq!(share("stopped%"), Some(25.0));
    assert_eq!((share("delayed%"), share("paced%")), (Some(0.0), Some(0.0)));
    let slow = share("calls_1ms%").expect("measured");
    assert!((12.4..12.6).contains(&slow), "{slow}");
    let none = crate::report::Row::new("fill", &run, &Default::default(), true);
    assert_eq!(none.number("stopped%"), None, "nobody knows");
    let told = crate::report::stall_summary(&[row]);
    assert!(told.starts_with("\nfill\n"), "{told}");
    assert!(told.contains("memtable-limit"), "{told}");
    assert!(told.trim_end().ends_with(" 2.000   25.0"), "{told}");
}

#[test]
fn sums_of_levels_are_read_by_header() {
    let text = "\n** Compaction Stats [default] **\nLevel Files Size Score Comp(sec) CompMergeCPU(sec) Comp(cnt)\n---\n  \
                L0 2/0 11.0 MB 0.5 1.5 1.25 3\n Sum 2/0 11.0 MB 0.0 21.5 18.25 9\n Int 0/0 0.0 KB 0.0 0.5 0.25 1\n";
    assert_eq!(sum_of(text, "Comp(sec)"), Some(21.5));
    assert_eq!(sum_of(text, "CompMergeCPU(sec)"), Some(18.25));
    assert_eq!(sum_of(text, "Comp(min)"), None);
}
