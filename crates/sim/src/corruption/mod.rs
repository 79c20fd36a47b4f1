//! Damage to files at rest: bits that flip, blocks that are zeroed or swapped, files that end early
//! or are gone.
//!
//! A [`Subject`] is a directory as a disk image with what it holds. Each [`Damage`] makes another
//! image of it, which is opened in one of the four recovery modes and read from end to end. Allowed
//! are: the same data; a clear error, at open or while reading, with every file as it was; or, in a
//! mode that tolerates torn tails, an earlier state that a log line reports (in the mode that skips
//! what it cannot read, any state that is reported). Not allowed: other data, a loss that nobody
//! reports, a panic, a table or blob file that is gone afterwards. A case over a limit of time ends
//! the process with the damage's name: a thread that hangs cannot be ended.
//!
//! The one loss that nobody can report is counted by itself ([`Outcome::Unnoticeable`]): a log or
//! MANIFEST that ends early, at the border of two records, where no other file has a word of how
//! long it was. Databases that Esker closed never get that far; of those that were killed the
//! newest log and the MANIFEST may; of those that RocksDB wrote every log. Nor can anybody notice
//! damage to its tables that were written without checksums.
//!
//! An image in memory shares all bytes that were not damaged, so a case costs one copy and an open.

mod damage;
pub mod repairs;

use crate::Rng;
use crate::crash::{Point, Variant};
use crate::disk::{Image, Node, SimFs};
use crate::model::drive::Session;
use crate::model::judge::{ViolationKind, violation};
use crate::model::readers::prints;
use crate::model::readers::{Prints, Reader, ReaderView};
use crate::model::settings::{DIR, Settings};
use crate::model::state::State;
use crate::run::{self, Failure, RunPart};
use crate::seed_sweep::threads;
use crate::sim_env::SimEnv;
use esker::merge_operator::{Base, FailureScope, Merged};
use esker::observe::Logger;
use esker::options::InfoLogLevel;
use esker::{Db, MergeOperator, Options};
use esker_env::{
    Clock, Executor, FileSystem, ReadOptions as FileReadOptions, SystemClock, ThreadExecutor,
    WriteOptions as FileWriteOptions,
};
use esker_files::log::{LogReader, LogReaderOptions, ReadOutcome};
use esker_files::manifest::ManifestReader;
use esker_format::FileNo;
use esker_format::edit::VersionEdit;
use esker_format::file_name::{FileKind, parse_file_name};
use esker_format::footer::{FOOTER_LEN, Footer};
use esker_status::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use damage::damaged;
pub use damage::{Change, Damage, MODES};

/// Steps of the workload that makes a subject.
const STEPS: usize = 80;

/// A case that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(30);

/// Which engine wrote a database, and how that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Esker, which closed it.
    Closed,
    /// Esker, which was killed.
    Killed,
    /// RocksDB.
    Foreign,
}

/// A database to damage.
#[derive(Debug)]
pub struct Subject {
    /// Its name in reports.
    pub name: String,
    settings: Option<Settings>,
    origin: Origin,
    image: Image,
    /// The print of each family.
    whole: BTreeMap<Arc<str>, u64>,
    /// The tables and blob files that are there after it was opened and closed: the others were
    /// obsolete.
    stays: BTreeSet<String>,
    /// States that it had before, oldest first; empty where they are not known.
    earlier: Vec<State>,
}

/// Result of the damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It reads as before.
    Same,
    /// Opening says what is wrong.
    Refused,
    /// It opens, and reading says what is wrong.
    Unreadable,
    /// It opens at an earlier state, and the log says that something is lost.
    Reported,
    /// It opens at an earlier state, and nothing in the directory tells it from a database that
    /// never went further.
    Unnoticeable,
}

/// How often each outcome was met.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Damages of every kind.
    pub cases: u64,
    /// [`Outcome::Same`].
    pub same: u64,
    /// [`Outcome::Refused`].
    pub refused: u64,
    /// [`Outcome::Unreadable`].
    pub unreadable: u64,
    /// [`Outcome::Reported`].
    pub reported: u64,
    /// [`Outcome::Unnoticeable`].
    pub unnoticeable: u64,
    /// Rules that were broken.
    pub broken: u64,
}

impl Counts {
    /// Counts one more.
    pub fn add(&mut self, outcome: Outcome) {
        self.cases += 1;
        *match outcome {
            Outcome::Same => &mut self.same,
            Outcome::Refused => &mut self.refused,
            Outcome::Unreadable => &mut self.unreadable,
            Outcome::Reported => &mut self.reported,
            Outcome::Unnoticeable => &mut self.unnoticeable,
        } += 1;
    }

