//! Merge operators that the application defines.
//!
//! Options take an operator over when it is set; its destructor runs when the last options and the
//! last database that use it are gone.

use crate::boundary::callbacks::{self, DeleteValue, FullMerge, Name, Owner, PartialMerge, Plain};
use crate::boundary::{attempt, destroy, exclusive, give, owned, quiet};
use crate::*;
use esker::MergeOperator;
use esker::merge_operator::{Base, FailureScope, Merged, UInt64Add};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// A merge operator, until options take it over.
pub struct rocksdb_mergeoperator_t {
    operator: Arc<dyn MergeOperator>,
}

struct Operator {
    owner: Owner,
    name: String,
    full: Option<FullMerge>,
    partial: Option<PartialMerge>,
    delete: Option<DeleteValue>,
}

impl MergeOperator for Operator {
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
            Base::Value(value) => Some(value),
            Base::None | Base::Entity(_) => None,
        };
        let full = self.full.ok_or(FailureScope::TryMerge)?;
        if callbacks::full_merge(full, self.delete, &self.owner, (key, base, operands), out) {
            Ok(Merged::Value)
        } else {
            Err(FailureScope::TryMerge)
        }
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> bool {
        self.partial.is_some_and(|partial| {
            callbacks::partial_merge(partial, self.delete, &self.owner, (key, operands), out)
        })
    }
}

/// Without a full merge every merge fails; without a partial one operands are never combined.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_mergeoperator_create(
    state: *mut c_void,
    destructor: Plain,
    full_merge: Option<FullMerge>,
    partial_merge: Option<PartialMerge>,
    delete_value: Option<DeleteValue>,
    name: Name,
) -> *mut rocksdb_mergeoperator_t {
    quiet(ptr::null_mut(), || {
        let owner = Owner::new(state, destructor);
        let name = callbacks::name(&owner, name);
        give(rocksdb_mergeoperator_t {
            operator: Arc::new(Operator {
                owner,
                name,
                full: full_merge,
                partial: partial_merge,
                delete: delete_value,
            }),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_mergeoperator_destroy(operator: *mut rocksdb_mergeoperator_t) {
    destroy(operator);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_merge_operator(
    options: *mut rocksdb_options_t,
    operator: *mut rocksdb_mergeoperator_t,
) {
    attempt((), || {
        let operator = owned(operator).map(|o| o.operator);
        exclusive(options)?.options.family.merge_operator = operator;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_uint64add_merge_operator(options: *mut rocksdb_options_t) {
    attempt((), || {
        exclusive(options)?.options.family.merge_operator = Some(Arc::new(UInt64Add));
        Ok(())
    });
}
