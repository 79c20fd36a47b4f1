//! When a database has threads, and what it does without.

use crate::core::Core;
use crate::observe::{
    EventListener, FlushInfo, PerfContext, PerfLevel, perf_level, set_perf_level,
};
use crate::{Db, Options, WriteOptions};
use esker_env::{Env, Executor, JoinHandle, Tick, Ticking};
use esker_format::file_name::FileKind;
use esker_status::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Threads of the system, which can be refused, and counted.
#[derive(Debug)]
struct CountedThreads {
    threads: Arc<dyn Executor>,
    refuses: AtomicBool,
    asked: Mutex<Vec<String>>,
}

impl Executor for CountedThreads {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        self.asked
            .lock()
            .expect("nobody panics")
            .push(name.to_owned());
        if self.refuses.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Io, "no more threads"));
        }
        self.threads.spawn(name, body)
    }
    fn tick(&self, tick: Tick) -> Result<Box<dyn Ticking>> {
        self.threads.tick(tick)
    }
    fn parallelism(&self) -> usize {
        2
    }
}

fn open(listener: Option<Arc<dyn EventListener>>) -> (Db, Arc<CountedThreads>) {
    let mut env = Env::in_memory();
    let watched = Arc::new(CountedThreads {
        threads: Arc::clone(&env.executor),
        refuses: AtomicBool::new(false),
        asked: Mutex::default(),
    });
    env.executor = Arc::clone(&watched) as Arc<dyn Executor>;
    let mut options = Options::new().create_if_missing(true).env(env);
    options.db.listeners.extend(listener);
    (Db::open("/db", options).expect("opens"), watched)
}

