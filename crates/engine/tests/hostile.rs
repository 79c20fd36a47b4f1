//! Damaged and hostile directories: each gives a clear error, soon, in little memory, and stays as
//! it was.
//!
//! Good databases are made, copied, and damaged in one way each: truncated and flipped files,
//! missing ones, MANIFESTs and logs that are whole but say what cannot be, indexes that lead in
//! circles. Each copy is opened by a process of its own (this test binary, started again), for
//! reading only and for writing. The error must be of the right kind and name the file, within 5 s
//! and 256 MB, and afterwards the directory must be byte for byte what it was: no LOCK, no LOG,
//! nothing.
//!
//! The file is long because each damage is spelled out with the answer it must get.

mod common;

use common::{Rng, copy_dir};
use esker::codec::checksum::{crc32c, mask};
use esker::merge_operator::StringAppend;
use esker::options::OptionSet;
use esker::{Db, Env, FamilyDescriptor, FamilyOptions, KeyOrder, Options};
use esker_files::log::{LogWriter, LogWriterOptions};
use esker_files::manifest::{ManifestReader, ManifestWriter};
use esker_format::edit::VersionEdit;
use esker_format::footer::{BlockHandle, Footer};
use esker_format::{FamilyId, FileNo, InternalKey, Level, Seq, ValueType};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TARGET: &str = "ESKER_HOSTILE_TARGET";
const TIME_MAX: Duration = Duration::from_secs(5);
const MEMORY_MAX_KB: u64 = 256 << 10;

/// How the damaged directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Every family, with the options that wrote it; logs must be whole.
    Right,
    /// The default family under another order.
    WrongComparator,
    /// A family that does not exist.
    UnknownFamily,
    /// One family is not named: an error for writers only.
    FamilyNotNamed,
    /// As `Right`, and a new database would be made.
    CreateIfMissing,
    /// `error_if_exists`: an error for writers only.
    ErrorIfExists,
    /// As `Right`, with a limit on open files: tables are not opened beforehand.
    FewFiles,
    /// Whatever families there are, with plain options.
    Plain,
}

const HOWS: [How; 8] = [
    How::Right,
    How::WrongComparator,
    How::UnknownFamily,
    How::FamilyNotNamed,
    How::CreateIfMissing,
    How::ErrorIfExists,
    How::FewFiles,
    How::Plain,
];

/// When the damage must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// Neither mode opens.
    AtOpen,
    /// Opening for writing fails; a reader is not concerned.
    ForWriters,
    /// Reading everything fails, at open or later.
    AtRead,
}

struct Case {
    name: &'static str,
    /// What the error must name: a part of a file's name, or a word.
    names: &'static str,
    kinds: &'static [&'static str],
    how: How,
    shows: Shows,
    damage: Box<dyn Fn(&Path)>,
}

const CORRUPTION: &[&str] = &["Corruption"];
const ABSENT: &[&str] = &["Corruption", "Io", "NotFound", "InvalidArgument"];
const REFUSED: &[&str] = &["InvalidArgument"];
const UNSUPPORTED: &[&str] = &["NotSupported", "Corruption"];

fn family_options() -> FamilyOptions {
    let mut o = FamilyOptions::default();
    o.write_buffer_size = 1 << 20;
    o.merge_operator = Some(Arc::new(StringAppend::new(b",")));
    for (name, value) in [
        ("checksum", "kCRC32c"),
        ("format_version", "5"),
        ("index_type", "kTwoLevelIndexSearch"),
        ("metadata_block_size", "256"),
        ("block_size", "512"),
        ("filter_policy", "bloomfilter:10:false"),
    ] {
        o.table.set(name, value).expect("an option of ours");
    }
    o.set("compression", "kNoCompression")
        .expect("an option of ours");
    o
}

fn options() -> Options {
    let mut options = Options::new()
        .set("wal_recovery_mode", "kAbsoluteConsistency")
        .expect("an option of ours");
    options.family = family_options();
    options
}

fn families(names: &[&str]) -> Vec<FamilyDescriptor> {
    names
        .iter()
        .map(|n| FamilyDescriptor::new(*n, family_options()))
        .collect()
}

/// A good database: two families, several tables, a log with records.
fn make_good(dir: &Path) {
    let options = options()
        .create_if_missing(true)
        .create_missing_column_families(true);
    let db =
        Db::open_families(dir, options, families(&["default", "other"])).expect("a new database");
    let other = db.family("other").expect("made");
    let mut rng = Rng::new(7);
    for round in 0..3u64 {
        for n in 0..400u64 {
            let value = format!("value {round} {:x} {:x}", rng.next(), rng.next());
            db.put(format!("key{n:05}"), &value).expect("a write");
            db.put_cf(&other, format!("other{n:05}"), &value)
                .expect("a write");
        }
        db.delete_range_cf(&other, "other00100", "other00110")
            .expect("a write");
        db.flush().expect("a flush");
        if round == 1 {
            db.compact_range(None, None).expect("a compaction");
        }
    }
    for n in 0..50u64 {
        db.put(format!("logged{n:03}"), vec![b'x'; 300])
            .expect("a write");
    }
    db.close().expect("closed");
}

