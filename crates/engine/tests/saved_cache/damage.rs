//! Files that do not hold what they should: they are told in the LOG, and reads are right.

use crate::rig::{DIR, KEYS, Rig, SAVED, figure, filled, key, phase, read, value, wait};
use esker::env::WriteOptions;
use esker::{Db, Result};
use esker_format::FileNo;
use esker_format::saved_cache::{SavedCache, SavedCacheWriter};
use std::path::{Path, PathBuf};

fn path() -> PathBuf {
    Path::new(DIR).join(SAVED)
}

fn replace(rig: &Rig, content: &[u8]) -> Result<()> {
    let mut file = rig.env.fs.create(&path(), WriteOptions::default())?;
    file.append(content)?;
    file.close()
}

/// Returns the file that a database with a few keys saves.
fn small(rig: &Rig) -> Result<Vec<u8>> {
    let db = rig.open()?;
    for n in 0..40 {
        db.put(key(n), value(n))?;
    }
    db.compact_range(None, None)?;
    read(&db, 0..40)?;
    db.close()?;
    rig.env.fs.read_all(&path(), 1 << 20)
}

fn opened(rig: &Rig, content: &[u8]) -> Result<Db> {
    replace(rig, content)?;
    let db = rig.open()?;
    wait(&db)?;
    Ok(db)
}

#[test]
fn damage_at_every_byte_is_told_and_harmless() -> Result<()> {
    let rig = Rig::new(&[]);
    let whole = small(&rig)?;
    assert!((18..60).contains(&whole.len()), "{} bytes", whole.len());
    let mut cases: Vec<Vec<u8>> = (0..whole.len()).map(|n| whole[..n].to_vec()).collect();
    for at in 0..whole.len() {
        for flip in [1, 0x80] {
            let mut damaged = whole.clone();
            damaged[at] ^= flip;
            cases.push(damaged);
        }
    }
    for case in cases {
        let db = opened(&rig, &case)?;
        assert_eq!(phase(&db), "unreadable", "{case:x?}");
        assert_eq!(figure(&db, "loaded blocks"), 0);
        read(&db, 0..40)?;
        db.close()?;
        // The next one is whole again.
        assert_eq!(rig.env.fs.read_all(&path(), 1 << 20)?, whole);
    }
    assert!(rig.is_told("its saved contents are left out: "));
    let db = opened(&rig, &whole)?;
    let loaded = figure(&db, "loaded blocks");
    assert_eq!(phase(&db), "loaded");
    assert!(
        loaded > 3 && loaded == figure(&db, "saved blocks"),
        "{loaded}"
    );
    Ok(())
}

#[test]
fn a_place_that_is_none_of_a_block_is_not_loaded() -> Result<()> {
    let rig = Rig::new(&[]);
    filled(&rig.open()?)?;
    let db = rig.open()?;
    read(&db, 0..KEYS)?;
    db.close()?;
    let saved = SavedCache::decode(rig.env.fs.read_all(&path(), 1 << 20)?)?;
    let shifts: [fn(u64) -> u64; 4] = [
        |at| at + 1,
        |at| at ^ 0x100,
        |at| at + (1 << 40),
        |at| at + 3,
    ];
    for shift in shifts {
        let mut writer = SavedCacheWriter::default();
        for table in saved.tables() {
            let mut offsets: Vec<u64> = table.offsets().map(shift).collect();
            offsets.sort_unstable();
            offsets.dedup();
            writer.add(table.number, &offsets);
        }
        let db = opened(&rig, &writer.finish())?;
        let (named, loaded) = (figure(&db, "saved blocks"), figure(&db, "loaded blocks"));
        assert_eq!(loaded + figure(&db, "no blocks"), named);
        assert!(loaded < named / 4, "{loaded} of {named}");
        read(&db, 0..KEYS)?;
        db.close()?;
    }
    Ok(())
}

#[test]
fn files_that_are_no_tables_are_passed_over() -> Result<()> {
    let rig = Rig::new(&[]);
    small(&rig)?;
    let mut writer = SavedCacheWriter::default();
    (0..200).for_each(|n| writer.add(FileNo(n), &[0, 4_000, u64::MAX]));
    writer.add(FileNo((1 << 62) - 1), &[u64::MAX]);
    let db = opened(&rig, &writer.finish())?;
    assert_eq!(phase(&db), "loaded");
    assert_eq!(figure(&db, "tables gone"), 200);
    assert!(figure(&db, "loaded blocks") <= 1);
    read(&db, 0..40)
}

#[test]
fn a_damaged_block_is_reported_to_who_reads_it() -> Result<()> {
    let rig = Rig::new(&[]);
    filled(&rig.open()?)?;
    let db = rig.open()?;
    read(&db, 0..KEYS)?;
    let tables = db.live_files_metadata();
    let table = Path::new(DIR).join(tables[0].name.trim_start_matches('/'));
    db.close()?;
    let mut bytes = rig.env.fs.read_all(&table, 64 << 20)?;
    // In the value of some entry of the first block.
    bytes[300] ^= 1;
    let mut file = rig.env.fs.create(&table, WriteOptions::default())?;
    file.append(&bytes)?;
    file.close()?;
    let db = rig.open()?;
    wait(&db)?;
    assert_eq!(figure(&db, "tables failed"), 1);
    assert!(rig.is_told("tables were left out from a block on"));
    assert_eq!(
        db.property("rocksdb.background-errors").as_deref(),
        Some("0")
    );
    let damaged: Vec<u64> = (0..KEYS).filter(|n| db.get(key(*n)).is_err()).collect();
    assert!((1..20).contains(&damaged.len()), "{damaged:?}");
    Ok(())
}
