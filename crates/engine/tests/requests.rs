//! How jobs read and write tables: in large requests, in the background, past the page cache where
//! the options say so.

mod common;

use esker::env::{
    BackgroundIo, Env, FileSystem, Lifetime, PosixFs, RandomAccessFile, ReadOptions, WritableFile,
    WriteOptions,
};
use esker::{Db, Options, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Requests to the disk.
#[derive(Debug, Default)]
struct Asked {
    created: Vec<(PathBuf, WriteOptions)>,
    opened: Vec<(PathBuf, ReadOptions)>,
    read: Vec<(PathBuf, u64, usize)>,
}

/// The disk, and notes of what was asked of it.
#[derive(Clone, Debug, Default)]
struct Watched {
    disk: PosixFs,
    asked: Arc<Mutex<Asked>>,
}

impl Watched {
    fn asked(&self) -> std::sync::MutexGuard<'_, Asked> {
        self.asked.lock().expect("nobody panics")
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn RandomAccessFile>,
    asked: Arc<Mutex<Asked>>,
}

impl RandomAccessFile for WatchedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let path = self.file.path().to_owned();
        let mut asked = self.asked.lock().expect("nobody panics");
        asked.read.push((path, offset, buf.len()));
        drop(asked);
        self.file.read_at(offset, buf)
    }
    fn len(&self) -> u64 {
        self.file.len()
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
}

impl FileSystem for Watched {
    fn open_read(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>> {
        self.asked().opened.push((path.to_owned(), options));
        let file = self.disk.open_read(path, options)?;
        let asked = Arc::clone(&self.asked);
        Ok(Arc::new(WatchedFile { file, asked }))
    }
    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        self.asked().created.push((path.to_owned(), options));
        self.disk.create(path, options)
    }
    common::pass_on!(disk);
}

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "sst")
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "log")
}

const KEYS: u64 = 12_000;

/// A database with a few tables of level 0 that overlap, before it is compacted.
fn loaded(watched: &Watched, dir: &Path, changes: &[(&str, &str)]) -> Db {
    let env = Env {
        fs: Arc::new(watched.clone()),
        ..Env::posix()
    };
    let mut options = Options::new().create_if_missing(true).env(env);
    let own = [
        ("level0_file_num_compaction_trigger", "100"),
        ("compression", "kNoCompression"),
    ];
    for (name, value) in own.iter().chain(changes) {
        options = options.set(name, value).expect("an option");
    }
    let db = Db::open(dir, options).expect("opens");
    for table in 0..3u64 {
        for n in 0..KEYS {
            let value = format!("{table}-{n}-{:0380}", n * 7);
            db.put(format!("{n:08}"), value).expect("written");
        }
        db.flush().expect("flushed");
    }
    db
}

/// Compacts everything; what was asked meanwhile, and the tables there were before.
fn compacted(watched: &Watched, db: &Db) -> (Asked, Vec<PathBuf>) {
    let before = std::mem::take(&mut *watched.asked());
    let inputs = before.created.iter().map(|c| c.0.clone());
    let inputs = inputs.filter(|p| is_table(p)).collect();
    db.compact_range(None, None).expect("compacted");
    for n in (0..KEYS).step_by(97) {
        let value = db.get(format!("{n:08}")).expect("read").expect("there");
        assert_eq!(*value, *format!("2-{n}-{:0380}", n * 7).as_bytes());
    }
    let asked = std::mem::take(&mut *watched.asked());
    (asked, inputs)
}

#[test]
fn compactions_read_each_input_once_in_large_requests() {
    // A size that is too small is raised.
    for readahead in ["2097152", "1000"] {
        let dir = tempfile::tempdir().expect("a directory");
        let watched = Watched::default();
        let changes = [("compaction_readahead_size", readahead)];
        let db = loaded(&watched, dir.path(), &changes);
        let (asked, inputs) = compacted(&watched, &db);
        assert_eq!(inputs.len(), 3);
        for input in &inputs {
            let reads = asked.read.iter().filter(|r| r.0 == *input);
            let mut reads: Vec<_> = reads.map(|r| (r.1, r.2)).collect();
            reads.sort_unstable();
            assert!(reads.len() > 1 && reads.iter().all(|r| r.1 >= 256 << 10));
            let apart = reads.windows(2).all(|w| w[0].0 + w[0].1 as u64 == w[1].0);
            assert!(apart, "{reads:?}");
        }
    }
}

#[test]
fn tables_are_written_in_the_background_and_logs_are_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let watched = Watched::default();
    let direct = [("use_direct_io_for_flush_and_compaction", "true")];
    let db = loaded(&watched, dir.path(), &direct);
    let asked = std::mem::take(&mut *watched.asked());
    db.compact_range(None, None).expect("compacted");
    let compacted = std::mem::take(&mut *watched.asked());
    for (made, tables) in [(&asked.created, 3), (&compacted.created, 1)] {
        let tables_made: Vec<_> = made.iter().filter(|c| is_table(&c.0)).collect();
        assert!(tables_made.len() >= tables);
        assert!(tables_made.iter().all(|c| c.1.background && c.1.direct));
    }
    let logs = asked.created.iter().filter(|c| is_log(&c.0));
    let logs: Vec<_> = logs.collect();
    assert!(!logs.is_empty() && logs.iter().all(|c| !c.1.background && !c.1.direct));
}

