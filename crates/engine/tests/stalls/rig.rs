//! A database on a clock that stands still, and what its writers measured.

use crate::common::until;
use esker::env::Clock;
use esker::observe::{Logger, StallCause, StallKind, Statistics, Ticker};
use esker::options::{InfoLogLevel, OptionSet};
use esker::{
    Db, Env, FamilyHandle, FamilyId, FamilyOptions, FlushOptions, Options, WriteBatch, WriteOptions,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Virtual {
    now_us: AtomicU64,
    /// Sleeps do not end, and no time passes.
    pub(crate) frozen: AtomicBool,
    pub(crate) asleep: AtomicU64,
}

impl Virtual {
    pub(crate) fn advance(&self, us: u64) {
        self.now_us.fetch_add(us, Ordering::SeqCst);
    }
}

impl Clock for Virtual {
    fn now_us(&self) -> u64 {
        self.now_us.load(Ordering::SeqCst)
    }
    fn now_ns(&self) -> u64 {
        self.now_us() * 1000
    }
    fn unix_us(&self) -> u64 {
        self.now_us()
    }
    fn sleep(&self, duration: Duration) {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        until("the clock goes on", || !self.frozen.load(Ordering::SeqCst));
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        self.advance(duration.as_micros() as u64);
    }
}

/// Lines of the LOG.
#[derive(Default)]
pub(crate) struct Lines(Mutex<Vec<String>>);

impl Logger for Lines {
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Info
    }
    fn log(&self, _level: InfoLogLevel, line: &str) {
        let mut lines = self.0.lock().expect("no panic under the lock");
        lines.push(line.to_owned());
    }
}

impl Lines {
    pub(crate) fn of_stalls(&self) -> Vec<String> {
        let lines = self.0.lock().expect("no panic under the lock");
        let stalls = lines.iter().filter(|l| l.contains("a stall ended"));
        stalls.cloned().collect()
    }
}

/// A database on a clock of its own, and what its writers measured.
pub(crate) struct Rig {
    pub(crate) db: Db,
    pub(crate) clock: Arc<Virtual>,
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) log: Arc<Lines>,
    /// Microseconds that puts took.
    pub(crate) measured: AtomicU64,
}

pub(crate) const NEVER: [(&str, &str); 5] = [
    ("level0_file_num_compaction_trigger", "2"),
    ("level0_slowdown_writes_trigger", "1000"),
    ("level0_stop_writes_trigger", "1000"),
    ("soft_pending_compaction_bytes_limit", "0"),
    ("hard_pending_compaction_bytes_limit", "0"),
];

pub(crate) fn family_options() -> FamilyOptions {
    let mut options = Options::new().family;
    for (name, value) in NEVER {
        options.set(name, value).expect("an option");
    }
    options.write_buffer_size = 64 << 10;
    options.max_write_buffer_number = 2;
    options
}

impl Rig {
    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Rig {
        let clock = Arc::new(Virtual::default());
        clock.advance(1_000_000);
        let statistics = Statistics::new();
        let mut options = Options::new().create_if_missing(true).env(Env {
            clock: clock.clone(),
            ..Env::in_memory()
        });
        options.family = family_options();
        options.db.statistics = Some(Arc::clone(&statistics));
        let log = Arc::new(Lines::default());
        options.db.info_log = Some(log.clone());
        change(&mut options);
        let db = Db::open("/db", options).expect("opens");
        db.abort_all_compactions();
        Rig {
            db,
            clock,
            statistics,
            log,
            measured: AtomicU64::new(0),
        }
    }

    pub(crate) fn new() -> Rig {
        Self::with(|_| {})
    }

    pub(crate) fn default_family(&self) -> FamilyHandle {
        self.db.default_family_handle()
    }

    /// Writes, and measures how long that took.
    pub(crate) fn put(
        &self,
        family: &FamilyHandle,
        key: &str,
        bytes: usize,
        how: &WriteOptions,
    ) -> u64 {
        let start = self.clock.now_us();
        self.db
            .put_opt(family, key, vec![b'x'; bytes], how)
            .expect("written");
        let took = self.clock.now_us() - start;
        self.measured.fetch_add(took, Ordering::SeqCst);
        took
    }

    pub(crate) fn put_small(&self, family: &FamilyHandle) -> u64 {
        self.put(family, "key", 10, &WriteOptions::default())
    }

