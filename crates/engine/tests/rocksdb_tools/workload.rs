//! Seeded batches of every operation, and the model of what they leave behind.
//!
//! The batches are a function of the seed alone, so that a process that was killed can be replayed:
//! each one writes its number under [`STEP_KEY`] of the default family, which shows how many of
//! them survived.

use super::{Content, Contents};
use esker::{Db, WriteBatch};
use esker_format::FamilyId;
use std::collections::BTreeSet;

/// Where each batch leaves its number.
pub(crate) const STEP_KEY: &[u8] = b"!step";
/// The families: plain, plain, operands joined by commas, little-endian sums.
pub(crate) const FAMILIES: [&str; 4] = ["default", "alpha", "strings", "counters"];

/// A small generator of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn word(&mut self, from: &[&'static str]) -> &'static str {
        self.pick::<&str>(from)
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// One operation; `family` counts in [`FAMILIES`].
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Put {
        family: usize,
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Delete {
        family: usize,
        key: Vec<u8>,
    },
    SingleDelete {
        family: usize,
        key: Vec<u8>,
    },
    DeleteRange {
        family: usize,
        begin: Vec<u8>,
        end: Vec<u8>,
    },
    Merge {
        family: usize,
        key: Vec<u8>,
        operand: Vec<u8>,
    },
}

/// The generator of batches.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    rng: Rng,
    step: u64,
    keys: u64,
    /// Per family, the keys that were put once and may be single-deleted.
    single: Vec<BTreeSet<Vec<u8>>>,
}

impl Steps {
    pub(crate) fn new(seed: u64, keys: u64) -> Steps {
        let single = vec![BTreeSet::new(); FAMILIES.len()];
        Steps {
            rng: Rng(seed),
            step: 0,
            keys,
            single,
        }
    }

    /// The number of the batch that [`Steps::next_batch`] returned last.
    pub(crate) fn number(&self) -> u64 {
        self.step
    }

    /// The next batch: one to eight operations on any families, and the batch's number.
    pub(crate) fn next_batch(&mut self) -> Vec<Op> {
        self.step += 1;
        let count = 1 + self.rng.below(8);
        let mut ops: Vec<Op> = (0..count).map(|_| self.next_op()).collect();
        let value = self.step.to_string().into_bytes();
        ops.push(Op::Put {
            family: 0,
            key: STEP_KEY.to_vec(),
            value,
        });
        ops
    }

    fn next_op(&mut self) -> Op {
        let family = self.rng.below(FAMILIES.len() as u64) as usize;
        let kind = self.rng.below(100);
        if kind < 12 {
            return self.single_op(family);
        }
        let n = self.rng.below(self.keys);
        let key = key(n);
        match kind {
            12..=26 => Op::Delete { family, key },
            27..=28 => {
                let end = self::key(n + 1 + self.rng.below(self.keys / 20));
                Op::DeleteRange {
                    family,
                    begin: key,
                    end,
                }
            }
            29..=60 if FAMILIES[family] == "strings" => {
                let operand = format!("op{}", self.rng.below(1000)).into_bytes();
                Op::Merge {
                    family,
                    key,
                    operand,
                }
            }
            29..=60 if FAMILIES[family] == "counters" => {
                let operand = self.rng.below(1 << 40).to_le_bytes().to_vec();
                Op::Merge {
                    family,
                    key,
                    operand,
                }
            }
            _ => {
                let value = self.value(family);
                Op::Put { family, key, value }
            }
        }
    }

    /// Single deletions have keys of their own, put only while they are absent.
    fn single_op(&mut self, family: usize) -> Op {
        let key = format!("s{:05}", self.rng.below(self.keys / 4)).into_bytes();
        if self.single[family].remove(&key) {
            return Op::SingleDelete { family, key };
        }
        self.single[family].insert(key.clone());
        let value = self.value(family);
        Op::Put { family, key, value }
    }

