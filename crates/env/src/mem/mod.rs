//! A filesystem in memory: complete, and as strict as POSIX about what exists where.
//!
//! A file is a shared inode (so hard links, renames over open files and removals of open files
//! behave as on a disk); names live in one ordered map from whole paths to nodes. What was synced
//! is tracked as a length per inode, so [`MemFs::drop_unsynced`] can show what power loss leaves of
//! the data. Names are always durable.
//!
//! Thread-safety: one lock for names, one per inode; the name lock is never held while a file's is
//! waited for by a writer for long: no I/O happens under either.

mod file;

use crate::{
    DirEntry, FileLock, FileSystem, Metadata, RandomAccessFile, ReadOptions, WritableFile,
    WriteOptions, lock_held_here,
};
use esker_status::{Error, Result};
use esker_sync::{Mutex, Rank};
use file::{Inode, MemReader, MemWriter};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

const ENOENT: i32 = 2;
const EEXIST: i32 = 17;
const ENOTDIR: i32 = 20;
const EISDIR: i32 = 21;
const ENOTEMPTY: i32 = 39;

/// The answer of `free_space`: memory is not counted.
const FREE_SPACE: u64 = 1 << 50;

#[derive(Clone, Debug)]
enum Node {
    Dir,
    File(Arc<Inode>),
}

#[derive(Debug, Default)]
struct Names {
    /// By normal absolute path; every parent of a path is there and is a directory.
    nodes: BTreeMap<PathBuf, Node>,
    locks: BTreeSet<PathBuf>,
}

/// A filesystem in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct MemFs {
    names: Arc<Mutex<Names>>,
}

impl Default for MemFs {
    fn default() -> Self {
        Self::new()
    }
}

/// `path` from the root, without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => _ = out.pop(),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}

fn refused(doing: &str, path: &Path, errno: i32) -> Error {
    Error::io(doing, path, &io::Error::from_raw_os_error(errno))
}

impl Names {
    fn file(&self, doing: &str, path: &Path) -> Result<&Arc<Inode>> {
        match self.nodes.get(&normal(path)) {
            Some(Node::File(inode)) => Ok(inode),
            Some(Node::Dir) => Err(refused(doing, path, EISDIR)),
            None => Err(refused(doing, path, ENOENT)),
        }
    }

    fn check_dir(&self, doing: &str, path: &Path, dir: &Path) -> Result<()> {
        match self.nodes.get(dir) {
            Some(Node::Dir) => Ok(()),
            Some(Node::File(_)) => Err(refused(doing, path, ENOTDIR)),
            None => Err(refused(doing, path, ENOENT)),
        }
    }

    fn check_parent(&self, doing: &str, path: &Path) -> Result<()> {
        match normal(path).parent() {
            Some(parent) => self.check_dir(doing, path, parent),
            None => Err(refused(doing, path, EISDIR)),
        }
    }

    /// The nodes below `dir`, at any depth.
    fn below<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = (&'a PathBuf, &'a Node)> + 'a {
        let from = (std::ops::Bound::Excluded(dir), std::ops::Bound::Unbounded);
        self.nodes
            .range::<Path, _>(from)
            .take_while(move |(p, _)| p.starts_with(dir))
    }
}

impl MemFs {
    /// An empty filesystem: the root, and nothing in it.
    pub fn new() -> Self {
        let names = Names {
            nodes: BTreeMap::from([(PathBuf::from("/"), Node::Dir)]),
            ..Names::default()
        };
        MemFs {
            names: Arc::new(Mutex::new(
                Rank::new(u16::MAX - 2, "memory filesystem names"),
                names,
            )),
        }
    }

    /// Power loss: every file falls back to the length it had when it was last synced. Files being
    /// written must be dropped first.
    pub fn drop_unsynced(&self) {
        for node in self.names.lock().nodes.values() {
            if let Node::File(inode) = node {
                inode.drop_unsynced();
            }
        }
    }

    /// Bytes in all files.
    pub fn total_bytes(&self) -> u64 {
        let names = self.names.lock();
        names
            .nodes
            .values()
            .map(|n| if let Node::File(i) = n { i.len() } else { 0 })
            .sum()
    }
}

impl FileSystem for MemFs {
    fn open_read(&self, path: &Path, _options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>> {
        let inode = Arc::clone(self.names.lock().file("open", path)?);
        Ok(Arc::new(MemReader::new(inode, path)))
    }

    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        let mut names = self.names.lock();
        names.check_parent("create", path)?;
        let inode = match names.nodes.get(&normal(path)) {
            Some(Node::Dir) => return Err(refused("create", path, EISDIR)),
            Some(Node::File(_)) if options.exclusive => {
                return Err(refused("create", path, EEXIST));
            }
            Some(Node::File(inode)) => {
                inode.truncate(0);
                Arc::clone(inode)
            }
            None => {
                let inode = Arc::new(Inode::new());
                names
                    .nodes
                    .insert(normal(path), Node::File(Arc::clone(&inode)));
                inode
            }
        };
        Ok(Box::new(MemWriter::new(inode, path, options.buffer_size)))
    }

    fn open_append(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        let inode = Arc::clone(self.names.lock().file("open for append", path)?);
        Ok(Box::new(MemWriter::new(inode, path, options.buffer_size)))
    }

