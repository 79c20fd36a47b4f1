//! Targets for raw blocks: entries, indexes, properties, filters.

use super::{LARGE, SMALL, Seed, Steps, Target, same_again};
use crate::input::Cut;
use crate::mutate;
use esker_format::block::{
    Block, BlockBuilder, BlockCursor, BlockHandle, HashIndexBuilder, IndexBlock, IndexBlockBuilder,
    IndexForm,
};
use esker_format::filter::{BuildLevel, FilterBuilder, FilterPolicy, FilterReader, KeyHash};
use esker_format::key::append_internal;
use esker_format::properties::{PropertiesDecoder, TableProperties};
use esker_format::{KeyOrder, Seq, ValueType};

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "block",
        about: "blocks of entries, walked both ways and searched, with and without hash index",
        run: block,
        seeds: blocks,
        change: mutate::bytes,
        memory: SMALL,
    },
    Target {
        name: "index",
        about: "index blocks in all eight forms (delta-encoded handles, user keys, first keys)",
        run: index,
        seeds: indexes,
        change: mutate::bytes,
        memory: LARGE,
    },
    Target {
        name: "properties",
        about: "blocks of table properties",
        run: properties,
        seeds: property_blocks,
        change: mutate::bytes,
        memory: LARGE,
    },
    Target {
        name: "filter",
        about: "filter blocks of every kind; and that filters built of an input's keys know them",
        run: filter,
        seeds: filters,
        change: mutate::bytes,
        memory: SMALL,
    },
];

fn key(user: &str, seq: u64) -> Vec<u8> {
    let mut out = Vec::new();
    append_internal(&mut out, user.as_bytes(), Seq(seq), ValueType::Value);
    out
}

/// The last word of a block with `restarts` restart points and these high bits.
fn word(restarts: u32, bits: u32) -> [u8; 4] {
    (restarts | bits << 28).to_le_bytes()
}

fn blocks() -> Vec<Seed> {
    let filled = |mut b: BlockBuilder| {
        for i in 0..40u64 {
            b.add(
                &key(&format!("key{i:03}"), 100 - i),
                &vec![b'v'; i as usize],
            );
        }
        b.finish().to_vec()
    };
    // Keys and values apart: keys, values, restart offsets, where the values begin, and the bit
    // that says so.
    let mut separated = Vec::new();
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for i in 0..3u8 {
        let k = key(&format!("k{i}"), 5);
        keys.extend([0, k.len() as u8, 3, values.len() as u8]);
        keys.extend(&k);
        values.extend([i; 3]);
    }
    let starts: Vec<u32> = (0..3).map(|i| i * 14).collect();
    separated.extend(&keys);
    separated.extend(&values);
    starts
        .iter()
        .for_each(|s| separated.extend(s.to_le_bytes()));
    separated.extend((keys.len() as u32).to_le_bytes());
    separated.extend(word(3, 1));
    vec![
        ("restarts", filled(BlockBuilder::new(4))),
        (
            "no-sharing",
            filled(BlockBuilder::new(16).without_sharing()),
        ),
        (
            "hash-index",
            filled(BlockBuilder::new(4).with_hash_index(HashIndexBuilder::new(0.75))),
        ),
        ("separated", separated),
        ("empty", BlockBuilder::new(16).finish().to_vec()),
        ("no-restart", vec![0; 4]),
        ("amplified", amplified(b"v", true)),
    ]
}

fn block(input: &[u8]) {
    let Ok(block) = Block::parse(input.to_vec()) else {
        return;
    };
    for (order, seq) in [
        (KeyOrder::Bytewise, None),
        (KeyOrder::Bytewise, Some(Seq(7))),
        (KeyOrder::ReverseBytewise, None),
        (KeyOrder::BytewiseU64Ts, None),
    ] {
        walk(
            &mut BlockCursor::new(&block, order).with_global_seq(seq),
            input.len(),
        );
    }
    assert!(block.num_restarts() > 0, "a block without a restart point");
    let mut names = BlockCursor::over_names(&block);
    let mut steps = Steps::at_most(input.len() + 1);
    names.seek_to_first();
    let is_read_as_empty = !names.valid() && names.status().is_ok();
    assert_eq!(
        block.is_empty(),
        is_read_as_empty,
        "entries that nobody sees"
    );
    while names.valid() {
        steps.step();
        let _ = names.value();
        names.next();
    }
}

