//! The target for whole blob files.

use super::{LARGE, Seed, Target};
use crate::input::{FileOf, Sink};
use crate::mutate::{self, Source};
use crate::repair;
use esker_codec::compress::{Codec, CompressionOptions, Compressor};
use esker_files::blob::{BlobFileBuilder, BlobFileReader};
use esker_format::blob::{BlobIndex, HEADER_LEN, RECORD_HEADER_LEN};
use esker_format::{FamilyId, FileNo};
use esker_status::Result;

pub(super) const TARGETS: &[Target] = &[Target {
    name: "blob",
    about: "blob files: opened, and read at every record and beside it",
    run: blob,
    seeds: files,
    change,
    memory: LARGE,
}];

const NUMBER: FileNo = FileNo(9);

pub(super) fn change(input: &mut Vec<u8>, source: &mut Source<'_>) {
    mutate::bytes(input, source);
    if !source.rng.one_in(4) {
        repair::blob(input);
    }
}

fn files() -> Vec<Seed> {
    let file = |codec: Codec| -> Result<Vec<u8>> {
        let (sink, file) = Sink::new();
        let compressor = Compressor::new(codec, CompressionOptions::default(), None)?;
        let mut builder = BlobFileBuilder::new(file, NUMBER, FamilyId::DEFAULT, compressor)?;
        for i in 0..6usize {
            builder.add(format!("key{i}").as_bytes(), &vec![b'v'; i * 30])?;
        }
        builder.finish()?;
        Ok(sink.bytes())
    };
    let made = |codec| file(codec).expect("a sink takes everything");
    vec![
        ("none", made(Codec::None)),
        ("lz4", made(Codec::Lz4)),
        ("zstd", made(Codec::Zstd)),
    ]
}

fn blob(input: &[u8]) {
    let family = FamilyId(input.get(8).map_or(0, |b| u32::from(*b)));
    let Ok(reader) = BlobFileReader::over(FileOf::of(input), NUMBER, family) else {
        return;
    };
    let codec = reader.codec() as u8;
    let word =
        |at: usize| -> Option<u64> { Some(u64::from_le_bytes(*input.get(at..)?.first_chunk()?)) };
    let (mut at, mut out) = (HEADER_LEN as u64, Vec::new());
    for _ in 0..64 {
        let place = at as usize;
        let (Some(key_len), Some(size)) = (word(place), word(place + 8)) else {
            return;
        };
        let key_at = place + RECORD_HEADER_LEN;
        let key_end = key_at.saturating_add(key_len as usize).min(input.len());
        let key = input.get(key_at..key_end).unwrap_or(&[]);
        for (offset, size) in [
            (key_end as u64, size),
            (key_end as u64, u64::from(u32::MAX)),
            (u64::MAX - 10, size),
            (size, 1),
        ] {
            let index = BlobIndex::blob(NUMBER, offset, size, codec);
            for verify in [true, false] {
                let _ = reader.get(key, &index, verify, &mut out);
            }
        }
        match (key_end as u64).checked_add(size) {
            Some(next) if next > at => at = next,
            _ => return,
        }
    }
}
