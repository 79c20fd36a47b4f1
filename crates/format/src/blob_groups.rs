//! Sorted groups of blob files: what one flush or one compaction wrote of medium values, in the
//! order of their keys.
//!
//! Two places name them. A MANIFEST's record of a new blob file has the custom field
//! [`BlobTier::FIELD`], which other engines skip: a byte, 1 for a file of large values and 2 for
//! one of a group, and of that varints with the group's number and its level. RocksDB leaves the
//! field out when it writes a MANIFEST anew, so a table stores the groups that it refers to as the
//! property [`PROPERTY`]: a varint with the number of files, then for each file, ascending, three
//! varints: its number, the group and the level. Pure functions.

use crate::coding::{Reader, put_varint32, put_varint64};
use crate::ids::{FileNo, Level};
use esker_status::{Error, Result};
use std::collections::BTreeMap;

/// The table property with the groups of the blob files that a table refers to.
pub const PROPERTY: &str = "esker.blob.groups";

const LARGE: u8 = 1;
const MEDIUM: u8 = 2;

/// A sorted group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobGroup {
    /// The number of its first file, which no other group has.
    pub number: FileNo,
    /// The level of the tables that it was written with.
    pub level: Level,
}

/// Values that a blob file is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlobTier {
    /// Nobody said it.
    #[default]
    Unknown,
    /// Large values.
    Large,
    /// Medium values: a file of a sorted group.
    Medium(BlobGroup),
}

impl BlobTier {
    /// The number of the custom field in a MANIFEST: far from those that RocksDB may take next, and
    /// below 64, from which on a reader may not skip it.
    pub const FIELD: u32 = 33;

    /// The group of a file of medium values.
    pub fn group(self) -> Option<BlobGroup> {
        match self {
            BlobTier::Medium(group) => Some(group),
            BlobTier::Unknown | BlobTier::Large => None,
        }
    }

    /// The field's contents; `None` where there is nothing to say.
    pub fn encode(self) -> Option<Vec<u8>> {
        match self {
            BlobTier::Unknown => None,
            BlobTier::Large => Some(vec![LARGE]),
            BlobTier::Medium(group) => {
                let mut out = vec![MEDIUM];
                put_varint64(&mut out, group.number.0);
                put_varint32(&mut out, u32::from(group.level.0));
                Some(out)
            }
        }
    }

    /// Decodes the field's contents. Tiers that a later version adds are unknown.
    pub fn decode(bytes: &[u8]) -> Result<BlobTier> {
        match bytes.split_first() {
            None => Err(Error::corruption("the tier of a blob file is empty")),
            Some((&LARGE, _)) => Ok(BlobTier::Large),
            Some((&MEDIUM, rest)) => group(&mut Reader::new(rest)).map(BlobTier::Medium),
            Some(_) => Ok(BlobTier::Unknown),
        }
    }
}

fn group(r: &mut Reader<'_>) -> Result<BlobGroup> {
    let number = FileNo(r.varint64()?);
    let level = r.varint32()?;
    let level = u8::try_from(level)
        .map_err(|_| Error::corruption(format!("a blob group of level {level} cannot exist")))?;
    if number == FileNo(0) || number >= FileNo::LIMIT {
        let what = format!("the number {number} of a blob group cannot exist");
        return Err(Error::corruption(what));
    }
    let level = Level(level);
    Ok(BlobGroup { number, level })
}

/// Blob files with their groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobGroups(BTreeMap<FileNo, BlobGroup>);

impl BlobGroups {
    /// Adds a file.
    pub fn insert(&mut self, file: FileNo, group: BlobGroup) {
        self.0.insert(file, group);
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &BlobGroups) {
        self.0.extend(&other.0);
    }

    /// The group of a file.
    pub fn of(&self, file: FileNo) -> Option<BlobGroup> {
        self.0.get(&file).copied()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The property's value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1 + 9 * self.0.len());
        put_varint64(&mut out, self.0.len() as u64);
        for (file, group) in &self.0 {
            put_varint64(&mut out, file.0);
            put_varint64(&mut out, group.number.0);
            put_varint32(&mut out, u32::from(group.level.0));
        }
        out
    }

    /// Decodes the property's value.
    pub fn decode(bytes: &[u8]) -> Result<BlobGroups> {
        let mut r = Reader::new(bytes);
        let files = r.varint64()?;
        let mut out = BTreeMap::new();
        for _ in 0..files {
            let file = FileNo(r.varint64()?);
            let group = group(&mut r)?;
            if out.last_key_value().is_some_and(|(last, _)| *last >= file) {
                let what = format!("blob file {file} is out of place in {PROPERTY}");
                return Err(Error::corruption(what));
            }
            out.insert(file, group);
        }
        r.finish(PROPERTY)?;
        Ok(BlobGroups(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: u64, level: u8) -> BlobGroup {
        BlobGroup {
            number: FileNo(number),
            level: Level(level),
        }
    }

    #[test]
    fn a_tier_comes_back() {
        assert_eq!(BlobTier::Unknown.encode(), None);
        for tier in [BlobTier::Large, BlobTier::Medium(group(300, 6))] {
            let bytes = tier.encode().expect("it says something");
            assert_eq!(BlobTier::decode(&bytes).expect("decodes"), tier);
            let longer = [&bytes[..], &[7]].concat();
            assert_eq!(BlobTier::decode(&longer).expect("decodes"), tier);
        }
        assert_eq!(BlobTier::decode(&[9, 1]).expect("later"), BlobTier::Unknown);
        for odd in [&[][..], &[2], &[2, 5], &[2, 0, 1], &[2, 5, 0x80, 2]] {
            assert!(BlobTier::decode(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn the_property_comes_back() {
        let mut all = BlobGroups::default();
        assert_eq!(all.encode(), [0]);
        all.insert(FileNo(900), group(900, 6));
        all.insert(FileNo(7), group(5, 0));
        let bytes = all.encode();
        assert_eq!(BlobGroups::decode(&bytes).expect("decodes"), all);
        for cut in 0..bytes.len() {
            assert!(BlobGroups::decode(&bytes[..cut]).is_err());
        }
        for odd in [[2, 9, 9, 1, 9, 9, 1], [2, 9, 9, 1, 8, 9, 1]] {
            assert!(BlobGroups::decode(&odd).is_err(), "{odd:?}");
        }
        assert_eq!(all.of(FileNo(7)), Some(group(5, 0)));
        assert_eq!(all.of(FileNo(5)), None);
    }
}
