//! Opens a database, writes, reads, deletes, and opens it again.
//!
//! `cargo run -p esker --example open_put_get`

use esker::{Db, Options, Result, WriteOptions};

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    db.put("apple", "red")?;
    db.put("banana", "yellow")?;
    db.delete("apple")?;
    // This one survives power loss once the call has returned.
    let durable = WriteOptions::synced();
    db.put_opt(&db.default_family_handle(), "cherry", "dark red", &durable)?;

    for fruit in ["apple", "banana", "cherry"] {
        match db.get(fruit)? {
            Some(colour) => println!("{fruit}: {}", String::from_utf8_lossy(&colour)),
            None => println!("{fruit}: not there"),
        }
    }
    // Values in cached blocks are read without a copy, and many keys as of one state.
    for found in db.multi_get(["apple", "banana"]) {
        println!("{:?}", found?.map(|v| v.len()));
    }
    db.close()?;
    drop(db);

    let db = Db::open(dir.path(), Options::new())?;
    assert_eq!(db.get("banana")?.as_deref(), Some(&b"yellow"[..]));
    assert_eq!(db.get("apple")?, None);
    Ok(())
}
