//! Databases whose values expire, as RocksDB's `DBWithTTL` stores them.
//!
//! Every value and merge operand ends in four bytes: the second of the Unix epoch in which it was
//! written, little end first. Reads take them off; compactions drop what is older than the family's
//! time to live. A database is of this kind as a whole, and nothing in its files says so: it must
//! always be opened with a time to live, be it 0, which keeps everything. Expired values may be
//! seen until a compaction meets them, and overwritten values live on.
//!
//! A value without a plausible time (shorter than four bytes, or older than the format) is
//! `Corruption` to point reads: the database was probably written without times to live. A clock
//! that stood before the format existed gives such times as well, so iterators show these values
//! and compactions drop them as expired, as RocksDB's do. What has no time at all (shorter, or
//! negative) ends an iterator, and compactions keep it.
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir().expect("a directory");
//! use esker::{Db, Options};
//!
//! let a_day = std::time::Duration::from_secs(86_400);
//! let db = Db::open_with_ttl(dir.path(), Options::new().create_if_missing(true), a_day)?;
//! db.put("session", "alive")?;
//! assert_eq!(db.get("session")?.as_deref(), Some(&b"alive"[..]));
//! assert_eq!(db.ttl(&db.default_family_handle()), Some(86_400));
//! # Ok(())
//! # }
//! ```
//!
//! Thread-safety: any thread.

use crate::options::FamilyOptions;
use esker_env::Clock;
use esker_format::batch::{Record, WriteBatch};
use esker_lsm::compaction_filter::{
    CompactionFilter, CompactionFilterFactory, Decision, FilterContext, FilterValue,
};
use esker_lsm::merge_operator::{Base, FailureScope, MergeOperator, Merged, Operands};
use esker_status::{Error, Result};
use esker_sync::atomic::{AtomicU32, Ordering};
use esker_sync::{Arc, Mutex, Rank};
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of the time at the end of a value.
pub const TIME_LEN: usize = 4;
/// The oldest time that a value can have: when RocksDB began to write them.
pub const OLDEST_TIME: i32 = 1_368_146_402;

/// How long the values of a family live: a [`Duration`], or RocksDB's seconds.
///
/// It has whole seconds, rounded up; 0 and less, and `None`, are for ever, as is more than 68
/// years.
///
/// ```
/// use esker::ttl::TimeToLive;
/// use std::time::Duration;
///
/// let an_hour = TimeToLive::from(Duration::from_secs(3600));
/// assert_eq!(an_hour, TimeToLive::from(3600));
/// assert_eq!(TimeToLive::from(None), TimeToLive::FOREVER);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeToLive(i32);

impl TimeToLive {
    /// Values do not expire.
    pub const FOREVER: TimeToLive = TimeToLive(0);

    /// RocksDB's number of seconds; 0 for ever.
    pub fn seconds(self) -> i32 {
        self.0
    }

    /// The time; `None` for ever.
    pub fn duration(self) -> Option<Duration> {
        let seconds = u64::try_from(self.0).ok().filter(|s| *s > 0)?;
        Some(Duration::from_secs(seconds))
    }
}

impl From<i32> for TimeToLive {
    fn from(seconds: i32) -> Self {
        TimeToLive(seconds.max(0))
    }
}

impl From<Duration> for TimeToLive {
    fn from(time: Duration) -> Self {
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        i32::try_from(seconds).map_or(Self::FOREVER, TimeToLive)
    }
}

impl From<Option<Duration>> for TimeToLive {
    fn from(time: Option<Duration>) -> Self {
        time.map_or(Self::FOREVER, Self::from)
    }
}

/// The times to live of a database's families, by name.
#[derive(Debug)]
pub(crate) struct Ttls {
    clock: Arc<dyn Clock>,
    families: Mutex<BTreeMap<String, Arc<Expiry>>>,
}

/// The time to live of one family.
#[derive(Debug)]
struct Expiry {
    /// Seconds, as the bits of an `i32`; 0 and less keep everything.
    seconds: AtomicU32,
    clock: Arc<dyn Clock>,
}

