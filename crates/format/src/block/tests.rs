//! Tests of blocks: every move against a map, over restart intervals, hash index and separated
//! values.

use super::entry::put_varint;
use super::*;
use crate::comparator::KeyOrder;
use crate::entry_batch::{BatchLimits, EntryBatch};
use crate::ids::Seq;
use crate::key::{ValueType, append_internal, seq_of, user_key};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Internal keys sort by user key, then newest first: so does this.
type Model = BTreeMap<(Vec<u8>, std::cmp::Reverse<u64>), Vec<u8>>;

fn internal(user: &[u8], seq: u64) -> Vec<u8> {
    let mut out = Vec::new();
    append_internal(&mut out, user, Seq(seq), ValueType::Value);
    out
}

fn user() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(
        prop_oneof![Just(0u8), Just(1), Just(0xff), Just(b'a')],
        0..6,
    )
}

fn model() -> impl Strategy<Value = Model> {
    let entry = (
        (user(), 0u64..5),
        proptest::collection::vec(any::<u8>(), 0..200),
    );
    proptest::collection::vec(entry, 0..60).prop_map(|all| {
        all.into_iter()
            .map(|((k, s), v)| ((k, std::cmp::Reverse(s)), v))
            .collect()
    })
}

fn flat(model: &Model) -> Vec<(Vec<u8>, Vec<u8>)> {
    model
        .iter()
        .map(|((k, s), v)| (internal(k, s.0), v.clone()))
        .collect()
}

/// A block with keys and values in separate sections, as RocksDB 11 writes it.
fn separated(all: &[(Vec<u8>, Vec<u8>)], interval: usize) -> Vec<u8> {
    let (mut keys, mut values, mut restarts) = (Vec::new(), Vec::new(), Vec::new());
    for (i, (k, v)) in all.iter().enumerate() {
        let restart = i % interval == 0;
        let shared = if restart {
            0
        } else {
            super::builder::common_prefix(&all[i - 1].0, k)
        };
        if restart {
            restarts.push(keys.len() as u32);
        }
        for n in [shared, k.len() - shared, v.len()] {
            put_varint(&mut keys, n as u64);
        }
        if restart {
            put_varint(&mut keys, values.len() as u64);
        }
        keys.extend_from_slice(&k[shared..]);
        values.extend_from_slice(v);
    }
    if restarts.is_empty() {
        restarts.push(0);
    }
    let values_at = keys.len() as u32;
    keys.extend_from_slice(&values);
    for r in &restarts {
        keys.extend_from_slice(&r.to_le_bytes());
    }
    keys.extend_from_slice(&values_at.to_le_bytes());
    keys.extend_from_slice(&(restarts.len() as u32 | SEPARATED_BIT).to_le_bytes());
    keys
}

