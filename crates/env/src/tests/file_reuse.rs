//! Files in the place of others: what is in them, when they have their names, and whose files are
//! left alone.

use super::{direct_dir, on_each, read, write};
use crate::{FileSystem, PosixFs, ReadOptions, WritableFile, WriteOptions};
use esker_status::{Error, ErrorKind, Result};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Every way of writing a table, and one that passes appends through.
fn ways() -> Vec<WriteOptions> {
    let mut ways = vec![WriteOptions::default()];
    for (direct, background) in [(false, false), (false, true), (true, false), (true, true)] {
        ways.push(WriteOptions {
            direct,
            background,
            buffer_size: 64 << 10,
            preallocate: 100_000,
            bytes_per_sync: 16 << 10,
            exclusive: true,
            ..WriteOptions::default()
        });
    }
    ways
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    let byte = |i: usize| ((i * 31 + seed * 7) >> 3) as u8;
    (0..len).map(byte).collect()
}

fn inode(path: &Path) -> u64 {
    std::fs::metadata(path).expect("it is there").ino()
}

fn names(fs: &dyn FileSystem, dir: &Path) -> Vec<String> {
    let entries = fs.read_dir(dir).expect("a directory");
    entries.into_iter().map(|e| e.name).collect()
}

/// Returns whether this filesystem tells who has a file open; says so when not.
fn tells_openers() -> bool {
    let place = Place::new();
    let before = inode(&place.spare());
    let mut file = place.over(WriteOptions::default());
    file.close().expect("close");
    let is_taken = inode(&place.path()) == before;
    if !is_taken {
        println!("skipped: no leases on this filesystem, so nothing is written over");
    }
    is_taken
}

/// A directory with a spare, and the names of it, of its successor, and of that while it is
/// written.
struct Place {
    dir: tempfile::TempDir,
    fs: PosixFs,
}

const OLD: usize = 300_001;

impl Place {
    fn new() -> Self {
        let place = Place {
            dir: direct_dir(),
            fs: PosixFs::new(),
        };
        write(&place.fs, &place.spare(), &bytes(OLD, 1));
        place
    }
    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    fn spare(&self) -> PathBuf {
        self.at("000007.sst")
    }
    fn path(&self) -> PathBuf {
        self.at("000009.sst")
    }
    fn over(&self, options: WriteOptions) -> Box<dyn WritableFile> {
        let made = self.fs.create_over(&self.spare(), &self.path(), options);
        made.expect("nothing is in the way")
    }
    /// Writes another file over the spare, whose storage is (or is not) taken; the new file is
    /// right, the spare is gone.
    fn writes_over(&self, is_taken: bool) {
        let before = inode(&self.spare());
        let mut file = self.over(WriteOptions::default());
        let new = bytes(5000, 3);
        file.append(&new).expect("append");
        file.sync().expect("sync");
        file.close().expect("close");
        assert!(read(&self.fs, &self.path()) == new);
        // A number may come back once its file is gone; a file that somebody holds keeps it.
        assert_eq!(inode(&self.path()) == before, is_taken && tells_openers());
        assert!(!self.spare().exists());
        assert!(!self.at("000009.dbtmp").exists());
    }
}