/// Forward, backward, and to some of the keys. Every step must take at least a byte.
fn walk(c: &mut BlockCursor<&Block>, len: usize) {
    let mut targets = vec![
        key("key007", 3),
        Vec::new(),
        vec![0xff; 40],
        b"short".to_vec(),
    ];
    let mut steps = Steps::at_most(len + 1);
    let mut at = Vec::new();
    c.seek_to_first();
    while c.valid() {
        steps.step();
        if targets.len() < 12 {
            targets.push(c.key().to_vec());
        }
        let range = c.value_range();
        assert!(range.start <= range.end && c.value().len() == (range.end - range.start) as usize);
        at.push(range.start);
        c.next();
    }
    let whole = c.status().is_ok();
    let mut steps = Steps::at_most(len + 1);
    c.seek_to_last();
    while c.valid() {
        steps.step();
        if whole && c.status().is_ok() && at.pop() != Some(c.value_range().start) {
            // A restart array may lead into the middle of entries; both ways must end all the same.
            at.clear();
        }
        c.prev();
    }
    for target in &targets {
        for go in [
            BlockCursor::seek,
            BlockCursor::seek_point,
            BlockCursor::seek_for_prev,
        ] {
            go(c, target);
            if c.valid() {
                let _ = (c.key(), c.value());
                c.prev();
            }
            if c.valid() {
                c.next();
            }
            assert!(!c.valid() || c.status().is_ok());
        }
    }
}

fn forms() -> impl Iterator<Item = IndexForm> {
    (0..8u8).map(|bits| IndexForm {
        user_keys: bits & 1 != 0,
        delta_values: bits & 2 != 0,
        first_keys: bits & 4 != 0,
    })
}

fn indexes() -> Vec<Seed> {
    const NAMES: [&str; 8] = [
        "internal",
        "user",
        "internal-delta",
        "user-delta",
        "internal-first",
        "user-first",
        "internal-delta-first",
        "user-delta-first",
    ];
    let mut seeds: Vec<Seed> = forms()
        .zip(NAMES)
        .map(|(form, name)| {
            let mut b = IndexBlockBuilder::new(form, 4);
            for i in 0..20u64 {
                let k = key(&format!("common prefix {i:03}"), 9);
                b.add(
                    &k,
                    BlockHandle {
                        offset: i * 1005,
                        size: 1000,
                    },
                    &k,
                );
            }
            (name, b.finish().to_vec())
        })
        .collect();
    seeds.push(("amplified", amplified(&[0], false)));
    seeds
}

/// A block of one long key and then keys that share all of it: 300 MB when decoded. Keys end with a
/// number that counts up and the trailer of a range deletion.
pub(super) fn amplified(value: &[u8], has_length: bool) -> Vec<u8> {
    use esker_format::coding::put_varint32;
    const LONG: usize = 54_000;
    let mut out = Vec::new();
    let mut entry = |shared: usize, rest: &[u8], value: &[u8]| {
        put_varint32(&mut out, shared as u32);
        put_varint32(&mut out, rest.len() as u32);
        if has_length {
            put_varint32(&mut out, value.len() as u32);
        }
        out.extend_from_slice(rest);
        out.extend_from_slice(value);
    };
    for i in 0..6_000u32 {
        let mut rest = if i == 0 { vec![b'k'; LONG] } else { Vec::new() };
        rest.extend(i.to_be_bytes());
        rest.extend([0x0f, 9, 0, 0, 0, 0, 0, 0]);
        // An index whose handles are deltas begins with a whole one.
        let first = i == 0 && !has_length;
        entry(
            if i == 0 { 0 } else { LONG },
            &rest,
            if first { &[0, 10] } else { value },
        );
    }
    out.extend(0u32.to_le_bytes());
    out.extend(word(1, 0));
    out
}

