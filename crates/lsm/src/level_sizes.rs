//! How many levels a tree should have, and how large each should be: chosen by what they will cost.
//!
//! RocksDB divides the last level's size by the fanout until the result is at most the base size.
//! Where it ends is a matter of chance: a level may come out hardly larger than the one above,
//! which costs a rewrite of everything and saves nothing. Here every number of levels and several
//! sizes of the base are priced, and the cheapest wins. All ratios above the last level are equal
//! and at least [`RATIO_MIN`]; there may be fewer levels than the fanout asks for, with larger
//! ratios, where that costs less.
//!
//! **The price** is in bytes written for each byte that is flushed, for writes spread over all
//! keys:
//! - level 0 goes down in batches, and each meets the whole base: `1 + base / batch`;
//! - a deeper level gives its files away one by one, those first that meet least. They hold twice
//!   what an average range of the level holds, as the level is full where it is taken and empty
//!   where it was taken last. That would be half of the ratio; forecasts come to
//!   `1 + 0.36 ratio^1.2`, and in the end to `1 + 0.6 ratio`. What a batch brings at once makes the
//!   level above fuller for a while: half of it counts;
//! - each level is one more place where a read looks: `RUN_PRICE`.
//!
//! **Space is not for sale.** What the levels above the last hold together, level 0 included, is
//! what RocksDB's rule would put there: `last / fanout (1 + 1 / fanout)`, the base, and half of
//! level 0's trigger. The last ratio is the fanout at least, and more where level 0 takes its part:
//! of each byte that it holds more, half is there on average, and a quarter on its way through the
//! base.
//!
//! **What the options bound.** `max_bytes_for_level_multiplier` is the least last ratio,
//! `max_bytes_for_level_base` the largest base unless level 0 brings more at once, `num_levels` the
//! number of levels; additional multipliers are for fixed sizes, as in RocksDB.
//!
//! **Level 0.** Nothing lowers the price as much as larger batches do. While writers write, level 0
//! may hold
//! [`GROWTH`] times what `level0_file_num_compaction_trigger` says, below the near zone of
//! [`crate::load`], and half of `last / fanout` at most; the base may be as large as such a
//! batch. When writers rest, the trigger is as it was set, so that readers find few tables; the
//! sizes stay, so that nothing is moved for it. Values in blob files are moved out of the oldest
//! ones by each batch, however few keys it brings: there level 0 may hold as many memtables as
//! `BLOB_SHARE` of these values fill, unless space is bounded.
//!
//! **Hysteresis.** A different number of levels must be cheaper by `CHANGE_GAIN` than the one that
//! is there.
//!
//! Rules that lose: one ratio for all levels, the last among them, is cheaper by a tenth and takes
//! 8 to 14 % more space. A larger base without a larger level 0 costs more in the base than it
//! saves below. Pure functions.

use crate::load::Zone;
use crate::policy::Policy;
use smallvec::SmallVec;

/// No level is less than this many times the size of the one above, unless the fanout is smaller.
pub const RATIO_MIN: f64 = 4.0;
/// How much more level 0 may hold while writers write.
pub const GROWTH: u32 = 4;
/// Bytes rewritten below for each byte that goes down, by the ratio between the levels.
fn rewritten(ratio: f64) -> f64 {
    (0.36 * ratio.powf(1.2)).min(0.6 * ratio)
}
/// The price of one more sorted run for reads, in bytes written per byte.
const RUN_PRICE: f64 = 0.1;
/// Bytes that the levels above the last give up for each byte more at level 0.
const LEVEL0_SHARE: f64 = 0.75;
/// Values in blob files that a batch of level 0 may replace, of all of them.
const BLOB_SHARE: f64 = 0.2;
/// By what factor another number of levels must be cheaper.
const CHANGE_GAIN: f64 = 0.95;
/// Sizes of the base that are tried, each smaller than the one before by [`BASE_STEP`].
const BASES: usize = 12;
const BASE_STEP: f64 = 1.19;
/// More levels than that are never cheaper.
const LEVELS_MAX: usize = 16;

/// Sizes from the base to the last level.
type Sizes = SmallVec<[f64; 8]>;

/// Sizes that the levels should have.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelSizes {
    /// Bytes from the base level to the last one.
    pub levels: SmallVec<[u64; 8]>,
    /// Tables of level 0 that go down together while writers write.
    pub level0_files: u32,
    /// Bytes of level 0 that go down although there are fewer tables.
    pub level0_bytes: u64,
}

/// The fanout; what cannot be one counts as 2.
fn fanout(policy: &Policy) -> f64 {
    if policy.max_bytes_for_level_multiplier > 1.0 {
        policy.max_bytes_for_level_multiplier
    } else {
        2.0
    }
}

/// Bounds of the choice.
struct Bounds {
    data: f64,
    fanout: f64,
    /// Bytes that level 0 brings down at once.
    batch: f64,
    base_max: f64,
    /// The most bytes that the levels between level 0 and the last may hold together.
    upper: f64,
}

/// The batch that level 0 brings down at once, in tables and bytes.
struct Batch {
    files: u32,
    bytes: f64,
    /// Bytes when writers rest.
    resting: f64,
}

