//! `esker repair`: a new MANIFEST for a database whose own is lost or names tables that are lost.
//!
//! Where a MANIFEST can be read to its end, its trees are kept and only damaged or missing tables leave
//! them. Otherwise the trees are made of the tables that are there, all of them at level 0 by age, and all
//! logs are replayed by the next open: entries that were deleted or merged may then come back, since what
//! said so may be gone. Nothing is deleted: what is not trusted moves to `lost/`.
//!
//! Order of changes: the new MANIFEST is written and synced, untrusted files move, `CURRENT` is replaced. An
//! interruption leaves a directory that can be repaired again.

mod salvage;

use crate::checkpoint::in_use;
use crate::directory::{Directory, FileAt};
use crate::failure::{Failure, Outcome};
use crate::fold::Fold;
use crate::out::Out;
use crate::progress::Progress;
use crate::text::{one_line, plural};
use clap::Args;
use esker_env::{FileSystem, SystemEntropy, WriteOptions};
use esker_files::manifest::ManifestWriter;
use esker_files::{current, identity};
use esker_format::edit::VersionEdit;
use esker_format::file_name::{FileKind, LOCK, LOST_DIR};
use esker_format::{FamilyId, FileNo, Seq};
use esker_lsm::check;
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::version::Version;
use esker_status::{Error, Result};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `esker repair`.
#[derive(Args, Debug)]
pub(crate) struct RepairArgs {
    /// The database's directory
    #[arg(long, value_name = "DB")]
    db: PathBuf,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// A family as it will be.
pub(super) struct Repaired {
    pub(super) id: FamilyId,
    pub(super) name: String,
    pub(super) version: Version,
    pub(super) log_number: FileNo,
}

/// What will be done.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) families: Vec<Repaired>,
    /// Files to move, and why.
    pub(super) lost: Vec<(PathBuf, String)>,
    /// What the user should know.
    pub(super) notes: Vec<String>,
    pub(super) last_sequence: Seq,
    pub(super) min_log: Option<FileNo>,
    pub(super) db_id: Option<String>,
    pub(super) max_family: FamilyId,
    /// The MANIFEST that was followed, if any.
    pub(super) followed: Option<FileNo>,
    /// Whether the live MANIFEST is fine as it is.
    pub(super) is_sound: bool,
}

/// Runs `esker repair`.
pub(crate) fn run(args: &RepairArgs, out: &mut Out) -> Outcome {
    let dir = Directory::read(&args.db)?;
    let kinds = [
        FileKind::Current,
        FileKind::Manifest,
        FileKind::Table,
        FileKind::Wal,
    ];
    if !dir.files.iter().any(|f| kinds.contains(&f.kind)) {
        let e = Error::invalid_argument("there is no database in this directory");
        return Err(e.with_file(&args.db).into());
    }
    if let Some(f) = dir
        .files
        .iter()
        .find(|f| f.path.parent() != Some(&*dir.path))
    {
        let e = Error::not_supported("repair of a database with several directories");
        return Err(e.with_file(&f.path).into());
    }
    let _lock = match args.dry_run {
        true => None,
        false => Some(dir.fs.lock(&dir.path.join(LOCK)).map_err(in_use)?),
    };
    let plan = plan(&dir)?;
    for note in &plan.notes {
        out.line(one_line(note))?;
        out.object(|| json!({"type": "note", "text": note}))?;
    }
    for (path, why) in &plan.lost {
        out.line(one_line(&format!(
            "to {LOST_DIR}/: {}: {why}",
            path.display()
        )))?;
        out.object(|| json!({"type": "lost", "path": path.to_string_lossy(), "reason": why}))?;
    }
    let tables: u64 = plan
        .families
        .iter()
        .map(|f| f.version.files().count() as u64)
        .sum();
    let families = plan.families.len();
    let state = match (plan.is_sound, args.dry_run) {
        (true, _) => "nothing to repair",
        (false, true) => "would be repaired",
        (false, false) => {
            carry_out(&dir, &plan)?;
            "repaired"
        }
    };
    out.line(format!(
        "{state}: {} in {families} column families",
        plural(tables, "table")
    ))?;
    out.object(|| {
        json!({"type": "repair", "state": state, "tables": tables, "families": families,
            "lost": plan.lost.len()})
    })
}

fn plan(dir: &Directory) -> Outcome<Plan> {
    let live = Fold::live(dir).ok();
    let live_number = live.as_ref().map(|f| f.number);
    let mut followed = live.filter(is_whole);
    if followed.is_none() {
        let older = dir
            .of(FileKind::Manifest)
            .filter(|f| Some(f.number) != live_number);
        let mut older: Vec<&FileAt> = older.collect();
        older.sort_by_key(|f| std::cmp::Reverse(f.number));
        let folds = older
            .into_iter()
            .map(|f| Fold::read(dir, &f.path, f.number));
        followed = folds
            .into_iter()
            .find(|fold| is_whole(fold) && knows_all(dir, fold));
    }
    let mut plan = match followed {
        Some(fold) => follow(dir, &fold)?,
        None => {
            let mut plan = salvage::from_tables(dir)?;
            plan.notes.insert(
                0,
                "no MANIFEST can be used: trees are made of the tables".to_owned(),
            );
            let manifests = dir.of(FileKind::Manifest);
            let why = "cannot be read to its end, or does not fit the tables";
            plan.lost
                .extend(manifests.map(|f| (f.path.clone(), why.to_owned())));
            plan
        }
    };
    plan.is_sound = plan.followed.is_some()
        && plan.followed == live_number
        && plan.lost.is_empty()
        && plan.notes.is_empty();
    if plan.db_id.is_none() {
        plan.db_id = identity::read(&dir.fs, &dir.path).ok();
    }
    Ok(plan)
}

