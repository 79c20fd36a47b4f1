//! A comparator of the application's own: keys in an order other than that of their bytes.
//!
//! The order is part of the data: its name is stored, and the database opens only with the same
//! one.
//!
//! `cargo run -p esker --example custom_comparator`

use esker::{Comparator, Db, KeyOrder, Options, Result};
use std::cmp::Ordering;
use std::sync::Arc;

/// Decimal numbers by value: 9 before 10. Shorter numbers are smaller, and keys have no leading
/// zeros.
struct ByNumber;

impl Comparator for ByNumber {
    fn name(&self) -> &str {
        "example.ByNumber"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }

    fn can_keys_with_different_bytes_be_equal(&self) -> bool {
        false
    }
}

fn options() -> Options {
    let mut options = Options::new().create_if_missing(true);
    options.family.comparator = KeyOrder::Custom(Arc::new(ByNumber));
    options
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path(), options())?;
    for n in [100, 9, 25, 1, 10] {
        db.put(n.to_string(), "")?;
    }
    db.flush()?;
    let mut it = db.iter();
    let mut seen = Vec::new();
    it.seek_to_first();
    while it.valid() {
        seen.push(String::from_utf8_lossy(it.key()).into_owned());
        it.next();
    }
    it.status()?;
    println!("{seen:?}");
    assert_eq!(seen, ["1", "9", "10", "25", "100"]);
    drop(it);
    drop(db);

    let refused = Db::open(dir.path(), Options::new()).expect_err("another order");
    println!("with the default order: {refused}");
    Db::open(dir.path(), options())?.close()
}
