//! Calls beside jobs: whatever changes a tree begins and ends between the steps of all others.
//!
//! Two callers compact ranges, level after level, and wait while plans are in their way; automatic
//! plans begin and end meanwhile. Files are ingested beside a memtable, levels move up and down,
//! files are compacted by their names, deleted by their ranges, and the shape changes. After each
//! call every key is read, and its versions must lie in order.

use crate::tree::{ENTRY_BYTES, Entry, Model, policy};
use crate::universal;
use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq, ValueType};
use esker_lsm::check::overtaking;
use esker_lsm::edit::TreeEdit;
use esker_lsm::pick::manual::{
    BottommostLevelCompaction, ManualRange, ManualStep, Move, Step, files_within, plan_files,
    plan_step, promote_level0, refit_level, steps,
};
use esker_lsm::pick::{CompactionPri, CompactionStyle, Policy};
use esker_lsm::plan::Ticket;
use esker_lsm::score::targets;
use esker_lsm::shape::draw;
use esker_status::ErrorKind;
use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

const KEYS: u8 = 64;
const CALLERS: usize = 2;

#[derive(Clone, Debug)]
enum Act {
    Write(Vec<(u8, bool)>),
    Flush,
    Start,
    Finish(usize),
    /// A caller compacts a range; one that does already goes on with it.
    Compact(usize, Compact),
    /// A caller goes on: its plan ends, or the next one begins.
    GoOn(usize),
    /// Files, by their place in the tree, to a level.
    Files(Vec<u8>, u8),
    Ingest(Vec<(u8, bool)>),
    /// The deepest level moves: to this level, or as far up as it may.
    Refit(Option<u8>),
    Promote(u8),
    /// A move that was decided is installed.
    Moved,
    DeleteFiles(u8, u8, bool),
    /// The base, the ratio of levels, and the size of files, in entries.
    Shape(u64, u32, u64),
}

/// The arguments of a manual compaction.
#[derive(Clone, Debug)]
struct Compact {
    range: ManualRange,
    bottommost: BottommostLevelCompaction,
    change_level: bool,
}

/// A caller of a manual compaction.
struct Caller {
    call: Compact,
    /// The steps that are left, the next one last.
    todo: Vec<ManualStep>,
    from: Option<InternalKey>,
}

/// The tree with a memtable, and those that compact it.
struct Beside {
    tree: Model,
    mem: BTreeMap<u8, Entry>,
    /// Levels that move: decided and reserved, and not yet installed.
    moving: Vec<(Move, Ticket)>,
    callers: [Option<Caller>; CALLERS],
}

impl Beside {
    fn new(policy: Policy) -> Self {
        let mut tree = Model::new(policy, true);
        tree.checks_universal = false;
        Beside {
            tree,
            mem: BTreeMap::new(),
            moving: Vec::new(),
            callers: [None, None],
        }
    }

    /// The next number of the family, for tables that come without one.
    fn next_epoch(&self) -> u64 {
        self.tree.version.last_epoch() + 1
    }

    fn write(&mut self, writes: &[(u8, bool)]) {
        for &(key, put) in writes {
            self.tree.seq += 1;
            let seq = self.tree.seq;
            let value = put.then_some(seq);
            self.mem.insert(key, Entry { key, seq, value });
            self.tree.truth.insert(key, value);
        }
    }

    fn flush(&mut self) {
        if self.mem.is_empty() {
            return;
        }
        let entries = std::mem::take(&mut self.mem).into_values().collect();
        let epoch = self.next_epoch();
        let file = self.tree.file(entries, epoch);
        self.tree.install(TreeEdit {
            added: vec![(Level::L0, file)],
            ..TreeEdit::default()
        });
    }

    fn compact(&mut self, caller: usize, call: &Compact) {
        if self.callers[caller].is_some() {
            return self.go_on(caller);
        }
        let mut todo = steps(
            &self.tree.version,
            &self.tree.policy,
            &call.range,
            call.bottommost,
            false,
            FileNo(self.tree.next_file),
        );
        todo.reverse();
        self.callers[caller] = Some(Caller {
            call: call.clone(),
            todo,
            from: None,
        });
    }