/// Writes past the log, so that no log is left to delete, and flushes.
fn flush_one(db: &Db) {
    let mut unlogged = WriteOptions::default();
    unlogged.disable_wal = true;
    let family = db.default_family_handle();
    db.put_opt(&family, "key", "value", &unlogged)
        .expect("written");
    db.flush().expect("flushed");
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_idle(core: &Core) -> bool {
    core.background.cv.at_work() == 0
}

fn tables(db: &Db) -> usize {
    let files = db.live_files().expect("listed").into_iter();
    files.filter(|f| f.kind == FileKind::Table).count()
}

#[test]
fn a_database_without_work_has_no_thread() {
    let (db, watched) = open(None);
    for _ in 0..3 {
        flush_one(&db);
        wait_until("threads end", || is_idle(db.core()));
    }
    // The clock ticks meanwhile.
    std::thread::sleep(Duration::from_millis(2500));
    assert!(is_idle(db.core()));
    db.close().expect("closes");
    let asked = watched.asked.lock().expect("nobody panics");
    assert!(
        asked.is_empty(),
        "who opened, flushed and closed did it all: {asked:?}"
    );
}

/// The threads that flushes are told of on.
#[derive(Default)]
struct Where(Mutex<Vec<ThreadId>>);

impl Where {
    fn note(&self) {
        let mut told = self.0.lock().expect("nobody panics");
        told.push(std::thread::current().id());
    }
}

impl EventListener for Where {
    fn on_flush_begin(&self, _info: &FlushInfo) {
        self.note();
    }
    fn on_flush_completed(&self, _info: &FlushInfo) {
        self.note();
    }
}

#[test]
fn who_waits_for_a_flush_carries_it_out() {
    let told = Arc::new(Where::default());
    let (db, _watched) = open(Some(Arc::clone(&told) as Arc<dyn EventListener>));
    let own = std::thread::current().id();
    flush_one(&db);
    assert_eq!(*told.0.lock().expect("nobody panics"), [own, own]);
    db.put("key", "value").expect("written");
    let mut later = crate::FlushOptions::default();
    later.wait = false;
    db.flush_cf(&db.default_family_handle(), &later)
        .expect("asked for");
    wait_until("a flush", || tables(&db) == 2);
    db.close().expect("closes");
    let told = told.0.lock().expect("nobody panics");
    assert_eq!(told.len(), 4);
    assert!(told[2..].iter().all(|thread| *thread != own));
}

#[test]
fn a_flush_leaves_the_figures_of_its_caller_as_they_are() {
    let (db, _watched) = open(None);
    db.put("key", "value").expect("written");
    PerfContext.reset();
    set_perf_level(PerfLevel::EnableTime);
    db.get("key").expect("read");
    let before = PerfContext.report(true);
    assert!(!before.is_empty());
    db.flush().expect("flushed");
    assert_eq!(PerfContext.report(true), before);
    assert_eq!(perf_level(), PerfLevel::EnableTime);
    set_perf_level(PerfLevel::EnableCount);
    db.close().expect("closes");
}

struct Silent;

impl EventListener for Silent {}

#[test]
fn nothing_of_the_application_outlives_closing() {
    for _ in 0..100 {
        let listener = Arc::new(Silent);
        let (db, _watched) = open(Some(Arc::clone(&listener) as Arc<dyn EventListener>));
        flush_one(&db);
        db.close().expect("closes");
        drop(db);
        assert_eq!(Arc::strong_count(&listener), 1);
    }
}

#[test]
fn a_flush_makes_a_compaction_and_the_end_of_its_inputs_due() {
    let (db, _watched) = open(None);
    for _ in 0..4 {
        flush_one(&db);
    }
    wait_until("a compaction", || tables(&db) == 1);
    wait_until("no file waits", || !db.core().trees.obsolete_files.is_any());
    db.close().expect("closes");
}

#[test]
fn without_threads_the_clock_gets_work_done() {
    let (db, watched) = open(None);
    wait_until("threads end", || is_idle(db.core()));
    watched.refuses.store(true, Ordering::Relaxed);
    for _ in 0..4 {
        flush_one(&db);
    }
    wait_until("a compaction", || tables(&db) == 1);
    db.close().expect("closes");
}

/// A flush tells that it begins, and waits.
struct Waits {
    begun: Mutex<Sender<()>>,
    goes_on: Mutex<Receiver<()>>,
}

impl EventListener for Waits {
    fn on_flush_begin(&self, _info: &FlushInfo) {
        let begun = self.begun.lock().expect("nobody panics").send(());
        begun.expect("the test is there");
        let goes_on = self.goes_on.lock().expect("nobody panics");
        goes_on.recv().expect("the test is there");
    }
}

#[test]
fn a_caller_flushes_beside_a_flush_that_runs_and_waits_for_it() {
    let (begun, begins) = channel();
    let (go_on, goes_on) = channel();
    let (db, _watched) = open(Some(Arc::new(Waits {
        begun: Mutex::new(begun),
        goes_on: Mutex::new(goes_on),
    })));
    db.put("key", "first").expect("written");
    let mut later = crate::FlushOptions::default();
    later.wait = false;
    db.flush_cf(&db.default_family_handle(), &later)
        .expect("asked for");
    begins.recv().expect("a flush begins");
    db.put("key", "second").expect("written");
    // With two memtables waiting, writers would.
    let mut at_once = crate::FlushOptions::default();
    at_once.allow_write_stall = true;
    std::thread::scope(|scope| {
        let flushes = scope.spawn(|| db.flush_cf(&db.default_family_handle(), &at_once));
        begins.recv().expect("the caller's begins");
        assert_eq!(tables(&db), 0);
        go_on.send(()).expect("is heard");
        go_on.send(()).expect("is heard");
        flushes.join().expect("no panic").expect("flushed");
    });
    assert_eq!(tables(&db), 2);
    db.close().expect("closes");
    assert_eq!(
        db.get("key").expect("read").as_deref(),
        Some(&b"second"[..])
    );
}

#[test]
fn closing_waits_for_a_job_that_runs() {
    let (begun, begins) = channel();
    let (go_on, goes_on) = channel();
    let (db, _watched) = open(Some(Arc::new(Waits {
        begun: Mutex::new(begun),
        goes_on: Mutex::new(goes_on),
    })));
    db.put("key", "value").expect("written");
    let family = db.default_family_handle();
    let mut flush = crate::FlushOptions::default();
    flush.wait = false;
    db.flush_families(&[&family], &flush).expect("begins");
    begins.recv().expect("a flush begins");
    std::thread::scope(|scope| {
        let closes = scope.spawn(|| db.close());
        wait_until("closing begins", || db.core().background.cv.is_closing());
        std::thread::sleep(Duration::from_millis(20));
        assert!(!closes.is_finished(), "a flush runs");
        go_on.send(()).expect("is heard");
        closes.join().expect("no panic").expect("closes");
    });
    assert!(is_idle(db.core()));
}
