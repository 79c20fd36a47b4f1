//! Tables of every shape that the builder knows, read back in every way, shown to RocksDB's own
//! `sst_dump` where that is installed, and damaged in every region.

use esker_codec::checksum::ChecksumType;
use esker_codec::compress::{Codec, CompressionOptions};
use esker_env::{Env, ReadOptions, WriteOptions};
use esker_files::table::*;
use esker_format::filter::FilterPolicy;
use esker_format::key::append_internal;
use esker_format::{Cursor, FileNo, KeyOrder, PrefixExtractor, RawTombstone, Seq, ValueType};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn key(user: &[u8], seq: u64, kind: ValueType) -> Vec<u8> {
    let mut out = Vec::new();
    append_internal(&mut out, user, Seq(seq), kind);
    out
}

/// Entries in order; with `versions` some user keys have several.
fn entries(n: u64, versions: bool) -> Entries {
    let mut out = Vec::new();
    for i in 0..n {
        let user = format!("key{:06}", i * 3);
        let value = format!("value of {i} ")
            .repeat(1 + (i % 5) as usize)
            .into_bytes();
        if versions && i % 10 == 0 {
            for seq in (1..40).rev() {
                let kind = if seq % 7 == 0 {
                    ValueType::Deletion
                } else {
                    ValueType::Value
                };
                out.push((key(user.as_bytes(), 1000 + seq, kind), value.clone()));
            }
        }
        let kind = if i % 11 == 3 {
            ValueType::Merge
        } else {
            ValueType::Value
        };
        out.push((key(user.as_bytes(), 7 + i, kind), value));
    }
    out
}

fn builder_options(table: TableOptions, compression: Codec, dict: u32) -> TableBuilderOptions {
    TableBuilderOptions {
        table,
        compression,
        compression_opts: CompressionOptions {
            max_dict_bytes: dict,
            zstd_max_train_bytes: dict * 16,
            ..CompressionOptions::default()
        },
        prefix_extractor: Some(PrefixExtractor::Fixed(6)),
        db_id: "0a1b2c3d-0000-4000-8000-0123456789ab".to_string(),
        db_session_id: "ABCDEFGHIJ0123456789".to_string(),
        file_no: FileNo(7),
        ..TableBuilderOptions::default()
    }
}

fn build(
    env: &Env,
    path: &Path,
    options: TableBuilderOptions,
    all: &Entries,
    tombstones: &[RawTombstone],
) -> TableSummary {
    let file = env
        .fs
        .create(
            path,
            WriteOptions {
                buffer_size: 1 << 16,
                ..WriteOptions::default()
            },
        )
        .expect("creates");
    let mut b = TableBuilder::new(file, options).expect("valid options");
    for (k, v) in all {
        b.add(k, v).expect("adds");
    }
    for t in tombstones {
        b.add_tombstone(t);
    }
    let (summary, mut file) = b.finish().expect("finishes");
    file.close().expect("closes");
    assert_eq!(
        env.fs.metadata(path).expect("exists").len,
        summary.file_size
    );
    assert_eq!(
        summary.properties.num_entries,
        (all.len() + tombstones.len()) as u64
    );
    summary
}

fn reader_options(cached: bool) -> TableReaderOptions {
    TableReaderOptions {
        prefix_extractor: Some(PrefixExtractor::Fixed(6)),
        cache: Some(Arc::new(BlockCache::new(
            esker_cache::CacheOptions::with_capacity(1 << 20),
        ))),
        table: TableOptions {
            cache_index_and_filter_blocks: cached,
            ..TableOptions::default()
        },
        ..TableReaderOptions::default()
    }
}

fn open(env: &Env, path: &Path, cached: bool) -> Arc<TableReader> {
    let file = env
        .fs
        .open_read(path, ReadOptions::default())
        .expect("opens");
    let size = file.len();
    TableReader::open(file, size, reader_options(cached)).expect("a readable table")
}

