//! Tests of which memtable keeps which log.

use super::*;
use crate::options::FamilyOptions;
use esker_format::{KeyOrder, Seq, ValueType};

/// A family's part in an index.
fn member(index: &Arc<HeldLogs>, family: u32) -> Arc<FamilyLogs> {
    let hold = FamilyLogs::new(FamilyId(family));
    hold.join(index, std::iter::empty());
    hold
}

fn memtable(hold: &Arc<FamilyLogs>, id: u64) -> Arc<MemTable> {
    let options = FamilyOptions::default();
    let mem = MemTable::new(id, KeyOrder::Bytewise, &options, FileNo(1), None, hold);
    Arc::new(mem)
}

fn put(mem: &MemTable, seq: u64) {
    mem.add(Seq(seq), ValueType::Value, b"key", b"value")
        .expect("put");
}

fn oldest(index: &HeldLogs) -> u64 {
    index.oldest().0
}

#[test]
fn the_oldest_log_is_that_of_the_first_write_that_is_in_no_table() {
    let index = HeldLogs::new();
    let (a, b) = (member(&index, 1), member(&index, 2));
    let (first, second, other) = (memtable(&a, 0), memtable(&a, 1), memtable(&b, 0));
    index.begun(FileNo(5));
    assert_eq!(oldest(&index), 5, "a write may be under way to it");
    put(&first, 1);
    put(&first, 2);
    index.begun(FileNo(8));
    put(&second, 3);
    index.begun(FileNo(9));
    index.switched_to(FileNo(9));
    put(&other, 4);
    assert_eq!((oldest(&index), index.len()), (5, 3));
    assert_eq!(first.log_number(), FileNo(5));
    assert_eq!(other.log_number(), FileNo(9));
    assert_eq!(index.oldest_to_name(|f| f != FamilyId(1)), FileNo(9));
    assert_eq!(index.holders(FileNo(8)), [FamilyId(1), FamilyId(1)]);
    a.end([&first].into_iter());
    assert_eq!(oldest(&index), 8);
    a.end([&first, &second].into_iter());
    assert_eq!((oldest(&index), index.with_data()), (9, vec![FamilyId(2)]));
    index.begun(FileNo(12));
    b.end([&other].into_iter());
    assert_eq!((oldest(&index), index.len()), (12, 0));
}

#[test]
fn a_write_that_is_under_way_keeps_its_log() {
    let index = HeldLogs::new();
    let a = member(&index, 1);
    let mem = memtable(&a, 0);
    index.begun(FileNo(3));
    // It is in log 3 and not in its memtable yet, so no other log takes appends.
    let needed = index.oldest();
    put(&mem, 1);
    assert!(needed <= mem.log_number());
}

/// Its writers may be in the middle of a group.
#[test]
fn a_family_that_was_dropped_keeps_no_log() {
    let index = HeldLogs::new();
    let a = member(&index, 1);
    let (mem, late) = (memtable(&a, 0), memtable(&a, 1));
    index.begun(FileNo(3));
    put(&mem, 1);
    index.begun(FileNo(4));
    a.leave([&mem].into_iter());
    put(&late, 2);
    assert_eq!((oldest(&index), index.len()), (4, 0));
}

#[test]
fn recovery_says_afterwards_where_the_data_begins() {
    let index = HeldLogs::new();
    let a = FamilyLogs::new(FamilyId(1));
    let mem = memtable(&a, 0);
    put(&mem, 1);
    a.join(&index, [&mem].into_iter());
    assert_eq!(index.holders(FileNo(1)), [FamilyId(1)]);
    a.move_to(&mem, FileNo(7));
    assert_eq!(index.holders(FileNo(6)), []);
    index.begun(FileNo(9));
    assert_eq!(oldest(&index), 7);
    a.end([&mem].into_iter());
    assert_eq!(index.len(), 0);
}