fn check_moves(
    block: &Block,
    all: &[(Vec<u8>, Vec<u8>)],
    targets: &[(Vec<u8>, u64)],
    moves: &[bool],
) {
    let order = KeyOrder::Bytewise;
    let mut c = BlockCursor::new(block, order.clone());
    c.seek_to_first();
    for (k, v) in all {
        assert!(c.valid());
        assert_eq!((c.key(), c.value()), (&k[..], &v[..]));
        c.next();
    }
    assert!(!c.valid());
    c.seek_to_last();
    for (k, v) in all.iter().rev() {
        assert!(c.valid());
        assert_eq!((c.key(), c.value()), (&k[..], &v[..]));
        c.prev();
    }
    assert!(!c.valid());
    // What is said of the neighbours is true; by now there is a table of entries, if ever.
    let differs = |a: usize, b: usize| user_key(&all[a].0) != user_key(&all[b].0);
    c.seek_to_first();
    for i in 0..all.len() {
        assert!(!c.next_is_another_key() || differs(i, i + 1));
        assert!(!c.prev_is_another_key() || differs(i - 1, i));
        c.next();
    }
    for (u, seq) in targets {
        let target = internal(u, *seq);
        let mut at = all.partition_point(|e| order.compare_internal(&e.0, &target).is_lt());
        c.seek(&target);
        assert_eq!(
            c.valid().then(|| c.key()),
            all.get(at).map(|e| &e.0[..]),
            "seek {u:?} {seq}"
        );
        // A walk from there that turns around.
        for forward in moves {
            if !c.valid() {
                break;
            }
            if *forward {
                c.next();
                at += 1;
            } else {
                c.prev();
                at = at.wrapping_sub(1);
            }
            assert_eq!(
                c.valid().then(|| c.key()),
                all.get(at).map(|e| &e.0[..]),
                "walk from {u:?}"
            );
            assert_eq!(c.valid().then(|| c.value()), all.get(at).map(|e| &e.1[..]));
        }
        let upto = all.partition_point(|e| order.compare_internal(&e.0, &target).is_le());
        c.seek_for_prev(&target);
        assert_eq!(
            c.valid().then(|| c.key()),
            upto.checked_sub(1).map(|i| &all[i].0[..])
        );
        c.seek_point(&target);
        let here = all.iter().filter(|e| {
            order.compare_internal(&e.0, &target).is_ge() && user_key(&e.0) == u.as_slice()
        });
        let first = here.map(|e| &e.0[..]).next();
        assert_eq!(
            c.valid()
                .then(|| c.key())
                .filter(|k| user_key(k) == u.as_slice()),
            first,
            "point {u:?}"
        );
        c.status().expect("sound block");
    }
}

