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
