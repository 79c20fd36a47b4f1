//! A plan: the inputs and the output of a compaction that has not begun.
//!
//! A plan is a value; the engine turns it into a job and the job's outcome into an edit. [`Busy`]
//! is what running plans occupy, so that no two take one input or write overlapping ranges of one
//! level.

use crate::blob_groups::RegroupedValues;
use crate::edit::TreeEdit;
use crate::file::{FileMeta, compare_boundary};
use crate::version::Version;
use esker_format::{FileNo, InternalKey, KeyOrder, Level, timestamp};
use esker_status::seeded::{Bug, seeded};
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Why a compaction runs; the numbers are RocksDB's `CompactionReason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum CompactionReason {
    /// Not known.
    #[default]
    Unknown = 0,
    /// Leveled: level 0 has too many files.
    LevelL0FilesNum = 1,
    /// Leveled: a level is larger than its target.
    LevelMaxLevelSize = 2,
    /// Universal: too much space for what is alive.
    UniversalSizeAmplification = 3,
    /// Universal: runs of similar size.
    UniversalSizeRatio = 4,
    /// Universal: too many runs.
    UniversalSortedRunNum = 5,
    /// FIFO: the files together are too large.
    FifoMaxSize = 6,
    /// FIFO: too many small files.
    FifoReduceNumFiles = 7,
    /// FIFO: files have expired.
    FifoTtl = 8,
    /// The user asked.
    ManualCompaction = 9,
    /// Files were marked by their builder or by the user.
    FilesMarkedForCompaction = 10,
    /// Old versions in bottommost files are no longer protected by a snapshot.
    BottommostFiles = 11,
    /// Files have expired.
    Ttl = 12,
    /// A flush (for listeners only).
    Flush = 13,
    /// External files join level 0 (for listeners only).
    ExternalSstIngestion = 14,
    /// Files are old enough to be rewritten.
    PeriodicCompaction = 15,
    /// A file moves to another temperature.
    ChangeTemperature = 16,
    /// Blob garbage is too high.
    ForcedBlobGarbageCollection = 17,
    /// Round-robin time to live.
    RoundRobinTtl = 18,
    /// A level was refitted.
    RefitLevel = 19,
    /// Reads have paid for a merge of their runs.
    ReadTriggered = 20,
}

/// How a plan is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PlanKind {
    /// Read, merge and write.
    #[default]
    Merge,
    /// Only the MANIFEST changes: the files go to the output level as they are.
    TrivialMove,
    /// The files are dropped (FIFO).
    Delete,
}

/// Inputs of one level, in the level's order.
#[derive(Clone, Debug, Default)]
pub struct LevelInputs {
    /// Their level.
    pub level: Level,
    /// The files.
    pub files: Vec<Arc<FileMeta>>,
}

/// One compaction.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Why.
    pub reason: CompactionReason,
    /// How.
    pub kind: PlanKind,
    /// True if the user asked for it.
    pub manual: bool,
    /// By level, ascending; the last may be the output level. No entry is empty.
    pub inputs: Vec<LevelInputs>,
    /// Where the result goes.
    pub output_level: Level,
    /// The path that its files are written to.
    pub output_path: u32,
    /// Files of the level below the output that the inputs meet: where outputs should be cut.
    pub grandparents: Vec<Arc<FileMeta>>,
    /// True if nothing at or below the output level, outside the inputs, holds a key of the range,
    /// or will when the plans that run now have ended.
    pub bottommost: bool,
    /// Ranges in which plans that run now put tables below the output level, from above it.
    pub coming_below: Vec<(InternalKey, InternalKey)>,
    /// Outputs are cut at this size.
    pub max_output_file_size: u64,
    /// From which size on an output ends where one of the grandparents does; none for the
    /// [`crate::cutter`]'s usual part of the above.
    pub edge_bytes: Option<u64>,
    /// An output is cut when it meets more grandparent bytes than this.
    pub max_compaction_bytes: u64,
    /// Parts that it may be cut into; 0 for as many as the database's options allow.
    pub max_subcompactions: u32,
    /// The level's score when it was picked; 0 where no level was too large.
    pub score: f64,
    /// Its place among the plans of all families: see [`crate::pick::urgency`].
    pub urgency: f64,
    /// True if its files are written without compression, whatever the options say of their level.
    pub uncompressed: bool,
    /// The temperature of its files; 0 for what the options say.
    pub temperature: u8,
    /// Blob files that live values leave, ascending, for a bound on space.
    pub collected: Arc<[FileNo]>,
    /// Bytes of the values that leave them.
    pub moved_bytes: u64,
    /// Medium values that move to a group of the output.
    pub regrouped: RegroupedValues,
    /// Round robin: where the next pick at a level starts, for the edit.
    pub cursor: Option<(Level, InternalKey)>,
}

