//! Each job runs on a thread of its class: merges of level 0 on one that is not patient, others on
//! a patient one. All ends well where there are none.

mod common;

use common::until;
use esker::env::{Env, Executor, JoinHandle};
use esker::observe::{CompactionInfo, EventListener};
use esker::{Db, ErrorKind, Options, Result};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

thread_local! {
    /// Name by which the thread was asked for.
    static NAME: RefCell<String> = const { RefCell::new(String::new()) };
}

fn named(name: &str, body: Box<dyn FnOnce() + Send>) -> Box<dyn FnOnce() + Send> {
    let name = name.to_owned();
    Box::new(move || {
        NAME.replace(name);
        body();
    })
}

/// Threads of the system, by what they were asked for.
#[derive(Debug)]
struct Asked {
    threads: Arc<dyn Executor>,
    /// Threads of one name do not start.
    refused: Option<&'static str>,
    refusals: AtomicUsize,
    patient: Mutex<Vec<String>>,
}

impl Asked {
    fn of(env: &Env, refused: Option<&'static str>) -> Arc<Self> {
        Arc::new(Asked {
            threads: Arc::clone(&env.executor),
            refused,
            refusals: AtomicUsize::new(0),
            patient: Mutex::default(),
        })
    }

    fn is_patient(&self, name: &str) -> bool {
        let patient = self.patient.lock().expect("nobody panics");
        patient.iter().any(|n| n == name)
    }
}

impl Executor for Asked {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        if self.refused == Some(name) {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return Err(esker::Error::new(ErrorKind::Io, "no more threads"));
        }
        self.threads.spawn(name, named(name, body))
    }
    fn spawn_patient(
        &self,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Box<dyn JoinHandle>> {
        let mut patient = self.patient.lock().expect("nobody panics");
        patient.push(name.to_owned());
        drop(patient);
        self.threads.spawn_patient(name, named(name, body))
    }
    fn parallelism(&self) -> usize {
        self.threads.parallelism()
    }
}

/// Which thread carried out what.
#[derive(Default)]
struct Who {
    /// The first level of a compaction, the level that it wrote to, and its thread.
    merges: Mutex<Vec<(u8, u8, String)>>,
    /// The next merge of level 0 panics.
    panics: AtomicBool,
}

impl Who {
    fn merges(&self) -> Vec<(u8, u8, String)> {
        self.merges.lock().expect("nobody panics").clone()
    }
}

impl EventListener for Who {
    fn on_compaction_begin(&self, info: &CompactionInfo) {
        if info.base_input_level.0 == 0 && info.output_level.0 > 0 {
            assert!(!self.panics.swap(false, Ordering::Relaxed), "as ordered");
        }
    }
    fn on_compaction_completed(&self, info: &CompactionInfo) {
        let thread = NAME.with_borrow(String::clone);
        let (from, to) = (info.base_input_level.0, info.output_level.0);
        if !info.is_trivial_move {
            let mut merges = self.merges.lock().expect("nobody panics");
            merges.push((from, to, thread));
        }
    }
}

/// A database with level 0 merged down several times, in a world whose threads are watched.
fn filled(refused: Option<&'static str>, style: &str) -> Result<(Db, Arc<Asked>, Arc<Who>)> {
    let mut env = Env::in_memory();
    let asked = Asked::of(&env, refused);
    env.executor = Arc::clone(&asked) as Arc<dyn Executor>;
    let who = Arc::new(Who::default());
    let mut options = Options::new()
        .create_if_missing(true)
        .env(env)
        .set_all("write_buffer_size=1048576;target_file_size_base=1048576;max_bytes_for_level_base=1048576;compression=kNoCompression")?
        .set("compaction_style", style)?;
    options.db.listeners.push(who.clone());
    let db = Db::open("/db", options)?;
    fill(&db)?;
    Ok((db, asked, who))
}

fn fill(db: &Db) -> Result<()> {
    for n in 0..30_000u32 {
        db.put(key(n), format!("{n:01000}"))?;
    }
    db.wait_for_compaction()
}

fn key(n: u32) -> String {
    format!("{:08}", n.wrapping_mul(2_654_435_761) % 10_000)
}

fn check(db: &Db) -> Result<()> {
    // Of the numbers of a key the last one stays.
    let last: BTreeMap<_, _> = (0..30_000u32).map(|n| (key(n), n)).collect();
    for (key, n) in last {
        let value = db.get(key)?.expect("it was put");
        assert_eq!(value, format!("{n:01000}").as_bytes());
    }
    Ok(())
}

#[test]
fn level0_goes_down_on_a_thread_that_is_not_patient() -> Result<()> {
    let (db, asked, who) = filled(None, "kCompactionStyleLevel")?;
    check(&db)?;
    let merges = who.merges();
    let down = |(from, to, _): &&(u8, u8, String)| *from == 0 && *to > 0;
    assert!(merges.iter().filter(down).count() > 1, "{merges:?}");
    assert!(merges.iter().any(|merge| !down(&merge)), "{merges:?}");
    for merge in &merges {
        assert_eq!(asked.is_patient(&merge.2), !down(&merge), "{merge:?}");
        assert_eq!(merge.2 == "esker-comp-l0", down(&merge), "{merge:?}");
    }
    db.close()
}

#[test]
fn merges_of_universal_trees_stay_patient() -> Result<()> {
    let (db, asked, who) = filled(None, "kCompactionStyleUniversal")?;
    check(&db)?;
    let merges = who.merges();
    assert!(!merges.is_empty());
    for (_, _, thread) in &merges {
        assert!(asked.is_patient(thread), "{merges:?}");
    }
    db.close()
}

#[test]
fn without_such_a_thread_another_one_does_it() -> Result<()> {
    let (db, asked, who) = filled(Some("esker-comp-l0"), "kCompactionStyleLevel")?;
    check(&db)?;
    assert!(asked.refusals.load(Ordering::Relaxed) > 0);
    let merges = who.merges();
    assert!(merges.iter().any(|(from, to, _)| *from == 0 && *to > 0));
    assert!(db.background_error().is_none());
    db.close()
}

#[test]
fn a_panic_on_that_thread_is_told_and_takes_nobody_along() -> Result<()> {
    let (db, _, who) = filled(None, "kCompactionStyleLevel")?;
    who.panics.store(true, Ordering::Relaxed);
    // Writes are refused as soon as it has happened.
    let _refused = fill(&db);
    until("the panic is told", || db.background_error().is_some());
    let error = db.background_error().expect("just seen");
    assert!(error.to_string().contains("panicked"), "{error}");
    assert!(db.get(key(0))?.is_some());
    Ok(())
}
