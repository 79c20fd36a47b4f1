//! A compaction filter: entries that expire are dropped when their tables are rewritten anyway.
//!
//! `cargo run -p esker --example compaction_filter`

use esker::{CompactionFilter, Db, Decision, FilterValue, Options, Result};
use std::sync::Arc;

/// Values begin with the second at which they expire, eight bytes big-endian.
struct Expiry {
    now: u64,
}

impl CompactionFilter for Expiry {
    fn name(&self) -> &str {
        "example.Expiry"
    }

    fn filter(
        &self,
        _level: u8,
        _key: &[u8],
        value: FilterValue<'_>,
        _out: &mut Vec<u8>,
    ) -> Decision {
        match value {
            FilterValue::Value(v) => match v.first_chunk() {
                Some(expires) if u64::from_be_bytes(*expires) <= self.now => Decision::Remove,
                _ => Decision::Keep,
            },
            _ => Decision::Keep,
        }
    }
}

fn value(expires: u64, text: &str) -> Vec<u8> {
    [&expires.to_be_bytes(), text.as_bytes()].concat()
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut options = Options::new().create_if_missing(true);
    options.family.compaction_filter = Some(Arc::new(Expiry { now: 1_000 }));
    let db = Db::open(dir.path(), options)?;
    db.put("session/1", value(900, "old"))?;
    db.put("session/2", value(1_100, "fresh"))?;
    // Compactions come by themselves as data grows; this one is asked for.
    db.compact_range(None, None)?;

    assert_eq!(db.get("session/1")?, None);
    assert!(db.get("session/2")?.is_some());
    println!("session 1 has expired, session 2 has not");
    Ok(())
}
