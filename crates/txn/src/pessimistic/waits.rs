//! The graph of waits, in which a transaction looks for a cycle before it waits.
//!
//! Each waiting transaction is a node with edges to those it waits for. The search is
//! breadth-first, bounded by the transaction's depth; past the bound a ring is assumed. The latest
//! rings found are kept for those who ask. One lock.

use crate::ranks;
use esker_sync::Mutex;
use std::collections::{HashMap, VecDeque};

/// One transaction of a ring of waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockInfo {
    /// The transaction.
    pub transaction: u64,
    /// The family of the key it waits for.
    pub family: u32,
    /// True if it wants the lock for itself alone.
    pub exclusive: bool,
    /// The key it waits for.
    pub waiting_key: Vec<u8>,
}

/// A ring of waits that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockPath {
    /// The transactions of the ring, in the order in which they wait for each other; empty with
    /// `limit_exceeded`.
    pub path: Vec<DeadlockInfo>,
    /// No ring was found, but the search went as deep as it was allowed to.
    pub limit_exceeded: bool,
    /// When, in seconds since the Unix epoch.
    pub deadlock_time: u64,
}

#[derive(Debug)]
struct Waiting {
    for_whom: Vec<u64>,
    info: DeadlockInfo,
}

#[derive(Debug)]
struct Graph {
    waiting: HashMap<u64, Waiting>,
    found: VecDeque<DeadlockPath>,
    found_max: usize,
}

/// The graph of waits.
#[derive(Debug)]
pub(crate) struct Waits(Mutex<Graph>);

impl Waits {
    pub(crate) fn new(found_max: usize) -> Self {
        Waits(Mutex::new(
            ranks::WAITS,
            Graph {
                waiting: HashMap::new(),
                found: VecDeque::new(),
                found_max,
            },
        ))
    }

    /// Takes note that `info.transaction` waits, unless that closes a ring: false then.
    pub(crate) fn begin(
        &self,
        info: DeadlockInfo,
        for_whom: &[u64],
        depth: usize,
        unix_s: u64,
    ) -> bool {
        let mut graph = self.0.lock();
        let me = info.transaction;
        graph.waiting.insert(
            me,
            Waiting {
                for_whom: for_whom.to_vec(),
                info,
            },
        );
        let Some(path) = graph.ring(me, depth) else {
            return true;
        };
        let limit_exceeded = path.is_empty();
        graph.keep(DeadlockPath {
            path,
            limit_exceeded,
            deadlock_time: unix_s,
        });
        graph.waiting.remove(&me);
        false
    }

    /// From now on these wait for `holders`. Those that have come to hold wait for nothing yet, so
    /// that this closes no ring.
    pub(crate) fn point(&self, waiting: impl Iterator<Item = u64>, holders: &[u64]) {
        let mut waiting = waiting.peekable();
        if waiting.peek().is_none() {
            return;
        }
        let mut graph = self.0.lock();
        for id in waiting {
            if let Some(w) = graph.waiting.get_mut(&id) {
                w.for_whom.clear();
                w.for_whom.extend(holders.iter().filter(|h| **h != id));
            }
        }
    }

    /// `transaction` waits no longer.
    pub(crate) fn end(&self, transaction: u64) {
        self.0.lock().waiting.remove(&transaction);
    }

    /// The rings that were found last, the latest first.
    pub(crate) fn found(&self) -> Vec<DeadlockPath> {
        self.0.lock().found.iter().cloned().collect()
    }

    /// Keeps this many rings from now on.
    pub(crate) fn set_found_max(&self, max: usize) {
        let mut graph = self.0.lock();
        graph.found_max = max;
        graph.found.truncate(max);
    }
}

impl Graph {
    /// The ring that leads from `me` back to it; an empty one when the search was too deep to tell.
    fn ring(&self, me: u64, depth: usize) -> Option<Vec<DeadlockInfo>> {
        let is_waited_for = |w: &Waiting| w.for_whom.contains(&me);
        if !self.waiting.values().any(is_waited_for) {
            return None;
        }
        // Transactions in the order they are reached, each with the place of the one that waits for
        // it.
        let mut queue: Vec<(u64, Option<usize>)> = Vec::new();
        let mut next = Some((me, None));
        for head in 0..depth {
            if let Some((of, parent)) = next
                && let Some(w) = self.waiting.get(&of)
            {
                let room = depth - queue.len();
                queue.extend(w.for_whom.iter().take(room).map(|id| (*id, parent)));
            }
            let &(reached, _) = queue.get(head)?;
            if reached == me {
                return Some(self.path_to(&queue, head));
            }
            next = Some((reached, Some(head)));
        }
        Some(Vec::new())
    }

    fn path_to(&self, queue: &[(u64, Option<usize>)], end: usize) -> Vec<DeadlockInfo> {
        let mut path = Vec::new();
        let mut at = Some(end);
        while let Some(i) = at {
            path.extend(self.waiting.get(&queue[i].0).map(|w| w.info.clone()));
            at = queue[i].1;
        }
        path.reverse();
        path
    }

    fn keep(&mut self, path: DeadlockPath) {
        self.found.push_front(path);
        self.found.truncate(self.found_max);
    }
}
