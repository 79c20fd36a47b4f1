//! Scans a range with bounds, and deletes one.
//!
//! `cargo run -p esker --example range_scan`

use esker::{Db, Options, ReadOptions, Result};

fn days(db: &Db, from: &str, until: &str) -> Result<Vec<String>> {
    let mut options = ReadOptions::default();
    options.iterate_lower_bound = Some(from.into());
    options.iterate_upper_bound = Some(until.into());
    let mut it = db.iter_opt(&db.default_family_handle(), options, None);
    let mut out = Vec::new();
    it.seek_to_first();
    while it.valid() {
        out.push(String::from_utf8_lossy(it.key()).into_owned());
        it.next();
    }
    // The end of the data and a failure look alike until the status is asked.
    it.status()?;
    Ok(out)
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    for month in 1..=12 {
        for day in 1..=28 {
            db.put(format!("2026-{month:02}-{day:02}"), "measured")?;
        }
    }
    let march = days(&db, "2026-03", "2026-04")?;
    println!("{} days in March, from {} on", march.len(), march[0]);
    assert_eq!(march.len(), 28);

    // A range deletion costs one write, however many keys it covers.
    db.delete_range_cf(&db.default_family_handle(), "2026-03", "2026-04")?;
    assert!(days(&db, "2026-03", "2026-04")?.is_empty());
    assert_eq!(days(&db, "2026", "2027")?.len(), 11 * 28);
    Ok(())
}
