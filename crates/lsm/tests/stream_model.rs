//! The streams against a model: random logs of puts, deletions, merges and range deletions, split
//! into runs, read both ways and by point under random snapshots, compacted under any snapshots,
//! cut into files anywhere.

mod support;

use esker_format::key::{append_internal, user_key};
use esker_format::{Cursor, InternalKey, KeyOrder, ParsedKey, RawTombstone, Seq, ValueType};
use esker_lsm::compaction_stream::{CompactionStream, StreamOptions};
use esker_lsm::merge_operator::{self, MergeOperator};
use esker_lsm::merging::MergingCursor;
use esker_lsm::point::{PointResolver, PointState, ResolvedPoint};
use esker_lsm::tombstone::{
    Clip, ClippedTombstones, CompactionTombstones, DropRules, FilePoints, FragmentedTombstones,
    LevelTombstones, ReadTombstones,
};
use esker_lsm::visible::{VisibleCursor, VisibleOptions};
use esker_status::Result;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

use support::{Entry, VecCursor};

#[derive(Clone, Debug)]
enum Op {
    Put(u8),
    Delete(u8),
    Single(u8),
    Merge(u8),
    Range(u8, u8),
}

const KEYS: u8 = 14;

fn op() -> impl Strategy<Value = Op> {
    let key = 0..KEYS;
    prop_oneof![
        5 => key.clone().prop_map(Op::Put),
        2 => key.clone().prop_map(Op::Delete),
        2 => key.clone().prop_map(Op::Single),
        3 => key.clone().prop_map(Op::Merge),
        2 => (key.clone(), 1..6u8).prop_map(|(a, n)| Op::Range(a, a + n)),
    ]
}

/// Keys with a long common head in part, short ones, and zero bytes.
fn key_of(i: u8) -> Vec<u8> {
    match i % 3 {
        0 => format!("k{i:02}").into_bytes(),
        1 => format!("k{i:02}-a-long-common-head").into_bytes(),
        _ => [format!("k{i:02}").as_bytes(), b"\0"].concat(),
    }
}

#[derive(Clone, Default)]
struct Run {
    entries: Vec<Entry>,
    tombstones: Vec<RawTombstone>,
    /// File boundaries, when the run is a file.
    bounds: Option<(InternalKey, InternalKey)>,
}

impl Run {
    fn clipped(&self, order: &KeyOrder) -> ClippedTombstones {
        let fragments = FragmentedTombstones::new(&self.tombstones, order).expect("no timestamps");
        match &self.bounds {
            None => ClippedTombstones::whole(fragments),
            Some((s, l)) => ClippedTombstones::of_file(fragments, s, l),
        }
    }
}

/// The model: what each sequence number left behind, by key.
struct Model {
    order: KeyOrder,
    states: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
}

/// Builds the log's entries, and the model's state after each write.
fn build(order: &KeyOrder, ops: &[Op]) -> (Vec<(Op, Seq)>, Model) {
    let mut state: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut writes: BTreeMap<u8, u32> = BTreeMap::new();
    let mut states = vec![state.clone()];
    let mut log = Vec::new();
    for op in ops {
        // A single deletion is legal only over one plain put since the last deletion: otherwise
        // write a Delete.
        let op = match op {
            Op::Single(k) if writes.get(k) != Some(&1) => Op::Delete(*k),
            other => other.clone(),
        };
        let seq = Seq(states.len() as u64);
        match &op {
            Op::Put(k) => {
                *writes.entry(*k).or_insert(0) += 1;
                state.insert(key_of(*k), value_of(seq));
            }
            Op::Delete(k) => {
                writes.insert(*k, 100);
                state.remove(&key_of(*k));
            }
            Op::Single(k) => {
                writes.insert(*k, 0);
                state.remove(&key_of(*k));
            }
            Op::Merge(k) => {
                *writes.entry(*k).or_insert(0) += 100;
                let v = state.entry(key_of(*k)).or_insert_with(|| vec![b'.']);
                let none = v == b".";
                let old = std::mem::take(v);
                *v = if none {
                    value_of(seq)
                } else {
                    [&old[..], b",", &value_of(seq)].concat()
                };
            }
            Op::Range(a, b) => {
                let (mut low, mut high) = (key_of(*a), key_of(*b));
                if order.compare(&low, &high).is_gt() {
                    std::mem::swap(&mut low, &mut high);
                }
                (0..KEYS).for_each(|k| {
                    writes.insert(k, 100);
                });
                state.retain(|k, _| {
                    order.compare(k, &low).is_lt() || order.compare(k, &high).is_ge()
                });
            }
        }
        states.push(state.clone());
        log.push((op, seq));
    }
    (
        log,
        Model {
            order: order.clone(),
            states,
        },
    )
}