/// Whether a MANIFEST was read to its end and describes trees.
fn is_whole(fold: &Fold) -> bool {
    fold.problems.is_empty() && fold.families.values().all(|f| f.version.is_ok())
}

/// Whether a MANIFEST that is not the live one still fits the files: none missing, none newer.
fn knows_all(dir: &Directory, fold: &Fold) -> bool {
    let next = fold.next_file_number.unwrap_or_default();
    let mut listed = fold.families.values().flat_map(|f| f.files.keys());
    listed.all(|n| dir.find(FileKind::Table, *n).is_some())
        && dir.of(FileKind::Table).all(|f| f.number < next)
}

/// The trees of a MANIFEST without the tables that are damaged.
fn follow(dir: &Directory, fold: &Fold) -> Outcome<Plan> {
    let mut plan = Plan {
        last_sequence: fold.last_sequence.unwrap_or_default(),
        min_log: fold.min_log_number_to_keep,
        db_id: fold.db_id.clone(),
        max_family: fold.max_column_family.unwrap_or_default(),
        followed: Some(fold.number),
        ..Plan::default()
    };
    let total = fold.families.values().flat_map(|f| f.files.values());
    let progress = Progress::bytes("reading tables", total.map(|(_, f)| f.size).sum());
    for family in fold.families.values() {
        let version = family.version.clone()?;
        let mut gone = TreeEdit::default();
        for (level, meta) in family.files.values() {
            match dir.find(FileKind::Table, meta.number) {
                None => {
                    let name = &family.name;
                    plan.notes.push(format!(
                        "table {} of family {name:?} is missing",
                        meta.number
                    ));
                    gone.deleted.push((*level, meta.number));
                }
                Some(file) => {
                    if let Err(e) = salvage::verify(file, meta) {
                        plan.lost.push((file.path.clone(), e.to_string()));
                        gone.deleted.push((*level, meta.number));
                    }
                }
            }
            progress.add(meta.size);
        }
        for number in version.blob_files().keys() {
            if dir.find(FileKind::Blob, *number).is_none() {
                let text = format!("blob file {number} is missing: reads of its values will fail");
                plan.notes.push(text);
            }
        }
        let version = apply(&version, &[gone])?;
        check::verify(&version)?;
        plan.families.push(Repaired {
            id: family.id,
            name: family.name.clone(),
            version,
            log_number: family.log_number.unwrap_or_default(),
        });
    }
    Ok(plan)
}

/// The edits of the new MANIFEST.
fn edits(plan: &Plan, next: FileNo) -> Vec<VersionEdit> {
    let mut out = Vec::new();
    for family in &plan.families {
        let mut head = VersionEdit::for_family(family.id);
        head.comparator = Some(family.version.order().name().to_owned());
        head.log_number = Some(family.log_number);
        if family.id == FamilyId::DEFAULT {
            head.db_id.clone_from(&plan.db_id);
            head.next_file_number = Some(next);
            head.last_sequence = Some(plan.last_sequence);
            head.max_column_family = Some(plan.max_family);
            head.min_log_number_to_keep = plan.min_log;
        } else {
            head.family_add = Some(family.name.clone());
        }
        out.push(head);
        // Files never stand in the edit that adds their family.
        let mut files = VersionEdit::for_family(family.id);
        TreeEdit::snapshot(&family.version).write_to(&mut files);
        out.push(files);
    }
    out
}

fn carry_out(dir: &Directory, plan: &Plan) -> Outcome {
    let fs = &dir.fs;
    let highest = dir
        .files
        .iter()
        .filter(|f| f.kind != FileKind::InfoLog)
        .map(|f| f.number)
        .max();
    let number = FileNo(highest.unwrap_or_default().0 + 1);
    let edits = edits(plan, FileNo(number.0 + 1));
    let exclusive = WriteOptions {
        exclusive: true,
        ..WriteOptions::default()
    };
    ManifestWriter::create(fs, &dir.path, number, exclusive, &edits)?.close()?;
    let moved = move_to_lost(dir, plan);
    if plan.db_id.is_none() || identity::read(fs, &dir.path).is_err() {
        let id = plan
            .db_id
            .clone()
            .unwrap_or_else(|| identity::new_db_id(&SystemEntropy::new()));
        identity::write(fs, &dir.path, &id)?;
    }
    moved?;
    current::install(fs, &dir.path, number)?;
    // What was written is read again before it is called good.
    let again = Fold::live(&Directory::read(&dir.path)?)?;
    match again.problems.first() {
        None => Ok(()),
        Some(e) => Err(Failure::Status(e.clone())),
    }
}

fn move_to_lost(dir: &Directory, plan: &Plan) -> Result<()> {
    if plan.lost.is_empty() {
        return Ok(());
    }
    let lost = dir.path.join(LOST_DIR);
    dir.fs.create_dir_all(&lost)?;
    for (path, _) in &plan.lost {
        let Some(name) = path.file_name() else {
            continue;
        };
        let mut to = lost.join(name);
        let mut n = 1;
        // An earlier repair may have moved a file of this name.
        while dir.fs.exists(&to)? {
            to = lost.join(format!("{}.{n}", name.to_string_lossy()));
            n += 1;
        }
        dir.fs.rename(path, &to)?;
    }
    dir.fs.sync_dir(&lost)?;
    dir.fs.sync_dir(&dir.path)
}
