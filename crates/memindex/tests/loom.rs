//! Models of the index: loom runs each in every order of a few threads' steps, up to three preemptions of a thread, with
//! every value that a load may see. `cargo xtask loom`.
//!
//! A node's prefix and what a lone writer leaves for the next are cells that loom watches: a read that is not ordered after
//! the write is a failure, whatever it returns. Counts are of whole runs of a model.
#![cfg(loom)]

use esker_memindex::{Arena, ArenaOptions, BytewisePlain, SkipIndex};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Index = SkipIndex<BytewisePlain>;

/// Runs a model in all its orders and says how many there were.
fn explore(name: &str, model: impl Fn() + Send + Sync + 'static) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
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
        huge_pages: false,
    };
    Arc::new(SkipIndex::new(BytewisePlain, Arc::new(Arena::new(options))))
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
    index.writer_shared().add(key, key)
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

/// A thread that writes alone, backwards.
fn writer_of_b_and_a(index: &Arc<Index>) -> thread::JoinHandle<()> {
    let index = Arc::clone(index);
    thread::spawn(move || {
        let mut w = index.writer_alone().expect("nobody else writes");
        assert!(w.add(b"b", b"b") && w.add(b"a", b"a"));
    })
}

#[test]
fn a_reader_beside_a_lone_writer_goes_both_ways() {
    explore("reader, forward", || {
        let index = index();
        assert!(add(&index, b"c"));
        let writer = writer_of_b_and_a(&index);
        let seen = forward(&index);
        assert!(seen.contains(&b"c".to_vec()), "{seen:?}");
        let first = seen.first().map(Vec::as_slice);
        assert!(first != Some(b"a") || seen.len() == 3, "{seen:?}");
        writer.join().expect("the writer");
    });
    explore("reader, backward", || {
        let index = index();
        assert!(add(&index, b"c"));
        let writer = writer_of_b_and_a(&index);
        let seen = backward(&index);
        assert!(seen.contains(&b"c".to_vec()), "{seen:?}");
        let mut c = index.cursor();
        c.seek_for_prev(b"bb");
        assert!(!c.valid() || c.key() < &b"bb"[..]);
        writer.join().expect("the writer");
        assert_eq!(backward(&index).len(), 3);
    });
}

#[test]
fn a_reader_beside_two_writers_finds_what_was_there_before() {
    explore("reader and two writers", || {
        let index = index();
        assert!(add(&index, b"b"));
        let (one, two) = (Arc::clone(&index), Arc::clone(&index));
        let first = thread::spawn(move || assert!(add(&one, b"a")));
        let second = thread::spawn(move || assert!(add(&two, b"c")));
        assert!(index.contains(b"b"));
        let mut c = index.cursor();
        c.seek(b"b");
        assert_eq!(c.key(), b"b");
        c.prev();
        assert!(!c.valid() || c.key() == b"a");
        first.join().expect("a writer");
        second.join().expect("a writer");
        assert_eq!(forward(&index), [b"a", b"b", b"c"]);
        assert_eq!(backward(&index), [b"c", b"b", b"a"]);
    });
}

#[test]
fn the_right_to_write_alone_is_one_at_a_time_and_hands_on_its_place() {
    explore("writers in turn", || {
        let index = index();
        let other = Arc::clone(&index);
        let turn = |index: &Index, key: &'static [u8]| match index.writer_alone() {
            Some(mut w) => w.add(key, key),
            None => index.writer_shared().add(key, key),
        };
        let writer = thread::spawn(move || assert!(turn(&other, b"a")));
        assert!(turn(&index, b"b"));
        writer.join().expect("the writer");
        let mut w = index.writer_alone().expect("all others are done");
        assert!(w.add(b"c", b"c"));
        drop(w);
        assert_eq!(forward(&index), [b"a", b"b", b"c"]);
    });
}

#[test]
fn a_full_block_is_replaced_once_and_pieces_do_not_overlap() {
    explore("arena", || {
        let index = index();
        // The first block has room for one of the two.
        let value = |byte: u8| vec![byte; 900];
        for (i, key) in [b"x", b"y", b"z"].into_iter().enumerate() {
            assert!(index.writer_shared().add(key, &value(i as u8)));
        }
        let other = Arc::clone(&index);
        let writer = thread::spawn(move || assert!(other.writer_shared().add(b"a", &value(7))));
        assert!(index.writer_shared().add(b"b", &value(8)));
        writer.join().expect("the writer");
        for (key, byte) in [(b"a", 7), (b"b", 8), (b"x", 0), (b"y", 1), (b"z", 2)] {
            let (_, found) = index.first_at_or_after(key).expect("it was added");
            assert!(found == value(byte), "bytes of another entry");
        }
        assert!(
            index.memory_usage() <= 3 * (4 << 10),
            "{}",
            index.memory_usage()
        );
    });
}
