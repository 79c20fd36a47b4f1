//! Builds without some codecs: what needs one gets `NotSupported` with its name and its feature,
//! and nothing is changed. `tests/data/left_out` has a database with tables of zstd and LZ4, and
//! one whose log is compressed by zstd.
//!
//! The build without them is `cargo test -p esker-engine --no-default-features --features snappy
//! --test left_out_codecs`, which `cargo xtask lean` runs.

mod common;

use common::copy_dir;
use esker::env::Env;
use esker::{Db, Options};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn given(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/left_out")
        .join(name)
}

/// A copy of a database that is given.
fn copied(name: &str) -> (TempDir, PathBuf) {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("db");
    copy_dir(&Env::posix(), &given(name), &path);
    (dir, path)
}

fn value(i: usize) -> String {
    format!("value {i} ").repeat(20)
}

#[cfg(all(feature = "lz4", feature = "zstd"))]
mod with_all {
    use super::*;

    fn options(more: &[(&str, &str)]) -> Options {
        let mut options = Options::new().create_if_missing(true);
        options
            .set_in_place("disable_auto_compactions", "true")
            .expect("an option");
        for (name, value) in more {
            options.set_in_place(name, value).expect("an option");
        }
        options
    }

    fn put(db: &Db, from: usize, to: usize) {
        for i in from..to {
            db.put(format!("key{i:03}"), value(i)).expect("put");
        }
    }

    /// Makes what the tests of a build without codecs begin with.
    #[test]
    #[ignore = "writes tests/data/left_out: cargo test -p esker-engine --test left_out_codecs -- --ignored"]
    fn databases_are_written() {
        let _none = std::fs::remove_dir_all(given(""));
        std::fs::create_dir_all(given("")).expect("a directory");
        let db = Db::open(given("tables"), options(&[("compression", "kZSTD")])).expect("open");
        put(&db, 0, 50);
        db.flush().expect("flush");
        let default = db.default_family_handle();
        db.set_options(&default, &[("compression", "kLZ4Compression")])
            .expect("set");
        put(&db, 50, 100);
        db.flush().expect("flush");
        drop(db);
        let in_log = options(&[
            ("wal_compression", "kZSTD"),
            ("avoid_flush_during_shutdown", "true"),
        ]);
        let db = Db::open(given("log"), in_log).expect("open");
        put(&db, 0, 50);
        drop(db);
        for name in ["tables", "log"] {
            for file in ["LOCK", "LOG"] {
                let _none = std::fs::remove_file(given(name).join(file));
            }
        }
    }

    #[test]
    fn the_databases_are_whole() {
        for (name, keys) in [("tables", 100), ("log", 50)] {
            let (_dir, path) = copied(name);
            let db = Db::open(&path, Options::new()).expect("open");
            for i in 0..keys {
                let found = db.get(format!("key{i:03}")).expect("get");
                assert_eq!(found, Some(value(i).into_bytes()), "{name} {i}");
            }
        }
    }
}

#[cfg(not(any(feature = "lz4", feature = "zstd")))]
mod without {
    use super::*;
    use esker::{Error, ErrorKind};
    use std::collections::BTreeMap;

