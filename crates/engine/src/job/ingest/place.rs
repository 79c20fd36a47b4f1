//! Where an ingested file goes, and which sequence number it gets.
//!
//! A file goes to the deepest level such that no level above holds a key of its range, and no file
//! of the level itself reaches into it. Where the next level does hold one, or a snapshot must not
//! see the file, or it overlaps another of the files, its entries get the next sequence number;
//! else they get 0, as data that no reader can have seen in another state.

use super::{ImportFile, IngestFiles, seqs_of};
use crate::core::{Background, Core, Services};
use crate::family::Family;
use crate::job::scheduler::release;
use crate::options::CompactionStyle;
use esker_files::table::ReadContext;
use esker_format::key::user_key;
use esker_format::{Cursor, InternalKey, KeyOrder, Level, RawTombstone, Seq, ValueType};
use esker_lsm::file::FileMeta;
use esker_lsm::plan::{Busy, Ticket};
use esker_lsm::score::targets;
use esker_lsm::version::Version;
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::Arc;

/// A decision about one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IngestPlacement {
    pub(crate) level: Level,
    /// 0 when the entries need none.
    pub(crate) seq: Seq,
}

/// Keeps compactions out of the ranges of a job's files until it is dropped.
pub(crate) struct RangeReservation<'a> {
    background: &'a Background,
    family: Arc<Family>,
    ticket: Option<Ticket>,
    /// Work that ran when the ranges were reserved.
    running: Busy,
}

impl<'a> RangeReservation<'a> {
    /// Looks at what runs, and from then on lets nothing begin that would write into the files'
    /// ranges.
    pub(crate) fn new(background: &'a Background, job: &IngestFiles) -> Self {
        let levels = job.family.view_guard().version.num_levels();
        let order = &job.family.order;
        let hull = job.files.iter().map(|f| (&f.smallest, &f.largest));
        let hull = hull.reduce(|(lo, hi), (a, b)| {
            let lower = order.compare_internal(a.as_bytes(), lo.as_bytes()).is_lt();
            let higher = order.compare_internal(b.as_bytes(), hi.as_bytes()).is_gt();
            (if lower { a } else { lo }, if higher { b } else { hi })
        });
        let mut jobs = background.jobs.lock();
        let busy = jobs.busy.entry(job.family.id).or_default();
        let running = busy.clone();
        let last = u8::try_from(levels - 1).map_or(Level(u8::MAX), Level);
        let ticket = hull.map(|(lo, hi)| {
            let sorted = (Level(1)..=last, lo.clone(), hi.clone());
            busy.reserve(Vec::new(), Some(sorted))
        });
        RangeReservation {
            background,
            family: Arc::clone(&job.family),
            ticket,
            running,
        }
    }
}

impl Drop for RangeReservation<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            release(&mut self.background.jobs.lock(), &self.family, ticket);
        }
    }
}