impl Plan {
    /// Every input file with its level.
    pub fn files(&self) -> impl Iterator<Item = (Level, &Arc<FileMeta>)> + Clone {
        self.inputs
            .iter()
            .flat_map(|i| i.files.iter().map(|f| (i.level, f)))
    }
    /// The sorted runs that it merges: each table of level 0, and each level below.
    pub fn runs(&self) -> usize {
        let of = |inputs: &LevelInputs| match inputs.level {
            Level::L0 => inputs.files.len(),
            _ => 1,
        };
        self.inputs.iter().map(of).sum()
    }
    /// Bytes of all inputs.
    pub fn input_bytes(&self) -> u64 {
        self.files()
            .fold(0, |sum, (_, f)| sum.saturating_add(f.size))
    }
    /// Bytes that its outputs may take beside its inputs, in a tree whose largest run is taken to
    /// be alive: as many as it reads. Where nothing older is left each key is written once: what
    /// that makes beyond the largest run among the inputs is alive, and a bound that is a multiple
    /// of what is alive grows by more than that.
    pub fn room_needed(&self) -> u64 {
        self.tables_needed()
            .saturating_add(self.moved_bytes)
            .saturating_add(self.regrouped_bytes())
    }
    /// Bytes of the medium values that it moves.
    fn regrouped_bytes(&self) -> u64 {
        match self.kind {
            PlanKind::Merge => self.regrouped.bytes,
            PlanKind::TrivialMove | PlanKind::Delete => 0,
        }
    }
    /// The part of [`Plan::room_needed`] that tables may take.
    fn tables_needed(&self) -> u64 {
        match self.kind {
            PlanKind::TrivialMove | PlanKind::Delete => 0,
            PlanKind::Merge if self.bottommost => self.largest_run(),
            PlanKind::Merge => self.input_bytes(),
        }
    }
    /// Bytes of the largest sorted run that it merges.
    fn largest_run(&self) -> u64 {
        let of = |inputs: &LevelInputs| {
            let sizes = inputs.files.iter().map(|f| f.size);
            match inputs.level {
                Level::L0 => sizes.max().unwrap_or(0),
                _ => sizes.fold(0, u64::saturating_add),
            }
        };
        self.inputs.iter().map(of).max().unwrap_or(0)
    }
    /// The level whose fullness or files led to the plan.
    pub fn start_level(&self) -> Level {
        self.inputs.first().map_or(Level::L0, |i| i.level)
    }
    /// The smallest and the largest key of all inputs; `None` without inputs.
    pub fn range(&self, order: &KeyOrder) -> Option<(&InternalKey, &InternalKey)> {
        hull(order, self.files().map(|(_, f)| f))
    }
    /// The epoch number of the outputs: that of the oldest input; 0 when some input has none.
    pub fn output_epoch(&self) -> u64 {
        self.files().map(|(_, f)| f.epoch).min().unwrap_or(0)
    }
    /// The age of the outputs' oldest data; 0 when no input knows.
    pub fn oldest_ancestor_time(&self) -> u64 {
        self.files()
            .map(|(_, f)| f.oldest_ancestor_time)
            .filter(|t| *t != 0)
            .min()
            .unwrap_or(0)
    }
    /// When the outputs' newest data was written at the latest; 0 when no input knows.
    pub fn newest_time(&self) -> u64 {
        let times = self.files().map(|(_, f)| f.newest_time());
        times.max().unwrap_or(0)
    }
    /// The edit that takes the inputs away and says where round-robin goes on; the job adds its
    /// outputs.
    pub fn input_deletions(&self) -> TreeEdit {
        TreeEdit {
            deleted: self.files().map(|(level, f)| (level, f.number)).collect(),
            cursors: self.cursor.clone().into_iter().collect(),
            ..TreeEdit::default()
        }
    }
    /// The whole edit of a plan that needs no job: a move or a deletion. `None` for a merge.
    pub fn edit_without_job(&self) -> Option<TreeEdit> {
        let mut edit = self.input_deletions();
        match self.kind {
            PlanKind::Merge => return None,
            PlanKind::Delete => {}
            PlanKind::TrivialMove => {
                edit.added = self
                    .files()
                    .map(|(_, f)| (self.output_level, f.clone()))
                    .collect();
            }
        }
        Some(edit)
    }
}

