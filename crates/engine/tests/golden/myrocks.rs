//! Directories of MyRocks, which RocksDB 6.29 wrote (`bindings/cxx/tests/myrocks --golden`): both
//! orders have names of MyRocks' own.

use super::catop;
use super::set::{GoldenSet, copy_of};
use esker::{Comparator, Db, FamilyDescriptor, KeyOrder, Options, Result};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

/// An order of bytes under the name that MyRocks gave it.
struct SqlOrder {
    reverse: bool,
}

impl Comparator for SqlOrder {
    fn name(&self) -> &str {
        if self.reverse {
            "rev:RocksDB_SE_v3.10"
        } else {
            "RocksDB_SE_v3.10"
        }
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.reverse { b.cmp(a) } else { a.cmp(b) }
    }

    fn can_keys_with_different_bytes_be_equal(&self) -> bool {
        false
    }
}

/// Returns whether MyRocks wrote the databases of this version of the set.
fn is_of_myrocks(version: &str) -> bool {
    version == "6.29"
}

/// The families of a directory of MyRocks.
fn families(dir: &Path, options: &Options) -> Result<Vec<FamilyDescriptor>> {
    let family = |name: String| {
        let reverse = name.starts_with("rev:");
        let mut of_family = options.family.clone();
        of_family.comparator = KeyOrder::Custom(Arc::new(SqlOrder { reverse }));
        FamilyDescriptor::new(name, of_family)
    };
    let names = Db::list_families(dir, options)?;
    Ok(names.into_iter().map(family).collect())
}

/// Opens a database of the set, of whichever version; those of MyRocks in two phases, as it does.
pub(crate) fn open(dir: &Path, version: &str) -> Result<Db> {
    let options = catop::options();
    if is_of_myrocks(version) {
        let options = options.set("allow_2pc", "true")?;
        let families = families(dir, &options)?;
        return Db::open_families(dir, options, families);
    }
    Db::open(dir, options)
}

/// As [`open`], for reading only.
pub(crate) fn open_read_only(dir: &Path, version: &str) -> Result<Db> {
    let options = catop::options();
    if is_of_myrocks(version) {
        let families = families(dir, &options)?;
        return Db::open_families_read_only(dir, options, families);
    }
    Db::open_read_only(dir, options)
}

/// A transaction that MyRocks prepared before it was killed is still prepared; the one that it
/// committed is not.
#[test]
fn a_prepared_transaction_of_myrocks_is_still_prepared() -> Result<()> {
    let Some(golden) = GoldenSet::find() else {
        return Ok(());
    };
    if !golden.expected().iter().any(|e| is_of_myrocks(&e.version)) {
        println!("SKIPPED: the set has no databases of MyRocks");
        return Ok(());
    }
    let copy = copy_of(&golden.database("6.29", "prepared"));
    let options = catop::options().set("allow_2pc", "true")?;
    let families = families(copy.path(), &options)?;
    let db = Db::open_families(copy.path(), options, families)?;
    let prepared = db.take_prepared_transactions();
    let names: Vec<_> = prepared
        .iter()
        .map(|(name, _)| name.escape_ascii().to_string())
        .collect();
    assert!(names.len() == 1 && names[0].contains("one"), "{names:?}");
    db.close()
}
