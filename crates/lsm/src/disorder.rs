//! The order of the versions of each key over a whole tree: what lies in an upper run has to be
//! newer than what lies below it.
//!
//! Reads depend on it: a search ends at the first entry that it finds, and compactions drop what
//! they take for old. Ranges of keys and sequence numbers of files do not show it, since the keys
//! of two files may interleave: [`find`] reads every entry. Pure; the caller opens the tables. One
//! thread.

use crate::file::FileMeta;
use crate::version::Version;
use esker_format::{Cursor, FileNo, KeyOrder, Level, ParsedKey, RawTombstone, Seq};
use esker_status::Result;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A table as it is read here.
pub struct OpenTable<C> {
    /// Its entries.
    pub cursor: C,
    /// Its range deletions.
    pub tombstones: Vec<RawTombstone>,
}

/// Two tables with keys whose older version lies above a newer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disorder {
    /// The table with the older versions, and its level.
    pub above: (Level, FileNo),
    /// The table with the newer versions, and its level.
    pub below: (Level, FileNo),
    /// The first of these user keys.
    pub first: Vec<u8>,
    /// The last of them.
    pub last: Vec<u8>,
    /// How many there are.
    pub keys: u64,
}

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disorder {
            above,
            below,
            first,
            last,
            keys,
        } = self;
        let versions = if *keys == 1 { "key has" } else { "keys have" };
        write!(
            f,
            "{keys} {versions} an older version in table {} of level {} above a newer one in table \
             {} of level {}, between \"{}\" and \"{}\"",
            above.1,
            above.0,
            below.1,
            below.0,
            first.escape_ascii(),
            last.escape_ascii(),
        )
    }
}

/// Reads all tables of a tree, in parallel by run, and returns every pair of them that lies in the
/// wrong order.
pub fn find<C: Cursor>(
    version: &Version,
    mut open: impl FnMut(Level, &FileMeta) -> Result<OpenTable<C>>,
) -> Result<Vec<Disorder>> {
    let mut search = Search::new(version.order());
    let mut runs = Vec::new();
    let levels = (0..).map(Level).zip(version.levels());
    for (level, files) in levels {
        let parts: Vec<&[Arc<FileMeta>]> = match level {
            Level::L0 => files.files().chunks(1).collect(),
            _ => vec![files.files()],
        };
        let parts = parts.into_iter().filter(|files| !files.is_empty());
        runs.extend(parts.map(|files| (level, files)));
    }
    let mut walks = Vec::with_capacity(runs.len());
    for (rank, (level, files)) in runs.into_iter().enumerate() {
        let mut walk = Walk {
            rank,
            level,
            files: files.iter(),
            open: None,
        };
        walk.settle(&mut search, &mut open)?;
        walks.push(walk);
    }
    while let Some(at) = least(version.order(), &walks) {
        let walk = &mut walks[at];
        if let Some((number, cursor)) = &mut walk.open {
            search.entry((walk.rank, walk.level, *number), cursor.key())?;
            cursor.next();
        }
        walk.settle(&mut search, &mut open)?;
    }
    Ok(search.found.into_values().collect())
}

/// The walk that stands on the smallest internal key.
fn least<C: Cursor>(order: &KeyOrder, walks: &[Walk<'_, C>]) -> Option<usize> {
    let standing = walks
        .iter()
        .enumerate()
        .filter_map(|(at, w)| Some((at, w.open.as_ref()?.1.key())));
    let smaller = |a: &(usize, &[u8]), b: &(usize, &[u8])| order.compare_internal(a.1, b.1);
    standing.min_by(smaller).map(|(at, _)| at)
}

/// A sorted run, read from its first table to its last.
struct Walk<'v, C> {
    rank: usize,
    level: Level,
    files: std::slice::Iter<'v, Arc<FileMeta>>,
    open: Option<(FileNo, C)>,
}

impl<C: Cursor> Walk<'_, C> {
    /// Goes on to the next table while there is no entry.
    fn settle(
        &mut self,
        search: &mut Search<'_>,
        open: &mut impl FnMut(Level, &FileMeta) -> Result<OpenTable<C>>,
    ) -> Result<()> {
        loop {
            if let Some((_, cursor)) = &self.open {
                if cursor.valid() {
                    return Ok(());
                }
                cursor.status()?;
            }
            let Some(file) = self.files.next() else {
                self.open = None;
                return Ok(());
            };
            let mut opened = open(self.level, file)?;
            search.add_tombstones(
                (self.rank, self.level, file.number),
                file,
                opened.tombstones,
            );
            opened.cursor.seek_to_first();
            self.open = Some((file.number, opened.cursor));
        }
    }
}