/// The smallest and the largest key of some files.
pub(crate) fn hull<'f>(
    order: &KeyOrder,
    files: impl IntoIterator<Item = &'f Arc<FileMeta>>,
) -> Option<(&'f InternalKey, &'f InternalKey)> {
    files
        .into_iter()
        .map(|f| (&f.smallest, &f.largest))
        .reduce(|all, one| spanned(order, all, one))
}

/// The least range that has two.
pub(crate) fn spanned<'f>(
    order: &KeyOrder,
    (lo, hi): (&'f InternalKey, &'f InternalKey),
    (a, b): (&'f InternalKey, &'f InternalKey),
) -> (&'f InternalKey, &'f InternalKey) {
    let lower = order.compare_internal(a.as_bytes(), lo.as_bytes()).is_lt();
    let higher = order.compare_internal(b.as_bytes(), hi.as_bytes()).is_gt();
    (if lower { a } else { lo }, if higher { b } else { hi })
}

/// Files and ranges that running plans occupy.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    running: Vec<RunningPlan>,
    files: HashSet<FileNo>,
    next: u64,
}

#[derive(Clone, Debug)]
struct RunningPlan {
    ticket: u64,
    files: Vec<FileNo>,
    takes_level0: bool,
    sorted_runs: usize,
    output_bytes: u64,
    /// The level that its uppermost files leave.
    from: Level,
    /// The levels that it puts tables into.
    outputs: RangeInclusive<Level>,
    range: Option<(InternalKey, InternalKey)>,
}

/// A running plan in figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningFigures {
    /// The level that its uppermost files leave.
    pub from: Level,
    /// The levels that it puts tables into.
    pub outputs: RangeInclusive<Level>,
    /// Tables that it reads.
    pub files: usize,
    /// Bytes that it may take beside its inputs ([`Plan::room_needed`]).
    pub output_bytes: u64,
}

/// Names a plan that is registered as running; give it back with [`Busy::release`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Ticket(u64);

