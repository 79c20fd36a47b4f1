//! The stall ledger against what writers measure themselves.
//!
//! Time passes only when somebody sleeps, or when the test says so while it has seen a writer in
//! its wait. A put takes no time then but what it is held back for, so the sums have to agree to
//! the microsecond.

#[path = "../common/mod.rs"]
mod common;
mod families;
mod rig;
mod styles;

use common::until;
use esker::env::Clock;
use esker::observe::{
    HistogramId, PerfContext, PerfLevel, PerfMetric, StallCause, StallKind, set_perf_level,
};
use esker::{WriteBufferManager, WriteOptions};
use rig::{NEVER, Rig, family_options};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn stops_are_entered_to_the_microsecond_under_their_causes() {
    let rig = Rig::new();
    let family = rig.default_family();
    rig.fill_level0(&family, 6);
    // Too many memtables.
    rig.db.pause_background_work().expect("paused");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| rig.put_until_held(&family));
        rig.await_times("cf", &family, "memtable-limit-stops", 1);
        rig.clock.advance(7_000_123);
        rig.db.continue_background_work();
        assert_eq!(writer.join().expect("no panic"), 7_000_123);
    });
    rig.check(&[&family], &[]);
    // Level 0, and a wait that goes on slowed afterwards.
    rig.set(
        &family,
        &[
            ("level0_slowdown_writes_trigger", "4"),
            ("level0_stop_writes_trigger", "6"),
        ],
    );
    rig.stop(
        &[&family],
        Some(&family),
        "l0-file-count-limit-stops",
        2_000_001,
        || {
            rig.set(&family, &[("level0_stop_writes_trigger", "1000")]);
        },
    );
    rig.set(&family, &NEVER);
    rig.check(&[&family], &[]);
    // Compaction that is owed.
    rig.set(
        &family,
        &[
            ("soft_pending_compaction_bytes_limit", "1"),
            ("hard_pending_compaction_bytes_limit", "2"),
        ],
    );
    rig.stop(
        &[&family],
        Some(&family),
        "pending-compaction-bytes-stops",
        33,
        || {
            rig.set(&family, &NEVER);
        },
    );
    // Administration.
    rig.db.lock_wal().expect("locked");
    rig.stop(&[&family], None, "administration-stops", 1_500, || {
        rig.db.unlock_wal().expect("unlocked");
    });
    rig.check(&[&family], &[StallCause::Administration]);
    let of = |cause, kind| rig.us("cf", &family, cause, kind);
    assert_eq!(of(StallCause::MemtableLimit, StallKind::Stop), 7_000_123);
    assert_eq!(of(StallCause::L0FileCountLimit, StallKind::Stop), 2_000_001);
    assert_eq!(of(StallCause::PendingCompactionBytes, StallKind::Stop), 33);
    // Those of a second and more are told when they end; the other two were short.
    let told = rig.log.of_stalls();
    assert_eq!(told.len(), 2, "{told:?}");
    let first = "held back for 7000123 us of 7000123 us, memtable-limit-stops 7000123 us, \
                 stopped 7000123 us, delayed 0 us, paced 0 us of writers' time";
    assert!(told[0].contains(first), "{told:?}");
    let samples = rig.statistics.histogram(HistogramId::WriteStall);
    // RocksDB counts no administration.
    assert_eq!(samples.sum, rig.measured.load(Ordering::SeqCst) - 1_500);
    let text = rig.db.property("rocksdb.esker.stalls").expect("a text");
    let line = |l: &&str| l.starts_with("memtable-limit") && l.ends_with(" (database)");
    let line = text.lines().find(line).expect("a line");
    let fields: Vec<&str> = line.split_whitespace().collect();
    let all = ["stops", "1", "7000123", "7000123", "7000123"];
    assert_eq!(fields[1..6], all, "{text}");
}

