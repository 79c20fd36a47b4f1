//! A checkpoint: a second database with the contents of one moment, made while writes go on.
//!
//! `cargo run -p esker --example checkpoint`

use esker::{Db, Options, Result};

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (live, copy) = (dir.path().join("live"), dir.path().join("copy"));
    let db = Db::open(&live, Options::new().create_if_missing(true))?;
    for n in 0..10_000u32 {
        db.put(n.to_be_bytes(), "before")?;
    }
    // Tables are shared by hard links: this costs little time and no space.
    db.checkpoint(&copy)?;
    db.put(0u32.to_be_bytes(), "after")?;

    let then = Db::open(&copy, Options::new())?;
    assert_eq!(
        then.get(0u32.to_be_bytes())?.as_deref(),
        Some(&b"before"[..])
    );
    assert_eq!(db.get(0u32.to_be_bytes())?.as_deref(), Some(&b"after"[..]));
    then.verify_checksums()?;
    println!("the checkpoint is sound and holds what was there when it was made");
    drop(then);
    Db::destroy(&copy, &Options::new())?;
    Ok(())
}
