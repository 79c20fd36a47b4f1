//! Merge operators and compaction filters from closures.
//!
//! A closure that panics does not take a job or a database down: a merge that panics has no result,
//! so a read of the key fails and compactions keep the operands; a filter that panics keeps the
//! entry. The panic is told as the program's panic hook tells any.
//!
//! Thread-safety: the closures are called from many threads at once.

use crate::compaction_filter::{CompactionFilter, Decision, FilterValue};
use crate::merge_operator::{Base, FailureScope, MergeOperator, Merged};
use esker_format::wide_column;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A merge operator that a closure is.
struct MergeFn<F> {
    name: String,
    merge: F,
}

impl<F> MergeOperator for MergeFn<F>
where
    F: Fn(&[u8], Option<&[u8]>, &[&[u8]]) -> Option<Vec<u8>> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope> {
        let base = match base {
            Base::None => None,
            Base::Value(value) => Some(value),
            Base::Entity(entity) => wide_column::decode(entity)
                .ok()
                .and_then(|columns| columns.first().map(|c| (c.name, c.value)))
                .and_then(|(name, value)| name.is_empty().then_some(value)),
        };
        let merged = catch_unwind(AssertUnwindSafe(|| (self.merge)(key, base, operands)));
        match merged {
            Ok(Some(value)) => {
                *out = value;
                Ok(Merged::Value)
            }
            Ok(None) | Err(_) => Err(FailureScope::MustMerge),
        }
    }
}

/// A merge operator called `name`: `merge` is given the key, the value under the operands, if there
/// is one, and the operands, oldest first, and returns the new value.
///
/// It must be deterministic, and give the same for operands that arrive in several calls. Where it
/// returns `None` or panics, a read of the key fails; the operands stay as they are, and no write
/// is touched.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::{Db, Options, merge_operator};
///
/// let longest = merge_operator::from_fn("longest", |_key, value, operands| {
///     let all = value.into_iter().chain(operands.iter().copied());
///     all.max_by_key(|v| v.len()).map(<[u8]>::to_vec)
/// });
/// let options = Options::new().create_if_missing(true).merge_operator(longest);
/// let db = Db::open(dir.path(), options)?;
/// db.merge("name", "Jo")?;
/// db.merge("name", "Joanna")?;
/// db.merge("name", "Ann")?;
/// assert_eq!(db.get("name")?.as_deref(), Some(&b"Joanna"[..]));
/// # Ok(())
/// # }
/// ```
pub fn merge_from_fn<F>(name: &str, merge: F) -> Arc<dyn MergeOperator>
where
    F: Fn(&[u8], Option<&[u8]>, &[&[u8]]) -> Option<Vec<u8>> + Send + Sync + 'static,
{
    Arc::new(MergeFn {
        name: name.to_owned(),
        merge,
    })
}

/// A compaction filter that a closure is.
struct FilterFn<F> {
    name: String,
    decide: F,
}

impl<F> CompactionFilter for FilterFn<F>
where
    F: Fn(u8, &[u8], &[u8]) -> Decision + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, level: u8, key: &[u8], value: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        let FilterValue::Value(value) = value else {
            return Decision::Keep;
        };
        let decided = catch_unwind(AssertUnwindSafe(|| (self.decide)(level, key, value)));
        match decided {
            Ok(decision @ (Decision::Remove | Decision::Purge)) => decision,
            _ => Decision::Keep,
        }
    }
}

/// A compaction filter called `name`: `decide` is given the level that an entry goes to, its key
/// and its value, and says whether it stays.
///
/// It is asked for plain values; merge operands and entities stay. Decisions that need more than a
/// yes or no are taken as [`Decision::Keep`]: implement [`CompactionFilter`] for those. An entry
/// for which it panics stays.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::{Db, Decision, Options, compaction_filter};
///
/// let filter = compaction_filter::from_fn("no empty values", |_level, _key, value| {
///     if value.is_empty() { Decision::Remove } else { Decision::Keep }
/// });
/// let options = Options::new().create_if_missing(true).compaction_filter(filter);
/// let db = Db::open(dir.path(), options)?;
/// db.put("empty", "")?;
/// db.put("full", "value")?;
/// db.compact_range(None, None)?;
/// assert_eq!(db.keys().count(), 1);
/// # Ok(())
/// # }
/// ```
pub fn filter_from_fn<F>(name: &str, decide: F) -> Arc<dyn CompactionFilter>
where
    F: Fn(u8, &[u8], &[u8]) -> Decision + Send + Sync + 'static,
{
    Arc::new(FilterFn {
        name: name.to_owned(),
        decide,
    })
}

/// A shared operator is one.
impl<M: MergeOperator + ?Sized> MergeOperator for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }
    fn full_merge(
        &self,
        key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope> {
        (**self).full_merge(key, base, operands, out)
    }
    fn partial_merge(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> bool {
        (**self).partial_merge(key, operands, out)
    }
    fn allow_single_operand(&self) -> bool {
        (**self).allow_single_operand()
    }
    fn should_merge(&self, operands: &dyn crate::merge_operator::Operands) -> bool {
        (**self).should_merge(operands)
    }
    fn understands_entities(&self) -> bool {
        (**self).understands_entities()
    }
}

/// A shared filter is one.
impl<F: CompactionFilter + ?Sized> CompactionFilter for Arc<F> {
    fn name(&self) -> &str {
        (**self).name()
    }
    fn filter(&self, level: u8, key: &[u8], value: FilterValue<'_>, out: &mut Vec<u8>) -> Decision {
        (**self).filter(level, key, value, out)
    }
    fn filter_blob_by_key(&self, level: u8, key: &[u8], out: &mut Vec<u8>) -> Option<Decision> {
        (**self).filter_blob_by_key(level, key, out)
    }
    fn ignore_snapshots(&self) -> bool {
        (**self).ignore_snapshots()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_operator::full_merge;

    #[test]
    fn a_merge_that_panics_or_has_no_result_fails_what_must_have_it() {
        let operator = merge_from_fn("picky", |_, _, operands| {
            assert_ne!(operands[0], b"panic");
            (operands[0] != b"none").then(|| operands.concat())
        });
        let mut out = Vec::new();
        for bad in [&b"panic"[..], b"none"] {
            let failed = full_merge(&*operator, b"k", Base::None, &[bad], &mut out);
            let scope = failed.expect_err("there is no result").scope;
            assert_eq!(scope, FailureScope::MustMerge);
        }
        full_merge(&*operator, b"k", Base::None, &[b"a", b"b"], &mut out).expect("merges");
        assert_eq!(out, b"ab");
    }

    #[test]
    fn a_filter_that_panics_keeps_the_entry() {
        let filter = filter_from_fn("picky", |_, key, _| {
            assert_ne!(key, b"panic");
            Decision::Remove
        });
        let mut out = Vec::new();
        let mut decide = |key, value| filter.filter(1, key, value, &mut out);
        assert_eq!(decide(b"panic", FilterValue::Value(b"v")), Decision::Keep);
        assert_eq!(decide(b"other", FilterValue::Value(b"v")), Decision::Remove);
        let operand = FilterValue::MergeOperand(b"v");
        assert_eq!(decide(b"other", operand), Decision::Keep);
    }
}
