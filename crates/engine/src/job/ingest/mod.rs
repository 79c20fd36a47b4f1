//! Taking in table files that were made elsewhere.
//!
//! First every file is looked at where it is ([`examine`]) and then copied or linked into the
//! database's directory under a number of its own ([`bring`]), synced, the directory too. All that
//! runs beside writers. Then writers are stopped: memtables that hold keys of the files' ranges are
//! flushed, each file is given the deepest level where nothing overlaps it and, where something
//! does or a snapshot must not see it, a sequence number ([`place`]). One edit of the MANIFEST adds
//! all the files of all the families, and names the sequence numbers (the log is synced before: the
//! files must not survive what was written earlier); then the trees are shown, and last the
//! sequence numbers published. So readers see all of it or nothing, and so does recovery.
//!
//! Files that a failure before the edit leaves are removed at once, unless the machine dies: then
//! the database removes them when it opens next, as tables that the MANIFEST does not list.
//!
//! Rejected: to decide without stopping writers and to look again at the end. A
//! decision is a few reads of index blocks, and the wait is for one sync of the MANIFEST.

mod bring;
pub(super) mod examine;
mod place;

pub(super) use bring::{ImportFile, bring, finish_move, table_meta};
pub(super) use examine::{Incoming, examine};

use super::failed;
use super::flush_ticket::FlushCaller;
use super::output::discard;
use crate::core::{Core, Trees};
use crate::family::{CompactionStats, Family, IngestionGuard};
use crate::health::ErrorSource;
use crate::observe::{FlushReason, HistogramId, IngestInfo, PerfLevel, PerfMetric, perf_timer};
use crate::options::IngestOptions;
use crate::store::{Change, NotInstalled};
use crate::tree::FileNumbers;
use esker_format::{FamilyId, Seq};
use esker_lsm::edit::TreeEdit;
use esker_lsm::file::FileMeta;
use esker_status::{Error, Result};
use esker_sync::Arc;
use place::{IngestPlacement, RangeReservation};
use std::path::PathBuf;

/// The id of the family that a file is for when that is not known.
pub(crate) const UNKNOWN_FAMILY: FamilyId = FamilyId(i32::MAX as u32);

/// Files for one family.
pub(crate) struct IngestJob {
    pub(crate) family: Arc<Family>,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) options: IngestOptions,
}

/// Files for one family, in the database's directory.
pub(super) struct IngestFiles {
    pub(super) family: Arc<Family>,
    pub(super) options: IngestOptions,
    pub(super) files: Vec<ImportFile>,
    /// Some of the files overlap each other.
    pub(super) overlap: bool,
}

/// Takes in the files of all jobs, or none.
pub(crate) fn ingest(core: &Arc<Core>, jobs: Vec<IngestJob>) -> Result<()> {
    let _timed = perf_timer(
        PerfMetric::FileIngestionNanos,
        PerfLevel::EnableTime,
        &*core.services.env.clock,
    );
    core.check_open_for_writes()?;
    core.services.health.check_writable()?;
    check(&jobs)?;
    let _writing = FileNumbers::protect(&core.trees.numbers);
    let prepared = {
        let _timed = core.reads.timed(HistogramId::IngestExternalFilePrepareTime);
        prepare(core, jobs)?
    };
    let _timed = core.reads.timed(HistogramId::IngestExternalFileRunTime);
    let started_us = core.services.env.clock.now_us();
    match commit(core, &prepared) {
        Ok(placed) => {
            tell(
                core,
                &prepared,
                &placed,
                core.services.env.clock.now_us() - started_us,
            );
            for one in &prepared {
                if one.options.move_files {
                    finish_move(&core.services, &one.files);
                }
            }
            for one in &prepared {
                core.writes.admission.refresh(&one.family);
            }
            core.background.cv.notify();
            Ok(())
        }
        Err(not) => {
            if not.is_certain {
                discard_all(&core.trees, &prepared);
            } else {
                // The MANIFEST may hold the edit: its files stay, and the next one starts a new
                // MANIFEST.
                failed(&core.background, ErrorSource::Compaction, &not.error);
            }
            core.background.cv.notify();
            Err(not.error)
        }
    }
}

