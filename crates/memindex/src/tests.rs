//! The index against an ordered map, alone and with many threads.

use crate::arena::Arena;
use crate::{
    ArenaOptions, BytewiseInternal, BytewisePlain, IndexOrder, TreeIndex, bytewise_prefix,
};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as Memory};

/// Fewer entries where each step is slow.
const SCALE: u64 = if cfg!(miri) { 1 } else { 100 };

const MEMORY: ArenaOptions = ArenaOptions {
    block_size: 16 << 10,
    huge_pages: None,
};

fn plain() -> TreeIndex<BytewisePlain> {
    TreeIndex::new(BytewisePlain, MEMORY)
}

fn mix(n: u64) -> u64 {
    let z = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The value that belongs to a key: other bytes of another length.
fn value_of(n: u64) -> Vec<u8> {
    vec![n as u8; 1 + (n % 300) as usize]
}

/// Walks both ways and compares.
fn check<O: IndexOrder>(index: &TreeIndex<O>, expected: &[(Vec<u8>, Vec<u8>)]) {
    assert_eq!(index.len(), expected.len());
    assert_eq!(index.is_empty(), expected.is_empty());
    let mut cursor = index.cursor();
    cursor.seek_to_first();
    for (k, v) in expected {
        assert_eq!(cursor.entry(), Some((&k[..], &v[..])));
        cursor.next();
    }
    assert!(!cursor.valid());
    cursor.seek_to_last();
    for (k, v) in expected.iter().rev() {
        assert_eq!((cursor.key(), cursor.value()), (&k[..], &v[..]));
        cursor.prev();
    }
    assert!(!cursor.valid());
}

#[test]
fn an_empty_index_has_no_entries() {
    let index = plain();
    check(&index, &[]);
    let mut cursor = index.cursor();
    cursor.seek(b"");
    assert!(!cursor.valid());
    cursor.seek_for_prev(b"\xff");
    assert!(!cursor.valid() && cursor.key().is_empty() && cursor.value().is_empty());
    cursor.next();
    cursor.prev();
    assert_eq!(index.first_at_or_after(b""), None);
}

#[test]
fn the_prefix_never_contradicts_the_order() {
    let keys: [&[u8]; 11] = [
        b"",
        b"\0",
        b"\0\0",
        b"a",
        b"a\0",
        b"a\0\0\0\0\0\0\0",
        b"a\0\0\0\0\0\0\0\0",
        b"ab",
        b"b",
        b"bbbbbbbb",
        b"\xff",
    ];
    for (i, a) in keys.iter().enumerate() {
        for (j, b) in keys.iter().enumerate() {
            assert_eq!(a.cmp(b), i.cmp(&j), "the list is sorted");
            if a < b {
                assert!(bytewise_prefix(a) <= bytewise_prefix(b), "{a:?} {b:?}");
            }
        }
    }
    // And an index of just these keys is right, whatever the order they come in.
    for shift in 0..keys.len() {
        let index = plain();
        for i in 0..keys.len() {
            assert!(index.add(keys[(i * 7 + shift) % keys.len()], b"v"));
        }
        assert!(!index.add(b"a\0", b"again"), "an equal key is refused");
        check(&index, &keys.map(|k| (k.to_vec(), b"v".to_vec())));
    }
}

#[test]
fn newer_versions_of_an_internal_key_come_first() {
    let index = TreeIndex::new(BytewiseInternal::default(), MEMORY);
    for (user, seq) in [
        (&b"b"[..], 1u64),
        (b"a", 5),
        (b"a", 9),
        (b"a", 7),
        (b"aaaaaaaaaa", 3),
        (b"", 2),
    ] {
        assert!(index.add_internal(user, seq << 8 | 1, &[seq as u8]));
    }
    let mut seen = Vec::new();
    let mut cursor = index.cursor();
    cursor.seek_to_first();
    while cursor.valid() {
        seen.push(cursor.value()[0]);
        cursor.next();
    }
    assert_eq!(seen, [2, 9, 7, 5, 3, 1]);
    let target = [&b"a"[..], &(7u64 << 8 | 0x18).to_le_bytes()].concat();
    assert_eq!(index.first_at_or_after(&target).map(|(_, v)| v[0]), Some(7));
}

#[test]
fn what_is_expected_of_keys_does_not_change_their_order() {
    let keys: [&[u8]; 12] = [
        b"",
        b"a",
        b"ta",
        b"tab",
        b"table",
        b"table\0",
        b"table1",
        b"table1x",
        b"table2",
        b"tablf",
        b"u",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ];
    let expected: [&[u8]; 5] = [b"", b"table", b"table1", b"zzz", b"\xff"];
    for expected in expected {
        let index = TreeIndex::new(BytewiseInternal::expecting(expected), MEMORY);
        for i in 0..keys.len() {
            for seq in [5u64, 9] {
                assert!(index.add_internal(keys[i * 5 % keys.len()], seq << 8 | 1, b""));
            }
        }
        let in_order = |user: &[u8], seq: u64| [user, &(seq << 8 | 1).to_le_bytes()].concat();
        let all = keys.iter().flat_map(|k| [in_order(k, 9), in_order(k, 5)]);
        check(&index, &all.map(|k| (k, Vec::new())).collect::<Vec<_>>());
    }
}

#[test]
fn an_order_without_prefix_works() {
    #[derive(Debug)]
    struct Reverse;
    impl IndexOrder for Reverse {
        fn prefix(&self, _: &[u8]) -> u64 {
            0
        }
        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            b.cmp(a)
        }
    }
    let index = TreeIndex::new(Reverse, MEMORY);
    (0..200u8).for_each(|n| assert!(index.add(&[n.wrapping_mul(77)], b"")));
    let mut expected: Vec<_> = (0..200u8)
        .map(|n| (vec![n.wrapping_mul(77)], vec![]))
        .collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    check(&index, &expected);
}