    /// Writes one batch to all `families`, and measures how long that took.
    pub(crate) fn put_all(&self, families: &[&FamilyHandle]) -> u64 {
        let mut batch = WriteBatch::new();
        for family in families {
            let put = batch.put_cf(FamilyId::from(*family), b"key", b"value");
            put.expect("put");
        }
        let start = self.clock.now_us();
        self.db.write(&mut batch).expect("written");
        let took = self.clock.now_us() - start;
        self.measured.fetch_add(took, Ordering::SeqCst);
        took
    }

    /// Writes until something holds the writer back: for how long.
    pub(crate) fn put_until_held(&self, family: &FamilyHandle) -> u64 {
        let mut took = 0;
        while took == 0 {
            took = self.put(family, "key", 1000, &WriteOptions::default());
        }
        took
    }

    /// This many tables at level 0, which no compaction takes away.
    pub(crate) fn fill_level0(&self, family: &FamilyHandle, tables: usize) {
        for n in 0..tables {
            let took = self.put(family, &format!("{n}"), 1000, &WriteOptions::default());
            assert_eq!(took, 0, "nothing holds writers back yet");
            self.db
                .flush_cf(family, &FlushOptions::default())
                .expect("flushed");
        }
    }

    pub(crate) fn set(&self, family: &FamilyHandle, changes: &[(&str, &str)]) {
        self.db.set_options(family, changes).expect("options");
    }

    /// A figure of the ledger: of the database (`db`) or the family (`cf`).
    pub(crate) fn figure(&self, of: &str, family: &FamilyHandle, what: &str) -> u64 {
        let map = self.db.map_property(family, "rocksdb.esker.stalls");
        let map = map.expect("a map");
        let value = &map[&format!("{of}.{what}")];
        value.parse().expect("a number")
    }

    pub(crate) fn us(
        &self,
        of: &str,
        family: &FamilyHandle,
        cause: StallCause,
        kind: StallKind,
    ) -> u64 {
        let what = format!("{}-{}.micros", cause.name(), kind.name());
        self.figure(of, family, &what)
    }

    /// Until this many waits for the cause were begun.
    pub(crate) fn await_times(&self, of: &str, family: &FamilyHandle, cause: &str, times: u64) {
        let name = format!("{cause}.times");
        until("somebody waits", || self.figure(of, family, &name) >= times);
    }

    /// Holds a writer of one batch to all of `into` back until `release`, with `us` passing
    /// meanwhile. The wait is known in the ledger of `by` (the database's for none) as `cause`.
    pub(crate) fn stop(
        &self,
        into: &[&FamilyHandle],
        by: Option<&FamilyHandle>,
        cause: &str,
        us: u64,
        release: impl FnOnce(),
    ) {
        let (of, ledger) = by.map_or(("db", into[0]), |f| ("cf", f));
        let before = self.figure(of, ledger, &format!("{cause}.times"));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.put_all(into));
            self.await_times(of, ledger, cause, before + 1);
            self.clock.advance(us);
            assert!(!writer.is_finished());
            release();
            assert_eq!(writer.join().expect("no panic"), us, "{cause}");
        });
        let after = self.figure(of, ledger, &format!("{cause}.times"));
        assert_eq!(after, before + 1, "one wait counts once: {cause}");
    }

    /// Checks what must always hold: every cause adds up over families and what no family caused,
    /// and everything together is what writers measured and what every other place says.
    /// `of_database` has the causes that no family caused.
    pub(crate) fn check(&self, families: &[&FamilyHandle], of_database: &[StallCause]) {
        let any = families[0];
        // All that held writers back, and what RocksDB would count of it.
        let (mut total, mut stalled) = (0, 0);
        for cause in StallCause::ALL {
            for kind in StallKind::ALL {
                let whole = self.us("db", any, cause, kind);
                let parts = families.iter().map(|f| self.us("cf", f, cause, kind));
                let parts: u64 = parts.sum();
                let rest = whole - parts;
                if of_database.contains(&cause) {
                    assert_eq!(parts, 0, "{cause:?} {kind:?}");
                } else {
                    assert_eq!(rest, 0, "{cause:?} {kind:?}");
                }
                total += whole;
                let is_familys = (cause as usize) <= StallCause::PendingCompactionBytes as usize;
                if is_familys && kind != StallKind::Pace {
                    stalled += whole;
                }
            }
        }
        assert_eq!(total, self.measured.load(Ordering::SeqCst), "measured");
        assert_eq!(self.statistics.ticker(Ticker::StallMicros), stalled);
        let map = self.db.map_property(any, "rocksdb.dbstats").expect("a map");
        assert_eq!(map["db.user_write_stall_micros"], stalled.to_string());
        let text = self.db.property("rocksdb.dbstats").expect("a text");
        assert!(text.contains(&format!("total: {total}\n")), "{text}");
    }
}
