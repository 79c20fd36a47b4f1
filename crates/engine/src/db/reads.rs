//! Reads beyond one value of one key: many keys, entities, merge operands.

use super::Db;
use crate::family::FamilyHandle;
use crate::options::{ReadOptions, ReadTier};
use crate::read::get::{PointRead, PointResult};
use crate::read::{LatestWrite, PinnedValue, latest, multi};
use crate::snapshot::Snapshot;
use crate::ttl;
use esker_format::Seq;
use esker_format::wide_column::{self, Column};
use esker_status::Result;

impl PointResult {
    /// As an encoded entity: a plain value becomes the default column.
    fn into_entity(self) -> Result<Option<Vec<u8>>> {
        match self {
            PointResult::Absent => Ok(None),
            PointResult::Entity(e) => Ok(Some(e.into_vec())),
            PointResult::Value(v) => {
                let mut out = Vec::new();
                let column = Column {
                    name: b"",
                    value: &v,
                    in_blob: false,
                };
                wide_column::encode(&[column], &mut out)?;
                Ok(Some(out))
            }
        }
    }
}

impl Db {
    /// The encoded wide-column entity of `key`, as of now; a plain value comes as an entity with
    /// the default column. [`Db::get_entity_columns`] takes it apart.
    pub fn get_entity(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>> {
        self.get_entity_opt(family, key, options, None)
    }

    /// The encoded wide-column entity of `key`, as of `snapshot` or now.
    pub fn get_entity_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Result<Option<Vec<u8>>> {
        let reads = self.reads();
        let named = Snapshot::of(options);
        let snapshot = snapshot.or(named.as_ref());
        let _timed = reads.timed_get(&family.0);
        let view = family.0.view_guard();
        let seq = reads.read_seq(&view, snapshot)?;
        let entity =
            match PointRead::new(reads, &family.0, options).run(&view, key.as_ref(), seq)? {
                PointResult::Value(v) if reads.ttl.is_some() => PointResult::Value(v.cut_time()?),
                other => other,
            }
            .into_entity()?;
        reads.count_get(entity.as_deref().map(<[u8]>::len));
        Ok(entity)
    }

    /// The columns of the entity of `key`, by name, as of now.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let family = db.default_family_handle();
    /// db.put_entity(&family, "k", &[("size", "10"), ("colour", "red")])?;
    /// let columns = db.get_entity_columns(&family, "k")?.expect("was put");
    /// assert_eq!(columns[0], (b"colour".to_vec(), b"red".to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    #[allow(clippy::type_complexity, reason = "a list of names and values")]
    pub fn get_entity_columns(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<(Vec<u8>, Vec<u8>)>>> {
        let Some(entity) = self.get_entity(family, key, &ReadOptions::default())? else {
            return Ok(None);
        };
        let columns = wide_column::decode(&entity)?;
        let owned = |c: &Column<'_>| (c.name.to_vec(), c.value.to_vec());
        Ok(Some(columns.iter().map(owned).collect()))
    }

    /// The merge operands of `key` that wait to be merged, oldest first, with the value under them,
    /// if there is one, before them. Nothing is merged. At most `limit` of them; `Incomplete` when
    /// there are more.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options, ReadOptions, merge_operator};
    ///
    /// let mut options = Options::new().create_if_missing(true);
    /// options.family.merge_operator = merge_operator::by_name("stringappend");
    /// let db = Db::open(dir.path(), options)?;
    /// let family = db.default_family_handle();
    /// db.put("key", "a")?;
    /// db.merge("key", "b")?;
    /// let operands = db.get_merge_operands(&family, "key", &ReadOptions::new(), None, 10)?;
    /// assert_eq!(operands, [b"a", b"b"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_merge_operands(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>> {
        let reads = self.reads();
        let named = Snapshot::of(options);
        let view = family.0.view_guard();
        let seq = reads.read_seq(&view, snapshot.or(named.as_ref()))?;
        let read = PointRead::new(reads, &family.0, options);
        let mut operands = read.operands(&view, key.as_ref(), seq, limit)?;
        if reads.ttl.is_some() {
            for operand in &mut operands {
                ttl::check(operand)?;
                operand.truncate(operand.len() - ttl::TIME_LEN);
            }
        }
        Ok(operands)
    }

    /// The values of many keys of the default family, all as of one state of the database.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("a", "1")?;
    /// db.put("c", "3")?;
    /// let values: Vec<_> = db.multi_get(["a", "b", "c"]).into_iter().collect::<Result<_, _>>()?;
    /// assert_eq!(values[0].as_deref(), Some(&b"1"[..]));
    /// assert!(values[1].is_none() && values[2].is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Vec<Result<Option<PinnedValue>>> {
        self.multi_get_opt(
            &self.default_family_handle(),
            keys,
            &ReadOptions::default(),
            None,
        )
    }

