//! A simulated disk: a filesystem in memory that remembers everything that was done to it, in
//! order.
//!
//! [`SimFs`] implements the environment's [`FileSystem`], so the whole engine runs on it unchanged.
//! Beside the present state (files and directories by number, as a kernel's page cache has them) it
//! keeps a [`DiskLog`]: what the disk held at first and every operation since, with its data. A
//! power cut is then not something that happens to a running database but a question asked of the
//! log afterwards: [`crate::crash`] answers what a disk may hold when the power went after
//! operation k. From such an [`Image`] a new disk is made, recovery runs on it, and its log can be
//! cut again.
//!
//! Invariants: an operation is in the log if and only if it changed or promised something; it is
//! there before the call returns; the present state is the base with all of the log applied (with
//! the exception that a failed fsync makes, which is in the log as [`Op::SyncFailed`]). Bytes that
//! a writer still buffers are in neither.
//!
//! Rejected: *a filesystem that tracks "synced up to here" and drops the rest* (as `MemFs` does)
//! can show one state for each run, and one run costs as much as a thousand states. *Cutting while
//! the database runs* needs a run for each cut. *Snapshots at each operation* cost memory by the
//! square. *Intercepting a real filesystem's block writes* (`dm-log-writes`) shows real ordering
//! but only that of one filesystem and mount, needs root, and is slower by three orders; it is what
//! the ext4 trial with the shutdown ioctl is for.
//!
//! Thread-safety: one lock for everything, so the log is one total order. [`crate::fault`] is asked
//! under that lock before each call, which makes "the k-th call" well defined.

mod file;

pub use crate::disk_log::{DirNo, DiskLog, Image, Ino, Node, Op, Pages, Place, ROOT};