/// The most tables of level 0 that go down together.
fn most_files(policy: &Policy) -> u32 {
    let trigger = policy.level0_file_num_compaction_trigger.max(1);
    // They go down before the tree is near to slowing writers.
    let below_near = policy.stall_triggers.level0.value_at(Zone::Near).ceil() as u64;
    let most = u64::from(trigger.saturating_mul(GROWTH)).min(below_near.saturating_sub(1));
    u32::try_from(most).unwrap_or(u32::MAX).max(trigger)
}

/// Tables of level 0 that go down together while writers write, in a tree with `blobs` bytes of
/// values that are alive in blob files.
pub fn batch_over_blobs(policy: &Policy, blobs: u64) -> u32 {
    if policy.max_space_amplification_percent > 0 {
        return 0;
    }
    let memtable = policy.write_buffer_size.max(1) as f64;
    ((blobs as f64 * BLOB_SHARE / memtable) as u32).min(most_files(policy))
}

/// The largest batch while writers write, in a tree of `data` bytes.
fn batch(policy: &Policy, data: f64) -> Batch {
    let trigger = policy.level0_file_num_compaction_trigger.max(1);
    let memtable = policy.write_buffer_size.max(1) as f64;
    let base = policy.max_bytes_for_level_base.max(1) as f64;
    let most = most_files(policy);
    let resting = (f64::from(trigger) * memtable).min(base.max(memtable));
    let growth = f64::from(most) / f64::from(trigger);
    // A small tree has no room for it.
    let growth = growth.min(data / fanout(policy) / 2.0 / resting).max(1.0);
    let files = (f64::from(trigger) * growth) as u32;
    Batch {
        files,
        bytes: (f64::from(files) * memtable).min((resting * growth).max(base)),
        resting,
    }
}

/// The sizes for a tree whose last level holds `data` bytes, which has `levels_now` levels below
/// level 0 and may have `levels_max`.
pub fn choose(policy: &Policy, data: u64, levels_now: usize, levels_max: usize) -> LevelSizes {
    let data = data.max(1) as f64;
    let fanout = fanout(policy);
    let base = policy.max_bytes_for_level_base.max(1) as f64;
    let batch = batch(policy, data);
    let fixed_rule = data / fanout * (1.0 + 1.0 / fanout) + base;
    let more = batch.bytes - batch.resting;
    let bounds = Bounds {
        data,
        fanout,
        batch: batch.bytes,
        base_max: base.max(batch.bytes),
        upper: (fixed_rule - LEVEL0_SHARE * more).max(data / fanout / 2.0),
    };
    let mut best: Option<(f64, Sizes)> = None;
    for levels in 1..=levels_max.clamp(1, LEVELS_MAX) {
        for (price, sizes) in bounds.shapes(levels) {
            let price = if levels == levels_now {
                price * CHANGE_GAIN
            } else {
                price
            };
            if best.as_ref().is_none_or(|(least, _)| price < *least) {
                best = Some((price, sizes));
            }
        }
    }
    let sizes = best.map_or_else(|| smallvec::smallvec![data], |(_, sizes)| sizes);
    LevelSizes {
        // A float beyond the range converts to the largest value.
        levels: sizes.iter().map(|s| (*s as u64).max(1)).collect(),
        level0_files: batch.files,
        level0_bytes: batch.bytes.max(base) as u64,
    }
}

impl Bounds {
    /// Shapes with this many levels, with their prices.
    fn shapes(&self, levels: usize) -> impl Iterator<Item = (f64, Sizes)> + '_ {
        let between = levels.saturating_sub(2) as i32;
        let ratio_min = RATIO_MIN.min(self.fanout);
        let above_last = self.data / self.fanout;
        let largest = self.base_max.min(above_last / ratio_min.powi(between));
        let tried = if levels > 2 { BASES } else { 1 };
        (0..tried as i32).map(move |step| {
            let sizes = self.sizes(levels, largest / BASE_STEP.powi(step));
            (self.price(&sizes), sizes)
        })
    }

    /// Equal ratios from the base up to what the fanout puts above the last level, then all less
    /// where that takes too much space.
    fn sizes(&self, levels: usize, base: f64) -> Sizes {
        let mut sizes = Sizes::new();
        if levels > 1 {
            let steps = levels as f64 - 2.0;
            let ratio = (self.data / self.fanout / base).powf(1.0 / steps.max(1.0));
            sizes.extend((0..levels as i32 - 1).map(|level| base * ratio.powi(level)));
            let less = (self.upper / sizes.iter().sum::<f64>()).min(1.0);
            sizes.iter_mut().for_each(|size| *size *= less);
        }
        sizes.push(self.data);
        sizes
    }

    /// Bytes written for each byte that is flushed, and what reads pay.
    fn price(&self, sizes: &[f64]) -> f64 {
        let base = sizes.first().copied().unwrap_or_default();
        let down = sizes.windows(2).map(|pair| {
            let above = pair[0] + self.batch / 2.0;
            1.0 + rewritten(pair[1] / above)
        });
        1.0 + base / self.batch + down.sum::<f64>() + RUN_PRICE * sizes.len() as f64
    }
}

#[cfg(test)]
mod tests;