    fn go_on(&mut self, index: usize) {
        let own = |r: &crate::Running| r.caller == Some(index);
        if let Some(at) = self.tree.running.iter().position(own) {
            return self.tree.finish(at);
        }
        let Some(mut caller) = self.callers[index].take() else {
            return;
        };
        let Some(step) = caller.todo.last() else {
            if caller.call.change_level {
                self.refit(None);
            }
            return;
        };
        let tree = &mut self.tree;
        let (v, from) = (tree.version.clone(), caller.from.as_ref());
        match plan_step(&v, &tree.policy, &tree.busy, step, &caller.call.range, from) {
            Step::Conflict => {}
            Step::Done => {
                caller.todo.pop();
                caller.from = None;
            }
            Step::Run { plan, next } => {
                tree.begin(*plan);
                if let Some(begun) = tree.running.last_mut() {
                    begun.caller = Some(index);
                }
                if next.is_none() {
                    caller.todo.pop();
                }
                caller.from = next;
            }
        }
        self.callers[index] = Some(caller);
    }

    fn files(&mut self, places: &[u8], output: u8) {
        let tree = &mut self.tree;
        let all: Vec<FileNo> = tree.version.files().map(|(_, f)| f.number).collect();
        if all.is_empty() {
            return;
        }
        let chosen: Vec<FileNo> = places
            .iter()
            .map(|p| all[usize::from(*p) % all.len()])
            .collect();
        let v = tree.version.clone();
        match plan_files(&v, &tree.policy, &tree.busy, &chosen, Level(output), 0) {
            Ok(plan) => tree.begin(plan),
            Err(e) => assert!(
                matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::Aborted),
                "{e}"
            ),
        }
    }

    /// The rule of an ingestion: the deepest level above which no key of the file's range lies, and
    /// whose files do not reach into it; a sequence number where a key lies below.
    fn ingest(&mut self, writes: &[(u8, bool)]) {
        let mut entries: BTreeMap<u8, Entry> = BTreeMap::new();
        for &(key, put) in writes {
            let value = put.then_some(self.tree.next_file << 32 | u64::from(key));
            entries.insert(key, Entry { key, seq: 0, value });
        }
        let (Some(lo), Some(hi)) = (entries.keys().next(), entries.keys().next_back()) else {
            return;
        };
        let (lo, hi) = (*lo, *hi);
        if self.mem.range(lo..=hi).next().is_some() {
            self.flush();
        }
        self.tree.ingests = true;
        let (level, seq) = self.place(lo, hi);
        for e in entries.values_mut() {
            e.seq = seq;
            self.tree.truth.insert(e.key, e.value);
        }
        self.tree.seq = self.tree.seq.max(seq);
        let epoch = self.next_epoch();
        let file = self.tree.file(entries.into_values().collect(), epoch);
        self.tree.install(TreeEdit {
            added: vec![(level, file)],
            ..TreeEdit::default()
        });
    }

    fn place(&self, lo: u8, hi: u8) -> (Level, u64) {
        let (tree, v) = (&self.tree, &self.tree.version);
        let base = targets(v, &tree.policy).base_level;
        let (from, to) = ([lo], [hi]);
        let edges = (
            InternalKey::new(&[lo], Seq::MAX, ValueType::SEEK),
            InternalKey::new(&[hi], Seq::ZERO, ValueType::Value),
        );
        let mut target = Level::L0;
        for level in (0..v.num_levels()).map(|l| Level(l as u8)) {
            if level > Level::L0 && level < base {
                continue;
            }
            let mut files = v.overlapping_files(level, Some(&from), Some(&to));
            let holds = |n: FileNo| {
                let mut entries = tree.contents[&n].iter();
                entries.any(|e| (lo..=hi).contains(&e.key))
            };
            if tree
                .busy
                .meets_output(&KeyOrder::Bytewise, level, &edges.0, &edges.1)
                || files.any(|f| holds(f.number))
            {
                return (target, tree.seq + 1);
            }
            if level == Level::L0 || !v.overlaps_level(level, Some(&from), Some(&to)) {
                target = level;
            }
        }
        (target, 0)
    }

    /// Waits for automatic plans, as a call that pauses them does.
    fn drain(&mut self) {
        let automatic = |r: &crate::Running| !r.plan.manual;
        while let Some(at) = self.tree.running.iter().position(automatic) {
            self.tree.finish(at);
        }
    }

    fn refit(&mut self, to: Option<u8>) {
        self.drain();
        let v = &self.tree.version;
        let Some(from) = v.deepest_level().filter(|l| *l > Level::L0) else {
            return;
        };
        let empty = |l: &u8| v.level(Level(*l)).is_empty();
        let up = (1..from.0).rev().take_while(empty).last();
        let to = Level(to.or(up).unwrap_or(from.0));
        match refit_level(v, &self.tree.busy, from, to) {
            Ok(moved) => self.reserve(moved),
            Err(e) => assert!(
                matches!(e.kind(), ErrorKind::NotSupported | ErrorKind::Busy),
                "{e}"
            ),
        }
    }

    fn promote(&mut self, to: u8) {
        self.drain();
        match promote_level0(&self.tree.version, &self.tree.busy, Level(to)) {
            Ok(moved) => self.reserve(moved),
            Err(e) => assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}"),
        }
    }

    fn reserve(&mut self, moved: Option<Move>) {
        if let Some(moved) = moved {
            let ticket = moved.reserve(&mut self.tree.busy);
            self.moving.push((moved, ticket));
        }
    }

    /// A move that was decided takes effect.
    fn install_move(&mut self) {
        if let Some((moved, ticket)) = self.moving.pop() {
            let v = self.tree.version.clone();
            let gone = moved.edit.deleted.iter();
            let leaving = gone.filter_map(|(_, n)| v.find_file(*n));
            let passed = overtaking(&v, leaving, moved.to);
            assert!(passed.is_none(), "{passed:?} in\n{}", draw(&v));
            self.tree.install(moved.edit);
            self.tree.busy.release(ticket);
        }
    }

    /// Inside the range an older version of a key may show, or none.
    fn delete_files(&mut self, lo: u8, hi: u8, include_end: bool) {
        let v = self.tree.version.clone();
        let tree = &mut self.tree;
        let mut edit = TreeEdit::default();
        for level in (1..v.num_levels()).map(|l| Level(l as u8)) {
            let files = files_within(&v, level, Some(&[lo]), Some(&[hi]), include_end);
            let free = files.iter().filter(|f| !tree.busy.contains(f.number));
            edit.deleted.extend(free.map(|f| (level, f.number)));
        }
        for (_, gone) in &edit.deleted {
            for e in &tree.contents[gone] {
                tree.truth.remove(&e.key);
            }
        }
        tree.install(edit);
        let left = tree
            .version
            .files()
            .flat_map(|(_, f)| &tree.contents[&f.number]);
        let mut newest: BTreeMap<u8, Entry> = BTreeMap::new();
        for e in left.chain(self.mem.values()) {
            let found = newest.entry(e.key).or_insert(*e);
            *found = if e.seq > found.seq { *e } else { *found };
        }
        for key in lo..=hi {
            let value = newest.get(&key).and_then(|e| e.value);
            tree.truth.insert(key, value);
        }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Write(writes) => self.write(writes),
            Act::Flush => self.flush(),
            Act::Start => {
                self.tree.start();
            }
            Act::Finish(which) => self.tree.finish(*which),
            Act::Compact(caller, call) => self.compact(*caller, call),
            Act::GoOn(caller) => self.go_on(*caller),
            Act::Files(places, output) => self.files(places, *output),
            Act::Ingest(writes) => self.ingest(writes),
            Act::Refit(to) => self.refit(*to),
            Act::Promote(to) => self.promote(*to),
            Act::Moved => self.install_move(),
            Act::DeleteFiles(lo, hi, include_end) => self.delete_files(*lo, *hi, *include_end),
            Act::Shape(base, ratio, file) => {
                let policy = &mut self.tree.policy;
                policy.max_bytes_for_level_base = base * ENTRY_BYTES;
                policy.max_bytes_for_level_multiplier = f64::from(*ratio);
                policy.target_file_size_base = file * ENTRY_BYTES;
            }
        }
        self.check();
    }

    /// Every key: the version that a reader meets first is the newest, and those after it are older
    /// and older.
    fn check(&self) {
        let (tree, v) = (&self.tree, &self.tree.version);
        let mut met: [Option<Entry>; KEYS as usize] = [None; KEYS as usize];
        let mut last = [u64::MAX; KEYS as usize];
        let tables = v.files().flat_map(|(_, f)| &tree.contents[&f.number]);
        for e in self.mem.values().chain(tables) {
            let at = usize::from(e.key);
            assert!(
                e.seq < last[at],
                "key {} at {} below {}\n{}",
                e.key,
                e.seq,
                last[at],
                draw(v)
            );
            last[at] = e.seq;
            met[at].get_or_insert(*e);
        }
        for (key, met) in (0..KEYS).zip(met) {
            let wanted = tree.truth.get(&key).copied().flatten();
            assert_eq!(
                met.and_then(|e| e.value),
                wanted,
                "key {key} in\n{}",
                draw(v)
            );
        }
    }
}