use crate::disk_log::overwrite;
use crate::fault::{Call, Failure, FaultSpec, Faults};
use esker_env::{
    DirEntry, FileLock, FileSystem, Metadata, RandomAccessFile, ReadOptions, UnnamedFile,
    WritableFile, WriteOptions, lock_held_here, reuse_file,
};
use esker_status::{Error, Result};
use esker_sync::{Mutex, MutexGuard, Rank, check_may_block};
use file::{Lock, OpenHandle, Reader, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

const ENOENT: i32 = 2;
const EIO: i32 = 5;
const EEXIST: i32 = 17;
const ENOTDIR: i32 = 20;
const EISDIR: i32 = 21;
const EINVAL: i32 = 22;
const ENOTEMPTY: i32 = 39;

/// When every file was last changed: the simulation has no use for more.
const MODIFIED: u64 = 1_700_000_000;

/// The answer of `free_space`.
const FREE_SPACE: u64 = 1 << 50;

fn refused(doing: &str, path: &Path, errno: i32) -> Error {
    Error::io(doing, path, &io::Error::from_raw_os_error(errno))
}

/// The names that lead from the root to `path`.
fn parts(path: &Path) -> Vec<String> {
    let mut out = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => _ = out.pop(),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}

/// The present state, the log, and what is to fail.
#[derive(Debug)]
struct DiskState {
    files: Vec<Arc<Vec<u8>>>,
    dirs: Vec<BTreeMap<Arc<str>, Node>>,
    locks: BTreeSet<PathBuf>,
    log: DiskLog,
    recording: bool,
    faults: Option<Faults>,
    /// Calls of any kind so far.
    calls: u64,
    /// Processes so far; handles of earlier ones are dead.
    process: u64,
    /// How many handles this process has on each file.
    open: BTreeMap<Ino, usize>,
}

impl DiskState {
    fn note(&mut self, op: Op) {
        if self.recording {
            self.log.ops.push(op);
        }
    }

    fn write(&mut self, file: Ino, offset: u64, data: &[u8]) {
        overwrite(
            Arc::make_mut(&mut self.files[file.0 as usize]),
            offset,
            data,
        );
        if self.recording {
            let data = Arc::from(data);
            self.note(Op::Write { file, offset, data });
        }
    }

    fn fail_sync(&mut self, file: Ino, pages: Pages) {
        self.note(Op::SyncFailed { file, pages });
        if pages == Pages::Kept {
            return;
        }
        let durable = crate::crash::durable_bytes(&self.log, file);
        let now = Arc::make_mut(&mut self.files[file.0 as usize]);
        let len = now.len();
        *now = durable;
        if pages == Pages::Dropped {
            now.resize(len, 0);
        }
    }

    /// The directory that `path` is in, and its name there.
    fn place(&self, doing: &str, path: &Path) -> Result<Place> {
        let mut parts = parts(path);
        let Some(name) = parts.pop() else {
            return Err(refused(doing, path, EISDIR));
        };
        Ok((self.walk(doing, path, &parts)?, Arc::from(name)))
    }

    fn walk(&self, doing: &str, path: &Path, parts: &[String]) -> Result<DirNo> {
        let mut dir = ROOT;
        for name in parts {
            dir = match self.dirs[dir.0 as usize].get(name.as_str()) {
                Some(Node::Dir(d)) => *d,
                Some(Node::File(_)) => return Err(refused(doing, path, ENOTDIR)),
                None => return Err(refused(doing, path, ENOENT)),
            };
        }
        Ok(dir)
    }

    fn dir(&self, doing: &str, path: &Path) -> Result<DirNo> {
        self.walk(doing, path, &parts(path))
    }

    fn node(&self, place: &Place) -> Option<Node> {
        self.dirs[place.0.0 as usize].get(&place.1).copied()
    }

    fn file(&self, doing: &str, path: &Path) -> Result<Ino> {
        match self.node(&self.place(doing, path)?) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) => Err(refused(doing, path, EISDIR)),
            None => Err(refused(doing, path, ENOENT)),
        }
    }

    fn set(&mut self, place: &Place, node: Node) {
        self.dirs[place.0.0 as usize].insert(Arc::clone(&place.1), node);
    }

    fn unset(&mut self, place: &Place) {
        self.dirs[place.0.0 as usize].remove(&place.1);
    }

    fn new_file(&mut self, at: &Place) -> Ino {
        let file = Ino(self.files.len() as u32);
        self.files.push(Arc::default());
        self.set(at, Node::File(file));
        self.note(Op::Create {
            at: at.clone(),
            file,
        });
        file
    }

    /// Returns whether nobody has `file` open, and it has no second name.
    fn is_unseen(&self, file: Ino) -> bool {
        let nodes = self.dirs.iter().flat_map(BTreeMap::values);
        let names = nodes.filter(|node| **node == Node::File(file)).count();
        names == 1 && !self.open.contains_key(&file)
    }

    fn truncate(&mut self, file: Ino, len: u64) {
        let bytes = Arc::make_mut(&mut self.files[file.0 as usize]);
        bytes.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
        self.note(Op::Truncate { file, len });
    }
}

/// The shared disk behind a [`SimFs`] and its open files, as one process sees it.
#[derive(Clone, Debug)]
struct Disk {
    state: Arc<Mutex<DiskState>>,
    process: u64,
}

impl Disk {
    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock()
    }

    /// A call begins: whether it is to fail, and the disk for it.
    fn enter(&self, call: Call, path: &Path) -> (MutexGuard<'_, DiskState>, Option<Failure>) {
        check_may_block(call.name());
        let mut state = self.lock();
        if state.process != self.process {
            return (state, Some(Failure::Errno(EIO)));
        }
        state.calls += 1;
        let verdict = state.faults.as_mut().and_then(|f| f.ask(call, path));
        (state, verdict)
    }

    /// Counts a handle on `file`.
    fn hold(&self, state: &mut DiskState, file: Ino) -> OpenHandle {
        *state.open.entry(file).or_default() += 1;
        OpenHandle {
            disk: self.clone(),
            file,
        }
    }

    /// The disk for a call that is not to fail.
    fn call(&self, call: Call, path: &Path) -> Result<MutexGuard<'_, DiskState>> {
        match self.enter(call, path) {
            (state, None) => Ok(state),
            (_, Some(failure)) => Err(refused(call.name(), path, failure.errno())),
        }
    }
}

