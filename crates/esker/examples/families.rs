//! Column families: key spaces of one database with options of their own, written together
//! atomically.
//!
//! `cargo run -p esker --example families`

use esker::{Db, FamilyDescriptor, FamilyOptions, Options, Result};

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    let users = db.create_family("users", FamilyOptions::default())?;
    let mut small = FamilyOptions::default();
    small.write_buffer_size = 4 << 20;
    let sessions = db.create_family("sessions", small.clone())?;
    db.put_cf(&users, "7", "Ada")?;
    db.put_cf(&sessions, "7", "online")?;
    assert_eq!(
        db.get("7")?,
        None,
        "the default family is another key space"
    );
    db.drop_family(&sessions)?;
    drop((users, sessions));
    drop(db);

    println!(
        "families: {:?}",
        Db::list_families(dir.path(), &Options::new())?
    );
    // Each family may be opened with options of its own; all that exist must be named.
    let families = vec![
        FamilyDescriptor::new("default", FamilyOptions::default()),
        FamilyDescriptor::new("users", small),
    ];
    let db = Db::open_families(dir.path(), Options::new(), families)?;
    let users = db.family("users").expect("it was named");
    let name = db.get_cf(&users, "7")?.unwrap_or_default();
    println!("user 7 is {}", String::from_utf8_lossy(&name));
    assert_eq!(name, b"Ada");
    Ok(())
}