#[test]
fn a_file_over_another_holds_what_was_appended_and_has_its_name_once_closed() {
    if !tells_openers() {
        return;
    }
    for options in ways() {
        // Longer, shorter, of whole units, of one byte and empty.
        for len in [OLD + 70_001, OLD - 70_001, 131_072, 1, 0] {
            for synced in [false, true] {
                let place = Place::new();
                let before = inode(&place.spare());
                let mut file = place.over(options);
                let temporary = place.at("000009.dbtmp");
                assert_eq!(names(&place.fs, place.dir.path()), ["000009.dbtmp"]);
                let new = bytes(len, 2);
                for piece in new.chunks(50_007) {
                    file.append(piece).expect("append");
                }
                assert_eq!((file.len(), file.path()), (len as u64, &*place.path()));
                if synced {
                    file.begin_sync().expect("begin");
                    file.sync().expect("sync");
                    assert!(read(&place.fs, &temporary) == new, "{options:?} {len}");
                }
                assert!(!place.path().exists());
                file.close().expect("close");
                assert_eq!(names(&place.fs, place.dir.path()), ["000009.sst"]);
                assert!(read(&place.fs, &place.path()) == new, "{options:?} {len}");
                assert_eq!(inode(&place.path()), before, "it is in the old one's place");
                assert_eq!(file.len(), len as u64);
                assert!(file.close().is_ok() && file.append(b"more").is_err());
                drop(file);
                assert_eq!(names(&place.fs, place.dir.path()), ["000009.sst"]);
            }
        }
    }
}

#[test]
fn a_file_that_is_dropped_before_it_is_closed_is_gone() {
    for options in ways() {
        let place = Place::new();
        let mut file = place.over(options);
        file.append(&bytes(400_000, 2)).expect("append");
        drop(file);
        assert!(names(&place.fs, place.dir.path()).is_empty());
    }
}

#[test]
fn a_file_that_exists_is_an_error_and_stays_whole() {
    on_each(|fs, dir| {
        let (spare, path) = (dir.join("000007.sst"), dir.join("000009.sst"));
        write(fs, &spare, b"spare");
        write(fs, &path, b"wanted");
        // Whatever the options say.
        fs.create_over(&spare, &path, WriteOptions::default())
            .expect_err("the file exists");
        assert_eq!(read(fs, &path), b"wanted");
        assert_eq!(names(fs, dir), ["000007.sst", "000009.sst"]);
    });
}

#[test]
fn a_spare_that_is_missing_is_no_error() {
    on_each(|fs, dir| {
        let (spare, path) = (dir.join("000007.sst"), dir.join("000009.sst"));
        let mut file = fs
            .create_over(&spare, &path, WriteOptions::default())
            .expect("created anew");
        file.append(b"new").expect("append");
        file.close().expect("close");
        assert_eq!(read(fs, &path), b"new");
        assert_eq!(names(fs, dir), ["000009.sst"]);
    });
}

#[test]
fn every_filesystem_takes_the_spare_away() {
    on_each(|fs, dir| {
        let (spare, path) = (dir.join("000007.sst"), dir.join("000009.sst"));
        write(fs, &spare, b"old and longer");
        let mut file = fs
            .create_over(&spare, &path, WriteOptions::default())
            .expect("created");
        assert!(!names(fs, dir).contains(&"000007.sst".to_owned()));
        file.append(b"new").expect("append");
        file.close().expect("close");
        assert_eq!(read(fs, &path), b"new");
        assert_eq!(names(fs, dir), ["000009.sst"]);
    });
}

#[test]
fn a_spare_in_another_directory_works() {
    let (place, other) = (Place::new(), direct_dir());
    let path = other.path().join("000009.sst");
    let options = WriteOptions::default();
    let made = place.fs.create_over(&place.spare(), &path, options);
    let mut file = made.expect("created");
    file.append(b"new").expect("append");
    file.close().expect("close");
    assert_eq!(read(&place.fs, &path), b"new");
    assert!(names(&place.fs, place.dir.path()).is_empty());
    assert_eq!(names(&place.fs, other.path()), ["000009.sst"]);
}

#[test]
fn a_spare_with_a_second_name_is_left_alone() {
    let place = Place::new();
    let link = place.at("link");
    place.fs.hard_link(&place.spare(), &link).expect("a link");
    place.writes_over(false);
    assert!(read(&place.fs, &link) == bytes(OLD, 1));
}

#[test]
fn a_spare_that_is_a_link_is_not_followed() {
    let place = Place::new();
    let elsewhere = place.at("elsewhere");
    place.fs.rename(&place.spare(), &elsewhere).expect("moved");
    std::os::unix::fs::symlink(&elsewhere, place.spare()).expect("a link");
    place.writes_over(false);
    assert!(read(&place.fs, &elsewhere) == bytes(OLD, 1));
}

