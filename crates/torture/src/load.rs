//! The writes of a loading process, and its reports of the durable ones.
//!
//! Several threads write; each operation is one batch (or one transaction) over three families and
//! carries what its thread knew to be acknowledged when it began, so that [`crate::check`] can tell
//! a prefix of the order of writes from anything else. The process prints one line for each thing
//! that became sure, in one write, and is killed in the middle of it.
//!
//! `sure T N ...`: operation N of thread T, and all before it, must survive. `held T N`: so must
//! the prepared transaction of that operation, until it is committed. `ready`: the database is
//! open. `failed TEXT`: a call returned an error.

use crate::recipe::{FAMILIES, Recipe};
use crate::rng::Rng;
use esker::{
    CompactRangeOptions, Db, FamilyHandle, FamilyId, FlushOptions, Result, WriteBatch, WriteOptions,
};
use esker_txn::{Transaction, TransactionDb, TransactionDbOptions, TransactionOptions};
use std::convert::Infallible;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Writing threads.
pub(crate) const THREADS: usize = 4;
/// Keys that each thread overwrites and deletes in turn.
pub(crate) const SLOTS: u64 = 300;
/// The last operation of each thread.
pub(crate) type Counts = [u64; THREADS];

/// The failure that an acknowledged write must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Promise {
    /// The death of the process: every write that reached the operating system.
    Process,
    /// The loss of power: every write that was synced.
    Power,
}

/// Of the operations of one thread up to `n`, those from here on are there.
pub(crate) fn floor(n: u64) -> u64 {
    (n / 64 * 64).saturating_sub(1000)
}

/// Where operation `n` of a thread keeps what it knew.
pub(crate) fn all_key(thread: usize, n: u64) -> Vec<u8> {
    format!("{thread}/{n:012}").into_bytes()
}

/// A key that is written again and again.
pub(crate) fn slot_key(thread: usize, slot: u64) -> Vec<u8> {
    format!("{thread}/{slot:05}").into_bytes()
}

/// Where a thread's last operation puts its number.
pub(crate) fn last_key(thread: usize) -> Vec<u8> {
    format!("last/{thread}").into_bytes()
}

/// Where every operation of a thread adds one.
pub(crate) fn total_key(thread: usize) -> Vec<u8> {
    format!("total/{thread}").into_bytes()
}

/// The number under `key` of the default family, 0 without one.
pub(crate) fn read_number(db: &Db, key: &[u8]) -> Result<u64> {
    let value = db.get(key)?;
    Ok(value.map_or(0, |v| v.try_into().map_or(u64::MAX, u64::from_le_bytes)))
}

/// Operation `n` of a thread that knows `acknowledged` of the others.
fn operation(
    families: &[FamilyHandle],
    thread: usize,
    n: u64,
    acknowledged: &Counts,
    ranges: bool,
) -> Result<WriteBatch> {
    let id = |i: usize| FamilyId(families[i].id());
    let mut batch = WriteBatch::new();
    batch.put_cf(id(0), &last_key(thread), &n.to_le_bytes())?;
    batch.merge_cf(id(0), &total_key(thread), &1u64.to_le_bytes())?;
    let mut value: Vec<u8> = acknowledged.iter().flat_map(|a| a.to_le_bytes()).collect();
    value.resize(value.len() + (n * 37 % 200) as usize, b'x');
    batch.put_cf(id(1), &all_key(thread, n), &value)?;
    if n.is_multiple_of(64) && floor(n) > 0 {
        if ranges {
            batch.delete_range_cf(id(1), &all_key(thread, 0), &all_key(thread, floor(n)))?;
        } else {
            for gone in floor(n - 64)..floor(n) {
                batch.delete_cf(id(1), &all_key(thread, gone))?;
            }
        }
    }
    if n.is_multiple_of(7) {
        batch.delete_cf(id(2), &slot_key(thread, n % SLOTS))?;
    } else {
        batch.put_cf(id(2), &slot_key(thread, n % SLOTS), &n.to_le_bytes())?;
    }
    Ok(batch)
}

/// One line to the parent, in one write. When the parent is gone there is nothing left to do.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let said = out.write_all(format!("{line}\n").as_bytes());
    if said.and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

fn sure(counts: &Counts) {
    let words: Vec<String> = counts
        .iter()
        .enumerate()
        .map(|(t, n)| format!("{t} {n}"))
        .collect();
    say(&format!("sure {}", words.join(" ")));
}

/// The database of a loading process.
struct Load {
    db: Db,
    transactions: Option<TransactionDb>,
    families: Vec<FamilyHandle>,
    recipe: Recipe,
    promise: Promise,
    acknowledged: [AtomicU64; THREADS],
}

