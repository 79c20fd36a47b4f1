//! Inputs that decoders must refuse, and inputs that they must take: blocks that would be read as
//! empty, logs whose batches are not sound, OPTIONS files of old and of newer releases. No command
//! but a repair changes the directory.

mod common;

use common::{Ran, contents, esker_on};
use esker::codec::checksum::{ChecksumType, crc32c, mask};
use esker::{Db, Options};
use esker_env::{FileSystem, PosixFs, ReadOptions};
use esker_files::table::read_properties;
use esker_format::block::{BlockBuilder, BlockHandle, IndexBlockBuilder, IndexForm};
use esker_format::footer::{FOOTER_LEN, Footer};
use esker_format::key::append_internal;
use esker_format::{Seq, ValueType};
use std::path::{Path, PathBuf};

/// Runs commands with the database behind them: each must exit with `code` and change nothing.
#[track_caller]
fn all(db: &Path, code: i32, commands: &[&[&str]]) -> Vec<Ran> {
    let before = contents(db);
    let runs = commands.iter().map(|words| {
        let ran = esker_on(words, db);
        assert_eq!(ran.code, code, "{words:?}: {}{}", ran.out, ran.err);
        assert_eq!(contents(db), before, "{words:?}: something was written");
        ran
    });
    runs.collect()
}

fn options() -> Options {
    let mut options = Options::new().create_if_missing(true);
    options.db.avoid_flush_during_shutdown = true;
    options
}

/// A closed database with `k0` to `k4`, in a table where `flushes` says so and else in the log.
fn database(flushes: bool) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let made = || -> esker::Result<()> {
        let db = Db::open(dir.path(), options())?;
        for i in 0..5 {
            db.put(format!("k{i}"), "value")?;
        }
        if flushes {
            // The table is longer than what replaces it.
            let noise: Vec<u8> = (0..5000u32)
                .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 13) as u8)
                .collect();
            db.put("long", noise)?;
            db.flush()?;
        }
        db.close()
    };
    made().expect("a database");
    dir
}

/// The file with the ending `ext`; of several, the first that holds anything.
fn file_of(db: &Path, ext: &str) -> PathBuf {
    let files = contents(db).into_iter();
    let mut files = files.filter(|(name, bytes)| {
        Path::new(name).extension().is_some_and(|e| e == ext) && bytes.iter().any(|b| *b != 0)
    });
    db.join(files.next().expect("such a file").0)
}

// ---- blocks ----

/// The blocks that a table is put together from, where they differ from sound ones.
#[derive(Clone, Copy)]
struct Parts<'a> {
    data: &'a [u8],
    index: Option<&'a [u8]>,
    metaindex: Option<&'a [u8]>,
}

fn put(file: &mut Vec<u8>, block: &[u8]) -> BlockHandle {
    let offset = file.len() as u64;
    let size = block.len() as u64;
    file.extend_from_slice(block);
    file.push(0);
    file.extend(ChecksumType::Xxh3.compute(block, 0).to_le_bytes());
    BlockHandle { offset, size }
}

