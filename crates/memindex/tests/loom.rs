//! Models of the index: loom runs each in every order of a few threads' steps, up to one, two or
//! three preemptions of a thread, with every value that a load may see. `cargo xtask loom`.
//!
//! The lengths of an entry are a cell that loom watches: a read that is not ordered after the write
//! is a failure, whatever it returns. Nodes have three slots there, so that a few entries split
//! them. Counts are of whole runs of a model.
#![cfg(loom)]

use esker_memindex::{ArenaOptions, BytewisePlain, TreeIndex};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Index = TreeIndex<BytewisePlain>;

/// Runs a model in all its orders and says how many there were.
fn explore(name: &str, model: impl Fn() + Send + Sync + 'static) {
    explore_within(3, name, model);
}

/// With this many preemptions of a thread: one or two where a model has many steps.
fn explore_within(preemptions: usize, name: &str, model: impl Fn() + Send + Sync + 'static) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("loom {name}: {} runs", runs.load(Ordering::Relaxed));
}

fn index() -> Arc<Index> {
    let options = ArenaOptions {
        block_size: 4 << 10,
        huge_pages: None,
    };
    Arc::new(TreeIndex::new(BytewisePlain, options))
}

/// Keys as they come forward, each with the value that belongs to it.
fn forward(index: &Index) -> Vec<Vec<u8>> {
    let mut c = index.cursor();
    let mut keys = Vec::new();
    c.seek_to_first();
    while c.valid() {
        assert_eq!(c.key(), c.value(), "a node was seen before it was written");
        keys.push(c.key().to_vec());
        c.next();
    }
    assert!(
        keys.windows(2).all(|w| w[0] < w[1]),
        "out of order: {keys:?}"
    );
    keys
}

fn backward(index: &Index) -> Vec<Vec<u8>> {
    let mut c = index.cursor();
    let mut keys = Vec::new();
    c.seek_to_last();
    while c.valid() {
        assert_eq!(c.key(), c.value());
        keys.push(c.key().to_vec());
        c.prev();
    }
    assert!(
        keys.windows(2).all(|w| w[0] > w[1]),
        "out of order: {keys:?}"
    );
    keys
}

fn add(index: &Index, key: &[u8]) -> bool {
    index.add(key, key)
}

#[test]
fn two_writers_link_beside_each_other() {
    explore("two writers", || {
        let index = index();
        let other = Arc::clone(&index);
        let writer = thread::spawn(move || assert!(add(&other, b"a")));
        assert!(add(&index, b"b"));
        writer.join().expect("the writer");
        assert_eq!(forward(&index), [b"a", b"b"]);
        assert_eq!(backward(&index), [b"b", b"a"]);
        assert_eq!(index.len(), 2);
    });
}

#[test]
fn of_two_writers_of_one_key_one_wins() {
    explore("one key", || {
        let index = index();
        let other = Arc::clone(&index);
        let writer = thread::spawn(move || add(&other, b"key"));
        let mine = add(&index, b"key");
        let theirs = writer.join().expect("the writer");
        assert!(mine != theirs, "{mine} and {theirs}");
        assert_eq!(forward(&index), [b"key"]);
    });
}

/// An index of these keys.
fn index_of(keys: &[&[u8]]) -> Arc<Index> {
    let index = index();
    keys.iter().for_each(|key| assert!(add(&index, key)));
    index
}

/// A thread that adds keys, one after the other.
fn writer(index: &Arc<Index>, keys: &'static [&'static [u8]]) -> thread::JoinHandle<()> {
    let index = Arc::clone(index);
    thread::spawn(move || keys.iter().for_each(|key| assert!(add(&index, key))))
}

/// Reads in one thread and adds `keys` in another: loom would not let the thread that started the
/// other be overtaken.
fn beside(keys: &'static [&'static [u8]], index: &Arc<Index>, read: impl FnOnce(&Index) + 'static) {
    let own = Arc::clone(index);
    let reader = thread::spawn(move || read(&own));
    let writer = writer(index, keys);
    reader.join().expect("the reader");
    writer.join().expect("the writer");
}