    /// Every file but the lock and the text of the log.
    fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(path).expect("a directory");
        entries
            .map(|entry| entry.expect("an entry"))
            .map(|entry| {
                (
                    entry.file_name().to_string_lossy().into_owned(),
                    entry.path(),
                )
            })
            .filter(|(name, _)| !name.starts_with("LO"))
            .map(|(name, path)| (name, std::fs::read(path).expect("a file")))
            .collect()
    }

    #[track_caller]
    fn is_refused<T>(result: Result<T, Error>, codec: &str, feature: &str) {
        let Err(e) = result else {
            panic!("{codec} is not in this build")
        };
        assert_eq!(e.kind(), ErrorKind::NotSupported, "{e}");
        assert!(e.to_string().contains(codec), "{e}");
        let hint = e.hint().unwrap_or_default();
        assert!(hint.contains(&format!("`{feature}`")), "{hint}");
    }

    /// The newest table is of LZ4.
    #[test]
    fn tables_of_other_codecs_are_refused_and_stay() {
        let (_dir, path) = copied("tables");
        let before = files(&path);
        assert_eq!(before.keys().filter(|n| n.ends_with(".sst")).count(), 2);
        is_refused(Db::open(&path, Options::new()), "LZ4", "lz4");
        is_refused(Db::open_read_only(&path, Options::new()), "LZ4", "lz4");
        assert_eq!(files(&path), before);
    }

    /// With few open files a database does not look at its tables before it reads them.
    #[test]
    fn reads_and_merges_of_such_tables_are_refused() {
        let (_dir, path) = copied("tables");
        let is_table = |(name, _): &(String, Vec<u8>)| name.ends_with(".sst");
        let tables = || {
            files(&path)
                .into_iter()
                .filter(is_table)
                .collect::<Vec<_>>()
        };
        let before = tables();
        let few = Options::new()
            .set("max_open_files", "20")
            .expect("an option");
        let db = Db::open(&path, few).expect("open");
        is_refused(db.get("key000"), "ZSTD", "zstd");
        is_refused(db.get("key099"), "LZ4", "lz4");
        let mut it = db.iter();
        it.seek_to_first();
        assert!(!it.valid());
        assert_eq!(it.status().unwrap_err().kind(), ErrorKind::NotSupported);
        drop(it);
        // What covers both tables cannot be moved past them.
        db.put("key000", "new").expect("put");
        db.put("key099", "new").expect("put");
        db.flush().expect("flush");
        let merged = db.compact_range(None, None).unwrap_err();
        assert_eq!(merged.kind(), ErrorKind::NotSupported, "{merged}");
        drop(db);
        let after = tables();
        assert!(before.iter().all(|table| after.contains(table)));
    }

    #[test]
    fn a_repair_leaves_tables_of_other_codecs_alone() {
        for name in ["tables", "log"] {
            let (_dir, path) = copied(name);
            let before = files(&path);
            let repaired = Db::repair(&path, &Options::new()).unwrap_err();
            assert_eq!(repaired.kind(), ErrorKind::NotSupported, "{repaired}");
            assert_eq!(files(&path), before, "{name}");
        }
    }

    /// A damaged block makes repair look at the others.
    #[test]
    fn a_repair_takes_no_block_of_another_codec_for_damage() {
        let (_dir, path) = copied("tables");
        for (name, mut bytes) in files(&path) {
            if name.ends_with(".sst") {
                bytes[10] ^= 0xff;
                std::fs::write(path.join(name), bytes).expect("written");
            }
        }
        let before = files(&path);
        let repaired = Db::repair(&path, &Options::new()).unwrap_err();
        assert_eq!(repaired.kind(), ErrorKind::NotSupported, "{repaired}");
        assert_eq!(files(&path), before);
    }

    #[test]
    fn a_log_of_another_codec_is_refused_and_stays() {
        for mode in ["kPointInTimeRecovery", "kSkipAnyCorruptedRecords"] {
            let (_dir, path) = copied("log");
            let before = files(&path);
            let options = Options::new()
                .set("wal_recovery_mode", mode)
                .expect("an option");
            is_refused(Db::open(&path, options), "ZSTD", "zstd");
            assert_eq!(files(&path), before, "{mode}");
        }
    }

    #[test]
    fn options_of_other_codecs_are_refused_before_anything_is_made() {
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("db");
        let cases = [
            ("compression", "kZSTD", "ZSTD", "zstd"),
            (
                "bottommost_compression",
                "kLZ4HCCompression",
                "LZ4HC",
                "lz4",
            ),
            (
                "compression_per_level",
                "kNoCompression:kLZ4Compression",
                "LZ4",
                "lz4",
            ),
            ("wal_compression", "kZSTD", "ZSTD", "zstd"),
            ("compression", "kZlibCompression", "Zlib", "zlib"),
            ("compression", "kBZip2Compression", "BZip2", "bzip2"),
        ];
        for (option, value, codec, feature) in cases {
            let made = Options::new().create_if_missing(true).set(option, value);
            let opened = made.and_then(|options| Db::open(&path, options));
            is_refused(opened, codec, feature);
            assert!(!path.exists(), "{option}={value}");
        }
    }

    #[test]
    fn a_codec_that_is_left_out_cannot_be_set_later() {
        let dir = TempDir::new().expect("a directory");
        let db = Db::open(dir.path(), Options::new().create_if_missing(true)).expect("open");
        let family = db.default_family_handle();
        let before = files(dir.path());
        is_refused(
            db.set_options(&family, &[("compression", "kZSTD")]),
            "ZSTD",
            "zstd",
        );
        assert_eq!(files(dir.path()), before);
        // What there is instead.
        for i in 0..100 {
            db.put(format!("key{i:03}"), value(i)).expect("put");
        }
        db.flush().expect("flush");
        db.compact_range(None, None).expect("compact");
        assert_eq!(db.get("key007").expect("get"), Some(value(7).into_bytes()));
    }
}