#[test]
fn parts_are_put_together_and_large_entries_have_memory_of_their_own() {
    let index = plain();
    let large = vec![9; 100_000];
    assert!(index.add_parts(&[b"k", b"", b"ez"], &[&large, b"!"]));
    assert!(index.add_parts(&[b"", b"key"], &[b"v", b"", b"v"]));
    assert!(index.add_parts(&[], &[]));
    check(
        &index,
        &[
            (Vec::new(), Vec::new()),
            (b"key".to_vec(), b"vv".to_vec()),
            (b"kez".to_vec(), [&large[..], b"!"].concat()),
        ],
    );
    assert!(index.entry_bytes() > 100_000 && index.memory_usage() >= index.entry_bytes());
}

/// A cursor on every entry of a leaf, while the leaf is filled and split in every way.
#[test]
fn cursors_go_on_from_where_they_stand_after_splits() {
    for step in 1..40u64 {
        let index = plain();
        (0..20u64).for_each(|n| assert!(index.add(&(n * 1000).to_be_bytes(), b"")));
        let stand = |n: u64| {
            let mut c = index.cursor();
            c.seek(&(n * 1000).to_be_bytes());
            c
        };
        let cursors: Vec<_> = (0..20).map(stand).collect();
        for i in 0..19_000u64 / step / 7 {
            let key = i * step * 7 % 19_000;
            let _there_already = index.add(&key.to_be_bytes(), b"");
        }
        for (n, cursor) in (0u64..).zip(cursors) {
            let mut all: Vec<Vec<u8>> = Vec::new();
            let mut c = index.cursor();
            c.seek_to_first();
            while let Some((key, _)) = c.entry() {
                all.push(key.to_vec());
                c.next();
            }
            let at = (n * 1000).to_be_bytes();
            let rank = all.iter().position(|k| k[..] == at).expect("it was added");
            let (mut on, mut back) = (cursor, stand(n));
            on.next();
            assert_eq!(on.entry().map(|e| e.0), all.get(rank + 1).map(|k| &k[..]));
            back.prev();
            let before = rank.checked_sub(1).map(|r| &all[r][..]);
            assert_eq!(back.entry().map(|e| e.0), before);
        }
    }
}

