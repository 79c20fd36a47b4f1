//! Plans of trees whose space is bounded, over trees that are drawn.
//!
//! Rule: beside a plan that runs none begins that does not find room. All tables and blob files,
//! what running plans may write and what the new one may write are within the bound, which is
//! computed here anew. Deterministic by its seed.

use crate::rng::Rng;
use esker_format::blob::BlobIndex;
use esker_format::blob_refs::BlobRefs;
use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq, ValueType};
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::file::{BlobShares, FileMeta};
use esker_lsm::load::Zone;
use esker_lsm::pick::{PickContext, Policy, WriterState, pick};
use esker_lsm::plan::Busy;
use esker_lsm::read_demand::ReadDemand;
use esker_lsm::space::PendingSpace;
use esker_lsm::version::{BlobFile, Version};
use esker_status::Result;

/// Bytes of a value in a blob file, as records count.
const RECORD: u64 = 1_000;
/// Bytes of a table of the last level.
const TABLE: u64 = 2_000;
/// Plans that run at once at most.
const PLANS: usize = 5;

/// A tree that is drawn, and what is known of it beside the version.
struct RandomTree {
    edit: TreeEdit,
    next: u64,
    /// Of each blob file, the values that tables refer to.
    used: Vec<u64>,
}

impl RandomTree {
    /// A table of the keys `[lo, hi]` that refers to `values` of blob files.
    fn add(&mut self, rng: &mut Rng, level: u8, (lo, hi): (u64, u64), values: u64) {
        let key = |k: u64| InternalKey::new(&k.to_be_bytes(), Seq(1), ValueType::Value);
        let mut refs = BlobRefs::default();
        for _ in 0..values {
            let at = rng.index(self.used.len());
            self.used[at] += 1;
            let size = RECORD - 32 - 8;
            refs.add(8, &BlobIndex::blob(blob(at), 70, size, 0));
        }
        self.next += 1;
        let meta = FileMeta {
            number: FileNo(self.next),
            size: TABLE,
            smallest: key(lo),
            largest: key(hi),
            smallest_seq: Seq(1),
            largest_seq: Seq(1),
            epoch: self.next,
            oldest_blob_file: refs.oldest(),
            ..FileMeta::default()
        };
        let _new = meta.blob_shares.set(BlobShares::from(&refs));
        self.edit.added.push((Level(level), meta.into()));
    }
}

fn blob(at: usize) -> FileNo {
    FileNo(1 + at as u64)
}

fn draw(rng: &mut Rng) -> Result<Version> {
    let blobs = 2 + rng.index(8);
    let mut drawn = RandomTree {
        edit: TreeEdit::default(),
        next: 100,
        used: vec![0; blobs],
    };
    let (last, above) = (4 + rng.below(8), rng.below(6));
    for (level, tables) in [(6, last), (5, above)] {
        for n in 0..tables {
            let values = rng.below(12);
            drawn.add(rng, level, (n * 100, n * 100 + 99), values);
        }
    }
    for _ in 0..rng.below(4) {
        let values = rng.below(12);
        drawn.add(rng, 0, (0, last * 100), values);
    }
    for (at, used) in drawn.used.iter().enumerate() {
        // A file of garbage alone is none.
        let garbage = if *used > 0 { rng.below(2 * used) } else { 0 };
        let total_count = (used + garbage).max(1);
        drawn.edit.blobs.push(BlobFile {
            number: blob(at),
            total_count,
            total_bytes: total_count * RECORD,
            ..BlobFile::default()
        });
        if garbage > 0 {
            let found = (blob(at), garbage, garbage * RECORD);
            drawn.edit.garbage.push(found);
        }
    }
    apply(&Version::empty(KeyOrder::Bytewise, 7), &[drawn.edit])
}

/// Bytes of all tables and blob files, and those that they may be.
fn figures(version: &Version, policy: &Policy) -> (u64, u64) {
    let weight = |f: &FileMeta| f.size + f.blob_bytes().unwrap_or(0);
    let level0 = version.level(Level::L0).files().iter().map(|f| weight(f));
    let below = version.levels().iter().skip(1);
    let below = below.map(|l| l.files().iter().map(|f| weight(f)).sum());
    let live: u64 = level0.chain(below).max().unwrap_or(0);
    let blobs = version.blob_files().values().map(|b| b.total_bytes);
    let taken = version.bytes() + blobs.sum::<u64>();
    let percent = u64::from(policy.max_space_amplification_percent);
    let trigger = u64::from(policy.level0_file_num_compaction_trigger);
    let least = policy.write_buffer_size * trigger * 2;
    let bound = live + (live * (percent - 100) / 100).max(least);
    (taken, bound)
}

/// The rule that the plans of a seed break.
pub(crate) fn broken(seed: u64) -> Result<Option<String>> {
    let mut rng = Rng::new(seed);
    let version = draw(&mut rng)?;
    let policy = Policy {
        max_space_amplification_percent: 110 + rng.below(60) as u32,
        level0_file_num_compaction_trigger: 2,
        write_buffer_size: 1_000,
        max_bytes_for_level_base: 4 * TABLE,
        target_file_size_base: TABLE,
        ..Policy::default()
    };
    let moment = PickContext {
        now: 1,
        oldest_snapshot: Seq(1 << 20),
        draining: false,
        writers: WriterState::Writing,
        paced: Zone::Calm,
        reads: ReadDemand::default(),
        beside: PendingSpace::default(),
    };
    let (taken, bound) = figures(&version, &policy);
    let (mut busy, mut running) = (Busy::new(), 0);
    for at in 0..PLANS {
        let Some(plan) = pick(&version, &policy, &busy, moment) else {
            break;
        };
        let needed = plan.room_needed();
        if at > 0 && needed > 0 && taken + running + needed > bound {
            return Ok(Some(format!(
                "plan {at} needs {needed} bytes beside {taken} and {running} that run, of {bound}: \
                 {:?}",
                plan.reason
            )));
        }
        running += needed;
        let _held = busy.register(version.order(), &plan);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_find_room_beside_those_that_run() {
        for seed in 0..2_000 {
            assert_eq!(broken(seed).expect("a valid tree"), None, "{seed}");
        }
    }
}