    fn value(&mut self, family: usize) -> Vec<u8> {
        if FAMILIES[family] == "counters" {
            return self.rng.next().to_le_bytes().to_vec();
        }
        let len = match self.rng.below(100) {
            0..=4 => 0,
            5..=94 => self.rng.below(200),
            95..=98 => self.rng.below(5_000),
            _ => self.rng.below(40_000),
        } as usize;
        if self.rng.one_in(3) {
            // Does not compress.
            return std::iter::repeat_with(|| self.rng.next() as u8)
                .take(len)
                .collect();
        }
        let word = self.rng.below(1000).to_string();
        word.bytes().cycle().take(len).collect()
    }
}

/// Key number `n`: in order of `n`, of differing lengths, some of which hold zero and high bytes.
pub(crate) fn key(n: u64) -> Vec<u8> {
    let mut key = format!("k{n:06}").into_bytes();
    match n % 5 {
        0 => key.extend_from_slice(&[0, 0xFF, 0]),
        1 => key.extend(std::iter::repeat_n(b'x', (n % 40) as usize)),
        _ => {}
    }
    key
}

/// Empty families.
pub(crate) fn empty() -> Contents {
    FAMILIES
        .iter()
        .map(|f| ((*f).to_owned(), Content::new()))
        .collect()
}

/// Does to the model what `ops` do to a database.
pub(crate) fn apply(model: &mut Contents, ops: &[Op]) {
    for op in ops {
        let (Op::Put { family, .. }
        | Op::Delete { family, .. }
        | Op::SingleDelete { family, .. }
        | Op::DeleteRange { family, .. }
        | Op::Merge { family, .. }) = op;
        let name = FAMILIES[*family];
        let content = model.get_mut(name).expect("a family of the model");
        match op {
            Op::Put { key, value, .. } => {
                content.insert(key.clone(), value.clone());
            }
            Op::Delete { key, .. } | Op::SingleDelete { key, .. } => {
                content.remove(key);
            }
            Op::DeleteRange { begin, end, .. } => {
                content.retain(|k, _| k < begin || k >= end);
            }
            Op::Merge { key, operand, .. } => {
                let old = content.get(key).cloned();
                content.insert(key.clone(), merged(name, old, operand));
            }
        }
    }
}

fn merged(family: &str, old: Option<Vec<u8>>, operand: &[u8]) -> Vec<u8> {
    if family == "counters" {
        let number = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("eight bytes"));
        let sum = old.map_or(0, |o| number(&o)).wrapping_add(number(operand));
        return sum.to_le_bytes().to_vec();
    }
    match old {
        None => operand.to_vec(),
        Some(mut text) => {
            text.push(b',');
            text.extend_from_slice(operand);
            text
        }
    }
}

/// The model after `steps` batches.
pub(crate) fn replay(seed: u64, keys: u64, steps: u64) -> Contents {
    let mut generator = Steps::new(seed, keys);
    let mut model = empty();
    for _ in 0..steps {
        let batch = generator.next_batch();
        apply(&mut model, &batch);
    }
    model
}

/// How many batches are in `contents`.
pub(crate) fn steps_in(contents: &Contents) -> u64 {
    let step = contents["default"].get(STEP_KEY);
    step.map_or(0, |v| {
        let text = std::str::from_utf8(v).expect("a number");
        text.parse().expect("a number")
    })
}

/// The numbers of the families in `db`.
pub(crate) fn ids(db: &Db) -> Vec<FamilyId> {
    let id = |name: &&str| FamilyId(db.family(name).expect("a family of the database").id());
    FAMILIES.iter().map(id).collect()
}

/// Puts `ops` into a batch.
pub(crate) fn fill(batch: &mut WriteBatch, ids: &[FamilyId], ops: &[Op]) -> esker::Result<()> {
    let id = |family: &usize| ids[*family];
    for op in ops {
        match op {
            Op::Put { family, key, value } => batch.put_cf(id(family), key, value)?,
            Op::Delete { family, key } => batch.delete_cf(id(family), key)?,
            Op::SingleDelete { family, key } => batch.single_delete_cf(id(family), key)?,
            Op::DeleteRange { family, begin, end } => {
                batch.delete_range_cf(id(family), begin, end)?;
            }
            Op::Merge {
                family,
                key,
                operand,
            } => batch.merge_cf(id(family), key, operand)?,
        }
    }
    Ok(())
}
