//! A forecast of a tree's shape and cost, without writing a byte.
//!
//! The real picker decides over a tree of numbers: a table is a range of keys and a count of
//! entries, spread evenly. A flush adds such a table, a compaction merges some: where several of
//! them hold a key of a range with some chance, the union holds it with `1 - (1 - p)(1 - q)...`,
//! which is exact on average for random writes. A hundred million keys take seconds, so that
//! options and rules of the picker can be compared before anybody waits for hours.
//!
//! Time is counted in service: compactions read a number of bytes for each byte that is flushed
//! ([`Workload::service`]). With plenty of it the tree is always in shape, as under a trickle of
//! writes; with little, level 0 grows until its stop trigger holds writers back.
//!
//! Left out are bytes of indexes and filters, compression, snapshots, deletions, subcompactions.

pub mod paced;

use crate::cutter::Cutter;
use crate::edit::{TreeEdit, apply};
use crate::file::{FileMeta, FileStats};
use crate::load::Zone;
use crate::pick::{PickContext, Policy, pick};
use crate::plan::{Busy, Plan, PlanKind, Ticket};
use crate::read_demand::ReadDemand;
use crate::score::max_output_file_size;
use crate::space::PendingSpace;
use crate::version::Version;
use crate::writers::WriterState;
use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq, ValueType};
use esker_status::Result;
use std::sync::Arc;

/// The order in which keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOrder {
    /// Each key once, ascending.
    InOrder,
    /// Every key is as likely as any other, each time.
    AtRandom,
}

/// The writes, and the work that the machine can do meanwhile.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Distinct keys.
    pub keys: u64,
    /// Bytes of an entry in a table.
    pub entry_bytes: u64,
    /// Bytes of a table that a flush writes.
    pub flush_bytes: u64,
    /// In which order.
    pub order: WriteOrder,
    /// Bytes that compactions read for each byte that is flushed.
    pub service: f64,
    /// Compactions that run at once.
    pub jobs: usize,
    /// Tables at level 0 at which no more is flushed until there are fewer.
    pub level0_stop: usize,
    /// True if writers rest after each flush, so that the tree gets into shape before the next one.
    pub rests: bool,
}

/// Bytes and compactions that went into a level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelWork {
    /// Bytes that compactions into it read.
    pub read: u64,
    /// Bytes written into it, flushes among them.
    pub written: u64,
    /// Bytes that moved into it unread.
    pub moved: u64,
    /// Compactions into it.
    pub compactions: u64,
}

/// A compaction under way.
struct RunningCompaction {
    plan: Plan,
    ticket: Ticket,
    /// Bytes that it has still to read.
    left: f64,
}

/// A tree of numbers and what happened to it.
pub struct Forecast {
    policy: Policy,
    load: Workload,
    version: Version,
    busy: Busy,
    running: Vec<RunningCompaction>,
    next_file: u64,
    flushes: u64,
    written: u64,
    /// By output level.
    pub work: Vec<LevelWork>,
    /// The most tables that level 0 had.
    pub level0_max: usize,
    /// Service given while level 0 held writers back, as a part of all.
    blocked: f64,
    served: f64,
    /// Flushes before what is measured began.
    flushes_before: u64,
    /// True if the tree should get into shape now.
    settles: bool,
    /// Sums over the trees after each flush that is measured.
    seen: ReadShape,
    random: u64,
    /// The zone of the load that writers are paced by.
    paced: Zone,
    /// Bytes in memtables.
    beside: PendingSpace,
}

/// The tree that readers find on average, summed.
#[derive(Clone, Copy, Debug, Default)]
struct ReadShape {
    trees: u64,
    bytes: f64,
    runs: u64,
}

/// A range of keys, `lo..hi`, and how many of them are there.
#[derive(Clone, Copy, Debug)]
struct KeySpan {
    lo: u64,
    hi: u64,
    entries: f64,
}

impl KeySpan {
    /// Its first `entries`, or all; what is left stays.
    fn take_up_to(&mut self, entries: f64) -> KeySpan {
        let all = *self;
        let width = all.hi - all.lo;
        if all.entries > entries && width > 1 {
            let share = (entries / all.entries).clamp(0.0, 1.0);
            self.lo += ((width as f64 * share) as u64).clamp(1, width);
        } else {
            self.lo = all.hi;
        }
        let share = (self.lo - all.lo) as f64 / width as f64;
        self.entries -= all.entries * share;
        KeySpan {
            hi: self.lo,
            entries: all.entries * share,
            ..all
        }
    }
}

