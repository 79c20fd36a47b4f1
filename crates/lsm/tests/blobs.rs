//! Values that a job puts into blob files or brings back, what it counts as garbage, and the
//! compactions that garbage starts.

mod support;
#[path = "support/trees.rs"]
mod trees;

use esker_format::blob::BlobIndex;
use esker_format::wide_column::{self, Column};
use esker_format::{FileNo, InternalKey, KeyOrder, Level, ParsedKey, Seq, ValueType};
use esker_lsm::compaction_stream::{CompactionStream, StreamOptions, ValueSink};
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::merge_operator::{MergeOperator, StringAppend};
use esker_lsm::plan::{Busy, CompactionReason};
use esker_lsm::point::{PointResolver, ResolvedPoint};
use esker_lsm::policy::ForcedBlobGc;
use esker_lsm::tombstone::CompactionTombstones;
use esker_lsm::version::{BlobFile, Version};
use esker_lsm::visible::ValueResolver;
use esker_status::Result;
use std::sync::Arc;
use support::VecCursor;
use trees::{NOW, fixed, pick, tree};

/// Values of at least so many bytes go into blob file 100; those of files before `cutoff` leave.
struct Sink {
    min: usize,
    cutoff: u64,
    put: Vec<(Vec<u8>, Vec<u8>)>,
}

impl ValueSink for Sink {
    fn takes(&self, len: usize) -> bool {
        len >= self.min
    }
    fn leaves(&self, file: FileNo) -> bool {
        file.0 < self.cutoff
    }
    fn put(&mut self, user_key: &[u8], value: &[u8], index: &mut Vec<u8>) -> Result<()> {
        self.put.push((user_key.to_vec(), value.to_vec()));
        let at = self.put.len() as u64;
        BlobIndex::blob(FileNo(100), at, value.len() as u64, 0).encode(index);
        Ok(())
    }
}

/// The value that file, offset and size say.
struct ByNumbers;

impl ValueResolver for ByNumbers {
    fn blob(&self, _: &[u8], index: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if let BlobIndex::Blob { file, size, .. } = BlobIndex::decode(index)? {
            out.resize(size as usize, b'0' + file.0 as u8);
        }
        Ok(())
    }
}

fn blob(file: u64, size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    BlobIndex::blob(FileNo(file), 70, size, 0).encode(&mut out);
    out
}

