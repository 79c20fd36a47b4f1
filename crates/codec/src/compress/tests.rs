//! Round trips of every codec, the bounds on hostile bytes, and the names.

use super::*;
use proptest::prelude::*;

const USABLE: [Codec; 7] = [
    Codec::None,
    Codec::Snappy,
    Codec::Zlib,
    Codec::Bzip2,
    Codec::Lz4,
    Codec::Lz4Hc,
    Codec::Zstd,
];

/// Text that repeats itself, different for each `seed`.
fn text(len: usize, seed: u64) -> Vec<u8> {
    let words = [
        "ridge ", "gravel ", "moraine ", "drumlin ", "kettle ", "outwash ", "till ", "varve ",
    ];
    let mut state = seed | 1;
    let mut out = Vec::new();
    while out.len() < len {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        out.extend_from_slice(words[(state >> 61) as usize].as_bytes());
    }
    out.truncate(len);
    out
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 7u64;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect()
}

fn compressor(codec: Codec, dict: Option<&Dictionary>) -> Compressor {
    Compressor::new(codec, CompressionOptions::default(), dict)
        .expect("default options suit every codec")
}

#[test]
fn compressible_blocks_shrink_and_come_back() {
    for codec in USABLE.into_iter().filter(|c| *c != Codec::None) {
        let mut c = compressor(codec, None);
        let (mut stored, mut raw) = (Vec::new(), vec![9; 3]);
        for (len, seed) in [(4096, 1), (200, 2), (100_000, 3), (4096, 4)] {
            let block = text(len, seed);
            assert!(c.compress(&block, &mut stored).unwrap(), "{codec:?} {len}");
            assert!(stored.len() < len * 7 / 8);
            assert_eq!(uncompressed_len(codec, &stored).unwrap(), len);
            decompress(codec, &stored, None, len, &mut raw).unwrap();
            assert_eq!(raw, block, "{codec:?} {len}");
        }
    }
}

#[test]
fn noise_is_rejected_unless_compression_is_forced() {
    let block = noise(10_000);
    for codec in USABLE.into_iter().filter(|c| *c != Codec::None) {
        let mut c = compressor(codec, None);
        let (mut stored, mut raw) = (Vec::new(), Vec::new());
        assert!(!c.compress(&block, &mut stored).unwrap(), "{codec:?}");
        assert!(!c.compress(b"", &mut stored).unwrap());
        for raw_bytes in [block.as_slice(), b"", b"x"] {
            c.compress_always(raw_bytes, &mut stored).unwrap();
            decompress(codec, &stored, None, 10_000, &mut raw).unwrap();
            assert_eq!(raw, raw_bytes, "{codec:?}");
        }
    }
}

/// A state that is used again after a block that did not fit, or was damaged, takes the next ones.
#[test]
fn blocks_that_do_not_fit_leave_nothing_behind() {
    let noise = noise(300_000);
    let dictionary = Dictionary::new(text(4096, 9)).expect("not empty");
    for codec in USABLE.into_iter().filter(|c| *c != Codec::None) {
        for (level, dict) in [(1, None), (6, None), (9, None), (6, Some(&dictionary))] {
            let mut options = CompressionOptions::default();
            options.level = level;
            let mut c = Compressor::new(codec, options, dict).expect("a level of each codec");
            let (mut stored, mut raw) = (Vec::new(), Vec::new());
            for nth in 0..200usize {
                let len = if nth == 103 {
                    290_000
                } else {
                    [100, 4096, 4096, 9000][nth % 4]
                };
                let block = &noise[nth * 31..][..len];
                assert!(!c.compress(block, &mut stored).unwrap(), "{codec:?} {nth}");
                if nth % 10 == 3 {
                    c.compress_always(block, &mut stored).unwrap();
                    decompress(codec, &stored, dict, len, &mut raw).unwrap();
                    assert_eq!(raw, block, "{codec:?} level {level} {nth}");
                }
                let block = text(len, nth as u64);
                if c.compress(&block, &mut stored).unwrap() {
                    let mut damaged = stored.clone();
                    damaged[stored.len() / 2] ^= 1 << (nth % 8);
                    let _ = decompress(codec, &damaged, dict, len, &mut raw);
                    decompress(codec, &stored, dict, len, &mut raw).unwrap();
                    assert_eq!(raw, block, "{codec:?} level {level} {nth}");
                }
            }
        }
    }
}

