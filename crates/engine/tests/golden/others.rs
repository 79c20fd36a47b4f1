//! The databases without a digest of their own: each is read in full or refused with a reason.

use super::scan::Text;
use super::set::{Expected, GoldenSet, copy_of};
use super::{catop, compact, compare};
use esker::env::ReadOptions as FileReadOptions;
use esker::{Db, Env, ErrorKind, KeyOrder, Options, ReadOptions, Result};
use esker_files::table::{ReadContext, TableReader, TableReaderOptions};
use esker_format::{Cursor, ParsedKey, ValueType};
use std::path::Path;
use std::sync::Arc;

/// bzip2: the same entries as in the databases of the other codecs.
#[test]
fn a_database_with_bzip2_reads_like_the_others() -> Result<()> {
    let Some(golden) = GoldenSet::find() else {
        return Ok(());
    };
    let all = golden.expected();
    let like = all
        .iter()
        .find(|e| e.version == "7.8.3" && e.database == "comp2");
    let like = like.expect("comp2 has a digest");
    let dir = golden.database("7.8.3", "comp3");
    let db = Db::open_read_only(&dir, catop::options())?;
    compare(&db, like).expect("the digest of comp2");
    let copy = copy_of(&dir);
    let db = Db::open(
        copy.path(),
        catop::options().set("compression", "kBZip2Compression")?,
    )?;
    compact(&db)?;
    compare(&db, like).expect("the digest of comp2 after compaction");
    db.close()
}

/// Two transactions that were prepared in the log, then one was committed and one undone: they read
/// as they ended.
#[test]
fn transactions_in_two_phases_read_as_they_ended() -> Result<()> {
    let Some(golden) = GoldenSet::find() else {
        return Ok(());
    };
    let dir = golden.database("7.8.3", "twopc");
    let check = |db: &Db| -> Result<()> {
        let ended = [
            ("p", Some("q")),
            ("r", None),
            ("mid", Some("dle")),
            ("pp", None),
        ];
        for (key, value) in ended {
            let found = db.get(key)?;
            assert_eq!(found.as_deref(), value.map(str::as_bytes), "{key}");
        }
        Ok(())
    };
    check(&Db::open_read_only(&dir, Options::new())?)?;
    let copy = copy_of(&dir);
    for allowed in ["false", "true"] {
        let db = Db::open(copy.path(), Options::new().set("allow_2pc", allowed)?)?;
        assert!(db.take_prepared_transactions().is_empty());
        check(&db)?;
        db.close()?;
    }
    Ok(())
}

/// User timestamps that are in the tables: another comparator is refused, the right one reads.
#[test]
fn timestamps_need_their_comparator() -> Result<()> {
    let Some(golden) = GoldenSet::find() else {
        return Ok(());
    };
    let dir = golden.database("11.9", "udt");
    let error = Db::open_read_only(&dir, Options::new()).map(drop);
    let error = error.expect_err("the comparator differs");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(
        error
            .to_string()
            .contains("leveldb.BytewiseComparator.u64ts"),
        "{error}"
    );

    let mut options = Options::new();
    options.family.comparator =
        KeyOrder::builtin("leveldb.BytewiseComparator.u64ts").expect("a built-in comparator");
    let newest = entries_as_of(&Db::open_read_only(&dir, options.clone())?, u64::MAX)?;
    let names: Vec<_> = (0..newest.len()).map(|n| format!("key{n:06}")).collect();
    let found: Vec<_> = newest
        .iter()
        .map(|(k, _)| String::from_utf8_lossy(k))
        .collect();
    assert!(newest.len() >= 100, "{} entries", newest.len());
    assert_eq!(found[..100], names[..100]);

    let copy = copy_of(&dir);
    let db = Db::open(copy.path(), options)?;
    compact(&db)?;
    assert_eq!(entries_as_of(&db, u64::MAX)?, newest);
    let error = db
        .put("key", "value")
        .expect_err("a key without a timestamp");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(
        entries_as_of(&db, 0)?.is_empty(),
        "nothing was written at time 0"
    );
    db.close()
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Keys (without timestamps) and values that are seen at `time`; point reads must agree.
fn entries_as_of(db: &Db, time: u64) -> Result<Entries> {
    let mut options = ReadOptions::default();
    options.timestamp = Some(time.to_le_bytes().to_vec());
    let family = db.default_family_handle();
    let mut it = db.iter_opt(&family, options.clone(), None);
    let mut out = Vec::new();
    it.seek_to_first();
    while it.valid() {
        out.push((it.key().to_vec(), it.value().to_vec()));
        it.next();
    }
    it.status()?;
    for (key, value) in &out {
        let found = db.get_opt(&family, key, &options, None)?;
        assert_eq!(found.as_deref(), Some(&value[..]), "{}", key.escape_ascii());
    }
    Ok(out)
}

/// Tracked logs of 11.9, which that build could not open itself: all that was written is there.
#[test]
fn tracked_logs_of_the_newest_version_read() -> Result<()> {
    let Some(golden) = GoldenSet::find() else {
        return Ok(());
    };
    let mut text = Text::default();
    text.add("default", b"a", b"b");
    text.add("q", b"x", b"z");
    let written = text.finish();
    let expected = Expected {
        version: "11.9".to_owned(),
        database: "walman".to_owned(),
        entries: written.entries,
        md5: written.md5,
    };
    let dir = golden.database(&expected.version, &expected.database);
    let db = Db::open_read_only(&dir, catop::options())?;
    compare(&db, &expected).expect("what was written");

    let copy = copy_of(&dir);
    let tracked = catop::options().set("track_and_verify_wals_in_manifest", "true")?;
    let db = Db::open(copy.path(), tracked)?;
    compact(&db)?;
    compare(&db, &expected).expect("the same after compaction");
    db.close()
}

/// A lone table for ingestion: a hundred puts, a deletion and a range deletion.
#[test]
fn an_external_table_reads_by_itself() -> Result<()> {
    let Some(golden) = GoldenSet::find() else {
        return Ok(());
    };
    let table = open_table(&golden.database("7.8.3", "ext.sst"))?;
    let mut cursor = table.cursor(&ReadContext::default());
    let mut text = Text::default();
    let mut deletions = 0;
    cursor.seek_to_first();
    while cursor.valid() {
        let key = ParsedKey::parse(cursor.key())?;
        match key.kind {
            ValueType::Value => {
                text.add("default", key.user, cursor.value());
            }
            ValueType::Deletion => deletions += 1,
            other => panic!("unexpected entry of type {other:?}"),
        }
        cursor.next();
    }
    cursor.status()?;
    let properties = table.properties();
    assert_eq!(properties.num_entries, 101);
    assert_eq!((properties.num_deletions, deletions), (1, 0));
    assert_eq!(table.range_tombstones().len(), 1);
    assert_eq!(text.finish().entries, 100);
    Ok(())
}

fn open_table(path: &Path) -> Result<Arc<TableReader>> {
    let env = Env::posix();
    let file = env.fs.open_read(path, FileReadOptions::default())?;
    let size = file.len();
    TableReader::open(file, size, TableReaderOptions::default())
}
