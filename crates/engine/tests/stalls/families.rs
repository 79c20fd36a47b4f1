//! Families that are behind, and those whose writers do not wait for them.

use crate::rig::{NEVER, Rig, family_options};
use esker::observe::{StallCause, StallKind};
use esker::{ErrorKind, FamilyHandle, FamilyId, Options, WriteBatch, WriteOptions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Options by which three tables at level 0 stop writers.
const STOP: [(&str, &str); 2] = [
    ("level0_slowdown_writes_trigger", "2"),
    ("level0_stop_writes_trigger", "3"),
];

const L0_STOPS: &str = "l0-file-count-limit-stops";

/// A database with a second family that has three tables at level 0, as the first has; in each a
/// table makes three.
fn two_families(change: impl FnOnce(&mut Options)) -> (Rig, FamilyHandle, FamilyHandle) {
    let mut options = family_options();
    let rig = Rig::with(|o| {
        change(o);
        options = o.family.clone();
    });
    let first = rig.default_family();
    let second = rig.db.create_family("second", options);
    let second = second.expect("created");
    rig.fill_level0(&first, 3);
    rig.fill_level0(&second, 3);
    (rig, first, second)
}

fn impatient() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.no_slowdown = true;
    options
}

/// A batch for all `families`, as bytes that came from elsewhere.
fn raw_batch(families: &[&FamilyHandle]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for family in families {
        let put = batch.put_cf(FamilyId::from(*family), b"raw", b"value");
        put.expect("put");
    }
    WriteBatch::from_bytes(batch.into_bytes()).expect("a batch")
}

#[test]
fn a_family_that_stops_its_writers_stops_nobody_else() {
    let (rig, free, behind) = two_families(|_| {});
    let write = |families: &[&FamilyHandle]| {
        let done = rig.db.write_opt(&mut raw_batch(families), &impatient());
        done.map_err(|e| e.kind())
    };
    let number = |name| rig.db.int_property(&free, name).expect("a number");
    rig.set(&behind, &STOP);
    assert_eq!(number("rocksdb.is-write-stopped"), 1);
    assert_eq!(number("rocksdb.actual-delayed-write-rate"), 0);
    rig.stop(
        &[&free, &behind],
        Some(&behind),
        L0_STOPS,
        5_000_001,
        || {
            // Beside one that waits for both.
            for n in 0..100 {
                assert_eq!(rig.put_small(&free), 0, "{n}");
            }
            assert_eq!(rig.put_all(&[&free, &free]), 0);
            assert_eq!(write(&[&free]), Ok(()));
            for families in [&[&behind][..], &[&free, &behind], &[&behind, &free]] {
                assert_eq!(write(families), Err(ErrorKind::Incomplete), "{families:?}");
            }
            let mut own = raw_batch(&[&free]);
            let how = WriteOptions::default();
            let checked = rig.db.write_if(&mut own, &how, || Ok(()));
            checked.expect("written");
            let mut both = raw_batch(&[&free, &behind]);
            let checked = rig.db.write_if(&mut both, &impatient(), || Ok(()));
            assert_eq!(checked.map_err(|e| e.kind()), Err(ErrorKind::Incomplete));
            rig.set(&behind, &NEVER);
        },
    );
    assert_eq!(number("rocksdb.is-write-stopped"), 0);
    assert_eq!(write(&[&free, &behind]), Ok(()));
    rig.check(&[&free, &behind], &[]);
    let of = |f| rig.us("cf", f, StallCause::L0FileCountLimit, StallKind::Stop);
    assert_eq!((of(&free), of(&behind)), (0, 5_000_001));
}

