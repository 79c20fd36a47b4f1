//! Tables that are written over ones that nobody reads: that they are, and that nobody notices.

mod common;
mod rocksdb_tools;

use common::Rng;
use esker::env::{
    Env, FileSystem, PosixFs, RandomAccessFile, ReadOptions, WritableFile, WriteOptions,
};
use esker::observe::{EventListener, TableFileCreation, TableFileDeletion};
use esker::{Db, DbIterator, ErrorKind, Options, Result, Snapshot};
use rocksdb_tools::{Contents, Tally, Tools, say};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The disk, and how often a table was to be written over another one, and was.
#[derive(Clone, Debug, Default)]
struct Watched {
    disk: PosixFs,
    asked: Arc<AtomicUsize>,
    taken: Arc<AtomicUsize>,
}

impl Watched {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

fn inode(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|m| m.ino())
}

impl FileSystem for Watched {
    fn create_over(
        &self,
        spare: &Path,
        path: &Path,
        options: WriteOptions,
    ) -> Result<Box<dyn WritableFile>> {
        let old = inode(spare).expect("a spare is there");
        let file = self.disk.create_over(spare, path, options)?;
        self.asked.fetch_add(1, Ordering::Relaxed);
        if inode(&path.with_extension("dbtmp")) == Some(old) {
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
        Ok(file)
    }
    fn open_read(&self, path: &Path, options: ReadOptions) -> Result<Arc<dyn RandomAccessFile>> {
        self.disk.open_read(path, options)
    }
    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        self.disk.create(path, options)
    }
    common::pass_on!(disk);
}

/// The numbers of tables that were made and deleted, as listeners are told.
#[derive(Default)]
struct Told {
    made: Mutex<Vec<u64>>,
    deleted: Mutex<Vec<u64>>,
}

impl EventListener for Told {
    fn on_table_file_created(&self, info: &TableFileCreation) {
        // A job that ends because the database closes leaves none.
        if info.error.is_some() {
            return;
        }
        let mut made = self.made.lock().expect("nobody panics");
        made.push(info.file_no.0);
    }
    fn on_table_file_deleted(&self, info: &TableFileDeletion) {
        assert!(info.error.is_none());
        let mut deleted = self.deleted.lock().expect("nobody panics");
        deleted.push(info.file_no.0);
    }
}

/// No tree changes once the writers rest: the files are listed then.
fn small(watched: &Watched) -> Options {
    let env = Env {
        fs: Arc::new(watched.clone()),
        ..Env::posix()
    };
    Options::new()
        .create_if_missing(true)
        .env(env)
        .set_all("write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=262144;level0_file_num_compaction_trigger=2;compression=kNoCompression;max_background_jobs=4;compaction_for_reads=false")
        .expect("these options exist")
}

/// A database under load, beside its model.
struct Run {
    dir: tempfile::TempDir,
    watched: Watched,
    told: Arc<Told>,
    db: Db,
    model: Model,
    rng: Rng,
    writes: u64,
}

const KEYS: u64 = 3_000;

impl Run {
    fn new(changes: &str) -> Result<Run> {
        let (dir, watched) = (
            tempfile::tempdir().expect("a directory"),
            Watched::default(),
        );
        let told = Arc::new(Told::default());
        let mut options = small(&watched).set_all(changes)?;
        options.db.listeners.push(told.clone());
        let db = Db::open(dir.path().join("db"), options)?;
        Ok(Run {
            dir,
            watched,
            told,
            db,
            model: Model::new(),
            rng: Rng::new(common::number("ESKER_SEED", 1)),
            writes: 0,
        })
    }

    fn at(&self) -> PathBuf {
        self.dir.path().join("db")
    }

    fn write(&mut self, times: u64) -> Result<()> {
        for _ in 0..times {
            self.writes += 1;
            let key = format!("{:06}", self.rng.below(KEYS)).into_bytes();
            if self.rng.one_in(20) {
                self.db.delete(&key)?;
                self.model.remove(&key);
                continue;
            }
            let value = format!("{}-{:0200}", self.writes, self.rng.next()).into_bytes();
            self.db.put(&key, &value)?;
            self.model.insert(key, value);
        }
        Ok(())
    }

    /// Writes until this many more tables have been written over others.
    fn recycle(&mut self, more: usize) -> Result<()> {
        let wanted = self.watched.taken() + more;
        for _ in 0..400 {
            self.write(500)?;
            if self.watched.taken() >= wanted {
                return Ok(());
            }
        }
        panic!("hardly any table is written over another one");
    }

