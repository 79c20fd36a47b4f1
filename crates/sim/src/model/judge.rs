//! Opening what a crash left, and saying whether it is what was promised.
//!
//! The oracle: the database opens; its families are those that must be there and none that must
//! not; all of them show the state after the same number of events; that number is at least what
//! was promised and at most what had begun. Then it has to work: it takes a synced write and reads
//! it, and in a deep look it flushes, compacts, is read again from end to end, is closed and opened
//! once more.
//!
//! Pure functions of a history, a position, and an image; used from any thread.

use super::drive::{DEFAULT, DIAL, History, PreparedBatches, Session, default_batch};
use super::readers::{Prints, Reader, prints};
use super::settings::DIR;
use super::state::{Batch, Change, Record, State};
use crate::disk::SimFs;
use crate::sim_env::SimEnv;
use esker::load_latest_options;
use esker::options::LoadRules;
use esker::{Db, WriteBatch};
use esker_status::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    /// The database does not open.
    Unopenable,
    /// Something acknowledged is not there.
    Lost,
    /// Something is there that was never begun, or was dropped.
    Ghost,
    /// The state is after no number of events.
    Hole,
    /// A call failed, or gave a wrong answer, on the reopened database.
    Broken,
}

/// A promise that was not kept.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The kind.
    pub kind: ViolationKind,
    /// The observation.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}

pub(crate) fn violation(kind: ViolationKind, text: impl Into<String>) -> Violation {
    let text = text.into();
    Violation { kind, text }
}

/// How much is tried on a reopened database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// It is read from end to end.
    Read,
    /// It takes a write as well.
    Write,
    /// It flushes, compacts, closes and opens as well.
    Whole,
}

/// The states after `n` events in which some of those that failed are there nevertheless. The
/// newest few that failed are tried in all combinations.
fn alternatives(history: &History, n: usize) -> Vec<State> {
    let events = &history.events[..n];
    let failed: Vec<usize> = (0..n).filter(|i| !events[*i].acknowledged).collect();
    let tried = &failed[failed.len().saturating_sub(MOST_FAILED)..];
    (1..1usize << tried.len())
        .map(|mask| {
            let is_there = |i: usize| {
                events[i].acknowledged
                    || tried
                        .iter()
                        .position(|t| *t == i)
                        .is_some_and(|bit| mask >> bit & 1 == 1)
            };
            let there = (0..n).filter(|i| is_there(*i));
            there.fold(history.states[0].clone(), |s, i| s.after(&events[i].change))
        })
        .collect()
}

/// This many failed writes are followed in all combinations.
pub const MOST_FAILED: usize = 6;

/// Contents of a database.
#[derive(Clone, Debug)]
pub struct DatabaseContents {
    /// The print of each family.
    pub prints: BTreeMap<Arc<str>, u64>,
    /// Prepared transactions, where they were asked for.
    pub prepared: Option<PreparedBatches>,
}

pub(super) fn fits(state: &State, found: &DatabaseContents) -> bool {
    found
        .prints
        .iter()
        .all(|(name, print)| state.print(name) == *print)
        && found.prepared.as_ref().is_none_or(|p| same(p, state))
}

/// Returns whether exactly what the state has prepared is prepared.
fn same(found: &PreparedBatches, state: &State) -> bool {
    found.len() == state.prepared.len()
        && state.prepared.iter().all(|(name, batch)| {
            let wanted = default_batch(batch).ok();
            found.get(name).map(WriteBatch::body) == wanted.as_ref().map(WriteBatch::body)
        })
}

/// The families at `at` are those that the history allows.
fn check_families(
    history: &History,
    at: usize,
    found: &BTreeMap<Arc<str>, u64>,
) -> Result<(), Violation> {
    for life in &history.lives {
        let (must, may) = life.at(at);
        let there = found.contains_key(&life.name);
        if must && !there {
            let text = format!("column family {} is gone", life.name);
            return Err(violation(ViolationKind::Lost, text));
        }
        if there && !may {
            let text = format!("column family {} is there", life.name);
            return Err(violation(ViolationKind::Ghost, text));
        }
    }
    let known =
        |name: &Arc<str>| &**name == DEFAULT || history.lives.iter().any(|l| l.name == *name);
    match found.keys().find(|name| !known(name)) {
        Some(name) => Err(violation(
            ViolationKind::Ghost,
            format!("column family {name} was never made"),
        )),
        None => Ok(()),
    }
}