/// A simulated disk. Clones share it.
#[derive(Clone, Debug)]
pub struct SimFs {
    disk: Disk,
}

impl Default for SimFs {
    fn default() -> Self {
        Self::new()
    }
}

impl SimFs {
    /// An empty disk: the root, and nothing in it.
    pub fn new() -> Self {
        Self::from_image(Image::default())
    }

    /// A disk that holds `image`, all of it sure.
    pub fn from_image(image: Image) -> Self {
        SimFs {
            disk: Disk {
                process: 0,
                state: Arc::new(Mutex::new(
                    Rank::new(u16::MAX - 2, "simulated disk"),
                    DiskState {
                        files: image.files.clone(),
                        dirs: image.dirs.clone(),
                        locks: BTreeSet::new(),
                        log: DiskLog {
                            base: image,
                            ops: Vec::new(),
                        },
                        recording: true,
                        faults: None,
                        calls: 0,
                        process: 0,
                        open: BTreeMap::new(),
                    },
                )),
            },
        }
    }

    /// Ends the process that uses this disk: its calls fail from now on and change nothing, its
    /// locks are gone, and what it had buffered is lost. What it gave to the system stays, and is
    /// as sure as it was.
    #[must_use]
    pub fn kill(&self) -> SimFs {
        let mut state = self.disk.lock();
        state.process += 1;
        state.locks.clear();
        state.open.clear();
        SimFs {
            disk: Disk {
                state: Arc::clone(&self.disk.state),
                process: state.process,
            },
        }
    }

    /// Keeps no log from now on: nobody will cut it.
    #[must_use]
    pub fn without_log(self) -> Self {
        self.disk.lock().recording = false;
        self
    }

    /// How many operations are in the log.
    pub fn position(&self) -> usize {
        self.disk.lock().log.ops.len()
    }

    /// The log so far.
    pub fn log(&self) -> DiskLog {
        self.disk.lock().log.clone()
    }

    /// Returns the disk as a process would find it now.
    pub fn image(&self) -> Image {
        let state = self.disk.lock();
        Image {
            files: state.files.clone(),
            dirs: state.dirs.clone(),
        }
    }

    /// Calls of every kind so far.
    pub fn calls(&self) -> u64 {
        self.disk.lock().calls
    }

    /// Fails calls as `plan` says from now on.
    pub fn inject(&self, plan: &FaultSpec) {
        self.disk.lock().faults = Some(Faults::new(plan.clone()));
    }

    /// Ends the failures: space is back, the cable is in again.
    pub fn heal(&self) {
        if let Some(faults) = &mut self.disk.lock().faults {
            faults.heal();
        }
    }

    /// How many calls were failed.
    pub fn failed_calls(&self) -> u64 {
        self.disk.lock().faults.as_ref().map_or(0, Faults::failed)
    }
}

impl FileSystem for SimFs {
    fn open_read(&self, path: &Path, _options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>> {
        let mut state = self.disk.call(Call::OpenRead, path)?;
        let file = state.file("open", path)?;
        Ok(Arc::new(Reader {
            held: self.disk.hold(&mut state, file),
            len: state.files[file.0 as usize].len() as u64,
            path: path.to_owned(),
        }))
    }

    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        let mut state = self.disk.call(Call::Create, path)?;
        let at = state.place("create", path)?;
        let file = match state.node(&at) {
            Some(Node::Dir(_)) => return Err(refused("create", path, EISDIR)),
            Some(Node::File(_)) if options.exclusive => {
                return Err(refused("create", path, EEXIST));
            }
            Some(Node::File(file)) => {
                state.truncate(file, 0);
                file
            }
            None => state.new_file(&at),
        };
        let held = self.disk.hold(&mut state, file);
        let writer = Writer::new(held, path, 0, options.buffer_size);
        Ok(Box::new(writer))
    }