    /// The values of many keys of `family`, read as `options` say, as of `snapshot` or now; in the
    /// order of the keys. Cheaper than as many single reads: keys that are neighbours share blocks.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// let before = db.snapshot();
    /// db.put_cf(&users, "bob", "2")?;
    /// let options = esker::ReadOptions::new();
    /// let found = db.multi_get_opt(&users, ["ann", "bob"], &options, Some(&before));
    /// assert!(matches!(found[..], [Ok(Some(_)), Ok(None)]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_get_opt<K: AsRef<[u8]>>(
        &self,
        family: &FamilyHandle,
        keys: impl IntoIterator<Item = K>,
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Vec<Result<Option<PinnedValue>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let named = Snapshot::of(options);
        let _timed = self.reads().timed_multi_get(Some(&family.0));
        let view = family.0.view();
        let seq = match self.reads().read_seq(&view, snapshot.or(named.as_ref())) {
            Ok(seq) => seq,
            Err(e) => return keys.iter().map(|_| Err(e.clone())).collect(),
        };
        let read = PointRead::new(self.reads(), &family.0, options);
        let answers = multi::run(&read, &view, &keys, seq);
        self.counted(1, answers)
    }

    /// The values of keys of several families, all as of one state of the database; in the order
    /// given.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let users = db.create_family("users", Default::default())?;
    /// let orders = db.create_family("orders", Default::default())?;
    /// db.put_cf(&users, "ann", "1")?;
    /// db.put_cf(&orders, "7", "ann")?;
    /// let keys = [(&users, "ann"), (&orders, "7"), (&orders, "8")];
    /// let found = db.multi_get_families(&keys, &Default::default(), None);
    /// assert!(matches!(found[..], [Ok(Some(_)), Ok(Some(_)), Ok(None)]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn multi_get_families<K: AsRef<[u8]>>(
        &self,
        keys: &[(&FamilyHandle, K)],
        options: &ReadOptions,
        snapshot: Option<&Snapshot>,
    ) -> Vec<Result<Option<PinnedValue>>> {
        let reads = self.reads();
        let _timed = reads.timed_multi_get(None);
        let families = families_of(keys);
        let named = Snapshot::of(options);
        let snapshot = snapshot.or(named.as_ref());
        // Every view before the sequence: what a view holds, it holds for every later sequence.
        let views = reads.views(families.iter().map(|f| &f.0));
        let seq = match views.first().map(|v| reads.read_seq(v, snapshot)) {
            None => Seq::ZERO,
            Some(Ok(seq)) => seq,
            Some(Err(e)) => return keys.iter().map(|_| Err(e.clone())).collect(),
        };
        let mut answers: Vec<Option<Result<PointResult>>> = keys.iter().map(|_| None).collect();
        for (family, view) in families.iter().zip(&views) {
            let own = || keys.iter().enumerate().filter(|(_, (f, _))| f == family);
            let batch: Vec<&[u8]> = own().map(|(_, (_, k))| k.as_ref()).collect();
            let read = PointRead::new(reads, &family.0, options);
            for ((i, _), answer) in own().zip(multi::run(&read, view, &batch, seq)) {
                answers[i] = Some(answer);
            }
        }
        self.counted(families.len(), answers.into_iter().flatten().collect())
    }

    pub(super) fn counted(
        &self,
        families: usize,
        answers: Vec<Result<PointResult>>,
    ) -> Vec<Result<Option<PinnedValue>>> {
        let values: Vec<_> = answers
            .into_iter()
            .map(|a| PinnedValue::without_time(self.reads(), a?.into_value()?))
            .collect();
        let found = || values.iter().filter_map(|v| v.as_ref().ok()?.as_ref());
        let bytes = found().map(|v| v.len() as u64).sum();
        self.reads()
            .count_multi_get(families, values.len(), found().count(), bytes);
        values
    }

    /// Returns what memory knows of writes to `key` after sequence `since`: for transactions that
    /// look for conflicts.
    ///
    /// Memtables answer when they reach back to `since`, those kept by
    /// `max_write_buffer_size_to_maintain` among them. When they do not, tables are read too,
    /// unless `memory_only`; a snapshot at or before `since` must be held then, since compactions
    /// forget the sequence numbers that no snapshot needs.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::LatestWrite;
    ///
    /// let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// let family = db.default_family_handle();
    /// let before = db.latest_sequence_number();
    /// db.put("k", "v")?;
    /// let after = db.latest_sequence_number();
    /// assert_eq!(db.latest_write_of(&family, "k", before, true)?, LatestWrite::At(after));
    /// assert_eq!(db.latest_write_of(&family, "other", before, true)?, LatestWrite::NoneSince);
    /// # Ok(())
    /// # }
    /// ```
    pub fn latest_write_of(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        since: u64,
        memory_only: bool,
    ) -> Result<LatestWrite> {
        latest::find(
            self.reads(),
            &family.0,
            key.as_ref(),
            Seq(since),
            memory_only,
        )
    }

    /// Returns whether the key may exist, by memory and filters alone: `false` is certain.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let family = db.default_family_handle();
    /// assert!(db.key_may_exist(&family, "key"));
    /// assert!(!db.key_may_exist(&family, "other"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn key_may_exist(&self, family: &FamilyHandle, key: impl AsRef<[u8]>) -> bool {
        let mut options = ReadOptions::default();
        options.read_tier = ReadTier::BlockCache;
        !matches!(self.read(&family.0, key.as_ref(), &options, None), Ok(None))
    }
}

/// The families that `keys` name, each once.
pub(super) fn families_of<'a, K>(keys: &[(&'a FamilyHandle, K)]) -> Vec<&'a FamilyHandle> {
    let mut families: Vec<&FamilyHandle> = Vec::new();
    for (family, _) in keys {
        if !families.contains(family) {
            families.push(family);
        }
    }
    families
}