/// OPTIONS can be loaded, names the families that there are, and has for each what was set last, or
/// is being set.
pub fn check_options(
    world: &SimEnv,
    history: &History,
    at: usize,
    disk: &SimFs,
) -> Result<(), Violation> {
    let broken = |e: esker::Error| violation(ViolationKind::Broken, format!("options: {e}"));
    let options = history.settings.options(world, disk).map_err(broken)?;
    let Ok(names) = Db::list_families(DIR, &options) else {
        // Opening says what is the matter.
        return Ok(());
    };
    let env = world.env(disk, history.settings.seed);
    let loaded = match load_latest_options(DIR, &env, LoadRules::default()) {
        Err(e) if e.is_not_found() && at < history.opened => return Ok(()),
        loaded => {
            loaded.map_err(|e| violation(ViolationKind::Unopenable, format!("OPTIONS: {e}")))?
        }
    };
    let listed = loaded.families.iter();
    let listed: BTreeSet<&str> = listed.map(|(name, _)| name.as_str()).collect();
    if listed != names.iter().map(String::as_str).collect() {
        let text = format!("OPTIONS has the families {listed:?}, and there are {names:?}");
        return Err(violation(ViolationKind::Unopenable, text));
    }
    for (name, options) in &loaded.families {
        let found = options.max_sequential_skip_in_iterations;
        let allowed = history.dial_of(name, at);
        if !allowed.is_empty() && !allowed.contains(&found) {
            let text = format!("OPTIONS has {DIAL}={found} for {name}, allowed are {allowed:?}");
            return Err(violation(ViolationKind::Lost, text));
        }
    }
    Ok(())
}

/// The number of events that `found` is the state after, and that state.
pub fn find_prefix(
    history: &History,
    at: usize,
    process_only: bool,
    found: &DatabaseContents,
) -> Result<(usize, State), Violation> {
    check_families(history, at, &found.prints)?;
    let (least, most) = history.range(at, process_only);
    if let Some(n) = (least..=most)
        .rev()
        .find(|n| fits(&history.states[*n], found))
    {
        return Ok((n, history.states[n].clone()));
    }
    if history.events.iter().any(|e| !e.acknowledged) {
        for n in (least..=most).rev() {
            let mut states = alternatives(history, n).into_iter();
            if let Some(state) = states.find(|s| fits(s, found)) {
                return Ok((n, state));
            }
        }
    }
    let all = 0..history.states.len();
    if let Some(n) = all.clone().find(|n| fits(&history.states[*n], found)) {
        let text = format!("the state is after {n} events, allowed are {least} to {most}");
        let kind = if n < least {
            ViolationKind::Lost
        } else {
            ViolationKind::Ghost
        };
        return Err(violation(kind, text));
    }
    let each: Vec<String> = found
        .prints
        .iter()
        .map(|(name, print)| {
            let mut fitting = all
                .clone()
                .filter(|n| history.states[*n].print(name) == *print);
            match (fitting.next(), fitting.next_back()) {
                (Some(a), Some(b)) => format!("{name} is after {a} to {b}"),
                (Some(a), None) => format!("{name} is after {a}"),
                (None, _) => format!("{name} is after none"),
            }
        })
        .collect();
    let names = |p: &PreparedBatches| p.keys().map(|n| format!(" {n}")).collect::<String>();
    let prepared = found.prepared.as_ref().map(names).unwrap_or_default();
    let text = format!(
        "the state is after no number of events ({}; prepared:{prepared}); allowed are {least} to {most}: {}",
        each.join(", "),
        tell_events(history, least, most)
    );
    Err(violation(ViolationKind::Hole, text))
}

/// The events between two numbers, in short.
fn tell_events(history: &History, least: usize, most: usize) -> String {
    let from = least.saturating_sub(2);
    let events = history.events.iter().enumerate().take(most).skip(from);
    let told = events.map(|(i, e)| {
        let what = match &e.change {
            Change::Write(batch) => {
                let mut names: Vec<&str> = batch.iter().map(|(family, _)| &**family).collect();
                names.dedup();
                format!("writes {}", names.join(" "))
            }
            Change::Prepare(name, _) => format!("prepares {name}"),
            Change::Commit(name, extra) => format!("commits {name} and {} more", extra.len()),
            Change::Undo(name) => format!("undoes {name}"),
        };
        format!("{} {what}", i + 1)
    });
    told.collect::<Vec<_>>().join(", ")
}

