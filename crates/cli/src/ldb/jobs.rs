//! Commands of `ldb` that work on the whole database.

use super::call::{LdbCall, LdbOutcome, failed};
use crate::compact::forced;
use crate::database::Open;
use crate::failure::Failure;
use crate::load::pair;
use crate::out::Out;
use crate::unsafe_edits::UNSAFE_EDITS;
use esker::{
    Db, Env, IngestOptions, Options, RepairMode, RepairOptions, SstFileWriter, WriteBatch,
    WriteOptions,
};
use esker_backup::{
    BackupEngine, BackupEngineOptions, BackupEngineReadOnly, RestoreMode, RestoreOptions,
};
use esker_env::{FileSystem, PosixFs};
use esker_format::FamilyId;
use esker_format::file_name::{CURRENT, FileKind};
use esker_status::{Error, ErrorKind};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Bytes of a batch.
const BATCH: usize = 1 << 20;

/// Opens the database for writing; a new one joins merge operands with `:`, as RocksDB's tool does.
pub(super) fn writing(call: &LdbCall) -> LdbOutcome<Open> {
    let mut db = call.database()?;
    let create = call.is_on("create_if_missing", false)?;
    if create && !PosixFs::new().exists(&db.path().join(CURRENT))? {
        let operator = "merge_operator={id=StringAppendOperator;delimiter=:;}";
        db.set.insert(0, operator.to_owned());
    }
    Ok(db.write(create)?)
}

/// Refuses a command that is not safe.
pub(super) fn refuse(name: &str) -> LdbOutcome {
    let found = UNSAFE_EDITS.iter().find(|e| e.name == name);
    let instead = found.map_or("it is not safe", |e| e.instead);
    failed(format!("{name} is refused: {instead}"))
}

/// Runs `change_compaction_style`.
pub(super) fn change_compaction_style(call: &LdbCall, _: &mut Out) -> LdbOutcome {
    let style = |name: &str| {
        let style = call.number(name)?;
        match style {
            Some(0 | 1) => Ok(style),
            _ => failed(format!(
                "Use --{name} to specify a compaction style, 0 for level and 1 for universal \
                 compaction"
            )),
        }
    };
    let (old, new) = (
        style("old_compaction_style")?,
        style("new_compaction_style")?,
    );
    if old == new {
        return failed("Old compaction style is the same as new compaction style. Nothing to do.");
    }
    failed(
        "change_compaction_style is refused: a database opens with either style, and merges its \
         tree into the other one as it goes. `esker compact --set compaction_style=...` does it at \
         once",
    )
}

/// Runs `checkconsistency`.
pub(super) fn checkconsistency(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let (dir, fold) = call.folded()?;
    for family in fold.families.values() {
        for (_, table) in family.files.values() {
            let found = dir.find(FileKind::Table, table.number);
            let name = esker_format::file_name::table_name(table.number);
            match found {
                None => {
                    let e = Error::corruption("a table that the MANIFEST names is missing");
                    return Err(e.with_file(dir.path.join(name)).into());
                }
                Some(f) if f.len != table.size => {
                    let e = Error::corruption(format!(
                        "the file has {} bytes, the MANIFEST says {}",
                        f.len, table.size
                    ));
                    return Err(e.with_file(&f.path).into());
                }
                Some(_) => {}
            }
        }
    }
    Ok(out.line("OK")?)
}

/// Runs `compact`.
pub(super) fn compact(call: &LdbCall, _: &mut Out) -> LdbOutcome {
    let (from, to) = (call.bound("from")?, call.bound("to")?);
    let open = writing(call)?;
    open.db
        .compact_range_opt(&open.family, from.as_deref(), to.as_deref(), &forced())?;
    Ok(open.close()?)
}

/// The lines of standard input.
fn for_each_line(mut take: impl FnMut(&[u8]) -> LdbOutcome) -> LdbOutcome {
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        let failed = |e| Error::new(ErrorKind::Io, format!("read a line: {e}"));
        if input.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        take(&line)?;
    }
}