#[test]
fn keys_in_order_both_ways_with_strangers_among_them() {
    // Runs in order, interrupted by keys elsewhere.
    let index = plain();
    let mut model = BTreeMap::new();
    for n in 0..30 * SCALE {
        let key = match n % 7 {
            5 => mix(n),
            6 => n * 1000 - 500,
            _ => n * 1000,
        };
        let key = if n % 400 < 200 { key } else { u64::MAX - key };
        assert_eq!(
            index.add(&key.to_be_bytes(), &value_of(n)),
            !model.contains_key(&key)
        );
        model.entry(key).or_insert_with(|| value_of(n));
    }
    let expected: Vec<_> = model
        .into_iter()
        .map(|(k, v)| (k.to_be_bytes().to_vec(), v))
        .collect();
    check(&index, &expected);
}

#[test]
fn ranks_are_about_right() {
    let index = plain();
    let count = 100 * SCALE;
    (0..count).for_each(|n| assert!(index.add(&n.to_be_bytes(), b"")));
    assert_eq!(index.approximate_rank(&0u64.to_be_bytes()), 0);
    if !cfg!(miri) {
        let rank = index.approximate_rank(&(count / 2).to_be_bytes()) as u64;
        assert!(
            (count / 4..count * 3 / 4).contains(&rank),
            "{rank} of {count}"
        );
    }
}

#[test]
fn readers_see_a_sorted_and_growing_list_while_threads_write() {
    const THREADS: u64 = 4;
    let each = 50 * SCALE;
    let index = Arc::new(plain());
    let done = AtomicBool::new(false);
    let refused = AtomicU64::new(0);
    std::thread::scope(|s| {
        for _ in 0..2 {
            let (index, done) = (Arc::clone(&index), &done);
            s.spawn(move || {
                let (mut forward_before, mut rounds) = (0, 0);
                while !done.load(Memory::Acquire) || rounds < 2 {
                    rounds += 1;
                    let mut cursor =
                        crate::IndexCursor::<BytewisePlain, _>::new(Arc::clone(&index));
                    let mut count = 0;
                    let mut last: Option<Vec<u8>> = None;
                    cursor.seek_to_first();
                    while cursor.valid() {
                        let n = mixed_of(cursor.key());
                        assert_eq!(
                            cursor.value(),
                            value_of(n),
                            "a key is seen with all of its value"
                        );
                        assert!(last.as_deref().is_none_or(|l| l < cursor.key()), "sorted");
                        last = Some(cursor.key().to_vec());
                        count += 1;
                        cursor.next();
                    }
                    assert!(count >= forward_before, "nothing that was seen goes");
                    forward_before = count;
                    let mut back = 0;
                    let mut last: Option<Vec<u8>> = None;
                    cursor.seek_to_last();
                    while cursor.valid() {
                        assert!(
                            last.as_deref().is_none_or(|l| l > cursor.key()),
                            "sorted backwards"
                        );
                        last = Some(cursor.key().to_vec());
                        back += 1;
                        cursor.prev();
                    }
                    assert!(
                        back >= count,
                        "backwards after forwards sees at least as much"
                    );
                    // What was seen once is found by a seek.
                    if let Some(key) = last {
                        cursor.seek(&key);
                        assert_eq!(cursor.key(), key);
                    }
                }
            });
        }
        let writers: Vec<_> = (0..THREADS)
            .map(|t| {
                let (index, refused) = (&index, &refused);
                s.spawn(move || {
                    for batch in 0..each / 10 {
                        for i in 0..10 {
                            // Half of the keys are everybody's: exactly one wins each.
                            let i = batch * 10 + i;
                            let n = if i % 2 == 0 { i } else { (t + 1) << 32 | i };
                            if !index.add(&key_of(n), &value_of(n)) {
                                refused.fetch_add(1, Memory::Relaxed);
                            }
                        }
                    }
                })
            })
            .collect();
        for w in writers {
            w.join().expect("a writer does not panic");
        }
        done.store(true, Memory::Release);
    });
    assert_eq!(refused.into_inner(), (THREADS - 1) * each / 2);
    let mut model = BTreeMap::new();
    for t in 0..THREADS {
        for i in 0..each {
            let n = if i % 2 == 0 { i } else { (t + 1) << 32 | i };
            model.insert(key_of(n).to_vec(), value_of(n));
        }
    }
    check(&index, &model.into_iter().collect::<Vec<_>>());
}