/// A place in the tree: the rank of the run, from the newest, its level and the table. The largest
/// lies lowest.
type TreePlace = (usize, Level, FileNo);

struct Search<'v> {
    order: &'v KeyOrder,
    user: Vec<u8>,
    /// The lowest place of the versions of this key that are newer than [`Search::seq`].
    newer: Option<TreePlace>,
    /// The lowest place of those with this sequence number.
    same: Option<TreePlace>,
    seq: Seq,
    /// Range deletions that begin behind this key, the first of them last.
    coming: Vec<(TreePlace, RawTombstone)>,
    /// Those that this key lies in.
    around: Vec<(TreePlace, RawTombstone)>,
    found: BTreeMap<(FileNo, FileNo), Disorder>,
}

impl<'v> Search<'v> {
    fn new(order: &'v KeyOrder) -> Self {
        Search {
            order,
            user: Vec::new(),
            newer: None,
            same: None,
            seq: Seq::MAX,
            coming: Vec::new(),
            around: Vec::new(),
            found: BTreeMap::new(),
        }
    }

    /// Takes the range deletions of a table in, as far as they lie within it: what a file says
    /// beyond its bounds does not count.
    fn add_tombstones(&mut self, place: TreePlace, file: &FileMeta, all: Vec<RawTombstone>) {
        if self.order.timestamp_size() > 0 {
            // They delete versions by their time.
            return;
        }
        let (smallest, largest) = (file.smallest.user(), file.largest.user());
        for mut t in all {
            if self.order.compare(&t.start, smallest).is_lt() {
                t.start = smallest.to_vec();
            }
            if self.order.compare(&t.end, largest).is_gt() {
                t.end = largest.to_vec();
            }
            if self.order.compare(&t.start, &t.end).is_lt() {
                self.coming.push((place, t));
            }
        }
        let order = self.order;
        self.coming
            .sort_by(|(_, a), (_, b)| order.compare(&b.start, &a.start));
    }

    fn entry(&mut self, place: TreePlace, internal: &[u8]) -> Result<()> {
        let key = ParsedKey::parse(internal)?;
        if self.order.compare(&self.user, key.user) != Ordering::Equal || self.seq == Seq::MAX {
            self.user.clear();
            self.user.extend_from_slice(key.user);
            (self.newer, self.same, self.seq) = (None, None, key.seq);
            let (order, user) = (self.order, &self.user);
            let begun = |t: &RawTombstone| order.compare(&t.start, user).is_le();
            while self.coming.last().is_some_and(|(_, t)| begun(t)) {
                self.around.extend(self.coming.pop());
            }
            self.around
                .retain(|(_, t)| order.compare(&t.end, user).is_gt());
        } else if key.seq < self.seq {
            self.newer = self.newer.max(self.same);
            (self.same, self.seq) = (None, key.seq);
        }
        if let Some(newer) = self.newer.filter(|newer| newer.0 > place.0) {
            self.note(place, newer);
        }
        let hides = |(at, t): &&(TreePlace, RawTombstone)| at.0 > place.0 && t.seq > key.seq;
        if let Some((at, _)) = self.around.iter().find(hides) {
            self.note(place, *at);
        }
        self.same = self.same.max(Some(place));
        Ok(())
    }