/// Opens the database at `dir` and loads it until the process dies or a call fails.
pub(crate) fn run(dir: &Path, recipe: Recipe, promise: Promise, seed: u64) -> ! {
    let load = match Load::open(dir, recipe, promise) {
        Ok(load) => load,
        Err(e) => give_up(&e),
    };
    say("ready");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let load = &load;
            scope.spawn(move || match load.write(thread) {
                Ok(never) => match never {},
                Err(e) => give_up(&e),
            });
        }
        match load.upkeep(seed) {
            Ok(never) => match never {},
            Err(e) => give_up(&e),
        }
    })
}

/// Ends the process without closing anything: what is on disk is what it leaves when it dies.
fn give_up(e: &esker::Error) -> ! {
    say(&format!("failed {e}"));
    std::process::exit(3)
}

impl Load {
    fn open(dir: &Path, recipe: Recipe, promise: Promise) -> Result<Load> {
        let (options, families) = recipe.options()?;
        let mut transactions = None;
        let db = if recipe.two_phase {
            let how = TransactionDbOptions::default();
            let db = TransactionDb::open_families(dir, options, families, how)?;
            for mut found in db.prepared_transactions()? {
                found.commit()?;
            }
            let base = db.base().clone();
            transactions = Some(db);
            base
        } else {
            Db::open_families(dir, options, families)?
        };
        let mut last: Counts = [0; THREADS];
        for (thread, last) in last.iter_mut().enumerate() {
            *last = read_number(&db, &last_key(thread))?;
        }
        let families = FAMILIES
            .iter()
            .map(|n| db.existing_family(n).map(Into::into))
            .collect::<Result<_>>()?;
        Ok(Load {
            db,
            transactions,
            families,
            recipe,
            promise,
            acknowledged: last.map(AtomicU64::new),
        })
    }

    fn known(&self) -> Counts {
        std::array::from_fn(|t| self.acknowledged[t].load(Ordering::SeqCst))
    }

    fn write(&self, thread: usize) -> Result<Infallible> {
        let mut n = self.acknowledged[thread].load(Ordering::SeqCst);
        loop {
            n += 1;
            let mut known = self.known();
            let every = self.recipe.sync_one_in;
            let mut options = WriteOptions::default();
            options.sync = every > 0 && n % every == thread as u64 % every;
            let ranges = !self.recipe.two_phase;
            let mut batch = operation(&self.families, thread, n, &known, ranges)?;
            match &self.transactions {
                Some(db) => self.commit(db, thread, n, &batch, &options)?,
                None => self.db.write_opt(&mut batch, &options)?,
            }
            self.acknowledged[thread].store(n, Ordering::SeqCst);
            let reached = match self.promise {
                Promise::Process => !self.recipe.manual_wal_flush || options.sync,
                Promise::Power => options.sync,
            };
            if reached {
                known[thread] = n;
                sure(&known);
            }
        }
    }

    /// Commits in two phases, between which the process may die.
    fn commit(
        &self,
        db: &TransactionDb,
        thread: usize,
        n: u64,
        batch: &WriteBatch,
        options: &WriteOptions,
    ) -> Result<()> {
        let mut txn: Transaction = db.begin_opt(*options, &TransactionOptions::default());
        txn.set_name(format!("{thread} {n}").as_bytes())?;
        txn.rebuild_from_batch(batch)?;
        txn.prepare()?;
        if options.sync || self.promise == Promise::Process {
            say(&format!("held {thread} {n}"));
        }
        txn.commit()
    }

    /// Flushes, compacts and hands the log on, at random moments.
    fn upkeep(&self, seed: u64) -> Result<Infallible> {
        let mut rng = Rng::new(seed);
        loop {
            std::thread::sleep(Duration::from_millis(rng.below(30)));
            // What was acknowledged before the call begins is sure when it returns.
            let known = self.known();
            let family = &self.families[rng.below(3) as usize];
            let reached = match rng.below(6) {
                0 => {
                    self.db.flush()?;
                    true
                }
                1 => {
                    let how = CompactRangeOptions::default();
                    self.db.compact_range_opt(family, None, None, &how)?;
                    false
                }
                2 => {
                    self.db.flush_cf(family, &FlushOptions::default())?;
                    false
                }
                3 => {
                    self.db.flush_wal(true)?;
                    true
                }
                _ if self.recipe.manual_wal_flush => {
                    self.db.flush_wal(false)?;
                    self.promise == Promise::Process
                }
                _ => false,
            };
            if reached {
                sure(&known);
            } else {
                say("alive");
            }
        }
    }
}
