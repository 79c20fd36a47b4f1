//! The loops of the benchmarks, as `db_bench` defines them.
//!
//! Each function is one thread's work on its own [`Session`]; it is generic, so that the loop calls
//! the engine directly. A loop does what `db_bench`'s does per operation (fills go through a write
//! batch, reads look at the pinned value, each seek has a fresh iterator) and nothing else.

mod change;
mod mix;
mod mix_loop;
mod ranges;
mod series;
mod settings;
mod timeseries;
mod transactions;
mod ycsb;
pub(crate) mod zipf;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Result;
use crate::generate::{Budget, Pacer, Permutation, Rng};
use crate::measure::Meter;
use crate::store::{Iter, Session};
pub use settings::{Settings, Tombstones};
pub use transactions::verify as verify_transactions;
pub use ycsb::Ycsb;
pub use zipf::Zipf;

/// The work of a foreground thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Writes keys in order.
    FillSeq,
    /// Writes random keys.
    FillRandom,
    /// Writes every key once in random order.
    FillUnique,
    /// Reads a random key, then writes it.
    Update,
    /// Reads random keys.
    Read,
    /// Reads several random keys at once.
    MultiRead,
    /// Iterates forward over everything.
    ReadSeq,
    /// Iterates backward over everything.
    ReadReverse,
    /// Seeks, and reads the following or preceding entries.
    Seek,
    /// Creates iterators.
    NewIterator,
    /// A mix of reads and writes of random keys.
    ReadWrite,
    /// Merges into random keys.
    Merge,
    /// Deletes keys in order.
    DeleteSeq,
    /// Deletes random keys.
    DeleteRandom,
    /// Reads random keys of a range that may be larger than that of the keys.
    ReadFast,
    /// Reads the operands of merges at random keys.
    Operands,
    /// A mix of reads and merges of random keys.
    ReadMerge,
    /// Reads a value, and writes it combined bit by bit with another.
    Xor,
    /// Reads a value, and writes it with another behind it.
    Append,
    /// Reads, writes and deletes keys in threes, which must stay alike.
    InThrees,
    /// Deletes a key and writes the next version of it.
    Replace,
    /// Writes keys in order, then seeks each.
    FillSeekSeq,
    /// Reads several ranges at once, at a distance.
    MultiScan,
    /// Reads several random ranges at once.
    MultiScanRandom,
    /// About how many bytes lie between two random keys.
    ApproximateSize,
    /// About how many entries of memtables lie between two random keys.
    MemtableStats,
    /// The social graph: reads, writes and scans by fitted distributions.
    Mix,
    /// Adds to the same key of several sets at once.
    Transaction,
    /// One writer of series in time, and readers or deleters of them.
    TimeSeries,
    /// One of the workloads of the Yahoo! Cloud Serving Benchmark.
    Ycsb(Ycsb),
}

impl Task {
    /// Returns whether the counted bytes were written.
    pub fn writes(self) -> bool {
        use Task::{FillRandom, FillSeq, FillUnique, Merge, Transaction};
        matches!(
            self,
            FillSeq | FillRandom | FillUnique | Merge | Transaction
        )
    }
}

/// The work of the extra thread, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// Writes random keys.
    Write,
    /// Merges into random keys.
    Merge,
    /// Scans everything again and again.
    Scan,
}

/// State that the threads of one benchmark share.
#[derive(Debug, Default)]
pub struct BenchmarkState {
    /// Foreground threads still at work.
    pub readers: AtomicUsize,
    /// Keys that YCSB's workloads have inserted, with those that were there.
    pub inserted: AtomicU64,
    /// The clock of `timeseries`: one tick for each write.
    pub ticks: AtomicU64,
    /// True if its writer is done.
    pub written: AtomicBool,
    /// Threads of it that took their part.
    pub taken: AtomicUsize,
}

/// Counts a foreground thread as done when dropped, whether it finished, failed or panicked, so
/// that the background thread always ends.
pub struct Foreground<'a>(pub &'a BenchmarkState);

