//! The loops of the benchmarks, as `db_bench` defines them.
//!
//! Each function is one thread's work on its own [`Session`]; it is generic, so that the loop calls
//! the engine directly. A loop does what `db_bench`'s does per operation (fills go through a write
//! batch, reads look at the pinned value, each seek has a fresh iterator) and nothing else.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::flags::Flags;
use crate::generate::{Budget, KeyMaker, Pacer, Permutation, Rng, ValueMaker, ValueSizes};
use crate::measure::Meter;
use crate::store::{Iter, Session};
use crate::{Failure, Result};

/// What a foreground thread does.
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
}

impl Task {
    /// Whether the counted bytes were written.
    pub fn writes(self) -> bool {
        use Task::{FillRandom, FillSeq, FillUnique, Merge};
        matches!(self, FillSeq | FillRandom | FillUnique | Merge)
    }
}

/// What the extra thread does, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// Writes random keys.
    Write,
    /// Merges into random keys.
    Merge,
    /// Scans everything again and again.
    Scan,
}

/// The settings of one benchmark.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Number of keys.
    pub num: u64,
    /// Read operations per thread.
    pub reads: u64,
    /// Write operations per thread.
    pub writes: u64,
    /// Operations per thread of mixed benchmarks.
    pub read_writes: u64,
    /// Delete operations per thread.
    pub deletes: u64,
    /// Keys of merges.
    pub merge_keys: u64,
    /// Seconds, when time limits the benchmark.
    pub duration: Duration,
    /// Operations between looks at the clock.
    pub check_every: u64,
    /// Foreground threads.
    pub threads: usize,
    /// Base of the seeds.
    pub seed: u64,
    /// Bytes per key.
    pub key_size: usize,
    /// Bytes of the key prefix.
    pub prefix_size: usize,
    /// Keys that share a prefix.
    pub keys_per_prefix: u64,
    /// Bytes per value.
    pub values: ValueSizes,
    /// Size that values compress to.
    pub compression_ratio: f64,
    /// Operations per batch.
    pub batch: u64,
    /// Entries per seek.
    pub seek_nexts: u64,
    /// Seeks go backwards.
    pub reverse: bool,
    /// Distance of the iterator's bound, 0 for none.
    pub max_scan_distance: u64,
    /// Distance of the keys of a multi-get, 0 for random keys.
    pub multiread_stride: u64,
    /// Reads per 100 operations of a mix.
    pub read_percent: u64,
    /// Keys of the background writer.
    pub background_num: u64,
    /// Bytes per second of writers, 0 for no limit.
    pub write_rate: u64,
    /// Bytes per second of the background writer, 0 for no limit.
    pub background_rate: u64,
    /// Operations per second of readers, 0 for no limit.
    pub read_rate: u64,
}

impl Settings {
    /// Resolves the flags.
    ///
    /// # Errors
    /// Values that make no sense together.
    pub fn from_flags(flags: &Flags) -> Result<Settings> {
        let num = flags.count("num");
        let or_num = |name: &str| {
            if flags.int(name) < 0 {
                num
            } else {
                flags.count(name)
            }
        };
        let (low, high) = (
            flags.count("value_size_min") as usize,
            flags.count("value_size_max") as usize,
        );
        let values = match flags.text("value_size_distribution_type") {
            "fixed" => ValueSizes::Fixed(flags.count("value_size") as usize),
            "uniform" if low <= high => ValueSizes::Uniform(low, high),
            "normal" if low <= high => ValueSizes::Normal(low, high),
            other => {
                return Err(Failure::new(format!(
                    "value sizes {other} of {low} to {high} make no sense"
                )));
            }
        };
        let keys_per_prefix = flags.count("keys_per_prefix");
        let (key_size, prefix_size) = (
            flags.count("key_size") as usize,
            flags.count("prefix_size") as usize,
        );
        if num == 0 || key_size == 0 || flags.int("threads") < 1 || prefix_size > key_size {
            return Err(Failure::new(
                "num, key_size and threads must be positive, prefix_size within the key",
            ));
        }
        let read_percent = flags.count("readwritepercent");
        if read_percent > 100 {
            return Err(Failure::new("readwritepercent is at most 100"));
        }
        let seed = match flags.count("seed") {
            0 => clock_seed(),
            seed => seed,
        };
        let (reads, writes) = (flags.int("reads"), flags.int("writes"));
        Ok(Settings {
            num,
            reads: or_num("reads"),
            writes: or_num("writes"),
            read_writes: if reads < 0 && writes < 0 {
                num
            } else {
                reads.max(writes) as u64
            },
            deletes: or_num("deletes"),
            merge_keys: or_num("merge_keys").max(1),
            duration: Duration::from_secs(flags.count("duration")),
            check_every: flags.count("ops_between_duration_checks"),
            threads: flags.count("threads") as usize,
            seed,
            key_size,
            prefix_size,
            keys_per_prefix,
            values,
            compression_ratio: flags.number("compression_ratio"),
            batch: flags.count("batch_size").max(1),
            seek_nexts: flags.count("seek_nexts"),
            reverse: flags.flag("reverse_iterator"),
            max_scan_distance: flags.count("max_scan_distance"),
            multiread_stride: flags.count("multiread_stride"),
            read_percent,
            background_num: match flags.count("bgwriter_num") {
                0 => num,
                n => n,
            },
            write_rate: flags.count("benchmark_write_rate_limit"),
            background_rate: match flags.int("background_write_rate_limit") {
                n if n < 0 => flags.count("benchmark_write_rate_limit"),
                n => n as u64,
            },
            read_rate: flags.count("benchmark_read_rate_limit"),
        })
    }