fn writes(keys: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(u8, bool)>> {
    prop::collection::vec((0..KEYS, prop::bool::weighted(0.8)), keys)
}

/// Some keys around one, with gaps between them.
fn near(keys: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(u8, bool)>> {
    let steps = prop::collection::vec((0u8..6, prop::bool::weighted(0.9)), keys);
    (0..KEYS, steps).prop_map(|(first, steps)| {
        let place = |at: &mut u8, (step, put): (u8, bool)| {
            *at = (*at + step) % KEYS;
            Some((*at, put))
        };
        steps.into_iter().scan(first, place).collect()
    })
}

fn range() -> impl Strategy<Value = ManualRange> {
    let edge = || prop::option::weighted(0.6, (0..KEYS).prop_map(|k| vec![k]));
    (edge(), edge()).prop_map(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => ManualRange {
            begin: Some(a.clone().min(b.clone())),
            end: Some(a.max(b)),
        },
        (begin, end) => ManualRange { begin, end },
    })
}

fn compactions(change_level: bool) -> impl Strategy<Value = Act> {
    let bottommost = prop_oneof![
        Just(BottommostLevelCompaction::Skip),
        Just(BottommostLevelCompaction::IfHaveCompactionFilter),
        Just(BottommostLevelCompaction::Force),
        Just(BottommostLevelCompaction::ForceOptimized),
    ];
    let moves = prop::bool::weighted(if change_level { 0.4 } else { 0.0 });
    (0..CALLERS, range(), bottommost, moves).prop_map(|(caller, range, bottommost, moves)| {
        let call = Compact {
            range,
            bottommost,
            change_level: moves,
        };
        Act::Compact(caller, call)
    })
}

fn shapes() -> impl Strategy<Value = Act> {
    (4u64..20, 2u32..4, 2u64..6).prop_map(|(base, ratio, file)| Act::Shape(base, ratio, file))
}

/// Steps of writers, and of the database by itself.
fn upkeep() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => writes(1..10).prop_map(Act::Write),
        3 => near(1..8).prop_map(Act::Write),
        5 => Just(Act::Flush),
        6 => Just(Act::Start),
        5 => (0usize..8).prop_map(Act::Finish),
    ]
}