#[test]
fn the_limit_and_the_claimed_size_are_enforced() {
    let block = text(5000, 1);
    for codec in USABLE {
        let mut stored = block.clone();
        if codec != Codec::None {
            assert!(
                compressor(codec, None)
                    .compress(&block, &mut stored)
                    .unwrap()
            );
        }
        let mut raw = Vec::new();
        assert!(
            decompress(codec, &stored, None, 4999, &mut raw)
                .unwrap_err()
                .is_corruption(),
            "{codec:?}"
        );
        assert!(raw.capacity() < 5000, "{codec:?} allocated before checking");
        if codec.has_size_prefix() {
            for wrong in [4999u32, 5001] {
                let mut altered = Vec::new();
                bounded::put_size(&mut altered, wrong);
                altered.extend_from_slice(&stored[2..]);
                assert!(
                    decompress(codec, &altered, None, 10_000, &mut raw)
                        .unwrap_err()
                        .is_corruption(),
                    "{codec:?}"
                );
            }
        }
        for cut in [stored.len() - 1, stored.len() / 2, 1] {
            let cut_short = decompress(codec, &stored[..cut], None, 10_000, &mut raw);
            assert!(
                codec == Codec::None || cut_short.is_err(),
                "{codec:?} cut to {cut}"
            );
        }
    }
}

#[test]
fn a_claim_beyond_what_the_bytes_can_hold_is_refused_before_allocating() {
    for codec in [Codec::Snappy, Codec::Zlib, Codec::Lz4, Codec::Zstd] {
        // Four gigabytes less one, in twenty bytes.
        let mut stored = vec![0xff, 0xff, 0xff, 0xff, 0x0f];
        stored.extend([
            0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 0x21, 0, 0, 1, 2, 3, 4, 5, 6,
        ]);
        let mut out = Vec::new();
        let e = decompress(codec, &stored, None, usize::MAX, &mut out).expect_err("too much");
        assert!(e.to_string().contains("cannot hold"), "{codec:?}: {e}");
        assert_eq!(out.capacity(), 0, "{codec:?}");
    }
    // What shrinks most is still read.
    let zeros = vec![0; 40 << 20];
    for codec in Codec::ALL
        .into_iter()
        .filter(|c| !matches!(c, Codec::None | Codec::Xpress))
    {
        let (mut stored, mut back) = (Vec::new(), Vec::new());
        let shrunk = compressor(codec, None).compress(&zeros, &mut stored);
        assert!(shrunk.expect("compresses"));
        decompress(codec, &stored, None, usize::MAX, &mut back).expect("sound");
        assert!(back == zeros, "{codec:?}");
    }
}

#[test]
fn dictionaries_help_small_blocks_and_are_needed_to_read_them() {
    let dict = Dictionary::new(text(20_000, 5)).unwrap();
    for codec in USABLE.into_iter().filter(|c| c.uses_dictionary()) {
        let mut with = compressor(codec, Some(&dict));
        let (mut stored, mut plain, mut raw) = (Vec::new(), Vec::new(), Vec::new());
        for seed in [5, 6, 7] {
            let block = text(300, seed);
            assert!(with.compress(&block, &mut stored).unwrap());
            assert!(
                compressor(codec, None)
                    .compress(&block, &mut plain)
                    .unwrap()
            );
            assert!(
                stored.len() < plain.len(),
                "{codec:?}: {} against {}",
                stored.len(),
                plain.len()
            );
            decompress(codec, &stored, Some(&dict), 300, &mut raw).unwrap();
            assert_eq!(raw, block, "{codec:?}");
            let without = decompress(codec, &stored, None, 300, &mut raw);
            assert!(without.is_err() || raw != block, "{codec:?}");
        }
    }
    assert!(Dictionary::new(Vec::new()).unwrap_err().is_corruption());
}

#[test]
fn dictionaries_larger_than_the_lz4_window_keep_their_end() {
    let dict = Dictionary::new([text(90_000, 1), noise(100), text(40_000, 2)].concat()).unwrap();
    for codec in [Codec::Lz4, Codec::Lz4Hc] {
        let (mut stored, mut raw) = (Vec::new(), Vec::new());
        let block = text(2000, 2);
        assert!(
            compressor(codec, Some(&dict))
                .compress(&block, &mut stored)
                .unwrap()
        );
        decompress(codec, &stored, Some(&dict), 2000, &mut raw).unwrap();
        assert_eq!(raw, block);
    }
}