#[test]
fn a_family_that_slows_its_writers_slows_nobody_else() {
    let (rig, free, behind) = two_families(|o| o.family.write_buffer_size = 64 << 20);
    rig.db
        .set_db_options(&[("delayed_write_rate", "1000000")])
        .expect("set");
    rig.set(&behind, &[("level0_slowdown_writes_trigger", "2")]);
    let how = WriteOptions::default();
    let put = |family| rig.put(family, "key", 20_000, &how);
    let mut held = 0;
    for _ in 0..8 {
        held += put(&behind);
        assert_eq!(put(&free), 0, "what others owe is theirs");
    }
    assert!(held > 60_000, "{held}");
    let number = |name| rig.db.int_property(&free, name).expect("a number");
    assert!(number("rocksdb.actual-delayed-write-rate") > 1_000_000);
    assert_eq!(number("rocksdb.is-write-stopped"), 0);
    let refused = |families: &[&FamilyHandle]| {
        let done = rig.db.write_opt(&mut raw_batch(families), &impatient());
        done.is_err_and(|e| e.kind() == ErrorKind::Incomplete)
    };
    assert!(refused(&[&behind]) && refused(&[&free, &behind]) && !refused(&[&free]));
    // Of a batch for both, the one that is behind takes its part: a small one here.
    rig.clock.advance(1_000_000);
    let mut batch = WriteBatch::new();
    let bytes = vec![b'x'; 1 << 20];
    let put_cf = |b: &mut WriteBatch, f, v: &[u8]| b.put_cf(FamilyId::from(f), b"k", v);
    put_cf(&mut batch, &free, &bytes).expect("put");
    put_cf(&mut batch, &behind, b"small").expect("put");
    put_cf(&mut batch, &free, &bytes).expect("put");
    rig.db.write(&mut batch).expect("written");
    assert!(!refused(&[&behind]), "nothing much is owed");
    rig.check(&[&free, &behind], &[]);
    let of = |f| rig.us("cf", f, StallCause::L0FileCountLimit, StallKind::Delay);
    assert_eq!((of(&free), of(&behind)), (0, held));
}

/// A writer has passed its gate and waits for the log, or has not come as far: the gate closes
/// before it gets there.
#[test]
fn who_waits_for_a_family_lets_others_in_the_queue_pass() {
    let (rig, free, behind) = two_families(|_| {});
    let short = Duration::from_millis(100);
    std::thread::scope(|scope| {
        let mut batch = raw_batch(&[&free]);
        let mut writers = Vec::new();
        let how = WriteOptions::default();
        let held_up = rig.db.write_if(&mut batch, &how, || {
            writers.push(scope.spawn(|| rig.put_small(&behind)));
            std::thread::sleep(short);
            writers.push(scope.spawn(|| rig.put_all(&[&free, &behind])));
            std::thread::sleep(short);
            writers.push(scope.spawn(|| rig.put_small(&free)));
            std::thread::sleep(short);
            let stop = scope.spawn(|| rig.set(&behind, &STOP));
            stop.join().expect("no panic");
            Ok(())
        });
        held_up.expect("written");
        let passed = writers.pop().expect("it was started");
        assert_eq!(passed.join().expect("no panic"), 0);
        rig.await_times("cf", &behind, L0_STOPS, 2);
        assert!(writers.iter().all(|w| !w.is_finished()));
        assert_eq!(rig.put_small(&free), 0);
        rig.clock.advance(70_000);
        rig.set(&behind, &NEVER);
        for writer in writers {
            assert_eq!(writer.join().expect("no panic"), 70_000);
        }
    });
    // Both waited, in the same time.
    rig.measured.store(70_000, Ordering::SeqCst);
    rig.check(&[&free, &behind], &[]);
    assert_eq!(rig.figure("cf", &behind, &format!("{L0_STOPS}.times")), 2);
}

