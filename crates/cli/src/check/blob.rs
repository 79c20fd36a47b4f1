//! Checks of blob files: header, every record with both checksums, footer, the MANIFEST's counts,
//! and the order of sorted groups.

use super::report::{Report, Totals};
use crate::directory::Directory;
use crate::fold::Family;
use esker_env::{FileSystem, RandomAccessFile, ReadOptions};
use esker_files::blob::BlobFileReader;
use esker_format::blob::{BlobRecordHeader, FOOTER_LEN, HEADER_LEN, RECORD_HEADER_LEN};
use esker_format::blob_groups::BlobGroup;
use esker_format::blob_refs::BlobRefs;
use esker_format::file_name::{FileKind, blob_name};
use esker_format::{FamilyId, FileNo, KeyOrder};
use esker_lsm::version::BlobFile;
use esker_status::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// A blob file of the MANIFEST.
pub(super) struct Job<'a> {
    pub(super) dir: &'a Directory,
    pub(super) family: FamilyId,
    pub(super) meta: &'a BlobFile,
    /// The order of the family's keys.
    pub(super) order: &'a KeyOrder,
    /// Takes the keys of a file of medium values.
    pub(super) ranges: &'a Mutex<Vec<BlobKeyRange>>,
}

/// The first and the last key of a file of a sorted group.
pub(super) struct BlobKeyRange {
    group: BlobGroup,
    file: FileNo,
    first: Vec<u8>,
    last: Vec<u8>,
}

/// Looks whether the files of each group of a family are disjoint, and of a level that the tree
/// has. What is not reads as well, but more slowly.
pub(super) fn check_groups(
    dir: &Directory,
    family: &Family,
    mut ranges: Vec<BlobKeyRange>,
    report: &Report,
) {
    let Ok(version) = &family.version else { return };
    let order = version.order();
    let odd = |file: FileNo, what: String| {
        let path = dir.path.join(blob_name(file));
        report.warning(Error::corruption(what).with_file(path));
    };
    ranges.sort_by(|a, b| {
        let by_key = || order.compare(&a.first, &b.first);
        a.group.cmp(&b.group).then_with(by_key)
    });
    for pair in ranges.windows(2).filter(|p| p[0].group == p[1].group) {
        if order.compare(&pair[0].last, &pair[1].first).is_gt() {
            let (group, other) = (pair[0].group.number, pair[1].file);
            let what = format!("overlaps blob file {other} of its group {group}");
            odd(pair[0].file, what);
        }
    }
    for range in ranges {
        if range.group.level.index() >= version.num_levels() {
            let what = format!("its group is of level {}", range.group.level);
            odd(range.file, what);
        }
    }
}

/// Compares what tables refer to, `refs`, with the garbage that the MANIFEST counts. A file with
/// too much garbage would go with live values; one with too little stays longer than it need.
pub(super) fn check_garbage(dir: &Directory, family: &Family, refs: &BlobRefs, report: &Report) {
    let Ok(version) = &family.version else { return };
    for blob in version.blob_files().values() {
        let live = refs.of(blob.number);
        let said = (
            blob.total_count.saturating_sub(blob.garbage_count),
            blob.live_bytes(),
        );
        if said == (live.count, live.bytes) {
            continue;
        }
        let what = format!(
            "tables refer to {} values of {} bytes, but {} of {} bytes are no garbage in the MANIFEST",
            live.count, live.bytes, said.0, said.1
        );
        let path = dir.path.join(blob_name(blob.number));
        let e = Error::corruption(what).with_file(path);
        if live.count > said.0 || live.bytes > said.1 {
            report.error(e);
        } else {
            report.warning(e);
        }
    }
}

/// Checks a blob file that the MANIFEST names.
pub(super) fn check(job: &Job<'_>, report: &Report) {
    let Some(file) = job.dir.find(FileKind::Blob, job.meta.number) else {
        let path = job.dir.path.join(blob_name(job.meta.number));
        return report.error(Error::corruption("blob file is missing").with_file(path));
    };
    let outcome = job
        .dir
        .fs
        .open_read(&file.path, ReadOptions::default())
        .and_then(|handle| {
            let reader = BlobFileReader::over(handle.clone(), job.meta.number, job.family)?;
            let (count, bytes) = records(&*handle, job, report)?;
            // After a repair a value that two tables name counts twice.
            let twice = job.meta.total_count > count && job.meta.total_bytes > bytes;
            let said = if twice {
                (count, bytes)
            } else {
                (job.meta.total_count, job.meta.total_bytes)
            };
            for (what, said, found) in [
                ("records, its footer says", reader.blob_count(), count),
                ("records, the MANIFEST says", said.0, count),
                ("bytes of records, the MANIFEST says", said.1, bytes),
            ] {
                if said != found {
                    let text = format!("blob file holds {found} {what} {said}");
                    report.error(Error::corruption(text).with_file(&file.path));
                }
            }
            report.add(Totals {
                blob_files: 1,
                blobs: count,
                ..Totals::default()
            });
            Ok(())
        });
    if let Err(e) = outcome {
        report.error(e.with_file(&file.path));
    }
}

/// Walks over all records; their number and bytes.
fn records(file: &dyn RandomAccessFile, job: &Job<'_>, report: &Report) -> Result<(u64, u64)> {
    let end = file.len() - FOOTER_LEN as u64;
    let (mut at, mut count) = (HEADER_LEN as u64, 0u64);
    let mut buffer = Vec::new();
    let mut range = job.meta.tier.group().map(|group| BlobKeyRange {
        group,
        file: job.meta.number,
        first: Vec::new(),
        last: Vec::new(),
    });
    while at < end {
        let place = |e: Error| e.with_file(file.path()).with_offset(at);
        let mut head = [0u8; RECORD_HEADER_LEN];
        if end - at < RECORD_HEADER_LEN as u64 || file.read_at(at, &mut head)? < head.len() {
            return Err(place(Error::corruption(
                "a blob record does not fit its file",
            )));
        }
        let header = BlobRecordHeader::decode(&head).map_err(place)?;
        let body = header.key_len.checked_add(header.value_len);
        let left = end - at - RECORD_HEADER_LEN as u64;
        let body = body
            .filter(|body| *body <= left)
            .ok_or_else(|| place(Error::corruption("a blob record does not fit its file")))?;
        buffer.resize(body as usize, 0);
        if file.read_at(at + RECORD_HEADER_LEN as u64, &mut buffer)? < buffer.len() {
            return Err(place(Error::corruption("the blob file ends early")));
        }
        let (key, value) = buffer.split_at(header.key_len as usize);
        header.verify_body(key, value).map_err(place)?;
        if let Some(range) = &mut range {
            if count == 0 {
                range.first = key.to_vec();
            } else if job.order.compare(&range.last, key).is_gt() {
                let e = Error::corruption("a medium value is out of the order of the keys");
                report.warning(place(e));
            }
            range.last.clear();
            range.last.extend_from_slice(key);
        }
        at += RECORD_HEADER_LEN as u64 + body;
        count += 1;
    }
    if let Some(range) = range.filter(|_| count > 0) {
        let mut ranges = job.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        ranges.push(range);
    }
    Ok((count, at - HEADER_LEN as u64))
}