impl Ttls {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Ttls {
            clock,
            families: Mutex::new(Rank::LEAF, BTreeMap::new()),
        })
    }

    /// A family of this name that is opened or created lives by `seconds`.
    pub(crate) fn register(&self, family: &str, seconds: i32) {
        let expiry = Expiry {
            seconds: AtomicU32::new(seconds as u32),
            clock: Arc::clone(&self.clock),
        };
        self.families
            .lock()
            .insert(family.to_owned(), Arc::new(expiry));
    }

    /// The seconds that a family's values live.
    pub(crate) fn seconds(&self, family: &str) -> Option<i32> {
        self.families.lock().get(family).map(|e| e.seconds())
    }

    /// Changes the time to live of a family; false when there is none of this name.
    pub(crate) fn set_seconds(&self, family: &str, seconds: i32) -> bool {
        let families = self.families.lock();
        let found = families.get(family);
        if let Some(e) = found {
            e.seconds.store(seconds as u32, Ordering::Relaxed);
        }
        found.is_some()
    }

    /// The options of a family with its filter and its operator made to know of times.
    pub(crate) fn wrap(&self, family: &str, mut options: FamilyOptions) -> FamilyOptions {
        let Some(expiry) = self.families.lock().get(family).cloned() else {
            return options;
        };
        match options.compaction_filter.take() {
            Some(filter) => {
                options.compaction_filter = Some(Arc::new(TtlFilter {
                    expiry,
                    inner: Some(filter),
                }));
            }
            None => {
                options.compaction_filter_factory = Some(Arc::new(TtlFilterFactory {
                    expiry,
                    inner: options.compaction_filter_factory.take(),
                }));
            }
        }
        if let Some(inner) = options.merge_operator.take() {
            options.merge_operator = Some(Arc::new(TtlMerge {
                inner,
                clock: Arc::clone(&self.clock),
            }));
        }
        options
    }

    /// The batch with the present time behind every value.
    pub(crate) fn stamp(&self, batch: &WriteBatch) -> Result<WriteBatch> {
        if batch.has_timestamps() {
            return Err(Error::not_supported(
                "user-defined timestamps in a database with times to live",
            ));
        }
        let time = now(&*self.clock).to_le_bytes();
        let added = TIME_LEN * batch.count() as usize;
        let mut out = WriteBatch::with_capacity(batch.data_size() + added);
        for record in batch.records() {
            match record? {
                Record::Put { family, key, value } => {
                    out.put_parts(family, &[key], &[value, &time])?;
                }
                Record::Merge {
                    family,
                    key,
                    operand,
                } => out.merge_parts(family, &[key], &[operand, &time])?,
                Record::Delete { family, key } => out.delete_cf(family, key)?,
                Record::SingleDelete { family, key } => out.single_delete_cf(family, key)?,
                Record::DeleteRange { family, begin, end } => {
                    out.delete_range_cf(family, begin, end)?;
                }
                Record::LogData(blob) => out.log_data(blob)?,
                Record::Noop => {}
                _ => {
                    return Err(Error::not_supported(
                        "a database with times to live takes plain values, operands and deletions",
                    ));
                }
            }
        }
        Ok(out)
    }
}

impl Expiry {
    fn seconds(&self) -> i32 {
        self.seconds.load(Ordering::Relaxed) as i32
    }

    /// Tells whether the value has outlived its family's time to live. What has no time has not.
    fn is_over(&self, value: &[u8]) -> bool {
        let seconds = self.seconds();
        match stored_time(value) {
            Ok(time) if seconds > 0 => {
                i64::from(time) + i64::from(seconds) < i64::from(now(&*self.clock))
            }
            _ => false,
        }
    }
}

/// The present second of the Unix epoch, as values hold it.
fn now(clock: &dyn Clock) -> i32 {
    (clock.unix_us() / 1_000_000) as i32
}

/// The time behind a value; `Corruption` when it has none.
pub(crate) fn stored_time(value: &[u8]) -> Result<i32> {
    let Some((_, time)) = value.split_last_chunk::<TIME_LEN>() else {
        return Err(Error::corruption(
            "Error: value's length less than timestamp's",
        ));
    };
    match i32::from_le_bytes(*time) {
        negative @ ..0 => Err(implausible(negative)),
        time => Ok(time),
    }
}

/// The time behind a value; `Corruption` when it has none or one that cannot be.
pub(crate) fn time_of(value: &[u8]) -> Result<i32> {
    match stored_time(value)? {
        early if early < OLDEST_TIME => Err(implausible(early)),
        time => Ok(time),
    }
}

fn implausible(time: i32) -> Error {
    Error::corruption(format!(
        "Error: Timestamp < ttl feature release time! (second {time} of 1970)"
    ))
    .with_hint(
        "the clock stood wrong when the value was written, or the database was written without a \
         time to live: open it without one then",
    )
}

