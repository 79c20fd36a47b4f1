//! How flushes and compactions share the limit on jobs.

use super::*;
use crate::observe::StallCause;
use crate::options::FlushOptions;
use crate::options::JobLimits;
use crate::{Db, FamilyHandle, Options};
use esker_env::Env;
use esker_lsm::load::LoadCause;
use esker_lsm::overload::REST_US;
use esker_lsm::pace::{Limit, UNLIMITED};
use std::time::{Duration, Instant};

fn jobs(flushes_writing: usize, compactions: usize) -> Jobs {
    Jobs {
        flushes_writing,
        compactions,
        ..Jobs::default()
    }
}

#[test]
fn flushes_take_over_what_compactions_leave() {
    let limits = JobLimits {
        flushes: 1,
        most_flushes: 2,
        compactions: 2,
    };
    let may = |flushes, compactions| {
        let jobs = jobs(flushes, compactions);
        (jobs.may_flush(&limits), jobs.may_compact(&limits))
    };
    assert_eq!(may(0, 0), (true, true));
    assert_eq!(may(0, 2), (true, false), "a flush has a place of its own");
    assert_eq!(may(1, 1), (true, true));
    assert_eq!(may(1, 2), (false, false));
    assert_eq!(may(2, 0), (false, true));
    assert_eq!(may(2, 1), (false, false), "three run, which is all");
}

#[test]
fn a_limit_on_flushes_that_was_given_holds() {
    let limits = JobLimits {
        flushes: 1,
        most_flushes: 1,
        compactions: 8,
    };
    assert!(jobs(0, 0).may_flush(&limits));
    assert!(!jobs(1, 0).may_flush(&limits));
    assert!(jobs(1, 7).may_compact(&limits));
}

#[test]
fn writers_are_throttled_or_write_or_rest() {
    let env = Env::in_memory();
    let options = Options::new().create_if_missing(true).env(env);
    let db = Db::open("/db", options).expect("opened");
    let family = db.default_family();
    let (gate, now_us) = (&family.gate, 1_000);
    let set = |stop, bytes_per_s| {
        let cause = LoadCause::Runs;
        let limit = Limit { cause, bytes_per_s };
        gate.set(&gate.lock(), now_us, stop, limit, false);
    };
    assert_eq!(family.writer_state(now_us).0, WriterState::Resting);
    family.note_flush(now_us);
    assert_eq!(family.writer_state(now_us).0, WriterState::Writing);
    let later = now_us + REST_US;
    assert_eq!(family.writer_state(later - 1).0, WriterState::Writing);
    assert_eq!(family.writer_state(later).0, WriterState::Resting);
    set(None, 1e6);
    let state = family.writer_state(later).0;
    assert_eq!(state, WriterState::Resting, "no writer has waited yet");
    gate.note_held(later);
    assert_eq!(family.writer_state(later).0, WriterState::Writing);
    set(None, UNLIMITED);
    assert_eq!(family.writer_state(later).0, WriterState::Resting);
    set(Some(StallCause::MemtableLimit), UNLIMITED);
    assert_eq!(family.writer_state(later).0, WriterState::Writing);
    set(None, UNLIMITED);
}

/// A database in memory with `families` families, each with four tables.
fn with_families(count: usize) -> (Db, Vec<FamilyHandle>) {
    let env = Env::in_memory();
    let options = Options::new().create_if_missing(true).env(env);
    let family = options.family.clone();
    let db = Db::open("/db", options).expect("opened");
    let made = (0..count).map(|n| db.create_family(&format!("f{n}"), family.clone()));
    let families: Vec<_> = made.map(|f| f.expect("created")).collect();
    for _ in 0..3 {
        for family in &families {
            put_and_flush(&db, family);
        }
    }
    // Until no family waits for its writers to rest.
    std::thread::sleep(Duration::from_micros(REST_US + 1_000_000));
    db.wait_for_compaction().expect("in shape");
    (db, families)
}

fn put_and_flush(db: &Db, family: &FamilyHandle) {
    db.put_cf(family, "key", "value").expect("put");
    db.flush_cf(family, &FlushOptions::default())
        .expect("flushed");
}

/// Looks at trees, and assessments of them, for a flush of one of this many families.
fn work_of_a_flush(count: usize) -> (u64, u64) {
    let (db, families) = with_families(count);
    let core = db.core();
    let now = || {
        let assessed: u64 = families.iter().map(|f| f.0.assessments()).sum();
        (core.background.jobs.lock().queue.looks(), assessed)
    };
    let before = now();
    let flushes = 10;
    for family in families.iter().cycle().take(flushes as usize) {
        put_and_flush(&db, family);
    }
    db.wait_for_compaction().expect("in shape");
    let after = now();
    (
        (after.0 - before.0).div_ceil(flushes),
        (after.1 - before.1).div_ceil(flushes),
    )
}

