//! Targets for the decompressors: sizes that are claimed, dictionaries, frames in fragments.

use super::{LARGE, Seed, Target};
use crate::input::Cut;
use crate::mutate::{self, Source};
use esker_codec::compress::{
    Codec, CompressionOptions, Compressor, Dictionary, StreamDecoder, StreamEncoder,
    codecs_of_property, decompress, property_v7, uncompressed_len,
};

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "codec",
        about: "stored blocks of every codec, with and without dictionary; and what is compressed comes back",
        run: codec,
        seeds: stored,
        change: keep_first,
        memory: LARGE,
    },
    Target {
        name: "stream",
        about: "the zstd frames of compressed logs, in fragments",
        run: stream,
        seeds: frames,
        change: mutate::bytes,
        memory: LARGE,
    },
];

/// Larger blocks are refused here.
const LIMIT: usize = 16 << 20;
const DICTIONARY: &[u8] = b"words that are in the dictionary and in the value, value, value";

fn text() -> Vec<u8> {
    let mut out = Vec::new();
    for i in 0..60u32 {
        out.extend_from_slice(format!("value {} of the words, {} ", i * i, i % 7).as_bytes());
    }
    out
}

/// A first byte that names the codec, and in its highest bit whether there is a dictionary.
fn stored() -> Vec<Seed> {
    const NAMES: [&str; 8] = [
        "none", "snappy", "zlib", "bzip2", "lz4", "lz4hc", "xpress", "zstd",
    ];
    let mut seeds = Vec::new();
    for codec in Codec::ALL.into_iter().filter(|c| *c != Codec::None) {
        if let Ok(mut c) = Compressor::new(codec, CompressionOptions::default(), None) {
            let mut out = Vec::new();
            c.compress_always(&text(), &mut out).expect("compresses");
            out.insert(0, codec as u8);
            seeds.push((NAMES[codec as usize], out));
        }
    }
    let dictionary = Dictionary::new(DICTIONARY).expect("not empty");
    for (codec, name) in [
        (Codec::Zstd, "zstd-dictionary"),
        (Codec::Lz4, "lz4-dictionary"),
        (Codec::Zlib, "zlib-dictionary"),
    ] {
        let mut c =
            Compressor::new(codec, CompressionOptions::default(), Some(&dictionary)).expect("made");
        let mut out = Vec::new();
        c.compress_always(&text(), &mut out).expect("compresses");
        out.insert(0, codec as u8 | 0x80);
        seeds.push((name, out));
    }
    // Few bytes that claim four gigabytes.
    seeds.push((
        "claims-much",
        vec![7, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x28, 0xb5, 0x2f, 0xfd],
    ));
    seeds.push(("zstd-zeros", zeros(Codec::Zstd)));
    seeds.push(("bzip2-zeros", zeros(Codec::Bzip2)));
    seeds
}

/// Eight million zeros, stored in very little.
fn zeros(codec: Codec) -> Vec<u8> {
    let mut c = Compressor::new(codec, CompressionOptions::default(), None).expect("made");
    let mut out = Vec::new();
    c.compress_always(&vec![0; 8 << 20], &mut out)
        .expect("compresses");
    out.insert(0, codec as u8);
    out
}

fn keep_first(input: &mut Vec<u8>, source: &mut Source<'_>) {
    let first = input.first().copied().unwrap_or(0);
    mutate::bytes(input, source);
    if let Some(byte) = input.first_mut()
        && !source.rng.one_in(8)
    {
        *byte = first;
    }
}

fn codec(input: &[u8]) {
    let Some((first, body)) = input.split_first() else {
        return;
    };
    let Some(codec) = Codec::from_u8(first & 0x7f) else {
        return;
    };
    // The dictionary is the input's own end in one of two cases, for its parser.
    let own = &body[body.len() / 2..];
    for raw in [DICTIONARY, own] {
        let dictionary = Dictionary::new(raw).ok().filter(|_| first & 0x80 != 0);
        let dictionary = dictionary.as_ref();
        let mut out = Vec::new();
        let claims = uncompressed_len(codec, body);
        if decompress(codec, body, dictionary, LIMIT, &mut out).is_ok() {
            assert_eq!(claims.ok(), Some(out.len()));
        }
        assert!(out.len() <= LIMIT);
        assert!(
            decompress(
                codec,
                body,
                dictionary,
                out.len().saturating_sub(1),
                &mut Vec::new()
            )
            .is_err()
                || out.is_empty()
        );

        let raw = &body[..body.len().min(20_000)];
        let options = CompressionOptions::default();
        if codec != Codec::None
            && let Ok(mut c) = Compressor::new(codec, options, dictionary)
        {
            let (mut stored, mut back) = (Vec::new(), Vec::new());
            // Blocks that do not fit leave nothing behind.
            for _ in 0..8 {
                c.compress(raw, &mut stored).expect("kept or not");
            }
            c.compress_always(raw, &mut stored)
                .expect("anything can be compressed");
            decompress(codec, &stored, dictionary, LIMIT, &mut back).expect("what was compressed");
            assert!(back == raw, "{codec:?} gave back something else");
        }
    }
    let name = String::from_utf8_lossy(body);
    if let Some(codecs) = codecs_of_property(&name) {
        let _ = property_v7(codecs);
    }
}

fn frames() -> Vec<Seed> {
    let mut encoder = StreamEncoder::new().expect("memory");
    let (mut small, mut large) = (Vec::new(), Vec::new());
    encoder.encode(&text(), &mut small).expect("encodes");
    encoder
        .encode(&vec![7; 3 << 20], &mut large)
        .expect("encodes");
    small.insert(0, 200);
    large.insert(0, 7);
    vec![("text", small), ("zeros", large)]
}

/// The first byte says how long the fragments are.
fn stream(input: &[u8]) {
    let mut cut = Cut(input);
    let n = usize::from(cut.byte()) + 1;
    let mut decoder = StreamDecoder::new().expect("memory");
    for limit in [LIMIT, 1000] {
        let mut out = Vec::new();
        for fragment in cut.0.chunks(n) {
            match decoder.decode(fragment, limit, &mut out) {
                Ok(false) => {}
                Ok(true) | Err(_) => break,
            }
        }
        assert!(out.len() <= limit + 1);
        decoder.reset().expect("can begin again");
    }
}