#[test]
fn who_will_not_wait_is_told_when_the_gate_closes_before_the_log() {
    let (rig, free, behind) = two_families(|_| {});
    std::thread::scope(|scope| {
        let mut batch = raw_batch(&[&free]);
        let mut writer = None;
        let how = WriteOptions::default();
        let held_up = rig.db.write_if(&mut batch, &how, || {
            writer = Some(scope.spawn(|| {
                let mut batch = raw_batch(&[&free, &behind]);
                let done = rig.db.write_opt(&mut batch, &impatient());
                (done.map_err(|e| e.kind()), batch.count())
            }));
            std::thread::sleep(Duration::from_millis(100));
            let stop = scope.spawn(|| rig.set(&behind, &STOP));
            stop.join().expect("no panic");
            Ok(())
        });
        held_up.expect("written");
        let told = writer.expect("it was started").join().expect("no panic");
        assert_eq!(told, (Err(ErrorKind::Incomplete), 2), "and has its batch");
    });
    assert_eq!(rig.db.get_cf(&behind, "raw").expect("read"), None);
    rig.check(&[&free, &behind], &[]);
}

#[test]
fn with_atomic_flush_families_are_one() {
    let (rig, first, second) = two_families(|o| o.db.atomic_flush = true);
    rig.set(&second, &STOP);
    let refused = rig.db.put_opt(&first, "key", "value", &impatient());
    assert_eq!(refused.map_err(|e| e.kind()), Err(ErrorKind::Incomplete));
    rig.stop(&[&first], Some(&second), L0_STOPS, 123_456, || {
        rig.set(&second, &NEVER);
    });
    rig.check(&[&first, &second], &[]);
    // So is what they owe.
    rig.db
        .set_db_options(&[("delayed_write_rate", "1000000")])
        .expect("set");
    rig.set(&second, &[("level0_slowdown_writes_trigger", "2")]);
    rig.put(&first, "key", 20_000, &WriteOptions::default());
    let held = rig.put_small(&first);
    assert!(held > 5_000, "{held}");
    let delay = rig.us(
        "cf",
        &second,
        StallCause::L0FileCountLimit,
        StallKind::Delay,
    );
    assert_eq!(delay, held);
    rig.check(&[&first, &second], &[]);
}

/// Logs above their limit that a stopped family keeps are everybody's concern.
#[test]
fn logs_without_end_stop_everybody() {
    let (rig, free, behind) = two_families(|o| {
        o.db.max_total_wal_size = 600_000;
        o.db.max_background_jobs = 8;
    });
    let stops = "memtable-limit-stops";
    // Nothing is flushed, and the family's memtables are full.
    rig.db.pause_background_work().expect("paused");
    let fill = || rig.db.put_opt(&behind, "key", [b'x'; 1000], &impatient());
    while fill().is_ok() {}
    let how = WriteOptions::default();
    rig.set(&free, &[("max_write_buffer_number", "100")]);
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut took = 0;
            while took == 0 {
                took = rig.put(&free, "key", 1000, &how);
                written.fetch_add(1000, Ordering::SeqCst);
            }
            took
        });
        rig.await_times("cf", &behind, stops, 1);
        rig.clock.advance(2_500_000);
        let written = written.load(Ordering::SeqCst);
        assert!((300_000..600_000).contains(&written), "{written}");
        let refused = rig.db.put_opt(&free, "key", "value", &impatient());
        assert_eq!(refused.map_err(|e| e.kind()), Err(ErrorKind::Incomplete));
        rig.db.continue_background_work();
        assert_eq!(writer.join().expect("no panic"), 2_500_000);
    });
    rig.check(&[&free, &behind], &[]);
    let of = |f| rig.us("cf", f, StallCause::MemtableLimit, StallKind::Stop);
    assert_eq!((of(&free), of(&behind)), (0, 2_500_000));
}

#[test]
fn who_waits_for_a_family_goes_on_when_it_is_dropped() {
    let (rig, free, behind) = two_families(|_| {});
    rig.set(&behind, &STOP);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let done = rig.db.put_cf(&behind, "key", "value");
            assert!(done.is_ok() || rig.db.family("second").is_none());
        });
        rig.await_times("cf", &behind, L0_STOPS, 1);
        rig.db.drop_family(&behind).expect("dropped");
        writer.join().expect("no panic");
    });
    assert_eq!(
        rig.db.int_property(&free, "rocksdb.is-write-stopped"),
        Some(0)
    );
    assert_eq!(rig.put_small(&free), 0);
}