    /// Under its temporary name it is cut to nothing first: what it held is in no state that a
    /// reader accepts. As on a real disk a file is left alone that somebody has open, or that has a
    /// second name.
    fn create_over(
        &self,
        spare: &Path,
        path: &Path,
        options: WriteOptions,
    ) -> Result<Box<dyn WritableFile>> {
        let over = UnnamedFile::over(self.clone(), spare, path, |temporary| {
            let state = self.disk.lock();
            let is_unseen = state.is_unseen(state.file("open for writing over", temporary)?);
            drop(state);
            if !is_unseen {
                return Ok(None);
            }
            self.truncate(temporary, 0)?;
            self.open_append(temporary, options).map(Some)
        });
        match over? {
            Some(file) => Ok(Box::new(file)),
            None => self.create(path, options.exclusively()),
        }
    }

    fn reuse(
        &self,
        spare: &Path,
        path: &Path,
        options: WriteOptions,
    ) -> Result<Option<Box<dyn WritableFile>>> {
        reuse_file(self, spare, path, |temporary| {
            let mut state = self.disk.call(Call::OpenAppend, temporary)?;
            let file = state.file("open for writing over", temporary)?;
            if !state.is_unseen(file) {
                return Ok(None);
            }
            let held = self.disk.hold(&mut state, file);
            let writer = Writer::new(held, path, 0, options.buffer_size);
            Ok(Some(Box::new(writer)))
        })
    }

    fn open_append(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        let mut state = self.disk.call(Call::OpenAppend, path)?;
        let file = state.file("open for append", path)?;
        let len = state.files[file.0 as usize].len() as u64;
        let held = self.disk.hold(&mut state, file);
        let writer = Writer::new(held, path, len, options.buffer_size);
        Ok(Box::new(writer))
    }

