//! No false negatives, the expected rate of false positives, bytes pinned by golden values, hostile
//! bytes.

use super::*;
use proptest::prelude::*;

fn key(i: u64) -> Vec<u8> {
    format!("key{i:09}").into_bytes()
}

/// Builds a filter of `n` keys, checks that all are found, and returns block and false positive
/// rate.
fn build(policy: FilterPolicy, version: u32, level: BuildLevel, n: u64) -> (Vec<u8>, f64) {
    let mut builder =
        FilterBuilder::new(policy, version, level).expect("the policy builds filters");
    (0..n).for_each(|i| builder.add_key(&key(i)));
    assert_eq!(builder.len() as u64, n);
    let expected_len = builder.block_len(n as usize);
    let block = builder.finish();
    assert_eq!(block.len(), expected_len);
    assert!(builder.is_empty());
    let reader = FilterReader::parse(&block);
    let found = |i| {
        let key = key(i);
        let hash = KeyHash::of(&key);
        reader.prefetch(&block, hash);
        reader.may_match(&block, &key, hash)
    };
    assert!((0..n).all(found), "false negative");
    let trials = 40_000;
    let hits = (n..n + trials).filter(|i| found(*i)).count();
    (block, hits as f64 / trials as f64)
}

#[test]
fn bloom_has_the_expected_size_and_rate() {
    for (bits, n, limit) in [
        (10.0, 20_000, 0.0115),
        (10.0, 1, 0.001),
        (5.0, 3000, 0.12),
        (20.0, 9000, 0.0006),
    ] {
        let (block, rate) = build(FilterPolicy::bloom(bits), 5, BuildLevel::Flush, n);
        assert_eq!(block[block.len() - 5], 0xff);
        assert!(rate <= limit, "{bits} bits, {n} keys: {rate}");
    }
    let (block, rate) = build(FilterPolicy::bloom(10.0), 5, BuildLevel::Flush, 20_000);
    assert_eq!(block.len(), 25_024 + 5);
    assert!(rate > 0.007, "a rate of {rate} is too good to be true");
    assert_eq!(block[block.len() - 3], 6, "probes");
}

#[test]
fn legacy_bloom_has_the_expected_size_and_rate() {
    let (block, rate) = build(FilterPolicy::bloom(10.0), 4, BuildLevel::Flush, 20_000);
    assert_eq!(block.len(), 391 * 64 + 5);
    assert_eq!(block[block.len() - 5..], [6, 0x87, 1, 0, 0]);
    assert!((0.005..0.02).contains(&rate), "{rate}");
}

#[test]
fn ribbon_is_as_accurate_as_bloom_in_less_space() {
    let policy = FilterPolicy::ribbon(10.0, 0);
    for n in [1000, 20_000, 150_000] {
        let (block, rate) = build(policy, 5, BuildLevel::Level(3), n);
        assert_eq!(block[block.len() - 5], 0xfe);
        assert!((0.006..0.0125).contains(&rate), "{n} keys: {rate}");
        let bits = block.len() as f64 * 8.0 / n as f64;
        assert!(bits < 7.6, "{n} keys: {bits} bits per key");
    }
    let (small, _) = build(policy, 5, BuildLevel::Level(3), 3);
    assert_eq!(
        small[small.len() - 5],
        0xff,
        "few keys take less space in a Bloom filter"
    );
    let (flushed, _) = build(policy, 5, BuildLevel::Flush, 5000);
    assert_eq!(flushed[flushed.len() - 5], 0xff, "flushes get Bloom");
    let (unknown, _) = build(FilterPolicy::ribbon(10.0, 4), 5, BuildLevel::Unknown, 5000);
    assert_eq!(unknown[unknown.len() - 5], 0xfe);
    let (low, _) = build(FilterPolicy::ribbon(10.0, 4), 5, BuildLevel::Level(3), 5000);
    assert_eq!(low[low.len() - 5], 0xff);
    let (fine, rate) = build(
        FilterPolicy::ribbon(25.0, 0),
        5,
        BuildLevel::Level(3),
        30_000,
    );
    assert!(rate < 0.0005 && fine[fine.len() - 5] == 0xfe);
}

#[test]
fn blocks_that_say_nothing_match_everything_or_nothing() {
    let asks =
        |block: &[u8]| FilterReader::parse(block).may_match(block, b"key", KeyHash::of(b"key"));
    assert!(asks(b""), "no filter");
    for len in 1..=5 {
        assert!(!asks(&[0; 5][..len]), "{len} bytes match nothing");
    }
    assert!(asks(&[0; 6]), "always true");
    assert!(FilterReader::parse(&[0; 6]).is_always_true());
    let zeroes = |meta: [u8; 5]| [[0; 64].as_slice(), &meta].concat();
    assert!(!asks(&zeroes([0xff, 0, 6, 0, 0])), "an empty Bloom filter");
    for unknown in [
        [0xff, 1, 6, 0, 0],
        [0xff, 0, 0x26, 0, 0],
        [0xff, 0, 31, 0, 0],
        [0xff, 0, 0, 0, 0],
        [0xff, 0, 6, 1, 0],
    ] {
        assert!(asks(&zeroes(unknown)), "{unknown:x?}");
    }
    assert!(
        !asks(&zeroes([6, 1, 0, 0, 0])),
        "an empty legacy filter of one line"
    );
    assert!(
        !asks(&zeroes([6, 4, 0, 0, 0])),
        "other machines have other lines"
    );
    for unknown in [
        [6, 0, 0, 0, 0],
        [6, 3, 0, 0, 0],
        [6, 65, 0, 0, 0],
        [0xfe, 0, 1, 0, 0],
        [0x80, 0, 0, 0, 0],
    ] {
        assert!(asks(&zeroes(unknown)), "{unknown:x?}");
    }
    assert!(FilterBuilder::new(FilterPolicy::ReadOnly, 5, BuildLevel::Flush).is_none());
    assert!(FilterBuilder::new(FilterPolicy::bloom(0.2), 5, BuildLevel::Flush).is_none());
    assert!(
        FilterBuilder::new(FilterPolicy::bloom(10.0), 5, BuildLevel::Flush)
            .unwrap()
            .finish()
            .is_empty()
    );
}

