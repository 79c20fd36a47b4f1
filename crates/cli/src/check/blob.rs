//! Checks of blob files: header, every record with both checksums, footer, and the MANIFEST's
//! counts.

use super::report::{Report, Totals};
use crate::directory::Directory;
use esker_env::{FileSystem, RandomAccessFile, ReadOptions};
use esker_files::blob::BlobFileReader;
use esker_format::FamilyId;
use esker_format::blob::{BlobRecordHeader, FOOTER_LEN, HEADER_LEN, RECORD_HEADER_LEN};
use esker_format::file_name::{FileKind, blob_name};
use esker_lsm::version::BlobFile;
use esker_status::{Error, Result};

/// A blob file of the MANIFEST.
pub(super) struct Job<'a> {
    pub(super) dir: &'a Directory,
    pub(super) family: FamilyId,
    pub(super) meta: &'a BlobFile,
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
            let (count, bytes) = records(&*handle)?;
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
fn records(file: &dyn RandomAccessFile) -> Result<(u64, u64)> {
    let end = file.len() - FOOTER_LEN as u64;
    let (mut at, mut count) = (HEADER_LEN as u64, 0u64);
    let mut buffer = Vec::new();
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
        at += RECORD_HEADER_LEN as u64 + body;
        count += 1;
    }
    Ok((count, at - HEADER_LEN as u64))
}