    /// Adds up.
    pub fn merge(&mut self, other: &Counts) {
        self.cases += other.cases;
        self.same += other.same;
        self.refused += other.refused;
        self.unreadable += other.unreadable;
        self.reported += other.reported;
        self.unnoticeable += other.unnoticeable;
        self.broken += other.broken;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "damages: {}, violations: {} ({} read as before, {} refused, {} errors while reading, {} earlier states \
             reported, {} that nothing can notice)",
            self.cases,
            self.broken,
            self.same,
            self.refused,
            self.unreadable,
            self.reported,
            self.unnoticeable
        )
    }
}

/// Listens for what recovery reports as lost.
struct Listener(AtomicBool);

impl Logger for Listener {
    fn level(&self) -> InfoLogLevel {
        InfoLogLevel::Warn
    }
    fn log(&self, _level: InfoLogLevel, line: &str) {
        if line.starts_with("recovery: ") {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl Subject {
    /// A database made by a workload of `seed`, closed or killed at its end.
    pub fn simulated(seed: u64) -> Result<Subject> {
        let mut settings = Settings::draw(seed);
        settings.info_log = false;
        // What is damaged is the database, in its own directory.
        settings.backups = false;
        settings.table_dirs = None;
        let origin = match seed % 2 {
            0 => Origin::Closed,
            _ => Origin::Killed,
        };
        let disk = run::empty_disk()?;
        let history = SimEnv::controlled().play(seed, |world| {
            let mut session = Session::open(world, &settings, &disk, State::default(), seed)?;
            session.begin()?;
            session.run(STEPS)?;
            // What a process buffers dies with it.
            session.db()?.flush_wal(false)?;
            if origin == Origin::Closed {
                session.close()?;
            }
            Ok::<_, Error>(session.finish())
        })?;
        let end = Point::at(&history.log, history.log.ops.len());
        Subject {
            name: format!("seed-{seed}"),
            settings: Some(settings),
            origin,
            image: end.state(Variant::Kept, 0),
            whole: BTreeMap::new(),
            stays: BTreeSet::new(),
            earlier: history.states,
        }
        .known()
    }

    /// The database in a real directory, which RocksDB wrote. Its earlier states are not known.
    pub fn load(name: &str, directory: &Path) -> Result<Subject> {
        let failed = |e: std::io::Error| Error::io("read", directory, &e);
        let mut image = Image::default();
        image.dirs.push(BTreeMap::new());
        image.dirs[0].insert(Arc::from("db"), Node::Dir(crate::disk::DirNo(1)));
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_file() {
                let bytes = std::fs::read(entry.path()).map_err(failed)?;
                let file = crate::disk::Ino(image.files.len() as u32);
                image.files.push(Arc::new(bytes));
                let called = entry.file_name().to_string_lossy().into_owned();
                image.dirs[1].insert(Arc::from(called), Node::File(file));
            }
        }
        Subject {
            name: name.to_owned(),
            settings: None,
            origin: Origin::Foreign,
            image,
            whole: BTreeMap::new(),
            stays: BTreeSet::new(),
            earlier: Vec::new(),
        }
        .known()
    }

    /// The files that can be damaged: those that hold the database.
    pub fn files(&self) -> BTreeMap<String, Arc<Vec<u8>>> {
        let mut files = self.image.list();
        files.retain(|path, _| {
            let name = path.rsplit('/').next().unwrap_or(path);
            name != "LOCK" && name != "LOG" && !name.starts_with("LOG.")
        });
        files
    }

    fn options(
        &self,
        world: &SimEnv,
        disk: &SimFs,
        ear: &Arc<Listener>,
        mode: usize,
    ) -> Result<Options> {
        let mut options = match &self.settings {
            Some(settings) => settings.options(world, disk)?,
            None => {
                let mut options = Options::new().create_if_missing(true);
                options = options.env(world.env(disk, 1));
                options.family.merge_operator = Some(Arc::new(JoinOperator));
                options
            }
        };
        options.set_in_place("wal_recovery_mode", MODES[mode])?;
        options.db.info_log = Some(ear.clone());
        options.set_in_place("disable_auto_compactions", "true")?;
        Ok(options)
    }

    /// Finds out what it holds, and which files it needs.
    fn known(mut self) -> Result<Subject> {
        let disk = SimFs::from_image(self.image.clone()).without_log();
        let ear = Arc::new(Listener(AtomicBool::new(false)));
        let db = Db::open(DIR, self.options(&SimEnv::default(), &disk, &ear, 0)?)?;
        self.whole = read(&db)?;
        db.close()?;
        let data = |path: &String| path.ends_with(".sst") || path.ends_with(".blob");
        self.stays = disk.image().list().into_keys().filter(data).collect();
        Ok(self)
    }

    fn damaged(&self, damage: &Damage) -> Option<Image> {
        damaged(&self.image, damage)
    }

    /// Cuts each edit of the MANIFEST everywhere, as if its checksum had been made of the rest:
    /// what is left is refused, or it is an edit of fewer fields, and never one with another number
    /// in it. How many cuts there were.
    pub fn cut_edits(&self) -> Result<u64> {
        let disk = SimFs::from_image(self.image.clone()).without_log();
        let mut cuts = 0;
        for path in self
            .files()
            .into_keys()
            .filter(|p| p.contains("/MANIFEST-"))
        {
            let mut manifest = ManifestReader::open(&disk, Path::new(&path))?;
            while let Some(group) = manifest.next_group()? {
                for edit in group.edits {
                    let whole = edit.encode();
                    cuts += whole.len() as u64;
                    let wrong = (0..whole.len()).find(|at| {
                        let part = VersionEdit::decode(&whole[..*at]);
                        part.is_ok_and(|part| part.encode() != whole[..*at])
                    });
                    if let Some(at) = wrong {
                        let text = format!("{path}: {at} bytes of an edit are read as others");
                        return Err(Error::corruption(text));
                    }
                }
            }
        }
        Ok(cuts)
    }

    /// Damages the database, opens it and reads it. `Err` says which rule was broken.
    pub fn suffer(&self, world: &SimEnv, damage: &Damage) -> std::result::Result<Outcome, String> {
        let Some(image) = self.damaged(damage) else {
            return Ok(Outcome::Same);
        };
        let before = image.list();
        let read = self.read_first(world, damage, &image)?;
        let disk = SimFs::from_image(image).without_log();
        let ear = Arc::new(Listener(AtomicBool::new(false)));
        let options = self
            .options(world, &disk, &ear, damage.mode)
            .map_err(|e| e.to_string())?;
        let opened =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| Db::open(DIR, options)));
        let db = match opened.map_err(|_| "opening panicked".to_owned())? {
            Ok(db) => db,
            Err(error) => {
                clear(&error)?;
                untouched(&before, &disk)?;
                match error.kind() {
                    ErrorKind::NotSupported => self.two_phase_agrees(world, damage, &read)?,
                    _ => read.iter().try_for_each(|r| r.agrees(Err(&error)))?,
                }
                return Ok(Outcome::Refused);
            }
        };
        let reading = std::panic::AssertUnwindSafe(|| {
            let shown = self::read(&db);
            read.iter().take(1).try_for_each(|r| r.agrees(Ok(&shown)))?;
            self.judge(shown, &ear, damage)
        });
        let outcome =
            std::panic::catch_unwind(reading).map_err(|_| "reading panicked".to_owned())?;
        // A close that flushes may find the damage too.
        if let Err(error) = db.close() {
            clear(&error)?;
        }
        // Where all is there, what a compaction wrote before the cut edit is left over: its inputs
        // have the same entries.
        if !matches!(outcome, Ok(Outcome::Same)) {
            self.data_stays(&before, &disk)?;
        }
        outcome
    }