#[test]
fn compactions_read_past_the_page_cache_where_they_are_told_to() {
    for direct in [false, true] {
        let dir = tempfile::tempdir().expect("a directory");
        let watched = Watched::default();
        let value = direct.to_string();
        let changes = [("use_direct_io_for_compaction_reads", value.as_str())];
        let db = loaded(&watched, dir.path(), &changes);
        let (asked, inputs) = compacted(&watched, &db);
        let of_inputs = asked.opened.iter().filter(|o| inputs.contains(&o.0));
        assert_eq!(
            of_inputs.filter(|o| o.1.direct).count(),
            inputs.len() * usize::from(direct)
        );
        // Everybody else reads through the page cache.
        let others = asked.opened.iter().filter(|o| !inputs.contains(&o.0));
        assert!(others.filter(|o| is_table(&o.0)).all(|o| !o.1.direct));
    }
}

/// Every way of carrying large requests: the same data, and the LOG says who it was.
#[test]
fn jobs_have_their_requests_carried_by_whom_the_options_want() {
    let by_ring = PosixFs::new().with_background_io(BackgroundIo::IoUring);
    let has_ring = by_ring
        .and_then(|fs| fs.background_carrier(true))
        .as_deref()
        == Some("io_uring");
    let kernel = |text: &'static str| if has_ring { text } else { "threads, since" };
    let cases = [
        ("auto", "false", "buffered by threads"),
        (
            "auto",
            "true",
            kernel("direct by io_uring; buffered by threads"),
        ),
        ("threads", "true", "direct by threads; buffered by threads"),
        (
            "io_uring",
            "true",
            kernel("direct by io_uring; buffered by io_uring"),
        ),
        ("io_uring", "false", kernel("buffered by io_uring")),
    ];
    for (carrier, direct, line) in cases {
        // The temporary directory may be one that has no direct I/O.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let changes = [
            ("background_io", carrier),
            ("use_direct_reads", direct),
            ("use_direct_io_for_flush_and_compaction", direct),
            ("compression", "kNoCompression"),
            ("max_subcompactions", "2"),
            ("target_file_size_base", "3000000"),
        ];
        let mut options = Options::new().create_if_missing(true);
        for (name, value) in changes {
            options = options.set(name, value).expect("an option");
        }
        let db = Db::open(dir.path(), options).expect("opens");
        let log = std::fs::read_to_string(dir.path().join("LOG")).expect("a log");
        let said = log.lines().find(|l| l.contains("Background I/O:"));
        assert!(said.expect("a line").contains(line), "{said:?}");
        for round in 0..3u64 {
            for n in 0..KEYS {
                let value = format!("{round}-{n}-{:0380}", n * 7);
                db.put(format!("{n:08}"), value).expect("written");
            }
            db.flush().expect("flushed");
        }
        db.compact_range(None, None).expect("compacted");
        let mut entries = db.iter();
        entries.seek_to_first();
        for n in 0..KEYS {
            assert_eq!(entries.key(), format!("{n:08}").as_bytes());
            let value = format!("2-{n}-{:0380}", n * 7);
            assert!(entries.value() == value.as_bytes());
            entries.next();
        }
        assert!(!entries.valid());
        entries.status().expect("read");
    }
    let wrong = Options::new().set("background_io", "magic");
    assert!(wrong.is_err());
}

#[test]
fn the_system_is_told_how_long_files_will_stay() {
    use Lifetime::{Long, Medium, Short, Unknown};
    let universal = ("compaction_style", "kCompactionStyleUniversal");
    let named = (
        "calculate_sst_write_lifetime_hint_set",
        "kCompactionStyleUniversal",
    );
    let cases = [
        (&[][..], Medium, Medium),
        (&[named][..], Unknown, Unknown),
        (&[universal][..], Unknown, Unknown),
        (&[universal, named][..], Short, Long),
    ];
    for (changes, flushed, merged) in cases {
        let dir = tempfile::tempdir().expect("a directory");
        let watched = Watched::default();
        let db = loaded(&watched, dir.path(), changes);
        let created = watched.asked().created.clone();
        let logs = created.iter().filter(|c| is_log(&c.0));
        assert!(logs.clone().count() > 0 && logs.clone().all(|c| c.1.lifetime == Short));
        let mut tables = created.iter().filter(|c| is_table(&c.0));
        assert!(tables.all(|c| c.1.lifetime == flushed), "{changes:?}");
        let (asked, _) = compacted(&watched, &db);
        let mut tables = asked.created.iter().filter(|c| is_table(&c.0)).peekable();
        assert!(tables.peek().is_some());
        assert!(tables.all(|c| c.1.lifetime == merged), "{changes:?}");
    }
}