fn value_of(seq: Seq) -> Vec<u8> {
    format!("v{}", seq.0).into_bytes()
}

/// Splits a log, oldest first, at these places; the result is newest run first.
fn split_runs(order: &KeyOrder, log: &[(Op, Seq)], cuts: &[usize]) -> Vec<Run> {
    let mut edges: Vec<usize> = cuts.iter().map(|c| c % (log.len() + 1)).collect();
    edges.extend([0, log.len()]);
    edges.sort_unstable();
    edges.dedup();
    let mut runs: Vec<Run> = edges
        .windows(2)
        .map(|w| run_of(order, &log[w[0]..w[1]]))
        .collect();
    runs.reverse();
    runs
}

fn run_of(order: &KeyOrder, log: &[(Op, Seq)]) -> Run {
    let mut run = Run::default();
    for (op, seq) in log {
        let (key, kind, value) = match op {
            Op::Put(k) => (*k, ValueType::Value, value_of(*seq)),
            Op::Delete(k) => (*k, ValueType::Deletion, Vec::new()),
            Op::Single(k) => (*k, ValueType::SingleDeletion, Vec::new()),
            Op::Merge(k) => (*k, ValueType::Merge, value_of(*seq)),
            Op::Range(a, b) => {
                let (mut start, mut end) = (key_of(*a), key_of(*b));
                if order.compare(&start, &end).is_gt() {
                    std::mem::swap(&mut start, &mut end);
                }
                run.tombstones.push(RawTombstone {
                    start,
                    end,
                    seq: *seq,
                });
                continue;
            }
        };
        run.entries.push((
            InternalKey::new(&key_of(key), *seq, kind)
                .as_bytes()
                .to_vec(),
            value,
        ));
    }
    run.entries
        .sort_by(|a, b| order.compare_internal(&a.0, &b.0));
    run
}

fn operator() -> Arc<dyn MergeOperator> {
    merge_operator::by_name("stringappend").expect("a built-in operator")
}

fn merging(order: &KeyOrder, runs: &[Run]) -> MergingCursor<VecCursor> {
    let children = runs
        .iter()
        .map(|r| VecCursor::deferring(order, Arc::new(r.entries.clone())))
        .collect();
    MergingCursor::new(children, order.clone())
}

/// A level whose files are loaded when asked.
struct Level(Vec<(Clip, Arc<FragmentedTombstones>)>);

impl LevelTombstones for Level {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn clip(&self, i: usize) -> &Clip {
        &self.0[i].0
    }
    fn load(&mut self, i: usize) -> Result<Option<Arc<FragmentedTombstones>>> {
        Ok(Some(Arc::clone(&self.0[i].1)))
    }
}

/// `level`: the runs are the files of one sorted level; its children are equally young.
fn visible(
    order: &KeyOrder,
    runs: &[Run],
    level: bool,
    snapshot: Seq,
) -> VisibleCursor<MergingCursor<VecCursor>> {
    let mut tombstones = ReadTombstones::new(order.clone(), snapshot);
    if level {
        let files = runs.iter().map(|r| {
            let (s, l) = r.bounds.as_ref().expect("files have boundaries");
            (
                Clip::from_boundaries(s, l, order),
                Arc::clone(r.clipped(order).fragments()),
            )
        });
        tombstones.add_level(Box::new(Level(files.collect())), runs.len());
    } else {
        for (i, run) in runs.iter().enumerate() {
            tombstones.add(run.clipped(order), i + 1);
        }
    }
    let mut options = VisibleOptions::new(order.clone(), snapshot);
    options.merge_operator = Some(operator());
    options.max_sequential_skip = 2;
    VisibleCursor::new(merging(order, runs), tombstones, options).expect("sound options")
}