    /// Prepared transactions stop a plain writer and no reader, so readers are held against a
    /// writer that takes them.
    fn two_phase_agrees(
        &self,
        world: &SimEnv,
        damage: &Damage,
        read: &[ReaderView],
    ) -> std::result::Result<(), String> {
        let Some(image) = self.damaged(damage) else {
            return Ok(());
        };
        let disk = SimFs::from_image(image).without_log();
        let ear = Arc::new(Listener(AtomicBool::new(false)));
        let options = self.options(world, &disk, &ear, damage.mode);
        let options = options.and_then(|o| o.set("allow_2pc", "true"));
        let options = options.map_err(|e| e.to_string())?;
        let opened = match Db::open(DIR, options) {
            Ok(db) => Ok(self::read(&db)),
            Err(error) => Err(error),
        };
        read.iter().try_for_each(|r| r.agrees(opened.as_ref()))
    }

    /// Checks the readers before anybody opens the database for writing. A secondary instance has a
    /// mode of its own for the ends of logs, so it comes behind, where that is the mode of the
    /// writer too, and need only refuse what a writer refuses.
    fn read_first(
        &self,
        world: &SimEnv,
        damage: &Damage,
        image: &Image,
    ) -> std::result::Result<Vec<ReaderView>, String> {
        let tolerates = MODES[damage.mode] == "kTolerateCorruptedTailRecords";
        let readers = [Reader::ReadOnly, Reader::Secondary];
        let readers = readers.into_iter().take(1 + usize::from(tolerates));
        let look = |reader: Reader| {
            let disk = SimFs::from_image(image.clone()).without_log();
            let ear = Arc::new(Listener(AtomicBool::new(false)));
            let options = self.options(world, &disk, &ear, damage.mode)?;
            let looking = std::panic::AssertUnwindSafe(|| reader.look(options, &disk));
            let found = std::panic::catch_unwind(looking);
            found.unwrap_or_else(|_| Err(Error::aborted(format!("{reader:?} panicked"))))
        };
        let found = readers.map(look).collect::<Result<_>>();
        found.map_err(|e| e.to_string())
    }

