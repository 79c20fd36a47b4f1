//! Targets and scores of levels, and the debt of compaction.
//!
//! Pure functions of a version and the options, with RocksDB's rules: level 0 is measured in files
//! and in bytes against the base level, deeper levels in bytes against their targets. With
//! `level_compaction_dynamic_level_bytes` the targets follow from the largest level, upwards, and
//! levels that this makes unnecessary are drained. How many levels there are then, and how large,
//! is chosen by cost ([`crate::level_sizes`]), unless `level_shape_by_cost` is off.
//!
//! Compactions that cannot keep up let the base grow, and then each batch of level 0 would rewrite
//! all of it. With sizes by cost such a batch becomes a sorted run of its own instead, in the empty
//! level above (`redirect_l0_above_base`): it is written once. From then on, while writers bring
//! more, the tree is a stack of runs ([`crate::pick`], `tiered`).
//! `docs/decisions/0008-overloaded-trees.md` and `0009-columns.md` have figures and what was
//! rejected.

use crate::level_sizes::{batch_over_blobs, choose};
use crate::overload::{MOST_ABOVE, SMALL_PART};
use crate::plan::Busy;
use crate::policy::{CompactionStyle, Policy};
use crate::version::Version;
use crate::weight::Weights;
use crate::writers::{PickContext, gathers_level0};
use esker_format::Level;

/// Target sizes of the levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Targets {
    /// Where level 0 is compacted to.
    pub base_level: Level,
    /// Bytes each level may hold; `u64::MAX` for one that is never full.
    pub max_bytes: Vec<u64>,
    /// This level and those above it (down from 1) are more than the data needs.
    pub lowest_unnecessary_level: Option<Level>,
    /// Files and bytes that level 0 gathers while tables come; `None` where they do not matter.
    pub level0_batch: Option<(u32, u64)>,
}

impl Targets {
    /// Bytes a level may hold.
    pub fn of(&self, level: Level) -> u64 {
        self.max_bytes
            .get(level.index())
            .copied()
            .unwrap_or(u64::MAX)
    }
    fn is_unnecessary(&self, level: Level) -> bool {
        self.lowest_unnecessary_level
            .is_some_and(|lowest| level <= lowest)
    }
}

/// `bytes * factor`, where the product stays a number of bytes.
fn multiply(bytes: u64, factor: f64) -> u64 {
    // A float beyond the range converts to the largest value.
    if factor <= 0.0 {
        bytes
    } else {
        (bytes as f64 * factor) as u64
    }
}

/// The targets of a tree.
pub fn targets(version: &Version, policy: &Policy) -> Targets {
    let leveled = policy.compaction_style == CompactionStyle::Level;
    if leveled && policy.level_compaction_dynamic_level_bytes {
        return dynamic_targets(version, policy);
    }
    let base = policy.max_bytes_for_level_base;
    let mut max_bytes = vec![base; version.num_levels()];
    for level in 2..max_bytes.len() {
        let extra = policy
            .max_bytes_for_level_multiplier_additional
            .get(level - 1)
            .copied()
            .unwrap_or(1);
        let grown = multiply(max_bytes[level - 1], policy.max_bytes_for_level_multiplier);
        max_bytes[level] = grown.saturating_mul(u64::from(extra.max(1)));
    }
    let base_level = Level(u8::from(version.num_levels() > 1));
    Targets {
        base_level,
        max_bytes,
        lowest_unnecessary_level: None,
        level0_batch: None,
    }
}

fn dynamic_targets(version: &Version, policy: &Policy) -> Targets {
    let levels = version.num_levels();
    let last = levels - 1;
    let mut out = Targets {
        base_level: Level(last as u8),
        max_bytes: vec![u64::MAX; levels],
        lowest_unnecessary_level: None,
        level0_batch: None,
    };
    let bytes = |l: usize| version.levels()[l].bytes();
    let Some(first) = (1..levels).find(|l| bytes(*l) > 0) else {
        return out;
    };
    let largest = (1..levels).map(bytes).max().unwrap_or(0);
    if policy.is_shaped_by_cost() {
        let chosen = choose(policy, largest, levels - first, last);
        let base = levels - chosen.levels.len();
        out.max_bytes[base..].copy_from_slice(&chosen.levels);
        let blobs = version.blob_files().values();
        let blobs = blobs.fold(0, |sum: u64, b| sum.saturating_add(b.live_bytes()));
        let files = chosen.level0_files.max(batch_over_blobs(policy, blobs));
        out.level0_batch = Some((files, chosen.level0_bytes));
        if base > first {
            out.lowest_unnecessary_level = Some(Level(base as u8 - 1));
            let base_size = out.max_bytes[base];
            out.max_bytes[first..base].fill(base_size);
        }
        // What is above the base is older than level 0 and must not be passed by.
        out.base_level = Level(base.min(first) as u8);
        redirect_l0_above_base(version, &mut out);
        return out;
    }
    let multiplier = if policy.max_bytes_for_level_multiplier > 1.0 {
        policy.max_bytes_for_level_multiplier
    } else {
        2.0
    };
    let base_max = policy.max_bytes_for_level_base.max(1);
    let base_min = (base_max as f64 / multiplier) as u64;

    // What the first level with files would be allowed if the largest size were the last level's
    // target.
    let mut size = largest;
    for l in (first..last).rev() {
        size = (size as f64 / multiplier) as u64;
        if out.lowest_unnecessary_level.is_none() && size <= base_min {
            out.lowest_unnecessary_level = Some(Level(l as u8));
        }
    }
    let mut base = first;
    let base_size = if size <= base_min {
        base_min + 1
    } else {
        while base > 1 && size > base_max {
            base -= 1;
            size = (size as f64 / multiplier) as u64;
        }
        size.clamp(1, base_max)
    };
    out.base_level = Level(base as u8);
    let mut target = base_size;
    for l in base..levels {
        if l > base {
            target = multiply(target, multiplier);
        }
        // An hourglass (a level smaller than level 0 may be) would starve level 0.
        out.max_bytes[l] = target.max(base_max);
    }
    out
}

