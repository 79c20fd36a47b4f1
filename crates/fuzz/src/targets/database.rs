//! Targets that are a whole database, in memory, one thread at a time: a directory of hostile
//! files, hostile batches, and prepared transactions.
//!
//! Checks beyond an answer: an open that finds corruption changes no byte; a repair deletes nothing
//! and leaves a database that opens; what was written before a crash is there after it.

use super::formats::{change_batch, every_record};
use super::logs::{change_manifest, change_records};
use super::{LARGE, Seed, Target, blobs, tables};
use crate::input::Cut;
use crate::mutate::{self, Source};
use crate::parts::{self, Parts};
use crate::repair;
use esker::merge_operator::StringAppend;
use esker::observe::Logger;
use esker::options::InfoLogLevel;
use esker::{
    Db, Error, FamilyDescriptor, FamilyHandle, FileKind, HealthState, Options, ReadOptions,
    RepairMode, Result, WriteBatch, WriteOptions,
};
use esker_env::{FileSystem, WriteOptions as FileOptions};
use esker_files::log::LogWriterOptions;
use esker_format::file_name::parse_file_name;
use esker_sim::disk::SimFs;
use esker_sim::sim_env::SimEnv;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "directory",
        about: "all files of a database: opened in every recovery mode, read only and as a secondary, repaired",
        run: directory,
        seeds: directories,
        change: change_directory,
        memory: LARGE,
    },
    Target {
        name: "batch-write",
        about: "batches given to a database, which is killed and opened again",
        run: batch_write,
        seeds: writes,
        change: change_batch,
        memory: LARGE,
    },
    Target {
        name: "transaction",
        about: "prepared transactions with any name, through a crash",
        run: transaction,
        seeds: transactions,
        change: mutate::bytes,
        memory: LARGE,
    },
];

pub(super) const DIR: &str = "/db";
/// Entries that one walk looks at.
const ENTRIES_MAX: usize = 5_000;
const MODES: [&str; 4] = [
    "kTolerateCorruptedTailRecords",
    "kAbsoluteConsistency",
    "kPointInTimeRecovery",
    "kSkipAnyCorruptedRecords",
];

struct Silent;

impl Logger for Silent {
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Fatal
    }
    fn log(&self, _level: InfoLogLevel, _line: &str) {}
}

/// Options of all databases here, around `disk`.
pub(super) fn options(world: &SimEnv, disk: &SimFs) -> Options {
    let mut o = Options::new()
        .create_if_missing(true)
        .env(world.env(disk, 1));
    o.db.info_log = Some(Arc::new(Silent));
    o.db.stats_dump_period_sec = 0;
    for (name, value) in [
        ("allow_2pc", "true"),
        ("write_buffer_size", "65536"),
        ("block_size", "256"),
        ("max_background_jobs", "1"),
        ("compression", "kNoCompression"),
    ] {
        o.set_in_place(name, value).expect("an option of ours");
    }
    o.family.arena_block_size = 4 << 10;
    o.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
    o
}

// ---- disks ----

/// A disk that holds these files below `dir`. Names that would lead out of it lose the part that
/// does.
pub(super) fn disk_of(dir: &str, files: &Parts) -> SimFs {
    let disk = SimFs::new().without_log();
    disk.create_dir_all(Path::new(dir)).expect("an empty disk");
    for (name, bytes) in files {
        let inside: PathBuf = Path::new(name)
            .components()
            .filter(|c| matches!(c, Component::Normal(_)))
            .collect();
        let path = Path::new(dir).join(inside);
        let made = || -> Result<()> {
            disk.create_dir_all(path.parent().unwrap_or(Path::new(dir)))?;
            let mut file = disk.create(&path, FileOptions::default())?;
            file.append(bytes)?;
            file.close()
        };
        // A file cannot stand where a directory is.
        let _ = made();
    }
    disk
}

/// The files below `dir`, without those that say nothing.
pub(super) fn files_of(dir: &str, disk: &SimFs) -> Parts {
    let all = disk.image().list();
    all.iter()
        .filter_map(|(path, bytes)| {
            let name = path.strip_prefix(dir)?.strip_prefix('/')?;
            let dull = matches!(name, "LOCK" | "LOG");
            (!dull).then(|| (name.to_owned(), bytes.to_vec()))
        })
        .collect()
}

/// Runs `part` in a world of its own, in which one thread runs at a time.
pub(super) fn alone<R>(part: impl FnOnce(&SimEnv) -> R) -> R {
    SimEnv::controlled().play(1, part)
}

// ---- seeds ----