impl Drop for Foreground<'_> {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a foreground thread's task.
///
/// # Errors
/// The first error of the engine.
pub fn run<S: Session>(
    task: Task,
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
    shared: &BenchmarkState,
) -> Result<()> {
    match task {
        Task::FillSeq | Task::FillRandom | Task::FillUnique => fill(task, session, s, rng, meter),
        Task::Update => update(session, s, rng, meter),
        Task::Read => read(session, s, rng, meter),
        Task::MultiRead => multi_read(session, s, rng, meter),
        Task::ReadSeq => scan(session, s, meter, true),
        Task::ReadReverse => scan(session, s, meter, false),
        Task::Seek => seek(session, s, rng, meter),
        Task::NewIterator => new_iterator(session, s, meter),
        Task::ReadWrite => read_write(session, s, rng, meter),
        Task::Merge => merge(session, s, rng, meter),
        Task::DeleteSeq => delete(session, s, rng, meter, true),
        Task::DeleteRandom => delete(session, s, rng, meter, false),
        Task::ReadFast => read_fast(session, s, rng, meter),
        Task::Operands => operands(session, s, rng, meter),
        Task::ReadMerge => change::read_merge(session, s, rng, meter),
        Task::Xor => change::rewrite(session, s, rng, meter, change::ValueChange::Xor),
        Task::Append => change::rewrite(session, s, rng, meter, change::ValueChange::Append),
        Task::InThrees => change::in_threes(session, s, rng, meter),
        Task::Replace => change::replace(session, s, rng, meter),
        Task::FillSeekSeq => {
            fill(Task::FillSeq, session, s, rng, meter)?;
            ranges::seek_all(session, s, meter)
        }
        Task::MultiScan => ranges::multi_scan(session, s, rng, meter),
        Task::MultiScanRandom => ranges::multi_scan_random(session, s, rng, meter),
        Task::ApproximateSize => ranges::approximate_size(session, s, rng, meter),
        Task::MemtableStats => ranges::memtable_stats(session, s, rng, meter),
        Task::Mix => mix_loop::run(session, s, rng, meter),
        Task::Transaction => transactions::run(session, s, rng, meter),
        Task::TimeSeries => timeseries::run(session, s, rng, meter, shared),
        Task::Ycsb(which) => ycsb::run(which, session, s, rng, meter, shared),
    }
}

fn pace(pacer: &mut Option<Pacer>, units: u64, meter: &mut Meter<'_>) {
    let Some(pacer) = pacer else { return };
    if meter.has_histogram()
        && let Some(late) = pacer.late()
    {
        meter.intended(late);
    }
    if pacer.spend(units) {
        meter.reset_last();
    }
}

fn fill<S: Session>(
    task: Task,
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut values, mut pacer) = (s.keys(), s.value_maker(), s.write_pacer());
    let duration = if task == Task::FillSeq {
        Duration::ZERO
    } else {
        s.duration
    };
    let order = Permutation::new(s.num, s.seed);
    let limit = if task == Task::FillUnique {
        s.writes.min(s.num)
    } else {
        s.writes
    };
    // Unique keys end the fill even when time would not.
    let mut budget = Budget::new(duration, limit, s.check_every);
    let mut next = 0;
    let mut ends = (s.keys(), s.keys());
    while budget.more(s.batch) {
        session.batch_clear();
        let mut batch_bytes = 0;
        for _ in 0..s.batch {
            let number = match task {
                Task::FillSeq => next,
                Task::FillUnique if next >= s.num => break,
                Task::FillUnique => order.at(next),
                _ => rng.below(s.num),
            };
            next += 1;
            session.choose(number);
            let (key, value) = (keys.key(number), values.value());
            session.batch_put(key, value);
            batch_bytes += (key.len() + value.len()) as u64;
            if s.tombstones.is_due(next) {
                change::delete_range(session, s, rng, &mut ends)?;
            }
        }
        if batch_bytes == 0 {
            break;
        }
        session.batch_write()?;
        meter.add_bytes(batch_bytes);
        meter.finished(s.batch);
        pace(&mut pacer, batch_bytes, meter);
    }
    Ok(())
}

fn update<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut values, mut pacer) = (s.keys(), s.value_maker(), s.write_pacer());
    let mut budget = s.budget(s.read_writes);
    let (mut found, mut updates) = (0u64, 0u64);
    while budget.more(1) {
        let number = rng.below(s.num);
        session.choose(number);
        let key = keys.key(number);
        if let Some(size) = session.get(key, <[u8]>::len)? {
            found += 1;
            meter.add_bytes((key.len() + size) as u64);
        }
        let value = values.value();
        session.put(key, value)?;
        let bytes = (key.len() + value.len()) as u64;
        updates += 1;
        meter.add_bytes(bytes);
        meter.finished(1);
        pace(&mut pacer, bytes, meter);
    }
    meter.set_message(format!("( updates:{updates} found:{found})"));
    Ok(())
}

fn read<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut pacer) = (s.keys(), s.read_pacer());
    let mut budget = s.budget(s.reads);
    let (mut found, mut reads, mut bytes) = (0u64, 0u64, 0u64);
    while budget.more(1) {
        let number = s.pick(rng);
        session.choose(number);
        let key = keys.key(number);
        reads += 1;
        if let Some(size) = session.get(key, |value| black_box(value).len())? {
            found += 1;
            bytes += (key.len() + size) as u64;
        }
        meter.finished(1);
        pace(&mut pacer, 1, meter);
    }
    meter.add_bytes(bytes);
    meter.set_message(format!("({found} of {reads} found)"));
    Ok(())
}