/// Jobs that can be carried out together.
fn check(jobs: &[IngestJob]) -> Result<()> {
    let invalid = |what: &str| Err(Error::invalid_argument(what));
    if jobs.is_empty() {
        return invalid("ingestion arg list is empty");
    }
    for (i, job) in jobs.iter().enumerate() {
        let o = &job.options;
        if jobs[..i]
            .iter()
            .any(|j| Arc::ptr_eq(&j.family, &job.family))
        {
            return invalid("ingestion args have duplicate column families");
        }
        if job.paths.is_empty() {
            return invalid("The list of files is empty");
        }
        if o.ingest_behind {
            return Err(Error::not_supported("ingest_behind").with_hint(
                "a family cannot be opened with cf_allow_ingest_behind; ingest without ingest_behind",
            ));
        }
        if o.allow_db_generated_files && o.write_global_seqno {
            return Err(Error::not_supported(
                "write_global_seqno is deprecated and does not work with allow_db_generated_files.",
            ));
        }
        if o.move_files && o.link_files {
            return invalid("`move_files` and `link_files` can not both be true.");
        }
    }
    Ok(())
}

/// Looks at all files and brings them in; a failure leaves nothing behind.
fn prepare(core: &Arc<Core>, jobs: Vec<IngestJob>) -> Result<Vec<IngestFiles>> {
    let mut out: Vec<IngestFiles> = Vec::with_capacity(jobs.len());
    let run = || -> Result<()> {
        for job in jobs {
            let incoming: Vec<Incoming> = job
                .paths
                .iter()
                .map(|path| examine(&core.services, &job.family, path, &job.options))
                .collect::<Result<_>>()?;
            let overlap = examine::overlap_each_other(&job.family, &incoming);
            check_overlap(&job, overlap)?;
            out.push(IngestFiles {
                family: job.family,
                options: job.options,
                files: Vec::with_capacity(incoming.len()),
                overlap,
            });
            let Some(own) = out.last_mut() else { continue };
            for file in incoming {
                own.files
                    .push(bring(&core.trees, &own.family, file, &own.options)?);
            }
        }
        for job in &out {
            core.services
                .env
                .fs
                .sync_dir(job.family.reading.paths.first())?;
        }
        Ok(())
    };
    match run() {
        Ok(()) => Ok(out),
        Err(e) => {
            discard_all(&core.trees, &out);
            Err(e)
        }
    }
}

fn check_overlap(job: &IngestJob, overlap: bool) -> Result<()> {
    if !overlap {
        return Ok(());
    }
    if !job.options.allow_global_seqno && !job.options.allow_db_generated_files {
        return Err(Error::invalid_argument(
            "Global seqno is required, but disabled (because external files key range overlaps).",
        ));
    }
    if job.family.order.timestamp_size() > 0 {
        return Err(Error::not_supported(
            "Files with overlapping ranges cannot be ingested to column family with user-defined timestamp enabled.",
        ));
    }
    Ok(())
}

/// Removes what was brought in; no MANIFEST can name it.
fn discard_all(trees: &Trees, prepared: &[IngestFiles]) {
    let files = || prepared.iter().flat_map(|p| &p.files);
    files().for_each(|f| trees.tables.forget(f.number));
    discard(
        &trees.services,
        &files().map(|f| f.path.clone()).collect::<Vec<_>>(),
    );
}

/// Gives every file its level and sequence number and commits them, while no writer writes.
fn commit(
    core: &Arc<Core>,
    prepared: &[IngestFiles],
) -> Result<Vec<Vec<IngestPlacement>>, NotInstalled> {
    let _timed = perf_timer(
        PerfMetric::FileIngestionBlockingLiveWritesNanos,
        PerfLevel::EnableTime,
        &*core.services.env.clock,
    );
    let _stopped = core.writes.stop_writers();
    let _ingesting = begin(core, prepared);
    flush_overlapped(core, prepared)?;
    let mut log = core.writes.lock();
    core.reads.sequence.quiesce();
    // The files survive power loss, so what was written before them has to.
    if let Err(e) = log.sync_before_tables() {
        drop(log);
        failed(&core.background, ErrorSource::Wal, &e);
        return Err(e.into());
    }
    if prepared.iter().any(|p| p.family.is_dropped()) {
        return Err(
            Error::invalid_argument("cannot ingest an external file into a dropped CF").into(),
        );
    }
    // Until this is dropped no compaction begins that would write where the files may go.
    let reserved: Vec<RangeReservation<'_>> = prepared
        .iter()
        .map(|p| RangeReservation::new(&core.background, p))
        .collect();
    let last = core.reads.sequence.allocated();
    let mut placed = Vec::with_capacity(prepared.len());
    let mut taken = 0;
    let installed = core.trees.store.install_together(
        &core.trees.families,
        || {
            let mut newest = last;
            let mut changes = Vec::with_capacity(prepared.len());
            for (job, reserved) in prepared.iter().zip(&reserved) {
                let places = place::place(core, job, reserved, &mut newest)?;
                let mut tree = TreeEdit::default();
                for (file, place) in job.files.iter().zip(&places) {
                    let meta = Arc::new(place::meta(&core.services, file, place));
                    // A file that cannot be read as part of the tree is not to be installed.
                    core.trees
                        .tables
                        .get(&meta, place.level, &job.family.reading)?;
                    tree.added.push((place.level, meta));
                }
                placed.push(places);
                changes.push((Arc::clone(&job.family), Change::of_tree(tree)));
            }
            // The edits name the newest sequence number; readers see it once the trees are shown.
            taken = newest.0 - last.0;
            core.reads.sequence.allocate(taken);
            Ok(changes)
        },
        |_, old, version| old.with_version(version),
    );
    log.mention_manifest();
    core.reads.sequence.publish(last.next(), taken);
    if taken > 0 {
        for job in prepared {
            job.family.forget_history(core.reads.sequence.published());
        }
    }
    installed.map(|()| placed)
}