fn check_reads(reader: &Arc<TableReader>, all: &Entries, what: &str) {
    let ctx = ReadContext::default();
    for ctx in [ctx.clone(), ReadContext::compaction(64 << 10)] {
        let mut c = reader.cursor(&ctx);
        c.seek_to_first();
        for (i, (k, v)) in all.iter().enumerate() {
            assert!(
                c.valid() && c.key() == &k[..] && c.value() == &v[..],
                "{what}: forward at {i}"
            );
            c.next();
        }
        assert!(!c.valid() && c.status().is_ok(), "{what}: forward end");
        c.seek_to_last();
        for (i, (k, v)) in all.iter().enumerate().rev() {
            assert!(
                c.valid() && c.key() == &k[..] && c.value() == &v[..],
                "{what}: backward at {i}"
            );
            c.prev();
        }
        assert!(!c.valid() && c.status().is_ok(), "{what}: backward end");
    }
    let mut c = reader.cursor(&ctx);
    let order = KeyOrder::Bytewise;
    for i in (0..all.len()).step_by(3) {
        let mut targets = vec![all[i].0.clone()];
        let user = &all[i].0[..all[i].0.len() - 8];
        targets.push(key(user, Seq::MAX.0, ValueType::SEEK));
        targets.push(key(&[user, b"x"].concat(), 5, ValueType::Value));
        targets.push(key(&user[..user.len() - 1], 5, ValueType::Value));
        for target in targets {
            let at = all.partition_point(|e| order.compare_internal(&e.0, &target).is_lt());
            c.seek(&target);
            assert_eq!(
                c.valid().then(|| c.key().to_vec()),
                all.get(at).map(|e| e.0.clone()),
                "{what}: seek {i}"
            );
            let up_to = all.partition_point(|e| order.compare_internal(&e.0, &target).is_le());
            c.seek_for_prev(&target);
            let want = up_to.checked_sub(1).map(|j| all[j].0.clone());
            assert_eq!(
                c.valid().then(|| c.key().to_vec()),
                want,
                "{what}: seek_for_prev {i}"
            );
            let mut seen = Vec::new();
            let lookup = LookupKey::new(&target, 0);
            reader
                .get(&ctx, &lookup, |e| {
                    seen.push((e.key().to_vec(), e.value().to_vec()));
                    true
                })
                .expect("reads");
            let wanted_user = &target[..target.len() - 8];
            let want: Entries = all[at..]
                .iter()
                .take_while(|e| &e.0[..e.0.len() - 8] == wanted_user)
                .cloned()
                .collect();
            assert_eq!(seen, want, "{what}: get {i}");
        }
    }
}

/// Every combination worth its time: name and options.
fn matrix() -> Vec<(String, TableBuilderOptions)> {
    let mut out = Vec::new();
    let base = |version| TableOptions {
        format_version: version,
        block_size: 1024,
        metadata_block_size: 256,
        ..TableOptions::default()
    };
    let checksums = [
        ChecksumType::None,
        ChecksumType::Crc32c,
        ChecksumType::XxHash,
        ChecksumType::XxHash64,
        ChecksumType::Xxh3,
    ];
    for version in 2..=7 {
        for checksum in checksums {
            let t = TableOptions {
                checksum,
                filter_policy: Some(FilterPolicy::bloom(10.0)),
                ..base(version)
            };
            out.push((
                format!("v{version} {checksum:?}"),
                builder_options(t, Codec::Snappy, 0),
            ));
        }
        for index_type in [
            IndexType::HashSearch,
            IndexType::TwoLevelIndexSearch,
            IndexType::BinarySearchWithFirstKey,
        ] {
            for interval in [1, 4] {
                let partition_filters = index_type == IndexType::TwoLevelIndexSearch;
                let t = TableOptions {
                    index_type,
                    partition_filters,
                    index_block_restart_interval: interval,
                    filter_policy: Some(FilterPolicy::ribbon(10.0, 0)),
                    ..base(version)
                };
                out.push((
                    format!("v{version} {index_type:?} {interval}"),
                    builder_options(t, Codec::Zstd, 0),
                ));
            }
        }
    }
    for codec in [
        Codec::None,
        Codec::Snappy,
        Codec::Zlib,
        Codec::Bzip2,
        Codec::Lz4,
        Codec::Lz4Hc,
        Codec::Zstd,
    ] {
        for dict in [0, 2048] {
            out.push((
                format!("{codec:?} dict {dict}"),
                builder_options(base(5), codec, dict),
            ));
        }
    }
    let hashed = TableOptions {
        data_block_index_type: DataBlockIndexType::BinaryAndHash,
        ..base(5)
    };
    out.push((
        "hash index".to_string(),
        builder_options(hashed, Codec::None, 0),
    ));
    let aligned = TableOptions {
        block_align: true,
        block_size: 4096,
        ..base(5)
    };
    out.push((
        "aligned".to_string(),
        builder_options(aligned, Codec::None, 0),
    ));
    let prefixes = TableOptions {
        whole_key_filtering: false,
        filter_policy: Some(FilterPolicy::bloom(10.0)),
        ..base(5)
    };
    out.push((
        "prefix filter".to_string(),
        builder_options(prefixes, Codec::None, 0),
    ));
    for index_shortening in [
        IndexShortening::NoShortening,
        IndexShortening::ShortenSeparatorsAndSuccessor,
    ] {
        let t = TableOptions {
            index_shortening,
            use_delta_encoding: false,
            ..base(5)
        };
        out.push((
            format!("{index_shortening:?}"),
            builder_options(t, Codec::None, 0),
        ));
    }
    out
}

fn tombstones() -> Vec<RawTombstone> {
    vec![
        RawTombstone {
            start: b"key000100".to_vec(),
            end: b"key000200".to_vec(),
            seq: Seq(900),
        },
        RawTombstone {
            start: b"key000050".to_vec(),
            end: b"key000150".to_vec(),
            seq: Seq(901),
        },
    ]
}