fn multi_read<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut pacer) = (s.keys(), s.read_pacer());
    let mut budget = s.budget(s.reads);
    let (mut found, mut reads, mut bytes) = (0u64, 0u64, 0u64);
    let mut flat = Vec::with_capacity(s.key_size * s.batch as usize);
    while budget.more(s.batch) {
        flat.clear();
        let first = s.pick(rng);
        session.choose(first);
        for i in 0..s.batch {
            let number = match s.multiread_stride {
                0 => s.pick(rng),
                stride => (first + i * stride) % s.num,
            };
            flat.extend_from_slice(keys.key(number));
        }
        let (hits, size) = session.multi_get(&flat, s.key_size)?;
        reads += s.batch;
        found += hits;
        bytes += size + hits * s.key_size as u64;
        meter.finished(s.batch);
        pace(&mut pacer, s.batch, meter);
    }
    meter.add_bytes(bytes);
    meter.set_message(format!("({found} of {reads} found)"));
    Ok(())
}

fn scan<S: Session>(
    session: &mut S,
    s: &Settings,
    meter: &mut Meter<'_>,
    forward: bool,
) -> Result<()> {
    let until = s.repeat_walks.then(|| Instant::now() + s.duration);
    let mut iter = session.iter(None, None)?;
    loop {
        walk(&mut iter, s.reads, meter, forward)?;
        let has_time = until.is_some_and(|until| Instant::now() < until);
        if !has_time || crate::interrupt::stopped() {
            return Ok(());
        }
    }
}

/// One pass over the entries from an end of the database.
fn walk<I: Iter>(iter: &mut I, reads: u64, meter: &mut Meter<'_>, forward: bool) -> Result<()> {
    let mut bytes = 0;
    let mut left = reads;
    let mut on = left > 0
        && if forward {
            iter.seek_to_first()
        } else {
            iter.seek_to_last()
        };
    while on {
        bytes += (black_box(iter.key()).len() + black_box(iter.value()).len()) as u64;
        meter.finished(1);
        left -= 1;
        on = left > 0
            && !crate::interrupt::stopped()
            && if forward { iter.next() } else { iter.prev() };
    }
    meter.add_bytes(bytes);
    iter.status()
}

fn seek<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut bound, mut pacer) = (s.keys(), s.keys(), s.read_pacer());
    let mut budget = s.budget(s.reads);
    let (mut found, mut seeks, mut bytes) = (0u64, 0u64, 0u64);
    let mut copy = [0u8; 256];
    while budget.more(1) {
        let number = rng.below(s.num);
        session.choose(number);
        let key = keys.key(number);
        let (lower, upper) = match (s.max_scan_distance, s.reverse) {
            (0, _) => (None, None),
            (far, true) => (Some(bound.key(number.saturating_sub(far))), None),
            (far, false) => (None, Some(bound.key(s.num.min(number + far)))),
        };
        let mut iter = session.iter(lower, upper)?;
        let mut on = iter.seek(key);
        seeks += 1;
        found += u64::from(on && iter.key() == key);
        let mut left = s.seek_nexts;
        while left > 0 && on {
            let value = iter.value();
            let n = value.len().min(copy.len());
            copy[..n].copy_from_slice(&value[..n]);
            bytes += (iter.key().len() + value.len()) as u64;
            on = if s.reverse { iter.prev() } else { iter.next() };
            left -= 1;
        }
        black_box(&copy);
        let mut doomed = Vec::new();
        while on && (doomed.len() as u64) < s.nexts_to_delete {
            doomed.push(iter.key().to_vec());
            on = if s.reverse { iter.prev() } else { iter.next() };
        }
        if !on {
            iter.status()?;
        }
        drop(iter);
        for key in doomed {
            session.delete(&key)?;
        }
        meter.finished(1);
        pace(&mut pacer, 1, meter);
    }
    meter.add_bytes(bytes);
    meter.set_message(format!("({found} of {seeks} found)"));
    Ok(())
}

fn read_fast<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    const ROUND: u64 = 100;
    let (mut keys, mut pacer) = (s.keys(), s.read_pacer());
    let mut budget = s.budget(s.reads);
    let (mut found, mut reads, mut beyond) = (0u64, 0u64, 0u64);
    let mask = s.num.next_power_of_two() - 1;
    while budget.more(ROUND) {
        for _ in 0..ROUND {
            let number = rng.next_u64() & mask;
            session.choose(number);
            found += u64::from(session.get(keys.key(number), |_| ())?.is_some());
            beyond += u64::from(number >= s.num);
        }
        reads += ROUND;
        meter.finished(ROUND);
        pace(&mut pacer, ROUND, meter);
    }
    meter.set_message(format!(
        "({found} of {reads} found, issued {beyond} non-exist keys)"
    ));
    Ok(())
}