fn fill(db: &Db, other: &FamilyHandle) -> Result<()> {
    for i in 0..30u64 {
        db.put(format!("key{i:03}"), vec![b'a' + (i % 26) as u8; 40])?;
        db.put_cf(other, format!("other{i:03}"), format!("value {i}"))?;
    }
    db.delete("key004")?;
    db.merge("key005", "operand")?;
    db.delete_range_cf(other, "other010", "other015")?;
    db.put_entity(other, "wide", &[("", "default"), ("column", "value")])
}

fn made(settings: &[(&str, &str)], with_options: bool) -> Vec<u8> {
    let make = |world: &SimEnv| -> Result<Vec<u8>> {
        let disk = SimFs::new().without_log();
        let mut o = options(world, &disk).create_missing_column_families(true);
        for (name, value) in settings {
            o.set_in_place(name, value)?;
        }
        let families = ["default", "other"]
            .map(|n| FamilyDescriptor::new(n, o.family.clone()))
            .to_vec();
        let db = Db::open_families(DIR, o, families)?;
        let other = db
            .family("other")
            .ok_or_else(|| Error::not_found("other"))?;
        fill(&db, &other)?;
        db.flush()?;
        db.compact_range(None, None)?;
        fill(&db, &other)?;
        db.flush_cf(&other, &esker::FlushOptions::default())?;
        fill(&db, &other)?;
        let mut batch = WriteBatch::new();
        batch.put(b"prepared", b"value")?;
        db.prepare_transaction(b"transaction", &batch, &WriteOptions::default())?;
        db.flush_wal(true)?;
        // As a kill leaves it: with its log.
        let killed = disk.kill();
        drop(db);
        let mut files = files_of(DIR, &killed);
        files.retain(|(name, _)| with_options || !name.starts_with("OPTIONS"));
        Ok(parts::join(&files))
    };
    alone(make).expect("a database of our own")
}

fn directories() -> Vec<Seed> {
    vec![
        (
            "plain",
            made(
                &[
                    ("format_version", "5"),
                    ("filter_policy", "bloomfilter:10:false"),
                ],
                false,
            ),
        ),
        (
            "blobs",
            made(
                &[
                    ("enable_blob_files", "true"),
                    ("min_blob_size", "20"),
                    ("blob_compression_type", "kLZ4Compression"),
                ],
                false,
            ),
        ),
        (
            "partitioned",
            made(
                &[
                    ("index_type", "kTwoLevelIndexSearch"),
                    ("partition_filters", "true"),
                    ("metadata_block_size", "128"),
                    ("filter_policy", "ribbonfilter:10:-1"),
                    ("format_version", "6"),
                    ("wal_compression", "kZSTD"),
                ],
                false,
            ),
        ),
        (
            "recycled-logs",
            made(
                &[("recycle_log_file_num", "2"), ("compression", "kZSTD")],
                true,
            ),
        ),
    ]
}

// ---- changes ----

fn change_directory(input: &mut Vec<u8>, source: &mut Source<'_>) {
    let mut files = parts::split(input);
    if files.is_empty() {
        return mutate::bytes(input, source);
    }
    for _ in 0..1 + source.rng.below(2) {
        let at = source.rng.index(files.len());
        match source.rng.below(16) {
            0 if files.len() > 1 => drop(files.remove(at)),
            1 => {
                let other = source.rng.index(files.len());
                files[at].1 = files[other].1.clone();
            }
            2 => {
                let other = files[source.rng.index(files.len())].0.clone();
                let number = source.rng.below(30);
                files[at].0 = match source.rng.below(3) {
                    0 => other,
                    1 => format!("{number:06}.sst"),
                    _ => format!("{number:06}.log"),
                };
            }
            3 => {
                let keep = source.rng.index(files[at].1.len() + 1);
                files[at].1.truncate(keep);
            }
            _ => change_file(&mut files[at], source),
        }
    }
    *input = parts::join(&files);
    input.truncate(mutate::LONGEST);
}

/// Changes a file's bytes in the way of its kind.
fn change_file((name, bytes): &mut (String, Vec<u8>), source: &mut Source<'_>) {
    let mut source = Source {
        rng: source.rng.fork(),
        others: &[],
    };
    let base = name.rsplit('/').next().unwrap_or(name);
    match parse_file_name(base) {
        Some((FileKind::Wal, number)) if source.rng.one_in(2) => {
            let options = LogWriterOptions {
                recycle: Some(number),
                ..LogWriterOptions::default()
            };
            *bytes = change_records(bytes, number, options, &mut source, change_batch);
        }
        Some((FileKind::Wal, _)) => {
            mutate::bytes(bytes, &mut source);
            if source.rng.one_in(2) {
                repair::log(bytes);
            }
        }
        Some((FileKind::Manifest, _)) => change_manifest(bytes, &mut source),
        Some((FileKind::Table, _)) => tables::change_table(bytes, &mut source),
        Some((FileKind::Blob, _)) => blobs::change(bytes, &mut source),
        _ => mutate::text(bytes, &mut source),
    }
}

