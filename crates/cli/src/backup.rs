//! `esker backup`: backups in RocksDB's layout, which `ldb backup` and `ldb restore` share.

use crate::counted::BytesRead;
use crate::database::{DbArgs, Open};
use crate::directory::{Directory, FileAt};
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::progress::Progress;
use crate::text::{one_line, plural, size};
use clap::{Args, Subcommand, ValueEnum};
use esker::{Db, Env, Options};
use esker_backup::{
    BackupEngine, BackupEngineOptions, BackupEngineReadOnly, BackupInfo, CreateBackupOptions,
    RestoreMode, RestoreOptions,
};
use esker_env::{FileSystem, PosixFs};
use esker_format::file_name::{CURRENT, FileKind, LOCK};
use esker_status::Error;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `esker backup`.
#[derive(Args, Debug)]
pub(crate) struct BackupArgs {
    #[command(subcommand)]
    command: BackupCommand,
}

#[derive(Subcommand, Debug)]
enum BackupCommand {
    /// Back a database up; only what no backup has yet is copied
    #[command(after_help = "\
The database must not be open. This opens it for writing, which changes its directory: what its
logs hold is put into tables, files that nothing needs are deleted, and a new MANIFEST, log and
OPTIONS file are written. What changed is said. With --read-only it is not opened: not a byte of it
changes, and its logs are backed up as they are. That is also done where the directory cannot be
written, as on a read-only mount.

Examples:
  esker backup create --db=DB BACKUPS --metadata='before the upgrade'
  esker backup create --db=SNAPSHOT BACKUPS --read-only")]
    Create(CreateArgs),
    /// Show the backups of a directory
    #[command(after_help = "Example:\n  esker backup list BACKUPS --json | jq .backup_id")]
    List {
        /// The backup directory
        #[arg(value_name = "BACKUPS")]
        dir: PathBuf,
        /// Show the files of each backup too
        #[arg(long)]
        files: bool,
    },
    /// Check that backups are whole, by the checksum of every file
    #[command(after_help = "\
Exit code 1 when one is not.

Examples:
  esker backup verify BACKUPS
  esker backup verify BACKUPS --id=3 --quick")]
    Verify {
        /// The backup directory
        #[arg(value_name = "BACKUPS")]
        dir: PathBuf,
        /// Only this one
        #[arg(long, value_name = "ID")]
        id: Option<u32>,
        /// Compare sizes, and read nothing
        #[arg(long)]
        quick: bool,
        /// Files that are read at once
        #[arg(long, default_value_t = 1)]
        threads: i32,
    },
    /// Make a database what it was when a backup was made
    #[command(after_help = "\
The database must not be open. One that is there is replaced, with --yes.

Examples:
  esker backup restore BACKUPS --db=DB
  esker backup restore BACKUPS --db=DB --id=3 --yes --keep=same-checksum")]
    Restore(RestoreArgs),
    /// Delete all backups but the newest
    #[command(after_help = "Example:\n  esker backup purge BACKUPS --keep=7")]
    Purge {
        /// The backup directory
        #[arg(value_name = "BACKUPS")]
        dir: PathBuf,
        /// How many stay
        #[arg(long, value_name = "N")]
        keep: u32,
    },
    /// Delete one backup
    #[command(after_help = "Example:\n  esker backup delete BACKUPS 3")]
    Delete {
        /// The backup directory
        #[arg(value_name = "BACKUPS")]
        dir: PathBuf,
        /// Which
        #[arg(value_name = "ID")]
        id: u32,
    },
}

#[derive(Args, Debug)]
struct CreateArgs {
    #[command(flatten)]
    db: DbArgs,
    /// The backup directory; made when it is missing
    #[arg(value_name = "BACKUPS")]
    dir: PathBuf,
    /// Store this text with the backup
    #[arg(long, value_name = "TEXT", default_value = "")]
    metadata: String,
    /// Put what is in memory into tables first
    #[arg(long)]
    flush: bool,
    /// Leave the database byte for byte as it is, and back its logs up as they are
    #[arg(
        long,
        conflicts_with_all = ["flush", "set", "options_file", "default_options"]
    )]
    read_only: bool,
    /// Files that are copied at once
    #[arg(long, default_value_t = 1)]
    threads: i32,
    /// Most bytes a second; 0 for no limit
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    rate_limit: u64,
}

