//! Merging of sorted runs into one sorted cursor.
//!
//! A binary heap of (8-byte key prefix, child) pairs: most comparisons are of two integers in one
//! cache line. The smallest rival of the winner is remembered, so `next` costs one comparison while
//! the same child keeps winning. Children are ordered newest run first; should two children hold
//! the same internal key (which a sound tree never has), the lower child goes first.
//!
//! Invariants: going forward, every child outside the heap is exhausted and every child inside
//! stands on its first entry at or after the current one, or defers reading it and stands on a
//! bound before it; going backward, mirrored. The winner defers nothing: a run is read when its
//! bound is the smallest, so a seek into a gap between the tables of a level reads nothing there. A
//! child that fails makes the whole cursor invalid and its error the cursor's status.
//!
//! Callers: user iterators, flush and compaction. Not shared between threads.

use esker_format::entry_batch::{BatchLimits, EntryBatch};
use esker_format::key::user_key;
use esker_format::{Cursor, KeyOrder};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug)]
struct HeapSlot {
    prefix: u64,
    child: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// How the prefix of a user key is made.
#[derive(Clone, Copy, Debug)]
enum PrefixRule {
    Ascending,
    Descending,
    /// The order is not one of bytes: every prefix is equal.
    Absent,
}

impl PrefixRule {
    fn of(order: &KeyOrder) -> Self {
        match order {
            KeyOrder::Bytewise => PrefixRule::Ascending,
            KeyOrder::ReverseBytewise => PrefixRule::Descending,
            _ => PrefixRule::Absent,
        }
    }

    #[inline]
    fn prefix(self, internal: &[u8]) -> u64 {
        let user = user_key(internal);
        let bytes = || match user.first_chunk::<8>() {
            Some(head) => u64::from_be_bytes(*head),
            None => {
                user.iter().fold(0, |p, &b| p << 8 | u64::from(b)) << (64 - 8 * user.len()).min(63)
            }
        };
        match self {
            PrefixRule::Ascending if user.is_empty() => 0,
            PrefixRule::Descending if user.is_empty() => u64::MAX,
            PrefixRule::Ascending => bytes(),
            PrefixRule::Descending => !bytes(),
            PrefixRule::Absent => 0,
        }
    }
}

/// A cursor over the union of its children.
pub struct MergingCursor<C> {
    children: Vec<C>,
    order: KeyOrder,
    rule: PrefixRule,
    heap: Vec<HeapSlot>,
    /// Heap index of the best child but the winner; 0 when there is none or it is not known.
    rival: usize,
    direction: Direction,
    error: Option<Error>,
    turn_key: Vec<u8>,
    /// True if a seek puts every child on its first entry at or after the target.
    exact: bool,
    /// True if a seek begins the reads of all children before it waits for one.
    reads_at_once: bool,
}

impl<C: Cursor> MergingCursor<C> {
    /// Over `children`, newest run first.
    pub fn new(children: Vec<C>, order: KeyOrder) -> Self {
        let heap = Vec::with_capacity(children.len());
        let rule = PrefixRule::of(&order);
        MergingCursor {
            children,
            order,
            rule,
            heap,
            rival: 0,
            direction: Direction::Forward,
            error: None,
            turn_key: Vec::new(),
            exact: true,
            reads_at_once: false,
        }
    }

    /// Says that a child's seek may pass over entries which the caller does not want, as a filter
    /// of prefixes does: where a child stands then tells nothing about the next seek.
    pub fn with_filtered_seeks(mut self, filtered: bool) -> Self {
        self.exact = !filtered;
        self
    }

    /// Has seeks begin the reads of all children before they wait for one.
    pub fn with_reads_at_once(mut self, at_once: bool) -> Self {
        self.reads_at_once = at_once;
        self
    }

    /// The merged runs, newest first.
    pub fn children(&self) -> &[C] {
        &self.children
    }

    /// The position among the children of the one that gives the current entry.
    pub fn current_child(&self) -> usize {
        self.heap.first().map_or(0, |slot| slot.child as usize)
    }