#[test]
fn a_flush_that_takes_long_holds_no_single_write_back_for_all_of_it() {
    let rig = Rig::with(|o| o.family.write_buffer_size = 4 << 20);
    let family = rig.default_family();
    rig.db.pause_background_work().expect("paused");
    let put = || rig.put(&family, "key", 1000, &WriteOptions::default());
    let freely = std::iter::from_fn(|| (put() == 0).then_some(1_000)).sum::<u64>();
    assert!(freely > 7 << 20, "two memtables, not {freely} bytes");
    // A sixteenth of the third is kept for this.
    let crawling: Vec<u64> = (0..200).map(|_| put()).collect();
    let longest = crawling.iter().max().expect("some");
    assert!(*longest < 30_000, "{longest} us");
    let took: u64 = crawling.iter().sum();
    assert!(took > 1_000_000, "{took} us for all");
    let delays = |kind| rig.us("cf", &family, StallCause::MemtableLimit, kind);
    assert!(delays(StallKind::Delay) + delays(StallKind::Pace) >= took);
    assert_eq!(delays(StallKind::Stop), 0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..200).map(|_| put()).max());
        rig.await_times("cf", &family, "memtable-limit-stops", 1);
        rig.clock.advance(5_000_000);
        rig.db.continue_background_work();
        assert!(writer.join().expect("no panic") >= Some(5_000_000));
    });
    rig.check(&[&family], &[]);
}

#[test]
fn delays_are_entered_under_their_causes() {
    let rig = Rig::with(|o| o.family.write_buffer_size = 64 << 20);
    let family = rig.default_family();
    rig.fill_level0(&family, 6);
    let slow = WriteOptions::default();
    let write = |count: usize| -> u64 {
        (0..count)
            .map(|_| rig.put(&family, "key", 20_000, &slow))
            .sum()
    };
    rig.db
        .set_db_options(&[("delayed_write_rate", "1000000")])
        .expect("set");
    // Level 0.
    rig.set(&family, &[("level0_slowdown_writes_trigger", "5")]);
    set_perf_level(PerfLevel::EnableTime);
    PerfContext.reset();
    let held = write(8);
    let told = PerfContext.get(PerfMetric::WriteDelayTime);
    let rest = PerfContext.get(PerfMetric::WritePreAndPostProcessTime);
    set_perf_level(PerfLevel::Disable);
    assert!(held > 60_000, "{held}");
    assert_eq!(
        (told, rest),
        (held * 1_000, 0),
        "the thread's own time, entered once"
    );
    rig.check(&[&family], &[]);
    let of = |cause| rig.us("cf", &family, cause, StallKind::Delay);
    assert_eq!(of(StallCause::L0FileCountLimit), held);
    // A writer of low priority gives way first, then pays as others do.
    let mut low = WriteOptions::default();
    low.low_pri = true;
    let took = rig.put(&family, "key", 20_000, &low);
    assert_eq!(of(StallCause::LowPriority), 100_000);
    assert_eq!(of(StallCause::L0FileCountLimit), held + took - 100_000);
    rig.check(&[&family], &[]);
    // A writer that does not want to wait is told so at once.
    let before = rig.clock.now_us();
    low.no_slowdown = true;
    rig.db
        .put_opt(&family, "key", "value", &low)
        .expect_err("it would wait");
    assert_eq!(rig.clock.now_us(), before);
    // Compaction that is owed.
    rig.set(&family, &NEVER);
    rig.set(&family, &[("soft_pending_compaction_bytes_limit", "1")]);
    let held = write(8);
    assert!(held > 50_000, "{held}");
    assert_eq!(of(StallCause::PendingCompactionBytes), held);
    rig.check(&[&family], &[]);
}

#[test]
fn memory_of_memtables_is_the_databases_own_cause() {
    let buffers = WriteBufferManager::new(1 << 20, true);
    let rig = Rig::with(|o| {
        o.family.write_buffer_size = 64 << 20;
        o.family.max_write_buffer_number = 10;
        o.db.write_buffer_manager = Some(Arc::clone(&buffers));
    });
    let family = rig.default_family();
    rig.db.pause_background_work().expect("paused");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| rig.put_until_held(&family));
        rig.await_times("db", &family, "write-buffer-manager-limit-stops", 1);
        rig.clock.advance(3_000_007);
        // Longer than one look at the limit takes.
        std::thread::sleep(Duration::from_millis(50));
        buffers.set_allow_stall(false);
        assert_eq!(writer.join().expect("no panic"), 3_000_007);
    });
    rig.check(&[&family], &[StallCause::WriteBufferManagerLimit]);
    let times = rig.figure("db", &family, "write-buffer-manager-limit-stops.times");
    assert_eq!(times, 1, "however often it looked");
    rig.db.continue_background_work();
}

