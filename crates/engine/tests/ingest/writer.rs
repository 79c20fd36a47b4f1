//! Writer of a file: the input that it refuses, and the entries that its collectors see.

use crate::{ingest, open, options};
use esker::options::{
    CollectorContext, EntryKind, TablePropertiesCollector, TablePropertiesCollectorFactory,
};
use esker::{ErrorKind, Result, SstFileWriter};
use esker_format::Seq;
use std::collections::BTreeMap;
use std::sync::Arc;

#[test]
fn a_writer_refuses_what_rocksdb_refuses() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut writer = SstFileWriter::new(&options()).expect("a writer");
    let refused = |r: Result<()>, what: &str| {
        let e = r.expect_err(what);
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert_eq!(e.message(), what);
    };
    refused(writer.put("a", "1"), "File is not opened");
    refused(writer.delete_range("a", "b"), "File is not opened");
    refused(writer.finish().map(drop), "File is not opened");
    writer.open(dir.path().join("x.sst")).expect("opens");
    refused(
        writer.finish().map(drop),
        "Cannot create sst file with no entries",
    );
    writer.put("b", "1").expect("is added");
    for again in ["b", "a"] {
        refused(
            writer.merge(again, "2"),
            "Keys must be added in strict ascending order.",
        );
    }
    refused(
        writer.delete_range("c", "b"),
        "end key comes before start key",
    );
    writer.delete_range("c", "c").expect("deletes nothing");
    refused(
        writer.put_with_timestamp("c", "12345678", "1"),
        "Timestamp size mismatch",
    );
    let info = writer.finish().expect("is finished");
    assert_eq!((info.num_entries, info.num_range_del_entries), (1, 0));
}

/// Counts entries by kind, and stores the counts.
#[derive(Default)]
struct Counting(BTreeMap<String, u64>);

impl TablePropertiesCollector for Counting {
    fn add(&mut self, _: &[u8], _: &[u8], kind: EntryKind, _: Seq, _: u64) {
        *self.0.entry(format!("{kind:?}")).or_default() += 1;
    }
    fn finish(&mut self) -> Vec<(String, Vec<u8>)> {
        let text = |n: u64| n.to_string().into_bytes();
        self.0.iter().map(|(k, n)| (k.clone(), text(*n))).collect()
    }
}

struct Counter;

impl TablePropertiesCollectorFactory for Counter {
    fn name(&self) -> &str {
        "Counter"
    }
    fn create(&self, _: &CollectorContext) -> Option<Box<dyn TablePropertiesCollector>> {
        Some(Box::new(Counting::default()))
    }
}

#[test]
fn collectors_see_what_a_writer_writes() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut with = options();
    let factories = &mut with.family.table_properties_collector_factories;
    factories.push(Arc::new(Counter));
    let mut writer = SstFileWriter::new(&with).expect("a writer");
    let path = dir.path().join("x.sst");
    writer.open(&path).expect("opens");
    writer.put("a", "1").expect("is added");
    writer.put_entity("b", &[("c", "2")]).expect("is added");
    writer.delete("c").expect("is added");
    writer.put("d", "3").expect("is added");
    writer.delete_range("e", "g").expect("is added");
    writer.finish().expect("is finished");
    let db = open(dir.path());
    let family = db.default_family_handle();
    db.ingest(&family, &[path], &ingest()).expect("is taken in");
    let tables = db.properties_of_all_tables(&family).expect("properties");
    let p = tables.values().next().expect("one table");
    assert_eq!(p.property_collectors_names, "[Counter]");
    for (kind, n) in [
        ("Put", "2"),
        ("WideColumnEntity", "1"),
        ("Delete", "1"),
        ("RangeDeletion", "1"),
    ] {
        assert_eq!(p.user_collected[kind.as_bytes()], n.as_bytes(), "{kind}");
    }
}