// ---- what damage is made of ----

fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(dir)
        .expect("the directory")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.to_string_lossy().contains(ending))
        .collect();
    found.sort();
    found
}

fn file(dir: &Path, part: &str) -> PathBuf {
    files(dir, part)
        .pop()
        .unwrap_or_else(|| panic!("no {part} in {}", dir.display()))
}

/// The table that comes first in key order of the default family: the first that was compacted.
fn table(dir: &Path) -> PathBuf {
    file(dir, ".sst")
}

fn change(path: &Path, f: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).expect("the file");
    f(&mut bytes);
    std::fs::write(path, bytes).expect("written");
}

fn cut(path: &Path, len: u64) {
    let f = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("the file");
    f.set_len(len).expect("cut");
}

fn len(path: &Path) -> u64 {
    std::fs::metadata(path).expect("the file").len()
}

fn flip(part: &'static str, at: impl Fn(u64) -> u64 + 'static) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| {
        let path = file(dir, part);
        change(&path, |b| {
            let i = at(b.len() as u64) as usize;
            b[i] ^= 0x15;
        });
    })
}

fn current(content: &'static [u8]) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| std::fs::write(dir.join("CURRENT"), content).expect("written"))
}

/// Rewrites the MANIFEST with edits that `f` changed; every checksum is right.
fn manifest(f: impl Fn(&mut Vec<VersionEdit>) + 'static) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| {
        let env = Env::posix();
        let path = file(dir, "MANIFEST-");
        let mut reader = ManifestReader::open(&*env.fs, &path).expect("good before");
        let mut edits = Vec::new();
        while let Some(group) = reader.next_group().expect("good before") {
            edits.extend(group.edits);
        }
        f(&mut edits);
        std::fs::remove_file(&path).expect("ours");
        let number = reader_number(&path);
        let mut writer = ManifestWriter::create(&*env.fs, dir, number, Default::default(), &edits)
            .expect("written");
        writer
            .sync()
            .and_then(|()| writer.close())
            .expect("written");
    })
}

/// Replaces the MANIFEST by one that holds `record` after its edits; every checksum is right.
fn manifest_record(record: Vec<u8>) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| {
        let env = Env::posix();
        let path = file(dir, "MANIFEST-");
        let mut reader = ManifestReader::open(&*env.fs, &path).expect("good before");
        let mut log = LogWriter::new(
            env.fs
                .create(&dir.join("new"), Default::default())
                .expect("created"),
            LogWriterOptions::default(),
        )
        .expect("a log");
        while let Some(group) = reader.next_group().expect("good before") {
            for edit in group.edits {
                let mut bytes = Vec::new();
                edit.encode_into(&mut bytes);
                log.add_record(&bytes).expect("written");
            }
        }
        log.add_record(&record).expect("written");
        log.flush().and_then(|()| log.close()).expect("written");
        std::fs::rename(dir.join("new"), path).expect("renamed");
    })
}

fn reader_number(path: &Path) -> FileNo {
    let name = path.to_string_lossy();
    let digits = name.rsplit('-').next().expect("a number");
    FileNo(digits.parse().expect("a number"))
}

/// Replaces the newest log by one that holds `record` alone; its checksum is right.
fn log_record(record: Vec<u8>) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| {
        let env = Env::posix();
        let path = file(dir, ".log");
        let file = env.fs.create(&path, Default::default()).expect("created");
        let mut log = LogWriter::new(file, LogWriterOptions::default()).expect("a log");
        log.add_record(&record).expect("written");
        log.flush().and_then(|()| log.close()).expect("written");
    })
}

/// A batch with `count` in its header and `body` after it.
fn batch(count: u32, body: &[u8]) -> Vec<u8> {
    let mut out = 5000u64.to_le_bytes().to_vec();
    out.extend(count.to_le_bytes());
    out.extend(body);
    out
}

const HUGE: [u8; 10] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];

fn footer(bytes: &[u8]) -> Footer {
    Footer::decode(&bytes[bytes.len() - 53..], bytes.len() as u64).expect("good before")
}

fn put_footer(bytes: &mut [u8], footer: &Footer) {
    let at = bytes.len() - 53;
    let encoded = footer.encode(at as u64).expect("it fits");
    bytes[at..].copy_from_slice(&encoded);
}

/// Writes a block with the right checksum at `at`.
fn put_block(bytes: &mut [u8], at: usize, block: &[u8]) {
    bytes[at..at + block.len()].copy_from_slice(block);
    bytes[at + block.len()] = 0;
    let sum = mask(crc32c(&bytes[at..=at + block.len()]));
    bytes[at + block.len() + 1..at + block.len() + 5].copy_from_slice(&sum.to_le_bytes());
}

