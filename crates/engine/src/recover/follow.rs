//! Following a primary: a database that another process writes, kept up to date by reading its
//! files.
//!
//! Nothing is written into the primary's directories and no lock is taken there. A catch-up goes on
//! in the MANIFEST with the same [`Fold`] that recovery uses and in the logs with the same
//! [`Replay`], both from where they ended the last time, and then shows the result of all of it at
//! once: each family's view with the newest sequence that may be read in it ([`View::limit`]).
//! Until then readers see the state before, although batches go into the memtables that they read:
//! their sequences are beyond that limit.
//!
//! Why the result is one state of the primary:
//! - A log is deleted only after the MANIFEST says that its data is in tables. So when the MANIFEST
//!   has not changed between its reading and the end of the reading of the logs, no log was missed;
//!   else all is done again.
//! - A log is complete once a later one holds a batch. Which logs hold batches is looked at before
//!   they are read, so a batch is never taken before those of an earlier log.
//! - A memtable holds data of one log alone, so it can go as a whole when the MANIFEST says that
//!   the log is in tables.
//!
//! Tables that the primary has deleted stay readable where they are open: with `max_open_files` -1
//! all of them are opened when they are first seen. The families are those of the time of opening.
//! Thread-safety: any thread; one catch-up at a time.

use super::fold::Fold;
use super::replay::{self, OpenLog, Replay, ReplayBounds, ReplayPosition};
use crate::core::{CatchUp, Core, Trees};
use crate::family::{Family, FamilySet, View};
use crate::memtable::MemTable;
use crate::ranks;
use crate::write::sequence::Sequence;
use esker_env::Env;
use esker_files::current;
use esker_files::log::RecoveryMode;
use esker_files::manifest::check_newest;
use esker_format::{FamilyId, FileNo, Seq};
use esker_lsm::version::Version;
use esker_status::{Error, ErrorKind, Result};
use esker_sync::atomic::Ordering;
use esker_sync::{Arc, Mutex, RwLock, RwLockReadGuard};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a catch-up begins anew when the primary changes under it.
const TRIES: usize = 64;
/// How often it does so when files contradict each other, or one is missing, and the MANIFEST has
/// nothing new to say about it.
const BLIND_TRIES: usize = 4;

/// The state of a secondary instance.
#[derive(Debug)]
pub(crate) struct LogFollower {
    env: Env,
    dir: PathBuf,
    wal_dir: PathBuf,
    mode: RecoveryMode,
    /// Tables are opened when they are first seen.
    is_eager: bool,
    state: Mutex<LogFollowerState>,
    /// Held while the views are replaced, and by readers that take several of them.
    publishing: RwLock<()>,
}

/// How far the primary was followed.
#[derive(Debug)]
struct LogFollowerState {
    /// `None` after a failure: the next catch-up reads the whole MANIFEST.
    fold: Option<Fold>,
    trees: BTreeMap<FamilyId, Tree>,
    logs: BTreeMap<FileNo, FollowedLog>,
    /// Tables that were found to be there, where they are not opened.
    there: HashSet<FileNo>,
    /// Prepared sections of the primary, and where its logs end.
    carried: ReplayPosition,
    /// The newest sequence in the trees and the logs.
    limit: Seq,
    /// Memtables hold a part of a batch; nothing newer can be shown.
    broken: Option<Error>,
}

/// One family as the MANIFEST has it.
#[derive(Debug)]
struct Tree {
    family: Arc<Family>,
    version: Arc<Version>,
    log_number: FileNo,
    is_dropped: bool,
}

/// A log that is read as it grows.
#[derive(Debug)]
struct FollowedLog {
    log: OpenLog,
    /// Where it ended when it was looked at; `None` once a batch is in it.
    end_without_batches: Option<u64>,
    /// It ended inside a record when it was looked at.
    is_torn: bool,
    /// It does not grow any more and was read to its end.
    is_done: bool,
}