fn index(input: &[u8]) {
    let Ok(block) = Block::parse(input.to_vec()) else {
        return;
    };
    for order in [KeyOrder::Bytewise, KeyOrder::ReverseBytewise] {
        for form in forms() {
            for limit in [1 << 20, u64::MAX] {
                let Ok(index) = IndexBlock::parse(&block, form, &order, limit) else {
                    continue;
                };
                assert!(index.len() <= input.len());
                assert_eq!(
                    index.is_empty(),
                    block.is_empty(),
                    "entries that nobody sees"
                );
                for i in 0..index.len() {
                    assert!(index.handle(i).end().is_some_and(|end| end <= limit));
                    let _ = (index.user(i), index.first_key(i));
                }
                for target in [&key("common prefix 007", 1)[..], b"", &[0xff; 30], b"k"] {
                    assert!(index.seek(target) <= index.len());
                }
                for i in (0..index.len()).step_by(1 + index.len() / 8) {
                    let mut target = index.user(i).to_vec();
                    target.extend([0xff; 8]);
                    assert!(
                        index.seek(&target) <= i,
                        "entry {i} is not found from its own key"
                    );
                }
            }
        }
    }
}

fn property_blocks() -> Vec<Seed> {
    let mut p = TableProperties {
        num_entries: 1000,
        data_size: 70_000,
        db_id: "0a1b2c3d-0000-4000-8000-0123456789ab".into(),
        db_session_id: "ABCDEFGHIJ0123456789".into(),
        ..TableProperties::default()
    };
    p.user_collected.insert(b"mine".to_vec(), vec![1; 100]);
    p.set_seqno_times(&[(5, 1_700_000_000), (90, 1_700_000_100)]);
    let mut b = BlockBuilder::new(1);
    for (name, value) in p.encode() {
        b.add(&name, &value);
    }
    vec![
        ("all", b.finish().to_vec()),
        ("amplified", amplified(b"v", true)),
    ]
}

fn properties(input: &[u8]) {
    let Ok(block) = Block::parse(input.to_vec()) else {
        return;
    };
    let mut names = BlockCursor::over_names(&block);
    let mut decoder = PropertiesDecoder::new();
    let mut budget = block.written_out();
    names.seek_to_first();
    while names.valid() {
        if budget.take(names.key().len()).is_err()
            || decoder.add(names.key(), names.value()).is_err()
        {
            return;
        }
        names.next();
    }
    let p = decoder.finish();
    same_again(&p, TableProperties::decode(p.encode()));
    let _ = (p.unique_id(), p.seqno_times());
}

fn filters() -> Vec<Seed> {
    let keys: Vec<String> = (0..400).map(|i| format!("key{i}")).collect();
    let built = |policy, version| {
        let builder = FilterBuilder::new(policy, version, BuildLevel::Level(3));
        let mut builder = builder.expect("a policy that builds");
        keys.iter().for_each(|k| builder.add_key(k.as_bytes()));
        builder.finish()
    };
    vec![
        ("bloom", built(FilterPolicy::bloom(10.0), 5)),
        ("legacy", built(FilterPolicy::bloom(10.0), 4)),
        ("ribbon", built(FilterPolicy::ribbon(10.0, 0), 5)),
        ("tiny", vec![0; 5]),
    ]
}

fn filter(input: &[u8]) {
    let reader = FilterReader::parse(input);
    for n in 0..64u64 {
        let key = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let hash = KeyHash::of(&key);
        reader.prefetch(input, hash);
        let _ = reader.may_match(input, &key, hash);
        // A block of another length than the one that was parsed.
        let _ = reader.may_match(&input[..input.len() / 2], &key, hash);
    }
    let mut cut = Cut(input);
    let policy = match cut.byte() % 3 {
        0 => (FilterPolicy::bloom(f64::from(cut.byte()) / 4.0), 5),
        1 => (FilterPolicy::bloom(f64::from(cut.byte()) / 4.0), 4),
        _ => (FilterPolicy::ribbon(f64::from(cut.byte()) / 4.0, 0), 5),
    };
    let Some(mut builder) = FilterBuilder::new(policy.0, policy.1, BuildLevel::Unknown) else {
        return;
    };
    let rest = &cut.0[..cut.0.len().min(2000)];
    rest.chunks(3).for_each(|k| builder.add_key(k));
    let block = builder.finish();
    let reader = FilterReader::parse(&block);
    for k in rest.chunks(3) {
        assert!(
            reader.may_match(&block, k, KeyHash::of(k)),
            "a filter forgot a key"
        );
    }
}