#[derive(Args, Debug)]
struct RestoreArgs {
    /// The backup directory
    #[arg(value_name = "BACKUPS")]
    dir: PathBuf,
    /// The directory of the database
    #[arg(long, value_name = "DB")]
    db: PathBuf,
    /// The directory of its logs; that of the database when not given
    #[arg(long, value_name = "DIR")]
    wal_dir: Option<PathBuf>,
    /// The backup; the newest when not given
    #[arg(long, value_name = "ID")]
    id: Option<u32>,
    /// Files of the database that is there which may stay
    #[arg(long, value_enum, default_value_t = Keep::Nothing)]
    keep: Keep,
    /// Keep the logs that are there instead of the backup's
    #[arg(long)]
    keep_logs: bool,
    /// Replace a database that is there
    #[arg(long)]
    yes: bool,
    /// Files that are copied at once
    #[arg(long, default_value_t = 1)]
    threads: i32,
    /// Most bytes a second; 0 for no limit
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    rate_limit: u64,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Keep {
    /// Nothing
    Nothing,
    /// Tables of the same number, session and size, which are not read
    SameSession,
    /// Tables and blob files of the same checksum, which are read
    SameChecksum,
}

/// Runs `esker backup`.
pub(crate) fn run(args: &BackupArgs, out: &mut Out) -> Outcome {
    match &args.command {
        BackupCommand::Create(args) => create(args, out),
        BackupCommand::List { dir, files } => list(dir, *files, out),
        BackupCommand::Verify {
            dir,
            id,
            quick,
            threads,
        } => verify(dir, *id, *quick, *threads, out),
        BackupCommand::Restore(args) => restore(args, out),
        BackupCommand::Purge { dir, keep } => purge(dir, *keep, out),
        BackupCommand::Delete { dir, id } => delete(dir, *id, out),
    }
}

fn reader(dir: &Path, threads: i32, restore_rate_limit: u64) -> Outcome<BackupEngineReadOnly> {
    reader_in(&Env::posix(), dir, threads, restore_rate_limit)
}

fn reader_in(
    env: &Env,
    dir: &Path,
    threads: i32,
    restore_rate_limit: u64,
) -> Outcome<BackupEngineReadOnly> {
    let mut options = BackupEngineOptions::new(dir);
    options.max_background_operations = threads;
    options.restore_rate_limit = restore_rate_limit;
    Ok(BackupEngineReadOnly::open(options, env)?)
}

/// Opens a directory that is there to change it.
fn writer(dir: &Path) -> Outcome<BackupEngine> {
    // Opening for writing makes what is missing.
    reader(dir, 1, 0)?;
    let options = BackupEngineOptions::new(dir);
    Ok(BackupEngine::open(options, &Env::posix())?)
}

fn create(args: &CreateArgs, out: &mut Out) -> Outcome {
    let before = Directory::read(args.db.path())?;
    let read = BytesRead::default();
    match writable(args, &read)? {
        Some(open) => {
            let after = Directory::read(args.db.path())?;
            let backups = engine(args)?;
            let mut how = CreateBackupOptions::default();
            how.flush_before_backup = args.flush;
            let progress = watched(&after, &args.dir, read)?;
            let id = backups.create_new_backup_opt(&open.db, &how, args.metadata.as_bytes())?;
            drop(progress);
            show(&backups.get_backup_info_of(id)?, false, out)?;
            open.close()?;
            changed(&before, &after, out)
        }
        None => {
            let mut options = Options::new();
            options.db.wal_dir = before.place_of_logs()?;
            options.env = Some(read.env());
            let closed = Db::keep_closed(args.db.path(), &options)?;
            let backups = engine(args)?;
            let how = CreateBackupOptions::default();
            let text = args.metadata.as_bytes();
            let progress = watched(&before, &args.dir, read)?;
            let id = backups.create_new_backup_of_closed(&closed, &how, text)?;
            drop(progress);
            show(&backups.get_backup_info_of(id)?, false, out)?;
            unchanged(args, out)
        }
    }
}

/// Progress of a backup of `source`: what no backup in `backups` has yet is read.
fn watched(source: &Directory, backups: &Path, read: BytesRead) -> Outcome<Progress> {
    let shared = backups.join("shared_checksum");
    let there = if source.fs.exists(&shared)? {
        source.fs.read_dir(&shared)?
    } else {
        Vec::new()
    };
    let is_new = |f: &&FileAt| {
        let number = f.name.split('.').next().unwrap_or_default();
        let is_shared = matches!(f.kind, FileKind::Table | FileKind::Blob);
        !is_shared
            || !there
                .iter()
                .any(|e| e.name.starts_with(&format!("{number}_")))
    };
    let due = source.files.iter().filter(is_new).map(|f| f.len).sum();
    let start = read.get();
    Ok(Progress::watched("backup", due, move || read.get() - start))
}

fn engine(args: &CreateArgs) -> Outcome<BackupEngine> {
    let mut options = BackupEngineOptions::new(&args.dir);
    options.max_background_operations = args.threads;
    options.backup_rate_limit = args.rate_limit;
    Ok(BackupEngine::open(options, &Env::posix())?)
}

/// The database, open; `None` when it is to be left as it is, or has to be since its directory
/// cannot be written.
fn writable(args: &CreateArgs, read: &BytesRead) -> Outcome<Option<Open>> {
    if args.read_only {
        return Ok(None);
    }
    let is_lock = |e: &Error| e.file().is_some_and(|f| f.ends_with(LOCK));
    match args.db.write_in(false, Some(read.env())) {
        Ok(open) => Ok(Some(open)),
        // Before anything was changed.
        Err(Failure::Status(e)) if e.is_unwritable() && is_lock(&e) && !args.flush => Ok(None),
        Err(e) => Err(e),
    }
}

/// Says what opening the database changed.
fn changed(before: &Directory, after: &Directory, out: &mut Out) -> Outcome {
    let logs = before.of(FileKind::Wal).filter(|f| f.len > 0).count() as u64;
    let is_new = |f: &&FileAt| before.find(FileKind::Table, f.number).is_none();
    let tables = after.of(FileKind::Table).filter(is_new).count() as u64;
    let manifest = after.of(FileKind::Manifest).last().map(|f| f.name.clone());
    let manifest = manifest.unwrap_or_default();
    out.line(format!(
        "{}: opened for this: {} read, {} written, new {manifest}; --read-only changes nothing",
        before.path.display(),
        plural(logs, "log"),
        plural(tables, "table"),
    ))?;
    out.object(|| {
        json!({"type": "source", "db": before.path.to_string_lossy(), "changed": true,
            "logs_read": logs, "tables_written": tables, "manifest": manifest})
    })
}

/// Says that the database is as it was.
fn unchanged(args: &CreateArgs, out: &mut Out) -> Outcome {
    let db = args.db.path();
    let why = if args.read_only {
        ""
    } else {
        ", since it cannot be written"
    };
    out.line(format!("{}: left as it is{why}", db.display()))?;
    out.object(|| json!({"type": "source", "db": db.to_string_lossy(), "changed": false}))
}

fn show(info: &BackupInfo, files: bool, out: &mut Out) -> Outcome {
    let metadata = String::from_utf8_lossy(&info.app_metadata).into_owned();
    let mut line = format!(
        "backup {}: {}, {} in {}, sequence {}",
        info.backup_id,
        when(info.timestamp),
        size(info.size),
        plural(u64::from(info.number_files), "file"),
        info.sequence_number
    );
    if !metadata.is_empty() {
        line.push_str(&format!(", {:?}", one_line(&metadata)));
    }
    out.line(line)?;
    if files {
        for file in &info.file_details {
            out.line(format!("  {} {}", file.relative_filename, size(file.size)))?;
        }
        for name in &info.excluded_files {
            out.line(format!("  {name} left out"))?;
        }
    }
    out.object(|| {
        let mut object = json!({"type": "backup", "backup_id": info.backup_id,
            "timestamp": info.timestamp, "size": info.size, "number_files": info.number_files,
            "sequence_number": info.sequence_number, "app_metadata": metadata});
        if files {
            let details = info.file_details.iter();
            object["files"] = details
                .map(|f| json!({"name": f.relative_filename, "size": f.size, "crc32c": f.crc32c}))
                .collect();
            object["excluded_files"] = json!(info.excluded_files);
        }
        object
    })
}

/// Year, month and day in UTC of a time in Unix seconds.
pub(crate) fn date(unix: u64) -> (u64, u64, u64) {
    // Days since 0000-03-01, so that a leap day ends a year (Howard Hinnant, "chrono-compatible
    // low-level date algorithms").
    let days = unix / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let in_year = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * in_year + 2) / 153;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (
        year + era * 400 + u64::from(month <= 2),
        month,
        in_year - (153 * shifted + 2) / 5 + 1,
    )
}