impl Busy {
    /// Nothing runs.
    pub fn new() -> Self {
        Self::default()
    }
    /// Marks the plan's inputs and output range as taken.
    pub fn register(&mut self, order: &KeyOrder, plan: &Plan) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        if seeded(Bug::InputTakenTwice) {
            return Ticket(ticket);
        }
        let files: Vec<FileNo> = plan.files().map(|(_, f)| f.number).collect();
        debug_assert!(
            files.iter().all(|f| !self.files.contains(f)),
            "two plans take one file"
        );
        self.files.extend(&files);
        self.running.push(RunningPlan {
            ticket,
            files,
            takes_level0: plan.start_level() == Level::L0,
            sorted_runs: plan.runs(),
            output_bytes: plan.room_needed(),
            from: plan.start_level(),
            outputs: plan.output_level..=plan.output_level,
            range: plan.range(order).map(|(lo, hi)| (lo.clone(), hi.clone())),
        });
        Ticket(ticket)
    }
    /// Marks files, and a range of the levels that are written into, as taken by something that is
    /// no compaction: an ingestion, a move to another level, a deletion of whole files.
    pub fn reserve(
        &mut self,
        files: Vec<FileNo>,
        output: Option<(RangeInclusive<Level>, InternalKey, InternalKey)>,
    ) -> Ticket {
        let ticket = self.next;
        self.next += 1;
        self.files.extend(&files);
        let (outputs, range) = match output {
            Some((levels, lo, hi)) => (levels, Some((lo, hi))),
            None => (Level::L0..=Level::L0, None),
        };
        self.running.push(RunningPlan {
            ticket,
            files,
            takes_level0: false,
            sorted_runs: 0,
            output_bytes: 0,
            from: *outputs.start(),
            outputs,
            range,
        });
        Ticket(ticket)
    }
    /// Frees what a plan took, when its edit is installed or it was given up.
    pub fn release(&mut self, ticket: Ticket) {
        if let Some(at) = self.running.iter().position(|r| r.ticket == ticket.0) {
            for file in self.running.swap_remove(at).files {
                self.files.remove(&file);
            }
        }
    }
    /// Returns whether a running plan takes this file.
    pub fn contains(&self, file: FileNo) -> bool {
        self.files.contains(&file)
    }
    /// Returns whether any of the files is taken.
    pub fn any_of(&self, files: &[Arc<FileMeta>]) -> bool {
        !self.files.is_empty() && files.iter().any(|f| self.contains(f.number))
    }
    /// Returns whether a running plan takes files of level 0.
    pub fn takes_level0(&self) -> bool {
        self.running.iter().any(|r| r.takes_level0)
    }
    /// Returns whether a running plan writes to this level.
    pub fn writes_to(&self, level: Level) -> bool {
        let mut running = self.running.iter();
        running.any(|r| r.outputs.contains(&level) && r.output_bytes > 0)
    }
    /// Returns whether a running plan only moves files.
    pub fn moves_files(&self) -> bool {
        let mut running = self.running.iter();
        running.any(|r| r.sorted_runs > 0 && r.output_bytes == 0)
    }
    /// Tells whether something that is no compaction has taken files or a range.
    pub fn has_reservations(&self) -> bool {
        self.running.iter().any(|r| r.sorted_runs == 0)
    }
    /// The parts of `[lo, hi]` in which running plans put tables below a level.
    pub fn outputs_below(
        &self,
        order: &KeyOrder,
        level: Level,
        (lo, hi): (&InternalKey, &InternalKey),
    ) -> Vec<(InternalKey, InternalKey)> {
        let below = self.running.iter().filter(|r| *r.outputs.end() > level);
        let met = below.filter(|r| r.meets(order, lo, hi));
        met.filter_map(|r| r.range.clone()).collect()
    }
    /// Sorted runs that running plans merge: files of level 0, and one for each deeper level.
    pub fn sorted_runs(&self) -> usize {
        self.running.iter().map(|r| r.sorted_runs).sum()
    }
    /// Bytes that running plans may take beside their inputs ([`Plan::room_needed`]).
    pub fn output_bytes(&self) -> u64 {
        self.running
            .iter()
            .fold(0, |sum, r| sum.saturating_add(r.output_bytes))
    }
    /// The running plans, the oldest first.
    pub fn running(&self) -> impl Iterator<Item = RunningFigures> + '_ {
        self.running.iter().map(|r| RunningFigures {
            from: r.from,
            outputs: r.outputs.clone(),
            files: r.files.len(),
            output_bytes: r.output_bytes,
        })
    }
    /// Plans that run.
    pub fn len(&self) -> usize {
        self.running.len()
    }
    /// Returns whether nothing runs.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }
    /// Returns whether a running plan writes into `[lo, hi]` of a level (compared by user key).
    /// Outputs to level 0 may overlap.
    pub fn writes_into(
        &self,
        order: &KeyOrder,
        level: Level,
        lo: &InternalKey,
        hi: &InternalKey,
    ) -> bool {
        level != Level::L0 && self.meets_output(order, level, lo, hi)
    }
    /// Tells whether a running plan writes into `[lo, hi]` of a level below `start`, down to
    /// `output`: data that goes from one to the other would pass what comes there.
    pub fn writes_between(
        &self,
        order: &KeyOrder,
        (start, output): (Level, Level),
        lo: &InternalKey,
        hi: &InternalKey,
    ) -> bool {
        let first = (start.0 + 1).min(output.0);
        let mut levels = (first..=output.0).map(Level);
        levels.any(|level| self.writes_into(order, level, lo, hi))
    }
    /// Returns whether a running plan puts files into `[lo, hi]` of a level, level 0 included
    /// (compared by user key).
    pub fn meets_output(
        &self,
        order: &KeyOrder,
        level: Level,
        lo: &InternalKey,
        hi: &InternalKey,
    ) -> bool {
        let mut into = self.running.iter().filter(|r| r.outputs.contains(&level));
        into.any(|r| r.meets(order, lo, hi))
    }
    /// Tells whether a running plan takes data past `[lo, hi]` of a level: tables that come there
    /// now would be older than that and lie above it.
    pub fn goes_past(
        &self,
        order: &KeyOrder,
        level: Level,
        lo: &InternalKey,
        hi: &InternalKey,
    ) -> bool {
        let goes_past = |r: &&RunningPlan| r.from < level && level < *r.outputs.start();
        let mut past = self.running.iter().filter(goes_past);
        past.any(|r| r.meets(order, lo, hi))
    }
}

