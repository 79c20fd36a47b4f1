//! A new family made of exported files.
//!
//! The files are looked at, brought into the directory as ingestion does it, and put on the levels
//! that they had. Their sequence numbers stay: the database's own goes up to the largest of them.
//! The family and its files are two edits of the MANIFEST, written and synced together.

use super::failed;
use super::ingest::examine::{bounds, check_order, open_outside};
use super::ingest::{ImportFile, Incoming, bring, finish_move, table_meta};
use super::output::discard;
use crate::core::{Core, Services};
use crate::family::Family;
use crate::health::ErrorSource;
use crate::metadata::{ExportedFiles, LiveFileMeta};
use crate::options::{FamilyOptions, ImportOptions, IngestOptions};
use crate::store::NotInstalled;
use crate::tree::FileNumbers;
use esker_files::table::ReadContext;
use esker_format::{FamilyId, InternalKey, Level, Seq};
use esker_lsm::edit::{TreeEdit, apply, recover_epochs};
use esker_lsm::file::FileMeta;
use esker_lsm::version::Version;
use esker_status::{Error, Result};
use esker_sync::Arc;

/// Makes family `name` of the files of `exported`, which are of one order and in disjoint ranges.
pub(crate) fn import_family(
    core: &Arc<Core>,
    name: &str,
    options: FamilyOptions,
    import: ImportOptions,
    exported: &[ExportedFiles],
) -> Result<Arc<Family>> {
    core.check_open_for_writes()?;
    core.services.health.check_writable()?;
    let order = options.comparator.name();
    if exported
        .iter()
        .any(|e| !e.db_comparator_name.is_empty() && e.db_comparator_name != order)
    {
        return Err(Error::invalid_argument("Comparator name mismatch"));
    }
    if order_has_timestamps(&options) {
        return Err(Error::not_supported(
            "importing a family whose keys have timestamps",
        ));
    }
    let draft = core.prepare_family(name, options)?;
    let _writing = FileNumbers::protect(&core.trees.numbers);
    let mut brought = Vec::new();
    let made = bring_all(core, &draft, import, exported, &mut brought)
        .and_then(|version| {
            core.trees.name_in_options(&draft)?;
            Ok(version)
        })
        .and_then(|version| commit(core, &draft, version, &brought));
    match made {
        Ok(family) => {
            if import.move_files {
                let files: Vec<ImportFile> = brought.into_iter().map(|(_, _, f)| f).collect();
                finish_move(&core.services, &files);
            }
            core.background.cv.notify();
            Ok(family)
        }
        Err(not) if not.is_certain => {
            let files = || brought.iter().map(|(_, _, f)| f);
            files().for_each(|f| core.trees.tables.forget(f.number));
            discard(
                &core.services,
                &files().map(|f| f.path.clone()).collect::<Vec<_>>(),
            );
            Err(not.error)
        }
        Err(not) => {
            failed(&core.background, ErrorSource::Compaction, &not.error);
            Err(not.error)
        }
    }
}

fn order_has_timestamps(options: &FamilyOptions) -> bool {
    options.comparator.timestamp_size() > 0
}

/// A file with its level and what orders it among the others.
type ImportPlacement = (Level, Origin, ImportFile);

/// The place of a file in the order of its family's data.
#[derive(Clone, Copy, Debug)]
struct Origin {
    smallest_seq: Seq,
    largest_seq: Seq,
    /// 0 when the exporting database did not say.
    epoch: u64,
}

/// Looks at every file and brings it in; the tree that they make.
fn bring_all(
    core: &Arc<Core>,
    draft: &Family,
    import: ImportOptions,
    exported: &[ExportedFiles],
    brought: &mut Vec<ImportPlacement>,
) -> Result<Version, NotInstalled> {
    let mut options = IngestOptions::default();
    options.move_files = import.move_files;
    let mut ranges = Vec::new();
    let empty = Arc::clone(&draft.view_guard().version);
    for set in exported {
        if set.files.is_empty() {
            return Err(Error::invalid_argument("The list of files is empty").into());
        }
        let incoming: Vec<Incoming> = set
            .files
            .iter()
            .map(|f| {
                if usize::from(f.level) >= empty.num_levels() {
                    return Err(Error::invalid_argument(format!(
                        "{} is from level {}, and the column family has num_levels {}",
                        f.name,
                        f.level,
                        empty.num_levels()
                    )));
                }
                look(&core.services, draft, f)
            })
            .collect::<Result<_>>()?;
        ranges.push(hull(draft, &incoming)?);
        for (f, file) in set.files.iter().zip(incoming) {
            let origin = Origin {
                smallest_seq: Seq(f.smallest_seq),
                largest_seq: Seq(f.largest_seq),
                epoch: f.epoch_number,
            };
            brought.push((
                Level(f.level),
                origin,
                bring(&core.trees, draft, file, &options)?,
            ));
        }
    }
    if brought.is_empty() {
        return Err(Error::invalid_argument("The list of files is empty").into());
    }
    let order = &draft.order;
    ranges.sort_by(|a, b| order.compare(a.0.user(), b.0.user()));
    if ranges
        .windows(2)
        .any(|w| order.compare(w[0].1.user(), w[1].0.user()).is_ge())
    {
        return Err(Error::invalid_argument("CFs have overlapping ranges").into());
    }
    core.services.env.fs.sync_dir(draft.reading.paths.first())?;
    let tree = TreeEdit {
        added: brought
            .iter()
            .map(|(level, origin, file)| (*level, Arc::new(meta(&core.services, file, *origin))))
            .collect(),
        ..TreeEdit::default()
    };
    // Epochs order files of one database; those of different ones are in disjoint ranges.
    Ok(recover_epochs(&apply(&empty, &[tree])?))
}