/// Runs `load`.
pub(super) fn load(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let hex = call.hex()?;
    let open = writing(call)?;
    let is_logged = !call.has("disable_wal") && !call.has("bulk_load");
    let options = if is_logged {
        WriteOptions::default()
    } else {
        WriteOptions::unlogged()
    };
    let family = FamilyId(open.family.id());
    let mut batch = WriteBatch::new();
    let mut bad = 0u64;
    for_each_line(|line| {
        // The line that ends a dump is no entry.
        if line.starts_with(crate::scan::TRAILER) {
            return Ok(());
        }
        match pair(hex, line) {
            Ok(Some((key, value))) => batch.put_cf(family, &key, &value)?,
            Ok(None) | Err(_) => bad += 1,
        }
        if batch.data_size() >= BATCH {
            open.db.write_opt(&mut batch, &options)?;
            batch.clear();
        }
        Ok(())
    })?;
    if batch.count() > 0 {
        open.db.write_opt(&mut batch, &options)?;
    }
    if !is_logged {
        open.db.flush()?;
    }
    if bad > 0 {
        out.line(format!("Warning: {bad} bad lines ignored."))?;
    }
    if call.has("compact") {
        open.db
            .compact_range_opt(&open.family, None, None, &forced())?;
    }
    Ok(open.close()?)
}

/// Runs `get_property`.
pub(super) fn get_property(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let [name] = call.params() else {
        return failed("property name must be specified");
    };
    let name = name.to_string_lossy();
    let open = call.database()?.read()?;
    if let Some(map) = open.db.map_property(&open.family, &name) {
        for (member, value) in map {
            out.line(format!("{name}.{member}: {value}"))?;
        }
        return Ok(());
    }
    match open.db.property_cf(&open.family, &name) {
        Some(value) => Ok(out.line(format!("{name}: {value}"))?),
        None => failed(format!("failed to get property: {name}")),
    }
}

/// Runs `list_column_families`.
pub(super) fn list_column_families(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let db = call.path("db").unwrap_or_default();
    let name = db.display();
    match Db::list_families(&db, &Options::new()) {
        Ok(families) => {
            out.line(format!("Column families in {name}: "))?;
            Ok(out.line(format!("{{{}}}", families.join(", ")))?)
        }
        Err(e) => Ok(out.line(format!("Error in processing db {name} {e}"))?),
    }
}

/// Runs `create_column_family`.
pub(super) fn create_column_family(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let [name] = call.params() else {
        return failed("new column family name must be specified");
    };
    let name = name.to_string_lossy();
    let open = writing(call)?;
    if open.db.family(&name).is_some() {
        return failed(
            "Fail to create new column family: Invalid argument: Column family already exists",
        );
    }
    open.db.create_family(&name, open.default_options.clone())?;
    open.close()?;
    Ok(out.line("OK")?)
}

/// Runs `drop_column_family`.
pub(super) fn drop_column_family(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let [name] = call.params() else {
        return failed("The name of column family to drop must be specified");
    };
    let name = name.to_string_lossy();
    let open = writing(call)?;
    let Some(family) = open.db.family(&name) else {
        return failed(format!("Column family: {name} doesn't exist in db."));
    };
    open.db.drop_family(&family)?;
    drop(family);
    open.close()?;
    Ok(out.line("OK")?)
}

/// Runs `repair`.
pub(super) fn repair(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let db = call.database()?;
    let dir = crate::directory::Directory::read(db.path())?;
    let (options, families) = crate::repair::options(&dir)?;
    let asked = RepairOptions::new().mode(RepairMode::Repair);
    let report = Db::repair_with(db.path(), &options, &families, asked)?;
    for text in report.losses.iter().chain(&report.notes) {
        crate::say::plain(text);
    }
    out.line("OK")?;
    out.flush()?;
    if report.has_lost_data {
        return Err(Failure::LostData.into());
    }
    Ok(())
}

