//! Reading many keys at once: one view, keys in order, so that neighbours share index and data
//! blocks.
//!
//! Memtables answer what they can; what is left goes through level 0 file by file and then through
//! the deeper levels in key order. Each key sees the sources newest first, as a single read would.

use super::get::{Answer, PointRead, read_context};
use super::pinned::PinnedValue;
use crate::family::{ReadOperation, View, is_sampled};
use crate::observe::Ticker;
use crate::options::ReadTier;
use esker_files::table::{LookupKey, ReadContext};
use esker_format::key::append_internal;
use esker_format::{Level, Seq, ValueType};
use esker_lsm::merge_operator::MergeOperator;
use esker_lsm::point::PointResolver;
use esker_lsm::version::Candidates;
use esker_status::{Error, ErrorKind, Result};
use esker_sync::Arc;
use std::iter::Peekable;

/// A key on its way through the sources.
struct Pending<'v> {
    /// Its place among the answers.
    at: usize,
    key: LookupKey<'v>,
    resolver: PointResolver<PinnedValue>,
    candidates: Peekable<Candidates<'v>>,
    hit: Option<Level>,
    error: Option<Error>,
}

impl Pending<'_> {
    fn is_open(&self) -> bool {
        self.error.is_none() && !self.resolver.is_done()
    }
}

/// What the keys get for which `value_size_soft_limit` leaves no room.
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
) -> Vec<Result<Answer>> {
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
) -> Vec<Result<Answer>> {
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
            candidates: view.version.candidates(internal(at)).peekable(),
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
        tables(read, view, seq, operator, &mut pending, is_sampled);
    }
    if let Some(s) = &read.core.statistics {
        s.add(Ticker::MemtableHit, (pending.len() - open) as u64);
    }
    let mut answers: Vec<Result<Answer>> = keys.iter().map(|_| Ok(Answer::Absent)).collect();
    let mut bytes = 0u64;
    for p in pending {
        let over = bytes > read.options.value_size_soft_limit;
        let answer = if over {
            Err(over_soft_limit())
        } else {
            finish(read, p.resolver, p.error, operator, keys[p.at])
        };
        if let Ok(Answer::Value(v) | Answer::Entity(v)) = &answer {
            bytes = bytes.saturating_add(v.len() as u64);
        }
        answers[p.at] = answer;
    }
    answers
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

fn tables(
    read: &PointRead<'_>,
    view: &View,
    seq: Seq,
    operator: Option<&dyn MergeOperator>,
    pending: &mut [Pending<'_>],
    is_sampled: bool,
) {
    let ctx = read_context(read.options);
    let missed: Vec<usize> = (0..pending.len())
        .filter(|i| pending[*i].is_open())
        .collect();
    for file in view.version.level(Level::L0).files() {
        for &i in &missed {
            let p = &mut pending[i];
            // A key's own candidates say whether the file may hold it.
            let here = matches!(p.candidates.peek(), Some((Level::L0, f)) if Arc::ptr_eq(f, file));
            if here && p.is_open() {
                step(read, seq, &ctx, operator, p, is_sampled);
            }
        }
    }
    for &i in &missed {
        let p = &mut pending[i];
        while p.is_open() && p.candidates.peek().is_some() {
            step(read, seq, &ctx, operator, p, is_sampled);
        }
        read.count(&p.key, p.hit);
    }
}

/// Looks into the next table that may hold the key.
fn step(
    read: &PointRead<'_>,
    seq: Seq,
    ctx: &ReadContext,
    operator: Option<&dyn MergeOperator>,
    p: &mut Pending<'_>,
    is_sampled: bool,
) {
    let Some((level, file)) = p.candidates.next() else {
        return;
    };
    if p.resolver.covering() > file.largest_seq {
        p.resolver.conclude_deleted();
        return;
    }
    let searched = read.table(level, file, &p.key, ctx, seq, operator, &mut p.resolver);
    if is_sampled && searched.is_ok() {
        read.note_collapsible(file, &p.resolver);
    }
    match searched {
        Ok(()) if p.resolver.is_done() => p.hit = Some(level),
        Ok(()) => {}
        Err(e) => p.error = Some(e),
    }
}

fn finish(
    read: &PointRead<'_>,
    resolver: PointResolver<PinnedValue>,
    error: Option<Error>,
    operator: Option<&dyn MergeOperator>,
    user: &[u8],
) -> Result<Answer> {
    match error {
        Some(e) => Err(e),
        None => {
            let resolved = resolver.finish(operator, user)?;
            read.complete(resolved, operator, user)
        }
    }
}