/// Looks at a file where it is. Its boundaries are those of its metadata, since range deletions may
/// reach beyond what counts.
fn look(services: &Services, draft: &Family, f: &LiveFileMeta) -> Result<Incoming> {
    let path = f.path();
    let reader = open_outside(services, draft, &path)?;
    let p = reader.properties();
    check_order(&draft.order, &p.comparator_name).map_err(|e| e.with_file(&path))?;
    if f.size > 0 && f.size != reader.file_size() {
        return Err(Error::corruption(format!(
            "the file has {} bytes, but {} in its metadata",
            reader.file_size(),
            f.size
        ))
        .with_file(&path));
    }
    if f.oldest_blob_file.is_some() {
        return Err(
            Error::not_supported("importing a table that refers to blob files").with_file(&path),
        );
    }
    if p.num_entries == 0 {
        return Err(Error::invalid_argument("File contain no entries").with_file(&path));
    }
    let ctx = ReadContext {
        fill_cache: false,
        total_order_seek: true,
        ..ReadContext::default()
    };
    let edges = if f.smallest.is_empty() || f.largest.is_empty() {
        bounds(&reader, &ctx)?
    } else {
        Some((
            InternalKey::from_encoded(&f.smallest)?,
            InternalKey::from_encoded(&f.largest)?,
        ))
    };
    let Some((smallest, largest)) = edges else {
        return Err(Error::invalid_argument("File contain no entries").with_file(&path));
    };
    Ok(Incoming {
        external: path,
        size: reader.file_size(),
        smallest,
        largest,
        properties: p.clone(),
        own_seqs: Some((Seq(f.smallest_seq), Seq(f.largest_seq))),
        // A number that an ingestion wrote into the file is the one that its metadata names.
        written_seq: Seq::ZERO,
        seqno_offset: None,
    })
}

/// The range of all files together.
fn hull(draft: &Family, files: &[Incoming]) -> Result<(InternalKey, InternalKey)> {
    let order = &draft.order;
    let less =
        |a: &InternalKey, b: &InternalKey| order.compare_internal(a.as_bytes(), b.as_bytes());
    let smallest = files.iter().map(|f| &f.smallest).min_by(|a, b| less(a, b));
    let largest = files.iter().map(|f| &f.largest).max_by(|a, b| less(a, b));
    match (smallest, largest) {
        (Some(lo), Some(hi)) => Ok((lo.clone(), hi.clone())),
        _ => Err(Error::invalid_argument("The list of files is empty")),
    }
}

fn meta(services: &Services, file: &ImportFile, origin: Origin) -> FileMeta {
    FileMeta {
        smallest: file.smallest.clone(),
        largest: file.largest.clone(),
        smallest_seq: origin.smallest_seq,
        largest_seq: origin.largest_seq,
        epoch: origin.epoch,
        marked_for_compaction: false,
        ..table_meta(services, file)
    }
}

/// Commits the family with its tree.
fn commit(
    core: &Arc<Core>,
    draft: &Family,
    version: Version,
    brought: &[ImportPlacement],
) -> Result<Arc<Family>, NotInstalled> {
    let newest = brought.iter().map(|(_, o, _)| o.largest_seq).max();
    let version = Arc::new(version);
    let mut log = core.writes.lock();
    core.reads.sequence.quiesce();
    // The files survive power loss, so earlier writes have to.
    if let Err(e) = log.sync_before_tables() {
        drop(log);
        failed(&core.background, ErrorSource::Wal, &e);
        return Err(e.into());
    }
    let (last, number) = (core.reads.sequence.allocated(), log.number());
    let taken = newest.map_or(0, |n| n.0.saturating_sub(last.0));
    core.reads.sequence.allocate(taken);
    let made = core
        .trees
        .store
        .add_family(&core.trees.families, |id: FamilyId| {
            let family = draft.with_tree(id, Arc::clone(&version), number);
            for (level, file) in version.files() {
                core.trees.tables.get(file, level, &family.reading)?;
            }
            Ok(family)
        });
    log.mention_manifest();
    core.reads.sequence.publish(last.next(), taken);
    drop(log);
    made
}