#[test]
fn a_wait_whose_reason_changes_is_entered_in_parts() {
    let rig = Rig::new();
    let first = rig.default_family();
    let second = rig.db.create_family("second", family_options());
    let second = second.expect("created");
    rig.fill_level0(&first, 3);
    rig.fill_level0(&second, 3);
    let stop = [
        ("level0_slowdown_writes_trigger", "2"),
        ("level0_stop_writes_trigger", "3"),
    ];
    rig.set(&second, &stop);
    // A writer to both waits for one, then for the other.
    rig.stop(
        &[&first, &second],
        Some(&second),
        "l0-file-count-limit-stops",
        1_000_000,
        || {
            rig.set(&first, &stop);
            rig.set(&second, &NEVER);
            rig.await_times("cf", &first, "l0-file-count-limit-stops", 1);
            rig.set(&first, &NEVER);
        },
    );
    rig.check(&[&first, &second], &[]);
    let of = |f| rig.us("cf", f, StallCause::L0FileCountLimit, StallKind::Stop);
    assert_eq!((of(&first), of(&second)), (0, 1_000_000));
    // The same, and time passes under either.
    rig.set(&second, &stop);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| rig.put_all(&[&second, &first]));
        rig.await_times("cf", &second, "l0-file-count-limit-stops", 2);
        rig.clock.advance(300_000);
        rig.set(&first, &stop);
        rig.set(&second, &NEVER);
        rig.await_times("cf", &first, "l0-file-count-limit-stops", 2);
        rig.clock.advance(50_000);
        rig.set(&first, &NEVER);
        assert_eq!(writer.join().expect("no panic"), 350_000);
    });
    rig.check(&[&first, &second], &[]);
    assert_eq!((of(&first), of(&second)), (50_000, 1_300_000));
}

#[test]
fn a_moment_counts_once_however_many_wait() {
    let rig = Rig::new();
    let family = rig.default_family();
    rig.fill_level0(&family, 3);
    rig.set(
        &family,
        &[
            ("level0_slowdown_writes_trigger", "2"),
            ("level0_stop_writes_trigger", "3"),
        ],
    );
    let name = "l0-file-count-limit-stops";
    let took: Vec<u64> = std::thread::scope(|scope| {
        let first = scope.spawn(|| rig.put_small(&family));
        rig.await_times("cf", &family, name, 1);
        rig.clock.advance(1_000_000);
        let second = scope.spawn(|| rig.put_small(&family));
        rig.await_times("cf", &family, name, 2);
        rig.clock.advance(500_000);
        // Longer than one wait before a look.
        std::thread::sleep(Duration::from_millis(150));
        // It is in the ledger while it goes on.
        let kind = StallKind::Stop;
        let now = rig.us("db", &family, StallCause::L0FileCountLimit, kind);
        assert_eq!(now, 1_500_000);
        rig.set(&family, &NEVER);
        [first, second].map(|w| w.join().expect("no panic")).into()
    });
    assert_eq!(took, [1_500_000, 500_000]);
    let samples = rig.statistics.histogram(HistogramId::WriteStall);
    assert_eq!((samples.count, samples.sum), (2, 2_000_000), "by writer");
    let of_writers = |what: &str| rig.figure("cf", &family, &format!("{what}.writers-micros"));
    assert_eq!(of_writers(name), 2_000_000);
    let words = ["stopped", "delayed", "paced"].map(of_writers);
    assert_eq!(words, [2_000_000, 0, 0]);
    // By the clock.
    rig.measured.store(1_500_000, Ordering::SeqCst);
    rig.check(&[&family], &[]);
    let longest = rig.figure("db", &family, &format!("{name}.max-micros"));
    assert_eq!(longest, 1_500_000);
}