/// An index block with one entry, `key`, that leads to `to`.
fn index_block(key: &[u8], to: BlockHandle) -> Vec<u8> {
    let mut block = vec![0, key.len() as u8];
    block.extend(key);
    to.encode_to(&mut block);
    block.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    block
}

/// Makes the top of the index lead to a place that `to` computes from the new top.
fn index_to(to: impl Fn(BlockHandle) -> BlockHandle + 'static) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| {
        change(&table(dir), |bytes| {
            let mut f = footer(bytes);
            let at = f.index.offset as usize;
            let key_len = bytes[at + 1] as usize;
            let key = bytes[at + 2..at + 2 + key_len].to_vec();
            let mut top = f.index;
            for _ in 0..4 {
                top.size = index_block(&key, to(top)).len() as u64;
            }
            assert!(
                top.size <= f.index.size,
                "the new top fits in the old one's place"
            );
            let block = index_block(&key, to(top));
            put_block(bytes, at, &block);
            f.index = top;
            put_footer(bytes, &f);
        });
    })
}

fn file_edit(edits: &mut [VersionEdit], f: impl FnOnce(&mut esker_format::edit::NewFile)) {
    let edit = edits
        .iter_mut()
        .rev()
        .find(|e| !e.new_files.is_empty())
        .expect("tables");
    f(&mut edit.new_files[0].1);
}

fn case(
    name: &'static str,
    names: &'static str,
    kinds: &'static [&'static str],
    shows: Shows,
    damage: Box<dyn Fn(&Path)>,
) -> Case {
    Case {
        name,
        names,
        kinds,
        how: How::Right,
        shows,
        damage,
    }
}

fn opened(mut case: Case, how: How) -> Case {
    case.how = how;
    case
}

fn whole(f: impl Fn(&Path) + 'static) -> Box<dyn Fn(&Path)> {
    Box::new(f)
}

fn current_cases() -> Vec<Case> {
    use Shows::AtOpen;
    let missing = || whole(|d| std::fs::remove_file(d.join("CURRENT")).expect("there"));
    vec![
        case("CURRENT is missing", "CURRENT", ABSENT, AtOpen, missing()),
        opened(
            case(
                "CURRENT is missing, and a database may be made",
                "CURRENT",
                ABSENT,
                AtOpen,
                missing(),
            ),
            How::CreateIfMissing,
        ),
        case(
            "CURRENT is empty",
            "CURRENT",
            CORRUPTION,
            AtOpen,
            current(b""),
        ),
        case(
            "CURRENT has no line end",
            "CURRENT",
            CORRUPTION,
            AtOpen,
            current(b"MANIFEST-000005"),
        ),
        case(
            "CURRENT names a file that is not there",
            "MANIFEST-099999",
            ABSENT,
            AtOpen,
            current(b"MANIFEST-099999\n"),
        ),
        case(
            "CURRENT names something else",
            "CURRENT",
            CORRUPTION,
            AtOpen,
            current(b"IDENTITY\n"),
        ),
        case(
            "CURRENT leads out of the directory",
            "CURRENT",
            CORRUPTION,
            AtOpen,
            current(b"../MANIFEST-000005\n"),
        ),
        case(
            "CURRENT names a huge number",
            "CURRENT",
            ABSENT,
            AtOpen,
            current(b"MANIFEST-99999999999999999999999\n"),
        ),
        case(
            "CURRENT is binary",
            "CURRENT",
            CORRUPTION,
            AtOpen,
            current(b"\xff\xfe\x00\x01\n"),
        ),
        case(
            "CURRENT is huge",
            "CURRENT",
            ABSENT,
            AtOpen,
            whole(|d| {
                std::fs::write(d.join("CURRENT"), vec![b'M'; 1 << 20]).expect("written");
            }),
        ),
        case(
            "CURRENT is a directory",
            "CURRENT",
            ABSENT,
            AtOpen,
            whole(|d| {
                std::fs::remove_file(d.join("CURRENT")).expect("there");
                std::fs::create_dir(d.join("CURRENT")).expect("made");
            }),
        ),
        case(
            "IDENTITY is not text",
            "IDENTITY",
            CORRUPTION,
            AtOpen,
            whole(|d| {
                std::fs::write(d.join("IDENTITY"), b"\xff\xff\xff").expect("written");
            }),
        ),
    ]
}