/// Batches hold what single steps show, one version of a key each, and leave the cursor on the
/// last.
fn check_batches(block: &Block, all: &[(Vec<u8>, Vec<u8>)]) {
    let mut c = BlockCursor::new(block, KeyOrder::Bytewise);
    let mut batch = EntryBatch::default();
    let shown = |batch: &EntryBatch, c: &BlockCursor<&Block>| -> Vec<(Vec<u8>, Vec<u8>)> {
        let owned = |(k, v): (&[u8], &[u8])| (k.to_vec(), v.to_vec());
        batch.iter(c.bytes()).map(owned).collect()
    };
    let limits = |most, seq, bound| BatchLimits {
        most,
        snapshot: Seq(seq),
        bounds: [None, bound],
    };
    let mut taken = 0;
    for (i, (key, _)) in all.iter().enumerate() {
        for (most, far) in [(1, 1), (2, 2), (5, 3), (40, 30)] {
            let bound = all.get(i + far).map(|e| user_key(&e.0));
            c.seek(key);
            batch.clear();
            c.next_batch(&limits(most, seq_of(key).0.max(40), bound), &mut batch);
            let seen = shown(&batch, &c);
            let end = i + seen.len();
            assert!(seen.len() <= most && seen == all[i..end]);
            let users: Vec<_> = seen.iter().map(|e| user_key(&e.0)).collect();
            assert!(users.windows(2).all(|w| w[0] < w[1]));
            assert!(
                users
                    .iter()
                    .skip(1)
                    .all(|user| bound.is_none_or(|b| *user < b))
            );
            let last = end.max(i + 1) - 1;
            assert_eq!((c.key(), c.value()), (&all[last].0[..], &all[last].1[..]));
            taken += seen.len();
            c.next();
            assert_eq!(
                c.valid().then(|| c.key()),
                all.get(last + 1).map(|e| &e.0[..])
            );

            let bound = i.checked_sub(far).map(|at| user_key(&all[at].0));
            c.seek(key);
            batch.clear();
            c.prev_batch(&limits(most, seq_of(key).0.max(40), bound), &mut batch);
            let mut seen = shown(&batch, &c);
            seen.reverse();
            let begin = i + 1 - seen.len().max(1);
            assert!(seen.is_empty() || seen == all[begin..=i]);
            let users: Vec<_> = seen.iter().map(|e| user_key(&e.0)).collect();
            assert!(users.windows(2).all(|w| w[0] < w[1]));
            // The last one is the only version of its key as well.
            let alone = begin > 0 && user_key(&all[begin - 1].0) != user_key(&all[begin].0);
            assert!(seen.len() < 2 || alone);
            assert_eq!((c.key(), c.value()), (&all[begin].0[..], &all[begin].1[..]));
            taken += seen.len();
            c.prev();
            let before = begin.checked_sub(1).map(|at| &all[at].0[..]);
            assert_eq!(c.valid().then(|| c.key()), before);
        }
    }
    // Short keys, together with their values, in order.
    let is_plain = !block.is_separated() && all.iter().all(|e| e.0.len() < 60);
    assert!(taken >= all.len() || !is_plain);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn moves_agree_with_a_map(
        model in model(),
        interval in 1u32..18,
        hashed in any::<bool>(),
        share in any::<bool>(),
        head in proptest::collection::vec(any::<u8>(), 0..60),
        targets in proptest::collection::vec((user(), 0u64..6), 1..30),
        moves in proptest::collection::vec(any::<bool>(), 0..12),
    ) {
        let under = |user: &[u8]| [&head, user].concat();
        let model: Model = (model.into_iter())
            .map(|((user, seq), value)| ((under(&user), seq), value))
            .collect();
        let targets: Vec<_> = (targets.into_iter())
            .map(|(user, seq)| (under(&user), seq))
            .collect();
        let all = flat(&model);
        let mut b = BlockBuilder::new(interval);
        if !share {
            b = b.without_sharing();
        }
        if hashed {
            b = b.with_hash_index(HashIndexBuilder::new(0.75));
        }
        for (k, v) in &all {
            b.add(k, v);
        }
        let block = Block::parse(b.finish().to_vec()).expect("our own block");
        prop_assert_eq!(block.has_hash_index(), hashed && !all.is_empty());
        check_moves(&block, &all, &targets, &moves);
        check_batches(&block, &all);
        let block = Block::parse(separated(&all, interval as usize)).expect("separated block");
        prop_assert!(block.is_separated());
        check_moves(&block, &all, &targets, &moves);
        check_batches(&block, &all);
    }

    #[test]
    fn global_sequence_replaces_the_stored_one(users in proptest::collection::btree_set(user(), 1..40), interval in 1u32..9) {
        let stored: Vec<_> = users.iter().map(|u| (internal(u, 0), b"v".to_vec())).collect();
        let shown: Vec<_> = users.iter().map(|u| internal(u, 77)).collect();
        let mut b = BlockBuilder::new(interval);
        for (k, v) in &stored {
            b.add(k, v);
        }
        let block = Block::parse(b.finish().to_vec()).expect("our own block");
        let mut c = BlockCursor::new(&block, KeyOrder::Bytewise).with_global_seq(Some(Seq(77)));
        c.seek_to_last();
        for k in shown.iter().rev() {
            prop_assert_eq!(c.key(), &k[..]);
            c.prev();
        }
        for k in &shown {
            c.seek(k);
            prop_assert!(c.valid());
            prop_assert_eq!(c.key(), &k[..]);
            c.next();
        }
    }

    #[test]
    fn hostile_bytes_end_in_an_error(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), word in any::<u32>(), small in any::<bool>()) {
        let word = if small { word & 0xb000_000f } else { word };
        bytes.extend_from_slice(&word.to_le_bytes());
        let Ok(block) = Block::parse(bytes) else { return Ok(()) };
        let form = IndexForm { user_keys: small, delta_values: !small, first_keys: small };
        let _ = IndexBlock::parse(&block, form, &KeyOrder::Bytewise, 1 << 20);
        let mut c = BlockCursor::new(&block, KeyOrder::Bytewise);
        let target = internal(b"abc", 3);
        c.seek(&target);
        c.seek_for_prev(&target);
        c.seek_point(&target);
        c.seek_to_last();
        for _ in 0..400 {
            if !c.valid() {
                break;
            }
            c.prev();
        }
        c.seek_to_first();
        let mut steps = 0;
        while c.valid() {
            c.next();
            steps += 1;
            prop_assert!(steps <= 300);
        }
    }

    #[test]
    fn index_blocks_find_what_a_scan_finds(
        users in proptest::collection::btree_set(proptest::collection::vec(any::<u8>(), 0..14), 0..50),
        head in proptest::collection::vec(any::<u8>(), 0..10),
        interval in 1u32..6,
        user_keys in any::<bool>(),
        delta_values in any::<bool>(),
        first_keys in any::<bool>(),
        probes in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..14), 0..20),
    ) {
        let form = IndexForm { user_keys, delta_values, first_keys };
        let users: Vec<Vec<u8>> = users.into_iter().map(|u| [head.clone(), u].concat()).collect();
        let mut b = IndexBlockBuilder::new(form, interval);
        let mut offset = 0;
        for (i, u) in users.iter().enumerate() {
            let size = 10 + (i as u64 * 37) % 200;
            b.add(&internal(u, 9), BlockHandle { offset, size }, &internal(u, 9));
            offset += size + 5;
        }
        let block = Block::parse(b.finish().to_vec()).expect("our own block");
        let index = IndexBlock::parse(&block, form, &KeyOrder::Bytewise, offset).expect("our own index");
        prop_assert_eq!(index.len(), users.len());
        if offset > 0 {
            prop_assert!(IndexBlock::parse(&block, form, &KeyOrder::Bytewise, offset - 1).is_err());
        }
        let mixed = probes.iter().map(|p| [head.clone(), p.clone()].concat()).chain(probes.clone()).chain(users.clone());
        for p in mixed {
            for seq in [3, 9, 20] {
                let target = internal(&p, seq);
                let want = if user_keys { users.partition_point(|u| u < &p) } else { users.partition_point(|u| KeyOrder::Bytewise.compare_internal(&internal(u, 9), &target).is_lt()) };
                prop_assert_eq!(index.seek(&target), want);
            }
        }
        for (i, user) in users.iter().enumerate() {
            prop_assert_eq!(index.user(i), &user[..]);
            prop_assert_eq!(index.first_key(i).is_some(), first_keys);
        }
    }
}