/// From now on no iterator adds range deletions to the families.
fn begin(core: &Core, prepared: &[IngestFiles]) -> Vec<IngestionGuard> {
    let _log = core.writes.lock();
    let families = prepared.iter().map(|p| &p.family);
    families.map(Family::begin_ingestion).collect()
}

/// Flushes the memtables that hold keys of the files' ranges. Writers are stopped, so none comes
/// after.
fn flush_overlapped(core: &Arc<Core>, prepared: &[IngestFiles]) -> Result<()> {
    let mut families = Vec::new();
    {
        let _log = core.writes.lock();
        core.reads.sequence.quiesce();
        for job in prepared {
            if !place::meets_memtables(job)? {
                continue;
            }
            if !job.options.allow_blocking_flush {
                return Err(Error::invalid_argument("External file requires flush"));
            }
            if job.family.order.timestamp_size() > 0 {
                return Err(Error::invalid_argument(
                    "Column family enables user-defined timestamps, please make sure the key range (without \
                     timestamp) of external file does not overlap with key range in the memtables.",
                ));
            }
            families.push(Arc::clone(&job.family));
        }
    }
    if families.is_empty() {
        return Ok(());
    }
    core.flush(
        &families,
        FlushCaller::Waits,
        FlushReason::ExternalFileIngestion,
    )
}

/// Counts and tells what was taken in.
fn tell(core: &Core, prepared: &[IngestFiles], placed: &[Vec<IngestPlacement>], took_us: u64) {
    let number = core.services.next_job();
    for (job, places) in prepared.iter().zip(placed) {
        for (file, place) in job.files.iter().zip(places) {
            job.family.compaction_stats.ingested(
                place.level,
                file.properties.num_entries,
                &CompactionStats {
                    bytes_written: if file.is_copied { file.size } else { 0 },
                    bytes_moved: if file.is_copied { 0 } else { file.size },
                    micros: took_us,
                    jobs: 1,
                    ..CompactionStats::default()
                },
            );
            core.services.info_log.info(format_args!(
                "[AddFile] External SST file {} was ingested in L{} with path {} (global_seqno={})",
                file.external.display(),
                place.level,
                file.path.display(),
                place.seq,
            ));
            let info = IngestInfo {
                database: core.services.lent(),
                properties: std::sync::Arc::new(file.properties.clone()),
                family: job.family.name.clone(),
                external_file: file.external.clone(),
                internal_file: file.path.clone(),
                global_seq: place.seq,
                level: place.level,
            };
            let listeners = &core.services.options.load().listeners;
            listeners
                .iter()
                .for_each(|l| l.on_external_file_ingested(&info));
        }
        let files = job.files.iter().zip(places);
        core.services
            .ingest_ended(&job.family, number, files.map(|(f, p)| (f.number, p.level)));
    }
}

/// The sequence numbers of a file as the tree will have them.
pub(super) fn seqs_of(file: &ImportFile, assigned: Seq) -> (Seq, Seq) {
    file.own_seqs.unwrap_or((assigned, assigned))
}

/// A new table's metadata with the counts of its properties.
pub(super) fn with_stats(meta: FileMeta, file: &ImportFile) -> FileMeta {
    let p = &file.properties;
    let _fresh = meta.stats.set(esker_lsm::file::FileStats {
        num_entries: p.num_entries,
        num_deletions: p.num_deletions,
        num_range_deletions: p.num_range_deletions,
        raw_key_size: p.raw_key_size,
        raw_value_size: p.raw_value_size,
        newest_key_time: p.newest_key_time,
    });
    meta
}