fn manifest_bytes_cases() -> Vec<Case> {
    use Shows::AtOpen;
    let m = "MANIFEST-";
    vec![
        case(
            "the MANIFEST is missing",
            m,
            ABSENT,
            AtOpen,
            whole(|d| std::fs::remove_file(file(d, "MANIFEST-")).expect("there")),
        ),
        case(
            "the MANIFEST is empty",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| cut(&file(d, "MANIFEST-"), 0)),
        ),
        case(
            "the MANIFEST is cut in its first header",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| cut(&file(d, "MANIFEST-"), 5)),
        ),
        case(
            "the MANIFEST is cut in its first record",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| cut(&file(d, "MANIFEST-"), 20)),
        ),
        case(
            "the MANIFEST lost its second half",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let path = file(d, "MANIFEST-");
                cut(&path, len(&path) / 2);
            }),
        ),
        case(
            "a flipped checksum in the MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            flip(m, |_| 2),
        ),
        case(
            "a flipped length in the MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            flip(m, |_| 4),
        ),
        case(
            "a flipped record type in the MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            flip(m, |_| 6),
        ),
        case(
            "a flipped byte in the MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            flip(m, |_| 12),
        ),
        case(
            "a flipped byte in the middle of the MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            flip(m, |n| n / 2),
        ),
        case(
            "the MANIFEST is random",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let mut rng = Rng::new(3);
                change(&file(d, "MANIFEST-"), |b| {
                    b.iter_mut().for_each(|x| *x = rng.next() as u8)
                });
            }),
        ),
        case(
            "the MANIFEST is zeroed",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| change(&file(d, "MANIFEST-"), |b| b.fill(0))),
        ),
        case(
            "a megabyte of 0xff as MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                std::fs::write(file(d, "MANIFEST-"), vec![0xff; 1 << 20]).expect("written");
            }),
        ),
        case(
            "a table as MANIFEST",
            m,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                std::fs::copy(table(d), file(d, "MANIFEST-")).expect("copied");
            }),
        ),
    ]
}

fn manifest_edit_cases() -> Vec<Case> {
    use Shows::AtOpen;
    let m = "MANIFEST-";
    let with = |tag: u32, rest: &[u8]| {
        let mut record = Vec::new();
        esker_format::coding::put_varint32(&mut record, tag);
        record.extend(rest);
        record
    };
    vec![
        case(
            "an edit for a family that does not exist",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId(77));
                edit.log_number = Some(FileNo(3));
                e.push(edit);
            }),
        ),
        case(
            "a family added twice",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId(1));
                edit.family_add = Some("again".to_owned());
                e.push(edit);
            }),
        ),
        case(
            "two families of one name",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId(9));
                edit.family_add = Some("other".to_owned());
                e.push(edit);
            }),
        ),
        case(
            "the default family is dropped",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId::DEFAULT);
                edit.family_drop = true;
                e.push(edit);
            }),
        ),
        case(
            "the comparator is another",
            "comparator",
            REFUSED,
            AtOpen,
            manifest(|e| {
                let edit = e
                    .iter_mut()
                    .find(|e| e.comparator.is_some())
                    .expect("named");
                edit.comparator = Some("someone.ElsesComparator".to_owned());
            }),
        ),
        case(
            "no next file number",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                e.iter_mut().for_each(|e| e.next_file_number = None);
            }),
        ),
        case(
            "the last sequence goes back",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId::DEFAULT);
                edit.last_sequence = Some(Seq(1));
                e.push(edit);
            }),
        ),
        case(
            "a deleted file that is not there",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId::DEFAULT);
                edit.delete_file(Level(3), FileNo(4000));
                e.push(edit);
            }),
        ),
        case(
            "a table added twice",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let edit = e
                    .iter()
                    .rev()
                    .find(|e| !e.new_files.is_empty())
                    .expect("tables");
                let (level, file) = edit.new_files[0].clone();
                let mut again = VersionEdit::for_family(edit.family);
                again.add_file(level, file);
                e.push(again);
            }),
        ),
        case(
            "overlapping tables on a sorted level",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let edit = e
                    .iter()
                    .rev()
                    .find(|e| !e.new_files.is_empty())
                    .expect("tables");
                let mut twins = VersionEdit::for_family(edit.family);
                for number in [2001, 2002] {
                    let mut file = edit.new_files[0].1.clone();
                    file.number = FileNo(number);
                    twins.add_file(Level(4), file);
                }
                e.push(twins);
            }),
        ),
        case(
            "a table that ends before it begins",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                file_edit(e, |f| std::mem::swap(&mut f.smallest, &mut f.largest));
            }),
        ),
        case(
            "a table of another size",
            ".sst",
            CORRUPTION,
            AtOpen,
            manifest(|e| file_edit(e, |f| f.size += 1)),
        ),
        case(
            "a table of a huge size",
            ".sst",
            CORRUPTION,
            AtOpen,
            manifest(|e| file_edit(e, |f| f.size = 1 << 60)),
        ),
        case(
            "a table with a huge number",
            "",
            ABSENT,
            AtOpen,
            manifest(|e| file_edit(e, |f| f.number = FileNo((1 << 62) - 1))),
        ),
        case(
            "a table of another database",
            ".sst",
            CORRUPTION,
            AtOpen,
            manifest(|e| file_edit(e, |f| f.unique_id = Some([1, 2]))),
        ),
        case(
            "a level beyond the tree",
            "level",
            ABSENT,
            AtOpen,
            manifest(|e| {
                let edit = e
                    .iter_mut()
                    .rev()
                    .find(|e| !e.new_files.is_empty())
                    .expect("tables");
                edit.new_files[0].0 = Level(60);
            }),
        ),
        case(
            "a boundary key of another order",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                file_edit(e, |f| {
                    f.largest = InternalKey::new(b"a", Seq(1), ValueType::Value)
                });
            }),
        ),
        case(
            "an incomplete atomic group",
            m,
            CORRUPTION,
            AtOpen,
            manifest(|e| {
                let mut edit = VersionEdit::for_family(FamilyId::DEFAULT);
                edit.remaining_in_group = Some(5);
                e.push(edit);
                e.push(VersionEdit::for_family(FamilyId::DEFAULT));
            }),
        ),
        case(
            "a tag that must be understood",
            m,
            UNSUPPORTED,
            AtOpen,
            manifest_record(with(999, b"abc")),
        ),
        case(
            "a huge varint for a number",
            m,
            CORRUPTION,
            AtOpen,
            manifest_record(with(3, &[0xff; 11])),
        ),
        case(
            "a huge length of a name",
            m,
            CORRUPTION,
            AtOpen,
            manifest_record(with(1, &[0xff, 0xff, 0xff, 0xff, 0x0f, b'x'])),
        ),
        case(
            "a new file of huge keys",
            m,
            CORRUPTION,
            AtOpen,
            manifest_record(with(103, &[1, 9, 9, 0xff, 0xff, 0xff, 0xff, 0x0f])),
        ),
        case(
            "a record that ends in a varint",
            m,
            CORRUPTION,
            AtOpen,
            manifest_record(vec![0x80, 0x80, 0x80]),
        ),
    ]
}