/// A time in Unix seconds, as a date in UTC.
fn when(unix: u64) -> String {
    let (year, month, day) = date(unix);
    let (h, m, s) = (unix / 3_600 % 24, unix / 60 % 60, unix % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02} UTC")
}

fn list(dir: &Path, files: bool, out: &mut Out) -> Outcome {
    let backups = reader(dir, 1, 0)?;
    for info in backups.get_backup_info() {
        show(&info, files, out)?;
    }
    unreadable(&backups, out)
}

/// Shows the backups that cannot be read.
fn unreadable(backups: &BackupEngineReadOnly, out: &mut Out) -> Outcome {
    for (id, error) in backups.get_corrupted_backups() {
        let error = one_line(&error.to_string());
        out.line(format!("backup {id}: cannot be read: {error}"))?;
        out.object(|| json!({"type": "unreadable", "backup_id": id, "error": error}))?;
    }
    Ok(())
}

fn verify(dir: &Path, id: Option<u32>, quick: bool, threads: i32, out: &mut Out) -> Outcome {
    let backups = reader(dir, threads, 0)?;
    let ids: Vec<u32> = match id {
        Some(id) => vec![id],
        None => {
            let readable = backups.get_backup_info().into_iter();
            let corrupt = backups.get_corrupted_backups().into_iter();
            let mut all: Vec<u32> = readable
                .map(|b| b.backup_id)
                .chain(corrupt.map(|(id, _)| id))
                .collect();
            all.sort_unstable();
            all
        }
    };
    let mut is_whole = true;
    for id in ids {
        let progress = Progress::wait("verify");
        let verified = backups.verify_backup(id, !quick);
        drop(progress);
        let error = verified.err().map(|e| one_line(&e.to_string()));
        is_whole &= error.is_none();
        let text = error.as_deref().unwrap_or("whole");
        out.line(format!("backup {id}: {text}"))?;
        out.object(|| {
            json!({"type": "verified", "backup_id": id, "whole": error.is_none(),
                "read": !quick, "error": error})
        })?;
    }
    out.flush()?;
    if is_whole { Ok(()) } else { Err(Failure::Said) }
}