#[test]
fn a_spare_that_this_process_reads_is_left_alone() {
    let place = Place::new();
    for direct in [false, true] {
        write(&place.fs, &place.spare(), &bytes(OLD, 1));
        let _gone = place.fs.remove_file(&place.path());
        let options = ReadOptions {
            random: false,
            direct,
        };
        let reader = place.fs.open_read(&place.spare(), options).expect("opens");
        place.writes_over(false);
        let mut old = vec![0; OLD];
        assert_eq!(reader.read_at(0, &mut old).expect("reads"), OLD);
        assert!(old == bytes(OLD, 1));
    }
}

/// Ends the process when the test does.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _done = (self.0.kill(), self.0.wait());
    }
}

#[test]
fn a_spare_that_another_process_has_open_is_left_alone() {
    let place = Place::new();
    let mut shell = Command::new("sh");
    // Says that it runs, waits until its input ends, and shows the file, which it has as its
    // standard error.
    shell.args(["-c", "echo; read go; cat <&2"]);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped());
    shell.stderr(std::fs::File::open(place.spare()).expect("opens"));
    let child = shell.spawn().expect("a shell");
    // What it inherits is not open here any more.
    drop(shell);
    let mut shell = Ended(child);
    let mut out = shell.0.stdout.take().expect("a pipe");
    let mut line = [0];
    std::io::Read::read_exact(&mut out, &mut line).expect("it runs");
    place.writes_over(false);
    drop(shell.0.stdin.take());
    let mut old = Vec::new();
    std::io::Read::read_to_end(&mut out, &mut old).expect("it shows the file");
    assert!(old == bytes(OLD, 1));
}

#[test]
fn a_spare_that_others_may_read_than_a_new_file_is_left_alone() {
    let place = Place::new();
    let new = std::fs::metadata(place.spare())
        .expect("it is there")
        .mode()
        & 0o7777;
    for mode in [0o600, 0o666, 0o755] {
        write(&place.fs, &place.spare(), &bytes(OLD, 1));
        let permissions = PermissionsExt::from_mode(mode);
        std::fs::set_permissions(place.spare(), permissions).expect("it is ours");
        let mut file = place.over(WriteOptions::default());
        file.append(b"new").expect("append");
        file.close().expect("close");
        let made = std::fs::metadata(place.path()).expect("it is there");
        assert_eq!(made.mode() & 0o7777, new);
        assert_eq!(read(&place.fs, &place.path()), b"new");
        place.fs.remove_file(&place.path()).expect("removed");
    }
}

/// A file that cannot be closed.
#[derive(Debug)]
struct Unclosable(PathBuf);

