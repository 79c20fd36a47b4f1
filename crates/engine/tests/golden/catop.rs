//! The merge operator that the databases were written with: operands joined by commas.

use esker::merge_operator::{Base, FailureScope, Merged};
use esker::{MergeOperator, Options};
use std::sync::Arc;

/// `base,operand,operand`.
pub(crate) struct CatOp;

impl MergeOperator for CatOp {
    fn name(&self) -> &str {
        "CatOp"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope> {
        let base = match base {
            Base::None => None,
            Base::Value(v) => Some(v),
            Base::Entity(_) => return Err(FailureScope::TryMerge),
        };
        let parts: Vec<&[u8]> = base.into_iter().chain(operands.iter().copied()).collect();
        out.extend_from_slice(&parts.join(&b','));
        Ok(Merged::Value)
    }
}

/// Default options with the operator.
pub(crate) fn options() -> Options {
    let mut options = Options::new();
    options.family.merge_operator = Some(Arc::new(CatOp));
    options
}
