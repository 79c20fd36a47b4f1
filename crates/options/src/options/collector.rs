//! Collectors of table properties: objects that see each entry of a table while it is written, and
//! may store properties in it or ask for its compaction.
//!
//! One collector belongs to one table and is used by one thread at a time; factories are shared by
//! all jobs.

use esker_format::{Level, Seq, ValueType};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// The kind of entry that a collector sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// A value, wherever it is stored.
    Put,
    /// A deletion, with or without a timestamp.
    Delete,
    /// A deletion of a key that was written once.
    SingleDelete,
    /// A merge operand.
    Merge,
    /// A range deletion: the value is its end.
    RangeDeletion,
    /// A value in a blob file.
    BlobIndex,
    /// A wide-column entity.
    WideColumnEntity,
    /// Anything else.
    Other,
}

impl EntryKind {
    /// Returns whether it deletes one key.
    pub fn is_point_deletion(self) -> bool {
        matches!(self, EntryKind::Delete | EntryKind::SingleDelete)
    }
}

impl From<ValueType> for EntryKind {
    fn from(kind: ValueType) -> Self {
        match kind {
            ValueType::Value => EntryKind::Put,
            ValueType::Deletion | ValueType::DeletionWithTimestamp => EntryKind::Delete,
            ValueType::SingleDeletion => EntryKind::SingleDelete,
            ValueType::Merge => EntryKind::Merge,
            ValueType::RangeDeletion => EntryKind::RangeDeletion,
            ValueType::BlobIndex => EntryKind::BlobIndex,
            ValueType::WideColumnEntity => EntryKind::WideColumnEntity,
            _ => EntryKind::Other,
        }
    }
}

/// Which table a collector is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectorContext {
    /// The family's number.
    pub family: u32,
    /// The level that the table goes to.
    pub level: Level,
}

/// Sees the entries of one table.
pub trait TablePropertiesCollector: Send {
    /// An entry, in the table's order; range deletions come last. `file_size` is what was written
    /// so far.
    fn add(&mut self, key: &[u8], value: &[u8], kind: EntryKind, seq: Seq, file_size: u64);
    /// The table is complete: gives back what is to be stored in it, by name.
    fn finish(&mut self) -> Vec<(String, Vec<u8>)>;
    /// Returns whether the table should be compacted soon. Asked after
    /// [`TablePropertiesCollector::finish`].
    fn needs_compaction(&self) -> bool {
        false
    }
}

/// Makes a collector for each table that flushes and compactions write.
///
/// ```
/// use esker::options::CompactOnDeletion;
/// use std::sync::Arc;
///
/// let mut options = esker::Options::new();
/// // Tables with 50 deletions among 1000 neighbours are compacted soon.
/// let factory = CompactOnDeletion::new(1000, 50);
/// options.family.table_properties_collector_factories.push(Arc::new(factory));
/// ```
pub trait TablePropertiesCollectorFactory: Send + Sync {
    /// The factory's name; tables store it.
    fn name(&self) -> &str;
    /// The factory as the LOG shows it.
    fn description(&self) -> String {
        self.name().to_owned()
    }
    /// A collector for one table; `None` collects nothing.
    fn create(&self, context: &CollectorContext) -> Option<Box<dyn TablePropertiesCollector>>;
}

impl fmt::Debug for dyn TablePropertiesCollectorFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The collectors of one table.
#[derive(Default)]
pub struct Collectors {
    each: Vec<Box<dyn TablePropertiesCollector>>,
}

impl Collectors {
    /// The collectors that `factories` make for one table.
    pub fn new(
        factories: &[Arc<dyn TablePropertiesCollectorFactory>],
        context: &CollectorContext,
    ) -> Self {
        Collectors {
            each: factories.iter().filter_map(|f| f.create(context)).collect(),
        }
    }

    /// Returns whether no factory made one.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// Shows an entry to all of them.
    pub fn add(&mut self, key: &[u8], value: &[u8], kind: EntryKind, seq: Seq, file_size: u64) {
        for one in &mut self.each {
            one.add(key, value, kind, seq, file_size);
        }
    }

    /// Returns the properties of all of them, and whether one asks for compaction.
    pub fn finish(&mut self) -> (Vec<(String, Vec<u8>)>, bool) {
        let properties = self.each.iter_mut().flat_map(|c| c.finish()).collect();
        (properties, self.each.iter().any(|c| c.needs_compaction()))
    }
}

/// Asks for the compaction of tables in which deletions are dense (RocksDB's
/// `CompactOnDeletionCollector`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompactOnDeletion {
    /// Entries that are looked at together; 0 for no window.
    pub window: usize,
    /// Deletions among them that suffice.
    pub trigger: usize,
    /// Share of deletions in the whole table that suffices; 0, or more than 1, for no such rule.
    pub ratio: f64,
    /// Smaller tables are left alone, in bytes.
    pub min_file_size: u64,
}

