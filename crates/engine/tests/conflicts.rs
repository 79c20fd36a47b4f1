//! Reads and writes that transactions build on: the newest write of a key, flushed memtables that
//! stay, and conditional writes.

use esker::{Db, Error, LatestWrite, Options, Result, WriteBatch, WriteOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn open(dir: &tempfile::TempDir, options: &[(&str, &str)]) -> Db {
    let mut all = Options::new().create_if_missing(true);
    for (name, value) in options {
        all = all.set(name, value).expect("a known option");
    }
    Db::open(dir.path(), all).expect("opens")
}

fn latest(db: &Db, key: &str, since: u64, memory_only: bool) -> LatestWrite {
    let family = db.default_family_handle();
    db.latest_write_of(&family, key, since, memory_only)
        .expect("readable")
}

#[test]
fn memory_answers_until_a_flush_takes_it_away() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, &[]);
    db.put("a", "1")?;
    let before = db.latest_sequence_number();
    db.put("b", "2")?;
    let at = db.latest_sequence_number();
    assert_eq!(latest(&db, "b", before, true), LatestWrite::At(at));
    assert_eq!(latest(&db, "a", before, true), LatestWrite::At(before));
    assert_eq!(latest(&db, "c", before, true), LatestWrite::NoneSince);
    let snapshot = db.snapshot();
    db.flush()?;
    assert_eq!(
        latest(&db, "c", before, true),
        LatestWrite::Unknown(Some(at))
    );
    assert_eq!(latest(&db, "c", at, true), LatestWrite::NoneSince);
    assert_eq!(latest(&db, "b", before, false), LatestWrite::At(at));
    assert_eq!(latest(&db, "c", before, false), LatestWrite::NoneSince);
    drop(snapshot);
    Ok(())
}

#[test]
fn flushed_memtables_stay_as_the_option_says() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = open(&dir, &[("max_write_buffer_size_to_maintain", "-1")]);
    let mut written = Vec::new();
    for n in 0..3 {
        db.put(format!("k{n}"), "v")?;
        written.push(db.latest_sequence_number());
        db.flush()?;
    }
    let family = db.default_family_handle();
    db.delete_range_cf(&family, "k1", "k2")?;
    let deleted = db.latest_sequence_number();
    assert_eq!(latest(&db, "k0", 0, true), LatestWrite::At(written[0]));
    assert_eq!(latest(&db, "k1", 0, true), LatestWrite::At(deleted));
    assert_eq!(
        latest(&db, "k2", written[1], true),
        LatestWrite::At(written[2])
    );
    assert_eq!(latest(&db, "other", 0, true), LatestWrite::NoneSince);
    let kept = db.property("rocksdb.num-immutable-mem-table-flushed");
    assert_eq!(kept.as_deref(), Some("3"));
    db.compact_range(None, None)?;
    assert_eq!(latest(&db, "k0", 0, true), LatestWrite::At(written[0]));
    db.close()?;
    let db = open(&dir, &[("max_write_buffer_size_to_maintain", "-1")]);
    let now = db.latest_sequence_number();
    assert_eq!(latest(&db, "k0", 0, true), LatestWrite::Unknown(Some(now)));
    Ok(())
}

#[test]
fn history_is_bounded() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = [
        ("write_buffer_size", "65536"),
        ("max_write_buffer_size_to_maintain", "400000"),
    ];
    let db = open(&dir, &options);
    for n in 0..4000u32 {
        db.put(format!("key{n:08}"), vec![b'v'; 500])?;
    }
    db.flush()?;
    let number = |name: &str| -> u64 {
        let text = db.property(name).expect("a known property");
        text.parse().expect("a number")
    };
    let all = number("rocksdb.size-all-mem-tables");
    let kept = number("rocksdb.num-immutable-mem-table-flushed");
    assert!((1..8).contains(&kept), "{kept} memtables are kept");
    assert!(all < 900_000, "{all} bytes are kept");
    Ok(())
}

#[test]
fn conditional_writes_lose_no_update() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Arc::new(open(&dir, &[("write_buffer_size", "65536")]));
    db.put("n", "0")?;
    let refused = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..4)
        .map(|t| {
            let (db, refused) = (Arc::clone(&db), Arc::clone(&refused));
            std::thread::spawn(move || -> Result<()> {
                let mut done = 0;
                while done < 300 {
                    let old = db.get("n")?.expect("is there");
                    let n: u64 = String::from_utf8_lossy(&old).parse().expect("a number");
                    let mut batch = WriteBatch::new();
                    batch.put(b"n", (n + 1).to_string().as_bytes())?;
                    batch.put(format!("{t}-{done}").as_bytes(), &[b'x'; 100])?;
                    let written = db.write_if(&mut batch, &WriteOptions::default(), || {
                        match db.get("n")? {
                            Some(now) if now == old => Ok(()),
                            _ => Err(Error::busy("changed")),
                        }
                    });
                    match written {
                        Ok(()) => done += 1,
                        Err(_) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    // Others write beside it, past any condition.
                    db.put(format!("other{t}"), "x")?;
                }
                Ok(())
            })
        })
        .collect();
    for t in threads {
        t.join().expect("no panic")?;
    }
    assert_eq!(db.get("n")?.as_deref(), Some(&b"1200"[..]));
    Ok(())
}
