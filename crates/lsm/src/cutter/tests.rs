//! Keys go in, the files that they end up in come out.

use super::*;
use crate::shape::parse;
use esker_format::{InternalKey, Level, Seq, ValueType};

const ENTRY: u64 = 100;

fn grandparents(picture: &str) -> Vec<Arc<FileMeta>> {
    let tree = parse(&format!("L1: {picture}"), KeyOrder::Bytewise, 3).expect("a valid picture");
    tree.level(Level(1)).files().to_vec()
}

/// The files of a compaction of such keys, as each file's keys.
fn files(picture: &str, max_overlap: u64, keys: &str) -> String {
    let grandparents = grandparents(picture);
    let mut cutter = Cutter::new(KeyOrder::Bytewise, 8 * ENTRY, max_overlap, grandparents);
    let key = |k: u8| InternalKey::new(&[k], Seq(5), ValueType::Value);
    let (mut out, mut size) = (String::new(), 0);
    let mut last: Option<u8> = None;
    for k in keys.bytes() {
        let cut = last
            .is_some_and(|last| cutter.should_cut(size, key(last).as_bytes(), key(k).as_bytes()));
        if cut {
            cutter.start_file();
            out.push(' ');
            size = 0;
        }
        out.push(char::from(k));
        size += ENTRY;
        last = Some(k);
    }
    out
}

#[test]
fn files_end_at_their_size() {
    assert_eq!(files("", 9999, "abcdefghijklmnop"), "abcdefgh ijklmnop");
    // A boundary below the first half is none.
    let below = "1[a-c]#500 2[d-z]#500";
    assert_eq!(files(below, 9999, "abcdefghijkl"), "abcdefgh ijkl");
}

#[test]
fn files_end_where_a_grandparent_ends_once_they_are_half_full() {
    let below = "1[a-b]#200 2[c-e]#200 3[f-k]#200 4[l-z]#200";
    assert_eq!(files(below, 9999, "abcdefghijklmn"), "abcde fghijk lmn");
}

#[test]
fn files_meet_no_more_grandparents_than_one_compaction_should() {
    let below = "1[a-a]#500 2[b-b]#500 3[c-c]#500 4[d-d]#500 5[e-e]#500";
    assert_eq!(files(below, 900, "abcdef"), "ab cd ef");
}

#[test]
fn files_do_not_span_grandparents_that_they_have_no_key_in() {
    // Nothing was written between b and x.
    assert_eq!(
        files("1[a-b]#400 2[e-g]#400 3[x-z]#400", 9999, "abxyz"),
        "ab xyz"
    );
    // It counts how the file goes on, not where it began.
    assert_eq!(
        files("1[b-c]#400 2[f-h]#400 3[x-z]#400", 9999, "aeyz"),
        "ae yz"
    );
    // With a key in it, it is met anyway.
    assert_eq!(
        files("1[b-c]#400 2[f-h]#400 3[x-z]#400", 9999, "aefyz"),
        "aefyz"
    );
    // One entry is too little for a file, and 80 bytes are not worth one.
    assert_eq!(
        files("1[a-b]#400 2[e-g]#400 3[x-z]#400", 9999, "axyz"),
        "axyz"
    );
    assert_eq!(
        files("1[a-b]#400 2[e-g]#80 3[x-z]#400", 9999, "abxyz"),
        "abxyz"
    );
}

#[test]
fn grandparents_before_the_first_key_do_not_count() {
    let below = "1[a-b]#500 2[c-d]#500 3[e-f]#500 4[g-h]#500";
    assert_eq!(files(below, 900, "fgh"), "fgh");
}