impl Model {
    fn sorted(&self, snapshot: Seq) -> Vec<Entry> {
        let mut all: Vec<Entry> = self.states[snapshot.0 as usize]
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        all.sort_by(|a, b| self.order.compare(&a.0, &b.0));
        all
    }
}

fn current(c: &VisibleCursor<MergingCursor<VecCursor>>) -> Option<Entry> {
    c.status().expect("no errors");
    c.valid().then(|| (c.key().to_vec(), c.value().to_vec()))
}

/// Compares every way of reading these runs with the model at `snapshot`.
fn check_reads(
    order: &KeyOrder,
    runs: &[Run],
    level: bool,
    model: &Model,
    snapshot: Seq,
    walk: &[u8],
) {
    let expected = model.sorted(snapshot);
    let mut c = visible(order, runs, level, snapshot);
    let mut seen = Vec::new();
    c.seek_to_first();
    while let Some(e) = current(&c) {
        seen.push(e);
        c.next();
    }
    assert_eq!(seen, expected, "forward at {snapshot}");
    let mut seen = Vec::new();
    c.seek_to_last();
    while let Some(e) = current(&c) {
        seen.push(e);
        c.prev();
    }
    seen.reverse();
    assert_eq!(seen, expected, "backward at {snapshot}");
    check_walk(order, &mut c, &expected, walk);
    for k in 0..KEYS {
        let key = key_of(k);
        let got = point(order, runs, snapshot, &key);
        let want = model.states[snapshot.0 as usize].get(&key).cloned();
        assert_eq!(got, want, "point {} at {snapshot}", key.escape_ascii());
    }
}

/// Seeks and steps in both directions, beside an index into the expected list.
fn check_walk(
    order: &KeyOrder,
    c: &mut VisibleCursor<MergingCursor<VecCursor>>,
    expected: &[Entry],
    walk: &[u8],
) {
    let mut at: Option<usize> = None;
    for step in walk {
        match (step % 4, at) {
            (0, Some(i)) | (2, Some(i)) if step % 8 < 4 => {
                c.next();
                at = (i + 1 < expected.len()).then_some(i + 1);
            }
            (1, Some(i)) | (3, Some(i)) if step % 8 < 4 => {
                c.prev();
                at = i.checked_sub(1);
            }
            (0 | 1, _) => {
                let target = key_of(step % KEYS);
                c.seek(&target);
                let i = expected.partition_point(|e| order.compare(&e.0, &target).is_lt());
                at = (i < expected.len()).then_some(i);
            }
            _ => {
                let target = key_of(step % KEYS);
                c.seek_for_prev(&target);
                at = expected
                    .partition_point(|e| order.compare(&e.0, &target).is_le())
                    .checked_sub(1);
            }
        }
        assert_eq!(current(c), at.map(|i| expected[i].clone()), "walk {walk:?}");
    }
}

fn point(order: &KeyOrder, runs: &[Run], snapshot: Seq, key: &[u8]) -> Option<Vec<u8>> {
    let op = operator();
    let mut resolver: PointResolver<Vec<u8>> = PointResolver::new();
    'runs: for run in runs {
        resolver.cover(run.clipped(order).max_covering_seq(key, snapshot));
        let mut c = VecCursor::new(order, Arc::new(run.entries.clone()));
        let mut target = Vec::new();
        append_internal(&mut target, key, snapshot, ValueType::SEEK);
        c.seek(&target);
        while c.valid() && user_key(c.key()) == key {
            let p = ParsedKey::parse(c.key()).expect("well formed");
            let fed = resolver.feed(p.seq, p.kind, Some(op.as_ref()), || c.value().to_vec());
            if fed.expect("no errors") == PointState::Done {
                break 'runs;
            }
            c.next();
        }
    }
    match resolver.finish(Some(op.as_ref()), key).expect("no errors") {
        ResolvedPoint::Missing | ResolvedPoint::Deleted => None,
        ResolvedPoint::Value(v) | ResolvedPoint::Merged(v) => Some(v),
        other => panic!("unexpected {other:?}"),
    }
}

