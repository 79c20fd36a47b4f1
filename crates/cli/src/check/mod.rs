//! `esker check`: every byte and every invariant of a database, without writing anything.
//!
//! Parts are checked independently and go on after a problem, so that one run tells all. Tables and
//! blob files are divided among threads. An error is something that is wrong; a warning is
//! something odd that does no harm, or a part that could not be checked.

mod blob;
mod order;
mod report;
mod table;
mod wal;

use crate::directory::Directory;
use crate::failure::{Failure, Outcome};
use crate::fold::{Family, Fold};
use crate::out::Out;
use crate::progress::Progress;
use crate::text::{plural, size};
use clap::Args;
use esker::options::LoadedOptions;
use esker::{Db, FamilyDescriptor, FamilyOptions, Options};
use esker_files::identity;
use esker_format::FileNo;
use esker_format::file_name::{FileKind, IDENTITY};
use esker_status::{Error, ErrorKind, Result};
use report::{Report, Totals};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Arguments of `esker check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The databases' directories
    #[arg(value_name = "DB", required = true)]
    paths: Vec<PathBuf>,
    /// Threads that read tables; 0 for one per processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
}

/// Runs `esker check`.
pub(crate) fn run(args: &CheckArgs, out: &mut Out) -> Outcome {
    let mut is_whole = true;
    for path in &args.paths {
        if args.paths.len() > 1 {
            out.line(format!("{}:", path.display()))?;
        }
        match check_one(args, path, out) {
            Err(Failure::Said) => is_whole = false,
            done => done?,
        }
    }
    if is_whole { Ok(()) } else { Err(Failure::Said) }
}

fn check_one(args: &CheckArgs, path: &Path, out: &mut Out) -> Outcome {
    let report = Report::default();
    let dir = Directory::read(path)?;
    match Fold::live(&dir) {
        Err(e) if dir.files.is_empty() => {
            return Err(e.with_hint("is this the directory of a database?").into());
        }
        Err(e) => {
            report.error(e);
            without_manifest(&dir, &report);
        }
        Ok(fold) if !fold.is_read_to_end => {
            // Later edits may have removed what the read ones list, and list what they do not.
            fold.problems.iter().for_each(|e| report.error(e.clone()));
            without_manifest(&dir, &report);
        }
        Ok(fold) => everything(args, &dir, &fold, &report),
    }
    options(&dir, &report);
    opening(&dir, &report);
    print(&report, out)?;
    if report.errors() > 0 {
        let db = path.display();
        out.line(format!(
            "`esker repair --db={db} --dry-run` reports what can be saved"
        ))?;
    }
    out.flush()?;
    if report.errors() > 0 {
        Err(Failure::Said)
    } else {
        Ok(())
    }
}

/// Returns whether `esker check` finds nothing wrong in the directory; what it found is printed
/// when it does.
#[cfg(feature = "lab")]
pub(crate) fn is_whole(path: &Path) -> bool {
    let args = CheckArgs {
        paths: vec![path.to_owned()],
        threads: 0,
    };
    run(&args, &mut Out::new(crate::say::is_json())).is_ok()
}

/// A file with what the MANIFEST says about it.
enum Job<'a> {
    Table(table::Job<'a>),
    Blob(blob::Job<'a>),
}

fn everything(args: &CheckArgs, dir: &Directory, fold: &Fold, report: &Report) {
    manifest(dir, fold, report);
    id(dir, fold, report);
    wal::check(dir, fold, report);
    let mut jobs = Vec::new();
    let mut total = 0u64;
    let refs: Vec<_> = fold.families.values().map(|_| Mutex::default()).collect();
    let ranges: Vec<_> = fold.families.values().map(|_| Mutex::default()).collect();
    let sums = refs.iter().zip(&ranges);
    for (family, (refs, ranges)) in fold.families.values().zip(sums) {
        for (level, meta) in family.files.values() {
            total = total.saturating_add(meta.size);
            jobs.push(Job::Table(table::Job {
                dir,
                fold,
                family,
                level: *level,
                meta,
                refs,
            }));
        }
        if let Ok(version) = &family.version {
            for b in version.blob_files().values() {
                total = total.saturating_add(b.total_bytes);
                jobs.push(Job::Blob(blob::Job {
                    dir,
                    family: family.id,
                    meta: b,
                    order: version.order(),
                    ranges,
                }));
            }
        }
    }
    let progress = Progress::bytes("checking", total);
    let run = |job: &Job<'_>| match job {
        Job::Table(job) => {
            table::check(job, report);
            progress.add(job.meta.size);
        }
        Job::Blob(job) => {
            blob::check(job, report);
            progress.add(job.meta.total_bytes);
        }
    };
    let next = AtomicUsize::new(0);
    let threads = match args.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(job);
                }
            });
        }
    });
    for (family, ranges) in fold.families.values().zip(ranges) {
        order::check(dir, family, report);
        let ranges = ranges.into_inner().unwrap_or_else(PoisonError::into_inner);
        blob::check_groups(dir, family, ranges, report);
    }
    // References in what could not be read are unknown.
    if report.errors() == 0 {
        for (family, refs) in fold.families.values().zip(refs) {
            let refs = refs.into_inner().unwrap_or_else(PoisonError::into_inner);
            blob::check_garbage(dir, family, &refs, report);
        }
    }
    // What edits that could not be read list may be all there is of the data.
    if fold.is_complete() {
        left_over(dir, fold, report);
    }
}

fn manifest(dir: &Directory, fold: &Fold, report: &Report) {
    report.add(Totals {
        edits: fold.edits,
        families: fold.families.len() as u64,
        ..Totals::default()
    });
    for problem in &fold.problems {
        report.error(problem.clone());
    }
    if fold.torn {
        let e = Error::corruption("the MANIFEST ends inside a record; it never took effect");
        report.warning(e.with_file(&fold.path));
    }
    for family in fold.families.values() {
        match &family.version {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotSupported => {
                let what = format!(
                    "family {:?}: {}; key order not checked",
                    family.name,
                    e.message()
                );
                report.warning(Error::not_supported(what).with_file(&fold.path));
            }
            Err(e) => {
                let what = format!("family {:?}: {}", family.name, e.message());
                report.error(Error::new(e.kind(), what).with_file(&fold.path));
            }
        }
        // The largest family's number is written with snapshots and drops only: families made later
        // are above it.
        numbers(fold, family, report);
    }
    for file in dir
        .of(FileKind::Manifest)
        .filter(|f| f.number > fold.number)
    {
        let e = Error::corruption("a MANIFEST newer than the one that CURRENT names");
        report.warning(e.with_file(&file.path));
    }
}

fn numbers(fold: &Fold, family: &Family, report: &Report) {
    for (_, f) in family.files.values() {
        if fold.next_file_number.is_some_and(|next| f.number >= next) {
            let what = format!("table {} is at or above the next file number", f.number);
            report.error(Error::corruption(what).with_file(&fold.path));
        }
        if fold.last_sequence.is_some_and(|last| f.largest_seq > last) {
            let what = format!("table {} holds sequences above the last one", f.number);
            report.error(Error::corruption(what).with_file(&fold.path));
        }
    }
}

fn id(dir: &Directory, fold: &Fold, report: &Report) {
    match identity::read(&dir.fs, &dir.path) {
        Ok(id) => {
            if fold.db_id.as_ref().is_some_and(|named| *named != id) {
                let e = Error::corruption("the id is not the one in the MANIFEST, which counts");
                report.warning(e.with_file(dir.path.join(IDENTITY)));
            }
        }
        // A checkpoint has none, and the next open writes it.
        Err(e) if e.is_not_found() => report.note(Error::new(
            ErrorKind::NotFound,
            "there is no IDENTITY yet: the next open writes it",
        )),
        Err(e) => report.warning(e),
    }
}

fn options(dir: &Directory, report: &Report) {
    for file in dir.of(FileKind::Options) {
        match crate::directory::load_options(&file.path) {
            Ok(_) => report.add(Totals {
                other_bytes: file.len,
                ..Totals::default()
            }),
            Err(e) => report.error(e),
        }
    }
}

/// Reports the refusal of opening that no part above has found. Opening is not asked where tables
/// lie in paths of the OPTIONS file: a copied directory would be opened with the tables of the
/// original.
fn opening(dir: &Directory, report: &Report) {
    let loaded = dir.options.as_ref().and_then(|(_, l)| l.as_ref().ok());
    let has_paths = loaded.is_some_and(|l| {
        !l.db.db_paths.is_empty() || l.families.iter().any(|(_, o)| !o.cf_paths.is_empty())
    });
    if report.errors() > 0 || has_paths {
        return;
    }
    match open(dir, loaded) {
        Ok(()) => {}
        // A comparator or an operator of the program's own.
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::NotSupported | ErrorKind::InvalidArgument
            ) => {}
        Err(e) => report.error_once(e),
    }
}

/// Opens the database for reading.
fn open(dir: &Directory, loaded: Option<&LoadedOptions>) -> Result<()> {
    let mut options = Options::new();
    if let Some(loaded) = loaded {
        options.db = loaded.db.clone();
    }
    options.db.wal_dir = dir.place_of_logs()?;
    let of = |name: &str| {
        let mut all = loaded.iter().flat_map(|l| &l.families);
        let own = all.find(|(n, _)| n == name);
        own.map_or_else(FamilyOptions::default, |(_, o)| o.clone())
    };
    let names = Db::list_families(&dir.path, &options)?;
    let families = names
        .iter()
        .map(|n| FamilyDescriptor::new(n.as_str(), of(n)));
    Db::open_families_read_only(&dir.path, options.clone(), families.collect())?.close()
}

/// Checks tables when no MANIFEST says which of them count.
fn without_manifest(dir: &Directory, report: &Report) {
    for file in dir.of(FileKind::Table) {
        table::check_alone(file, report);
    }
    wal::check_alone(dir, report);
}

/// Files that the database does not know.
fn left_over(dir: &Directory, fold: &Fold, report: &Report) {
    let in_tree = |n: FileNo| fold.families.values().any(|f| f.files.contains_key(&n));
    let in_blobs = |n: FileNo| {
        fold.families.values().any(|f| match &f.version {
            Ok(version) => version.blob_files().contains_key(&n),
            // Unknown: say nothing rather than call a needed file left over.
            Err(_) => true,
        })
    };
    for file in &dir.files {
        let what = match file.kind {
            FileKind::Table if !in_tree(file.number) => "left over: no family has this table",
            FileKind::Blob if !in_blobs(file.number) => "left over: no family has this blob file",
            FileKind::Wal if file.number < fold.min_log() => "left over: its data is in tables",
            FileKind::Manifest if file.number < fold.number => "left over: an old MANIFEST",
            FileKind::Temp => "left over: a temporary file",
            _ => continue,
        };
        report.note(Error::new(ErrorKind::NotFound, what).with_file(&file.path));
    }
}

fn print(report: &Report, out: &mut Out) -> Outcome {
    let findings = report.sorted();
    for f in &findings {
        out.line(f.text())?;
        out.object(|| f.json())?;
    }
    let t = report.totals();
    let (errors, warnings) = (report.errors(), report.warnings());
    out.line(format!(
        "{}, {}, {} ({}), {} in {} checked, {}, {}",
        plural(t.families, "family"),
        plural(t.edits, "edit"),
        plural(t.tables, "table"),
        size(t.table_bytes),
        plural(t.batches, "batch"),
        plural(t.logs, "log"),
        plural(t.blob_files, "blob file"),
        plural(t.entries, "entry"),
    ))?;
    out.line(match (errors, warnings) {
        (0, 0) => "no problem found".to_owned(),
        (0, _) => format!("no error, {}", plural(warnings, "warning")),
        _ => format!(
            "{}, {}",
            plural(errors, "error"),
            plural(warnings, "warning")
        ),
    })?;
    out.object(|| {
        json!({"type": "summary", "errors": errors, "warnings": warnings, "families": t.families,
            "edits": t.edits, "tables": t.tables, "table_bytes": t.table_bytes, "entries": t.entries,
            "blocks": t.blocks, "logs": t.logs, "batches": t.batches, "blob_files": t.blob_files,
            "blobs": t.blobs})
    })
}