fn table_cases() -> Vec<Case> {
    use Shows::{AtOpen, AtRead};
    let s = ".sst";
    let zero = |from: fn(&Footer, u64) -> u64| -> Box<dyn Fn(&Path)> {
        whole(move |d| {
            change(&table(d), |b| {
                let at = from(&footer(b), b.len() as u64) as usize;
                b[at..at + 8].fill(0xee);
            });
        })
    };
    vec![
        case(
            "a table is missing",
            s,
            ABSENT,
            AtOpen,
            whole(|d| std::fs::remove_file(table(d)).expect("there")),
        ),
        opened(
            case(
                "a table is missing, and few may be open",
                s,
                ABSENT,
                AtOpen,
                whole(|d| std::fs::remove_file(table(d)).expect("there")),
            ),
            How::FewFiles,
        ),
        case(
            "a table is empty",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| cut(&table(d), 0)),
        ),
        case(
            "a table lost its second half",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let path = table(d);
                cut(&path, len(&path) / 2);
            }),
        ),
        opened(
            case(
                "a table is cut, and few may be open",
                s,
                CORRUPTION,
                AtOpen,
                whole(|d| {
                    let path = table(d);
                    cut(&path, len(&path) - 1);
                }),
            ),
            How::FewFiles,
        ),
        case(
            "a table has a byte too many",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| change(&table(d), |b| b.push(0))),
        ),
        case(
            "a table is zeroed",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| change(&table(d), |b| b.fill(0))),
        ),
        case(
            "a table is random",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let mut rng = Rng::new(5);
                change(&table(d), |b| {
                    b.iter_mut().for_each(|x| *x = rng.next() as u8)
                });
            }),
        ),
        case(
            "a table's magic number is flipped",
            s,
            CORRUPTION,
            AtOpen,
            flip(s, |n| n - 1),
        ),
        case(
            "a table's version is unknown",
            s,
            UNSUPPORTED,
            AtOpen,
            flip(s, |n| n - 10),
        ),
        case(
            "two tables are swapped",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let all = files(d, ".sst");
                let (a, b) = (&all[0], &all[1]);
                let first = std::fs::read(a).expect("there");
                std::fs::copy(b, a).expect("copied");
                std::fs::write(b, first).expect("written");
            }),
        ),
        case(
            "a table's metaindex is damaged",
            s,
            CORRUPTION,
            AtOpen,
            zero(|f, _| f.metaindex.offset),
        ),
        case(
            "a table's index is damaged",
            s,
            CORRUPTION,
            AtOpen,
            zero(|f, _| f.index.offset),
        ),
        case(
            "the first data block is damaged",
            s,
            CORRUPTION,
            AtRead,
            zero(|_, _| 30),
        ),
        case(
            "an index partition is damaged",
            s,
            CORRUPTION,
            AtRead,
            zero(|f, _| f.index.offset - 60),
        ),
        case(
            "the index leads to itself",
            s,
            CORRUPTION,
            AtRead,
            index_to(|top| top),
        ),
        case(
            "the index leads into its own middle",
            s,
            CORRUPTION,
            AtRead,
            index_to(|top| BlockHandle {
                offset: top.offset + 3,
                size: top.size,
            }),
        ),
        case(
            "the index leads to the first data block",
            s,
            CORRUPTION,
            AtRead,
            index_to(|_| BlockHandle {
                offset: 0,
                size: 505,
            }),
        ),
        case(
            "the index leads beyond the file",
            s,
            CORRUPTION,
            AtRead,
            index_to(|top| BlockHandle {
                offset: 1 << 40,
                size: top.size,
            }),
        ),
        case(
            "the index leads to a huge block",
            s,
            CORRUPTION,
            AtRead,
            index_to(|top| BlockHandle {
                offset: top.offset,
                size: 1 << 40,
            }),
        ),
        case(
            "the index handle is huge",
            s,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                change(&table(d), |b| {
                    let at = b.len() - 53;
                    b[at + 1..at + 11].copy_from_slice(&HUGE);
                    b[at + 11..at + 21].copy_from_slice(&HUGE);
                });
            }),
        ),
    ]
}