#[test]
fn zstd_dictionaries_can_be_trained_and_finalized() {
    let pieces: Vec<Vec<u8>> = (0..400).map(|i| text(400, i)).collect();
    let (samples, sizes): (Vec<u8>, Vec<usize>) =
        (pieces.concat(), pieces.iter().map(Vec::len).collect());
    for made in [
        train_dictionary(&samples, &sizes, 4096).unwrap(),
        finalize_dictionary(&samples, &sizes, 4096, 3).unwrap(),
    ] {
        let made = made.expect("the samples suffice");
        assert!(made.len() <= 4096);
        assert_eq!(
            made[..4],
            [0x37, 0xa4, 0x30, 0xec],
            "zstd's dictionary magic"
        );
        let dict = Dictionary::new(made).unwrap();
        let (mut stored, mut raw) = (Vec::new(), Vec::new());
        assert!(
            compressor(Codec::Zstd, Some(&dict))
                .compress(&pieces[9], &mut stored)
                .unwrap()
        );
        decompress(Codec::Zstd, &stored, Some(&dict), 400, &mut raw).unwrap();
        assert_eq!(raw, pieces[9]);
        assert!(dict.memory_usage() > dict.as_bytes().len());
    }
    assert_eq!(train_dictionary(b"abc", &[3], 100).unwrap(), None);
    assert_eq!(train_dictionary(b"", &[], 100).unwrap(), None);
    assert!(train_dictionary(b"abc", &[2], 100).is_err());
    assert!(finalize_dictionary(b"abc", &[usize::MAX, 4], 100, 3).is_err());
}

#[test]
fn levels_and_options_are_followed_or_near() {
    let block = text(50_000, 3);
    let size = |codec, options| {
        let mut out = Vec::new();
        Compressor::new(codec, options, None)
            .unwrap()
            .compress_always(&block, &mut out)
            .unwrap();
        let mut raw = Vec::new();
        decompress(codec, &out, None, block.len(), &mut raw).unwrap();
        assert_eq!(raw, block);
        out.len()
    };
    let at = CompressionOptions::at_level;
    assert!(size(Codec::Zstd, at(19)) < size(Codec::Zstd, at(1)));
    assert!(size(Codec::Zlib, at(9)) < size(Codec::Zlib, at(1)));
    assert!(size(Codec::Lz4, at(1)) < size(Codec::Lz4, at(-100)));
    assert!(size(Codec::Lz4Hc, at(9)) < size(Codec::Lz4, at(1)));
    let checked = CompressionOptions {
        checksum: true,
        ..at(3)
    };
    assert_eq!(size(Codec::Zstd, checked), size(Codec::Zstd, at(3)) + 4);
    let small = CompressionOptions {
        window_bits: -9,
        ..at(6)
    };
    assert!(size(Codec::Zlib, small) > size(Codec::Zlib, at(6)));
    let hinted = CompressionOptions {
        strategy: 2,
        ..at(6)
    };
    assert_eq!(size(Codec::Zlib, hinted), size(Codec::Zlib, at(6)));
    let window = |bits| CompressionOptions {
        window_bits: bits,
        ..at(6)
    };
    for (other, nearest) in [
        (at(12), at(9)),
        (at(-5), at(6)),
        (window(15), window(-14)),
        (window(-15), window(-14)),
        (window(0), window(-14)),
        (window(i32::MIN), window(-14)),
        (window(-8), window(-9)),
    ] {
        assert_eq!(size(Codec::Zlib, other), size(Codec::Zlib, nearest));
    }
    assert!(Compressor::new(Codec::Xpress, at(1), None).is_err());
    let never = CompressionOptions {
        max_compressed_bytes_per_kb: 0,
        ..at(1)
    };
    assert!(
        !Compressor::new(Codec::Zstd, never, None)
            .unwrap()
            .compress(&block, &mut Vec::new())
            .unwrap()
    );
}