    fn check(&self) -> Result<()> {
        assert!(contents(self.db.iter())? == self.model);
        for n in 0..KEYS {
            let key = format!("{n:06}").into_bytes();
            assert_eq!(self.db.get(&key)?.as_ref(), self.model.get(&key));
        }
        Ok(())
    }

    /// Fails if obsolete tables stay. A job that ends may hold them for a moment.
    fn has_live_tables_alone(&self) {
        let are_alone = || tables(&self.at()) == self.live();
        common::until("the live tables alone", are_alone);
    }

    fn live(&self) -> BTreeSet<String> {
        let live = self.db.live_files_metadata().into_iter();
        live.map(|f| f.name.trim_start_matches('/').to_owned())
            .collect()
    }
}

fn contents(mut it: DbIterator) -> Result<Model> {
    let mut out = Model::new();
    it.seek_to_first();
    while it.valid() {
        out.insert(it.key().to_vec(), it.value().to_vec());
        it.next();
    }
    it.status()?;
    Ok(out)
}

fn as_of(db: &Db, snapshot: &Snapshot) -> Result<Model> {
    let options = esker::ReadOptions::default();
    contents(db.iter_opt(&db.default_family_handle(), options, Some(snapshot)))
}

/// The files of a directory that are, were or become tables.
fn tables(dir: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).expect("the directory is there");
    entries
        .map(|e| e.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".sst") || name.ends_with(".dbtmp"))
        .collect()
}

/// Returns whether this filesystem tells who has a file open; says so when not.
fn tells_openers() -> bool {
    let dir = tempfile::tempdir().expect("a directory");
    let (spare, path) = (dir.path().join("000001.sst"), dir.path().join("000002.sst"));
    std::fs::write(&spare, [7; 5000]).expect("written");
    let before = inode(&spare);
    let fs = esker::Env::posix().fs;
    let made = fs.create_over(&spare, &path, esker::env::WriteOptions::default());
    made.and_then(|mut file| file.close()).expect("written");
    let is_taken = inode(&path) == before;
    if !is_taken {
        println!("skipped: no leases on this filesystem, so nothing is written over");
    }
    is_taken
}

/// Names and bytes of the files of a directory.
fn listing(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("the directory is there");
    entries
        .map(|e| e.expect("an entry"))
        .filter_map(|e| {
            let name = e.file_name().to_string_lossy().into_owned();
            // A table may get its name in between.
            Some((name, std::fs::read(e.path()).ok()?))
        })
        .collect()
}

#[test]
fn tables_are_written_over_others_and_the_directory_holds_the_live_ones() -> Result<()> {
    if !tells_openers() {
        return Ok(());
    }
    for how in ["", "use_direct_io_for_flush_and_compaction=true"] {
        let mut run = Run::new(how)?;
        for _ in 0..3 {
            run.recycle(20)?;
            run.check()?;
            run.db.wait_for_compaction()?;
            run.has_live_tables_alone();
        }
        run.recycle(1)?;
        run.db.flush()?;
        run.db.wait_for_compaction()?;
        let live = run.live();
        run.db.close()?;
        assert_eq!(tables(&run.at()), live);
        let deleted = run.told.deleted.lock().expect("nobody panics").clone();
        let mut ends: Vec<u64> = deleted;
        ends.extend(
            live.iter()
                .map(|name| name[..6].parse::<u64>().expect("a number")),
        );
        ends.sort_unstable();
        let mut made = run.told.made.lock().expect("nobody panics").clone();
        made.sort_unstable();
        assert_eq!(
            made, ends,
            "each table is live or was said to be deleted once"
        );
        run.db = Db::open(run.at(), small(&run.watched).set_all(how)?)?;
        run.check()?;
    }
    Ok(())
}

#[test]
fn closing_in_the_middle_leaves_the_live_tables() -> Result<()> {
    if !tells_openers() {
        return Ok(());
    }
    let mut run = Run::new("")?;
    for _ in 0..5 {
        run.recycle(3)?;
        run.db.close()?;
        let found = tables(&run.at());
        // Looks, and changes nothing.
        let still = Db::open_read_only(run.at(), Options::new())?;
        let names = still.live_files_metadata().into_iter().map(|f| f.name);
        let live: BTreeSet<_> = names
            .map(|n| n.trim_start_matches('/').to_owned())
            .collect();
        assert_eq!(found, live);
        drop(still);
        run.db = Db::open(run.at(), small(&run.watched))?;
        run.check()?;
    }
    Ok(())
}