#[test]
fn a_reader_beside_a_writer_goes_both_ways() {
    explore("reader, forward", || {
        let index = index_of(&[b"c"]);
        beside(&[b"b", b"a"], &index, |index| {
            let seen = forward(index);
            assert!(seen.contains(&b"c".to_vec()), "{seen:?}");
            let first = seen.first().map(Vec::as_slice);
            assert!(first != Some(b"a") || seen.len() == 3, "{seen:?}");
        });
    });
    explore("reader, backward", || {
        let index = index_of(&[b"c"]);
        beside(&[b"b", b"a"], &index, |index| {
            let seen = backward(index);
            assert!(seen.contains(&b"c".to_vec()), "{seen:?}");
        });
        assert_eq!(backward(&index).len(), 3);
    });
}

#[test]
fn a_reader_beside_two_writers_finds_what_was_there_before() {
    explore_within(1, "reader and two writers", || {
        let index = index_of(&[b"b"]);
        let other = writer(&index, &[b"a"]);
        beside(&[b"c"], &index, |index| {
            let mut c = index.cursor();
            c.seek(b"b");
            assert_eq!(c.key(), b"b");
            c.prev();
            assert!(!c.valid() || c.key() == b"a");
        });
        other.join().expect("a writer");
        assert_eq!(forward(&index), [b"a", b"b", b"c"]);
        assert_eq!(backward(&index), [b"c", b"b", b"a"]);
    });
}

/// The leaf splits in the middle, and slots that it gave up are written again.
#[test]
fn a_reader_beside_a_split_misses_nothing() {
    const BEFORE: [&[u8]; 3] = [b"b", b"d", b"f"];
    let all_before = |seen: &[Vec<u8>]| BEFORE.iter().all(|k| seen.iter().any(|s| s == k));
    explore_within(2, "split, forward", move || {
        let index = index_of(&BEFORE);
        beside(&[b"c"], &index, move |index| {
            let seen = forward(index);
            assert!(all_before(&seen), "{seen:?}");
        });
        assert_eq!(forward(&index), [b"b", b"c", b"d", b"f"]);
    });
    explore_within(2, "split, backward", move || {
        let index = index_of(&BEFORE);
        beside(&[b"c"], &index, move |index| {
            let seen = backward(index);
            assert!(all_before(&seen), "{seen:?}");
        });
        assert_eq!(backward(&index), [b"f", b"d", b"c", b"b"]);
    });
    explore_within(1, "split, searches", || {
        let index = index_of(&BEFORE);
        beside(&[b"c"], &index, |index| {
            for key in BEFORE {
                assert!(index.contains(key), "{key:?}");
            }
            let mut c = index.cursor();
            c.seek_for_prev(b"e");
            assert_eq!(c.key(), b"d");
            c.next();
            assert_eq!(c.key(), b"f");
        });
    });
}

#[test]
fn two_writers_split_one_leaf() {
    explore("two splits", || {
        let index = index_of(&[b"b", b"d", b"f"]);
        let writer = writer(&index, &[b"c"]);
        assert!(add(&index, b"e"));
        writer.join().expect("the writer");
        assert_eq!(forward(&index), [b"b", b"c", b"d", b"e", b"f"]);
        assert_eq!(backward(&index), [b"f", b"e", b"d", b"c", b"b"]);
    });
    explore("two ends", || {
        let index = index_of(&[b"b", b"d", b"f"]);
        let writer = writer(&index, &[b"g"]);
        assert!(add(&index, b"h"));
        writer.join().expect("the writer");
        assert_eq!(forward(&index), [b"b", b"d", b"f", b"g", b"h"]);
        assert!(index.contains(b"g") && index.contains(b"h"));
    });
}

#[test]
fn a_full_block_is_replaced_once_and_pieces_do_not_overlap() {
    explore_within(2, "arena", || {
        let index = index();
        // The first block has room for one of the two.
        let value = |byte: u8| vec![byte; 900];
        for (i, key) in [b"x", b"y"].into_iter().enumerate() {
            assert!(index.add(key, &value(i as u8)));
        }
        let other = Arc::clone(&index);
        let writer = thread::spawn(move || assert!(other.add(b"a", &value(7))));
        let large = vec![8; 1000];
        assert!(index.add(b"b", &large) && index.add(b"c", &large));
        writer.join().expect("the writer");
        let expected = [
            (b"a", 7, 900),
            (b"b", 8, 1000),
            (b"c", 8, 1000),
            (b"x", 0, 900),
        ];
        for (key, byte, len) in expected {
            let (_, found) = index.first_at_or_after(key).expect("it was added");
            assert!(found == vec![byte; len], "bytes of another entry");
        }
    });
}
