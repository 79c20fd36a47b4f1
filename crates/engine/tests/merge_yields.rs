//! A merge of deep levels gives its slot to level 0, and goes on when it may or has to.

mod common;

use common::{Ahead, until};
use esker::env::{Clock, Env};
use esker::observe::{CompactionInfo, EventListener};
use esker::{
    CompactRangeOptions, CompactionFilter, Db, Decision, ErrorKind, FilterValue, FlushOptions,
    Options, Result,
};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Keys of the deep levels. Their values are 4 KB, of which a step of a merge writes 64.
const KEYS: u32 = 400;

/// Holds merges that write to some levels, after their first entries.
#[derive(Default)]
struct Hold {
    /// Levels that are held, and those that merges stand still at.
    levels: Mutex<(Vec<u8>, Vec<u8>)>,
    changed: Condvar,
}

impl Hold {
    fn set(&self, levels: &[u8]) {
        self.levels.lock().expect("nobody panics").0 = levels.to_vec();
        self.changed.notify_all();
    }

    fn is_held(&self, level: u8) -> bool {
        let levels = self.levels.lock().expect("nobody panics");
        levels.1.contains(&level)
    }
}

impl CompactionFilter for Hold {
    fn name(&self) -> &str {
        "Hold"
    }
    fn filter(&self, level: u8, key: &[u8], _: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        let mut levels = self.levels.lock().expect("nobody panics");
        if key.ends_with(b"5") && levels.0.contains(&level) {
            levels.1.push(level);
            while levels.0.contains(&level) {
                levels = self.changed.wait(levels).expect("nobody panics");
            }
            levels.1.retain(|l| *l != level);
        }
        Decision::Keep
    }
}

/// Merges that ended: their levels, and the kinds of their errors.
#[derive(Default)]
struct Ended(Mutex<Vec<(u8, u8, Option<ErrorKind>)>>);

impl Ended {
    fn all(&self) -> Vec<(u8, u8, Option<ErrorKind>)> {
        self.0.lock().expect("nobody panics").clone()
    }

    fn has(&self, from: u8, to: u8) -> bool {
        self.all().iter().any(|(f, t, _)| (*f, *t) == (from, to))
    }
}

impl EventListener for Ended {
    fn on_compaction_completed(&self, info: &CompactionInfo) {
        if !info.is_trivial_move && !info.is_manual {
            let kind = info.error.as_ref().map(esker::Error::kind);
            let levels = (info.base_input_level.0, info.output_level.0);
            let mut ended = self.0.lock().expect("nobody panics");
            ended.push((levels.0, levels.1, kind));
        }
    }
}

/// A database whose one slot for compactions has a merge from level 2 to level 3 that yields to one
/// of level 0.
struct Yielding {
    db: Db,
    hold: Arc<Hold>,
    ended: Arc<Ended>,
    clock: Arc<Ahead>,
}

fn key(n: u32) -> String {
    format!("k{n:05}")
}

impl Yielding {
    /// The merge of level 0 stands still in it, where that is asked for.
    fn begin(holds_level0: bool) -> Result<Self> {
        let (hold, ended) = (Arc::new(Hold::default()), Arc::new(Ended::default()));
        let mut env = Env::in_memory();
        let clock = Ahead::of(&env);
        env.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let mut options = Options::new().create_if_missing(true).env(env).set_all(
            "max_background_jobs=2;disable_auto_compactions=true;compression=kNoCompression;\
             num_levels=4;level_compaction_dynamic_level_bytes=false;max_bytes_for_level_base=100000;\
             max_bytes_for_level_multiplier=1;level0_file_num_compaction_trigger=2;\
             level0_slowdown_writes_trigger=4;level0_stop_writes_trigger=40;write_buffer_size=67108864",
        )?;
        options.family.compaction_filter = Some(Arc::clone(&hold) as Arc<dyn CompactionFilter>);
        options
            .db
            .listeners
            .push(Arc::clone(&ended) as Arc<dyn EventListener>);
        let db = Db::open("/db", options)?;
        let family = db.default_family_handle();
        for level in [3, 2] {
            for n in 0..KEYS {
                db.put(key(n), vec![level; 4096])?;
            }
            db.flush()?;
            let files = db.live_files_metadata().into_iter();
            let upper = files.filter(|f| f.level == 0);
            let upper: Vec<PathBuf> = upper.map(|f| PathBuf::from(f.name)).collect();
            db.compact_files(&family, &upper, level)?;
        }
        hold.set(&[3]);
        db.set_options(&family, &[("disable_auto_compactions", "false")])?;
        until("the deep merge begins", || hold.is_held(3));
        for n in 0..4 {
            db.put(key(n), "newer")?;
            db.put(key(5), "newer")?;
            let mut how = FlushOptions::default();
            how.allow_write_stall = true;
            db.flush_cf(&family, &how)?;
        }
        assert!(!ended.has(0, 1), "the deep merge has the slot");
        hold.set(if holds_level0 { &[1] } else { &[] });
        Ok(Yielding {
            db,
            hold,
            ended,
            clock,
        })
    }