#[test]
fn every_shape_reads_back() {
    let env = Env::in_memory();
    for (name, options) in matrix() {
        for versions in [false, true] {
            let all = entries(400, versions);
            let path = PathBuf::from("/000007.sst");
            let summary = build(&env, &path, options.clone(), &all, &tombstones());
            assert_eq!(summary.properties.num_range_deletions, 2, "{name}");
            let form = (
                options.table.format_version >= 3 && !versions,
                summary.properties.index_key_is_user_key,
            );
            assert!(form.0 == form.1 || versions, "{name}: {form:?}");
            for cached in [false, true] {
                let reader = open(&env, &path, cached);
                assert_eq!(reader.range_tombstones().len(), 2, "{name}");
                assert_eq!(reader.properties(), &summary.properties, "{name}");
                check_reads(
                    &reader,
                    &all,
                    &format!("{name} versions {versions} cached {cached}"),
                );
                reader.verify().unwrap_or_else(|e| panic!("{name}: {e}"));
            }
            env.fs.remove_file(&path).expect("removes");
        }
    }
}

#[test]
fn rocksdb_verifies_and_scans_every_shape() {
    if Command::new("sst_dump").arg("--help").output().is_err() {
        println!("SKIPPED: sst_dump is not installed");
        return;
    }
    let env = Env::posix();
    let dir = tempfile::tempdir().expect("a directory");
    let mut checked = 0;
    for (name, options) in matrix() {
        if options.table.format_version > 5 {
            continue;
        }
        for versions in [false, true] {
            let all = entries(300, versions);
            let path = dir.path().join("000007.sst");
            build(&env, &path, options.clone(), &all, &[]);
            for command in ["verify", "scan"] {
                let run = Command::new("sst_dump")
                    .arg(format!("--command={command}"))
                    .arg(format!("--file={}", path.display()))
                    .args(["--output_hex", "--verify_checksum"])
                    .output()
                    .expect("sst_dump runs");
                let text = format!(
                    "{}{}",
                    String::from_utf8_lossy(&run.stdout),
                    String::from_utf8_lossy(&run.stderr)
                );
                assert!(run.status.success(), "{name} {command}: {text}");
                let bad = ["Corruption", "not a valid", "rror", "is corrupted"]
                    .iter()
                    .any(|w| text.contains(w));
                assert!(!bad, "{name} {command}: {text}");
                if command == "scan" {
                    let lines = text.lines().filter(|l| l.starts_with('\'')).count();
                    assert_eq!(lines, all.len(), "{name}: {text}");
                }
            }
            checked += 1;
        }
    }
    println!("{checked} tables checked by sst_dump");
}

/// Everything a damaged table still gives, or the first error.
fn read_all(env: &Env, path: &Path) -> esker_status::Result<Entries> {
    let file = env.fs.open_read(path, ReadOptions::default())?;
    let size = file.len();
    let reader = TableReader::open(file, size, reader_options(false))?;
    let mut c = reader.cursor(&ReadContext::default());
    let mut out = Vec::new();
    c.seek_to_first();
    while c.valid() {
        out.push((c.key().to_vec(), c.value().to_vec()));
        assert!(out.len() < 10_000, "a damaged table goes on for ever");
        c.next();
    }
    c.status()?;
    Ok(out)
}

fn write(env: &Env, path: &Path, bytes: &[u8]) {
    let mut f = env
        .fs
        .create(path, WriteOptions::default())
        .expect("creates");
    f.append(bytes).expect("appends");
    f.close().expect("closes");
}

#[test]
fn damage_is_an_error_or_changes_nothing() {
    let env = Env::in_memory();
    let path = PathBuf::from("/000007.sst");
    // Without checksums the parsers stand alone: any answer will do, but no panic and no endless
    // walk.
    for (checksum, index_type) in [
        (ChecksumType::Xxh3, IndexType::BinarySearch),
        (ChecksumType::Crc32c, IndexType::TwoLevelIndexSearch),
        (ChecksumType::None, IndexType::TwoLevelIndexSearch),
        (ChecksumType::None, IndexType::BinarySearchWithFirstKey),
    ] {
        for version in [5, 6] {
            let t = TableOptions {
                checksum,
                index_type,
                format_version: version,
                block_size: 256,
                metadata_block_size: 64,
                partition_filters: index_type == IndexType::TwoLevelIndexSearch,
                filter_policy: Some(FilterPolicy::bloom(10.0)),
                ..TableOptions::default()
            };
            let all = entries(40, false);
            build(
                &env,
                &path,
                builder_options(t, Codec::Lz4, 0),
                &all,
                &tombstones(),
            );
            let good = env.fs.read_all(&path, 1 << 20).expect("reads");
            for at in 0..good.len() {
                for bit in [0x01, 0x80, 0xff] {
                    let mut bad = good.clone();
                    bad[at] ^= bit;
                    write(&env, &path, &bad);
                    if let (Ok(got), true) = (read_all(&env, &path), checksum != ChecksumType::None)
                    {
                        assert_eq!(got, all, "flip of {bit:#x} at {at} of {}", good.len());
                    }
                }
                if at % 7 == 0 {
                    write(&env, &path, &good[..at]);
                    assert!(read_all(&env, &path).is_err(), "cut at {at}");
                }
            }
        }
    }
}
