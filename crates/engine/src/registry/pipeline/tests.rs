//! Memtables that a flush may take, and the order of installs.

use super::*;
use crate::memtable::held_logs::FamilyLogs;
use crate::options::FamilyOptions;
use esker_format::{FamilyId, FileNo, KeyOrder};

/// A line of flushes that take memtables up to these.
fn line(newest: &[u64]) -> FlushPipeline {
    let mut line = FlushPipeline::default();
    newest.iter().for_each(|n| line.join(*n));
    line
}

/// Memtables, newest first.
fn memtables(ids: &[u64]) -> Vec<Arc<MemTable>> {
    let options = FamilyOptions::default();
    let hold = FamilyLogs::new(FamilyId::DEFAULT);
    let order = KeyOrder::Bytewise;
    let new = |id: &u64| MemTable::new(*id, order.clone(), &options, FileNo(1), None, &hold);
    ids.iter().map(new).map(Arc::new).collect()
}

fn free(line: &FlushPipeline, waiting: &[u64]) -> Vec<u64> {
    let waiting = memtables(waiting);
    line.free(&waiting).iter().map(|m| m.id()).collect()
}

#[test]
fn a_flush_takes_what_no_other_has_taken() {
    assert_eq!(free(&line(&[]), &[3, 2, 1]), [3, 2, 1]);
    assert_eq!(free(&line(&[2]), &[3, 2, 1]), [3]);
    assert_eq!(free(&line(&[1, 3]), &[5, 4, 3, 2, 1]), [5, 4]);
    assert_eq!(free(&line(&[3]), &[3, 2, 1]), []);
}

#[test]
fn flushes_are_installed_in_the_order_in_which_they_began() {
    let mut line = line(&[2, 3, 5]);
    assert_eq!(line.order(3), InstallOrder::Wait);
    assert_eq!(line.order(5), InstallOrder::Wait);
    for newest in [2, 3, 5] {
        assert_eq!(line.order(newest), InstallOrder::Install);
        line.leave(newest, true);
        // Its end, after it was installed, is nothing to the others.
        line.leave(newest, false);
    }
    assert!(line.is_empty());
}

#[test]
fn those_behind_one_that_gave_up_are_cut_off() {
    let mut line = line(&[1, 2, 3, 4]);
    line.leave(2, false);
    assert_eq!(line.order(1), InstallOrder::Install);
    assert_eq!(line.order(3), InstallOrder::GiveUp);
    assert_eq!(line.order(4), InstallOrder::GiveUp);
    assert_eq!(free(&line, &[5, 4, 3, 2]), [], "the last of them is there");
    line.leave(4, false);
    assert_eq!(free(&line, &[5, 4, 3, 2]), [], "one of them is there");
    line.leave(3, false);
    assert_eq!(free(&line, &[5, 4, 3, 2, 1]), [5, 4, 3, 2]);
    line.leave(1, true);
    assert_eq!(free(&line, &[5, 4, 3, 2]), [5, 4, 3, 2]);
}