fn log_cases() -> Vec<Case> {
    use Shows::AtOpen;
    let l = ".log";
    let default = |tag: u8, rest: &[u8]| [&[tag], rest].concat();
    vec![
        case(
            "a flipped byte in the log",
            l,
            CORRUPTION,
            AtOpen,
            flip(l, |n| n / 2),
        ),
        case(
            "a flipped record type in the log",
            l,
            CORRUPTION,
            AtOpen,
            flip(l, |_| 6),
        ),
        case(
            "the log is cut",
            l,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let path = file(d, ".log");
                cut(&path, len(&path) - 100);
            }),
        ),
        case(
            "the log is random",
            l,
            CORRUPTION,
            AtOpen,
            whole(|d| {
                let mut rng = Rng::new(9);
                change(&file(d, ".log"), |b| {
                    b.iter_mut().for_each(|x| *x = rng.next() as u8)
                });
            }),
        ),
        case(
            "a record shorter than a batch's header",
            l,
            CORRUPTION,
            AtOpen,
            log_record(vec![1, 2, 3]),
        ),
        case(
            "a batch with an unknown record",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(1, &default(0x7d, b"\x01k\x01v"))),
        ),
        case(
            "a batch that counts too much",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(5, &default(1, b"\x01k\x01v"))),
        ),
        case(
            "a batch that counts too little",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(0, &default(1, b"\x01k\x01v"))),
        ),
        case(
            "a batch with a huge key length",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(1, &default(1, &HUGE))),
        ),
        case(
            "a batch with a huge value length",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(1, &default(1, b"\x01k\xff\xff\xff\xff\x0f"))),
        ),
        case(
            "a batch cut in a record",
            l,
            CORRUPTION,
            AtOpen,
            log_record(batch(1, &default(1, b"\x05key"))),
        ),
        case(
            "a range that ends before it begins",
            l,
            ABSENT,
            AtOpen,
            log_record(batch(1, &default(0x0f, b"\x01z\x01a"))),
        ),
    ]
}

fn caller_cases() -> Vec<Case> {
    use Shows::{AtOpen, ForWriters};
    let none = || whole(|_| {});
    vec![
        opened(
            case("another comparator", "comparator", REFUSED, AtOpen, none()),
            How::WrongComparator,
        ),
        opened(
            case(
                "a family that does not exist",
                "nowhere",
                REFUSED,
                AtOpen,
                none(),
            ),
            How::UnknownFamily,
        ),
        opened(
            case(
                "a family is not named",
                "other",
                REFUSED,
                ForWriters,
                none(),
            ),
            How::FamilyNotNamed,
        ),
        opened(
            case("error_if_exists", "exists", REFUSED, ForWriters, none()),
            How::ErrorIfExists,
        ),
        case(
            "an empty directory",
            "CURRENT",
            ABSENT,
            AtOpen,
            whole(|d| {
                for f in files(d, "") {
                    std::fs::remove_file(f).expect("ours");
                }
            }),
        ),
        case(
            "only foreign files",
            "CURRENT",
            ABSENT,
            AtOpen,
            whole(|d| {
                for f in files(d, "") {
                    std::fs::remove_file(f).expect("ours");
                }
                std::fs::write(d.join("letter.txt"), "hello").expect("written");
            }),
        ),
    ]
}

// ---- running a case ----

