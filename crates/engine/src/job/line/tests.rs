//! Who may take what, and who is next.

use super::*;
use crate::family::LogHold;
use crate::options::FamilyOptions;
use esker_format::{FamilyId, FileNo, KeyOrder};

/// A line of flushes that take memtables up to these.
fn line(newest: &[u64]) -> Line {
    let mut line = Line::default();
    newest.iter().for_each(|n| line.join(*n));
    line
}

/// Memtables, newest first.
fn memtables(ids: &[u64]) -> Vec<Arc<MemTable>> {
    let options = FamilyOptions::default();
    let hold = LogHold::new(FamilyId::DEFAULT);
    let order = KeyOrder::Bytewise;
    let new = |id: &u64| MemTable::new(*id, order.clone(), &options, FileNo(1), None, &hold);
    ids.iter().map(new).map(Arc::new).collect()
}

fn free(line: &Line, waiting: &[u64]) -> Vec<u64> {
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
    assert_eq!(line.turn(3), Turn::Wait);
    assert_eq!(line.turn(5), Turn::Wait);
    for newest in [2, 3, 5] {
        assert_eq!(line.turn(newest), Turn::Install);
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
    assert_eq!(line.turn(1), Turn::Install);
    assert_eq!(line.turn(3), Turn::GiveUp);
    assert_eq!(line.turn(4), Turn::GiveUp);
    assert_eq!(free(&line, &[5, 4, 3, 2]), [], "the last of them is there");
    line.leave(4, false);
    assert_eq!(free(&line, &[5, 4, 3, 2]), [], "one of them is there");
    line.leave(3, false);
    assert_eq!(free(&line, &[5, 4, 3, 2, 1]), [5, 4, 3, 2]);
    line.leave(1, true);
    assert_eq!(free(&line, &[5, 4, 3, 2]), [5, 4, 3, 2]);
}