impl WritableFile for Unclosable {
    fn append(&mut self, _data: &[u8]) -> Result<()> {
        Ok(())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
    fn len(&self) -> u64 {
        0
    }
    fn close(&mut self) -> Result<()> {
        Err(Error::new(ErrorKind::Io, "the disk is full"))
    }
    fn path(&self) -> &Path {
        &self.0
    }
}

#[test]
fn a_file_that_could_not_be_closed_never_gets_its_name() {
    let place = Place::new();
    let open = |path: &Path| -> Result<Option<Box<dyn WritableFile>>> {
        Ok(Some(Box::new(Unclosable(path.to_owned()))))
    };
    let over = crate::UnnamedFile::over(place.fs.clone(), &place.spare(), &place.path(), open);
    let mut file = over.expect("nothing is in the way").expect("taken");
    file.close().expect_err("the disk is full");
    assert!(names(&place.fs, place.dir.path()).is_empty());
    let _again = file.close();
    drop(file);
    assert!(names(&place.fs, place.dir.path()).is_empty());
}

/// How a log is written whose file other logs may begin in.
fn log() -> WriteOptions {
    WriteOptions {
        exclusive: true,
        preallocate: 400_000,
        reusable: true,
        ..WriteOptions::default()
    }
}

#[test]
fn a_file_that_begins_in_another_has_its_name_at_once_and_the_rest_of_the_other_behind_it() {
    if !tells_openers() {
        return;
    }
    let mapped = WriteOptions {
        mapped: true,
        ..log()
    };
    for options in [log(), mapped] {
        let place = Place::new();
        let (before, path) = (inode(&place.spare()), place.path());
        let made = place.fs.reuse(&place.spare(), &path, options);
        let mut file = made.expect("nothing is in the way").expect("taken");
        assert_eq!(names(&place.fs, place.dir.path()), ["000009.sst"]);
        assert_eq!((inode(&path), file.len(), file.path()), (before, 0, &*path));
        // Shorter than the other file, and then longer.
        let new = bytes(OLD + 2_000_000, 2);
        for (from, to) in [(0, 1000), (1000, OLD / 2), (OLD / 2, new.len())] {
            file.append(&new[from..to]).expect("append");
            file.sync().expect("sync");
            let now = read(&place.fs, &path);
            assert!(now[..to] == new[..to], "{options:?} {to}");
            // What is made ready in front of a mapped one is zeros.
            let old = bytes(OLD, 1);
            let is_old = |at: usize| old.get(at).is_none_or(|byte| now[at] == *byte);
            let rest = to..now.len();
            assert!(rest.clone().all(|at| is_old(at) || now[at] == 0));
            assert!(options.mapped || rest.clone().all(is_old));
            assert!(now.len() >= OLD);
        }
        file.close().expect("close");
        assert!(read(&place.fs, &path)[..new.len()] == new);
    }
}

#[test]
fn a_file_that_was_not_full_can_be_begun_again_and_again() {
    if !tells_openers() {
        return;
    }
    let place = Place::new();
    let before = inode(&place.spare());
    let mut last = place.spare();
    for n in 0..5_usize {
        let path = place.at(&format!("{:06}.log", 20 + n));
        let made = place.fs.reuse(&last, &path, log()).expect("no error");
        let mut file = made.expect("taken");
        file.append(&bytes(10_000, n)).expect("append");
        file.close().expect("close");
        // What was reserved behind it stays, so the next one need not ask for it.
        let now = read(&place.fs, &path);
        assert!(now.len() >= OLD && now[..10_000] == bytes(10_000, n));
        assert_eq!(inode(&path), before);
        last = path;
    }
}

#[test]
fn no_file_begins_in_one_that_somebody_could_see_change() {
    let place = Place::new();
    let (spare, path) = (place.spare(), place.path());
    let link = place.at("link");
    place.fs.hard_link(&spare, &link).expect("a link");
    let refused = place.fs.reuse(&spare, &path, log()).expect("no error");
    assert!(refused.is_none() && read(&place.fs, &link) == bytes(OLD, 1));
    assert_eq!(names(&place.fs, place.dir.path()), ["link"]);

    write(&place.fs, &spare, &bytes(OLD, 1));
    let reader = place.fs.open_read(&spare, ReadOptions::default());
    let reader = reader.expect("opens");
    let refused = place.fs.reuse(&spare, &path, log()).expect("no error");
    assert!(refused.is_none());
    let mut old = vec![0; OLD];
    assert_eq!(reader.read_at(0, &mut old).expect("reads"), OLD);
    assert!(old == bytes(OLD, 1));

    // One that is not there, and one whose name is taken.
    assert!(place.fs.reuse(&spare, &path, log()).expect("ok").is_none());
    write(&place.fs, &spare, b"spare");
    write(&place.fs, &path, b"wanted");
    place
        .fs
        .reuse(&spare, &path, log())
        .expect_err("the file exists");
    assert_eq!(read(&place.fs, &path), b"wanted");
    assert_eq!(read(&place.fs, &spare), b"spare");
}
