//! Reading many keys at once: one view, keys in order, so that neighbours share index and data
//! blocks.
//!
//! Memtables answer what they can. What is left looks into tables in groups of keys: all keys of a
//! group ask their next table's filter, then its index, then the cache, and then search the block,
//! so that the memory accesses of one key overlap with those of others (the idea of group
//! prefetching: Chen and others, *Improving hash join performance through prefetching*, ICDE 2004).
//! Where reads wait for the device, those of a group are begun together.
//! Each key sees the sources newest first, as a single read would. Values in blob files are read at
//! the end, in the order in which they lie there.

use super::get::{PointRead, PointResult, read_context};
use super::pinned::PinnedValue;
use crate::family::{ReadOperation, View, is_sampled};
use crate::observe::Ticker;
use crate::options::ReadTier;
use crate::tree::blobs::{BlobValue, WantedBlob};
use crate::tree::tables::TableRef;
use esker_files::table::{BlockLocation, LookupKey, ReadContext};
use esker_format::blob::BlobIndex;
use esker_format::key::append_internal;
use esker_format::{FileNo, Level, Seq, ValueType};
use esker_lsm::file::FileMeta;
use esker_lsm::merge_operator::MergeOperator;
use esker_lsm::point::{PointResolver, ResolvedPoint};
use esker_lsm::version::{Candidates, Version};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, ErrorKind, Result};

/// A key on its way through the sources.
struct Pending<'v> {
    /// Its place among the answers.
    at: usize,
    key: LookupKey<'v>,
    resolver: PointResolver<PinnedValue>,
    candidates: Candidates<'v>,
    hit: Option<Level>,
    error: Option<Error>,
}

impl Pending<'_> {
    fn is_open(&self) -> bool {
        self.error.is_none() && !self.resolver.is_done()
    }
}

/// The error of keys for which `value_size_soft_limit` leaves no room.
pub(crate) fn over_soft_limit() -> Error {
    Error::new(
        ErrorKind::Aborted,
        "the values of the other keys reached value_size_soft_limit",
    )
}

/// The answers, in the order of `keys`. Stops with `Aborted` for the rest once the values of the
/// keys before (in key order) take more than `value_size_soft_limit`.
pub(crate) fn run(
    read: &PointRead<'_>,
    view: &View,
    keys: &[&[u8]],
    seq: Seq,
) -> Vec<Result<PointResult>> {
    if !is_sampled(ReadOperation::MultiGet) {
        return answers(read, view, keys, seq, false);
    }
    let count = keys.len() as u64;
    read.family.look_at(ReadOperation::MultiGet, count, || {
        answers(read, view, keys, seq, true)
    })
}

fn answers(
    read: &PointRead<'_>,
    view: &View,
    keys: &[&[u8]],
    seq: Seq,
    is_sampled: bool,
) -> Vec<Result<PointResult>> {
    if let Err(e) = read.check_timestamp(view) {
        return keys.iter().map(|_| Err(e.clone())).collect();
    }
    let (encoded, ends) = encode(read, keys, seq);
    let internal = |i: usize| &encoded[if i == 0 { 0 } else { ends[i - 1] }..ends[i]];
    let ts = read.family.order.timestamp_size();
    let mut pending: Vec<Pending<'_>> = (0..keys.len())
        .map(|at| Pending {
            at,
            key: LookupKey::new(internal(at), ts),
            resolver: PointResolver::new(),
            candidates: view.version.candidates(internal(at)),
            hit: None,
            error: None,
        })
        .collect();
    let order = &read.family.order;
    pending.sort_by(|a, b| order.compare_internal(a.key.internal(), b.key.internal()));
    let operator = read.family.merge_operator.as_deref();
    if !read.skips_memtables() {
        for p in &mut pending {
            let done = read.check_deadline().and_then(|()| {
                read.memtables(view, p.key.internal(), seq, operator, &mut p.resolver)
            });
            p.error = done.err();
        }
    }
    let open = pending.iter().filter(|p| p.is_open()).count();
    if open > 0 && read.options.read_tier != ReadTier::Memtable {
        let timer = is_sampled.then(|| read.core.begin_gets());
        tables(read, seq, operator, &mut pending, is_sampled);
        if let Some(timer) = timer {
            read.core.end_gets(read.family, view, timer, open as u64);
        }
    }
    if let Some(s) = &read.core.statistics {
        s.add(Ticker::MemtableHit, (pending.len() - open) as u64);
    }
    let mut blobs = if view.version.blob_files().is_empty() {
        Vec::new()
    } else {
        read_blobs(read, &view.version, keys, &pending)
    };
    let mut answers: Vec<Result<PointResult>> =
        keys.iter().map(|_| Ok(PointResult::Absent)).collect();
    let mut bytes = 0u64;
    for p in pending {
        let blob = blobs.get_mut(p.at).and_then(Option::take);
        let over = bytes > read.options.value_size_soft_limit;
        let answer = if over {
            Err(over_soft_limit())
        } else {
            let key = keys[p.at];
            finish(
                read,
                &view.version,
                (p.resolver, p.error, blob),
                operator,
                key,
            )
        };
        if let Ok(PointResult::Value(v) | PointResult::Entity(v)) = &answer {
            bytes = bytes.saturating_add(v.len() as u64);
        }
        answers[p.at] = answer;
    }
    answers
}

