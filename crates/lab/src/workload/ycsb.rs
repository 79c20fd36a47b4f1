//! The six core workloads of the Yahoo! Cloud Serving Benchmark (Cooper and others, SoCC 2010).
//!
//! Keys are drawn by a Zipfian distribution (Gray and others, SIGMOD 1994) and spread over the
//! range, or are the latest for D. Records are keys and values of this program; `num` of them are
//! expected in the database, `ycsbload` makes them.

use std::hint::black_box;
use std::sync::atomic::Ordering;

use super::{BenchmarkState, Settings, pace};
use crate::Result;
use crate::generate::Rng;
use crate::measure::Meter;
use crate::store::{Iter, Session};

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ycsb {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// 95 % reads of what was written last, 5 % inserts.
    D,
    /// 95 % short scans, 5 % inserts.
    E,
    /// Half reads, half reads with an update of what was read.
    F,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    ReadUpdate,
}

/// Most entries of a scan.
const LONGEST_SCAN: u64 = 100;

impl Ycsb {
    /// The workload of a benchmark's name.
    pub fn of(name: &str) -> Option<Ycsb> {
        Some(match name {
            "ycsba" => Ycsb::A,
            "ycsbb" => Ycsb::B,
            "ycsbc" => Ycsb::C,
            "ycsbd" => Ycsb::D,
            "ycsbe" => Ycsb::E,
            "ycsbf" => Ycsb::F,
            _ => return None,
        })
    }

    fn operation(self, percent: u64) -> Operation {
        let (first, part, second) = match self {
            Ycsb::A => (Operation::Read, 50, Operation::Update),
            Ycsb::B => (Operation::Read, 95, Operation::Update),
            Ycsb::C => (Operation::Read, 100, Operation::Read),
            Ycsb::D => (Operation::Read, 95, Operation::Insert),
            Ycsb::E => (Operation::Scan, 95, Operation::Insert),
            Ycsb::F => (Operation::Read, 50, Operation::ReadUpdate),
        };
        if percent < part { first } else { second }
    }
}

/// Spreads the hot numbers over the range (FNV-1a of its bytes, as YCSB does).
fn spread(number: u64, below: u64) -> u64 {
    let hash = number
        .to_le_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    hash % below
}

/// Runs one thread's share.
pub(super) fn run<S: Session>(
    which: Ycsb,
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
    shared: &BenchmarkState,
) -> Result<()> {
    let Some(zipf) = s.zipf.as_deref() else {
        return Err(crate::Failure::new("the distribution of keys is missing"));
    };
    let (mut keys, mut values) = (s.keys(), s.value_maker());
    let (mut budget, mut pacer) = (s.budget(s.read_writes), s.write_pacer());
    // A rate of operations; it goes before one of bytes.
    let mut steady = s.read_pacer();
    let (mut found, mut reads, mut writes, mut scanned) = (0u64, 0u64, 0u64, 0u64);
    let mut bytes = 0;
    while budget.more(1) {
        let operation = which.operation(rng.below(100));
        let number = match operation {
            Operation::Insert => s.num + shared.inserted.fetch_add(1, Ordering::Relaxed),
            _ if which == Ycsb::D => {
                let newest = s.num + shared.inserted.load(Ordering::Relaxed);
                newest - 1 - zipf.draw(rng)
            }
            _ => spread(zipf.draw(rng), s.num),
        };
        session.choose(number);
        let key = keys.key(number);
        if matches!(operation, Operation::Read | Operation::ReadUpdate) {
            reads += 1;
            if let Some(size) = session.get(key, |value| black_box(value).len())? {
                found += 1;
                bytes += (key.len() + size) as u64;
            }
        }
        if operation == Operation::Scan {
            reads += 1;
            let mut iter = session.iter(None, None)?;
            let mut left = 1 + rng.below(LONGEST_SCAN);
            let mut on = iter.seek(key);
            found += u64::from(on && iter.key() == key);
            while on && left > 0 {
                bytes += (iter.key().len() + black_box(iter.value()).len()) as u64;
                (scanned, left) = (scanned + 1, left - 1);
                on = iter.next();
            }
            iter.status()?;
        }
        let mut written = 0;
        if !matches!(operation, Operation::Read | Operation::Scan) {
            let value = values.value();
            session.put(key, value)?;
            writes += 1;
            written = (key.len() + value.len()) as u64;
        }
        meter.finished(1);
        bytes += written;
        if steady.is_some() {
            pace(&mut steady, 1, meter);
        } else if written > 0 {
            pace(&mut pacer, written, meter);
        }
    }
    meter.add_bytes(bytes);
    meter.set_message(format!(
        "( reads:{reads} found:{found} writes:{writes} scanned:{scanned})"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_in_proportion() {
        let count = |which: Ycsb, wanted: Operation| {
            (0..100).filter(|p| which.operation(*p) == wanted).count()
        };
        assert_eq!(count(Ycsb::A, Operation::Update), 50);
        assert_eq!(count(Ycsb::B, Operation::Update), 5);
        assert_eq!(count(Ycsb::C, Operation::Read), 100);
        assert_eq!(count(Ycsb::D, Operation::Insert), 5);
        assert_eq!(count(Ycsb::E, Operation::Scan), 95);
        assert_eq!(count(Ycsb::F, Operation::ReadUpdate), 50);
        assert_eq!(Ycsb::of("ycsbg"), None);
    }
}
