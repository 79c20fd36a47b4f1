//! Reading an edit. Every tag is understood; an unknown one is skipped only when its number allows
//! it.

use super::new_file::{NewFile, file_no, level};
use super::{BlobAddition, BlobGarbage, KnownLogs, VersionEdit, WalAddition, tag};
use crate::coding::Reader;
use crate::ids::{FamilyId, FileNo, Seq};
use crate::key::InternalKey;
use esker_status::{Error, Result};

impl VersionEdit {
    /// Decodes one edit. No bytes are an edit without effect.
    pub fn decode(bytes: &[u8]) -> Result<VersionEdit> {
        let mut edit = VersionEdit::default();
        let mut r = Reader::new(bytes);
        while !r.is_empty() {
            let at = r.position();
            let tag = r.varint32()?;
            edit.field(tag, &mut r).map_err(|e| {
                let (message, kind) = (e.message(), e.kind());
                Error::new(
                    kind,
                    format!("VersionEdit: tag {tag} at byte {at}: {message}"),
                )
            })?;
        }
        Ok(edit)
    }

    fn field(&mut self, tag: u32, r: &mut Reader<'_>) -> Result<()> {
        match tag {
            tag::COMPARATOR => self.comparator = Some(r.lptext()?.to_owned()),
            tag::LOG_NUMBER => self.log_number = Some(FileNo(r.varint64()?)),
            tag::NEXT_FILE_NUMBER => self.next_file_number = Some(FileNo(r.varint64()?)),
            tag::LAST_SEQUENCE => self.last_sequence = Some(sequence(r)?),
            tag::COMPACT_CURSOR => {
                let level = level(r)?;
                self.compact_cursors
                    .push((level, InternalKey::from_encoded(r.lpstr()?)?));
            }
            tag::DELETED_FILE => self.deleted_files.push((level(r)?, file_no(r)?)),
            tag::NEW_FILE => self.new_files.push(NewFile::decode_old(r, false, false)?),
            tag::NEW_FILE_2 => self.new_files.push(NewFile::decode_old(r, false, true)?),
            tag::NEW_FILE_3 => self.new_files.push(NewFile::decode_old(r, true, true)?),
            tag::NEW_FILE_4 => {
                let (level, file, min_log) = NewFile::decode_4(r)?;
                self.new_files.push((level, file));
                self.min_log_number_to_keep = min_log.or(self.min_log_number_to_keep);
            }
            tag::PREV_LOG_NUMBER => self.prev_log_number = Some(FileNo(r.varint64()?)),
            tag::MIN_LOG_NUMBER_TO_KEEP => {
                self.min_log_number_to_keep = Some(FileNo(r.varint64()?));
            }
            tag::COLUMN_FAMILY => self.family = FamilyId(r.varint32()?),
            tag::COLUMN_FAMILY_ADD => self.family_add = Some(r.lptext()?.to_owned()),
            tag::COLUMN_FAMILY_DROP => self.family_drop = true,
            tag::MAX_COLUMN_FAMILY => self.max_column_family = Some(FamilyId(r.varint32()?)),
            tag::IN_ATOMIC_GROUP => self.remaining_in_group = Some(r.varint32()?),
            tag::BLOB_FILE_ADDITION | tag::OLD_BLOB_FILE_ADDITION => {
                self.blob_additions.push(BlobAddition::decode(r)?);
            }
            tag::BLOB_FILE_GARBAGE | tag::OLD_BLOB_FILE_GARBAGE => {
                self.blob_garbage.push(BlobGarbage::decode(r)?);
            }
            _ => return self.ignorable_field(tag, r),
        }
        Ok(())
    }

    /// The tags that older readers may skip.
    fn ignorable_field(&mut self, tag: u32, r: &mut Reader<'_>) -> Result<()> {
        match tag {
            tag::DB_ID => self.db_id = Some(r.lptext()?.to_owned()),
            tag::OLD_WAL_ADDITION => self.wal_additions.push(wal_addition(r)?),
            tag::OLD_WAL_DELETION => self.wal_deletion = Some(FileNo(r.varint64()?)),
            tag::WAL_ADDITION => {
                self.wal_additions
                    .push(wal_addition(&mut Reader::new(r.lpstr()?))?);
            }
            tag::WAL_DELETION => {
                self.wal_deletion = Some(FileNo(Reader::new(r.lpstr()?).varint64()?));
            }
            tag::FULL_HISTORY_TS_LOW => match r.lpstr()? {
                [] => return Err(Error::corruption("full_history_ts_low is empty")),
                ts => self.full_history_ts_low = Some(ts.to_vec()),
            },
            tag::PERSIST_USER_DEFINED_TIMESTAMPS => match r.lpstr()? {
                [b] => self.persist_user_defined_timestamps = Some(*b == 1),
                other => {
                    let n = other.len();
                    return Err(Error::corruption(format!("a flag of {n} bytes, not 1")));
                }
            },
            tag::SUBCOMPACTION_PROGRESS => {
                self.subcompaction_progress = Some(r.lpstr()?.to_vec());
            }
            tag::LAST_COMPACTED_MANIFEST_SIZE => {
                self.last_compacted_manifest_size = Some(Reader::new(r.lpstr()?).varint64()?);
            }
            tag::KNOWN_LOGS => self.known_logs = Some(known_logs(&mut Reader::new(r.lpstr()?))?),
            _ if tag & tag::IGNORABLE_MASK != 0 => {
                r.lpstr()?;
            }
            _ => return Err(Error::corruption("unknown tag")),
        }
        Ok(())
    }
}

fn sequence(r: &mut Reader<'_>) -> Result<Seq> {
    let seq = Seq(r.varint64()?);
    if seq <= Seq::MAX {
        return Ok(seq);
    }
    Err(Error::corruption(format!(
        "sequence {seq} does not fit 56 bits"
    )))
}

fn known_logs(r: &mut Reader<'_>) -> Result<KnownLogs> {
    let mut logs = KnownLogs {
        newest: FileNo(r.varint64()?),
        before: FileNo(r.varint64()?),
        before_end: r.varint64()?,
        ..KnownLogs::default()
    };
    if !r.is_empty() {
        logs.end = r.varint64()?.checked_sub(1);
    }
    if !r.is_empty() {
        logs.synced = Some((FileNo(r.varint64()?), r.varint64()?));
    }
    Ok(logs)
}

fn wal_addition(r: &mut Reader<'_>) -> Result<WalAddition> {
    const END: u32 = 1;
    const SYNCED_SIZE: u32 = 2;
    let mut wal = WalAddition {
        number: FileNo(r.varint64()?),
        synced_size: None,
    };
    loop {
        match r.varint32()? {
            END => return Ok(wal),
            SYNCED_SIZE => wal.synced_size = Some(r.varint64()?),
            other => {
                return Err(Error::corruption(format!(
                    "unknown field {other} of a WAL addition"
                )));
            }
        }
    }
}