/// Half of the keys in order (they contend for one place), half scattered; the number is in the
/// key's tail.
fn key_of(n: u64) -> [u8; 16] {
    let head = if n >> 32 == 0 {
        mix(n)
    } else {
        n & 0xffff_ffff
    };
    let mut key = [0; 16];
    key[..8].copy_from_slice(&head.to_be_bytes());
    key[8..].copy_from_slice(&n.to_be_bytes());
    key
}

fn mixed_of(key: &[u8]) -> u64 {
    u64::from_be_bytes(*key.last_chunk().expect("keys have sixteen bytes"))
}

#[test]
fn an_arena_hands_out_disjoint_memory_to_threads() {
    let arena = Arena::new(ArenaOptions {
        block_size: 4 << 10,
        huge_pages: None,
    });
    std::thread::scope(|s| {
        for t in 0..4u8 {
            let arena = &arena;
            s.spawn(move || {
                let pieces: Vec<_> = (0..10 * SCALE as usize)
                    .map(|i| {
                        let len = 1 + i * 37 % 1500;
                        let piece = arena.allocate(len);
                        assert!(piece.addr().get().is_multiple_of(8));
                        // SAFETY: the piece has `len` bytes and is ours.
                        unsafe { piece.write_bytes(t, len) };
                        (piece, len)
                    })
                    .collect();
                for (piece, len) in pieces {
                    // SAFETY: as above, and they were written.
                    let bytes = unsafe { std::slice::from_raw_parts(piece.as_ptr(), len) };
                    assert!(bytes.iter().all(|b| *b == t), "somebody else wrote here");
                }
            });
        }
    });
}

#[test]
fn huge_blocks_are_aligned() {
    static ADVISED: AtomicU64 = AtomicU64::new(0);
    let arena = Arena::new(ArenaOptions {
        block_size: 2 << 20,
        huge_pages: Some(|_start, len| {
            ADVISED.fetch_add(len as u64, Memory::Relaxed);
        }),
    });
    assert_eq!(arena.memory_usage(), 0);
    let piece = arena.allocate(100);
    assert!(
        piece.addr().get() % (2 << 20) <= 64,
        "near the start of an aligned block"
    );
    assert_eq!(arena.memory_usage(), 2 << 20);
    assert_eq!(ADVISED.load(Memory::Relaxed), 2 << 20);
    assert!(arena.used() < 1000);
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    // Few letters and short keys: many equal prefixes, many zero bytes.
    prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..11)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, failure_persistence: None, ..Default::default() })]
    #[test]
    fn agrees_with_an_ordered_map(added in prop::collection::vec(keys(), 0..150), targets in prop::collection::vec(keys(), 20)) {
        let index = plain();
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for (i, key) in added.into_iter().enumerate() {
            let value = value_of(i as u64);
            prop_assert_eq!(index.add(&key, &value), !model.contains_key(&key));
            model.entry(key).or_insert(value);
        }
        let expected: Vec<_> = model.clone().into_iter().collect();
        check(&index, &expected);
        let mut cursor = index.cursor();
        let mut sorted = targets.clone();
        sorted.sort();
        let mut forward = index.cursor();
        forward.seek_to_first();
        for (target, ahead) in targets.iter().zip(&sorted) {
            let own = |(k, v): (&Vec<u8>, &Vec<u8>)| (k.clone(), v.clone());
            let entry = |c: &crate::IndexCursor<_, &TreeIndex<_>>| c.entry().map(|(k, v)| (k.to_vec(), v.to_vec()));
            cursor.seek(target);
            prop_assert_eq!(entry(&cursor), model.range(target.clone()..).next().map(own));
            cursor.seek_for_prev(target);
            prop_assert_eq!(entry(&cursor), model.range(..=target.clone()).next_back().map(own));
            prop_assert_eq!(index.contains(target), model.contains_key(target));
            forward.seek_forward(ahead);
            prop_assert_eq!(entry(&forward), model.range(ahead.clone()..).next().map(own));
        }
    }
}
