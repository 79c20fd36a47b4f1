//! Collectors of table properties of the application, and what tables have collected.

use crate::boundary::callbacks::{Name, Plain};
use crate::boundary::collectors::{
    Add, CallbackCollectorFactory, CollectorFunctions, Create, EachTable, OfCollector, Property,
    tell_table,
};
use crate::boundary::{call, give};
use crate::db::with_family;
use crate::*;
use esker::Error;
use std::ffi::{c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::Arc;

/// A factory for `rocksdb_options_add_table_properties_collector_factory`. The job that writes a
/// table calls `create` (NULL: this table has no collector), then `add` with every entry, with
/// RocksDB's number of its kind, then `property` with 0, 1 and so on until it returns 0, then
/// `needs_compaction`, which may be missing, and `destroy`. What `property` stores stays the
/// collector's, and has to live until it is called again.
#[unsafe(no_mangle)]
pub extern "C" fn esker_collector_factory_create(
    state: *mut c_void,
    destructor: Plain,
    name: Name,
    create: Option<Create>,
    add: Option<Add>,
    property: Option<Property>,
    needs_compaction: Option<OfCollector>,
    destroy: Plain,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_table_properties_collector_factory_t {
    call(errptr, ptr::null_mut(), || {
        let (Some(create), Some(add), Some(property)) = (create, add, property) else {
            return Err(Error::invalid_argument(
                "a collector needs create, add and property",
            ));
        };
        let functions = CollectorFunctions {
            create,
            add,
            property,
            needs_compaction,
            destroy,
        };
        let factory = CallbackCollectorFactory::new(state, destructor, name, functions);
        Ok(give(rocksdb_table_properties_collector_factory_t {
            factory: Arc::new(factory),
        }))
    })
}

/// Passes each table of a family to `each`, with its path and its properties.
#[unsafe(no_mangle)]
pub extern "C" fn esker_each_table_cf(
    db: *mut rocksdb_t,
    column_family: *const rocksdb_column_family_handle_t,
    state: *mut c_void,
    each: Option<EachTable<rocksdb_table_properties_t>>,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db, family) = with_family(db, column_family)?;
        let tables = db.properties_of_all_tables(family)?;
        for (path, properties) in tables {
            let Some(each) = each else { break };
            let properties = rocksdb_table_properties_t::new(Arc::new(properties));
            tell_table(each, state, path.as_os_str().as_bytes(), &properties);
        }
        Ok(())
    });
}