/// Returns whether the base holds so much that it should give away before level 0 brings more.
pub(crate) fn base_over_target(version: &Version, targets: &Targets) -> bool {
    let base = targets.base_level;
    let usual = targets.of(base) as f64;
    let level0 = version.level(Level::L0).bytes() as f64;
    base.index() + 1 < version.num_levels()
        && version.level(base).bytes() as f64 > usual + SMALL_PART * level0
}

/// Returns whether all above the last level is a large part of that.
fn holds_much_above_last(version: &Version) -> bool {
    let Some((last, above)) = version.levels().split_last() else {
        return false;
    };
    let above: u64 = above.iter().map(|l| l.bytes()).sum();
    above as f64 >= last.bytes() as f64 * MOST_ABOVE
}

/// Has level 0 go into the empty level above a base that fell behind, as long as there is one and
/// space for it.
fn redirect_l0_above_base(version: &Version, targets: &mut Targets) {
    let base = targets.base_level;
    if base <= Level(1) || holds_much_above_last(version) || !base_over_target(version, targets) {
        return;
    }
    let above = Level(base.0 - 1);
    targets.max_bytes[above.index()] = targets.of(base);
    targets.base_level = above;
    // It is not to stay.
    targets.lowest_unnecessary_level.get_or_insert(above);
}

/// Levels by need, most urgent first. A score of 1 or more asks for a compaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// The targets that the scores are measured against.
    pub targets: Targets,
    /// Levels and scores, highest first.
    pub by_need: Vec<(Level, f64)>,
}

impl Scores {
    /// The highest score.
    pub fn highest(&self) -> f64 {
        self.by_need.first().map_or(0.0, |(_, score)| *score)
    }
    /// A level's score.
    pub fn of(&self, level: Level) -> f64 {
        self.by_need
            .iter()
            .find(|(l, _)| *l == level)
            .map_or(0.0, |(_, score)| *score)
    }
}

/// The most that a merge may meet in the next level and still go on into it in any case, as a
/// multiple of what it brings. Forecasts of trees that do not keep up write a quarter less with
/// multiples of 2 or 3, at less space than without, and hardly less with none.
pub(crate) const ALWAYS_MET: f64 = 2.0;

/// Above 1 scores are spread by this, so that lowering one can keep it above 1.
const SCALE: f64 = 10.0;

/// Files of a level that no running plan takes, and their weight.
fn idle(version: &Version, weights: Weights, busy: &Busy, level: Level) -> (usize, u64) {
    let files = version.level(level).files().iter();
    let files = files.filter(|f| !busy.contains(f.number));
    files.fold((0, 0), |(n, bytes), f| {
        (n + 1, bytes.saturating_add(weights.table(f)))
    })
}

/// The scores of a leveled tree whose writers rest (for universal and FIFO see their pickers).
pub fn scores(version: &Version, policy: &Policy, busy: &Busy) -> Scores {
    let weights = Weights::of(version);
    scores_with(
        version,
        policy,
        targets(version, policy),
        busy,
        weights,
        false,
    )
}

/// The scores at a moment, against `targets`, which are the tree's.
pub(crate) fn scores_at(
    version: &Version,
    policy: &Policy,
    targets: &Targets,
    busy: &Busy,
    weights: Weights,
    moment: PickContext,
) -> Scores {
    let gathers = gathers_level0(version, policy, moment);
    scores_with(version, policy, targets.clone(), busy, weights, gathers)
}

fn scores_with(
    version: &Version,
    policy: &Policy,
    targets: Targets,
    busy: &Busy,
    weights: Weights,
    gathers: bool,
) -> Scores {
    let mut by_need = Vec::with_capacity(version.num_levels());
    let mut coming_down = 0.0;
    for l in 0..version.num_levels().saturating_sub(1) {
        let level = Level(l as u8);
        let total = version.level(level).bytes();
        let idle = idle(version, weights, busy, level);
        let score = if level == Level::L0 {
            coming_down += total as f64;
            level0_score(version, policy, &targets, weights, idle, gathers)
        } else {
            let score = level_score(policy, &targets, level, idle.1, coming_down);
            coming_down += if targets.is_unnecessary(level) {
                total as f64
            } else {
                total.saturating_sub(targets.of(level)) as f64
            };
            score
        };
        by_need.push((level, score));
    }
    by_need.sort_by(|a, b| b.1.total_cmp(&a.1));
    Scores { targets, by_need }
}

