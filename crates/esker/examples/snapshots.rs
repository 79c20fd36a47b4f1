//! Snapshots and iterators: one state of the database, read in both directions while writes go on.
//!
//! `cargo run -p esker --example snapshots`

use esker::{Db, Options, ReadOptions, Result};

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    for n in 0..5 {
        db.put(format!("key{n}"), format!("old{n}"))?;
    }
    let before = db.snapshot();
    db.put("key1", "new1")?;
    db.delete("key3")?;

    // An iterator sees one state: the snapshot's, or that of the moment when it was made.
    let family = db.default_family_handle();
    let mut it = db.iter_opt(&family, ReadOptions::default(), Some(&before));
    it.seek_to_first();
    let mut seen = 0;
    while let Some((key, value)) = it.entry() {
        println!("then: {} = {}", key.escape_ascii(), value.escape_ascii());
        seen += 1;
        it.next();
    }
    it.status()?;
    assert_eq!(seen, 5);

    let mut it = db.iter();
    it.seek_for_prev("key9");
    let mut seen = 0;
    while let Some((key, value)) = it.entry() {
        println!(
            "now, backwards: {} = {}",
            key.escape_ascii(),
            value.escape_ascii()
        );
        seen += 1;
        it.prev();
    }
    it.status()?;
    assert_eq!(seen, 4);
    let then = db.get_opt(&family, "key1", &ReadOptions::default(), Some(&before))?;
    assert_eq!(then.as_deref(), Some(&b"old1"[..]));
    Ok(())
}
