//! Collectors of table properties that the application defines, and properties of tables for it.
//!
//! A collector belongs to the job that writes a table, which calls its functions one at a time. The
//! factory is shared by all jobs.

use super::callbacks::{self, Name, Owner, Plain};
use esker::options::{
    CollectorContext, EntryKind, TablePropertiesCollector, TablePropertiesCollectorFactory,
};
use esker_format::Seq;
use esker_sync::Arc;
use std::ffi::{c_char, c_int, c_uchar, c_void};

/// Makes a collector for a table of a family and a level; NULL for none.
pub(crate) type Create = unsafe extern "C" fn(*mut c_void, u32, c_int) -> *mut c_void;
/// Shows an entry.
pub(crate) type Add =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize, c_int, u64, u64);
/// Lends a property by its place; 0 when there is none.
pub(crate) type Property = unsafe extern "C" fn(
    *mut c_void,
    usize,
    *mut *const c_char,
    *mut usize,
    *mut *const c_char,
    *mut usize,
) -> c_uchar;
/// Asks a collector.
pub(crate) type OfCollector = unsafe extern "C" fn(*mut c_void) -> c_uchar;
/// Takes the properties of a table.
pub(crate) type EachTable<T> = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const T);

/// The application's functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CollectorFunctions {
    pub(crate) create: Create,
    pub(crate) add: Add,
    pub(crate) property: Property,
    pub(crate) needs_compaction: Option<OfCollector>,
    pub(crate) destroy: Plain,
}

/// The application's factory.
pub(crate) struct CallbackCollectorFactory {
    owner: Arc<Owner>,
    name: String,
    functions: CollectorFunctions,
}

impl CallbackCollectorFactory {
    pub(crate) fn new(
        state: *mut c_void,
        destructor: Plain,
        name: Name,
        functions: CollectorFunctions,
    ) -> Self {
        let owner = Owner::new(state, destructor);
        CallbackCollectorFactory {
            name: callbacks::name(&owner, name),
            owner: Arc::new(owner),
            functions,
        }
    }
}

impl TablePropertiesCollectorFactory for CallbackCollectorFactory {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self, context: &CollectorContext) -> Option<Box<dyn TablePropertiesCollector>> {
        let level = c_int::from(context.level.0);
        // SAFETY: the application gave the function together with the state.
        let made = unsafe { (self.functions.create)(self.owner.state(), context.family, level) };
        (!made.is_null()).then(|| {
            Box::new(CallbackCollector {
                collector: Owner::new(made, self.functions.destroy),
                functions: self.functions,
                _factory: Arc::clone(&self.owner),
            }) as Box<dyn TablePropertiesCollector>
        })
    }
}

/// A collector of the application.
struct CallbackCollector {
    // Goes before its factory.
    collector: Owner,
    functions: CollectorFunctions,
    // A collector may use it.
    _factory: Arc<Owner>,
}

/// RocksDB's number of a kind of entry.
fn number(kind: EntryKind) -> c_int {
    match kind {
        EntryKind::Put => 0,
        EntryKind::Delete => 1,
        EntryKind::SingleDelete => 2,
        EntryKind::Merge => 3,
        EntryKind::RangeDeletion => 4,
        EntryKind::BlobIndex => 5,
        EntryKind::WideColumnEntity => 7,
        _ => 9,
    }
}

/// A piece that the application lends.
fn lent(bytes: *const c_char, length: usize) -> Vec<u8> {
    super::bytes(bytes, length).to_vec()
}

impl TablePropertiesCollector for CallbackCollector {
    fn add(&mut self, key: &[u8], value: &[u8], kind: EntryKind, seq: Seq, file_size: u64) {
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the application gave the function together with what it made; key and value live
        // through the call.
        unsafe {
            (self.functions.add)(
                self.collector.state(),
                k,
                key.len(),
                v,
                value.len(),
                number(kind),
                seq.0,
                file_size,
            );
        }
    }

    fn finish(&mut self) -> Vec<(String, Vec<u8>)> {
        let mut properties = Vec::new();
        loop {
            let (mut name, mut value) = ((std::ptr::null(), 0), (std::ptr::null(), 0));
            // SAFETY: the application gave the function together with what it made; it fills the
            // places with bytes that live until it is called again.
            let has = unsafe {
                (self.functions.property)(
                    self.collector.state(),
                    properties.len(),
                    &raw mut name.0,
                    &raw mut name.1,
                    &raw mut value.0,
                    &raw mut value.1,
                )
            };
            if has == 0 {
                return properties;
            }
            let name = String::from_utf8_lossy(&lent(name.0, name.1)).into_owned();
            properties.push((name, lent(value.0, value.1)));
        }
    }

    fn needs_compaction(&self) -> bool {
        self.functions.needs_compaction.is_some_and(|ask| {
            // SAFETY: as in `add`.
            unsafe { ask(self.collector.state()) != 0 }
        })
    }
}

/// Shows the properties of a table.
pub(crate) fn tell_table<T>(f: EachTable<T>, state: *mut c_void, path: &[u8], properties: &T) {
    // SAFETY: the application gave the function together with the state; path and properties live
    // through the call.
    unsafe { f(state, path.as_ptr().cast(), path.len(), properties) }
}