fn level0_score(
    version: &Version,
    policy: &Policy,
    targets: &Targets,
    weights: Weights,
    (files, bytes): (usize, u64),
    gathers: bool,
) -> f64 {
    let by_files = files as f64 / f64::from(policy.level0_file_num_compaction_trigger.max(1));
    let base_bytes = policy.max_bytes_for_level_base.max(1);
    if !policy.level_compaction_dynamic_level_bytes {
        return by_files.max(bytes as f64 / base_bytes as f64);
    }
    if by_files >= 1.0 && targets.level0_batch.is_some() && base_over_target(version, targets) {
        // Due, and behind the base: it gives away first, and level 0 merges in itself if it must.
        return 1.0;
    }
    if let Some((most_files, most_bytes)) = targets.level0_batch.filter(|_| gathers) {
        let by_files = files as f64 / f64::from(most_files.max(1));
        let score = by_files.max(bytes as f64 / most_bytes.max(1) as f64);
        return if score >= 1.0 { score * SCALE } else { score };
    }
    let mut score = by_files;
    if bytes >= base_bytes {
        score = score.max(1.01);
    }
    let target = targets.of(targets.base_level);
    if bytes > target {
        // Against the base level's real size, so that a larger level 0 goes before the base level.
        let base = weights.tables(version.level(targets.base_level).files());
        score = score.max(bytes as f64 / base.max(target) as f64);
    }
    if score > 1.0 { score * SCALE } else { score }
}

fn level_score(
    policy: &Policy,
    targets: &Targets,
    level: Level,
    bytes: u64,
    coming_down: f64,
) -> f64 {
    let target = targets.of(level).max(1);
    let plain = bytes as f64 / target as f64;
    if !policy.level_compaction_dynamic_level_bytes {
        return plain;
    }
    let score = if bytes < target {
        plain
    } else {
        bytes as f64 / (target as f64 + coming_down) * SCALE
    };
    match targets.lowest_unnecessary_level {
        Some(lowest) if bytes > 0 && level <= lowest => {
            score.max(SCALE * (1.001 + 0.001 * f64::from(lowest.0 - level.0)))
        }
        _ => score,
    }
}

/// The bytes that compactions must still read and write until no level is over its target.
pub fn pending_compaction_bytes(version: &Version, policy: &Policy) -> u64 {
    if policy.compaction_style != CompactionStyle::Level {
        return 0;
    }
    pending_against(version, policy, &targets(version, policy))
}

/// The pending bytes of a leveled tree with these targets.
pub(crate) fn pending_against(version: &Version, policy: &Policy, targets: &Targets) -> u64 {
    if version.num_levels() < 2 {
        return 0;
    }
    let level0 = version.level(Level::L0);
    let full = level0.len() as u64 >= u64::from(policy.level0_file_num_compaction_trigger)
        || level0.bytes() >= policy.max_bytes_for_level_base;
    let mut pending = if full { level0.bytes() } else { 0 };
    let mut incoming = pending;
    let mut arrives = false;
    for l in targets.base_level.index()..version.num_levels() - 1 {
        let level = Level(l as u8);
        let own = version.level(level).bytes();
        if level == targets.base_level && full {
            pending = pending.saturating_add(own);
        }
        let size = own.saturating_add(incoming);
        incoming = size.saturating_sub(targets.of(level));
        let next = version.level(Level(l as u8 + 1)).bytes();
        if incoming > 0 && next > 0 {
            let meets = next as f64 / size as f64;
            // A merge that comes from above and goes on writes what it brings no second time.
            let goes_on = arrives && targets.level0_batch.is_some() && meets <= ALWAYS_MET;
            let once = if goes_on { 0.0 } else { 1.0 };
            pending = pending.saturating_add(multiply(incoming, meets + once));
            arrives = true;
        }
    }
    pending
}

/// The size at which outputs to a level are cut.
pub fn max_output_file_size(policy: &Policy, level: Level, base_level: Level) -> u64 {
    if level == Level::L0 {
        // One epoch number for one table: parts of a run that overlap others could not be ordered.
        return u64::MAX;
    }
    let dynamic = policy.compaction_style == CompactionStyle::Level
        && policy.level_compaction_dynamic_level_bytes;
    let steps = if dynamic && level >= base_level {
        level.0 - base_level.0
    } else {
        level.0
    };
    (1..steps).fold(policy.target_file_size_base, |size, _| {
        size.saturating_mul(u64::from(policy.target_file_size_multiplier.max(1)))
    })
}

/// The most bytes of one compaction.
pub fn max_compaction_bytes(policy: &Policy) -> u64 {
    match policy.max_compaction_bytes {
        0 => policy.target_file_size_base.saturating_mul(25),
        set => set,
    }
}
