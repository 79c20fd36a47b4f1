//! Ranges and prefixes from both ends, beside those of the map.

use super::orders::{Key, Map, ORDERS};
use super::{Run, show_entry};
use esker::{Entries, Snapshot};
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

type Pairs = VecDeque<(Vec<u8>, Vec<u8>)>;

impl Run {
    fn bound(&mut self) -> Bound<Vec<u8>> {
        match self.rng.below(4) {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.probe_key()),
            _ => Bound::Excluded(self.probe_key()),
        }
    }

    /// A range or a prefix of a family, as it is now or at a snapshot, from both ends in turn.
    pub(crate) fn entries(&mut self) {
        let f = self.family();
        let at = self.rng.below(self.snapshots.len() as u64 * 2 + 1) as usize;
        let (snapshot, map) = match self.snapshots.get(at) {
            Some((s, m)) => (Some(s.clone()), Arc::clone(&m[f])),
            None => (None, Arc::clone(&self.state[f])),
        };
        let (entries, expected) = if self.rng.one_in(4) {
            self.prefixed(f, snapshot.as_ref(), &map)
        } else {
            self.ranged(f, snapshot.as_ref(), &map)
        };
        self.walk(entries, expected);
    }

    fn prefixed(&mut self, f: usize, snapshot: Option<&Snapshot>, map: &Map) -> (Entries, Pairs) {
        let mut prefix = self.probe_key();
        prefix.truncate(self.rng.below(7) as usize);
        let family = &self.handles[f];
        let entries = match snapshot {
            Some(s) => s.prefix_cf(family, &prefix),
            None => self.db().prefix_cf(family, &prefix),
        };
        let expected = map.iter().filter(|(k, _)| k.1.starts_with(&prefix));
        (entries, expected.map(owned).collect())
    }

    fn ranged(&mut self, f: usize, snapshot: Option<&Snapshot>, map: &Map) -> (Entries, Pairs) {
        let range = (self.bound(), self.bound());
        let family = &self.handles[f];
        let entries = match snapshot {
            Some(s) => s.range_cf(family, range.clone()),
            None => self.db().range_cf(family, range.clone()),
        };
        let key = |k: Vec<u8>| Key(ORDERS[f], k);
        let (low, high) = (range.0.map(key), range.1.map(key));
        // Ranges of the wrong way round are empty here and panic there.
        let is_inside = |k: &Key| {
            (match &low {
                Bound::Unbounded => true,
                Bound::Included(l) => k >= l,
                Bound::Excluded(l) => k > l,
            }) && (match &high {
                Bound::Unbounded => true,
                Bound::Included(h) => k <= h,
                Bound::Excluded(h) => k < h,
            })
        };
        let expected = map.iter().filter(|(k, _)| is_inside(k));
        (entries, expected.map(owned).collect())
    }

    /// Walks from both ends, and mostly not to the end.
    fn walk(&mut self, mut entries: Entries, mut expected: Pairs) {
        let mut steps = self.rng.below(400);
        let backward = self.rng.below(5);
        while steps > 0 {
            steps -= 1;
            let (seen, wanted, end) = if self.rng.below(4) < backward {
                (entries.next_back(), expected.pop_back(), "back")
            } else {
                (entries.next(), expected.pop_front(), "front")
            };
            let seen = seen.map(|e| e.unwrap_or_else(|e| panic!("entries: {e}")));
            let show = |e: &Option<(Vec<u8>, Vec<u8>)>| {
                show_entry(e.as_ref().map(|(k, v)| (&k[..], &v[..])))
            };
            assert!(
                seen == wanted,
                "an entry from the {end}: saw {}, expected {}",
                show(&seen),
                show(&wanted)
            );
            if wanted.is_none() {
                steps = steps.min(3);
            }
        }
    }
}

fn owned((k, v): (&Key, &Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    (k.1.clone(), v.clone())
}