    fn note(&mut self, above: TreePlace, below: TreePlace) {
        let user = &self.user;
        let found = self.found.entry((above.2, below.2));
        let found = found.or_insert_with(|| Disorder {
            above: (above.1, above.2),
            below: (below.1, below.2),
            first: user.clone(),
            last: Vec::new(),
            keys: 0,
        });
        if found.keys == 0 || found.last != *user {
            found.keys += 1;
            found.last.clone_from(user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::{TreeEdit, apply};
    use esker_format::{InternalKey, ValueType};

    /// Entries in memory.
    struct Entries(Vec<Vec<u8>>, usize);

    impl Cursor for Entries {
        fn valid(&self) -> bool {
            self.1 < self.0.len()
        }
        fn seek_to_first(&mut self) {
            self.1 = 0;
        }
        fn seek_to_last(&mut self) {
            panic!("the search walks forward")
        }
        fn seek(&mut self, _: &[u8]) {
            panic!("the search walks forward")
        }
        fn seek_for_prev(&mut self, _: &[u8]) {
            panic!("the search walks forward")
        }
        fn next(&mut self) {
            self.1 += 1;
        }
        fn prev(&mut self) {
            panic!("the search walks forward")
        }
        fn key(&self) -> &[u8] {
            &self.0[self.1]
        }
        fn value(&self) -> &[u8] {
            b""
        }
        fn status(&self) -> Result<()> {
            Ok(())
        }
    }

    type Table<'a> = (u64, u8, &'a [(&'a str, u64)], &'a [(&'a str, &'a str, u64)]);

    fn found(tables: &[Table<'_>]) -> Vec<String> {
        let key = |user: &str, seq| InternalKey::new(user.as_bytes(), Seq(seq), ValueType::Value);
        let version = Version::empty(KeyOrder::Bytewise, 7);
        let added = tables.iter().enumerate().map(|(n, table)| {
            let (number, level, entries, deleted) = *table;
            let starts = deleted.iter().map(|(from, _, seq)| key(from, *seq));
            let ends = deleted.iter().map(|(_, to, _)| {
                InternalKey::new(to.as_bytes(), Seq::MAX, ValueType::RangeDeletion)
            });
            let keys = || entries.iter().map(|(user, seq)| key(user, *seq));
            let compare = |a: &InternalKey, b: &InternalKey| {
                KeyOrder::Bytewise.compare_internal(a.as_bytes(), b.as_bytes())
            };
            let file = FileMeta {
                number: FileNo(number),
                smallest: keys()
                    .chain(starts)
                    .min_by(compare)
                    .expect("no empty table"),
                largest: keys().chain(ends).max_by(compare).expect("no empty table"),
                epoch: 100 - n as u64,
                size: 1,
                ..FileMeta::default()
            };
            (Level(level), Arc::new(file))
        });
        let edit = TreeEdit {
            added: added.collect(),
            ..TreeEdit::default()
        };
        let version = apply(&version, &[edit]).expect("a tree");
        let open = |_, file: &FileMeta| {
            let table = tables.iter().find(|t| t.0 == file.number.0);
            let (_, _, entries, deleted) = table.expect("it is there");
            let entries = entries.iter();
            let keys = entries.map(|(user, seq)| key(user, *seq).as_bytes().to_vec());
            Ok(OpenTable {
                cursor: Entries(keys.collect(), 0),
                tombstones: deleted
                    .iter()
                    .map(|(start, end, seq)| RawTombstone {
                        start: start.as_bytes().to_vec(),
                        end: end.as_bytes().to_vec(),
                        seq: Seq(*seq),
                    })
                    .collect(),
            })
        };
        let found = find(&version, open).expect("all can be read");
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_tree_in_order_gives_nothing() {
        let sound: &[Table<'_>] = &[
            (9, 0, &[("a", 40), ("c", 41)], &[]),
            // Flushed after 8 was merged with an ingested table: by epoch it lies above.
            (8, 0, &[("b", 5), ("c", 39)], &[("a", "b", 38)]),
            (7, 1, &[("a", 9), ("b", 3)], &[]),
            (6, 1, &[("c", 30), ("c", 20), ("d", 1)], &[]),
            (5, 6, &[("a", 0), ("b", 0), ("c", 0)], &[]),
        ];
        assert_eq!(found(sound), [""; 0]);
    }

    #[test]
    fn older_versions_above_newer_ones_are_found_table_by_table() {
        let wrong: &[Table<'_>] = &[
            (9, 4, &[("a", 10), ("b", 50), ("c", 11)], &[]),
            (5, 5, &[("a", 30), ("b", 31), ("c", 32)], &[]),
            (4, 6, &[("c", 33)], &[]),
        ];
        let text = |keys: &str, below: &str, between: &str| {
            format!(
                "{keys} an older version in table 9 of level 4 above a newer one in table {below}, \
                 between {between}"
            )
        };
        assert_eq!(
            found(wrong),
            [
                "1 key has an older version in table 5 of level 5 above a newer one in table 4 of \
                 level 6, between \"c\" and \"c\""
                    .to_owned(),
                text("1 key has", "4 of level 6", "\"c\" and \"c\""),
                text("1 key has", "5 of level 5", "\"a\" and \"a\""),
            ]
        );
    }

    #[test]
    fn a_range_deletion_below_what_it_deletes_is_found() {
        let below: &[Table<'_>] = &[
            (9, 1, &[("b", 10), ("d", 10)], &[]),
            (5, 2, &[("x", 1)], &[("a", "d", 20)]),
        ];
        assert_eq!(found(below).len(), 1);
        let older: &[Table<'_>] = &[
            (9, 1, &[("b", 30)], &[]),
            (5, 2, &[("x", 1)], &[("a", "d", 20)]),
        ];
        assert_eq!(found(older), [""; 0]);
    }
}