/// A database that was opened after a crash and found good.
pub struct Survivor {
    /// The database.
    pub session: Session,
    /// How many events it has.
    pub events: usize,
}

/// Of this many images one is opened for reading first.
const READERS_LOOK_ONCE_IN: u64 = 4;

/// Opens what `disk` holds and compares it with what `history` allows after operation `at`.
pub fn open(
    world: &SimEnv,
    history: &History,
    at: usize,
    process_only: bool,
    disk: &SimFs,
    seed: u64,
) -> Result<Survivor, Violation> {
    let broken = |e: esker::Error| violation(ViolationKind::Broken, format!("reading: {e}"));
    let read = if seed.is_multiple_of(READERS_LOOK_ONCE_IN) {
        let options = history.settings.options(world, disk);
        let options = options.map_err(broken)?;
        Some(Reader::ReadOnly.look(options, disk).map_err(broken)?)
    } else {
        None
    };
    let opened = Session::open(world, &history.settings, disk, State::default(), seed);
    let agrees = |opened: Result<&Result<Prints>, &esker::Error>| {
        let agreed = read.as_ref().map_or(Ok(()), |read| read.agrees(opened));
        agreed.map_err(|text| violation(ViolationKind::Broken, text))
    };
    let mut session = match opened {
        Ok(session) => session,
        Err(e) => {
            agrees(Err(&e))?;
            return Err(violation(ViolationKind::Unopenable, e.to_string()));
        }
    };
    let mut found = look(&session)?;
    agrees(Ok(&Ok(found.prints.clone())))?;
    found.prepared = Some(session.recovered().clone());
    let (events, state) = find_prefix(history, at, process_only, &found)?;
    session.set_start(state);
    Ok(Survivor { session, events })
}

/// The state that the database has, which must be one that its history allows after a power cut.
pub fn find(session: &Session, at: usize) -> Result<State, Violation> {
    let found = look(session)?;
    find_prefix(session.history(), at, false, &found).map(|(_, state)| state)
}

fn look(session: &Session) -> Result<DatabaseContents, Violation> {
    let broken = |e: esker::Error| violation(ViolationKind::Broken, format!("scan: {e}"));
    let db = session.db().map_err(broken)?;
    Ok(DatabaseContents {
        prints: prints(db, session.handles()).map_err(broken)?,
        prepared: None,
    })
}

/// As [`compare`], where reading may fail: what is read is right, or the error is told.
pub fn compare_or_fail(session: &Session, doing: &str) -> Result<(), Violation> {
    look(session).map_or(Ok(()), |found| check(session, &found, doing))
}

/// Compares the whole database with the model.
pub fn compare(session: &Session, doing: &str) -> Result<(), Violation> {
    check(session, &look(session)?, doing)
}

fn check(session: &Session, found: &DatabaseContents, doing: &str) -> Result<(), Violation> {
    let history = session.history();
    if fits(session.state(), found)
        || alternatives(history, history.events.len())
            .iter()
            .any(|s| fits(s, found))
    {
        return Ok(());
    }
    let wrong: Vec<_> = found
        .prints
        .iter()
        .filter(|(name, print)| session.state().print(name) != **print)
        .map(|(name, _)| name.to_string())
        .collect();
    let text = format!("wrong data in {} after {doing}", wrong.join(", "));
    Err(violation(ViolationKind::Broken, text))
}

/// Tries whether the database works.
pub fn exercise(session: &mut Session, depth: Depth) -> Result<(), Violation> {
    if depth == Depth::Read {
        return Ok(());
    }
    let broken = |doing: &'static str| {
        move |e: esker::Error| violation(ViolationKind::Broken, format!("{doing}: {e}"))
    };
    let names: Vec<_> = session.handles().keys().cloned().collect();
    let batch: Batch = names
        .iter()
        .map(|name| {
            let value = b"after the crash".to_vec();
            (Arc::clone(name), Record::Put(b"0007".to_vec(), value))
        })
        .collect();
    session.write_batch(batch, true).map_err(broken("write"))?;
    if depth == Depth::Write {
        return compare(session, "a write");
    }
    session.write().map_err(broken("write"))?;
    session.flush().map_err(broken("flush"))?;
    session.compact().map_err(broken("compact"))?;
    compare(session, "flush and compaction")
}