    fn keys(&self) -> KeyMaker {
        KeyMaker::with_prefix(
            self.key_size,
            self.prefix_size,
            self.keys_per_prefix,
            self.num,
        )
    }

    fn value_maker(&self) -> ValueMaker {
        ValueMaker::new(self.values, self.compression_ratio)
    }

    fn budget(&self, ops: u64) -> Budget {
        Budget::new(self.duration, ops, self.check_every)
    }

    fn write_pacer(&self) -> Option<Pacer> {
        Pacer::new(self.write_rate as f64 / self.threads as f64)
    }

    fn read_pacer(&self) -> Option<Pacer> {
        Pacer::new(self.read_rate as f64 / self.threads as f64)
    }
}

fn clock_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |d| d.as_micros() as u64)
}

/// What the threads of one benchmark share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Foreground threads still at work.
    pub readers: AtomicUsize,
}

/// Counts a foreground thread as done when dropped, whether it finished, failed or panicked, so that
/// the background thread always ends.
pub struct Foreground<'a>(pub &'a Shared);

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
    }
}

fn pace(pacer: &mut Option<Pacer>, units: u64, meter: &mut Meter<'_>) {
    if let Some(pacer) = pacer
        && pacer.spend(units)
    {
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
            let (key, value) = (keys.key(number), values.value());
            session.batch_put(key, value);
            batch_bytes += (key.len() + value.len()) as u64;
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
        let key = keys.key(rng.below(s.num));
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
        let key = keys.key(rng.below(s.num));
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
        let first = rng.below(s.num);
        for i in 0..s.batch {
            let number = match s.multiread_stride {
                0 => rng.below(s.num),
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
    let mut iter = session.iter(None, None)?;
    let mut bytes = 0;
    let mut left = s.reads;
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
        on = left > 0 && if forward { iter.next() } else { iter.prev() };
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
        if !on {
            iter.status()?;
        }
        drop(iter);
        meter.finished(1);
        pace(&mut pacer, 1, meter);
    }
    meter.add_bytes(bytes);
    meter.set_message(format!("({found} of {seeks} found)"));
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
        let key = keys.key(rng.below(s.num));
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
        let (key, value) = (keys.key(rng.below(s.merge_keys)), values.value());
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
    shared: &Shared,
) -> Result<()> {
    meter.set_background();
    let on = || shared.readers.load(Ordering::Relaxed) > 0;
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
    while on() {
        let (key, value) = (keys.key(rng.below(s.background_num)), values.value());
        match kind {
            Background::Merge => session.merge(key, value)?,
            _ => session.put(key, value)?,
        }
        let bytes = (key.len() + value.len()) as u64;
        meter.add_bytes(bytes);
        meter.finished(1);
        pace(&mut pacer, bytes, meter);
    }
    Ok(())
}