impl std::fmt::Debug for Forecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forecast")
            .field("flushes", &self.flushes)
            .field("work", &self.work)
            .finish_non_exhaustive()
    }
}

/// The newest version of a key.
fn key_at(key: u64) -> InternalKey {
    InternalKey::new(&key.to_be_bytes(), Seq::MAX, ValueType::Value)
}

fn key_of(internal: &InternalKey) -> u64 {
    let user = internal.user().first_chunk::<8>();
    user.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn piece_of(file: &FileMeta) -> KeySpan {
    KeySpan {
        lo: key_of(&file.smallest),
        hi: key_of(&file.largest) + 1,
        entries: file.stats.get().map_or(0.0, |s| s.num_entries as f64),
    }
}

impl Forecast {
    /// An empty tree.
    pub fn new(policy: Policy, num_levels: usize, load: Workload) -> Self {
        Forecast {
            version: Version::empty(KeyOrder::Bytewise, num_levels),
            work: vec![LevelWork::default(); num_levels.max(1)],
            settles: load.rests,
            policy,
            load,
            busy: Busy::new(),
            running: Vec::new(),
            next_file: 1,
            flushes: 0,
            written: 0,
            level0_max: 0,
            blocked: 0.0,
            served: 0.0,
            flushes_before: 0,
            seen: ReadShape::default(),
            random: 0x9e37_79b9_7f4a_7c15,
            paced: Zone::Near,
            beside: PendingSpace::default(),
        }
    }

    /// The tree as it is.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Entries written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Puts every key once into the last level, as after a load and a full compaction.
    pub fn fill(&mut self) -> Result<()> {
        let last = self.version.num_levels() - 1;
        let size = max_output_file_size(&self.policy, Level(last as u8), Level(1));
        let each = (size / self.load.entry_bytes.max(1)).max(1);
        let mut edit = TreeEdit::default();
        for lo in (0..self.load.keys).step_by(usize::try_from(each).unwrap_or(usize::MAX)) {
            let hi = lo.saturating_add(each).min(self.load.keys);
            let entries = (hi - lo) as f64;
            let file = self.file(KeySpan { lo, hi, entries }, (Seq(1), Seq(1)), 1);
            edit.added.push((Level(last as u8), file));
        }
        self.written = 1;
        self.flushes = 1;
        self.install(&edit)?;
        self.measure();
        Ok(())
    }

    /// Forgets what was counted: what follows is what is measured.
    pub fn measure(&mut self) {
        self.work.fill(LevelWork::default());
        self.flushes_before = self.flushes;
        (self.seen, self.level0_max) = (ReadShape::default(), 0);
        (self.blocked, self.served) = (0.0, 0.0);
    }

    /// Bytes written to tables for each byte that was flushed.
    pub fn write_amplification(&self) -> f64 {
        let all: u64 = self.work.iter().map(|w| w.written).sum();
        let flushes = self.flushes - self.flushes_before;
        let flushed = flushes as f64 * self.load.flush_bytes as f64;
        all as f64 / flushed.max(1.0)
    }

    /// The mean of [`Forecast::space_amplification`] since measuring began.
    pub fn mean_space_amplification(&self) -> f64 {
        let alive = (self.load.keys * self.load.entry_bytes) as f64;
        self.seen.bytes / (self.seen.trees as f64 * alive).max(1.0)
    }

    /// The mean number of sorted runs that a read has to look at: tables of level 0, and levels
    /// below.
    pub fn mean_runs(&self) -> f64 {
        self.seen.runs as f64 / (self.seen.trees as f64).max(1.0)
    }

    /// Bytes of tables for each byte of what is alive, when every key was written.
    pub fn space_amplification(&self) -> f64 {
        let alive = self.load.keys * self.load.entry_bytes;
        self.version.bytes() as f64 / (alive as f64).max(1.0)
    }

    /// The part of its time in which the machine compacted while writers stood still.
    pub fn blocked(&self) -> f64 {
        self.blocked / self.served.max(1.0)
    }

    /// Writes `entries`, with the flushes and compactions that follow.
    pub fn write(&mut self, entries: u64) -> Result<()> {
        let each = (self.load.flush_bytes / self.load.entry_bytes.max(1)).max(1);
        let end = self.written + entries;
        while self.written < end {
            while self.version.level(Level::L0).len() >= self.load.level0_stop {
                let before = self.served;
                if !self.serve(self.load.flush_bytes as f64 / 4.0)? {
                    break;
                }
                self.blocked += self.served - before;
            }
            self.flush(each)?;
            self.serve(self.load.flush_bytes as f64 * self.load.service)?;
            self.look();
        }
        Ok(())
    }

    /// Counts what a reader would find now.
    fn look(&mut self) {
        self.seen.trees += 1;
        self.seen.bytes += self.version.bytes() as f64;
        self.seen.runs += self.version.sorted_runs() as u64;
    }

    /// Compacts until nothing is left to do.
    pub fn settle(&mut self) -> Result<()> {
        self.settles = true;
        while self.serve(f64::MAX / 4.0)? {}
        self.settles = self.load.rests;
        Ok(())
    }

    /// Puts a table with the next `entries` writes at level 0.
    fn flush(&mut self, entries: u64) -> Result<()> {
        let keys = self.load.keys;
        let piece = match self.load.order {
            WriteOrder::InOrder => {
                let lo = self.written % keys.max(1);
                KeySpan {
                    lo,
                    hi: (lo + entries).min(keys),
                    entries: entries as f64,
                }
            }
            WriteOrder::AtRandom => {
                let distinct = keys as f64 * (1.0 - (-(entries as f64) / keys as f64).exp());
                let edge = (keys as f64 / distinct.max(1.0)).max(1.0);
                let (lo, hi) = (self.draw(edge), self.draw(edge));
                KeySpan {
                    lo,
                    hi: keys.saturating_sub(hi).max(lo + 1),
                    entries: distinct,
                }
            }
        };
        let seqs = (Seq(self.written + 1), Seq(self.written + entries));
        self.written += entries;
        self.flushes += 1;
        let file = self.file(piece, seqs, self.flushes);
        self.work[0].written += file.size;
        let edit = TreeEdit {
            added: vec![(Level::L0, file)],
            ..TreeEdit::default()
        };
        self.install(&edit)
    }

    /// A number below `below`.
    fn draw(&mut self, below: f64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (below * (self.random >> 11) as f64 / (1u64 << 53) as f64) as u64
    }

    fn install(&mut self, edit: &TreeEdit) -> Result<()> {
        self.version = apply(&self.version, std::slice::from_ref(edit))?;
        self.level0_max = self.level0_max.max(self.version.level(Level::L0).len());
        Ok(())
    }

    fn file(&mut self, piece: KeySpan, seqs: (Seq, Seq), epoch: u64) -> Arc<FileMeta> {
        let key = |k: u64| InternalKey::new(&k.to_be_bytes(), seqs.1, ValueType::Value);
        let entries = piece.entries.round().max(1.0) as u64;
        let number = FileNo(self.next_file);
        self.next_file += 1;
        let meta = FileMeta {
            number,
            size: entries * self.load.entry_bytes,
            smallest: key(piece.lo),
            largest: key(piece.hi - 1),
            smallest_seq: seqs.0,
            largest_seq: seqs.1,
            epoch,
            file_creation_time: self.flushes.max(1),
            ..FileMeta::default()
        };
        let _new = meta.stats.set(FileStats {
            num_entries: entries,
            raw_value_size: entries * self.load.entry_bytes,
            ..FileStats::default()
        });
        Arc::new(meta)
    }

    /// Starts what may start; moves happen at once.
    fn start(&mut self) -> Result<()> {
        while self.running.len() < self.load.jobs.max(1) {
            // A flush takes a second of this clock.
            let moment = PickContext {
                now: self.flushes,
                oldest_snapshot: Seq::MAX,
                draining: self.settles,
                writers: if self.settles {
                    WriterState::Resting
                } else {
                    WriterState::Writing
                },
                paced: if self.settles { Zone::Calm } else { self.paced },
                reads: ReadDemand::default(),
                beside: self.beside,
            };
            let Some(plan) = pick(&self.version, &self.policy, &self.busy, moment) else {
                return Ok(());
            };
            let to = plan.output_level.index();
            if let Some(edit) = plan.edit_without_job() {
                if plan.kind == PlanKind::TrivialMove {
                    self.work[to].moved += plan.input_bytes();
                }
                self.install(&edit)?;
                continue;
            }
            let ticket = self.busy.register(self.version.order(), &plan);
            let left = plan.input_bytes() as f64;
            self.running.push(RunningCompaction { plan, ticket, left });
        }
        Ok(())
    }

    /// Lets compactions read `bytes`; false when there is none.
    fn serve(&mut self, mut bytes: f64) -> Result<bool> {
        self.start()?;
        let any = !self.running.is_empty();
        while bytes > 0.0 && !self.running.is_empty() {
            let jobs = self.running.len() as f64;
            let least = self.running.iter().map(|r| r.left).fold(bytes, f64::min);
            let each = least.min(bytes / jobs);
            self.running.iter_mut().for_each(|r| r.left -= each);
            bytes -= each * jobs;
            self.served += each * jobs;
            while let Some(at) = self.running.iter().position(|r| r.left < 1.0) {
                let done = self.running.swap_remove(at);
                self.finish(done)?;
            }
            self.start()?;
        }
        Ok(any)
    }

    fn finish(&mut self, done: RunningCompaction) -> Result<()> {
        let plan = done.plan;
        self.busy.release(done.ticket);
        let seqs = plan
            .files()
            .fold((Seq::MAX, Seq::ZERO), |(lo, hi), (_, f)| {
                (lo.min(f.smallest_seq), hi.max(f.largest_seq))
            });
        let level = plan.output_level;
        let mut edit = plan.input_deletions();
        for piece in self.outputs(&plan) {
            let file = self.file(piece, seqs, plan.output_epoch());
            edit.added.push((level, file));
        }
        let work = &mut self.work[level.index()];
        work.compactions += 1;
        work.read += plan.input_bytes();
        work.written += edit.added.iter().map(|(_, f)| f.size).sum::<u64>();
        self.install(&edit)
    }

    /// The union of the inputs, cut as a job cuts it.
    fn outputs(&self, plan: &Plan) -> Vec<KeySpan> {
        let inputs: Vec<_> = plan.files().map(|(_, f)| piece_of(f)).collect();
        let ends: Vec<_> = plan.grandparents.iter().map(|f| piece_of(f).hi).collect();
        let bytes = self.load.entry_bytes as f64;
        let mut cutter = Cutter::of(KeyOrder::Bytewise, plan);
        let (mut out, mut open): (Vec<KeySpan>, Option<KeySpan>) = (Vec::new(), None);
        for mut piece in union(&inputs, &ends) {
            while piece.hi > piece.lo {
                let room = cutter.target() as f64 - open.map_or(0.0, |o| o.entries * bytes);
                let part = piece.take_up_to(room / bytes);
                let grown = match open {
                    None => part,
                    Some(o) => KeySpan {
                        hi: part.hi,
                        entries: o.entries + part.entries,
                        ..o
                    },
                };
                // A table ends after the entry that fills it.
                let size = ((grown.entries + 1.0) * bytes) as u64;
                let (last, next) = (key_at(part.hi - 1), key_at(part.hi));
                let full = cutter.should_cut(size, last.as_bytes(), next.as_bytes());
                open = (!full).then_some(grown);
                if full {
                    out.push(grown);
                    cutter.start_file();
                }
            }
        }
        out.extend(open);
        out
    }
}

/// The union of `inputs`, in pieces that end where an input or one of `ends` does.
fn union(inputs: &[KeySpan], ends: &[u64]) -> Vec<KeySpan> {
    let mut edges: Vec<u64> = inputs.iter().flat_map(|p| [p.lo, p.hi]).collect();
    edges.extend(ends);
    edges.sort_unstable();
    edges.dedup();
    let mut by_start: Vec<_> = inputs.to_vec();
    by_start.sort_by_key(|p| p.lo);
    let (mut active, mut next): (Vec<KeySpan>, usize) = (Vec::new(), 0);
    let mut out = Vec::new();
    for pair in edges.windows(2) {
        let (lo, hi) = (pair[0], pair[1]);
        active.retain(|p| p.hi > lo);
        while by_start.get(next).is_some_and(|p| p.lo <= lo) {
            active.push(by_start[next]);
            next += 1;
        }
        let absent = active.iter().map(|p| {
            let width = (p.hi - p.lo) as f64;
            1.0 - (p.entries / width).min(1.0)
        });
        let present = 1.0 - absent.product::<f64>();
        if present > 0.0 && !active.is_empty() {
            let entries = present * (hi - lo) as f64;
            out.push(KeySpan { lo, hi, entries });
        }
    }
    out
}

#[cfg(test)]
mod tests;