fn operands<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut pacer) = (s.keys(), s.read_pacer());
    let mut budget = s.budget(s.reads);
    let (mut found, mut reads) = (0u64, 0u64);
    while budget.more(1) {
        let number = s.pick(rng);
        session.choose(number);
        let (count, bytes) = session.merge_operands(keys.key(number))?;
        reads += 1;
        found += u64::from(count > 0);
        meter.add_bytes(bytes);
        meter.finished(1);
        pace(&mut pacer, 1, meter);
    }
    meter.set_message(format!("({found} of {reads} found)"));
    Ok(())
}

fn new_iterator<S: Session>(session: &mut S, s: &Settings, meter: &mut Meter<'_>) -> Result<()> {
    let mut budget = s.budget(s.reads);
    while budget.more(1) {
        drop(session.iter(None, None)?);
        meter.finished(1);
    }
    Ok(())
}

fn read_write<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut values, mut pacer) = (s.keys(), s.value_maker(), s.write_pacer());
    let mut budget = s.budget(s.read_writes);
    let (mut reads, mut writes, mut found) = (0u64, 0u64, 0u64);
    while budget.more(1) {
        let number = rng.below(s.num);
        session.choose(number);
        let key = keys.key(number);
        // In every hundred operations the reads come first, as in db_bench.
        if (reads + writes) % 100 < s.read_percent {
            found += u64::from(session.get(key, |value| black_box(value).len())?.is_some());
            reads += 1;
            meter.finished(1);
        } else {
            let value = values.value();
            session.put(key, value)?;
            writes += 1;
            meter.finished(1);
            pace(&mut pacer, (key.len() + value.len()) as u64, meter);
        }
    }
    meter.set_message(format!(
        "( reads:{reads} writes:{writes} total:{} found:{found})",
        reads + writes
    ));
    Ok(())
}

fn merge<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let (mut keys, mut values, mut pacer) = (s.keys(), s.value_maker(), s.write_pacer());
    let mut budget = s.budget(s.read_writes);
    while budget.more(1) {
        let number = rng.below(s.merge_keys);
        session.choose(number);
        let (key, value) = (keys.key(number), values.value());
        session.merge(key, value)?;
        let bytes = (key.len() + value.len()) as u64;
        meter.add_bytes(bytes);
        meter.finished(1);
        pace(&mut pacer, bytes, meter);
    }
    meter.set_message(format!("( updates:{})", meter.done()));
    Ok(())
}

fn delete<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
    in_order: bool,
) -> Result<()> {
    let mut keys = s.keys();
    let duration = if in_order { Duration::ZERO } else { s.duration };
    let mut budget = Budget::new(duration, s.deletes, s.check_every);
    let mut next = 0;
    while budget.more(s.batch) {
        session.batch_clear();
        for _ in 0..s.batch {
            let number = if in_order { next } else { rng.below(s.num) };
            next += 1;
            session.choose(number);
            session.batch_delete(keys.key(number));
        }
        session.batch_write()?;
        meter.finished(s.batch);
    }
    Ok(())
}

/// Runs the extra thread until the others are done.
///
/// # Errors
/// The first error of the engine.
pub fn run_background<S: Session>(
    kind: Background,
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
    shared: &BenchmarkState,
) -> Result<()> {
    meter.set_background();
    let on = || shared.readers.load(Ordering::Relaxed) > 0 && !crate::interrupt::stopped();
    if kind == Background::Scan {
        while on() {
            let mut iter = session.iter(None, None)?;
            let mut valid = iter.seek_to_first();
            while valid && on() {
                meter.add_bytes((iter.key().len() + black_box(iter.value()).len()) as u64);
                meter.finished(1);
                valid = iter.next();
            }
            iter.status()?;
        }
        return Ok(());
    }
    let (mut keys, mut values) = (s.keys(), s.value_maker());
    let mut pacer = Pacer::new(s.background_rate as f64);
    let mut ends = (s.keys(), s.keys());
    let mut written = 0;
    let more = |written: u64| {
        if s.finish_after_writes {
            written < s.writes && !crate::interrupt::stopped()
        } else {
            on()
        }
    };
    while more(written) {
        let number = rng.below(s.background_num);
        session.choose(number);
        let (key, value) = (keys.key(number), values.value());
        match kind {
            Background::Merge => session.merge(key, value)?,
            _ => session.put(key, value)?,
        }
        let bytes = (key.len() + value.len()) as u64;
        written += 1;
        if s.tombstones.is_due(written) {
            change::delete_range(session, s, rng, &mut ends)?;
        }
        meter.add_bytes(bytes);
        meter.finished(1);
        pace(&mut pacer, bytes, meter);
    }
    Ok(())
}
