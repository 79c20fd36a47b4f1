//! The small numbers of a database as types, so that an off-by-one is a type error.

use std::fmt;

/// A sequence number: 56 bits, one for each counted record ever written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// Before every write.
    pub const ZERO: Seq = Seq(0);
    /// The sentinel 2^56 - 1: newer than every write, never given to one.
    pub const MAX: Seq = Seq((1 << 56) - 1);
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Seq {
        Seq(self.0 + 1)
    }
}

/// The number in a file's name; tables, logs, blobs, MANIFEST and OPTIONS share one sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNo(pub u64);

impl FileNo {
    /// Numbers stay below this: bits 62 and 63 are the path id's in RocksDB's packed form.
    pub const LIMIT: FileNo = FileNo(1 << 62);
}

/// A column family's number; never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FamilyId(pub u32);

impl FamilyId {
    /// The family that always exists, called `default`.
    pub const DEFAULT: FamilyId = FamilyId(0);
}

/// A level of the tree; 0 is where flushes land.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub u8);

impl Level {
    /// Where flushes land: files may overlap.
    pub const L0: Level = Level(0);
    /// As an index into a list of levels.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

macro_rules! plain_display {
    ($($t:ty),*) => {$(
        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )*};
}
plain_display!(Seq, FileNo, FamilyId, Level);