/// Writers that go at one pace sleep side by side, whoever of them leads.
#[test]
fn a_delay_counts_once_however_many_wait() {
    let rig = Rig::with(|o| o.family.write_buffer_size = 64 << 20);
    let family = rig.default_family();
    rig.fill_level0(&family, 6);
    rig.db
        .set_db_options(&[("delayed_write_rate", "1000000")])
        .expect("set");
    rig.set(&family, &[("level0_slowdown_writes_trigger", "5")]);
    let put = || rig.put(&family, "key", 100_000, &WriteOptions::default());
    assert_eq!(put(), 0, "what is written is paid for afterwards");
    let start = rig.clock.now_us();
    rig.clock.frozen.store(true, Ordering::SeqCst);
    let took: Vec<u64> = std::thread::scope(|scope| {
        let writers = [scope.spawn(put), scope.spawn(put), scope.spawn(put)];
        until("somebody sleeps", || {
            rig.clock.asleep.load(Ordering::SeqCst) == 3
        });
        rig.clock.frozen.store(false, Ordering::SeqCst);
        writers.map(|w| w.join().expect("no panic")).into()
    });
    let passed = rig.clock.now_us() - start;
    assert!(took.iter().all(|us| *us > 30_000), "{took:?}");
    assert_eq!(took.iter().max(), Some(&passed), "{took:?}");
    rig.measured.store(passed, Ordering::SeqCst);
    rig.check(&[&family], &[]);
}

/// A call that is held back for a millisecond in total is delayed, in however many pieces it slept;
/// a shorter one is paced. RocksDB, which sleeps for a millisecond at least, would count the first
/// alone.
#[test]
fn a_call_is_delayed_or_paced_by_all_that_it_waited() {
    let rig = Rig::with(|o| o.family.write_buffer_size = 64 << 20);
    let family = rig.default_family();
    rig.fill_level0(&family, 6);
    rig.db
        .set_db_options(&[("delayed_write_rate", "1000000")])
        .expect("set");
    rig.set(&family, &[("level0_slowdown_writes_trigger", "5")]);
    let us = |kind| rig.us("cf", &family, StallCause::L0FileCountLimit, kind);
    let times = |kind: &str| {
        let name = format!("l0-file-count-limit-{kind}.times");
        rig.figure("cf", &family, &name)
    };
    let put = |bytes| rig.put(&family, "key", bytes, &WriteOptions::default());
    let (mut paced, mut delayed) = (Vec::new(), Vec::new());
    for n in 0..60 {
        let took = put(if n % 3 == 0 { 20_000 } else { 500 });
        match took {
            0 => {}
            1..1_000 => paced.push(took),
            _ => delayed.push(took),
        }
    }
    assert!(
        !paced.is_empty() && delayed.len() > 2,
        "{paced:?} {delayed:?}"
    );
    assert!(
        delayed.iter().any(|us| *us > 5_000),
        "in many pieces: {delayed:?}"
    );
    assert_eq!(us(StallKind::Pace), paced.iter().sum());
    assert_eq!(us(StallKind::Delay), delayed.iter().sum());
    assert_eq!(times("paces"), paced.len() as u64);
    assert_eq!(times("delays"), delayed.len() as u64);
    let samples = rig.statistics.histogram(HistogramId::WriteStall);
    assert_eq!(samples.count, delayed.len() as u64);
    rig.check(&[&family], &[]);
    // How often the family was found to be slow, as RocksDB counts: when its options were set,
    // here.
    let counts = rig.db.map_property(&family, "rocksdb.cfstats");
    let counts = counts.expect("a map");
    let before: u64 = counts["l0-file-count-limit-delays"]
        .parse()
        .expect("a number");
    assert!((1..=3).contains(&before), "{before}");
    rig.set(&family, &[("level0_slowdown_writes_trigger", "4")]);
    let counts = rig.db.map_property(&family, "rocksdb.cfstats");
    let after = &counts.expect("a map")["l0-file-count-limit-delays"];
    assert_eq!(*after, (before + 1).to_string());
}