/// `Corruption` unless a plausible time is behind the value.
pub(crate) fn check(value: &[u8]) -> Result<()> {
    time_of(value).map(|_| ())
}

/// The bytes before the time; `None` when there is no room for one.
fn body(value: &[u8]) -> Option<&[u8]> {
    value.len().checked_sub(TIME_LEN).map(|n| &value[..n])
}

/// Drops what is over, and asks the application about the rest.
struct TtlFilter {
    expiry: Arc<Expiry>,
    inner: Option<Arc<dyn CompactionFilter>>,
}

impl CompactionFilter for TtlFilter {
    fn name(&self) -> &str {
        "TtlCompactionFilter"
    }

    fn filter(&self, level: u8, key: &[u8], value: FilterValue<'_>, out: &mut Vec<u8>) -> Decision {
        if let FilterValue::Value(v) = value
            && self.expiry.is_over(v)
        {
            return Decision::Remove;
        }
        let Some(inner) = &self.inner else {
            return Decision::Keep;
        };
        let (whole, shown) = match value {
            FilterValue::Value(v) => (v, body(v).map(FilterValue::Value)),
            FilterValue::MergeOperand(v) => (v, body(v).map(FilterValue::MergeOperand)),
            FilterValue::Entity(_) => return inner.filter(level, key, value, out),
        };
        let Some(shown) = shown else {
            return Decision::Keep;
        };
        let decision = inner.filter(level, key, shown, out);
        if decision == Decision::ChangeValue {
            out.extend_from_slice(&whole[whole.len() - TIME_LEN..]);
        }
        decision
    }

    fn ignore_snapshots(&self) -> bool {
        self.inner.as_ref().is_none_or(|f| f.ignore_snapshots())
    }
}

/// Makes a [`TtlFilter`] for each job.
struct TtlFilterFactory {
    expiry: Arc<Expiry>,
    inner: Option<Arc<dyn CompactionFilterFactory>>,
}

impl CompactionFilterFactory for TtlFilterFactory {
    fn name(&self) -> &str {
        "TtlCompactionFilterFactory"
    }

    fn create(&self, context: &FilterContext) -> Option<Arc<dyn CompactionFilter>> {
        Some(Arc::new(TtlFilter {
            expiry: Arc::clone(&self.expiry),
            inner: self.inner.as_ref().and_then(|f| f.create(context)),
        }))
    }

    fn should_filter_flush(&self) -> bool {
        self.inner.as_ref().is_some_and(|f| f.should_filter_flush())
    }
}

/// Merges what is before the times; the result is of now.
struct TtlMerge {
    inner: Arc<dyn MergeOperator>,
    clock: Arc<dyn Clock>,
}

/// The operands without their times; `None` when one of them has none.
fn bodies<'a>(operands: &[&'a [u8]]) -> Option<Vec<&'a [u8]>> {
    operands.iter().map(|o| body(o)).collect()
}

/// Operands without their times; one that has none is shown as it is.
struct OperandsWithoutTimes<'a>(&'a dyn Operands);

impl Operands for OperandsWithoutTimes<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> &[u8] {
        let whole = self.0.get(index);
        body(whole).unwrap_or(whole)
    }
}

impl TtlMerge {
    fn stamp(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&now(&*self.clock).to_le_bytes());
    }
}

impl MergeOperator for TtlMerge {
    fn name(&self) -> &str {
        "TtlMergeOperator"
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope> {
        let operands = bodies(operands).ok_or(FailureScope::TryMerge)?;
        let base = match base {
            Base::Value(v) => Base::Value(body(v).ok_or(FailureScope::TryMerge)?),
            other => other,
        };
        match self.inner.full_merge(key, base, &operands, out)? {
            Merged::Entity => return Ok(Merged::Entity),
            Merged::Value => {}
            Merged::Operand(i) => {
                let operand = operands.get(i).ok_or(FailureScope::TryMerge)?;
                out.clear();
                out.extend_from_slice(operand);
            }
        }
        self.stamp(out);
        Ok(Merged::Value)
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> bool {
        let done =
            bodies(operands).is_some_and(|operands| self.inner.partial_merge(key, &operands, out));
        if done {
            self.stamp(out);
        }
        done
    }

    fn allow_single_operand(&self) -> bool {
        self.inner.allow_single_operand()
    }

    fn should_merge(&self, operands_newest_first: &dyn Operands) -> bool {
        self.inner
            .should_merge(&OperandsWithoutTimes(operands_newest_first))
    }

    fn understands_entities(&self) -> bool {
        self.inner.understands_entities()
    }
}