    /// The merged runs, to be put to rest one by one; the cursor is not valid afterwards.
    pub fn reset(&mut self) -> &mut [C] {
        self.heap.clear();
        self.rival = 0;
        self.direction = Direction::Forward;
        self.error = None;
        &mut self.children
    }

    /// Takes the runs back.
    pub fn into_children(self) -> Vec<C> {
        self.children
    }

    #[inline]
    fn winner(&self) -> &C {
        &self.children[self.heap[0].child as usize]
    }

    /// Returns whether no other child stands on an entry of the winner's user key, as far as is
    /// known.
    #[inline(always)]
    fn rival_is_another_key(&self) -> bool {
        self.heap.len() == 1 || self.rival_differs()
    }

    /// Returns whether the rival stands on an entry of another user key. False where the order of
    /// keys is not one of bytes: keys that differ may be one there.
    fn rival_differs(&self) -> bool {
        if self.rival == 0 || matches!(self.rule, PrefixRule::Absent) {
            return false;
        }
        let rival = self.heap[self.rival];
        let (rival, winner) = (
            user_key(self.children[rival.child as usize].key()),
            user_key(self.winner().key()),
        );
        // Keys of one table often begin alike: the ends tell them apart sooner.
        match (rival.last_chunk::<8>(), winner.last_chunk::<8>()) {
            (Some(a), Some(b)) if a != b => true,
            _ => rival != winner,
        }
    }

    /// Returns whether `a` comes before `b` in the direction of travel.
    #[inline]
    fn before(&self, a: HeapSlot, b: HeapSlot) -> bool {
        let ordering = match a.prefix.cmp(&b.prefix) {
            Ordering::Equal => self.compare_keys(a, b),
            unequal => unequal,
        };
        match self.direction {
            Direction::Forward => ordering.is_lt(),
            Direction::Backward => ordering.is_gt(),
        }
    }

    #[inline]
    fn compare_keys(&self, a: HeapSlot, b: HeapSlot) -> Ordering {
        let (ka, kb) = (
            self.children[a.child as usize].key(),
            self.children[b.child as usize].key(),
        );
        self.order
            .compare_internal(ka, kb)
            .then(a.child.cmp(&b.child))
    }

    fn sift_down(&mut self, mut at: usize) {
        let len = self.heap.len();
        let moved = self.heap[at];
        loop {
            let mut best = 2 * at + 1;
            if best >= len {
                break;
            }
            if best + 1 < len && self.before(self.heap[best + 1], self.heap[best]) {
                best += 1;
            }
            if !self.before(self.heap[best], moved) {
                break;
            }
            self.heap[at] = self.heap[best];
            at = best;
        }
        self.heap[at] = moved;
    }

    /// Builds the heap from where the children stand.
    fn rebuild(&mut self, direction: Direction) {
        self.direction = direction;
        self.heap.clear();
        self.rival = 0;
        self.error = None;
        for (i, child) in self.children.iter().enumerate() {
            if child.valid() {
                self.heap.push(HeapSlot {
                    prefix: self.rule.prefix(child.key()),
                    child: i as u32,
                });
            } else if let Err(e) = child.status() {
                self.error = Some(e);
                self.heap.clear();
                return;
            }
        }
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
        self.read_winner();
        self.find_rival();
    }

    /// Makes the winner stand on an entry, where a bound won.
    #[inline]
    fn read_winner(&mut self) {
        while let Some(winner) = self.heap.first()
            && self.children[winner.child as usize].is_deferred()
            && !seeded(Bug::BoundTakenForEntry)
        {
            let child = &mut self.children[winner.child as usize];
            child.read_deferred();
            if child.valid() {
                self.heap[0].prefix = self.rule.prefix(child.key());
                self.sift_down(0);
            } else if !self.take_out_winner() {
                return;
            }
        }
    }