    fn read_all(&self, path: &Path, limit: u64) -> Result<Vec<u8>> {
        let inode = Arc::clone(self.names.lock().file("open", path)?);
        inode.read_all(limit).map_err(|len| {
            Error::corruption(format!(
                "file of {len} bytes is longer than the limit of {limit}"
            ))
            .with_file(path)
        })
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let names = self.names.lock();
        let dir = normal(path);
        names.check_dir("read directory", path, &dir)?;
        let children = names.below(&dir).filter(|(p, _)| p.parent() == Some(&dir));
        let mut entries: Vec<_> = children
            .filter_map(|(p, node)| {
                let name = p.file_name()?.to_string_lossy().into_owned();
                Some(DirEntry {
                    name,
                    is_file: matches!(node, Node::File(_)),
                })
            })
            .collect();
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut names = self.names.lock();
        let whole = normal(path);
        let mut parts: Vec<_> = whole.ancestors().collect();
        parts.reverse();
        for dir in parts {
            match names.nodes.get(dir) {
                Some(Node::Dir) => {}
                Some(Node::File(_)) => return Err(refused("create directory", path, EEXIST)),
                None => _ = names.nodes.insert(dir.to_owned(), Node::Dir),
            }
        }
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let mut names = self.names.lock();
        let dir = normal(path);
        names.check_dir("remove directory", path, &dir)?;
        if dir.parent().is_none() || names.below(&dir).next().is_some() {
            return Err(refused("remove directory", path, ENOTEMPTY));
        }
        names.nodes.remove(&dir);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let mut names = self.names.lock();
        names.file("remove", path)?;
        names.nodes.remove(&normal(path));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let doing = "rename";
        let mut names = self.names.lock();
        let (source, target) = (normal(from), normal(to));
        let Some(node) = names.nodes.get(&source).cloned() else {
            return Err(refused(doing, from, ENOENT));
        };
        names.check_parent(doing, to)?;
        if source == target {
            return Ok(());
        }
        match (&node, names.nodes.get(&target)) {
            (Node::File(_), Some(Node::Dir)) => return Err(refused(doing, to, EISDIR)),
            (Node::Dir, Some(Node::File(_))) => return Err(refused(doing, to, ENOTDIR)),
            (Node::Dir, Some(Node::Dir)) if names.below(&target).next().is_some() => {
                return Err(refused(doing, to, ENOTEMPTY));
            }
            (Node::Dir, _) if target.starts_with(&source) => return Err(refused(doing, to, 22)),
            _ => {}
        }
        let moved: Vec<_> = names
            .below(&source)
            .map(|(p, n)| (p.clone(), n.clone()))
            .collect();
        names.nodes.remove(&source);
        names.nodes.insert(target.clone(), node);
        for (path, node) in moved {
            names.nodes.remove(&path);
            if let Ok(rest) = path.strip_prefix(&source) {
                names.nodes.insert(target.join(rest), node);
            }
        }
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        let doing = "hard link";
        let mut names = self.names.lock();
        let inode = Arc::clone(names.file(doing, from)?);
        names.check_parent(doing, to)?;
        if names.nodes.contains_key(&normal(to)) {
            return Err(refused(doing, to, EEXIST));
        }
        names.nodes.insert(normal(to), Node::File(inode));
        Ok(())
    }

    fn write_at(&self, path: &Path, offset: u64, data: &[u8]) -> Result<()> {
        let inode = Arc::clone(self.names.lock().file("overwrite", path)?);
        inode.overwrite(offset, data);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.names
            .lock()
            .check_dir("sync directory", path, &normal(path))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        match self.names.lock().nodes.get(&normal(path)) {
            Some(Node::Dir) => Ok(Metadata {
                len: 0,
                modified_unix: 0,
                is_dir: true,
            }),
            Some(Node::File(i)) => Ok(Metadata {
                len: i.len(),
                modified_unix: i.modified_unix(),
                is_dir: false,
            }),
            None => Err(refused("stat", path, ENOENT)),
        }
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.names.lock().nodes.contains_key(&normal(path)))
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<()> {
        let inode = Arc::clone(self.names.lock().file("truncate", path)?);
        let len = usize::try_from(len).map_err(|_| refused("truncate", path, 27))?;
        inode.truncate(len);
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let mut names = self.names.lock();
        let place = normal(path);
        if names.locks.contains(&place) {
            return Err(lock_held_here(path, (0, 0)));
        }
        names.check_parent("open lock file", path)?;
        names
            .nodes
            .entry(place.clone())
            .or_insert_with(|| Node::File(Arc::new(Inode::new())));
        names.locks.insert(place.clone());
        Ok(Box::new(MemLock {
            names: Arc::clone(&self.names),
            path: place,
        }))
    }

    fn free_space(&self, _path: &Path) -> Result<u64> {
        Ok(FREE_SPACE)
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        let place = normal(path);
        if self.exists(path)? {
            Ok(place)
        } else {
            Err(refused("resolve", path, ENOENT))
        }
    }
}

/// A lock in a [`MemFs`], until dropped.
#[derive(Debug)]
struct MemLock {
    names: Arc<Mutex<Names>>,
    path: PathBuf,
}

impl FileLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.names.lock().locks.remove(&self.path);
    }
}
