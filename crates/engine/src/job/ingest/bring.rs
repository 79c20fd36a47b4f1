//! From a file outside to a file in the family's first directory: linked or copied, and synced.

use super::examine::Incoming;
use crate::core::{Services, Trees};
use crate::family::Family;
use crate::options::IngestOptions;
use crate::runtime::whole_files::copy;
use esker_env::WriteOptions as FileWriteOptions;
use esker_format::properties::TableProperties;
use esker_format::{FileNo, InternalKey, Seq};
use esker_lsm::file::FileMeta;
use esker_status::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// A file in the family's directory that no MANIFEST names yet.
#[derive(Debug)]
pub(crate) struct ImportFile {
    pub(crate) number: FileNo,
    /// Where it is.
    pub(crate) path: PathBuf,
    pub(crate) external: PathBuf,
    pub(crate) size: u64,
    pub(crate) smallest: InternalKey,
    pub(crate) largest: InternalKey,
    pub(crate) properties: TableProperties,
    pub(crate) own_seqs: Option<(Seq, Seq)>,
    /// The bytes are a copy; else they are those of the file outside.
    pub(crate) is_copied: bool,
    /// The sequence number in the file is to be this one, at this place; with what it is now.
    pub(crate) written: Option<(u64, Seq)>,
}

/// Brings a file in. The directory is not synced yet. A failure leaves nothing.
pub(crate) fn bring(
    trees: &Trees,
    family: &Family,
    file: Incoming,
    options: &IngestOptions,
) -> Result<ImportFile> {
    let written = match file.seqno_offset {
        Some(at) => Some((at, file.written_seq)),
        None if options.write_global_seqno => {
            return Err(
                Error::corruption("Was not able to find file global seqno field")
                    .with_file(&file.external),
            );
        }
        None if file.written_seq > Seq::ZERO => {
            return Err(Error::corruption(
                "the file has a sequence number from an ingestion before, at a place that cannot be changed",
            )
            .with_file(&file.external));
        }
        None => None,
    };
    let number = trees.numbers.next();
    let inside = family.reading.paths.table(number, 0);
    // What is to be changed is copied: the file outside stays as it is, however this ends.
    let share = (options.move_files || options.link_files) && written.is_none();
    let is_copied = !share || !link(&trees.services, &file.external, &inside, options)?;
    if is_copied {
        copy(&trees.services.env, &file.external, &inside, file.size)
            .inspect_err(|_| remove(&trees.services, &inside))?;
    }
    Ok(ImportFile {
        number,
        path: inside,
        external: file.external,
        size: file.size,
        smallest: file.smallest,
        largest: file.largest,
        properties: file.properties,
        own_seqs: file.own_seqs,
        is_copied,
        written,
    })
}

/// Gives the file a second name; false when it must be copied instead.
fn link(services: &Services, from: &Path, to: &Path, options: &IngestOptions) -> Result<bool> {
    match services.env.fs.hard_link(from, to) {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::NotSupported && options.failed_move_fall_back_to_copy => {
            services.info_log.info(format_args!("copied instead: {e}"));
            return Ok(false);
        }
        Err(e) => return Err(e),
    }
    // The writer of the file may not have synced it.
    let synced = || -> Result<()> {
        let mut file = services
            .env
            .fs
            .open_append(to, FileWriteOptions::default())?;
        file.sync()?;
        file.close()
    };
    synced().inspect_err(|_| remove(services, to))?;
    Ok(true)
}

/// Removes what a failed step may have made.
fn remove(services: &Services, path: &Path) {
    if let Err(e) = services.env.fs.remove_file(path)
        && !e.is_not_found()
    {
        services
            .info_log
            .warn(format_args!("an unfinished table stays behind: {e}"));
    }
}

/// After the files became part of the database: takes their names outside away.
pub(crate) fn finish_move(services: &Services, files: &[ImportFile]) {
    for file in files {
        if let Err(e) = services.env.fs.remove_file(&file.external) {
            services.info_log.warn(format_args!(
                "{} was added to DB successfully but failed to remove original file link : {e}",
                file.external.display()
            ));
        }
    }
}

/// Returns the metadata of the file for the MANIFEST, still without its sequence numbers and its
/// boundaries.
pub(crate) fn table_meta(services: &Services, file: &ImportFile) -> FileMeta {
    let p = &file.properties;
    let now = services.env.clock.unix_us() / 1_000_000;
    let meta = FileMeta {
        number: file.number,
        size: file.size,
        // A file that is one range deletion is best merged away soon.
        marked_for_compaction: p.num_range_deletions == 1 && p.num_entries == p.num_range_deletions,
        oldest_ancestor_time: now,
        file_creation_time: now,
        unique_id: p.unique_id().map(|id| id.0).filter(|id| *id != [0, 0]),
        tail_size: match p.tail_start_offset {
            0 => 0,
            at => file.size.saturating_sub(at),
        },
        min_timestamp: p.timestamp_min.clone(),
        max_timestamp: p.timestamp_max.clone(),
        ..FileMeta::default()
    };
    super::with_stats(meta, file)
}
