//! Compaction filters that the application defines, and factories that make one for each job.
//! Filters of RocksDB's interface see plain values alone, those of `additions` every kind.
//!
//! Options share a filter with its handle, take a factory over, and a job takes over what the
//! factory gives it.

use crate::boundary::callbacks::{self, Filter, FilterDecision, Name, Owner, Plain, Verdict};
use crate::boundary::{attempt, destroy, exclusive, give, owned, quiet, shared};
use crate::*;
use esker::{CompactionFilter, CompactionFilterFactory, Decision, FilterContext, FilterValue};
use std::ffi::{c_int, c_uchar, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A compaction filter.
pub struct rocksdb_compactionfilter_t {
    filter: Arc<CallbackFilter>,
}

/// Facts about its job that a filter may know.
pub struct rocksdb_compactionfiltercontext_t {
    pub(crate) context: FilterContext,
}

/// A filter's function, of RocksDB's interface or of Esker's additions.
pub(crate) enum FilterFunction {
    Values(Option<Filter>),
    All(Option<FilterDecision>),
}

/// A factory, until options take it over.
pub struct rocksdb_compactionfilterfactory_t {
    factory: Arc<Factory>,
}

struct CallbackFilter {
    owner: Owner,
    name: String,
    filter: FilterFunction,
    ignore_snapshots: AtomicBool,
}

impl CompactionFilter for CallbackFilter {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, level: u8, key: &[u8], value: FilterValue<'_>, out: &mut Vec<u8>) -> Decision {
        match (&self.filter, value) {
            (FilterFunction::Values(Some(filter)), FilterValue::Value(value)) => {
                let level = c_int::from(level);
                match callbacks::filter(*filter, &self.owner, level, (key, value), out) {
                    Verdict::Keep => Decision::Keep,
                    Verdict::Remove => Decision::Remove,
                    Verdict::Change => Decision::ChangeValue,
                }
            }
            (FilterFunction::All(Some(filter)), value) => {
                self.decide(*filter, level, key, value, out)
            }
            _ => Decision::Keep,
        }
    }

    fn ignore_snapshots(&self) -> bool {
        self.ignore_snapshots.load(Ordering::Relaxed)
    }
}

impl CallbackFilter {
    fn decide(
        &self,
        filter: FilterDecision,
        level: u8,
        key: &[u8],
        value: FilterValue<'_>,
        out: &mut Vec<u8>,
    ) -> Decision {
        let (kind, value) = match value {
            FilterValue::Value(value) => (esker_filter_value, value),
            FilterValue::MergeOperand(value) => (esker_filter_merge_operand, value),
            FilterValue::Entity(value) => (esker_filter_entity, value),
        };
        let level = c_int::from(level);
        let told = callbacks::decide(filter, &self.owner, level, (key, kind, value), out);
        match told {
            _ if told == esker_filter_remove => Decision::Remove,
            _ if told == esker_filter_change => Decision::ChangeValue,
            _ if told == esker_filter_skip_until => Decision::RemoveAndSkipUntil,
            _ if told == esker_filter_purge => Decision::Purge,
            _ => Decision::Keep,
        }
    }
}

/// A handle on a filter.
pub(crate) fn create(
    state: *mut c_void,
    destructor: Plain,
    filter: FilterFunction,
    name: Name,
) -> *mut rocksdb_compactionfilter_t {
    quiet(ptr::null_mut(), || {
        let owner = Owner::new(state, destructor);
        let name = callbacks::name(&owner, name);
        give(rocksdb_compactionfilter_t {
            filter: Arc::new(CallbackFilter {
                owner,
                name,
                filter,
                ignore_snapshots: AtomicBool::new(true),
            }),
        })
    })
}

type Make = unsafe extern "C" fn(
    *mut c_void,
    *mut rocksdb_compactionfiltercontext_t,
) -> *mut rocksdb_compactionfilter_t;

struct Factory {
    owner: Owner,
    name: String,
    make: Option<Make>,
}

impl CompactionFilterFactory for Factory {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self, context: &FilterContext) -> Option<Arc<dyn CompactionFilter>> {
        let mut context = rocksdb_compactionfiltercontext_t { context: *context };
        let made = callbacks::make_filter(self.make?, &self.owner, &mut context);
        owned(made).map(|made| made.filter as Arc<dyn CompactionFilter>)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionfilter_create(
    state: *mut c_void,
    destructor: Plain,
    filter: Option<Filter>,
    name: Name,
) -> *mut rocksdb_compactionfilter_t {
    create(state, destructor, FilterFunction::Values(filter), name)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionfilter_set_ignore_snapshots(
    filter: *mut rocksdb_compactionfilter_t,
    value: c_uchar,
) {
    attempt((), || {
        let ignore = &shared(filter)?.filter.ignore_snapshots;
        ignore.store(value != 0, Ordering::Relaxed);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionfilter_destroy(filter: *mut rocksdb_compactionfilter_t) {
    destroy(filter);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionfiltercontext_is_full_compaction(
    context: *mut rocksdb_compactionfiltercontext_t,
) -> c_uchar {
    attempt(0, || {
        Ok(c_uchar::from(shared(context)?.context.is_full_compaction))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionfiltercontext_is_manual_compaction(
    context: *mut rocksdb_compactionfiltercontext_t,
) -> c_uchar {
    attempt(0, || {
        Ok(c_uchar::from(shared(context)?.context.is_manual_compaction))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionfilterfactory_create(
    state: *mut c_void,
    destructor: Plain,
    create_compaction_filter: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut rocksdb_compactionfiltercontext_t,
        ) -> *mut rocksdb_compactionfilter_t,
    >,
    name: Name,
) -> *mut rocksdb_compactionfilterfactory_t {
    quiet(ptr::null_mut(), || {
        let owner = Owner::new(state, destructor);
        let name = callbacks::name(&owner, name);
        give(rocksdb_compactionfilterfactory_t {
            factory: Arc::new(Factory {
                owner,
                name,
                make: create_compaction_filter,
            }),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionfilterfactory_destroy(
    factory: *mut rocksdb_compactionfilterfactory_t,
) {
    destroy(factory);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_compaction_filter(
    options: *mut rocksdb_options_t,
    filter: *mut rocksdb_compactionfilter_t,
) {
    attempt((), || {
        let filter = shared(filter).ok().map(|f| Arc::clone(&f.filter) as _);
        exclusive(options)?.options.family.compaction_filter = filter;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_compaction_filter_factory(
    options: *mut rocksdb_options_t,
    factory: *mut rocksdb_compactionfilterfactory_t,
) {
    attempt((), || {
        let factory = owned(factory).map(|f| f.factory as _);
        exclusive(options)?.options.family.compaction_filter_factory = factory;
        Ok(())
    });
}