    /// Takes the winner, which is not valid, out of the heap; false when it failed, and so did the
    /// cursor.
    fn take_out_winner(&mut self) -> bool {
        if let Err(e) = self.children[self.heap[0].child as usize].status() {
            self.error = Some(e);
            self.heap.clear();
            self.rival = 0;
            return false;
        }
        self.heap.swap_remove(0);
        if !self.heap.is_empty() {
            self.sift_down(0);
        }
        true
    }

    #[inline]
    fn find_rival(&mut self) {
        self.rival = match self.heap.len() {
            0 | 1 => 0,
            2 => 1,
            _ if self.before(self.heap[2], self.heap[1]) => 2,
            _ => 1,
        };
    }

    /// Puts the heap in order after the winner's child moved. Small where nothing changes, once for
    /// each step: always inlined.
    #[inline(always)]
    fn winner_moved(&mut self) {
        let winner = &self.children[self.heap[0].child as usize];
        if !winner.valid() {
            return self.winner_ended();
        }
        if self.rival == 0 {
            return;
        }
        self.heap[0].prefix = self.rule.prefix(winner.key());
        if self.before(self.heap[self.rival], self.heap[0]) {
            self.rival_wins();
        }
    }

    fn rival_wins(&mut self) {
        self.sift_down(0);
        self.read_winner();
        self.find_rival();
    }

    #[cold]
    fn winner_ended(&mut self) {
        if self.take_out_winner() {
            self.read_winner();
            self.find_rival();
        }
    }

    /// Returns whether child `i` stands on the entry `at`, which it then has read.
    fn stands_on(&mut self, i: usize, at: &[u8]) -> bool {
        let is_at = |c: &C| c.valid() && self.order.compare_internal(c.key(), at).is_eq();
        if !is_at(&self.children[i]) {
            return false;
        }
        if self.children[i].is_deferred() {
            self.children[i].read_deferred();
        }
        is_at(&self.children[i])
    }

    /// Has the winner take entries that come before the rival's key.
    fn winner_batch(
        &mut self,
        direction: Direction,
        limits: &BatchLimits<'_>,
        take: fn(&mut C, &BatchLimits<'_>, &mut EntryBatch),
        batch: &mut EntryBatch,
    ) {
        let is_alone = self.heap.len() == 1;
        if self.direction != direction || !(is_alone || self.rival > 0) {
            return;
        }
        let mut bound = std::mem::take(&mut self.turn_key);
        let mut limits = *limits;
        if !is_alone {
            let rival = &self.children[self.heap[self.rival].child as usize];
            bound.clear();
            bound.extend_from_slice(user_key(rival.key()));
            limits.bounds[1] = Some(&bound);
        }
        let winner = &mut self.children[self.heap[0].child as usize];
        take(winner, &limits, batch);
        if !is_alone {
            self.heap[0].prefix = self.rule.prefix(winner.key());
        }
        self.turn_key = bound;
    }

    /// Turns round: every other child goes to its first entry past the current one in the new
    /// direction.
    fn turn(&mut self, direction: Direction) {
        let winner = self.heap[0].child as usize;
        let mut at = std::mem::take(&mut self.turn_key);
        at.clear();
        at.extend_from_slice(self.children[winner].key());
        for i in (0..self.children.len()).filter(|i| *i != winner) {
            match direction {
                Direction::Forward => {
                    self.children[i].seek(&at);
                    if i < winner && self.stands_on(i, &at) {
                        self.children[i].next();
                    }
                }
                Direction::Backward => {
                    self.children[i].seek_for_prev(&at);
                    if i > winner && self.stands_on(i, &at) {
                        self.children[i].prev();
                    }
                }
            }
        }
        self.turn_key = at;
        self.rebuild(direction);
    }
}

/// Begins the reads of the children that a seek moves, but for the oldest run's: it is sought
/// first, so the caller's own read goes on beside the others.
fn begin_seeks<C: Cursor>(children: &mut [C], target: &[u8], moves: impl Fn(&C) -> bool) {
    if let Some((_, newer)) = children.split_last_mut() {
        let moved = newer.iter_mut().filter(|child| moves(child));
        moved.for_each(|child| child.begin_seek(target));
    }
}

impl<C: Cursor> Cursor for MergingCursor<C> {
    #[inline]
    fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    fn seek_to_first(&mut self) {
        self.children.iter_mut().for_each(Cursor::seek_to_first);
        self.rebuild(Direction::Forward);
    }