/// Compacts `runs` into files that end after `cuts` entries each.
fn compact(
    order: &KeyOrder,
    runs: &[Run],
    snapshots: &[Seq],
    bottommost: bool,
    cuts: &[usize],
    split_keys: bool,
) -> Vec<Run> {
    let inputs: Vec<_> = runs.iter().map(|r| r.clipped(order)).collect();
    let tombstones = CompactionTombstones::new(&inputs, order, snapshots).expect("no timestamps");
    let mut options = StreamOptions::new(order.clone());
    options.snapshots = snapshots.to_vec();
    options.bottommost = bottommost;
    options.key_not_exists_beyond = Some(Box::new(move |_| bottommost));
    options.merge_operator = Some(operator());
    let total: usize = runs.iter().map(|r| r.entries.len()).sum();
    let mut stream =
        CompactionStream::new(merging(order, runs), tombstones, options).expect("sound");
    let mut files = Vec::new();
    let mut file = Run::default();
    let mut seqs: Vec<Seq> = Vec::new();
    let mut cut = cuts.iter().cycle();
    let mut limit = 1 + cut.next().copied().unwrap_or(usize::MAX - 1);
    let mut last: Option<Vec<u8>> = None;
    stream.seek_to_first();
    while stream.valid() {
        let key = stream.key().to_vec();
        if let Some(last) = &last {
            assert!(
                order.compare_internal(last, &key).is_lt(),
                "output out of order"
            );
        }
        let same_key = last
            .as_ref()
            .is_some_and(|l| order.equal(user_key(l), user_key(&key)));
        if file.entries.len() >= limit && (split_keys || !same_key) {
            let (next, tombstones) = stream.key_and_tombstones();
            end_file(
                order, tombstones, &mut files, &mut file, &mut seqs, next, bottommost,
            );
            limit = 1 + cut.next().copied().unwrap_or(usize::MAX - 1);
        }
        seqs.push(stream.seq());
        file.entries.push((key.clone(), stream.value().to_vec()));
        last = Some(key);
        stream.next();
    }
    stream.status().expect("no errors");
    assert_eq!(
        stream.counters().num_itered as usize,
        total,
        "every input entry is counted"
    );
    end_file(
        order,
        stream.tombstones(),
        &mut files,
        &mut file,
        &mut seqs,
        None,
        bottommost,
    );
    files
}

#[allow(clippy::too_many_arguments)]
fn end_file(
    order: &KeyOrder,
    tombstones: &mut CompactionTombstones,
    files: &mut Vec<Run>,
    file: &mut Run,
    seqs: &mut Vec<Seq>,
    next: Option<&[u8]>,
    bottommost: bool,
) {
    let mut done = std::mem::take(file);
    let points = match (done.entries.first(), done.entries.last()) {
        (Some(first), Some(last)) => Some(FilePoints {
            smallest: InternalKey::from_encoded(&first.0).expect("well formed"),
            largest: InternalKey::from_encoded(&last.0).expect("well formed"),
            smallest_seq: seqs.iter().copied().min().expect("not empty"),
            largest_seq: seqs.iter().copied().max().expect("not empty"),
        }),
        _ => None,
    };
    seqs.clear();
    let mut rules = DropRules {
        bottommost,
        range_not_exists_beyond: None,
    };
    let bounds = tombstones
        .finish_file(points.as_ref(), next, &mut rules, |start, end, seq| {
            done.tombstones.push(RawTombstone {
                start: start.to_vec(),
                end: end.to_vec(),
                seq,
            });
            Ok(())
        })
        .expect("no errors");
    let Some(bounds) = bounds else { return };
    assert!(
        order
            .compare_internal(bounds.smallest.as_bytes(), bounds.largest.as_bytes())
            .is_le()
    );
    if let Some((_, before)) = files.last().and_then(|f| f.bounds.as_ref()) {
        let order = order.compare_internal(before.as_bytes(), bounds.smallest.as_bytes());
        assert!(
            order.is_lt(),
            "{before:?} and {:?} overlap",
            bounds.smallest
        );
    }
    done.bounds = Some((bounds.smallest, bounds.largest));
    files.push(done);
}

