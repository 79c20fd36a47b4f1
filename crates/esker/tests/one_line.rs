//! Values print as one line of at most 120 characters with `{:?}`: logs hold many of them.

use esker::backup::{BackupEngine, BackupEngineOptions};
use esker::txn::{IndexedBatch, OptimisticTransactionDb, TransactionDb};
use esker::{
    CacheOptions, Db, FamilyDescriptor, FamilyOptions, Options, ReadOptions, Result, WriteBatch,
    WriteOptions, new_block_cache,
};
use std::fmt::Debug;

#[test]
fn every_value_is_one_short_line() -> Result<()> {
    let mut long = Vec::new();
    let mut short = |what: &str, value: &dyn Debug| {
        let text = format!("{value:?}");
        if text.chars().count() > 120 || text.contains('\n') {
            long.push(format!("{what}, {}: {text}", text.len()));
        }
    };
    let dir = tempfile::tempdir()?;
    let options = Options::new().create_if_missing(true);
    let db = Db::open(dir.path().join("db"), options.clone())?;
    db.put("key", vec![0; 1000])?;
    db.flush()?;
    let family = db.family_or_create("users", FamilyOptions::new())?;
    let mut it = db.iter();
    short("a database", &db);
    short("a handle", family.handle());
    short("a family", &family);
    short("a cursor that was not placed", &it);
    it.seek_to_first();
    short("a cursor", &it);
    short("entries", &db.range("a"..));
    short("keys", &db.keys());
    short("values", &db.values());
    short(
        "entries from a place",
        &db.iterator(esker::IteratorMode::Start),
    );
    short("a snapshot", &db.snapshot());
    short("a builder", &Db::builder(dir.path()));
    short("a value", &db.get_pinned("key")?.expect("it was put"));
    short("an environment", db.env());
    short("options", &Options::new());
    short("options of a family", &FamilyOptions::new());
    short(
        "a family to open",
        &FamilyDescriptor::new("users", FamilyOptions::new()),
    );
    short(
        "options of a write",
        &WriteOptions::new().sync(true).low_pri(true),
    );
    short(
        "options of a read",
        &ReadOptions::new().lower(vec![0; 1000]),
    );
    short("a cache", &new_block_cache(CacheOptions::default(), None));
    short("statistics", &esker::observe::Statistics::new());
    let mut batch = WriteBatch::new();
    batch.put("key", vec![0; 1000])?;
    short("a batch", &batch);
    let table = dir.path().join("t.sst");
    let mut writer = esker::SstFileWriter::new(&Options::new())?;
    writer.open(&table)?;
    short("a writer of tables", &writer);
    writer.put("key", "value")?;
    short("a table", &writer.finish()?.file_path);
    short(
        "a reader of tables",
        &esker::SstFileReader::open(&Options::new(), &table)?,
    );
    short(
        "a snapshot in options",
        &ReadOptions::new().snapshot(&db.snapshot()).snapshot,
    );
    short(
        "an error",
        &db.existing_family("none").expect_err("there is none"),
    );

    let transactions = Options::new().create_if_missing(true);
    let locking = TransactionDb::open(dir.path().join("t"), transactions, Default::default())?;
    short("a database with transactions", &locking);
    let mut transaction = locking.begin();
    transaction.put("key", vec![0; 1000])?;
    short("a transaction", &transaction);
    short("an iterator of a transaction", &transaction.iter());
    drop(transaction);
    let optimistic = OptimisticTransactionDb::open(dir.path().join("o"), options)?;
    short("a database with optimistic transactions", &optimistic);
    short("an optimistic transaction", &optimistic.begin());
    short("an indexed batch", &IndexedBatch::new(true));

    let backups = BackupEngineOptions::new(dir.path().join("b"));
    let backups = BackupEngine::open(backups, db.env())?;
    backups.create_new_backup(&db)?;
    short("a backup engine", &backups);
    db.close()?;
    let closed = Db::keep_closed(dir.path().join("db"), &Options::new())?;
    short("a database that is kept closed", &closed);
    assert!(long.is_empty(), "{long:#?}");
    Ok(())
}
