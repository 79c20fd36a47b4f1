//! Checkpoints of databases that were opened for reading, and of secondary instances.

use esker::{CheckpointOptions, Db, ErrorKind, FamilyOptions, Options, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn small() -> Options {
    Options::new()
        .create_if_missing(true)
        .set_all("write_buffer_size=65536;target_file_size_base=65536;level0_file_num_compaction_trigger=2;compression=kNoCompression")
        .expect("these options exist")
}

/// Names and bytes of the files of a directory.
fn listing(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).expect("the directory is there");
    let mut out: Vec<_> = entries
        .map(|e| e.expect("an entry"))
        .map(|e| {
            let name = e.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(e.path()).unwrap_or_default())
        })
        .collect();
    out.sort();
    out
}

/// A database with one row in a table and one in the log alone, for each of two families.
fn make(options: &Options, at: &Path) -> Result<()> {
    let db = Db::open(at, options.clone())?;
    let other = db.create_family("other", FamilyOptions::default())?;
    db.put("table", "1")?;
    db.put_cf(&other, "table", "2")?;
    db.flush()?;
    db.flush_cf(&other, &Default::default())?;
    db.put("log", "3")?;
    db.put_cf(&other, "log", "4")?;
    db.close()
}

fn check(at: &Path) -> Result<()> {
    let db = Db::open(at, small())?;
    let other = db.family("other").expect("it was copied");
    assert_eq!(db.get("table")?.as_deref(), Some(&b"1"[..]));
    assert_eq!(db.get_cf(&other, "table")?.as_deref(), Some(&b"2"[..]));
    assert_eq!(db.get("log")?.as_deref(), Some(&b"3"[..]));
    assert_eq!(db.get_cf(&other, "log")?.as_deref(), Some(&b"4"[..]));
    db.verify_checksums()?;
    db.close()
}

#[test]
fn a_checkpoint_of_a_read_only_database_has_the_rows_of_its_logs() -> Result<()> {
    let home = tempfile::tempdir().expect("a directory");
    let apart = home.path().join("logs");
    for (name, options) in [
        ("plain", small()),
        (
            "logs_apart",
            small().set("wal_dir", &apart.display().to_string())?,
        ),
    ] {
        let at = home.path().join(name);
        make(&options, &at)?;
        let listed = || (listing(&at), apart.exists().then(|| listing(&apart)));
        let before = listed();
        let db = Db::open_read_only(&at, options.clone())?;
        assert!(db.is_read_only());
        let copy = home.path().join(format!("{name}_copy"));
        let report = db.checkpoint(&copy)?;
        assert_eq!(report.sequence, 4);
        assert!(report.linked >= 2, "{report:?}");
        let second = Db::open_secondary(&at, home.path().join("second"), options.clone())?;
        let mut never = CheckpointOptions::default();
        never.log_size_for_flush = u64::MAX;
        let copy_of_second = home.path().join(format!("{name}_second"));
        second.checkpoint_opt(&copy_of_second, &never)?;
        // A copy of a copy.
        let again = Db::open_read_only(&copy, small())?;
        let copy_of_copy = home.path().join(format!("{name}_again"));
        again.checkpoint(&copy_of_copy)?;
        for db in [&db, &second, &again] {
            db.close()?;
            let error = db.checkpoint(home.path().join("late")).expect_err("closed");
            assert_eq!(error.kind(), ErrorKind::ShutdownInProgress);
        }
        assert!(before == listed(), "nothing of the database changes");
        for copy in [&copy, &copy_of_second, &copy_of_copy] {
            check(copy)?;
        }
    }
    Ok(())
}

/// Rows that the primary may write beyond those of the last copy: without a bound its open files
/// depend on how long a copy takes.
const AHEAD: u64 = 2_000;

/// The primary deletes tables and logs while they are copied.
#[test]
fn a_checkpoint_of_a_secondary_is_one_state_of_its_primary() -> Result<()> {
    let home = tempfile::tempdir().expect("a directory");
    let at = home.path().join("db");
    let primary = Db::open(&at, small())?;
    primary.put("000000", "first")?;
    let second = Db::open_secondary(&at, home.path().join("second"), small())?;
    let copied_rows = AtomicU64::new(0);
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(|| -> Result<u64> {
            let mut n = 1u64;
            loop {
                let copied = copied_rows.load(Ordering::Relaxed);
                if copied == u64::MAX {
                    return Ok(n);
                }
                if n > copied.saturating_add(AHEAD) {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                primary.put(format!("{n:06}"), [b'v'; 400])?;
                if n.is_multiple_of(50) {
                    primary.flush()?;
                }
                n += 1;
            }
        });
        let copied = (|| -> Result<()> {
            for round in 0..20 {
                second.try_catch_up_with_primary()?;
                let seen = second.latest_sequence_number();
                let copy = home.path().join(format!("copy{round}"));
                let report = second.checkpoint(&copy)?;
                assert_eq!(report.sequence, seen);
                let db = Db::open(&copy, small())?;
                let (mut iter, mut n) = (db.iter(), 0u64);
                iter.seek_to_first();
                while iter.valid() {
                    assert_eq!(iter.key(), format!("{n:06}").as_bytes(), "a hole");
                    n += 1;
                    iter.next();
                }
                iter.status()?;
                assert!(n >= seen, "{n} rows, {seen} were seen");
                copied_rows.store(n, Ordering::Relaxed);
                db.close()?;
            }
            Ok(())
        })();
        copied_rows.store(u64::MAX, Ordering::Relaxed);
        let written = writer.join().expect("no panic")?;
        assert!(written > 100, "{written}");
        copied
    })
}
