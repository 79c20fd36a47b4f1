//! The second tier by itself: blocks in, blocks out.

use super::*;
use esker_format::block::BlockBuilder;

const KEY: CacheKey = CacheKey::new(7, 4096);

fn tier(codec: Codec, capacity: usize) -> CompressedTier {
    CompressedTier::new(CompressedTierOptions {
        capacity,
        num_shard_bits: 0,
        codec,
        ..CompressedTierOptions::default()
    })
}

fn block(value: &[u8]) -> CachedBlock {
    let mut builder = BlockBuilder::new(16);
    for n in 0..20u32 {
        let mut key = n.to_be_bytes().to_vec();
        key.extend_from_slice(&[1; 8]);
        builder.add(&key, value);
    }
    CachedBlock::Data(Block::parse_data(builder.finish().to_vec()).expect("a block"))
}

#[test]
fn a_block_comes_back_as_it_was() {
    for codec in Codec::ALL.into_iter().filter(|c| c.is_supported()) {
        let tier = tier(codec, 1 << 20);
        let original = block(&[b'v'; 100]);
        tier.offer(KEY, &original);
        let usage = tier.usage();
        assert_eq!((usage.entries, usage.capacity), (1, 1 << 20));
        let raw = original.data().bytes();
        if codec != Codec::None {
            assert!(usage.bytes < raw.len() as u64, "{codec:?} compresses");
        }
        let seen = tier.recall(KEY, false).expect("it stays");
        assert_eq!(seen.data().bytes(), raw);
        let taken = tier.recall(KEY, true).expect("it is there");
        assert_eq!(taken.data().bytes(), raw);
        assert!(tier.recall(KEY, true).is_none(), "it was taken");
        assert_eq!(tier.usage().entries, 0);
    }
}

#[test]
fn a_block_that_does_not_compress_is_kept_as_it_is() {
    let tier = tier(Codec::Lz4, 1 << 20);
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    })
    .take(4000)
    .collect();
    let mut builder = BlockBuilder::new(16);
    builder.add(b"key-of-noise", &noise);
    let raw = builder.finish().to_vec();
    let original = CachedBlock::Data(Block::parse_data(raw.clone()).expect("a block"));
    tier.offer(KEY, &original);
    let back = tier.recall(KEY, true).expect("it is kept");
    assert_eq!(back.data().bytes(), raw);
}

#[test]
fn memory_is_bounded_and_forgotten_on_demand() {
    let tier = tier(Codec::None, 20_000);
    let original = block(&[b'v'; 100]);
    for n in 0..100 {
        tier.offer(CacheKey::new(7, n), &original);
    }
    let usage = tier.usage();
    assert!(usage.bytes <= usage.capacity, "{usage:?}");
    assert!(usage.entries >= 5, "{usage:?}");
    assert!(
        tier.recall(CacheKey::new(7, 0), false).is_none(),
        "the oldest left"
    );
    let newest = CacheKey::new(7, 99);
    assert!(tier.recall(newest, false).is_some());
    assert!(tier.memory() >= usage.entries as usize * original.data().bytes().len());
    tier.erase(newest);
    assert!(tier.recall(newest, false).is_none());
    tier.clear();
    assert_eq!(tier.usage().entries, 0);
}

#[test]
fn what_does_not_decode_is_not_there() {
    let tier = tier(Codec::Lz4, 1 << 20);
    let damaged = CompressedBlock {
        codec: Codec::Lz4,
        bytes: vec![0xff; 40].into(),
    };
    (tier.blocks.insert(KEY, damaged, 100, Priority::Low)).expect("room");
    assert!(tier.recall(KEY, true).is_none());
}