    /// Waits until the deep merge yields to that of level 0, which stands still.
    fn wait_for_level0(&self) {
        until("level 0 goes down", || self.hold.is_held(1));
        assert!(!self.ended.has(2, 3));
    }

    fn check(&self) -> Result<()> {
        for n in 0..KEYS {
            let value = self.db.get(key(n))?.expect("it was put");
            let is_newer = n < 4 || n == 5;
            let expected: &[u8] = if is_newer { b"newer" } else { &[2; 4096] };
            assert!(value == expected, "{n}");
        }
        Ok(())
    }

    fn number(&self, name: &str) -> u64 {
        let text = self.db.property(&format!("rocksdb.{name}"));
        text.expect("a property").parse().expect("a number")
    }
}

#[test]
fn a_deep_merge_yields_to_level0_and_ends_after_it() -> Result<()> {
    let tree = Yielding::begin(false)?;
    tree.db.wait_for_compaction()?;
    let ended = tree.ended.all();
    let at = |from, to| ended.iter().position(|e| *e == (from, to, None));
    let (level0, deep) = (at(0, 1), at(2, 3));
    assert!(level0.is_some() && deep.is_some(), "{ended:?}");
    assert!(level0 < deep, "{ended:?}");
    tree.check()
}

#[test]
fn a_merge_that_yields_has_no_slot_and_takes_it_back() -> Result<()> {
    let tree = Yielding::begin(true)?;
    tree.wait_for_level0();
    assert_eq!(
        tree.number("num-running-compactions"),
        2,
        "one of them waits"
    );
    std::thread::sleep(Duration::from_millis(600));
    assert!(!tree.ended.has(2, 3), "it waits for level 0");
    tree.hold.set(&[]);
    until("it goes on", || tree.ended.has(2, 3));
    assert!(tree.number("esker.merge-yields") >= 1);
    assert!(tree.number("esker.merge-yield-micros") >= 500_000);
    tree.check()
}

#[test]
fn after_a_while_it_goes_on_in_any_case() -> Result<()> {
    let tree = Yielding::begin(true)?;
    tree.wait_for_level0();
    tree.clock.by_us.store(44_000_000, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(300));
    assert!(!tree.ended.has(2, 3), "it waits for level 0");
    tree.clock.by_us.store(46_000_000, Ordering::SeqCst);
    until("it goes on", || tree.ended.has(2, 3));
    assert!(tree.hold.is_held(1), "level 0 still goes down");
    tree.hold.set(&[]);
    tree.db.wait_for_compaction()?;
    tree.check()
}

#[test]
fn a_caller_who_waits_for_jobs_to_end_makes_it_go_on() -> Result<()> {
    let tree = Yielding::begin(true)?;
    tree.wait_for_level0();
    std::thread::scope(|scope| {
        let pause = scope.spawn(|| tree.db.pause_background_work());
        until("it goes on", || tree.ended.has(2, 3));
        assert!(tree.hold.is_held(1), "level 0 still goes down");
        tree.hold.set(&[]);
        pause.join().expect("no panic")
    })?;
    tree.db.continue_background_work();
    tree.check()
}

#[test]
fn an_exclusive_manual_compaction_makes_it_go_on() -> Result<()> {
    let tree = Yielding::begin(true)?;
    tree.wait_for_level0();
    std::thread::scope(|scope| {
        let compacted = scope.spawn(|| {
            let mut how = CompactRangeOptions::default();
            how.exclusive_manual_compaction = true;
            how.allow_write_stall = true;
            let family = tree.db.default_family_handle();
            tree.db.compact_range_opt(&family, None, None, &how)
        });
        until("it goes on", || tree.ended.has(2, 3));
        tree.hold.set(&[]);
        compacted.join().expect("no panic")
    })?;
    tree.check()
}

#[test]
fn compactions_that_are_aborted_and_databases_that_close_end_it() -> Result<()> {
    for closes in [false, true] {
        let tree = Yielding::begin(true)?;
        tree.wait_for_level0();
        std::thread::scope(|scope| {
            let end = scope.spawn(|| {
                if closes {
                    tree.db.close()
                } else {
                    tree.db.abort_all_compactions();
                    Ok(())
                }
            });
            until("it ends", || tree.ended.has(2, 3));
            assert!(tree.hold.is_held(1), "level 0 still goes down");
            let kind = tree.ended.all()[0].2;
            let expected = if closes {
                ErrorKind::ShutdownInProgress
            } else {
                ErrorKind::Incomplete
            };
            assert_eq!(kind, Some(expected));
            tree.hold.set(&[]);
            end.join().expect("no panic")
        })?;
        if !closes {
            tree.db.resume_all_compactions();
            tree.db.wait_for_compaction()?;
            tree.check()?;
        }
    }
    Ok(())
}
