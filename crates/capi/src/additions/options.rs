//! Options by name, one at a time, and the options and statistics of an open database.

use crate::boundary::{attempt, call, exclusive, give, malloc_text, shared, text};
use crate::db::with_family;
use crate::*;
use esker::options::{DbOptions, FamilyOptions, OptionSet, Options, TableSettings};
use esker::{Error, Result};
use std::ffi::{c_char, c_int};
use std::ptr;

/// The structs whose members have names, by `esker_options_of_...`.
enum Part {
    Database,
    Family,
    Table,
}

impl Part {
    fn from_number(number: c_int) -> Result<Part> {
        Ok(match number {
            _ if number == esker_options_of_database => Part::Database,
            _ if number == esker_options_of_family => Part::Family,
            _ if number == esker_options_of_table => Part::Table,
            _ => {
                let told = format!("{number} is not a part of the options");
                return Err(Error::invalid_argument(told));
            }
        })
    }
}

/// The value of one name, or of one member of a struct: `compression_opts.level`.
fn value_of<S: OptionSet>(options: &S, name: &str) -> Result<String> {
    let unknown = || Error::invalid_argument(format!("no option is called {name}"));
    let Some((name, member)) = name.split_once('.') else {
        return options.get(name).ok_or_else(unknown);
    };
    let all = options.get(name).ok_or_else(unknown)?;
    let members = esker_format::options_text::parse_pairs(&all)?;
    let found = members.into_iter().find(|(m, _)| m == member);
    found.map(|(_, value)| value).ok_or_else(unknown)
}

/// Sets one option by its name. A value of the wrong type and an unknown name are errors and leave
/// the options as they were.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set(
    options: *mut rocksdb_options_t,
    part: c_int,
    name: *const c_char,
    value: *const c_char,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let options = &mut exclusive(options)?.options;
        let (name, value) = (text(name)?, text(value)?);
        match Part::from_number(part)? {
            Part::Database => DbOptions::set(&mut options.db, name, value),
            Part::Family => FamilyOptions::set(&mut options.family, name, value),
            Part::Table => TableSettings::set(&mut options.family.table, name, value),
        }
    });
}

/// The value of one option as text, which the caller frees.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_get(
    options: *const rocksdb_options_t,
    part: c_int,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    call(errptr, ptr::null_mut(), || {
        let (options, name) = (&shared(options)?.options, text(name)?);
        let value = match Part::from_number(part)? {
            Part::Database => value_of(&options.db, name)?,
            Part::Family => value_of(&options.family, name)?,
            Part::Table => value_of(&options.family.table, name)?,
        };
        Ok(malloc_text(&value))
    })
}

/// Options as they are now in an open database and one of its families.
#[unsafe(no_mangle)]
pub extern "C" fn esker_current_options(
    db: *mut rocksdb_t,
    column_family: *const rocksdb_column_family_handle_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_options_t {
    call(errptr, ptr::null_mut(), || {
        let (db, family) = with_family(db, column_family)?;
        let mut options = Options::new();
        options.db = db.db_options();
        options.family = family.options();
        Ok(give(rocksdb_options_t::new(options)))
    })
}

/// Makes databases that are opened with `options` count into the statistics of `from`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_share_statistics(
    options: *mut rocksdb_options_t,
    from: *const rocksdb_options_t,
) {
    attempt((), || {
        let statistics = shared(from)?.options.db.statistics.clone();
        exclusive(options)?.options.db.statistics = statistics;
        Ok(())
    });
}

/// Sets all counters and histograms to zero.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_reset_statistics(options: *mut rocksdb_options_t) {
    attempt((), || {
        if let Some(statistics) = &shared(options)?.options.db.statistics {
            statistics.reset();
        }
        Ok(())
    });
}

/// The count of one counter, which is zero afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_take_ticker(options: *mut rocksdb_options_t, ticker: u32) -> u64 {
    attempt(0, || {
        let statistics = shared(options)?.options.db.statistics.as_ref();
        let ticker = esker::observe::Ticker::from_number(ticker);
        Ok(statistics.zip(ticker).map_or(0, |(s, t)| s.take_ticker(t)))
    })
}