impl FollowedLog {
    /// Looks whether a batch has come by now.
    fn look(&mut self) -> Result<bool> {
        if self.end_without_batches.is_some() {
            let found = self.log.end_without_batches()?;
            self.end_without_batches = found.map(|(end, _)| end);
            self.is_torn = found.is_some_and(|(_, is_torn)| is_torn);
        }
        Ok(self.end_without_batches.is_none())
    }
}

impl LogFollower {
    /// Follows the database in `dir` from what `fold` says, which `families` were made from.
    pub(crate) fn new(
        env: &Env,
        dir: &Path,
        wal_dir: &Path,
        mode: RecoveryMode,
        is_eager: bool,
        mut fold: Fold,
        families: &FamilySet,
    ) -> Self {
        let trees = families.all().into_iter().map(|family| {
            let tree = Tree {
                version: Arc::clone(&family.view_guard().version),
                log_number: FileNo(family.persisted_log.load(Ordering::Acquire)),
                is_dropped: false,
                family,
            };
            (tree.family.id, tree)
        });
        let trees = trees.collect();
        forget_edits(&mut fold);
        // The end of a log may be in the making: it is never an error.
        let mode = match mode {
            RecoveryMode::SkipAnyCorruptedRecords => mode,
            _ => RecoveryMode::TolerateCorruptedTailRecords,
        };
        LogFollower {
            env: env.clone(),
            dir: dir.to_owned(),
            wal_dir: wal_dir.to_owned(),
            mode,
            is_eager,
            state: Mutex::new(
                ranks::FOLLOW,
                LogFollowerState {
                    fold: Some(fold),
                    trees,
                    logs: BTreeMap::new(),
                    there: HashSet::new(),
                    carried: ReplayPosition::default(),
                    limit: Seq::ZERO,
                    broken: None,
                },
            ),
            publishing: RwLock::new(ranks::PUBLISH, ()),
        }
    }

    /// Takes in what the MANIFEST says now; true when that is more than before.
    fn look(&self, state: &mut LogFollowerState) -> Result<bool> {
        let fs = &*self.env.fs;
        for _ in 0..TRIES {
            let number = current::read(fs, &self.dir)?;
            let followed = state
                .fold
                .as_mut()
                .filter(|f| f.folded().manifest == number);
            let (is_new_file, done) = match followed {
                Some(fold) => (false, fold.read_on()),
                None => {
                    let opened = Fold::open(fs, &self.dir, number);
                    (
                        true,
                        opened.map(|fold| state.fold.replace(fold)).map(|_| true),
                    )
                }
            };
            match done {
                Ok(false) => return Ok(false),
                Ok(true) => {
                    return match state.take_edits(is_new_file) {
                        Ok(()) => Ok(true),
                        Err(e) => {
                            state.fold = None;
                            Err(e.with_file(
                                self.dir
                                    .join(esker_format::file_name::manifest_name(number)),
                            ))
                        }
                    };
                }
                // Replaced between the reading of CURRENT and the opening.
                Err(e) if is_new_file && e.is_not_found() => {}
                Err(e) => {
                    state.fold = None;
                    return Err(e);
                }
            }
        }
        Err(Error::new(
            ErrorKind::TryAgain,
            "the MANIFEST is replaced faster than it can be read",
        )
        .with_file(&self.dir))
    }

    /// Every table must be there, as where a database is opened for writing.
    fn check_tables(&self, trees: &Trees, state: &mut LogFollowerState) -> Result<()> {
        let mut there = HashSet::new();
        for tree in state.trees.values().filter(|t| !t.is_dropped) {
            for (level, file) in tree.version.files() {
                if self.is_eager {
                    trees.tables.get(file, level, &tree.family.reading)?;
                    continue;
                }
                if !state.there.contains(&file.number) {
                    trees.tables.check_there(&tree.family.reading.paths, file)?;
                }
                there.insert(file.number);
            }
        }
        state.there = there;
        Ok(())
    }