fn backup_dir(call: &LdbCall) -> LdbOutcome<PathBuf> {
    for name in ["backup_env_uri", "backup_fs_uri"] {
        if call.text(name).is_some_and(|v| !v.is_empty()) {
            return failed(format!(
                "--{name} is refused: backups are in this machine's filesystem"
            ));
        }
    }
    match call.path("backup_dir") {
        Some(dir) => Ok(dir),
        None => failed("--backup_dir: missing backup directory"),
    }
}

fn backup_options(call: &LdbCall, dir: &Path) -> LdbOutcome<BackupEngineOptions> {
    let mut options = BackupEngineOptions::new(dir);
    if let Some(threads) = call.number("num_threads")? {
        options.max_background_operations = i32::try_from(threads).unwrap_or(1);
    }
    Ok(options)
}

/// Runs `backup`.
pub(super) fn backup(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let dir = backup_dir(call)?;
    let open = writing(call)?;
    out.line("open db OK")?;
    let options = backup_options(call, &dir)?;
    let engine = BackupEngine::open(options, &Env::posix())?;
    out.line("open backup engine OK")?;
    engine.create_new_backup_opt(&open.db, &Default::default(), b"")?;
    open.close()?;
    Ok(out.line("create new backup OK")?)
}

/// Runs `restore`.
pub(super) fn restore(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let dir = backup_dir(call)?;
    let db = call.database()?;
    let options = backup_options(call, &dir)?;
    let engine = BackupEngineReadOnly::open(options, &Env::posix())?;
    out.line("open restore engine OK")?;
    let newest = engine.get_latest_backup_info()?;
    let how = RestoreOptions::new(false, RestoreMode::PurgeAllFiles);
    engine.restore_db_from_backup(newest.backup_id, db.path(), db.path(), &how)?;
    Ok(out.line("restore from backup OK")?)
}

/// Runs `checkpoint`.
pub(super) fn checkpoint(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let Some(target) = call.path("checkpoint_dir") else {
        return failed("Invalid argument: invalid checkpoint directory name");
    };
    if PosixFs::new().exists(&target)? {
        return failed("Invalid argument: Directory exists");
    }
    let open = writing(call)?;
    open.db.checkpoint(&target)?;
    open.close()?;
    Ok(out.line("OK")?)
}

/// Runs `write_extern_sst`.
pub(super) fn write_extern_sst(call: &LdbCall, _: &mut Out) -> LdbOutcome {
    let [target] = call.params() else {
        return failed("output SST file path must be specified");
    };
    let hex = call.hex()?;
    let open = call.database()?.read()?;
    let mut options = Options::new();
    options.family = open.family.options();
    let mut writer = SstFileWriter::new(&options)?.for_family(&open.family);
    writer.open(target)?;
    let mut bad = 0u64;
    for_each_line(|line| {
        match pair(hex, line) {
            Ok(Some((key, value))) => writer.put(&key, &value)?,
            Ok(None) | Err(_) => bad += 1,
        }
        Ok(())
    })?;
    writer.finish()?;
    if bad > 0 {
        crate::say::plain(&format!("Warning: {bad} bad lines ignored."));
    }
    let target = target.to_string_lossy();
    crate::say::plain(&format!("external SST file written to {target}"));
    Ok(())
}

/// Runs `ingest_extern_sst`.
pub(super) fn ingest_extern_sst(call: &LdbCall, _: &mut Out) -> LdbOutcome {
    let [file] = call.params() else {
        return failed("input SST path must be specified");
    };
    let mut options = IngestOptions::default();
    options.move_files = call.is_on("move_files", false)?;
    options.snapshot_consistency = call.is_on("snapshot_consistency", true)?;
    options.allow_global_seqno = call.is_on("allow_global_seqno", true)?;
    options.allow_blocking_flush = call.is_on("allow_blocking_flush", true)?;
    options.ingest_behind = call.is_on("ingest_behind", false)?;
    options.write_global_seqno = call.is_on("write_global_seqno", true)?;
    let open = writing(call)?;
    open.db.ingest(&open.family, &[file], &options)?;
    open.close()?;
    crate::say::plain("external SST files ingested");
    Ok(())
}