/// Every file of a directory with what is in it.
fn contents(dir: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    std::fs::read_dir(dir)
        .expect("the directory")
        .map(|e| {
            let e = e.expect("an entry");
            let bytes = e
                .file_type()
                .expect("a type")
                .is_file()
                .then(|| std::fs::read(e.path()).expect("readable"));
            (e.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect()
}

/// Opens the directory as `how` says and reads everything forwards, backwards and by key.
fn open_and_read(dir: &Path, how: How, read_only: bool, at_open: &mut bool) -> esker::Result<u64> {
    let mut options = options();
    let mut names = families(&["default", "other"]);
    match how {
        How::Right => {}
        How::WrongComparator => {
            options.family.comparator = KeyOrder::ReverseBytewise;
            names[0].options.comparator = KeyOrder::ReverseBytewise;
        }
        How::UnknownFamily => names.extend(families(&["nowhere"])),
        How::FamilyNotNamed => names.truncate(1),
        How::CreateIfMissing => {
            options = options
                .create_if_missing(true)
                .create_missing_column_families(true)
        }
        How::ErrorIfExists => options.db.error_if_exists = true,
        How::FewFiles => options.db.max_open_files = 30,
        How::Plain => {}
    }
    let plain = how == How::Plain;
    let db = if plain && read_only {
        Db::open_read_only(dir, Options::new())?
    } else if plain {
        Db::open(dir, Options::new())?
    } else if read_only {
        Db::open_families_read_only(dir, options, names)?
    } else {
        Db::open_families(dir, options, names)?
    };
    *at_open = false;
    let mut seen = 0;
    for family in db.families() {
        let mut it = db.iter_cf(&family);
        it.seek_to_first();
        while it.valid() {
            seen += 1;
            it.next();
        }
        it.status()?;
        it.seek_to_last();
        while it.valid() {
            it.prev();
        }
        it.status()?;
        for n in 0..400 {
            db.get_cf(&family, format!("key{n:05}"))?;
            db.get_cf(&family, format!("other{n:05}"))?;
        }
    }
    Ok(seen)
}

/// The child: opens one directory in one mode, and says what came of it.
#[test]
#[ignore = "the other tests of this file run it as a process of its own: cargo test -p esker --test hostile"]
fn child() {
    let target = std::env::var(TARGET).expect("the directory and how to open it");
    let mut parts = target.splitn(3, ':');
    let mut next = || parts.next().expect("three parts");
    let how = HOWS[next().parse::<usize>().expect("a number")];
    let read_only = next() == "ro";
    let mut at_open = true;
    let done = open_and_read(Path::new(next()), how, read_only, &mut at_open);
    match done {
        Ok(seen) => println!("\nRESULT ok {seen}"),
        Err(e) => println!(
            "\nRESULT {} {:?} {}",
            if at_open { "open" } else { "read" },
            e.kind(),
            e.to_string().replace('\n', " ")
        ),
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    println!(
        "PEAK {}",
        peak.map_or("0", |p| p.trim().trim_end_matches(" kB"))
    );
}

#[derive(Debug)]
struct Outcome {
    when: String,
    kind: String,
    message: String,
}

/// Runs the child on `dir`, within the limits.
fn observe(dir: &Path, how: How, read_only: bool) -> Result<Outcome, String> {
    let index = HOWS.iter().position(|h| *h == how).expect("listed");
    let mode = if read_only { "ro" } else { "rw" };
    let start = Instant::now();
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .args([
            "--exact",
            "child",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(TARGET, format!("{index}:{mode}:{}", dir.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the test binary starts");
    let (mut out, mut errors) = (
        child.stdout.take().expect("piped"),
        child.stderr.take().expect("piped"),
    );
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let complaints = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).map(|_| text)
    });
    let limit = TIME_MAX * if cfg!(debug_assertions) { 3 } else { 1 };
    while child.try_wait().expect("our child").is_none() {
        if start.elapsed() > limit {
            child.kill().expect("our child");
            child.wait().expect("our child");
            return Err(format!("{mode}: no answer within {limit:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let text = reader.join().expect("read").expect("text");
    let complaints = complaints.join().expect("read").unwrap_or_default();
    let line = |prefix: &str| {
        text.lines()
            .find_map(|l| l.strip_prefix(prefix).map(str::to_owned))
    };
    let result =
        line("RESULT ").ok_or_else(|| format!("{mode}: the process died: {complaints}"))?;
    let peak: u64 = line("PEAK ")
        .and_then(|p| p.trim().parse().ok())
        .ok_or("no peak")?;
    if peak > MEMORY_MAX_KB {
        return Err(format!("{mode}: {peak} kB of memory"));
    }
    let mut words = result.splitn(3, ' ');
    let mut next = || words.next().unwrap_or_default().to_owned();
    Ok(Outcome {
        when: next(),
        kind: next(),
        message: next(),
    })
}

fn run_case(good: &Path, scratch: &Path, case: &Case) -> Result<(), String> {
    for read_only in [true, false] {
        let dir = scratch.join("db");
        if dir.exists() {
            std::fs::remove_dir_all(&dir).expect("ours");
        }
        copy_dir(&Env::posix(), good, &dir);
        (case.damage)(&dir);
        let before = contents(&dir);
        let seen = observe(&dir, case.how, read_only)?;
        let mode = if read_only {
            "for reading"
        } else {
            "for writing"
        };
        if case.shows == Shows::ForWriters && read_only {
            if seen.when != "ok" {
                return Err(format!("{mode}: {seen:?}"));
            }
        } else {
            let in_time =
                seen.when == "open" || (case.shows == Shows::AtRead && seen.when == "read");
            if !in_time {
                return Err(format!("{mode}: not seen in time: {seen:?}"));
            }
            if !case.kinds.contains(&seen.kind.as_str()) {
                return Err(format!("{mode}: of another kind: {seen:?}"));
            }
            if !seen.message.contains(case.names) {
                return Err(format!("{mode}: {} is not named: {seen:?}", case.names));
            }
        }
        let after = contents(&dir);
        if (read_only || seen.when == "open") && before != after {
            let changed: Vec<_> = before
                .keys()
                .chain(after.keys())
                .filter(|k| before.get(*k) != after.get(*k))
                .collect();
            return Err(format!("{mode}: the directory changed: {changed:?}"));
        }
        // A writer that opened may add files; the tables it had must be what they were.
        for (name, bytes) in before.iter().filter(|(n, _)| n.ends_with(".sst")) {
            if after.get(name) != Some(bytes) {
                return Err(format!("{mode}: {name} changed"));
            }
        }
    }
    Ok(())
}

fn run_cases(make: impl Fn(&Path), cases: &[Case]) {
    let scratch = tempfile::tempdir().expect("a directory");
    let good = scratch.path().join("good");
    make(&good);
    let mut failures = Vec::new();
    for case in cases {
        if let Err(e) = run_case(&good, scratch.path(), case) {
            failures.push(format!("{}: {e}", case.name));
        }
    }
    println!(
        "{} damaged directories, {} wrong answers",
        cases.len(),
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_good_database_is_good() {
    let scratch = tempfile::tempdir().expect("a directory");
    let good = scratch.path().join("good");
    make_good(&good);
    for (how, read_only) in [
        (How::Right, true),
        (How::FewFiles, true),
        (How::Right, false),
    ] {
        let seen = observe(&good, how, read_only).expect("within the limits");
        assert_eq!(
            (seen.when.as_str(), seen.kind.as_str()),
            ("ok", "840"),
            "{seen:?}"
        );
    }
}

#[test]
fn damaged_current() {
    run_cases(make_good, &current_cases());
}

#[test]
fn damaged_manifests() {
    run_cases(make_good, &manifest_bytes_cases());
}

#[test]
fn hostile_manifests() {
    run_cases(make_good, &manifest_edit_cases());
}

#[test]
fn damaged_tables() {
    run_cases(make_good, &table_cases());
}

#[test]
fn damaged_logs() {
    run_cases(make_good, &log_cases());
}

#[test]
fn wrong_callers() {
    run_cases(make_good, &caller_cases());
}

/// The same with a database that RocksDB's `ldb` wrote, where that is installed.
#[test]
fn damaged_directories_of_rocksdb() {
    use Shows::{AtOpen, AtRead};
    let ldb = |dir: &Path, words: &[&str]| {
        let mut command = Command::new("ldb");
        command.arg(format!("--db={}", dir.display())).args(words);
        command.output().is_ok_and(|o| o.status.success())
    };
    let probe = tempfile::tempdir().expect("a directory");
    if !ldb(
        &probe.path().join("db"),
        &["--create_if_missing", "put", "a", "b"],
    ) {
        println!("ldb is not installed: nothing to do");
        return;
    }
    let make = move |dir: &Path| {
        assert!(ldb(
            dir,
            &[
                "--create_if_missing",
                "batchput",
                "a",
                "1",
                "b",
                "2",
                "c",
                "3"
            ]
        ));
        assert!(ldb(dir, &["compact"]));
        assert!(ldb(dir, &["put", "d", "4"]));
    };
    let first_block = whole(|d| change(&table(d), |b| b[3] ^= 0x40));
    let cases: Vec<_> = [
        case(
            "a flipped MANIFEST",
            "MANIFEST-",
            CORRUPTION,
            AtOpen,
            flip("MANIFEST-", |n| n / 2),
        ),
        case(
            "CURRENT is missing",
            "CURRENT",
            ABSENT,
            AtOpen,
            whole(|d| std::fs::remove_file(d.join("CURRENT")).expect("there")),
        ),
        case(
            "a table is missing",
            ".sst",
            ABSENT,
            AtOpen,
            whole(|d| std::fs::remove_file(table(d)).expect("there")),
        ),
        case(
            "a table is cut",
            ".sst",
            CORRUPTION,
            AtOpen,
            whole(|d| cut(&table(d), 300)),
        ),
        case(
            "a flipped footer",
            ".sst",
            CORRUPTION,
            AtOpen,
            flip(".sst", |n| n - 3),
        ),
        case(
            "a flipped data block",
            ".sst",
            CORRUPTION,
            AtRead,
            first_block,
        ),
    ]
    .into_iter()
    .map(|c| opened(c, How::Plain))
    .collect();
    run_cases(make, &cases);
}

#[test]
fn the_cases_are_many() {
    let all = [
        current_cases(),
        manifest_bytes_cases(),
        manifest_edit_cases(),
        table_cases(),
        log_cases(),
        caller_cases(),
    ];
    assert!(all.iter().map(Vec::len).sum::<usize>() >= 80);
}