    fn seek_to_last(&mut self) {
        self.children.iter_mut().for_each(Cursor::seek_to_last);
        self.rebuild(Direction::Backward);
    }

    fn seek(&mut self, target: &[u8]) {
        // Ahead of a forward position, a child that already stands at or after the target is where
        // a seek would put it.
        let ahead = self.exact
            && self.direction == Direction::Forward
            && self.valid()
            && self.order.compare_internal(self.key(), target).is_le();
        let order = &self.order;
        let moves = |child: &C| {
            !ahead || !child.valid() || order.compare_internal(child.key(), target).is_lt()
        };
        if self.reads_at_once {
            begin_seeks(&mut self.children, target, moves);
        }
        for child in self.children.iter_mut().rev() {
            if moves(child) {
                child.seek(target);
            }
        }
        self.rebuild(Direction::Forward);
    }

    fn seek_for_prev(&mut self, target: &[u8]) {
        if self.reads_at_once {
            begin_seeks(&mut self.children, target, |_| true);
        }
        let children = self.children.iter_mut().rev();
        children.for_each(|c| c.seek_for_prev(target));
        self.rebuild(Direction::Backward);
    }

    /// Once for each step: always inlined.
    #[inline(always)]
    fn next(&mut self) {
        debug_assert!(self.valid(), "next on a cursor that is not valid");
        if self.direction == Direction::Backward {
            self.turn(Direction::Forward);
            if self.heap.is_empty() {
                return;
            }
        }
        self.children[self.heap[0].child as usize].next();
        self.winner_moved();
    }

    #[inline]
    fn prev(&mut self) {
        debug_assert!(self.valid(), "prev on a cursor that is not valid");
        if self.direction == Direction::Forward {
            self.turn(Direction::Backward);
            if self.heap.is_empty() {
                return;
            }
        }
        self.children[self.heap[0].child as usize].prev();
        self.winner_moved();
    }

    #[inline(always)]
    fn key(&self) -> &[u8] {
        self.children[self.heap[0].child as usize].key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.children[self.heap[0].child as usize].value()
    }

    #[inline(always)]
    fn entry(&self) -> (&[u8], &[u8]) {
        self.children[self.heap[0].child as usize].entry()
    }

    fn status(&self) -> Result<()> {
        match &self.error {
            Some(_) if seeded(Bug::IteratorStatusUnread) => Ok(()),
            Some(e) => Err(e.clone()),
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn next_is_another_key(&self) -> bool {
        self.direction == Direction::Forward
            && self.winner().next_is_another_key()
            && self.rival_is_another_key()
    }

    #[inline]
    fn prev_is_another_key(&self) -> bool {
        self.direction == Direction::Backward
            && self.winner().prev_is_another_key()
            && self.rival_is_another_key()
    }

    fn next_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        self.winner_batch(Direction::Forward, limits, C::next_batch, batch);
    }

    fn prev_batch(&mut self, limits: &BatchLimits<'_>, batch: &mut EntryBatch) {
        self.winner_batch(Direction::Backward, limits, C::prev_batch, batch);
    }

    #[inline]
    fn block_bytes(&self) -> &[u8] {
        self.winner().block_bytes()
    }

    fn current_run(&self) -> usize {
        self.heap.first().map_or(0, |s| s.child as usize)
    }

    fn skip_runs(&mut self, first_run: usize, target: &[u8]) -> bool {
        if self.direction != Direction::Forward || first_run >= self.children.len() {
            return false;
        }
        let mut moved = false;
        for child in &mut self.children[first_run..] {
            if child.valid() && self.order.compare_internal(child.key(), target).is_lt() {
                child.seek(target);
                moved = true;
            }
        }
        if moved {
            self.rebuild(Direction::Forward);
        }
        moved
    }
}