#[test]
fn names_in_all_their_forms_lead_back() {
    for codec in Codec::ALL {
        assert_eq!(Codec::from_u8(codec as u8), Some(codec));
        assert_eq!(Codec::from_option_name(codec.option_name()), Some(codec));
        assert_eq!(Codec::from_tool_name(codec.tool_name()), Some(codec));
        assert_eq!(
            Codec::from_property_name(codec.property_name()),
            Some(codec)
        );
    }
    assert_eq!(Codec::from_u8(8), None);
    assert_eq!(Codec::from_u8(0xff), None);
    assert_eq!(Codec::from_option_name("kDisableCompressionOption"), None);
    assert_eq!(property_v7([Codec::Zstd]), "BuiltinV2;07;");
    assert_eq!(
        property_v7([Codec::Zstd, Codec::Lz4, Codec::Zstd]),
        "BuiltinV2;0407;"
    );
    assert_eq!(property_v7([Codec::None]), ";;");
    assert_eq!(
        codecs_of_property("BuiltinV2;0407;"),
        Some(vec![Codec::Lz4, Codec::Zstd])
    );
    assert_eq!(codecs_of_property(";;"), Some(vec![]));
    assert_eq!(codecs_of_property("LZ4HC"), Some(vec![Codec::Lz4Hc]));
    for bad in [
        "BuiltinV2;07",
        "BuiltinV2;7;",
        "Other;07;",
        "BuiltinV2;99;",
        "BuiltinV2;é7;",
        "lz4",
    ] {
        assert_eq!(codecs_of_property(bad), None, "{bad}");
    }
}

#[test]
fn options_print_as_the_table_property() {
    assert_eq!(
        CompressionOptions::default().to_string(),
        "window_bits=-14; level=32767; strategy=0; max_dict_bytes=0; zstd_max_train_bytes=0; enabled=0; \
         max_dict_buffer_bytes=0; use_zstd_dict_trainer=1; max_compressed_bytes_per_kb=896; checksum=0; "
    );
}

#[test]
fn streams_decode_in_fragments_and_refuse_what_does_not_belong() {
    let (mut encoder, mut decoder) = (StreamEncoder::new().unwrap(), StreamDecoder::new().unwrap());
    let mut frame = Vec::new();
    for record in [text(300_000, 1), noise(200_000), Vec::new(), text(1, 2)] {
        encoder.encode(&record, &mut frame).unwrap();
        for piece in [1, 7, 1000, 32_761, frame.len()] {
            let mut out = Vec::new();
            decoder.reset().unwrap();
            let pieces: Vec<&[u8]> = frame.chunks(piece).collect();
            for (i, fragment) in pieces.iter().enumerate() {
                let done = decoder.decode(fragment, record.len(), &mut out).unwrap();
                assert_eq!(
                    done,
                    i + 1 == pieces.len(),
                    "fragment {i} of {}",
                    pieces.len()
                );
            }
            assert_eq!(out, record);
        }
        if !record.is_empty() {
            decoder.reset().unwrap();
            let too_large = decoder.decode(&frame, record.len() - 1, &mut Vec::new());
            assert!(too_large.unwrap_err().is_corruption());
        }
        decoder.reset().unwrap();
        frame.push(0);
        assert!(
            decoder
                .decode(&frame, 1 << 20, &mut Vec::new())
                .unwrap_err()
                .is_corruption()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_bytes_come_back(block in proptest::collection::vec(0u8..8, 0..3000), which in 1usize..7, dict: bool) {
        let dictionary = Dictionary::new(vec![1, 2, 3, 4, 5, 6, 7, 0, 1, 2]).unwrap();
        let dict = dict.then_some(&dictionary);
        let (mut stored, mut raw) = (Vec::new(), Vec::new());
        compressor(USABLE[which], dict).compress_always(&block, &mut stored).unwrap();
        decompress(USABLE[which], &stored, dict, block.len(), &mut raw).unwrap();
        prop_assert_eq!(raw, block);
    }

    #[test]
    fn hostile_bytes_fail_in_bounds(mut stored in proptest::collection::vec(any::<u8>(), 0..200), at: u8, which in 0usize..7) {
        let mut raw = Vec::new();
        if decompress(USABLE[which], &stored, None, 1 << 16, &mut raw).is_ok() {
            prop_assert!(raw.len() <= 1 << 16);
        }
        // A real block with a byte changed gets further into the decoder.
        let block = text(600, 1);
        compressor(USABLE[which], None).compress_always(&block, &mut stored).ok();
        let at = usize::from(at) % stored.len().max(1);
        if let Some(byte) = stored.get_mut(at) {
            *byte ^= 0x55;
        }
        if decompress(USABLE[which], &stored, None, 1 << 16, &mut raw).is_ok() {
            prop_assert!(raw.len() <= 1 << 16);
        }
        let _ = StreamDecoder::new().unwrap().decode(&stored, 1 << 16, &mut Vec::new());
    }
}