/// Writes another table over the one at `path`: as long, with the same properties and with right
/// checksums.
fn replace_table(path: &Path, parts: Parts<'_>) {
    let file = PosixFs::new().open_read(path, ReadOptions::default());
    let properties = read_properties(file.expect("a table")).expect("properties");
    let len = std::fs::metadata(path).expect("a table").len() as usize;
    let mut file = Vec::new();
    let data = put(&mut file, parts.data);
    let mut b = BlockBuilder::new(1);
    properties.encode().iter().for_each(|(n, v)| b.add(n, v));
    let properties_at = put(&mut file, b.finish());
    let form = IndexForm {
        user_keys: properties.index_key_is_user_key,
        delta_values: properties.index_value_is_delta_encoded,
        first_keys: false,
    };
    let mut last = Vec::new();
    append_internal(&mut last, b"k4", Seq(1), ValueType::Value);
    let mut b = IndexBlockBuilder::new(form, 1);
    b.add(&last, data, b"");
    let sound = b.finish().to_vec();
    let index = put(&mut file, parts.index.unwrap_or(&sound));
    let mut b = BlockBuilder::new(1);
    b.add(b"rocksdb.properties", &properties_at.encode());
    let sound = b.finish().to_vec();
    let metaindex = parts.metaindex.unwrap_or(&sound);
    // What is left over stands before the metaindex.
    let room = len.checked_sub(FOOTER_LEN + metaindex.len() + 5);
    let room = room.filter(|room| *room >= file.len());
    file.resize(room.expect("the old table is longer"), 0);
    let metaindex = put(&mut file, metaindex);
    let footer = Footer {
        version: 5,
        checksum: ChecksumType::Xxh3,
        metaindex,
        index,
        base_context_checksum: 0,
    };
    file.extend(footer.encode(file.len() as u64).expect("a footer"));
    assert_eq!(file.len(), len);
    std::fs::write(path, file).expect("a table");
}

const ALL_READS: &[&[&str]] = &[
    &["get", "k2", "--db"],
    &["scan", "--db"],
    &["dump", "--db"],
    &["check"],
];

#[test]
fn blocks_without_entries_are_damage_and_not_nothing() {
    let mut b = BlockBuilder::new(16);
    for i in 0..5 {
        let mut key = Vec::new();
        append_internal(
            &mut key,
            format!("k{i}").as_bytes(),
            Seq(i + 1),
            ValueType::Value,
        );
        b.add(&key, b"value");
    }
    let data = b.finish().to_vec();
    let sound = Parts {
        data: &data,
        index: None,
        metaindex: None,
    };
    let cases = [
        (
            "data",
            Parts {
                data: &[0; 4],
                ..sound
            },
        ),
        (
            "data",
            Parts {
                data: &[0, 0, 0, 0, 1, 0, 0, 0],
                ..sound
            },
        ),
        (
            "index",
            Parts {
                index: Some(&[0; 4]),
                ..sound
            },
        ),
        (
            "index",
            Parts {
                index: Some(&[0; 8]),
                ..sound
            },
        ),
        (
            "metaindex",
            Parts {
                metaindex: Some(&[0; 4]),
                ..sound
            },
        ),
    ];
    let database = database(true);
    let (db, table) = (database.path(), file_of(database.path(), "sst"));
    replace_table(&table, sound);
    for ran in all(db, 0, &[&["get", "k2", "--db"]]) {
        assert_eq!(ran.out, "value\n");
    }
    let original = std::fs::read(&table).expect("a table");
    for (name, parts) in cases {
        std::fs::write(&table, &original).expect("a table");
        replace_table(&table, parts);
        for ran in all(db, 1, ALL_READS) {
            let said = format!("{}{}", ran.out, ran.err);
            let named = table.file_name().expect("a name").to_string_lossy();
            assert!(said.contains("Corruption"), "{name}: {said}");
            assert!(said.contains(&*named), "{name}: {said}");
            assert!(said.contains("offset"), "{name}: {said}");
        }
        let verified = esker_on(&["sst", "--verify"], &table);
        assert_eq!(verified.code, 1, "{name}: {}{}", verified.out, verified.err);
    }
}

// ---- logs ----

/// Changes the payload of the first physical record that has `wanted`, and makes its checksum
/// right. Where it begins.
fn change(log: &Path, wanted: &[u8], with: impl Fn(&mut [u8])) -> usize {
    let mut bytes = std::fs::read(log).expect("a log");
    let mut at = 0;
    loop {
        let len = usize::from(u16::from_le_bytes([bytes[at + 4], bytes[at + 5]]));
        let end = at + 7 + len;
        if bytes[at + 7..end]
            .windows(wanted.len())
            .any(|w| w == wanted)
        {
            with(&mut bytes[at + 7..end]);
            let sum = mask(crc32c(&bytes[at + 6..end]));
            bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
            std::fs::write(log, &bytes).expect("a log");
            return at;
        }
        at = end;
    }
}