/// Returns whether a memtable holds a key of the range of one of the files.
pub(crate) fn meets_memtables(job: &IngestFiles) -> Result<bool> {
    if seeded(Bug::IngestBesideMemtable) {
        return Ok(false);
    }
    let view = job.family.view();
    let order = &job.family.order;
    for mem in std::iter::once(&view.mem).chain(&view.immutable) {
        if mem.is_empty() {
            continue;
        }
        let tombstones = mem.tombstones()?;
        let mut cursor = mem.cursor();
        for file in &job.files {
            let range = (file.smallest.user(), file.largest.user());
            if has_key_in(&mut cursor, order, range)? {
                return Ok(true);
            }
            if let Some(t) = &tombstones
                && t.iter().any(|t| covers(order, (t.start, t.end), range))
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns whether there is an entry in the range of user keys, both ends included.
fn has_key_in(
    cursor: &mut impl Cursor,
    order: &KeyOrder,
    (lo, hi): (&[u8], &[u8]),
) -> Result<bool> {
    cursor.seek(InternalKey::new(&first_version(order, lo), Seq::MAX, ValueType::SEEK).as_bytes());
    let found = cursor.valid()
        && order
            .compare_without_timestamp(user_key(cursor.key()), hi)
            .is_le();
    cursor.status()?;
    Ok(found)
}

/// The user key, with the timestamp that sorts first where keys have one.
fn first_version(order: &KeyOrder, user: &[u8]) -> Vec<u8> {
    let mut key = user.to_vec();
    let bare = key.len().saturating_sub(order.timestamp_size());
    key[bare..].fill(0xff);
    key
}

/// Returns whether the deletion of `[start, end)` touches the range.
fn covers(order: &KeyOrder, (start, end): (&[u8], &[u8]), (lo, hi): (&[u8], &[u8])) -> bool {
    order.compare_without_timestamp(start, hi).is_le()
        && order.compare_without_timestamp(end, lo).is_gt()
}

/// Decides for every file of a job; `newest` is the newest sequence number in use, and goes on.
pub(crate) fn place(
    core: &Arc<Core>,
    job: &IngestFiles,
    reserved: &RangeReservation<'_>,
    newest: &mut Seq,
) -> Result<Vec<IngestPlacement>> {
    let options = job.family.options.load();
    let version = Arc::clone(&job.family.view_guard().version);
    let placing = PlacementContext {
        core,
        job,
        version: &version,
        running: &reserved.running,
        base: targets(&version, &options.to_policy()).base_level,
        is_fifo: options.compaction_style == CompactionStyle::Fifo,
        is_watched: job.options.snapshot_consistency && core.reads.snapshots.count() > 0,
    };
    let mut out = Vec::with_capacity(job.files.len());
    let mut above: Option<Level> = None;
    let mut from = 0;
    while from < job.files.len() {
        let batch = placing.batch(from);
        let mut highest = Level(u8::MAX);
        for file in &job.files[from..from + batch] {
            let place = placing.one(file, above, *newest)?;
            placing.write_seq(file, place.seq)?;
            *newest = (*newest).max(place.seq);
            if let Some((_, own)) = file.own_seqs {
                *newest = (*newest).max(own);
            }
            highest = highest.min(place.level);
            out.push(place);
        }
        above = Some(highest);
        from += batch;
    }
    Ok(out)
}

/// State that placements are decided by.
struct PlacementContext<'a> {
    core: &'a Arc<Core>,
    job: &'a IngestFiles,
    version: &'a Version,
    running: &'a Busy,
    /// Levels between 0 and this one stay empty.
    base: Level,
    is_fifo: bool,
    /// A snapshot exists that must not see the files.
    is_watched: bool,
}

impl PlacementContext<'_> {
    fn order(&self) -> &KeyOrder {
        &self.job.family.order
    }

    /// How many files from this one on do not overlap: those after them go above them.
    fn batch(&self, from: usize) -> usize {
        let files = &self.job.files[from..];
        if !self.job.overlap {
            return files.len();
        }
        let range = |f: &'_ ImportFile| (f.smallest.clone(), f.largest.clone());
        let meets = |n: usize| {
            let (lo, hi) = range(&files[n]);
            files[..n].iter().any(|f| {
                super::examine::ranges_meet(self.order(), (&lo, &hi), (&f.smallest, &f.largest))
            })
        };
        (1..files.len()).find(|n| meets(*n)).unwrap_or(files.len())
    }

    /// Decides for one file that has to go above level `above`.
    fn one(&self, file: &ImportFile, above: Option<Level>, newest: Seq) -> Result<IngestPlacement> {
        let options = &self.job.options;
        let keeps_seqs = options.allow_db_generated_files;
        let last = Level((self.version.num_levels() - 1) as u8);
        let to_level0 = above == Some(Level::L0) || self.is_fifo;
        let mut needs_seq = self.is_watched || !keeps_seqs && (self.job.overlap || to_level0);
        // Levels that the file may go to are below this one; all are looked at for data that it may
        // not meet.
        let end = match above {
            _ if to_level0 => Level::L0,
            Some(level) => level,
            None => Level(last.0 + 1),
        };
        let mut target = Level::L0;
        if !(to_level0 && needs_seq) {
            let look_to = if keeps_seqs { last.0 + 1 } else { end.0 };
            for level in (0..look_to).map(Level) {
                if level > Level::L0 && level < self.base {
                    continue;
                }
                if self.meets_level(file, level)? {
                    needs_seq = true;
                    if self.order().timestamp_size() > 0 {
                        return Err(Error::invalid_argument(
                            "Column family enables user-defined timestamps, please make sure the key range (without \
                             timestamp) of external file does not overlap with key range (without timestamp) in the db",
                        ));
                    }
                    break;
                }
                if level < end && self.fits(file, level) {
                    target = level;
                }
            }
        }
        if options.fail_if_not_bottommost_level && target < last {
            return Err(Error::new(
                ErrorKind::TryAgain,
                "Files cannot be ingested to Lmax. Please make sure key range of Lmax and ongoing compaction's output \
                 to Lmax does not overlap with files to ingest. Input files overlapping with each other can cause some \
                 file to be assigned to non Lmax level.",
            ));
        }
        if needs_seq && keeps_seqs {
            return Err(Error::invalid_argument(
                "An ingested file overlaps with existing data in the DB and has been assigned a non-zero sequence \
                 number, which is not allowed when 'allow_db_generated_files' is enabled.",
            ));
        }
        if needs_seq && !options.allow_global_seqno {
            return Err(Error::invalid_argument(
                "Global seqno is required, but disabled",
            ));
        }
        let has_field = file.properties.external_sst_file_global_seqno.is_some();
        if needs_seq && !has_field {
            return Err(Error::invalid_argument(
                "Trying to set global seqno for a file that don't have a global seqno field",
            ));
        }
        let needs_seq = needs_seq && !seeded(Bug::IngestSequence);
        let seq = if needs_seq { newest.next() } else { Seq::ZERO };
        Ok(IngestPlacement { level: target, seq })
    }

    /// Returns whether a level, or what a running compaction writes into it, holds a key of the
    /// file's range.
    fn meets_level(&self, file: &ImportFile, level: Level) -> Result<bool> {
        let (lo, hi) = (file.smallest.user(), file.largest.user());
        let order = self.order();
        if self
            .running
            .meets_output(order, level, &file.smallest, &file.largest)
            && !seeded(Bug::IngestPastOutputs)
        {
            return Ok(true);
        }
        let ctx = ReadContext {
            fill_cache: self.job.options.fill_cache,
            total_order_seek: true,
            ..ReadContext::default()
        };
        let family = &self.job.family;
        for met in self.version.overlapping_files(level, Some(lo), Some(hi)) {
            let table = self.core.trees.tables.get(met, level, &family.reading)?;
            let deleted = table.reader.range_tombstones().iter();
            let touches = |t: &RawTombstone| covers(order, (&t.start, &t.end), (lo, hi));
            if deleted.into_iter().any(touches)
                || has_key_in(&mut table.reader.cursor(&ctx), order, (lo, hi))?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether no file of the level reaches into the file's range. Level 0 takes any.
    fn fits(&self, file: &ImportFile, level: Level) -> bool {
        let (lo, hi) = (file.smallest.user(), file.largest.user());
        level == Level::L0 || !self.version.overlaps_level(level, Some(lo), Some(hi))
    }

    /// Puts the sequence number into the file where that is asked for, or takes out what another
    /// ingestion put there.
    fn write_seq(&self, file: &ImportFile, seq: Seq) -> Result<()> {
        let Some((at, now)) = file.written else {
            return Ok(());
        };
        let wanted = if self.job.options.write_global_seqno {
            seq
        } else {
            Seq::ZERO
        };
        if wanted == now {
            return Ok(());
        }
        let path = &file.path;
        let done = self
            .core
            .services
            .env
            .fs
            .write_at(path, at, &wanted.0.to_le_bytes());
        match done {
            // Without such writes the MANIFEST alone says it, which is enough for every reader of
            // today.
            Err(e) if e.kind() == ErrorKind::NotSupported && now == Seq::ZERO => Ok(()),
            done => done,
        }
    }
}

/// The file as a table of the tree.
pub(crate) fn meta(services: &Services, file: &ImportFile, place: &IngestPlacement) -> FileMeta {
    let (smallest_seq, largest_seq) = seqs_of(file, place.seq);
    let edge = |key: &InternalKey| {
        if file.own_seqs.is_some() || key.is_range_end_sentinel() {
            key.clone()
        } else {
            InternalKey::new(key.user(), place.seq, key.kind())
        }
    };
    FileMeta {
        smallest: edge(&file.smallest),
        largest: edge(&file.largest),
        smallest_seq,
        largest_seq,
        ..super::table_meta(services, file)
    }
}