impl RunningPlan {
    /// Tells whether its range and `[lo, hi]` have a user key in common.
    fn meets(&self, order: &KeyOrder, lo: &InternalKey, hi: &InternalKey) -> bool {
        self.range.as_ref().is_some_and(|(a, b)| {
            compare_boundary(order, a.as_bytes(), hi.as_bytes()).is_le()
                && compare_boundary(order, lo.as_bytes(), b.as_bytes()).is_le()
        })
    }
}

/// A key inside the inputs and about how many bytes lie between it and the anchor before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// A user key.
    pub user_key: Vec<u8>,
    /// Bytes up to it.
    pub bytes: u64,
}

/// Cuts a plan into at most `max` parts of about equal work, none below `min_bytes`: the user keys
/// at which a new part begins (each part is `[previous, next)`).
///
/// The anchors come from the inputs' index blocks, in any order.
pub fn subcompaction_boundaries(
    order: &KeyOrder,
    mut anchors: Vec<Anchor>,
    max: usize,
    min_bytes: u64,
) -> Vec<Vec<u8>> {
    anchors.sort_by(|a, b| order.compare_without_timestamp(&a.user_key, &b.user_key));
    let total = anchors
        .iter()
        .fold(0u64, |sum, a| sum.saturating_add(a.bytes));
    let fitting = usize::try_from(total / min_bytes.max(1)).unwrap_or(usize::MAX);
    let parts = max.min(fitting);
    if parts < 2 {
        return Vec::new();
    }
    let share = total / parts as u64;
    let (mut cuts, mut sum): (Vec<Vec<u8>>, u64) = (Vec::new(), 0);
    let last = anchors
        .last()
        .map(|a| a.user_key.clone())
        .unwrap_or_default();
    for anchor in anchors {
        sum = sum.saturating_add(anchor.bytes);
        let wanted = share.saturating_mul(cuts.len() as u64 + 1);
        let after = |key: &[u8]| {
            order
                .compare_without_timestamp(key, &anchor.user_key)
                .is_lt()
        };
        // Nothing lies after the last anchor: a cut there would make an empty part.
        let useful = cuts.last().is_none_or(|cut| after(cut))
            && order
                .compare_without_timestamp(&anchor.user_key, &last)
                .is_lt();
        if sum >= wanted && useful && cuts.len() + 1 < parts {
            // All versions of a key go with one part.
            let mut cut = anchor.user_key;
            let bare = cut.len() - cut.len().min(order.timestamp_size());
            cut[bare..].fill(timestamp::GREATEST);
            cuts.push(cut);
        }
    }
    cuts
}