/// The values of blob files that the answers need, by the places of the keys, read together. Where
/// `value_size_soft_limit` ends the answers, none is read beyond.
fn read_blobs(
    read: &PointRead<'_>,
    version: &Version,
    keys: &[&[u8]],
    pending: &[Pending<'_>],
) -> Vec<Option<Result<BlobValue>>> {
    let mut wanted = Vec::new();
    let mut places = Vec::new();
    let mut bytes = 0u64;
    for p in pending.iter().filter(|p| p.error.is_none()) {
        let Some(index) = p.resolver.blob_index() else {
            continue;
        };
        if bytes > read.options.value_size_soft_limit {
            break;
        }
        if let Ok(BlobIndex::Blob { size, .. }) = BlobIndex::decode(index) {
            bytes = bytes.saturating_add(size);
        }
        places.push(p.at);
        wanted.push(WantedBlob {
            user_key: keys[p.at],
            index,
            value: None,
        });
    }
    if wanted.len() < 2 {
        return Vec::new();
    }
    let blobs = &read.core.blobs;
    blobs.read_many(&read.blob_source(version), &mut wanted);
    let mut by_key: Vec<_> = keys.iter().map(|_| None).collect();
    for (at, blob) in places.into_iter().zip(wanted) {
        by_key[at] = blob.value;
    }
    by_key
}

/// The internal keys one after the other, and where each ends.
fn encode(read: &PointRead<'_>, keys: &[&[u8]], seq: Seq) -> (Vec<u8>, Vec<usize>) {
    let timestamp = read.options.timestamp.as_deref().unwrap_or_default();
    let each = timestamp.len() + esker_format::key::TRAILER_LEN;
    let total = keys.iter().map(|k| k.len() + each).sum();
    let mut encoded = Vec::with_capacity(total);
    let mut ends = Vec::with_capacity(keys.len());
    let mut full = Vec::new();
    for key in keys {
        full.clear();
        full.extend_from_slice(key);
        full.extend_from_slice(timestamp);
        append_internal(&mut encoded, &full, seq, ValueType::SEEK);
        ends.push(encoded.len());
    }
    (encoded, ends)
}

/// Keys that look into tables together: as many as keep what they have loaded in the first cache.
const GROUP: usize = 16;

fn tables(
    read: &PointRead<'_>,
    seq: Seq,
    operator: Option<&dyn MergeOperator>,
    pending: &mut [Pending<'_>],
    is_sampled: bool,
) {
    let search = Search {
        read,
        ctx: read_context(read.options),
        seq,
        operator,
        is_sampled,
    };
    let mut open: Vec<&mut Pending<'_>> = pending.iter_mut().filter(|p| p.is_open()).collect();
    for group in open.chunks_mut(GROUP) {
        search.run(group);
    }
    for p in open {
        read.count(&p.key, p.hit);
    }
}

/// The table that a key looks into next.
struct NextTable<'v> {
    level: Level,
    file: &'v FileMeta,
    table: TableRef<'v>,
    located: Option<BlockLocation>,
}

struct Search<'a> {
    read: &'a PointRead<'a>,
    ctx: ReadContext,
    seq: Seq,
    operator: Option<&'a dyn MergeOperator>,
    is_sampled: bool,
}