fn files() -> impl Strategy<Value = Act> {
    (prop::collection::vec(any::<u8>(), 1..3), 0u8..5).prop_map(|(f, to)| Act::Files(f, to))
}

fn moves() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => prop::option::of(0u8..5).prop_map(Act::Refit),
        1 => (0u8..5).prop_map(Act::Promote),
        4 => Just(Act::Moved),
    ]
}

fn policies() -> impl Strategy<Value = Policy> {
    let style =
        prop_oneof![3 => Just(CompactionStyle::Level), 1 => Just(CompactionStyle::Universal)];
    let shape = (2u64..12, 2u32..4, 1u64..5);
    (
        style,
        prop::bool::weighted(0.8),
        1u32..4,
        shape,
        universal(),
    )
        .prop_map(
            |(style, dynamic, trigger, (base, ratio, file), universal)| Policy {
                max_bytes_for_level_base: base * ENTRY_BYTES,
                max_bytes_for_level_multiplier: f64::from(ratio),
                target_file_size_base: file * ENTRY_BYTES,
                compaction_options_universal: universal,
                ..policy(style, dynamic, CompactionPri::MinOverlappingRatio, trigger)
            },
        )
}

/// Runs `cases` lists of acts, and says how many.
fn run(name: &str, cases: u32, act: impl Strategy<Value = Act>) {
    let cases = std::env::var("PROPTEST_CASES").map_or(cases, |n| n.parse().expect("a number"));
    let (begun, calls, ran) = (Instant::now(), AtomicUsize::new(0), AtomicUsize::new(0));
    let refused = AtomicUsize::new(0);
    let acts = prop::collection::vec(act, 20..200);
    let body = |(acts, policy): (Vec<Act>, Policy)| {
        ran.fetch_add(1, Relaxed);
        let mut beside = Beside::new(policy);
        for act in &acts {
            beside.act(act);
        }
        calls.fetch_add(acts.len(), Relaxed);
        refused.fetch_add(beside.tree.refused, Relaxed);
        beside.drain();
        while !beside.moving.is_empty() {
            beside.install_move();
        }
        beside.check();
        beside.tree.settle();
        beside.check();
        Ok(())
    };
    let config = ProptestConfig {
        cases,
        max_shrink_time: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let done = TestRunner::new(config).run(&(acts, policies()), body);
    let (calls, ran, took) = (calls.into_inner(), ran.into_inner(), begun.elapsed());
    let refused = refused.into_inner();
    println!("{name}: {calls} calls in {ran} cases, {refused} plans refused, {took:.1?}");
    assert!(refused * 10_000 <= calls, "{refused} plans are refused");
    if let Err(TestError::Fail(why, (acts, policy))) = done {
        let acts: Vec<String> = acts.iter().map(|a| format!("{a:?}")).collect();
        panic!("{why}\nafter\n{}\nwith {policy:?}", acts.join("\n"));
    }
}

/// A step that was listed on one tree is carried out on another.
#[test]
fn manual_compactions_wait_while_the_tree_changes() {
    let act = prop_oneof![
        20 => upkeep(),
        2 => compactions(false),
        10 => (0..CALLERS).prop_map(Act::GoOn),
        1 => shapes(),
    ];
    run("manual", 4_000, act);
}

/// A level moves up past what another call writes between.
#[test]
fn levels_move_while_files_are_compacted() {
    let act = prop_oneof![
        20 => upkeep(),
        2 => compactions(true),
        4 => (0..CALLERS).prop_map(Act::GoOn),
        3 => files(),
        3 => moves(),
    ];
    run("moves", 4_000, act);
}

/// A file is ingested between a write and its flush, and merges of level 0 take it.
#[test]
fn files_are_ingested_between_writes_and_their_flushes() {
    let act = prop_oneof![
        20 => upkeep(),
        4 => near(1..5).prop_map(Act::Ingest),
        2 => files(),
    ];
    run("ingestion", 4_000, act);
}

#[test]
fn every_call_runs_beside_every_other() {
    let act = prop_oneof![
        22 => upkeep(),
        2 => compactions(true),
        8 => (0..CALLERS).prop_map(Act::GoOn),
        2 => files(),
        2 => moves(),
        3 => near(1..5).prop_map(Act::Ingest),
        1 => (0..KEYS, 0..KEYS, any::<bool>())
            .prop_map(|(a, b, end)| Act::DeleteFiles(a.min(b), a.max(b), end)),
        1 => shapes(),
    ];
    run("all", 8_000, act);
}