/// Answers, for user keys in ascending order, whether a key can exist below a plan's output level.
///
/// Each level keeps a place that only moves forward, so that a whole compaction costs one walk over
/// the files below it. One per sub-compaction; not shared.
#[derive(Clone, Debug)]
pub struct LowerLevels {
    version: Arc<Version>,
    bottommost: bool,
    output_level: Level,
    coming: Vec<(InternalKey, InternalKey)>,
    next: Vec<usize>,
}

impl LowerLevels {
    /// For a plan made on `version`.
    pub fn new(version: Arc<Version>, plan: &Plan) -> Self {
        let next = vec![0; version.num_levels()];
        LowerLevels {
            version,
            bottommost: plan.bottommost,
            output_level: plan.output_level,
            coming: plan.coming_below.clone(),
            next,
        }
    }
    /// Returns whether no level below the output can hold the user key. Keys must not descend
    /// between calls.
    #[inline]
    pub fn key_not_exists_beyond_output_level(&mut self, user: &[u8]) -> bool {
        self.bottommost || self.clear_below(user, user, false)
    }
    /// Returns whether no level below the output can hold a key in the range `[begin, end)`;
    /// `begin` must not be below keys asked for before.
    pub fn range_not_exists_beyond_output_level(&mut self, begin: &[u8], end: &[u8]) -> bool {
        self.bottommost || seeded(Bug::RangeDroppedEarly) || self.clear_below(begin, end, true)
    }

    fn clear_below(&mut self, begin: &[u8], end: &[u8], exclusive: bool) -> bool {
        if self.output_level == Level::L0 {
            return false;
        }
        let order = self.version.order();
        // What a plan puts there that ran when this one was made may not be in the version yet.
        let is_coming = self.coming.iter().any(|(lo, hi)| {
            order.compare_without_timestamp(hi.user(), begin).is_ge()
                && order.compare_without_timestamp(lo.user(), end).is_le()
        });
        if is_coming {
            return false;
        }
        let below = self.output_level.index() + 1;
        for (files, next) in self.version.levels().iter().zip(&mut self.next).skip(below) {
            let files = files.files();
            let ended = |f: &Arc<FileMeta>| {
                order
                    .compare_without_timestamp(f.largest.user(), begin)
                    .is_lt()
            };
            while files.get(*next).is_some_and(ended) {
                *next += 1;
            }
            if let Some(f) = files.get(*next) {
                let starts = order.compare_without_timestamp(f.smallest.user(), end);
                if starts.is_lt() || (starts.is_eq() && !exclusive) {
                    return false;
                }
            }
        }
        true
    }
}

/// Returns whether nothing outside `inputs` at the output level or below can hold a key of their
/// range: old versions, deletions and sequences may then go. For outputs to level 0 it holds only
/// when the inputs end with the oldest file and all levels below are empty.
pub fn is_bottommost(version: &Version, inputs: &[LevelInputs], output_level: Level) -> bool {
    let order = version.order();
    let Some((lo, hi)) = hull(order, inputs.iter().flat_map(|i| &i.files)) else {
        return false;
    };
    let oldest_level0 = version.level(Level::L0).files().last();
    if let Some(level0) = inputs.iter().find(|i| i.level == Level::L0)
        && output_level == Level::L0
        && level0.files.last().map(|f| f.number) != oldest_level0.map(|f| f.number)
    {
        return false;
    }
    let below = output_level.index() + 1..version.num_levels();
    let deeper = || {
        below
            .clone()
            .map(|l| Level(l as u8))
            .map(|l| version.level(l))
    };
    if output_level == Level::L0 {
        return deeper().all(|files| files.is_empty());
    }
    deeper().all(|files| {
        files
            .overlapping(order, Some(lo.as_bytes()), Some(hi.as_bytes()))
            .is_empty()
    })
}
