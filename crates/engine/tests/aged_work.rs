//! Compactions that the age of files makes due: a few at a time, and in the hours of little load.

mod common;

use common::{SetClock, until};
use esker::env::{Clock, Env};
use esker::observe::{CompactionInfo, CompactionReason, EventListener};
use esker::{CompactionFilter, Db, Decision, ErrorKind, FilterValue, Options, Result};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
const MIDNIGHT: u64 = 20_000 * DAY;

/// Counts periodic compactions.
#[derive(Default)]
struct Periodic(AtomicUsize);

impl EventListener for Periodic {
    fn on_compaction_completed(&self, info: &CompactionInfo) {
        let is_periodic = info.reason == CompactionReason::PeriodicCompaction;
        self.0.fetch_add(usize::from(is_periodic), Ordering::SeqCst);
    }
}

fn world() -> (Env, Arc<SetClock>) {
    let mut env = Env::in_memory();
    let clock = Arc::new(SetClock {
        real: Arc::clone(&env.clock),
        unix: AtomicU64::new(MIDNIGHT + 12 * HOUR),
    });
    env.clock = Arc::clone(&clock) as Arc<dyn Clock>;
    (env, clock)
}

/// A database with one file, written at noon, that is old after two days.
fn with_old_file(hours: &str) -> Result<(Db, Arc<SetClock>, Arc<Periodic>)> {
    let (env, clock) = world();
    let told = Arc::new(Periodic::default());
    let mut options = Options::new()
        .create_if_missing(true)
        .env(env)
        .set("periodic_compaction_seconds", &(2 * DAY).to_string())?
        .set("daily_offpeak_time_utc", hours)?;
    options
        .db
        .listeners
        .push(Arc::clone(&told) as Arc<dyn EventListener>);
    let db = Db::open("/db", options)?;
    db.put("key", "value")?;
    db.compact_range(None, None)?;
    Ok((db, clock, told))
}

/// Sets the clock to `hours` after the first midnight and lets the tree get into shape; how many
/// files were rewritten for their age so far.
fn at(seconds: u64, (db, clock, told): &(Db, Arc<SetClock>, Arc<Periodic>)) -> Result<usize> {
    clock.unix.store(MIDNIGHT + seconds, Ordering::SeqCst);
    db.wait_for_compaction()?;
    Ok(told.0.load(Ordering::SeqCst))
}

#[test]
fn in_hours_of_little_load_files_are_rewritten_that_come_due_before_the_next() -> Result<()> {
    let tree = with_old_file("02:00-04:00")?;
    assert_eq!(at(DAY + 3 * HOUR, &tree)?, 0, "the next hours come before");
    assert_eq!(at(2 * DAY + 2 * HOUR - 1, &tree)?, 0);
    assert_eq!(at(2 * DAY + 2 * HOUR, &tree)?, 1);
    assert_eq!(at(2 * DAY + 4 * HOUR, &tree)?, 1, "it is new");
    assert_eq!(at(3 * DAY + 3 * HOUR, &tree)?, 1);
    // In spite of the hours nothing gets older than the period.
    let late = with_old_file("02:00-04:00")?;
    assert_eq!(at(2 * DAY + 12 * HOUR, &late)?, 0);
    assert_eq!(at(2 * DAY + 12 * HOUR + 2, &late)?, 1);
    Ok(())
}

#[test]
fn without_such_hours_files_are_rewritten_when_they_are_old() -> Result<()> {
    let tree = with_old_file("")?;
    assert_eq!(at(2 * DAY + 2 * HOUR, &tree)?, 0);
    assert_eq!(at(2 * DAY + 12 * HOUR + 2, &tree)?, 1);
    Ok(())
}

#[test]
fn the_hours_change_while_the_database_is_open() -> Result<()> {
    let tree = with_old_file("10:00-11:00")?;
    assert_eq!(at(2 * DAY + 2 * HOUR, &tree)?, 0);
    for (wrong, why) in [
        ("02:00", "should be set in the format HH:mm-HH:mm"),
        ("02:00-24:00", "should be set in the format HH:mm-HH:mm"),
        ("02:00-2:00", "cannot be the same"),
    ] {
        let changes = [("daily_offpeak_time_utc", wrong)];
        let refused = tree.0.set_db_options(&changes).expect_err(wrong);
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(refused.to_string().contains(why), "{refused}");
        let (env, _) = world();
        let options = Options::new().create_if_missing(true).env(env);
        let options = options.set("daily_offpeak_time_utc", wrong)?;
        let refused = Db::open("/db", options).expect_err(wrong);
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
        assert!(refused.to_string().contains(why), "{refused}");
    }
    assert_eq!(at(2 * DAY + 2 * HOUR, &tree)?, 0);
    let changes = [("daily_offpeak_time_utc", "23:00-04:00")];
    tree.0.set_db_options(&changes)?;
    assert_eq!(at(2 * DAY + 2 * HOUR, &tree)?, 1);
    Ok(())
}

/// Holds compactions to the last level.
#[derive(Default)]
struct Hold {
    is_on: Mutex<bool>,
    changed: Condvar,
}

impl CompactionFilter for Hold {
    fn name(&self) -> &str {
        "Hold"
    }
    fn filter(&self, _: u8, _: &[u8], _: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        let mut is_on = self.is_on.lock().expect("nobody panics");
        while *is_on {
            is_on = self.changed.wait(is_on).expect("nobody panics");
        }
        Decision::Keep
    }
}

#[test]
fn files_that_are_old_at_one_time_are_rewritten_one_by_one_outside_such_hours() -> Result<()> {
    let (env, clock) = world();
    let hold = Arc::new(Hold::default());
    let mut options = Options::new()
        .create_if_missing(true)
        .env(env)
        .set("max_background_jobs", "8")?
        .set("periodic_compaction_seconds", "100")?;
    options.family.compaction_filter = Some(Arc::clone(&hold) as Arc<dyn CompactionFilter>);
    let db = Db::open("/db", options.clone())?;
    for name in ["a", "b", "c"] {
        let family = db.create_family(name, options.family.clone())?;
        db.put_cf(&family, "key", "value")?;
        db.compact_range_opt(&family, None, None, &esker::CompactRangeOptions::default())?;
    }
    *hold.is_on.lock().expect("nobody panics") = true;
    clock.unix.fetch_add(102, Ordering::SeqCst);
    let running = || db.property("rocksdb.num-running-compactions");
    until("one of them begins", || running().as_deref() == Some("1"));
    // The clock ticks meanwhile.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(running().as_deref(), Some("1"));
    db.set_db_options(&[("daily_offpeak_time_utc", "0:00-23:59")])?;
    until("all begin", || running().as_deref() == Some("3"));
    *hold.is_on.lock().expect("nobody panics") = false;
    hold.changed.notify_all();
    db.wait_for_compaction()?;
    assert_eq!(running().as_deref(), Some("0"));
    Ok(())
}