impl Search<'_> {
    /// Looks into the tables of each key until its answer is known.
    fn run<'v>(&self, group: &mut [&mut Pending<'v>]) {
        let mut steps: [Option<NextTable<'v>>; GROUP] = [const { None }; GROUP];
        loop {
            let mut is_over = true;
            for (p, step) in group.iter_mut().zip(&mut steps) {
                *step = self.next_table(p);
                if let Some(step) = step {
                    step.table.reader.approach(&p.key);
                    is_over = false;
                }
            }
            if is_over {
                return;
            }
            self.each(group, &mut steps, |p, step| {
                step.located = step.table.reader.locate(&self.ctx, &p.key)?;
                Ok(())
            });
            let mut shares = [None; GROUP];
            let may_wait = |step: &NextTable<'_>| step.table.reader.begins_reads(&self.ctx);
            if steps.iter().flatten().any(may_wait) {
                self.pass_filters(group, &mut steps);
                shares = self.begin_reads(&mut steps);
            }
            self.bring(group, &mut steps, &shares);
            self.each(group, &mut steps, |p, step| {
                let Some(located) = step.located.take() else {
                    self.note(p, step);
                    return Ok(());
                };
                let mut error = None;
                let (resolver, key) = (&mut p.resolver, &p.key);
                let visit = self
                    .read
                    .visitor(self.seq, self.operator, resolver, &mut error);
                (step.table.reader).get_located(&self.ctx, key, located, visit)?;
                self.note(p, step);
                if p.resolver.is_done() {
                    p.hit = Some(step.level);
                }
                error.map_or(Ok(()), Err)
            });
        }
    }

    /// Goes on with keys that cannot be in their table to one that must be read, where that may
    /// wait for the device: then their reads are under way beside those of other keys.
    fn pass_filters<'v>(
        &self,
        group: &mut [&mut Pending<'v>],
        steps: &mut [Option<NextTable<'v>>; GROUP],
    ) {
        for (p, slot) in group.iter_mut().zip(steps) {
            while let Some(step) = slot
                && step.located.is_none()
                && p.error.is_none()
                && step.table.reader.begins_reads(&self.ctx)
            {
                self.note(p, step);
                *slot = self.next_table(p);
                if let Some(next) = slot {
                    match next.table.reader.locate(&self.ctx, &p.key) {
                        Ok(located) => next.located = located,
                        Err(e) => p.error = Some(e),
                    }
                }
            }
        }
    }

    /// Begins the reads of several blocks before one is waited for, where that may take long. Says
    /// of each key whether one before it reads its block.
    fn begin_reads(&self, steps: &mut [Option<NextTable<'_>>; GROUP]) -> [Option<usize>; GROUP] {
        let mut blocks = [None; GROUP];
        let mut shares = [None; GROUP];
        for (at, step) in steps.iter().enumerate() {
            let Some(block) = step.as_ref().and_then(|step| self.awaited(step)) else {
                continue;
            };
            shares[at] = blocks[..at].iter().position(|b| *b == Some(block));
            if shares[at].is_none() {
                blocks[at] = Some(block);
            }
        }
        if blocks.iter().flatten().count() >= 2 {
            for (step, _) in steps.iter_mut().zip(blocks).filter(|(_, b)| b.is_some()) {
                if let Some(step) = step
                    && let Some(located) = &mut step.located
                {
                    step.table.reader.begin(&self.ctx, located);
                }
            }
        }
        shares
    }

    /// The table and the offset of the block that a key waits for.
    fn awaited(&self, step: &NextTable<'_>) -> Option<(FileNo, u64)> {
        let offset = (step.table.reader).awaits(&self.ctx, step.located.as_ref()?)?;
        if seeded(Bug::BlockSharedByOffset) {
            return Some((FileNo(0), offset));
        }
        Some((step.file.number, offset))
    }

    /// Brings the blocks of all keys.
    fn bring<'v>(
        &self,
        group: &mut [&mut Pending<'v>],
        steps: &mut [Option<NextTable<'v>>; GROUP],
        shares: &[Option<usize>; GROUP],
    ) {
        for (at, p) in group.iter_mut().enumerate() {
            let (before, from) = steps.split_at_mut(at);
            let Some(Some(step)) = from.first_mut().filter(|_| p.error.is_none()) else {
                continue;
            };
            let Some(located) = &mut step.located else {
                continue;
            };
            let first = shares[at].and_then(|first| before[first].as_ref()?.located.as_ref());
            if !first.is_some_and(|first| located.share(first)) {
                let brought = step.table.reader.bring(&self.ctx, &p.key, located);
                p.error = brought.err();
            }
        }
    }

    /// A table was searched.
    fn note(&self, p: &Pending<'_>, step: &NextTable<'_>) {
        if self.is_sampled {
            self.read.note_collapsible(step.file, &p.resolver);
        }
    }

    /// Does one part of a step for every key; a key that fails makes no further step.
    fn each<'v>(
        &self,
        group: &mut [&mut Pending<'v>],
        steps: &mut [Option<NextTable<'v>>; GROUP],
        part: impl Fn(&mut Pending<'v>, &mut NextTable<'v>) -> Result<()>,
    ) {
        for (p, step) in group.iter_mut().zip(steps) {
            if p.error.is_none()
                && let Some(step) = step
            {
                p.error = part(p, step).err();
            }
        }
    }

    /// The next table that may hold the key of an open answer.
    fn next_table<'v>(&self, p: &mut Pending<'v>) -> Option<NextTable<'v>> {
        if !p.is_open() {
            return None;
        }
        let (level, file) = p.candidates.next()?;
        if p.resolver.covering() > file.largest_seq {
            p.resolver.conclude_deleted();
            return None;
        }
        match (self.read).table_for(level, file, &p.key, self.seq, &mut p.resolver) {
            Ok(table) => Some(NextTable {
                level,
                file,
                table,
                located: None,
            }),
            Err(e) => {
                p.error = Some(e);
                None
            }
        }
    }
}

fn finish(
    read: &PointRead<'_>,
    version: &Version,
    (resolver, error, blob): (
        PointResolver<PinnedValue>,
        Option<Error>,
        Option<Result<BlobValue>>,
    ),
    operator: Option<&dyn MergeOperator>,
    user: &[u8],
) -> Result<PointResult> {
    match error {
        Some(e) => Err(e),
        None => {
            let mut resolved = resolver.finish(operator, user)?;
            if let Some(blob) = blob
                && let ResolvedPoint::Blob(waiting) = resolved
            {
                resolved = waiting.complete(operator, user, PinnedValue::of_blob(blob?))?;
            }
            read.complete(version, resolved, operator, user)
        }
    }
}
