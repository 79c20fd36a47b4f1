//! Sums of references to blob files: of the entries of a table, or of what passes through a job.
//!
//! A table stores its own as the property [`PROPERTY`]: a varint with the number of files, then for
//! each file, ascending, three varints: its number, the values that the table refers to, and the
//! bytes of their records. A table that refers to more than [`FILES_MAX`] files has no property.

use crate::blob::{BlobIndex, RECORD_HEADER_LEN};
use crate::coding::{Reader, put_varint64};
use crate::ids::FileNo;
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The table property with the table's references.
pub const PROPERTY: &str = "esker.blob.refs";
/// Most files that the property names.
pub const FILES_MAX: usize = 1000;

/// References to the values of one blob file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobCounts {
    /// Values.
    pub count: u64,
    /// Bytes of their records: header, key and stored value.
    pub bytes: u64,
}

/// References to blob files, by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobRefs(BTreeMap<FileNo, BlobCounts>);

impl BlobRefs {
    /// Adds the reference that an entry with a user key of `key_len` bytes holds. A value that
    /// stands in the index itself is none.
    pub fn add(&mut self, key_len: usize, index: &BlobIndex) {
        if let BlobIndex::Blob { file, size, .. } = index {
            let bytes = (RECORD_HEADER_LEN + key_len) as u64;
            let amount = self.0.entry(*file).or_default();
            amount.count += 1;
            amount.bytes = amount.bytes.saturating_add(bytes).saturating_add(*size);
        }
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &BlobRefs) {
        for (file, more) in &other.0 {
            let amount = self.0.entry(*file).or_default();
            amount.count = amount.count.saturating_add(more.count);
            amount.bytes = amount.bytes.saturating_add(more.bytes);
        }
    }

    /// Takes all of `other` away; `Corruption` when it has more of a file.
    pub fn subtract(&mut self, other: &BlobRefs) -> Result<()> {
        for (file, less) in &other.0 {
            let Entry::Occupied(mut amount) = self.0.entry(*file) else {
                return Err(too_many(*file));
            };
            let a = amount.get_mut();
            let left = (
                a.count.checked_sub(less.count),
                a.bytes.checked_sub(less.bytes),
            );
            let (Some(count), Some(bytes)) = left else {
                return Err(too_many(*file));
            };
            *a = BlobCounts { count, bytes };
            if count == 0 {
                amount.remove();
            }
        }
        Ok(())
    }

    /// The references to one file.
    pub fn of(&self, file: FileNo) -> BlobCounts {
        self.0.get(&file).copied().unwrap_or_default()
    }

    /// The oldest file.
    pub fn oldest(&self) -> Option<FileNo> {
        self.0.keys().next().copied()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All files with their references, oldest file first.
    pub fn iter(&self) -> impl Iterator<Item = (FileNo, BlobCounts)> + '_ {
        self.0.iter().map(|(file, amount)| (*file, *amount))
    }

    /// The property's value; `None` for more files than it may name.
    pub fn encode(&self) -> Option<Vec<u8>> {
        if self.0.len() > FILES_MAX {
            return None;
        }
        let mut out = Vec::with_capacity(1 + 9 * self.0.len());
        put_varint64(&mut out, self.0.len() as u64);
        for (file, amount) in &self.0 {
            for number in [file.0, amount.count, amount.bytes] {
                put_varint64(&mut out, number);
            }
        }
        Some(out)
    }

    /// Decodes the property's value.
    pub fn decode(bytes: &[u8]) -> Result<BlobRefs> {
        let mut r = Reader::new(bytes);
        let files = r.varint64()?;
        let mut out = BTreeMap::new();
        let mut last = None;
        for _ in 0..files {
            let file = FileNo(r.varint64()?);
            let (count, bytes) = (r.varint64()?, r.varint64()?);
            if count == 0 || last.is_some_and(|last| last >= file) {
                let what = format!("blob file {file} is out of place in {PROPERTY}");
                return Err(Error::corruption(what));
            }
            last = Some(file);
            out.insert(file, BlobCounts { count, bytes });
        }
        r.finish(PROPERTY)?;
        Ok(BlobRefs(out))
    }
}

#[cold]
fn too_many(file: FileNo) -> Error {
    Error::corruption(format!(
        "more references to blob file {file} were written than read"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refs(of: &[(u64, u64, u64)]) -> BlobRefs {
        let entry = |(file, count, bytes): &(u64, u64, u64)| {
            let (count, bytes) = (*count, *bytes);
            (FileNo(*file), BlobCounts { count, bytes })
        };
        BlobRefs(of.iter().map(entry).collect())
    }

    #[test]
    fn the_property_comes_back() {
        for all in [
            refs(&[]),
            refs(&[(7, 1, 40)]),
            refs(&[(7, 1, 40), (900, 300, 1 << 40)]),
        ] {
            let bytes = all.encode().expect("few files");
            assert_eq!(BlobRefs::decode(&bytes).expect("decodes"), all);
            for cut in 0..bytes.len() {
                assert!(BlobRefs::decode(&bytes[..cut]).is_err());
            }
        }
        let many: Vec<_> = (1..=FILES_MAX as u64 + 1).map(|n| (n, 1, 1)).collect();
        assert!(refs(&many[1..]).encode().is_some());
        assert!(refs(&many).encode().is_none());
        for odd in [
            [2, 9, 1, 1, 9, 1, 1],
            [2, 9, 1, 1, 8, 1, 1],
            [2, 7, 1, 1, 8, 0, 1],
        ] {
            assert!(BlobRefs::decode(&odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn references_are_summed_and_taken_away() {
        let mut sum = BlobRefs::default();
        sum.add(3, &BlobIndex::blob(FileNo(5), 65, 100, 0));
        sum.add(4, &BlobIndex::blob(FileNo(5), 200, 10, 0));
        sum.add(1, &BlobIndex::blob(FileNo(2), 63, 1, 0));
        let inlined = BlobIndex::InlinedTtl {
            expiration: 1,
            value: vec![1],
        };
        sum.add(1, &inlined);
        assert_eq!(sum, refs(&[(2, 1, 34), (5, 2, 181)]));
        assert_eq!(sum.oldest(), Some(FileNo(2)));
        let all = sum.clone();
        sum.subtract(&refs(&[(2, 1, 34), (5, 1, 135)]))
            .expect("fewer");
        assert_eq!(sum, refs(&[(5, 1, 46)]));
        assert!(sum.subtract(&refs(&[(5, 2, 46)])).is_err());
        assert!(sum.clone().subtract(&refs(&[(2, 1, 1)])).is_err());
        let mut twice = all.clone();
        twice.add_all(&all);
        assert_eq!(twice, refs(&[(2, 2, 68), (5, 4, 362)]));
    }
}
