//! The settings of one benchmark, resolved from flags once; threads share them.

use std::sync::Arc;
use std::time::Duration;

use super::mix::Mix;
use super::series::Series;
use super::zipf::Zipf;
use crate::flags::Flags;
use crate::generate::{Budget, KeyFormatter, Pacer, Rng, ValueSizes, ValueSource};
use crate::sine::Sine;
use crate::{Failure, Result};

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
    /// Walks begin again until the time is over.
    pub repeat_walks: bool,
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
    /// Skew of random reads, 0 for none.
    pub exp_range: f64,
    /// The keys of the database, where reads take those.
    pub existing: Option<Arc<Vec<Vec<u8>>>>,
    /// Of 100 values those that are the same bytes.
    pub same_percent: u64,
    /// The background writer ends by itself, after `writes` writes.
    pub finish_after_writes: bool,
    /// Keys of workloads on few keys.
    pub distinct: u64,
    /// Deletions per 100 operations of a mix.
    pub delete_percent: u64,
    /// Merges per 100 operations of a mix.
    pub merge_percent: u64,
    /// Entries that a seek deletes behind those it reads.
    pub nexts_to_delete: u64,
    /// Ranges of one multi-scan.
    pub multiscan_size: u64,
    /// Keys between two of them.
    pub multiscan_stride: u64,
    /// Range deletions of fills.
    pub tombstones: Tombstones,
    /// Sets that a transaction changes a key of.
    pub transaction_sets: u64,
    /// Most microseconds that a transaction waits after a read.
    pub transaction_sleep: u64,
    /// Standard deviation of the keys that are replaced.
    pub stddev: f64,
    /// Keys are replaced by a single deletion.
    pub single_deletes: bool,
    /// Series of `timeseries`.
    pub series: Series,
    /// Settings of `mixgraph`.
    pub mix: Mix,
    /// A limit of writers that changes with time, in the place of `write_rate`.
    pub sine_write: Option<Sine>,
    /// How long writers write and how long they rest, in turns.
    pub bursts: Option<(Duration, Duration)>,
    /// The distribution of keys of YCSB, where one of its workloads runs.
    pub zipf: Option<Arc<Zipf>>,
}

/// When a writer deletes a range.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tombstones {
    /// Writes before the first.
    pub before: u64,
    /// Writes between two; 0 for no range deletions.
    pub every: u64,
    /// Keys of a range.
    pub width: u64,
    /// Most of them.
    pub most: u64,
    /// Deletes the keys one by one instead.
    pub one_by_one: bool,
}

impl Tombstones {
    /// Returns whether one is due after this many writes.
    pub(super) fn is_due(&self, written: u64) -> bool {
        let since = written.saturating_sub(self.before);
        self.every > 0
            && since > 0
            && since.is_multiple_of(self.every)
            && since / self.every <= self.most
    }
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
            exp_range: flags.number("read_random_exp_range"),
            existing: None,
            same_percent: flags.count("same_value_percentage").min(100),
            repeat_walks: flags.flag("repeat_walks"),
            finish_after_writes: flags.flag("finish_after_writes"),
            distinct: flags.count("numdistinct").max(1),
            delete_percent: flags.count("deletepercent"),
            merge_percent: flags.count("mergereadpercent"),
            nexts_to_delete: flags.count("seek_nexts_to_delete"),
            multiscan_size: flags.count("multiscan_size").max(1),
            multiscan_stride: flags.count("multiscan_stride"),
            tombstones: Tombstones {
                before: flags.count("writes_before_delete_range"),
                every: flags.count("writes_per_range_tombstone"),
                width: flags.count("range_tombstone_width"),
                most: flags.count("max_num_range_tombstones"),
                one_by_one: flags.flag("expand_range_tombstones"),
            },
            transaction_sets: flags.count("transaction_sets"),
            transaction_sleep: flags.count("transaction_sleep"),
            stddev: flags.number("stddev"),
            single_deletes: flags.flag("use_single_deletes"),
            series: Series::from_flags(flags)?,
            mix: Mix::from_flags(flags, num)?,
            bursts: bursts(flags)?,
            sine_write: flags
                .flag("sine_write_rate")
                .then(|| Sine::from_flags(flags, "sine_write_rate_interval_milliseconds")),
            zipf: None,
        })
    }

    /// The number of a random key to read.
    #[inline]
    pub(super) fn pick(&self, rng: &mut Rng) -> u64 {
        if self.exp_range == 0.0 {
            return rng.below(self.num);
        }
        // Few keys are hot; a prime spreads them over the range.
        let skewed = (-rng.unit() * self.exp_range).exp() * self.num as f64;
        (skewed as u64).wrapping_mul(0x5bd1_e995) % self.num
    }

    pub(super) fn keys(&self) -> KeyFormatter {
        KeyFormatter::with_prefix(
            self.key_size,
            self.prefix_size,
            self.keys_per_prefix,
            self.num,
        )
        .use_existing(self.existing.clone())
    }

    pub(super) fn value_maker(&self) -> ValueSource {
        ValueSource::new(self.values, self.compression_ratio).with_same(self.same_percent)
    }

    pub(super) fn budget(&self, ops: u64) -> Budget {
        Budget::new(self.duration, ops, self.check_every)
    }

    pub(super) fn write_pacer(&self) -> Option<Pacer> {
        let threads = self.threads as f64;
        if let Some((burst, rest)) = self.bursts {
            return Some(Pacer::bursts(burst, rest));
        }
        match &self.sine_write {
            Some(sine) => Some(Pacer::following(sine.clone(), threads)),
            None => Pacer::new(self.write_rate as f64 / threads),
        }
    }

    pub(super) fn read_pacer(&self) -> Option<Pacer> {
        Pacer::new(self.read_rate as f64 / self.threads as f64)
    }
}

/// The turns of writers that rest.
fn bursts(flags: &Flags) -> Result<Option<(Duration, Duration)>> {
    let seconds = |name| Duration::from_secs(flags.count(name));
    let (burst, rest) = (seconds("burst_seconds"), seconds("rest_seconds"));
    if burst.is_zero() || rest.is_zero() {
        return Ok(None);
    }
    if flags.count("benchmark_write_rate_limit") > 0 || flags.flag("sine_write_rate") {
        return Err(Failure::new(
            "burst_seconds does not go with benchmark_write_rate_limit or sine_write_rate",
        ));
    }
    Ok(Some((burst, rest)))
}

fn clock_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |d| d.as_micros() as u64)
}