    /// Tables and blob files that are needed are not deleted.
    fn data_stays(
        &self,
        before: &BTreeMap<String, Arc<Vec<u8>>>,
        disk: &SimFs,
    ) -> std::result::Result<(), String> {
        let after = disk.image().list();
        let gone = |path: &&String| before.contains_key(*path) && !after.contains_key(*path);
        match self.stays.iter().find(gone) {
            Some(path) => Err(format!("{path} was deleted")),
            None => Ok(()),
        }
    }

    fn judge(
        &self,
        shown: Result<Prints>,
        ear: &Listener,
        damage: &Damage,
    ) -> std::result::Result<Outcome, String> {
        let reported = ear.0.load(Ordering::Relaxed);
        let found = match shown {
            Ok(found) => found,
            Err(error) => {
                clear(&error)?;
                return Ok(Outcome::Unreadable);
            }
        };
        if found == self.whole {
            return Ok(Outcome::Same);
        }
        let skips = MODES[damage.mode] == "kSkipAnyCorruptedRecords";
        if reported && skips {
            return Ok(Outcome::Reported);
        }
        let fits = |state: &State| {
            found
                .iter()
                .all(|(name, print)| state.print(name) == *print)
        };
        if !self.earlier.is_empty() && !self.earlier.iter().any(fits) {
            let lost = if reported { "reported" } else { "silent" };
            return Err(format!(
                "data that was never there ({lost}): {found:?}, not {:?}",
                self.whole
            ));
        }
        if !reported && self.is_unnoticeable(damage) {
            return Ok(Outcome::Unnoticeable);
        }
        if !reported {
            return Err("an earlier state, and no word of it".to_owned());
        }
        if MODES[damage.mode] == "kAbsoluteConsistency" {
            return Err("an earlier state, in the mode that takes none".to_owned());
        }
        Ok(Outcome::Reported)
    }

    /// Returns whether the directory is now as one of a database that went no further.
    fn is_unnoticeable(&self, damage: &Damage) -> bool {
        let files = self.image.list();
        let is_log = damage.path.ends_with(".log");
        let is_manifest = damage.path.contains("/MANIFEST-");
        let is_newest = || {
            let logs = files
                .iter()
                .filter(|(p, b)| p.ends_with(".log") && !b.is_empty());
            logs.map(|(p, _)| p).max() == Some(&damage.path)
        };
        let ends_clean = |len: usize| {
            let bytes = files.get(&damage.path).map(|b| b[..len].to_vec());
            bytes.is_some_and(|bytes| ends_between_records(&damage.path, bytes))
        };
        match (self.origin, damage.change) {
            (Origin::Foreign, _) if is_unchecked(&damage.path, &files) => true,
            (Origin::Foreign, Change::Delete) => is_log,
            (Origin::Foreign, Change::Cut(len)) => (is_log || is_manifest) && ends_clean(len),
            (Origin::Killed, Change::Cut(len)) => {
                (is_manifest || is_log && is_newest()) && ends_clean(len)
            }
            _ => false,
        }
    }
}

/// Returns whether a file is a table whose writer made no checksums.
fn is_unchecked(path: &str, files: &BTreeMap<String, Arc<Vec<u8>>>) -> bool {
    let footer = files.get(path).filter(|_| path.ends_with(".sst"));
    let footer = footer.map(|bytes| {
        let tail = &bytes[bytes.len().saturating_sub(FOOTER_LEN)..];
        Footer::decode(tail, bytes.len() as u64)
    });
    footer.is_some_and(|f| f.is_ok_and(|f| f.checksum as u8 == 0))
}