    fn read_all(&self, path: &Path, limit: u64) -> Result<Vec<u8>> {
        let state = self.disk.call(Call::ReadAll, path)?;
        let file = state.file("open", path)?;
        let bytes = &state.files[file.0 as usize];
        if bytes.len() as u64 > limit {
            let len = bytes.len();
            return Err(Error::corruption(format!(
                "file of {len} bytes is longer than the limit of {limit}"
            ))
            .with_file(path));
        }
        Ok(bytes.to_vec())
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        let state = self.disk.call(Call::ReadDir, path)?;
        let dir = state.dir("read directory", path)?;
        let names = state.dirs[dir.0 as usize].iter();
        Ok(names
            .map(|(name, node)| DirEntry {
                name: name.to_string(),
                is_file: matches!(node, Node::File(_)),
            })
            .collect())
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut state = self.disk.call(Call::Mkdir, path)?;
        let mut dir = ROOT;
        for name in parts(path) {
            let at: Place = (dir, Arc::from(name));
            dir = match state.node(&at) {
                Some(Node::Dir(d)) => d,
                Some(Node::File(_)) => return Err(refused("create directory", path, EEXIST)),
                None => {
                    let new = DirNo(state.dirs.len() as u32);
                    state.dirs.push(BTreeMap::new());
                    state.set(&at, Node::Dir(new));
                    state.note(Op::Mkdir { at, dir: new });
                    new
                }
            };
        }
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let doing = "remove directory";
        let mut state = self.disk.call(Call::Rmdir, path)?;
        let at = state.place(doing, path)?;
        let dir = match state.node(&at) {
            Some(Node::Dir(dir)) => dir,
            Some(Node::File(_)) => return Err(refused(doing, path, ENOTDIR)),
            None => return Err(refused(doing, path, ENOENT)),
        };
        if !state.dirs[dir.0 as usize].is_empty() {
            return Err(refused(doing, path, ENOTEMPTY));
        }
        state.unset(&at);
        state.note(Op::Rmdir { at, dir });
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let mut state = self.disk.call(Call::Remove, path)?;
        let at = state.place("remove", path)?;
        let file = state.file("remove", path)?;
        state.unset(&at);
        state.note(Op::Remove { at, file });
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let doing = "rename";
        let mut state = self.disk.call(Call::Rename, to)?;
        let source = state.place(doing, from)?;
        let target = state.place(doing, to)?;
        let Some(node) = state.node(&source) else {
            return Err(refused(doing, from, ENOENT));
        };
        if source == target {
            return Ok(());
        }
        let replaced = state.node(&target);
        match (node, replaced) {
            (Node::File(_), Some(Node::Dir(_))) => return Err(refused(doing, to, EISDIR)),
            (Node::Dir(_), Some(Node::File(_))) => return Err(refused(doing, to, ENOTDIR)),
            (Node::Dir(_), Some(Node::Dir(d))) if !state.dirs[d.0 as usize].is_empty() => {
                return Err(refused(doing, to, ENOTEMPTY));
            }
            (Node::Dir(_), _) if parts(to).starts_with(&parts(from)) => {
                return Err(refused(doing, to, EINVAL));
            }
            _ => {}
        }
        state.unset(&source);
        state.set(&target, node);
        state.note(Op::Rename {
            from: source,
            to: target,
            node,
            replaced,
        });
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        let doing = "hard link";
        let mut state = self.disk.call(Call::Link, to)?;
        let file = state.file(doing, from)?;
        let at = state.place(doing, to)?;
        if state.node(&at).is_some() {
            return Err(refused(doing, to, EEXIST));
        }
        state.set(&at, Node::File(file));
        state.note(Op::Link { at, file });
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.disk.call(Call::SyncDir, path)?;
        let dir = state.dir("sync directory", path)?;
        state.note(Op::SyncDir { dir });
        Ok(())
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let state = self.disk.call(Call::Stat, path)?;
        if parts(path).is_empty() {
            return Ok(Metadata {
                len: 0,
                modified_unix: MODIFIED,
                is_dir: true,
            });
        }
        match state.node(&state.place("stat", path)?) {
            Some(Node::Dir(_)) => Ok(Metadata {
                len: 0,
                modified_unix: MODIFIED,
                is_dir: true,
            }),
            Some(Node::File(file)) => Ok(Metadata {
                len: state.files[file.0 as usize].len() as u64,
                modified_unix: MODIFIED,
                is_dir: false,
            }),
            None => Err(refused("stat", path, ENOENT)),
        }
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match self.metadata(path) {
            Ok(_) => Ok(true),
            Err(e) if e.is_not_found() || e.os_error() == Some(ENOTDIR) => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn write_at(&self, path: &Path, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.disk.call(Call::WriteAt, path)?;
        let file = state.file("overwrite", path)?;
        state.write(file, offset, data);
        state.note(Op::Sync { file });
        Ok(())
    }

    fn truncate(&self, path: &Path, len: u64) -> Result<()> {
        let mut state = self.disk.call(Call::Truncate, path)?;
        let file = state.file("truncate", path)?;
        state.truncate(file, len);
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        let mut state = self.disk.call(Call::Lock, path)?;
        if state.locks.contains(path) {
            return Err(lock_held_here(path, (0, 0)));
        }
        let at = state.place("open lock file", path)?;
        if state.node(&at).is_none() {
            state.new_file(&at);
        }
        state.locks.insert(path.to_owned());
        state.note(Op::Lock { at });
        Ok(Box::new(Lock {
            disk: self.disk.clone(),
            path: path.to_owned(),
        }))
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        self.disk.call(Call::FreeSpace, path).map(|_| FREE_SPACE)
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf> {
        let place = parts(path)
            .iter()
            .fold(PathBuf::from("/"), |at, name| at.join(name));
        if self.exists(path)? {
            Ok(place)
        } else {
            Err(refused("resolve", path, ENOENT))
        }
    }
}

#[cfg(test)]
mod tests;