// ---- a directory ----

/// The content of a database: every entry it shows, or that reading failed.
type DatabaseText = BTreeMap<String, (Vec<(Vec<u8>, Vec<u8>)>, bool)>;

fn read_all(db: &Db) -> DatabaseText {
    let mut said = DatabaseText::new();
    for family in db.families() {
        let (mut entries, mut it) = (Vec::new(), db.iter_cf(&family));
        it.seek_to_first();
        while it.valid() && entries.len() < ENTRIES_MAX {
            entries.push((it.key().to_vec(), it.value().to_vec()));
            it.next();
        }
        let sound = it.status().is_ok();
        let mut left = ENTRIES_MAX;
        it.seek_to_last();
        while it.valid() && left > 0 {
            left -= 1;
            it.prev();
        }
        for (key, _) in entries.iter().step_by(1 + entries.len() / 4) {
            let _ = db.get_cf(&family, key);
            it.seek(key);
            it.seek_for_prev(key);
        }
        let _ = db.get_entity(&family, "wide", &ReadOptions::default());
        said.insert(family.name().to_owned(), (entries, sound));
    }
    said
}

fn descriptors(o: &Options) -> Result<Vec<FamilyDescriptor>> {
    let names = Db::list_families(DIR, o)?;
    Ok(names
        .into_iter()
        .map(|n| FamilyDescriptor::new(n, o.family.clone()))
        .collect())
}

fn open(o: Options) -> Result<Db> {
    let families = descriptors(&o)?;
    Db::open_families(DIR, o, families)
}

fn directory(input: &[u8]) {
    let files = parts::split(input);
    for mode in MODES {
        alone(|world| writable(world, &files, mode));
    }
    alone(|world| readable(world, &files));
    alone(|world| repaired(world, &files));
}

fn writable(world: &SimEnv, files: &Parts, mode: &str) {
    let disk = disk_of(DIR, files);
    let before = disk.image().list();
    let with_mode = |disk: &SimFs| options(world, disk).set("wal_recovery_mode", mode);
    let o = with_mode(&disk).expect("a mode");
    let db = match open(o.create_if_missing(false)) {
        Ok(db) => db,
        Err(e) => {
            if e.is_corruption() {
                unchanged(&before, &disk.image().list(), &e);
            }
            return;
        }
    };
    let _ = read_all(&db);
    let _ = (db.verify_checksums(), db.verify_file_checksums());
    let written = db.put("new", "value").and_then(|()| db.flush());
    let _ = db.compact_range(None, None);
    let _ = read_all(&db);
    let closed = db.close();
    drop(db);
    if written.is_ok() && closed.is_ok() {
        let again = open(with_mode(&disk).expect("a mode").create_if_missing(false));
        if let Err(e) = again.map(|db| read_all(&db)) {
            panic!("it was open and written to, and does not open again: {e}");
        }
    }
}

/// Nothing that was there is gone or another, and nothing new stands beside it.
fn unchanged(before: &FileContents, after: &FileContents, why: &Error) {
    for (path, bytes) in before {
        assert!(
            after.get(path) == Some(bytes),
            "{path} was changed or deleted by an open that failed: {why}"
        );
    }
    let new: Vec<_> = after.keys().filter(|p| !before.contains_key(*p)).collect();
    assert!(new.is_empty(), "{new:?} made by an open that failed: {why}");
}

type FileContents = BTreeMap<String, Arc<Vec<u8>>>;

fn readable(world: &SimEnv, files: &Parts) {
    let disk = disk_of(DIR, files);
    let before = disk.image().list();
    let o = options(world, &disk);
    if let Ok(families) = descriptors(&o)
        && let Ok(db) = Db::open_families_read_only(DIR, o.clone(), families)
    {
        let _ = read_all(&db);
        let _ = db.sorted_wal_files();
    }
    let after = disk.image().list();
    for (path, bytes) in &before {
        assert!(
            after.get(path) == Some(bytes),
            "{path} was changed by an open for reading only"
        );
    }
    if let Ok(families) = descriptors(&o)
        && let Ok(db) = Db::open_families_secondary(DIR, "/secondary", o.clone(), families)
    {
        let _ = read_all(&db);
        let _ = db.try_catch_up_with_primary();
        let _ = read_all(&db);
    }
    let _ = Db::has_logs(DIR, &o);
    let _ = Db::destroy_dry_run(DIR, &o);
}

