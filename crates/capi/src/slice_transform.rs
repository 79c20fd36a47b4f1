//! Prefix extractors: the built-in ones and those that the application defines.
//!
//! Until version 10 `rocksdb_slicetransform_create` took six arguments, the fifth of which nobody
//! read and bindings passed as NULL. What is exported takes six, and the name is the fifth, or the
//! sixth where the fifth is NULL: a caller of either version is served. A C caller of six arguments
//! must pass NULL.

use crate::boundary::callbacks::{self, InDomain, Name, Owner, Plain, Transform};
use crate::boundary::{attempt, destroy, exclusive, give, owned, quiet};
use crate::*;
use esker::options::{PrefixExtractor, SliceTransform};
use std::ffi::{c_char, c_uchar, c_void};
use std::ptr;
use std::sync::Arc;

/// A prefix extractor, until options take it over.
pub struct rocksdb_slicetransform_t {
    pub(crate) extractor: PrefixExtractor,
}

struct CallbackTransform {
    owner: Owner,
    name: String,
    transform: Option<Transform>,
    in_domain: Option<InDomain>,
}

impl SliceTransform for CallbackTransform {
    fn name(&self) -> &str {
        &self.name
    }

    /// Returns the application's prefix. An answer that is no prefix of the key counts as the empty
    /// one, which every key has.
    fn transform<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        let length = self
            .transform
            .and_then(|t| callbacks::prefix_length(t, &self.owner, key));
        &key[..length.unwrap_or(0)]
    }

    fn in_domain(&self, key: &[u8]) -> bool {
        self.in_domain
            .is_some_and(|f| callbacks::in_domain(f, &self.owner, key))
    }
}

/// As declared since version 10.
pub extern "C" fn rocksdb_slicetransform_create(
    state: *mut c_void,
    destructor: Plain,
    transform: Option<
        unsafe extern "C" fn(*mut c_void, *const c_char, usize, *mut usize) -> *mut c_char,
    >,
    in_domain: Option<unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> c_uchar>,
    name: Name,
) -> *mut rocksdb_slicetransform_t {
    slicetransform_create(state, destructor, transform, in_domain, name, None)
}

/// The function that is exported under that name.
// SAFETY: no other function is exported under the name, and the sixth argument, which callers of
// five leave unset, is used only where the fifth is NULL, as callers of six pass it.
#[unsafe(export_name = "rocksdb_slicetransform_create")]
extern "C" fn slicetransform_create(
    state: *mut c_void,
    destructor: Plain,
    transform: Option<Transform>,
    in_domain: Option<InDomain>,
    fifth: Name,
    sixth: Name,
) -> *mut rocksdb_slicetransform_t {
    quiet(ptr::null_mut(), || {
        let owner = Owner::new(state, destructor);
        let name = callbacks::name(&owner, fifth.or(sixth));
        give(rocksdb_slicetransform_t {
            extractor: PrefixExtractor::Custom(Arc::new(CallbackTransform {
                owner,
                name,
                transform,
                in_domain,
            })),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_slicetransform_create_fixed_prefix(
    length: usize,
) -> *mut rocksdb_slicetransform_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_slicetransform_t {
            extractor: PrefixExtractor::Fixed(length),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_slicetransform_create_noop() -> *mut rocksdb_slicetransform_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_slicetransform_t {
            extractor: PrefixExtractor::Noop,
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_slicetransform_destroy(slicetransform: *mut rocksdb_slicetransform_t) {
    destroy(slicetransform);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_prefix_extractor(
    options: *mut rocksdb_options_t,
    slicetransform: *mut rocksdb_slicetransform_t,
) {
    attempt((), || {
        let extractor = owned(slicetransform).map(|s| s.extractor);
        exclusive(options)?.options.family.prefix_extractor = extractor;
        Ok(())
    });
}