    /// Replays what was added to the logs. They and the MANIFEST must agree as in a recovery.
    fn read_logs(&self, state: &mut LogFollowerState) -> Result<()> {
        let LogFollowerState {
            fold,
            trees,
            logs,
            there: _,
            carried,
            limit,
            broken,
        } = state;
        let folded = fold.as_ref().map(Fold::folded);
        if let Some(folded) = folded {
            check_newest(&*self.env.fs, &self.dir, folded.manifest)?;
            folded.check_end(&*self.env.fs, &self.dir, &self.wal_dir)?;
        }
        let oldest = folded.map_or(FileNo(0), |f| f.oldest_needed_log());
        logs.retain(|number, _| *number >= oldest);
        carried.forget_below(oldest);
        if self.env.fs.exists(&self.wal_dir)? {
            for number in replay::list(&self.env, &self.wal_dir)? {
                if number >= oldest && !logs.contains_key(&number) {
                    let log = FollowedLog {
                        log: OpenLog::open(&self.env, &self.wal_dir, number)?,
                        end_without_batches: Some(0),
                        is_torn: false,
                        is_done: false,
                    };
                    logs.insert(number, log);
                }
            }
        }
        let mut newest = None;
        let switched = trees.values().filter(|t| !t.is_dropped);
        let switched = switched.map(|t| t.log_number).max();
        for (number, log) in logs.iter_mut().rev() {
            // A log that a family has left is whole, so a record that it ends in is damage.
            if log.look()? || (log.is_torn && switched.is_some_and(|s| s > *number)) {
                newest = Some(*number);
                break;
            }
        }
        let live = || trees.values().filter(|t| !t.is_dropped);
        let targets = live().map(|t| (Arc::clone(&t.family), t.log_number));
        let mut replay = Replay::new(
            &self.env,
            self.wal_dir.clone(),
            self.mode,
            *limit,
            targets,
            |_| Ok(()),
        )
        .with_known(folded.and_then(|f| ReplayBounds::of(f, oldest)));
        replay.expect(logs.keys().copied().collect())?;
        replay.swap(carried);
        // None of these is read: a batch may come into an earlier log first.
        let beyond = logs.iter().rev();
        let beyond = beyond.map_while(|(n, l)| l.end_without_batches.map(|end| (*n, end)));
        beyond.for_each(|(number, end)| replay.note_without_batches(number, end));
        let newest = newest.unwrap_or_default();
        for (number, log) in logs.range_mut(..=newest).filter(|(_, l)| !l.is_done) {
            live().for_each(|t| begin_log(&t.family, *number));
            let done = replay.follow(&mut log.log);
            *limit = replay.outcome().last.max(*limit);
            if let Err(e) = done {
                if replay.is_half_done() {
                    *broken = Some(e.clone());
                }
                replay.swap(carried);
                return Err(e);
            }
            log.is_done = *number < newest;
        }
        let checked = replay.check_followed();
        replay.swap(carried);
        checked
    }

    /// Shows every family as it is now, all at once.
    fn publish(&self, trees: &Trees, sequence: &Sequence, state: &mut LogFollowerState) {
        let live = state.trees.values().filter(|t| !t.is_dropped);
        let tables = live.flat_map(|t| t.version.files().map(|(_, f)| f.largest_seq));
        state.limit = tables.fold(state.limit, Seq::max);
        let said = state
            .fold
            .as_ref()
            .map_or(Seq::ZERO, |f| f.folded().last_sequence);
        let _alone = self.publishing.write();
        let shown = sequence.published();
        sequence.reset(state.limit.max(said).max(shown));
        for tree in state.trees.values() {
            if tree.is_dropped {
                if !tree.family.is_dropped() {
                    tree.family.mark_dropped();
                    trees.families.remove(tree.family.id);
                }
                continue;
            }
            tree.show(state.limit);
        }
    }
}