#[test]
fn an_index_that_points_in_circles_is_refused() {
    let form = IndexForm {
        user_keys: true,
        delta_values: false,
        first_keys: false,
    };
    let mut b = IndexBlockBuilder::new(form, 1);
    b.add(
        &internal(b"a", 1),
        BlockHandle {
            offset: 100,
            size: 50,
        },
        &[],
    );
    b.add(
        &internal(b"b", 1),
        BlockHandle {
            offset: 100,
            size: 50,
        },
        &[],
    );
    let block = Block::parse(b.finish().to_vec()).expect("a well-formed block");
    let e =
        IndexBlock::parse(&block, form, &KeyOrder::Bytewise, 1000).expect_err("overlapping blocks");
    assert!(
        e.is_corruption() && e.to_string().contains("overlap"),
        "{e}"
    );
}

#[test]
fn an_empty_block_is_one_restart() {
    assert_eq!(BlockBuilder::new(16).finish(), [0, 0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn a_replaced_sequence_shows_the_same_both_ways() {
    let mut b = BlockBuilder::new(5);
    for i in 0..23u64 {
        // Equal sequences, so that trailers are shared; some keys end where the next goes on.
        let user = [b"key".repeat(1 + i as usize / 6), vec![i as u8]].concat();
        b.add(&internal(&user, 9), &[i as u8]);
    }
    let block = Block::parse(b.finish().to_vec()).expect("our own block");
    let mut c = BlockCursor::new(&block, KeyOrder::Bytewise).with_global_seq(Some(Seq(77)));
    let mut forward = Vec::new();
    c.seek_to_first();
    while c.valid() {
        assert_eq!(crate::key::seq_of(c.key()), Seq(77));
        forward.push((c.key().to_vec(), c.value().to_vec()));
        c.next();
    }
    assert_eq!(forward.len(), 23);
    c.seek_to_last();
    for (k, v) in forward.iter().rev() {
        assert_eq!((c.key(), c.value()), (&k[..], &v[..]));
        c.prev();
    }
    assert!(!c.valid());
    c.status().expect("sound block");
}

#[test]
fn restart_points_outside_of_the_entries_are_damage() {
    let mut b = BlockBuilder::new(1);
    b.add(&internal(b"a", 1), b"v");
    b.add(&internal(b"b", 1), b"v");
    let good = b.finish().to_vec();
    // Walking back from the second entry would arrive there for ever.
    let mut bad = good.clone();
    let first = good.len() - 12;
    bad[first] = 13;
    let e = Block::parse(bad).expect_err("the first restart point is elsewhere");
    assert!(e.is_corruption(), "{e}");
    let mut bad = good;
    bad[first + 4] = 200;
    let block = Block::parse(bad).expect("single restart points are checked when they are used");
    let mut c = BlockCursor::new(&block, KeyOrder::Bytewise);
    c.seek_to_last();
    assert!(!c.valid());
    assert!(c.status().is_err(), "it must not look like an empty block");
}

#[test]
fn keys_that_share_more_than_a_writer_lets_them_are_refused() {
    let form = IndexForm {
        user_keys: true,
        delta_values: true,
        first_keys: false,
    };
    // One restart point, and 6000 keys that share 50,000 bytes.
    let mut data = Vec::new();
    for i in 0..6000u32 {
        let rest = match i {
            0 => vec![b'k'; 50_000],
            _ => i.to_be_bytes().to_vec(),
        };
        put_varint(&mut data, if i == 0 { 0 } else { 50_000 });
        put_varint(&mut data, rest.len() as u64);
        data.extend(rest);
        data.extend_from_slice(if i == 0 { &[0, 10] } else { &[0] });
    }
    data.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    let block = Block::parse(data).expect("a well-formed block");
    let e = IndexBlock::parse(&block, form, &KeyOrder::Bytewise, 1 << 30)
        .expect_err("300 MB of keys in 100 KB");
    assert!(e.is_corruption() && e.to_string().contains("share"), "{e}");
}

#[test]
fn blocks_that_would_be_read_as_empty_are_refused() {
    let none: [&[u8]; 5] = [
        &[0; 4],
        &[0; 8],
        // Separated, with a hash index, and with restart points or values of nothing.
        &[0, 0, 0, 0, 0, 0, 0, 0x10],
        &[7, 1, 0, 0, 0, 0, 0x80],
        &[0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0],
    ];
    for bytes in none {
        let e = Block::parse(bytes.to_vec()).expect_err("no entries and no word that says so");
        assert!(e.is_corruption(), "{bytes:?}: {e}");
    }
    let values_alone = [9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x10];
    assert!(Block::parse(values_alone.to_vec()).is_err());
    let mut b = BlockBuilder::new(16);
    let empty = Block::parse(b.finish().to_vec()).expect("an empty index");
    assert!(empty.is_empty() && empty.num_restarts() == 1);
    assert!(Block::parse_data(empty.bytes().to_vec()).is_err());
    b.reset();
    b.add(&internal(b"k", 1), b"");
    let one = b.finish().to_vec();
    assert!(!Block::parse_data(one).expect("an entry").is_empty());
}

#[test]
fn a_block_gets_its_table_when_it_is_sought_again() {
    let mut b = BlockBuilder::new(16);
    let keys: Vec<_> = (0..40u64)
        .map(|n| internal(format!("key{n:04}").as_bytes(), 9))
        .collect();
    for k in &keys {
        b.add(k, &[7; 300]);
    }
    let block = Block::parse(b.finish().to_vec()).expect("our own block");
    let mut c = BlockCursor::new(&block, KeyOrder::Bytewise);
    c.seek(&keys[20]);
    assert!(block.entry_table_built().is_none() && !c.next_is_another_key());
    c.seek(&keys[20]);
    assert!(block.entry_table_built().is_some());
    assert!(c.next_is_another_key() && c.prev_is_another_key());
    // The estimate that the cache is charged is near what the table takes.
    let estimate = block.table_estimate();
    assert!((38 * 12..40 * 14).contains(&estimate), "{estimate}");
    // At the edges of the block nothing is known.
    c.seek_to_last();
    assert!(!c.next_is_another_key() && c.prev_is_another_key());
    c.seek_to_first();
    assert!(c.next_is_another_key() && !c.prev_is_another_key());
}