/// Returns whether a log or MANIFEST of `bytes` ends where a record ends.
fn ends_between_records(path: &str, bytes: Vec<u8>) -> bool {
    let number = parse_file_name(path.rsplit('/').next().unwrap_or(path));
    let number = match number {
        Some((FileKind::Wal, n)) => n,
        _ => FileNo(0),
    };
    let disk = SimFs::new().without_log();
    let at = Path::new("/log");
    let file = disk
        .create(at, FileWriteOptions::default())
        .and_then(|mut file| {
            file.append(&bytes)?;
            file.close()?;
            disk.open_read(at, FileReadOptions::default())
        });
    let Ok(file) = file else {
        return false;
    };
    let mut reader = LogReader::new(file, LogReaderOptions::new(number));
    loop {
        match reader.next() {
            Ok(ReadOutcome::End) => return true,
            Ok(ReadOutcome::TornTail(_) | ReadOutcome::Damaged(_)) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

/// The merge operator that the databases of others were written with: operands joined by commas.
struct JoinOperator;

impl MergeOperator for JoinOperator {
    fn name(&self) -> &str {
        "CatOp"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> std::result::Result<Merged, FailureScope> {
        let base = match base {
            Base::None => None,
            Base::Value(v) => Some(v),
            Base::Entity(_) => return Err(FailureScope::TryMerge),
        };
        let parts: Vec<&[u8]> = base.into_iter().chain(operands.iter().copied()).collect();
        out.extend_from_slice(&parts.join(&b','));
        Ok(Merged::Value)
    }
}

/// Every family's print, read forward; what a get finds for a few keys must be the same.
fn read(db: &Db) -> Result<BTreeMap<Arc<str>, u64>> {
    let handles = db.families().into_iter();
    let handles = handles.map(|f| (Arc::from(f.name()), f)).collect();
    prints(db, &handles)
}

/// The error says something about the database, not about the caller or the program.
fn clear(error: &Error) -> std::result::Result<(), String> {
    match error.kind() {
        ErrorKind::Corruption
        | ErrorKind::NotSupported
        | ErrorKind::InvalidArgument
        | ErrorKind::NotFound
        | ErrorKind::Io => Ok(()),
        _ => Err(format!("an unclear error: {error}")),
    }
}

/// A database that was refused is as it was.
fn untouched(
    before: &BTreeMap<String, Arc<Vec<u8>>>,
    disk: &SimFs,
) -> std::result::Result<(), String> {
    let after = disk.image().list();
    for path in before.keys().chain(after.keys()) {
        if path.ends_with("/LOCK") && before.contains_key(path) {
            continue;
        }
        match (before.get(path), after.get(path)) {
            (Some(then), Some(now)) if then == now => {}
            (Some(_), Some(_)) => return Err(format!("refused, and {path} is changed")),
            (Some(_), None) => return Err(format!("refused, and {path} is gone")),
            (None, _) => return Err(format!("refused, and {path} was made")),
        }
    }
    Ok(())
}

/// Ends the process when a case hangs.
struct Watchdog {
    now: Arc<Mutex<Option<(Instant, String)>>>,
}

impl Watchdog {
    /// The watching thread ends with what is returned.
    fn start() -> Result<Watchdog> {
        let now: Arc<Mutex<Option<(Instant, String)>>> = Arc::default();
        let seen = Arc::downgrade(&now);
        let watch = move || {
            while let Some(case) = seen.upgrade() {
                let late = match &*case.lock().unwrap_or_else(PoisonError::into_inner) {
                    Some((since, name)) if since.elapsed() > LIMIT => Some(name.clone()),
                    _ => None,
                };
                if let Some(name) = late {
                    eprintln!("hangs: {name}");
                    std::process::abort();
                }
                drop(case);
                SystemClock::new().sleep(Duration::from_millis(200));
            }
        };
        drop(ThreadExecutor::new().spawn("watchdog", Box::new(watch))?);
        Ok(Watchdog { now })
    }

    fn begin(&self, name: String) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), name));
    }
}

/// Which damages a subject gets.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// This many: each file deleted in each mode, and random ones.
    Some(u64),
    /// All of [`Damage::every`].
    Every,
}