#[test]
fn keys_and_prefixes_are_both_found_and_counted_once() {
    for version in [4, 5] {
        let mut builder =
            FilterBuilder::new(FilterPolicy::bloom(10.0), version, BuildLevel::Flush).unwrap();
        let pairs: [(&[u8], &[u8]); 5] = [
            (b"aa1", b"aa"),
            (b"aa2", b"aa"),
            (b"aa2", b"aa"),
            (b"bb", b"bb"),
            (b"bb1", b"bb"),
        ];
        for (key, prefix) in pairs {
            builder.add_key_and_prefix(key, prefix);
        }
        assert_eq!(builder.len(), 5, "aa aa1 aa2 bb bb1");
        let block = builder.finish();
        let reader = FilterReader::parse(&block);
        for (key, prefix) in pairs {
            assert!(reader.may_match(&block, key, KeyHash::of(key)));
            assert!(reader.may_match(&block, prefix, KeyHash::of(prefix)));
        }
    }
}

#[test]
fn partitions_hold_as_many_keys_as_fit() {
    for policy in [FilterPolicy::bloom(10.0), FilterPolicy::ribbon(10.0, 0)] {
        let builder = FilterBuilder::new(policy, 5, BuildLevel::Level(1)).unwrap();
        let keys = builder.keys_for(4096);
        assert!(
            builder.block_len(keys) <= 4096 && builder.block_len(keys * 11 / 10) > 4096,
            "{policy}: {keys}"
        );
        assert_eq!(builder.keys_for(0), 1);
    }
}

#[test]
fn policies_parse_and_print_as_rocksdb_has_them() {
    for (text, printed) in [
        ("bloomfilter:10:false", "bloomfilter:10:false"),
        ("bloomfilter:10", "bloomfilter:10:false"),
        ("rocksdb.BloomFilter:9.5:true", "bloomfilter:9.5:false"),
        (
            "rocksdb.BloomFilter:10.125:false",
            "bloomfilter:10.125:false",
        ),
        ("bloomfilter:0.7:false", "bloomfilter:1:false"),
        ("bloomfilter:0.3:false", "bloomfilter:0:false"),
        ("bloomfilter:1000:false", "bloomfilter:100:false"),
        ("ribbonfilter:10:0", "ribbonfilter:10:0"),
        ("ribbonfilter:10", "ribbonfilter:10:0"),
        ("rocksdb.RibbonFilter:20.5:-1", "ribbonfilter:20.5:-1"),
        ("ribbonfilter:10:2147483647", "ribbonfilter:10:2147483647"),
        ("rocksdb.BuiltinBloomFilter", "rocksdb.BuiltinBloomFilter"),
    ] {
        let policy = FilterPolicy::parse(text).unwrap_or_else(|| panic!("{text} does not parse"));
        assert_eq!(policy.to_string(), printed);
        assert_eq!(FilterPolicy::parse(printed), Some(policy));
    }
    for bad in [
        "",
        "nullptr",
        "bloomfilter",
        "bloomfilter:",
        "bloomfilter:x",
        "bloomfilter:10:0",
        "ribbonfilter:10:a",
        "bloomfilter:10:false:1",
        "bloomfilter:NaN",
    ] {
        assert_eq!(FilterPolicy::parse(bad), None, "{bad}");
    }
    let rate = FilterPolicy::bloom(10.0).false_positive_rate();
    assert!((0.009..0.0102).contains(&rate), "{rate}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_added_is_found(keys in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..400), which in 0usize..3) {
        let (policy, version) = [(FilterPolicy::bloom(10.0), 5), (FilterPolicy::bloom(3.3), 2), (FilterPolicy::ribbon(10.0, 0), 5)][which];
        let mut builder = FilterBuilder::new(policy, version, BuildLevel::Unknown).unwrap();
        keys.iter().for_each(|k| builder.add_key(k));
        let block = builder.finish();
        let reader = FilterReader::parse(&block);
        for key in &keys {
            prop_assert!(reader.may_match(&block, key, KeyHash::of(key)));
        }
    }

    #[test]
    fn hostile_blocks_never_panic(data in proptest::collection::vec(any::<u8>(), 0..300), kind in 0usize..4, hashes in proptest::collection::vec(any::<u64>(), 20)) {
        let mut block = data;
        if let (Some(at), Some(byte)) = (block.len().checked_sub(5), [0xff, 0xfe, 6].get(kind)) {
            block[at] = *byte;
            if kind == 1 && at > 0 {
                // Keep the number of blocks small enough for the layout to be accepted.
                block[at + 3..].fill(0);
            }
        }
        let reader = FilterReader::parse(&block);
        for hash in hashes {
            reader.prefetch(&block, KeyHash(hash));
            reader.may_match(&block, &hash.to_le_bytes(), KeyHash(hash));
            // Bytes that are not those it was parsed from are a caller's bug, and still no panic.
            reader.may_match(&block[..block.len() / 2], b"k", KeyHash(hash));
        }
    }
}