#[test]
fn nothing_is_written_over_where_the_options_say_so() -> Result<()> {
    if !tells_openers() {
        return Ok(());
    }
    let mut run = Run::new("recycle_table_files=false")?;
    run.write(40_000)?;
    assert_eq!(run.watched.asked(), 0);
    run.check()?;
    // It may be said of an open database.
    run.db.set_db_options(&[("recycle_table_files", "true")])?;
    run.recycle(1)?;
    run.db.set_db_options(&[("recycle_table_files", "false")])?;
    // A table may be created by now, by a job that asked before.
    run.db.wait_for_compaction()?;
    let asked = run.watched.asked();
    run.write(40_000)?;
    assert_eq!(run.watched.asked(), asked);
    run.check()
}

#[test]
fn whoever_reads_older_states_sees_them_whole() -> Result<()> {
    if !tells_openers() {
        return Ok(());
    }
    for open in ["max_open_files=-1", "max_open_files=12"] {
        let mut run = Run::new(open)?;
        let mut held = Vec::new();
        for _ in 0..6 {
            run.recycle(4)?;
            let mut it = run.db.iter();
            // Some have begun to read, some have not.
            if held.len() % 2 == 0 {
                it.seek_to_first();
            }
            held.push((it, run.db.snapshot(), run.model.clone()));
        }
        run.recycle(10)?;
        for (it, snapshot, model) in held {
            assert!(as_of(&run.db, &snapshot)? == model);
            assert!(contents(it)? == model);
        }
        run.check()?;
    }
    Ok(())
}

#[test]
fn checkpoints_stay_what_they_are() -> Result<()> {
    if !tells_openers() {
        return Ok(());
    }
    let mut run = Run::new("")?;
    let mut made = Vec::new();
    for n in 0..3 {
        run.recycle(4)?;
        let copy = run.dir.path().join(format!("copy{n}"));
        run.db.checkpoint(&copy)?;
        made.push((listing(&copy), copy, run.model.clone()));
    }
    run.recycle(30)?;
    for (files, copy, model) in made {
        assert!(listing(&copy) == files);
        let db = Db::open(&copy, Options::new())?;
        assert!(contents(db.iter())? == model);
    }
    Ok(())
}

#[test]
fn other_openers_read_what_they_opened() -> Result<()> {
    if !tells_openers() {
        return Ok(());
    }
    let mut run = Run::new("")?;
    run.recycle(2)?;
    run.db.flush()?;
    run.db.wait_for_compaction()?;
    let then = run.model.clone();
    let beside = Db::open_read_only(run.at(), Options::new())?;
    let second = Db::open_secondary(run.at(), run.dir.path().join("second"), Options::new())?;
    // Every table is open now.
    assert!(contents(beside.iter())? == then && contents(second.iter())? == then);
    let live = run.live();
    run.recycle(20)?;
    assert!(run.live() != live);
    assert!(contents(beside.iter())? == then && contents(second.iter())? == then);
    for _ in 0..10 {
        run.recycle(2)?;
        match second.try_catch_up_with_primary() {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::TryAgain => {}
            Err(e) => return Err(e),
        }
    }
    run.db.flush()?;
    run.db.wait_for_compaction()?;
    second.try_catch_up_with_primary()?;
    assert!(contents(second.iter())? == run.model);
    assert!(contents(beside.iter())? == then);
    Ok(())
}

#[test]
fn files_stay_while_nothing_may_be_deleted() -> Result<()> {
    if !tells_openers() {
        return Ok(());
    }
    let mut run = Run::new("")?;
    // Often enough that spares wait when deletions stop.
    for _ in 0..60 {
        run.recycle(1)?;
        run.db.disable_file_deletions();
        let asked = run.watched.asked();
        let files = listing(&run.at());
        let tables = |(name, _): &(&String, &Vec<u8>)| name.ends_with(".sst");
        run.write(1_500)?;
        assert_eq!(run.watched.asked(), asked);
        for (name, bytes) in files.iter().filter(tables) {
            // One that is being written grows.
            let now = std::fs::read(run.at().join(name)).expect("it is still there");
            assert!(now.starts_with(bytes), "{name}");
        }
        run.db.enable_file_deletions(false);
    }
    run.db.wait_for_compaction()?;
    run.has_live_tables_alone();
    run.check()
}

#[test]
fn rocksdb_reads_what_was_written_over() -> Result<()> {
    if !tells_openers() {
        return Ok(());
    }
    let Some(tools) = Tools::find() else {
        return Ok(());
    };
    let mut tally = Tally::default();
    let mut run = Run::new("")?;
    run.recycle(30)?;
    run.db.flush()?;
    run.db.close()?;
    let expected = Contents::from([("default".to_owned(), run.model.clone())]);
    tools.examine(&run.at(), &expected, "tables over others", &mut tally);
    assert!(tally.files > 0);
    say(format_args!("{tally}"));
    Ok(())
}