fn repaired(world: &SimEnv, files: &Parts) {
    let disk = disk_of(DIR, files);
    let before = disk.image().list();
    let o = options(world, &disk);
    let _ = Db::repair_families(DIR, &o, &[], RepairMode::DryRun);
    let dry = disk.image().list();
    assert!(dry == before, "a repair that was to change nothing did");
    let report = match Db::repair(DIR, &o) {
        Ok(report) => report,
        Err(_) => return,
    };
    let after = disk.image().list();
    let contents: std::collections::BTreeSet<&Vec<u8>> = after.values().map(Arc::as_ref).collect();
    for (path, bytes) in &before {
        let name = path.rsplit('/').next().unwrap_or(path);
        let kind = parse_file_name(name).map(|(kind, _)| kind);
        let kept = matches!(
            kind,
            Some(FileKind::Table | FileKind::Blob | FileKind::Wal | FileKind::Manifest)
        );
        assert!(
            !kept || contents.contains(&**bytes),
            "{path} is nowhere after a repair: {report:?}"
        );
    }
    match open(o.create_if_missing(false)) {
        Ok(db) => drop(read_all(&db)),
        Err(e) => panic!("repaired, it does not open: {e}; {report:?}"),
    }
}

// ---- writes ----

fn writes() -> Vec<Seed> {
    let mut sum = WriteBatch::new();
    for i in 0..20u64 {
        sum.merge(b"sum", &i.to_le_bytes())
            .expect("a batch has room");
    }
    let all = every_record().expect("our own batch").into_bytes();
    vec![("every-record", all), ("merges", sum.into_bytes())]
}

/// A new database with the families that the seeds name.
fn fresh(world: &SimEnv, disk: &SimFs) -> Result<Db> {
    let o = options(world, disk);
    let family = o.family.clone();
    let db = Db::open(DIR, o)?;
    for name in ["one", "two", "three"] {
        db.create_family(name, family.clone())?;
    }
    Ok(db)
}

fn batch_write(input: &[u8]) {
    let Ok(mut batch) = WriteBatch::from_bytes(input.to_vec()) else {
        return;
    };
    alone(|world| {
        let disk = SimFs::new().without_log();
        let db = fresh(world, &disk).expect("a new database");
        let written = db.write(&mut batch);
        if written.is_err() {
            assert_eq!(
                db.health(),
                HealthState::Running,
                "a refused batch stopped the database"
            );
        }
        let said = read_all(&db);
        let killed = disk.kill();
        drop(db);
        let db = open(options(world, &killed)).expect("it was killed, not damaged");
        assert_eq!(
            read_all(&db),
            said,
            "the log says something else than the memtable"
        );
        db.flush().expect("a flush of what was taken");
        assert_eq!(
            read_all(&db),
            said,
            "the table says something else than the memtable"
        );
        let _ = db.compact_range(None, None);
        let compacted = read_all(&db);
        let whole = said.values().all(|(_, sound)| *sound);
        assert!(
            !whole || compacted == said,
            "compacted it says something else"
        );
    });
}

fn transactions() -> Vec<Seed> {
    vec![
        ("name", b"\x05first\x03key\x05value".to_vec()),
        ("long", [&[255][..], &[b'n'; 300]].concat()),
    ]
}

fn transaction(input: &[u8]) {
    let mut cut = Cut(input);
    let (name, key, value) = (cut.piece(), cut.piece(), cut.0);
    alone(|world| {
        let disk = SimFs::new().without_log();
        let db = fresh(world, &disk).expect("a new database");
        let mut batch = WriteBatch::new();
        batch
            .put(key, &value[..value.len().min(100_000)])
            .expect("a batch has room");
        let how = WriteOptions::default();
        let prepared = db.prepare_transaction(name, &batch, &how);
        let killed = disk.kill();
        drop(db);
        let db = open(options(world, &killed)).expect("it was killed, not damaged");
        let found = db.take_prepared_transactions();
        if prepared.is_err() {
            assert!(found.is_empty(), "what was refused is prepared");
            return;
        }
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, name);
        assert_eq!(found[0].1.body(), batch.body());
        db.commit_transaction(name, &batch, &how)
            .expect("committed");
        let killed = killed.kill();
        drop(db);
        let db = open(options(world, &killed)).expect("it was killed, not damaged");
        assert!(db.take_prepared_transactions().is_empty());
        assert_eq!(
            db.get(key).expect("read").as_deref(),
            Some(&value[..value.len().min(100_000)])
        );
    });
}
