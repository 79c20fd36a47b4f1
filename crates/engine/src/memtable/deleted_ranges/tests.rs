//! Lists of deleted ranges of several pieces.

use super::{DeletedRanges, MOST_RANGES, PIECE_MOST};
use esker_format::{KeyOrder, Seq};
use esker_lsm::visible::{DeletedRange, FoundRange, KnownRanges, ReaderPlace};

const PLACE: ReaderPlace = ReaderPlace {
    snapshot: Seq(7),
    view: 1,
    epoch: 0,
};

fn key(n: usize) -> Vec<u8> {
    format!("key{n:08}").into_bytes()
}

fn range(from: usize, upto: usize) -> DeletedRange {
    DeletedRange {
        begin: key(from),
        end: key(upto),
    }
}

fn found(from: usize, upto: usize, place: ReaderPlace) -> FoundRange {
    FoundRange {
        range: range(from, upto),
        place,
        known: Vec::new(),
    }
}

fn kept(ranges: &DeletedRanges) -> Vec<DeletedRange> {
    let list = ranges.list.load();
    list.ranges().map(|kept| (*kept.range).clone()).collect()
}

/// Ranges of five keys at each tenth key, kept in an order of leaps.
fn leaps(ranges: &DeletedRanges, count: usize) {
    for i in 0..count {
        let at = i * 7_919 % count * 10;
        ranges.keep(&found(at, at + 5, PLACE), |_, _| true);
    }
}

#[test]
fn ranges_of_many_pieces_are_found_by_each_of_their_keys() {
    let ranges = DeletedRanges::new(&KeyOrder::Bytewise);
    let count = PIECE_MOST * 5 + 3;
    leaps(&ranges, count);
    let expected: Vec<_> = (0..count).map(|i| range(i * 10, i * 10 + 5)).collect();
    assert_eq!(kept(&ranges), expected);
    for n in 0..count * 10 + 10 {
        let known = ranges.covering(&key(n), &PLACE);
        let is_deleted = n % 10 < 5 && n < count * 10;
        assert_eq!(known.is_some(), is_deleted, "key {n}");
    }
    let pieces = &ranges.list.load().pieces;
    assert!(pieces.len() > 4);
    assert!(pieces.iter().all(|piece| piece.ranges.len() <= PIECE_MOST));
}

#[test]
fn a_range_takes_the_place_of_those_of_several_pieces() {
    let ranges = DeletedRanges::new(&KeyOrder::Bytewise);
    let count = PIECE_MOST * 4;
    leaps(&ranges, count);
    ranges.keep(&found(15, count * 10 - 15, PLACE), |_, _| true);
    let expected = [
        range(0, 5),
        range(10, 15),
        range(15, count * 10 - 15),
        range(count * 10 - 10, count * 10 - 5),
    ];
    assert_eq!(kept(&ranges), expected);
}

#[test]
fn a_write_ends_the_range_of_its_key_alone() {
    let ranges = DeletedRanges::new(&KeyOrder::Bytewise);
    let count = PIECE_MOST * 3;
    leaps(&ranges, count);
    ranges.note_write(&key(1_003));
    for n in (0..count * 10).step_by(10) {
        let known = ranges.covering(&key(n), &PLACE);
        assert_eq!(known.is_none(), n == 1_000, "key {n}");
    }
    // It is found anew.
    ranges.keep(&found(1_000, 1_003, PLACE), |_, _| true);
    assert!(ranges.covering(&key(1_000), &PLACE).is_some());
    assert!(ranges.covering(&key(1_003), &PLACE).is_none());
}

#[test]
fn a_full_list_takes_a_range_where_one_is_of_no_use() {
    let ranges = DeletedRanges::new(&KeyOrder::Bytewise);
    leaps(&ranges, MOST_RANGES);
    let more = found(2_007, 2_009, PLACE);
    ranges.keep(&more, |_, _| true);
    assert!(ranges.covering(&key(2_007), &PLACE).is_none());
    ranges.note_write(&key(2_000));
    ranges.keep(&more, |_, _| true);
    assert!(ranges.covering(&key(2_007), &PLACE).is_some());
    assert_eq!(kept(&ranges).len(), MOST_RANGES);
}

#[test]
fn ranges_of_another_epoch_give_way() {
    let ranges = DeletedRanges::new(&KeyOrder::Bytewise);
    leaps(&ranges, PIECE_MOST * 2);
    let later = ReaderPlace { epoch: 1, ..PLACE };
    ranges.keep(&found(3, 12, later), |_, _| true);
    assert!(ranges.covering(&key(3), &later).is_some());
    assert!(ranges.covering(&key(3), &PLACE).is_none());
    let piece_of_it = &ranges.list.load().pieces[0];
    assert_eq!(piece_of_it.ranges.len(), 1);
}

#[test]
fn the_next_memtable_has_the_ranges_that_serve() {
    let (before, after) = (
        DeletedRanges::new(&KeyOrder::Bytewise),
        DeletedRanges::new(&KeyOrder::Bytewise),
    );
    leaps(&before, PIECE_MOST * 2);
    before.note_write(&key(1));
    after.take_over(&before);
    assert_eq!(kept(&after), kept(&before)[1..]);
}
