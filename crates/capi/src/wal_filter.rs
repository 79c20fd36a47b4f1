//! Filters of the log that the application defines.
//!
//! Options share a filter with its handle. It is asked by the thread that opens the database.

use crate::boundary::callbacks::{self, Name, Owner, Plain};
use crate::boundary::{attempt, destroy, exclusive, give, quiet, shared};
use crate::*;
use esker::{WalDecision, WalFilter, WriteBatch};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// A filter of the log.
pub struct rocksdb_walfilter_t {
    filter: Arc<Filter>,
}

struct Filter {
    owner: Owner,
    name: String,
    families: rocksdb_walfilter_column_family_log_number_map_cb,
    record: rocksdb_walfilter_log_record_found_cb,
}

impl WalFilter for Filter {
    fn name(&self) -> &str {
        &self.name
    }

    fn families(&self, logs: &BTreeMap<u32, u64>, numbers: &BTreeMap<String, u32>) {
        let Some(f) = self.families else { return };
        let (ids, logs): (Vec<u32>, Vec<u64>) = logs.iter().unzip();
        let names: Vec<*const c_char> = numbers.keys().map(|n| n.as_ptr().cast()).collect();
        let lengths: Vec<usize> = numbers.keys().map(String::len).collect();
        let name_ids: Vec<u32> = numbers.values().copied().collect();
        callbacks::tell_families(f, &self.owner, (&ids, &logs), (&names, &lengths, &name_ids));
    }

    fn record(&self, number: u64, file_name: &str, batch: &WriteBatch) -> WalDecision {
        let Some(f) = self.record else {
            return WalDecision::Continue;
        };
        let batch = rocksdb_writebatch_t::new(batch.clone());
        let mut new = rocksdb_writebatch_t::default();
        let (option, is_changed) =
            callbacks::ask_record(f, &self.owner, (number, file_name), &batch, &mut new);
        match option {
            0 if is_changed => WalDecision::Replace(new.batch),
            0 => WalDecision::Continue,
            1 => WalDecision::Ignore,
            2 => WalDecision::Stop,
            _ => WalDecision::Corrupted,
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_walfilter_create(
    state: *mut c_void,
    destructor: Plain,
    column_family_log_number_map: rocksdb_walfilter_column_family_log_number_map_cb,
    log_record_found: rocksdb_walfilter_log_record_found_cb,
    name: Name,
) -> *mut rocksdb_walfilter_t {
    quiet(ptr::null_mut(), || {
        let owner = Owner::new(state, destructor);
        let name = callbacks::name(&owner, name);
        give(rocksdb_walfilter_t {
            filter: Arc::new(Filter {
                owner,
                name,
                families: column_family_log_number_map,
                record: log_record_found,
            }),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_walfilter_destroy(walfilter: *mut rocksdb_walfilter_t) {
    destroy(walfilter);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_wal_filter(
    options: *mut rocksdb_options_t,
    walfilter: *mut rocksdb_walfilter_t,
) {
    attempt((), || {
        let filter = shared(walfilter).ok().map(|f| Arc::clone(&f.filter) as _);
        exclusive(options)?.options.db.wal_filter = filter;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_clear_wal_filter(options: *mut rocksdb_options_t) {
    attempt((), || {
        exclusive(options)?.options.db.wal_filter = None;
        Ok(())
    });
}
