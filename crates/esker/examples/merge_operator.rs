//! A merge operator of the application's own: counters that are added to without being read first.
//!
//! `cargo run -p esker --example merge_operator`

use esker::merge_operator::{Base, FailureScope, Merged};
use esker::{Db, MergeOperator, Options, Result};
use std::sync::Arc;

/// Adds decimal numbers.
struct Sum;

fn number(text: &[u8]) -> Result<i64, FailureScope> {
    let text = std::str::from_utf8(text).map_err(|_| FailureScope::TryMerge)?;
    text.parse().map_err(|_| FailureScope::TryMerge)
}

impl MergeOperator for Sum {
    fn name(&self) -> &str {
        "example.Sum"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope> {
        let mut sum = match base {
            Base::Value(v) => number(v)?,
            _ => 0,
        };
        for operand in operands {
            sum += number(operand)?;
        }
        out.extend_from_slice(sum.to_string().as_bytes());
        Ok(Merged::Value)
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> bool {
        self.full_merge(key, Base::None, operands, out).is_ok()
    }
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut options = Options::new().create_if_missing(true);
    options.family.merge_operator = Some(Arc::new(Sum));
    let db = Db::open(dir.path(), options)?;
    for n in 1..=100 {
        db.merge("visits", n.to_string())?;
    }
    db.flush()?;
    db.merge("visits", "-50")?;
    let visits = db.get("visits")?.unwrap_or_default();
    println!("visits: {}", visits.escape_ascii());
    assert_eq!(visits, b"5000");
    Ok(())
}