fn restore(args: &RestoreArgs, out: &mut Out) -> Outcome {
    if !args.yes && PosixFs::new().exists(&args.db.join(CURRENT))? {
        return Err(Failure::Usage(format!(
            "this replaces the database in {}; add --yes to do it",
            args.db.display()
        )));
    }
    let read = BytesRead::default();
    let backups = reader_in(&read.env(), &args.dir, args.threads, args.rate_limit)?;
    let info = match args.id {
        Some(id) => backups.get_backup_info_of(id)?,
        None => backups.get_latest_backup_info()?,
    };
    let mode = match args.keep {
        Keep::Nothing => RestoreMode::PurgeAllFiles,
        Keep::SameSession => RestoreMode::KeepLatestDbSessionIdFiles,
        Keep::SameChecksum => RestoreMode::VerifyChecksum,
    };
    let wal_dir = args.wal_dir.as_ref().unwrap_or(&args.db);
    let how = RestoreOptions::new(args.keep_logs, mode);
    let start = read.get();
    let progress = Progress::watched("restore", info.size, move || read.get() - start);
    backups.restore_db_from_backup(info.backup_id, &args.db, wal_dir, &how)?;
    drop(progress);
    out.line(format!(
        "{}: what it was at {} (backup {})",
        args.db.display(),
        when(info.timestamp),
        info.backup_id
    ))?;
    out.object(|| {
        json!({"type": "restored", "backup_id": info.backup_id, "timestamp": info.timestamp,
            "db": args.db.to_string_lossy()})
    })
}

fn purge(dir: &Path, keep: u32, out: &mut Out) -> Outcome {
    let backups = writer(dir)?;
    let before: Vec<u32> = ids(&backups);
    backups.purge_old_backups(keep)?;
    let after = ids(&backups);
    for id in before.iter().filter(|id| !after.contains(id)) {
        gone(*id, out)?;
    }
    unreadable(&backups, out)
}

fn ids(backups: &BackupEngineReadOnly) -> Vec<u32> {
    let infos = backups.get_backup_info().into_iter();
    infos.map(|b| b.backup_id).collect()
}

fn delete(dir: &Path, id: u32, out: &mut Out) -> Outcome {
    writer(dir)?.delete_backup(id)?;
    gone(id, out)
}

fn gone(id: u32, out: &mut Out) -> Outcome {
    out.line(format!("backup {id}: deleted"))?;
    out.object(|| json!({"type": "deleted", "backup_id": id}))
}

#[cfg(test)]
mod tests {
    use super::when;

    #[test]
    fn times_are_dates() {
        for (unix, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_164_800, "2024-02-29 00:00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(when(unix), text);
        }
    }
}