impl LogFollowerState {
    /// Brings the trees to where the MANIFEST is; from nothing when it is another file than before.
    fn take_edits(&mut self, is_new_file: bool) -> Result<()> {
        let Some(fold) = &mut self.fold else {
            return Ok(());
        };
        for (id, tree) in &mut self.trees {
            let Some(folded) = fold.folded().families.get(id) else {
                tree.is_dropped = true;
                continue;
            };
            tree.log_number = folded.log_number;
            if is_new_file {
                let base = Version::empty(tree.family.order.clone(), tree.version.num_levels());
                tree.version = Arc::new(folded.version_over(&base, Some(&tree.version))?);
            } else if folded.has_edits() {
                tree.version = Arc::new(folded.version_over(&tree.version, Some(&tree.version))?);
            }
        }
        forget_edits(fold);
        Ok(())
    }
}

impl Tree {
    /// Shows the tree and the memtables of logs that it does not hold, up to `limit`.
    fn show(&self, limit: Seq) {
        let is_needed = |m: &MemTable| m.is_empty() || m.log_number() >= self.log_number;
        {
            let view = self.family.view_guard();
            let stays = Arc::ptr_eq(&view.version, &self.version)
                && view.limit == limit
                && is_needed(&view.mem)
                && view.immutable.iter().all(|m| is_needed(m));
            if stays {
                return;
            }
        }
        self.family
            .persisted_log
            .store(self.log_number.0, Ordering::Release);
        self.family.change_view(|old| View {
            mem: if is_needed(&old.mem) {
                Arc::clone(&old.mem)
            } else {
                self.family.new_memtable(self.log_number)
            },
            history: Vec::new(),
            immutable: old
                .immutable
                .iter()
                .filter(|m| is_needed(m))
                .cloned()
                .collect(),
            version: Arc::clone(&self.version),
            limit,
            history_from: None,
            number: 0,
            id: Default::default(),
            newest_in_tables: Default::default(),
            parked: Default::default(),
        });
    }
}

/// Begins a memtable that holds nothing of earlier logs.
fn begin_log(family: &Family, number: FileNo) {
    let view = family.view_guard();
    if view.mem.is_empty() {
        family.set_log_number(number);
    } else if view.mem.log_number() < number {
        drop(view);
        family.switch_memtable(number, None);
    }
}

impl CatchUp for LogFollower {
    fn catch_up(&self, trees: &Trees, sequence: &Sequence) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(e) = &state.broken {
            return Err(e.clone());
        }
        self.look(&mut state)?;
        let mut blind = 0;
        for _ in 0..TRIES {
            let read = self
                .check_tables(trees, &mut state)
                .and_then(|()| self.read_logs(&mut state));
            let has_news = self.look(&mut state)?;
            match read {
                Ok(()) if !has_news => {
                    self.publish(trees, sequence, &mut state);
                    return Ok(());
                }
                Ok(()) => {}
                Err(e)
                    if (e.is_not_found() || (e.is_corruption() && state.broken.is_none()))
                        && (has_news || blind < BLIND_TRIES) =>
                {
                    if !has_news {
                        blind += 1;
                        self.env.clock.sleep(Duration::from_millis(1));
                    }
                }
                Err(e) => return Err(e),
            }
        }
        Err(Error::new(
            ErrorKind::TryAgain,
            "the primary changes faster than it can be followed",
        )
        .with_file(&self.dir))
    }

    fn hold_state(&self) -> RwLockReadGuard<'_, ()> {
        self.publishing.read()
    }
}

/// The edits are in trees, or belong to families that are not open.
fn forget_edits(fold: &mut Fold) {
    for family in fold.folded_mut().families.values_mut() {
        family.drop_edits();
    }
}

impl Core {
    /// Catches up with the primary that this database follows.
    pub(crate) fn catch_up(&self) -> Result<()> {
        match &self.reads.follower {
            None => Err(Error::not_supported("Supported only by secondary instance")),
            Some(_) if self.writes.is_closed() => Err(Error::shutdown()),
            Some(follower) => {
                let done = follower.catch_up(&self.trees, &self.reads.sequence);
                match &done {
                    Ok(()) => self.services.info_log.info(format_args!(
                        "Last sequence is {}",
                        self.reads.sequence.published()
                    )),
                    Err(e) => self
                        .services
                        .info_log
                        .warn(format_args!("catching up with the primary: {e}")),
                }
                done
            }
        }
    }
}