/// Every family was looked at, and its level sizes searched for, whenever a job might start.
#[test]
fn a_flush_looks_at_its_own_family_however_many_there_are() {
    let (looks, assessed) = work_of_a_flush(4);
    let (looks_of_many, assessed_of_many) = work_of_a_flush(200);
    assert!(looks > 0 && assessed > 0);
    assert!(looks_of_many <= 12, "{looks} and {looks_of_many}");
    assert!(assessed_of_many <= 4, "{assessed} and {assessed_of_many}");
}

/// Families, and entries of the index of logs, that are visited for a flush of one of `count`
/// families with data in memory; and how many memtables stand in the index at the end.
fn visits_of_a_flush(count: usize) -> (u64, u64, usize) {
    let (db, families) = with_families(count);
    for family in &families {
        db.put_cf(family, "key", "value").expect("put");
    }
    let core = db.core();
    let (set, logs) = (&core.trees.families, &core.trees.families.logs);
    let before = (set.visits(), logs.visits());
    let flushes = 20;
    // From the end, so that the oldest log is needed all the time.
    for family in families.iter().rev().cycle().take(flushes) {
        put_and_flush(&db, family);
    }
    let after = (set.visits(), logs.visits());
    let flushes = flushes as u64;
    (
        (after.0 - before.0) / flushes,
        (after.1 - before.1).div_ceil(flushes),
        logs.len(),
    )
}

/// Neither the switch of memtables nor the flush goes through all families.
#[test]
fn a_flush_visits_no_other_family() {
    let (families, entries, held) = visits_of_a_flush(4);
    assert_eq!((families, held), (0, 0), "all were flushed");
    assert!(entries <= 8, "{entries}");
    let (families, entries, held) = visits_of_a_flush(200);
    assert_eq!((families, held), (0, 180));
    assert!(entries <= 8, "{entries}");
}

/// The logs are too long: of the families that keep the oldest one none is flushed twice, and
/// none of the others is visited.
#[test]
fn long_logs_are_shortened_by_flushing_those_that_keep_the_oldest() {
    let env = Env::in_memory();
    let mut options = Options::new().create_if_missing(true).env(env);
    options.db.max_total_wal_size = 64 << 10;
    let family = options.family.clone();
    let db = Db::open("/db", options).expect("opened");
    let made = (0..100).map(|n| db.create_family(&format!("f{n}"), family.clone()));
    let families: Vec<_> = made.map(|f| f.expect("created")).collect();
    for family in &families[..3] {
        db.put_cf(family, "key", "value").expect("put");
    }
    let core = db.core();
    let before = core.trees.families.visits();
    let value = vec![7; 4 << 10];
    let writer = families.last().expect("a hundred");
    for n in 0..100_u32 {
        db.put_cf(writer, n.to_be_bytes(), &value).expect("put");
    }
    for family in &families[..3] {
        let view = family.0.view_guard();
        assert!(
            view.mem.is_empty(),
            "{} keeps the oldest log",
            family.name()
        );
    }
    db.flush_cf(writer, &FlushOptions::default())
        .expect("flushed");
    // The flushes of the other families may still run.
    let alive = || core.writes.lock().alive().count();
    let began = Instant::now();
    while core.trees.families.logs.len() > 0 || alive() > 1 {
        assert!(began.elapsed() < Duration::from_secs(60), "a log is kept");
        // The thread that deletes them is patient. A log that two flushes at one time each saw held
        // by the other goes with the next flush.
        std::thread::sleep(Duration::from_millis(50));
        db.put_cf(writer, "last", "value").expect("put");
        db.flush_cf(writer, &FlushOptions::default())
            .expect("flushed");
    }
    assert_eq!(core.trees.families.visits(), before);
    assert_eq!(alive(), 1);
}

/// While one stays wanted the database is not idle: waiting for compactions would not end.
#[test]
fn a_dropped_family_is_not_switched_for_scans() {
    let (db, families) = with_families(1);
    let core = db.core();
    db.drop_family(&families[0]).expect("dropped");
    let id = families[0].0.id;
    core.background.jobs.lock().switch_for_scans.insert(id);
    switch_for_scans(core);
    let end = Instant::now() + Duration::from_secs(60);
    while !is_idle(core) {
        assert!(Instant::now() < end, "{id:?} is wanted still");
        std::thread::yield_now();
    }
}

#[test]
fn the_slot_of_a_merge_that_yields_is_for_urgent_jobs_alone() {
    let limits = JobLimits {
        flushes: 1,
        most_flushes: 2,
        compactions: 1,
    };
    let mut jobs = jobs(1, 1);
    let may = |jobs: &Jobs| {
        let (usual, urgent) = (jobs.may_compact(&limits), jobs.may_relieve(&limits));
        (usual, urgent, jobs.may_flush(&limits))
    };
    assert_eq!(may(&jobs), (false, false, false));
    jobs.yielding = 1;
    assert_eq!(may(&jobs), (false, true, true));
    jobs.compactions = 2;
    assert_eq!(may(&jobs), (false, false, false), "level 0 has it");
    jobs.compactions = 1;
    jobs.flushes_writing = 2;
    assert_eq!(may(&jobs), (false, false, false), "a flush has it");
}
