//! Iterators of the model that stay open, and what they should see.

use crate::common::Rng;
use crate::orders::{FAMILIES, Key, Map, ORDERS, State};
use esker::DbIterator;
use std::ops::Bound;
use std::sync::Arc;

/// An iterator that stays open, and what it should see.
pub(crate) struct OpenIterator {
    pub(crate) it: DbIterator,
    pub(crate) family: usize,
    pub(crate) map: Arc<Map>,
    pub(crate) at: Option<Key>,
    pub(crate) lower: Option<Key>,
    pub(crate) upper: Option<Key>,
    pub(crate) tailing: bool,
    /// Values of blob files are left unread; of some entries they are asked for.
    pub(crate) leaves_values: bool,
    pub(crate) checks: u32,
}

impl OpenIterator {
    pub(crate) fn above(&self, from: Bound<&Key>) -> Option<Key> {
        let from = match (&self.lower, from) {
            (Some(l), Bound::Unbounded) => Bound::Included(l),
            (Some(l), Bound::Included(k)) if l > k => Bound::Included(l),
            _ => from,
        };
        let found = self.map.range::<Key, _>((from, Bound::Unbounded)).next()?;
        (self.upper.as_ref().is_none_or(|u| found.0 < u)).then(|| found.0.clone())
    }

    fn below(&self, to: Bound<&Key>) -> Option<Key> {
        let to = match (&self.upper, to) {
            (Some(u), Bound::Unbounded) => Bound::Excluded(u),
            (Some(u), Bound::Included(k) | Bound::Excluded(k)) if u <= k => Bound::Excluded(u),
            _ => to,
        };
        let found = self
            .map
            .range::<Key, _>((Bound::Unbounded, to))
            .next_back()?;
        (self.lower.as_ref().is_none_or(|l| found.0 >= l)).then(|| found.0.clone())
    }

    pub(crate) fn check(&mut self, what: &str) {
        self.checks += 1;
        let asks = !self.checks.is_multiple_of(3);
        if asks && self.leaves_values {
            self.it.prepare_value();
        }
        self.it.status().unwrap_or_else(|e| panic!("{what}: {e}"));
        let seen = self.it.entry();
        let wanted = self.at.as_ref().map(|k| (&k.1[..], &self.map[k][..]));
        assert!(
            self.are_equal(seen, wanted, asks),
            "{what} in {}: saw {}, expected {} (bounds {:?}..{:?})",
            FAMILIES[self.family],
            show_entry(seen),
            show_entry(wanted),
            self.lower,
            self.upper
        );
    }

    /// Values that were not asked for may be missing.
    fn are_equal(
        &self,
        seen: Option<(&[u8], &[u8])>,
        wanted: Option<(&[u8], &[u8])>,
        asked: bool,
    ) -> bool {
        let keys_alone = |(key, _)| (key, &[][..]);
        seen == wanted || (self.leaves_values && !asked && seen == wanted.map(keys_alone))
    }

    /// Several entries at once, checked one by one.
    fn batch(&mut self, run: &mut Rng, forward: bool) {
        for _ in 0..=run.below(3) {
            if self.at.is_none() {
                return;
            }
            let most = 1 + run.below(20) as usize;
            let mut seen = Vec::new();
            let show = |k: &[u8], v: &[u8]| seen.push((k.to_vec(), v.to_vec()));
            let count = if forward {
                self.it.next_batch(most, show)
            } else {
                self.it.prev_batch(most, show)
            };
            assert!(count == seen.len() && count <= most);
            for i in 0..count.max(1) {
                let Some(at) = self.at.take() else { break };
                self.at = if forward {
                    self.above(Bound::Excluded(&at))
                } else {
                    self.below(Bound::Excluded(&at))
                };
                let wanted = self.at.as_ref().map(|k| (&k.1[..], &self.map[k][..]));
                let seen = seen.get(i).map(|(k, v)| (&k[..], &v[..]));
                assert!(
                    self.are_equal(seen, wanted, false),
                    "entry {i} of a batch of {most} (forward: {forward}): saw {}, expected {}",
                    show_entry(seen),
                    show_entry(wanted)
                );
            }
            self.check("after a batch");
        }
    }

    /// One random move, checked.
    pub(crate) fn step(&mut self, run: &mut Rng, target: Vec<u8>, newest: &State) {
        let key = Key(ORDERS[self.family], target.clone());
        let choice = run.below(12);
        if self.tailing {
            self.map = Arc::clone(&newest[self.family]);
        }
        match choice {
            0 => {
                self.it.seek_to_first();
                self.at = self.above(Bound::Unbounded);
                self.check("seek_to_first");
            }
            1 => {
                self.it.seek_to_last();
                self.at = self.below(Bound::Unbounded);
                self.check("seek_to_last");
            }
            2 => {
                self.it.seek(&target);
                self.at = self.above(Bound::Included(&key));
                self.check(&format!("seek {}", target.escape_ascii()));
            }
            3 => {
                self.it.seek_for_prev(&target);
                self.at = self.below(Bound::Included(&key));
                self.check(&format!("seek_for_prev {}", target.escape_ascii()));
            }
            4 => self.batch(run, true),
            5 => self.batch(run, false),
            n => {
                for _ in 0..=run.below(6) {
                    let Some(at) = self.at.clone() else { return };
                    if n % 2 == 0 {
                        self.it.next();
                        self.at = self.above(Bound::Excluded(&at));
                        self.check(&format!("next after {}", at.1.escape_ascii()));
                    } else {
                        self.it.prev();
                        self.at = self.below(Bound::Excluded(&at));
                        self.check(&format!("prev before {}", at.1.escape_ascii()));
                    }
                }
            }
        }
    }
}

pub(crate) fn show_entry(entry: Option<(&[u8], &[u8])>) -> String {
    entry.map_or_else(
        || "nothing".to_owned(),
        |(k, v)| {
            let short = &v[..v.len().min(60)];
            format!(
                "{} = {} ({} bytes)",
                k.escape_ascii(),
                short.escape_ascii(),
                v.len()
            )
        },
    )
}