fn snapshots_of(raw: &[u64], last: u64) -> Vec<Seq> {
    let mut s: Vec<Seq> = raw
        .iter()
        .map(|r| Seq(r % (last + 1)))
        .filter(|s| *s > Seq::ZERO)
        .collect();
    s.sort_unstable();
    s.dedup();
    s
}

fn orders() -> impl Strategy<Value = KeyOrder> {
    prop_oneof![3 => Just(KeyOrder::Bytewise), 1 => Just(KeyOrder::ReverseBytewise)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn reads_agree_with_the_model(
        order in orders(),
        ops in prop::collection::vec(op(), 1..60),
        cuts in prop::collection::vec(0..60usize, 0..6),
        snapshot in 0..60u64,
        walk in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let (log, model) = build(&order, &ops);
        let runs = split_runs(&order, &log, &cuts);
        let last = log.len() as u64;
        for s in [Seq(snapshot % (last + 1)), Seq(last)] {
            check_reads(&order, &runs, false, &model, s, &walk);
        }
    }

    #[test]
    fn compaction_keeps_what_snapshots_see(
        order in orders(),
        ops in prop::collection::vec(op(), 1..60),
        cuts in prop::collection::vec(0..60usize, 0..6),
        raw in prop::collection::vec(0..60u64, 0..5),
        file_cuts in prop::collection::vec(0..6usize, 0..4),
        bottommost in any::<bool>(),
        split_keys in any::<bool>(),
        walk in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let (log, model) = build(&order, &ops);
        let runs = split_runs(&order, &log, &cuts);
        let last = log.len() as u64;
        let snapshots = snapshots_of(&raw, last);
        let files = compact(&order, &runs, &snapshots, bottommost, &file_cuts, split_keys);
        for s in snapshots.iter().copied().chain([Seq(last)]) {
            check_reads(&order, &files, true, &model, s, &walk);
        }
        // And once more, with fewer snapshots, from the files: boundaries must hold their meaning.
        let fewer: Vec<Seq> = snapshots.iter().copied().skip(1).collect();
        let again = compact(&order, &files, &fewer, true, &[3], split_keys);
        for s in fewer.iter().copied().chain([Seq(last)]) {
            check_reads(&order, &again, true, &model, s, &walk);
        }
    }

    #[test]
    fn upper_runs_over_a_compacted_level(
        order in orders(),
        ops in prop::collection::vec(op(), 2..80),
        at in 1..80usize,
        file_cuts in prop::collection::vec(0..5usize, 0..4),
        raw in prop::collection::vec(0..80u64, 0..3),
        walk in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let (log, model) = build(&order, &ops);
        let at = at % log.len();
        let (old, new) = log.split_at(at);
        let last = log.len() as u64;
        let snapshots = snapshots_of(&raw, last);
        let below = compact(&order, &[run_of(&order, old)], &snapshots, true, &file_cuts, false);
        // The files of a level hold disjoint keys: as runs of their own they are as good as one.
        let mut runs = split_runs(&order, new, &[new.len() / 2]);
        runs.extend(below);
        for s in snapshots.iter().copied().filter(|s| s.0 >= at as u64).chain([Seq(last)]) {
            check_reads(&order, &runs, false, &model, s, &walk);
        }
        // An intermediate compaction of the upper runs must keep deletions for the lower ones.
        let upper: Vec<Run> = split_runs(&order, new, &[new.len() / 2]);
        let mid = compact(&order, &upper, &snapshots, false, &[2], false);
        let mut runs = mid;
        runs.extend(compact(&order, &[run_of(&order, old)], &snapshots, true, &file_cuts, false));
        for s in snapshots.iter().copied().filter(|s| s.0 >= at as u64).chain([Seq(last)]) {
            check_reads(&order, &runs, false, &model, s, &walk);
        }
    }
}