/// Damages `subject`, and gives each damage that broke a rule to `broken`.
fn damage(
    world: &SimEnv,
    subject: &Subject,
    seed: u64,
    extent: Extent,
    mut broken: impl FnMut(&Damage, &str),
) -> Result<Counts> {
    let files = subject.files();
    let mut rng = Rng::new(seed ^ 0x726f_7420);
    let watchdog = Watchdog::start()?;
    let mut counts = Counts::default();
    let damages: Box<dyn Iterator<Item = Damage> + '_> = match extent {
        Extent::Every => Box::new(Damage::every(&files)),
        Extent::Some(cases) => {
            let random = std::iter::repeat_with(|| Damage::draw(&files, &mut rng));
            let all = Damage::deletions(&files).chain(random);
            Box::new(all.take(usize::try_from(cases).unwrap_or(usize::MAX)))
        }
    };
    for damage in damages {
        watchdog.begin(format!("{} {damage}", subject.name));
        match subject.suffer(world, &damage) {
            Ok(outcome) => counts.add(outcome),
            Err(rule) => {
                counts.cases += 1;
                counts.broken += 1;
                broken(&damage, &rule);
            }
        }
    }
    Ok(counts)
}

/// Damages the database of one seed, as a part of a longer run.
pub fn turn(seed: u64, cases: u64, counts: &mut run::Counts) -> Vec<Failure> {
    let failure = |story, rule: String| Failure {
        seed,
        story,
        cuts: Vec::new(),
        violation: violation(ViolationKind::Broken, rule),
        left: String::new(),
    };
    let mut failures = Vec::new();
    let done = Subject::simulated(seed).and_then(|subject| {
        counts.damages += subject.cut_edits()?;
        damage(
            &SimEnv::default(),
            &subject,
            seed,
            Extent::Some(cases),
            |damage, rule| {
                failures.push(failure(RunPart::Rot(damage.to_string()), rule.to_owned()));
            },
        )
    });
    match done {
        Ok(done) => counts.damages += done.cases,
        Err(e) => failures.push(failure(RunPart::Crash, e.to_string())),
    }
    failures
}

/// Damages the subjects that `make` gives for 0, 1, 2 and so on until there is none, in this many
/// threads; 0 for one per processor.
pub fn run_all(
    jobs: usize,
    extent: Extent,
    make: impl Fn(u64) -> Result<Option<Arc<Subject>>> + Sync,
    broken: impl Fn(&str, &Damage, &str) + Sync,
) -> Result<Counts> {
    let next = AtomicU64::new(0);
    let work = || {
        let (world, mut counts) = (SimEnv::default(), Counts::default());
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(subject) = make(at)? else {
                return Ok::<_, Error>(counts);
            };
            let told = |damage: &Damage, rule: &str| broken(&subject.name, damage, rule);
            counts.merge(&damage(&world, &subject, at, extent, told)?);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads(jobs)).map(|_| scope.spawn(work)).collect();
        let mut counts = Counts::default();
        for thread in threads {
            let done = thread
                .join()
                .map_err(|_| Error::aborted("a thread panicked"))?;
            counts.merge(&done?);
        }
        Ok(counts)
    })
}

/// This many databases of Esker's own, from a seed on.
pub fn simulated(seed: u64, subjects: u64) -> impl Fn(u64) -> Result<Option<Arc<Subject>>> {
    move |at| {
        (at < subjects)
            .then(|| Subject::simulated(seed + at).map(Arc::new))
            .transpose()
    }
}

/// These databases.
pub fn each(subjects: Vec<Subject>) -> impl Fn(u64) -> Result<Option<Arc<Subject>>> {
    let subjects: Vec<_> = subjects.into_iter().map(Arc::new).collect();
    move |at| Ok(subjects.get(at as usize).cloned())
}

/// The databases of real RocksDB below `root`: in a directory for each version one for each
/// database. What does not open as it is (with timestamps, or options of its own) is left out.
pub fn golden(root: &Path) -> Result<Vec<Subject>> {
    let mut out = Vec::new();
    for version in directories(root)? {
        for dir in directories(&version)? {
            let name = |p: &Path| p.file_name().map(|n| n.to_string_lossy().into_owned());
            let name = [name(&version), name(&dir)].map(Option::unwrap_or_default);
            out.extend(Subject::load(&name.join("/"), &dir));
        }
    }
    Ok(out)
}

/// The directories in `dir`, in order.
fn directories(dir: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e: std::io::Error| Error::io("read", dir, &e);
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}