impl CompactOnDeletion {
    /// With `trigger` deletions in `window` entries.
    pub fn new(window: usize, trigger: usize) -> Self {
        CompactOnDeletion {
            window,
            trigger,
            ..Self::default()
        }
    }
}

impl TablePropertiesCollectorFactory for CompactOnDeletion {
    fn name(&self) -> &str {
        "CompactOnDeletionCollector"
    }

    fn description(&self) -> String {
        let CompactOnDeletion {
            window,
            trigger,
            ratio,
            ..
        } = self;
        format!(
            "{} (Sliding window size = {window} Deletion trigger = {trigger} Deletion ratio = {ratio})",
            self.name()
        )
    }

    fn create(&self, _context: &CollectorContext) -> Option<Box<dyn TablePropertiesCollector>> {
        Some(Box::new(DeletionWindow {
            rule: *self,
            per_bucket: self.window.div_ceil(BUCKETS),
            buckets: VecDeque::from([0]),
            in_bucket: 0,
            in_window: 0,
            densest: 0,
            entries: 0,
            deletions: 0,
            file_size: 0,
            is_due: false,
        }))
    }
}

/// The window moves by a bucket at a time.
const BUCKETS: usize = 128;

/// Counts deletions in a window that moves over the table.
struct DeletionWindow {
    rule: CompactOnDeletion,
    /// Entries of a bucket; 0 without a window.
    per_bucket: usize,
    /// Deletions by bucket, the newest last.
    buckets: VecDeque<usize>,
    in_bucket: usize,
    in_window: usize,
    densest: usize,
    entries: u64,
    deletions: u64,
    file_size: u64,
    is_due: bool,
}

impl DeletionWindow {
    fn has_ratio(&self) -> bool {
        self.rule.ratio > 0.0 && self.rule.ratio <= 1.0
    }

    fn slide(&mut self, is_deletion: bool) {
        if self.in_bucket == self.per_bucket {
            self.buckets.push_back(0);
            if self.buckets.len() > BUCKETS {
                self.in_window -= self.buckets.pop_front().unwrap_or(0);
            }
            self.in_bucket = 0;
        }
        self.in_bucket += 1;
        if is_deletion {
            self.in_window += 1;
            if let Some(last) = self.buckets.back_mut() {
                *last += 1;
            }
            self.densest = self.densest.max(self.in_window);
        }
    }
}

impl TablePropertiesCollector for DeletionWindow {
    fn add(&mut self, _key: &[u8], _value: &[u8], kind: EntryKind, _seq: Seq, file_size: u64) {
        if self.is_due {
            return;
        }
        self.entries += 1;
        self.deletions += u64::from(kind.is_point_deletion());
        self.file_size = file_size;
        if self.per_bucket > 0 {
            self.slide(kind.is_point_deletion());
            self.is_due = self.densest >= self.rule.trigger && file_size >= self.rule.min_file_size;
        }
    }

    fn finish(&mut self) -> Vec<(String, Vec<u8>)> {
        if self.has_ratio() && self.entries > 0 && self.file_size >= self.rule.min_file_size {
            let ratio = self.deletions as f64 / self.entries as f64;
            self.is_due |= ratio >= self.rule.ratio;
        }
        Vec::new()
    }

    fn needs_compaction(&self) -> bool {
        self.is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(rule: CompactOnDeletion, deletions: impl Iterator<Item = bool>, size: u64) -> bool {
        let mut one = rule
            .create(&CollectorContext::default())
            .expect("it collects");
        for is_deletion in deletions {
            let kind = if is_deletion {
                EntryKind::Delete
            } else {
                EntryKind::Put
            };
            one.add(b"k", b"v", kind, Seq(1), size);
        }
        assert!(one.finish().is_empty());
        one.needs_compaction()
    }

    #[test]
    fn dense_deletions_are_noticed_and_sparse_ones_are_not() {
        let rule = CompactOnDeletion::new(128, 50);
        assert!(due(rule, (0..1000).map(|i| (400..450).contains(&i)), 0));
        assert!(!due(rule, (0..1000).map(|i| (400..449).contains(&i)), 0));
        assert!(!due(rule, (0..10_000).map(|i| i % 10 == 0), 0));
        assert!(due(rule, (0..1000).map(|i| i % 2 == 0), 0));
    }

    #[test]
    fn the_share_and_the_size_of_the_table_count() {
        let rule = CompactOnDeletion {
            ratio: 0.3,
            min_file_size: 1000,
            ..CompactOnDeletion::default()
        };
        assert!(due(rule, (0..100).map(|i| i % 3 == 0), 1000));
        assert!(!due(rule, (0..100).map(|i| i % 3 == 0), 999));
        assert!(!due(rule, (0..100).map(|i| i % 4 == 0), 1000));
    }
}
