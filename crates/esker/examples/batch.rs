//! Writes several changes as one: all of them or none, also after a crash.
//!
//! `cargo run -p esker --example batch`

use esker::{Db, Options, Result, WriteBatch};

fn balance(db: &Db, who: &str) -> Result<u64> {
    let text = db.get(who)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&text).parse().unwrap_or(0))
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    db.put("alice", "100")?;
    db.put("bob", "20")?;

    let mut batch = WriteBatch::new();
    batch.put(
        b"alice",
        (balance(&db, "alice")? - 30).to_string().as_bytes(),
    )?;
    batch.put(b"bob", (balance(&db, "bob")? + 30).to_string().as_bytes())?;
    println!("{} changes in {} bytes", batch.count(), batch.data_size());
    db.write(&mut batch)?;

    println!(
        "alice {}, bob {}",
        balance(&db, "alice")?,
        balance(&db, "bob")?
    );
    assert_eq!(balance(&db, "alice")? + balance(&db, "bob")?, 120);
    Ok(())
}
