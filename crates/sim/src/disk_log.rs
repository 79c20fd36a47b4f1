//! The operations on a disk, in one total order, and its contents before.
//!
//! The log is what crash states are computed from, so it holds data and not digests. Inodes and
//! directories go by number: a name may mean different files at different times. Values; appended
//! to under the disk's lock.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ino(pub u32);

/// The number of a directory. The root is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirNo(pub u32);

/// The root directory.
pub const ROOT: DirNo = DirNo(0);

/// The file or the directory behind a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A file.
    File(Ino),
    /// A directory.
    Dir(DirNo),
}

/// A name in a directory.
pub type Place = (DirNo, Arc<str>);

/// State of the pages that a failed fsync did not write. All are marked clean: a later fsync does
/// not write them either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Reads see the new data.
    Kept,
    /// Reads see what the disk has: the data and the length of the last fsync.
    Reverted,
    /// Reads see zeros, and the length stays.
    Dropped,
}

/// One thing that was done.
#[derive(Clone, Debug)]
pub enum Op {
    /// A new, empty file got a name.
    Create {
        /// The name.
        at: Place,
        /// The file.
        file: Ino,
    },
    /// A new directory got a name.
    Mkdir {
        /// The name.
        at: Place,
        /// The directory.
        dir: DirNo,
    },
    /// Bytes were written at `offset`, appended or not.
    Write {
        /// The file.
        file: Ino,
        /// Where.
        offset: u64,
        /// The bytes.
        data: Arc<[u8]>,
    },
    /// The length was set.
    Truncate {
        /// The file.
        file: Ino,
        /// The new length.
        len: u64,
    },
    /// The file was synced: everything written to it before is sure.
    Sync {
        /// The file.
        file: Ino,
    },
    /// A sync of the file failed.
    SyncFailed {
        /// The file.
        file: Ino,
        /// The state of the pages afterwards.
        pages: Pages,
    },
    /// A file was closed by its writer. Promises nothing.
    Close {
        /// The file.
        file: Ino,
    },
    /// A file got one more name.
    Link {
        /// The name.
        at: Place,
        /// The file.
        file: Ino,
    },
    /// A name of a file was removed.
    Remove {
        /// The name.
        at: Place,
        /// The file.
        file: Ino,
    },
    /// An empty directory was removed.
    Rmdir {
        /// The name.
        at: Place,
        /// The directory.
        dir: DirNo,
    },
    /// Moves the entry at `from` to `to`, in place of `replaced`.
    Rename {
        /// The old name.
        from: Place,
        /// The new name.
        to: Place,
        /// The entry that moved.
        node: Node,
        /// The entry that was there before.
        replaced: Option<Node>,
    },
    /// A directory was synced: what happened to its names before is sure.
    SyncDir {
        /// The directory.
        dir: DirNo,
    },
    /// A lock was taken. Promises nothing.
    Lock {
        /// The name of the lock file.
        at: Place,
    },
}

/// Contents of a disk: files by number, and directories by number.
///
/// Invariants: every node in a directory has an entry in `files` or `dirs`; directory 0 is the
/// root. Files and directories that no name leads to are garbage, as on a disk whose orphans have
/// not been cleared.
#[derive(Clone, Debug)]
pub struct Image {
    /// The bytes of each file.
    pub files: Vec<Arc<Vec<u8>>>,
    /// The names in each directory.
    pub dirs: Vec<BTreeMap<Arc<str>, Node>>,
}

impl Default for Image {
    fn default() -> Self {
        Image {
            files: Vec::new(),
            dirs: vec![BTreeMap::new()],
        }
    }
}

impl Image {
    /// All files that a name leads to, by path, in order.
    pub fn list(&self) -> BTreeMap<String, Arc<Vec<u8>>> {
        let mut out = BTreeMap::new();
        let mut open = vec![(String::new(), ROOT)];
        while let Some((path, dir)) = open.pop() {
            for (name, node) in &self.dirs[dir.0 as usize] {
                let path = format!("{path}/{name}");
                match node {
                    Node::File(f) => {
                        out.insert(path, Arc::clone(&self.files[f.0 as usize]));
                    }
                    Node::Dir(d) => open.push((path, *d)),
                }
            }
        }
        out
    }

    /// A number that is the same for the same names with the same bytes, for telling states apart.
    pub fn digest(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut to = DefaultHasher::new();
        for (path, bytes) in self.list() {
            path.hash(&mut to);
            bytes.hash(&mut to);
        }
        to.finish()
    }

    pub(crate) fn dir_mut(&mut self, dir: DirNo) -> &mut BTreeMap<Arc<str>, Node> {
        let at = dir.0 as usize;
        if self.dirs.len() <= at {
            self.dirs.resize_with(at + 1, BTreeMap::new);
        }
        &mut self.dirs[at]
    }
}

/// First contents of a disk, and the operations since.
#[derive(Clone, Debug, Default)]
pub struct DiskLog {
    /// All of this is sure.
    pub base: Image,
    /// The operations, oldest first.
    pub ops: Vec<Op>,
}

impl DiskLog {
    /// Behind the last failed fsync before operation `at` that took pages away; 0 when there was
    /// none.
    pub fn pages_lost(&self, at: usize) -> usize {
        let takes = |op: &Op| matches!(op, Op::SyncFailed { pages, .. } if *pages != Pages::Kept);
        let before = &self.ops[..at.min(self.ops.len())];
        before.iter().rposition(takes).map_or(0, |n| n + 1)
    }
}

/// Puts `data` at `offset`, beyond the end too.
pub(crate) fn overwrite(bytes: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let from = usize::try_from(offset).unwrap_or(usize::MAX);
    if from == bytes.len() {
        bytes.extend_from_slice(data);
        return;
    }
    let to = from.saturating_add(data.len());
    if to > bytes.len() {
        bytes.resize(to, 0);
    }
    bytes[from..to].copy_from_slice(data);
}