type Row = (&'static str, u64, ValueType, Vec<u8>);

/// Key, kind and value of each entry that comes out, and the garbage by file.
type Written = (Vec<(String, ValueType, Vec<u8>)>, Vec<(u64, u64, u64)>);

fn run(rows: &[Row], order: &KeyOrder, low: Option<&str>, sink: &mut Sink) -> Result<Written> {
    let mut entries: Vec<_> = rows
        .iter()
        .map(|(k, s, t, v)| {
            let key = InternalKey::new(k.as_bytes(), Seq(*s), *t);
            (key.as_bytes().to_vec(), v.clone())
        })
        .collect();
    entries.sort_by(|a, b| order.compare_internal(&a.0, &b.0));
    let mut o = StreamOptions::new(order.clone());
    o.bottommost = true;
    o.counts_blobs = true;
    o.resolver = Arc::new(ByNumbers);
    o.full_history_ts_low = low.map(|low| Arc::new(low.as_bytes().to_vec()));
    o.key_not_exists_beyond = Some(Box::new(|_| true));
    let tombstones = CompactionTombstones::new(&[], order, &[])?;
    let mut s = CompactionStream::new(VecCursor::new(order, Arc::new(entries)), tombstones, o)?;
    let mut out = Vec::new();
    s.seek_to_first();
    while s.valid() {
        s.place_value(sink)?;
        let key = ParsedKey::parse(s.key())?;
        let user = String::from_utf8_lossy(key.user).into_owned();
        out.push((user, key.kind, s.value().to_vec()));
        s.next();
    }
    s.status()?;
    let garbage = s.blob_garbage()?;
    let garbage = garbage.iter().map(|(f, a)| (f.0, a.count, a.bytes));
    Ok((out, garbage.collect()))
}

#[test]
fn values_are_placed_by_size_and_by_file() -> Result<()> {
    use ValueType::{BlobIndex as Blob, Value};
    let rows = [
        ("a", 1, Value, b"small".to_vec()),
        ("b", 2, Value, b"large value".to_vec()),
        ("c", 3, Blob, blob(5, 20)),
        ("c", 2, Blob, blob(5, 7)),
        ("d", 4, Blob, blob(5, 3)),
        ("e", 5, Blob, blob(7, 20)),
        ("f", 9, ValueType::Deletion, Vec::new()),
        ("f", 6, Blob, blob(8, 30)),
    ];
    let order = KeyOrder::Bytewise;
    let mut sink = Sink {
        min: 10,
        cutoff: 6,
        put: Vec::new(),
    };
    let (out, garbage) = run(&rows, &order, None, &mut sink)?;
    let kinds: Vec<_> = out.iter().map(|(k, kind, _)| (k.as_str(), *kind)).collect();
    assert_eq!(
        kinds,
        [
            ("a", Value),
            ("b", Blob),
            ("c", Blob),
            ("d", Value),
            ("e", Blob)
        ]
    );
    assert_eq!(out[3].2, b"555");
    assert_eq!(out[4].2, blob(7, 20));
    let put: Vec<_> = sink.put.iter().map(|(k, v)| (&k[..], &v[..])).collect();
    assert_eq!(
        put,
        [
            (&b"b"[..], &b"large value"[..]),
            (&b"c"[..], &[b'5'; 20][..])
        ]
    );
    // Records are header, key and value; what stays in file 7 is none.
    assert_eq!(garbage, [(5, 3, 3 * 33 + 30), (8, 1, 63)]);
    Ok(())
}

/// An entity of version 2 with a column `a` in place and a column `b` in a blob file.
fn split_entity(a: &[u8], index: &[u8]) -> Vec<u8> {
    let sizes = [a.len() as u8, index.len() as u8];
    let head = [2, 2, 2, 2, 2, 0x01, 0x11, 1, 1, sizes[0], sizes[1]];
    [&head, &b"ab"[..], a, index].concat()
}

#[test]
fn entities_with_values_in_blob_files_keep_them_or_are_put_together() -> Result<()> {
    use ValueType::{Deletion, WideColumnEntity as Entity};
    let rows = [
        ("a", 1, Entity, split_entity(b"in", &blob(5, 20))),
        ("b", 2, Entity, split_entity(b"in", &blob(7, 30))),
        ("c", 4, Deletion, Vec::new()),
        ("c", 3, Entity, split_entity(b"in", &blob(7, 40))),
    ];
    let mut sink = Sink {
        min: 10,
        cutoff: 6,
        put: Vec::new(),
    };
    let (out, garbage) = run(&rows, &KeyOrder::Bytewise, None, &mut sink)?;
    assert_eq!(out.len(), 2);
    let whole = [Column::new(b"a", b"in"), Column::new(b"b", &[b'5'; 20])];
    assert_eq!(wide_column::decode(&out[0].2)?, whole);
    assert_eq!(out[1], ("b".to_owned(), Entity, rows[1].3.clone()));
    assert_eq!(garbage, [(5, 1, 33 + 20), (7, 1, 33 + 40)]);
    Ok(())
}

#[test]
fn a_merge_sees_all_columns_of_an_entity() -> Result<()> {
    let entity = split_entity(b"in", &blob(5, 3));
    let operator: &dyn MergeOperator = &StringAppend::new(b",");
    let mut point = PointResolver::<Vec<u8>>::new();
    point.feed(Seq(9), ValueType::Merge, Some(operator), || {
        b"more".to_vec()
    })?;
    point.feed(Seq(1), ValueType::WideColumnEntity, Some(operator), || {
        entity
    })?;
    let ResolvedPoint::SplitEntity(pending) = point.finish(Some(operator), b"k")? else {
        panic!("a column is in a blob file");
    };
    let merged = pending.complete(Some(operator), b"k", |index, out| {
        ByNumbers.blob(b"k", index, out)
    })?;
    let ResolvedPoint::MergedEntity(merged) = merged else {
        panic!("the result is an entity: {merged:?}");
    };
    let columns = wide_column::decode(&merged)?;
    assert_eq!(columns[0], Column::new(b"", b"more"));
    assert_eq!(
        columns[1..],
        [Column::new(b"a", b"in"), Column::new(b"b", b"555")]
    );
    Ok(())
}

#[test]
fn entries_in_blob_files_keep_their_timestamps() -> Result<()> {
    use ValueType::{BlobIndex as Blob, Value};
    let order = KeyOrder::BytewiseU64Ts;
    let rows = [
        ("a\x05\0\0\0\0\0\0\0", 1, Value, b"small".to_vec()),
        ("b\x05\0\0\0\0\0\0\0", 2, Value, b"large value".to_vec()),
        ("c\x05\0\0\0\0\0\0\0", 3, Blob, blob(5, 20)),
    ];
    let mut sink = Sink {
        min: 10,
        cutoff: 0,
        put: Vec::new(),
    };
    let low = Some("\x09\0\0\0\0\0\0\0");
    let (out, garbage) = run(&rows, &order, low, &mut sink)?;
    let keys: Vec<_> = out.iter().map(|(k, ..)| k.as_bytes()[1]).collect();
    assert_eq!(keys, [0, 0, 5]);
    assert_eq!(
        sink.put[0].0,
        out[1].0.as_bytes(),
        "the record's key is the entry's"
    );
    assert!(garbage.is_empty());
    Ok(())
}

/// A tree with four blob files of ten records.
fn with_blobs(garbage: &[(u64, u64)]) -> Version {
    let base = tree("L1: 1[a-c]b10 2[d-f]b10\nL2: 3[g-i]b12");
    let blobs = (10..14).map(|n| BlobFile {
        number: FileNo(n),
        total_count: 10,
        total_bytes: 1_000,
        ..BlobFile::default()
    });
    let edit = TreeEdit {
        blobs: blobs.collect(),
        garbage: garbage
            .iter()
            .map(|(n, c)| (FileNo(*n), *c, c * 100))
            .collect(),
        ..TreeEdit::default()
    };
    apply(&base, &[edit]).expect("valid")
}

#[test]
fn the_cutoff_is_a_share_of_the_files() {
    let v = with_blobs(&[]);
    for (age, first) in [
        (0.0, 10),
        (0.24, 10),
        (0.25, 11),
        (0.5, 12),
        (1.0, u64::MAX),
    ] {
        assert_eq!(v.blob_cutoff(age), FileNo(first), "{age}");
    }
}

#[test]
fn garbage_in_the_oldest_files_together_rewrites_the_tables_of_the_oldest() {
    let mut policy = fixed();
    let mut picked = |garbage: &[(u64, u64)], age_cutoff, threshold| {
        policy.forced_blob_gc = Some(ForcedBlobGc {
            age_cutoff,
            threshold,
        });
        pick(&with_blobs(garbage), &policy, &Busy::new(), NOW)
    };
    assert!(picked(&[(10, 4), (11, 5)], 0.5, 0.5).is_none());
    let plan = picked(&[(10, 4), (11, 6)], 0.5, 0.5).expect("half of two files");
    assert_eq!(plan.reason, CompactionReason::ForcedBlobGarbageCollection);
    assert_eq!(
        (plan.start_level(), plan.output_level),
        (Level(1), Level(1))
    );
    let files: Vec<_> = plan.files().map(|(_, f)| f.number.0).collect();
    assert_eq!(files, [1]);
    assert!(picked(&[(10, 9)], 0.2, 0.5).is_none(), "no file is old");
    assert!(picked(&[], 1.0, 0.0).is_none(), "nothing would be won");
    assert!(
        picked(&[(12, 9), (13, 9)], 0.5, 0.3).is_none(),
        "others are old"
    );
}
