//! Options of reads and writes as chains of calls.

use super::io::SnapshotRef;
use super::{ReadOptions, ReadTier, TableFilter, WriteOptions};
use std::time::Duration;

/// Declares calls that set the field of the same name.
macro_rules! setters {
    ($options:ident { $(
        $(#[doc = $doc:literal])+
        $name:ident[$alias:literal]: $type:ty = $example:literal;
    )* }) => {
        impl $options {
            /// Every option at its default.
            pub fn new() -> Self {
                Self::default()
            }

            $(
            $(#[doc = $doc])+
            ///
            /// ```
            #[doc = concat!("let options = esker::", stringify!($options), "::new().", stringify!($name), "(", $example, ");")]
            /// # let _given = options;
            /// ```
            #[doc(alias = $alias)]
            #[must_use]
            pub fn $name(mut self, value: $type) -> Self {
                self.$name = value;
                self
            }
        )*}
    };
}

setters! { ReadOptions {
    /// Checks the checksum of each block that is read; the default.
    verify_checksums["set_verify_checksums"]: bool = "false";
    /// Keeps blocks that are read in the cache; the default.
    fill_cache["set_fill_cache"]: bool = "false";
    /// Ends when the prefix of the key that was sought changes.
    prefix_same_as_start["set_prefix_same_as_start"]: bool = "true";
    /// Ignores prefix filters: every key in order is seen.
    total_order_seek["set_total_order_seek"]: bool = "true";
    /// Uses prefix filters only where the bounds show that the answer is the same.
    auto_prefix_mode["set_auto_prefix_mode"]: bool = "true";
    /// Sees writes that come after the iterator was made.
    tailing["set_tailing"]: bool = "true";
    /// Ignores range deletions: faster where there are none.
    ignore_range_deletions["set_ignore_range_deletions"]: bool = "true";
    /// Readahead of iterators in bytes; 0 grows by itself.
    readahead_size["set_readahead_size"]: usize = "2 << 20";
    /// A seek of an iterator begins the reads of all sorted runs before it waits for one.
    async_io["set_async_io"]: bool = "true";
    /// From where the read may be served.
    read_tier["set_read_tier"]: ReadTier = "esker::options::ReadTier::BlockCache";
} }

setters! { WriteOptions {
    /// Returns only when the write survives power loss.
    sync["set_sync"]: bool = "true";
    /// Skips the log: the write survives once its memtable is flushed.
    disable_wal["set_disable_wal"]: bool = "true";
    /// Fails with `Incomplete` instead of waiting when writers are slowed or stopped.
    no_slowdown["set_no_slowdown"]: bool = "true";
    /// Yields to other writers while those of any family are slowed or stopped.
    low_pri["set_low_pri"]: bool = "true";
    /// Ignores records for families that do not exist (any more).
    ignore_missing_column_families["set_ignore_missing_column_families"]: bool = "true";
} }

impl ReadOptions {
    /// The smallest key of interest to an iterator.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// for key in ["a", "b", "c"] {
    ///     db.put(key, "value")?;
    /// }
    /// let options = esker::ReadOptions::new().lower("b").upper("c");
    /// let it = db.iter_opt(&db.default_family_handle(), options, None);
    /// assert_eq!(it.keys().collect::<Result<Vec<_>, _>>()?, [b"b"]);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "set_iterate_lower_bound")]
    #[must_use]
    pub fn lower(mut self, key: impl AsRef<[u8]>) -> Self {
        self.iterate_lower_bound = Some(key.as_ref().to_vec());
        self
    }

    /// The first key that is no longer of interest to an iterator.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// for key in ["a", "b", "c"] {
    ///     db.put(key, "value")?;
    /// }
    /// let options = esker::ReadOptions::new().upper("b");
    /// let it = db.iter_opt(&db.default_family_handle(), options, None);
    /// assert_eq!(it.keys().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "set_iterate_upper_bound")]
    #[must_use]
    pub fn upper(mut self, key: impl AsRef<[u8]>) -> Self {
        self.iterate_upper_bound = Some(key.as_ref().to_vec());
        self
    }

    /// Bounds an iterator to the keys that begin with `prefix`, in a family whose order is by
    /// bytes.
    ///
    /// ```
    /// let options = esker::ReadOptions::new().prefix("user:");
    /// assert_eq!(options.iterate_lower_bound.as_deref(), Some(&b"user:"[..]));
    /// assert_eq!(options.iterate_upper_bound.as_deref(), Some(&b"user;"[..]));
    /// ```
    #[doc(alias = "set_iterate_range")]
    #[must_use]
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        let prefix = prefix.as_ref();
        self.iterate_lower_bound = Some(prefix.to_vec());
        self.iterate_upper_bound = behind_prefix(prefix);
        self
    }

    /// Reads the state of a snapshot.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let before = db.snapshot();
    /// db.put("key", "value")?;
    /// let options = esker::ReadOptions::new().snapshot(&before);
    /// let family = db.default_family_handle();
    /// assert!(db.get_opt(&family, "key", &options, None)?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "set_snapshot")]
    #[must_use]
    pub fn snapshot(mut self, snapshot: impl Into<SnapshotRef>) -> Self {
        self.snapshot = Some(snapshot.into());
        self
    }

    /// Time after which the read fails with `TimedOut`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let options = esker::ReadOptions::new().timeout(Duration::from_millis(50));
    /// assert_eq!(options.deadline, Some(Duration::from_millis(50)));
    /// ```
    #[doc(alias = "deadline")]
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.deadline = Some(time);
        self
    }

    /// The user timestamp up to which versions are seen.
    #[doc(alias = "set_timestamp")]
    #[must_use]
    pub fn timestamp(mut self, timestamp: impl AsRef<[u8]>) -> Self {
        self.timestamp = Some(timestamp.as_ref().to_vec());
        self
    }

    /// Decides by its properties whether an iterator reads a table.
    ///
    /// ```
    /// use esker::options::TableFilter;
    ///
    /// let large = TableFilter::new(|properties| properties.num_entries > 1000);
    /// let options = esker::ReadOptions::new().table_filter(large);
    /// # let _given = options;
    /// ```
    #[must_use]
    pub fn table_filter(mut self, filter: TableFilter) -> Self {
        self.table_filter = Some(filter);
        self
    }
}

/// The first key in the order by bytes behind those that begin with `prefix`; `None` where there is
/// none.
pub fn behind_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_the_next_one_of_its_length_or_shorter() {
        assert_eq!(behind_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(behind_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(behind_prefix(b"\xff\xff"), None);
        assert_eq!(behind_prefix(b""), None);
    }
}
