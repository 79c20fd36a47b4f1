//! Sequence numbers and targets of replayed and live records.

use super::*;
use crate::memtable::held_logs::FamilyLogs;
use crate::options::FamilyOptions;
use esker_format::batch::WriteBatch;
use esker_format::{FileNo, KeyOrder};

/// Takes the records of one family and skips all others.
struct Only(FamilyId, MemTable);

impl Memtables for Only {
    fn with(&mut self, family: FamilyId, f: impl FnOnce(&MemTable) -> Result<()>) -> Result<bool> {
        if family == self.0 {
            f(&self.1).map(|()| true)
        } else {
            Ok(false)
        }
    }
}

fn only(family: u32) -> Only {
    let options = FamilyOptions::default().resolve();
    let hold = FamilyLogs::new(FamilyId(family));
    let (order, log) = (KeyOrder::Bytewise, FileNo(1));
    let mem = MemTable::new(1, order, &options, log, None, &hold);
    Only(FamilyId(family), mem)
}

#[test]
fn skipped_families_keep_their_sequence_numbers() -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.put_cf(FamilyId(7), b"x", b"other")?;
    batch.log_data(b"takes no number")?;
    batch.put(b"a", b"1")?;
    batch.delete_cf(FamilyId(7), b"x")?;
    batch.put(b"b", b"2")?;
    let mut to = only(0);
    assert_eq!(insert(batch.records(), Seq(10), &mut to)?, 4);
    let mut seen = Vec::new();
    let mut cursor = to.1.cursor();
    esker_format::Cursor::seek_to_first(&mut cursor);
    while esker_format::Cursor::valid(&cursor) {
        let key = esker_format::Cursor::key(&cursor);
        seen.push((
            esker_format::key::user_key(key).to_vec(),
            esker_format::key::seq_of(key).0,
        ));
        esker_format::Cursor::next(&mut cursor);
    }
    assert_eq!(seen, [(b"a".to_vec(), 11), (b"b".to_vec(), 13)]);
    Ok(())
}

#[test]
fn markers_of_two_phase_commit_are_refused_by_name() -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.mark_commit(b"transaction")?;
    let error = insert(batch.records(), Seq(1), &mut only(0)).expect_err("no transaction layer");
    assert!(error.to_string().contains("two-phase commit"), "{error}");
    Ok(())
}

#[test]
fn one_sequence_twice_for_a_key_is_corruption() -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1")?;
    let mut to = only(0);
    insert(batch.records(), Seq(5), &mut to)?;
    assert!(
        insert(batch.records(), Seq(5), &mut to)
            .expect_err("replayed twice")
            .is_corruption()
    );
    Ok(())
}