#[test]
fn a_log_record_whose_batch_is_not_sound_is_refused_by_name() {
    // The count, the tag of the record, the length of its value.
    for (at, byte) in [(8, 7), (12, 0x77), (16, 99)] {
        let database = database(false);
        let (db, log) = (database.path(), file_of(database.path(), "log"));
        let offset = change(&log, b"\x02k2", |batch| batch[at] = byte);
        let named = log.file_name().expect("a name").to_string_lossy();
        for ran in all(db, 1, ALL_READS) {
            let said = format!("{}{}", ran.out, ran.err);
            assert!(said.contains("Corruption"), "{said}");
            assert!(said.contains(&*named), "{said}");
            assert!(said.contains(&offset.to_string()), "{said}");
        }
        let [shown, replayed] = &all(
            db,
            1,
            &[&["wal"], &["wal", "--recovery-mode=point-in-time"]],
        )[..] else {
            panic!("two runs");
        };
        assert!(shown.out.contains("bad batch"), "{}", shown.out);
        assert!(shown.out.contains("k4"), "reading goes on: {}", shown.out);
        assert!(
            replayed.out.contains("an open fails here"),
            "{}",
            replayed.out
        );
        assert!(!replayed.out.contains("k4"), "{}", replayed.out);
        esker_on(&["repair", "--dry-run", "--db"], db);
        let repaired = esker_on(&["repair", "--db"], db);
        assert!(repaired.code == 0 || repaired.code == 3, "{}", repaired.err);
        assert!(repaired.out.contains(&*named), "{}", repaired.out);
        for ran in all(db, 0, &[&["get", "k4", "--db"]]) {
            assert_eq!(ran.out, "value\n");
        }
    }
}

// ---- OPTIONS files ----

/// Makes `text` the newest OPTIONS file.
fn with_options(db: &Path, text: &str) {
    std::fs::write(db.join("OPTIONS-000999"), text).expect("an OPTIONS file");
}

#[test]
fn directories_of_old_releases_are_read() {
    let database = database(true);
    let db = database.path();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../options/tests/data");
    for release in ["4.13.0", "5.8.0", "5.18.3", "6.1.2", "6.20.3"] {
        let text = std::fs::read_to_string(data.join(format!("OPTIONS-{release}")));
        // Those releases named the directory of the logs.
        let named = format!("  wal_dir={}\n", db.display());
        with_options(db, &text.expect("a sample").replace("  wal_dir=\n", &named));
        let ran = all(
            db,
            0,
            &[&["get", "k2", "--db"], &["scan", "--db"], &["check"]],
        );
        assert_eq!(ran[0].out, "value\n", "{release}: {}", ran[0].err);
        assert!(ran[0].err.is_empty(), "{release}: {}", ran[0].err);
    }
}

#[test]
fn values_that_only_a_newer_release_knows_are_passed_over() {
    let database = database(true);
    let db = database.path();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../options/tests/data/OPTIONS-11.9.0");
    let text = std::fs::read_to_string(sample).expect("a sample");
    let changed = text.replace("=kPointInTimeRecovery", "=kAskTheOracle");
    assert_ne!(text, changed);
    let newer = changed.replace("rocksdb_version=11.9.0", "rocksdb_version=12.1.0");
    with_options(db, &newer);
    for ran in all(db, 0, &[&["get", "k2", "--db"]]) {
        assert_eq!(ran.out, "value\n");
    }
    // A file that is not newer is damaged.
    with_options(db, &changed);
    for ran in all(db, 1, &[&["get", "k2", "--db"]]) {
        assert!(ran.err.contains("wal_recovery_mode"), "{}", ran.err);
        assert!(ran.err.contains("OPTIONS-000999"), "{}", ran.err);
    }
}
