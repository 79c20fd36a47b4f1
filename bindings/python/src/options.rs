//! Options by RocksDB's names, as Python gives them: keyword arguments and dictionaries.

use crate::errors::{invalid, of_engine, wrong_type};
use esker::observe::Statistics;
use esker::options::{BottommostLevelCompaction, OptionSet, ReadTier};
use esker::{
    CompactRangeOptions, DbOptions, FamilyOptions, FlushOptions, Options, ReadOptions, WriteOptions,
};
use esker_txn::{TransactionDbOptions, TransactionOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Keyword arguments.
pub(crate) type NamedOptions<'py> = Bound<'py, PyDict>;

/// A value as RocksDB's text of options has it.
fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_none() {
        return Ok("nullptr".to_owned());
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().to_string());
    }
    let is_number = value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>();
    if is_number || value.is_instance_of::<PyString>() {
        return Ok(value.str()?.to_cow()?.into_owned());
    }
    if let Ok(members) = value.cast::<PyDict>() {
        let mut out = String::from("{");
        for (name, member) in members {
            let name: String = name.extract()?;
            let member = text(&name, &member)?;
            let is_bare = !member.contains([';', '=']) || member.starts_with('{');
            let member = if is_bare {
                member
            } else {
                format!("{{{member}}}")
            };
            out += &format!("{name}={member};");
        }
        return Ok(out + "}");
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let parts = value.try_iter()?.map(|part| text(name, &part?));
        return Ok(parts.collect::<PyResult<Vec<String>>>()?.join(":"));
    }
    if let Ok(path) = value.extract::<std::path::PathBuf>() {
        return Ok(path.to_string_lossy().into_owned());
    }
    let wanted = "text, a number, a truth value, a path, a list or a dictionary";
    Err(wrong_type(name, wanted, value))
}

/// The name and the text of each option.
pub(crate) fn texts(given: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    let pair = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        let value = text(&name, &value)?;
        Ok((name, value))
    };
    given.iter().map(pair).collect()
}

/// Sets options of a database and of its default family.
pub(crate) fn apply(options: &mut Options, given: &Bound<'_, PyDict>) -> PyResult<()> {
    let py = given.py();
    for (name, value) in given {
        let name: String = name.extract()?;
        if name == "statistics" {
            options.db.statistics = value.is_truthy()?.then(Statistics::new);
            continue;
        }
        let value = text(&name, &value)?;
        options
            .set_in_place(&name, &value)
            .map_err(|error| of_engine(py, &error))?;
    }
    Ok(())
}

/// Options of a family that is opened or created: those of `base` with what is given.
pub(crate) fn family(
    base: &FamilyOptions,
    given: Option<&NamedOptions<'_>>,
) -> PyResult<FamilyOptions> {
    let mut options = Options::new();
    options.family = base.clone();
    let Some(given) = given else {
        return Ok(options.family);
    };
    let py = given.py();
    for (name, value) in texts(given)? {
        let head = name.split('.').next().unwrap_or(&name);
        if DbOptions::entry(head).is_some() {
            return Err(invalid(
                py,
                format!("{name} is no option of a column family"),
            ));
        }
        options
            .set_in_place(&name, &value)
            .map_err(|error| of_engine(py, &error))?;
    }
    Ok(options.family)
}

/// Fills fields of options from keyword arguments of the same names.
macro_rules! fill {
    ($options:ident, $given:ident, $what:literal, [$($name:ident),* $(,)?]
        $(, $special:literal => |$value:ident| $set:expr)* $(,)?) => {
        for (name, value) in $given {
            let name: String = name.extract()?;
            let named = |error: PyErr| {
                let py = value.py();
                pyo3::exceptions::PyTypeError::new_err(format!("{name}: {}", error.value(py)))
            };
            match name.as_str() {
                $(stringify!($name) => $options.$name = value.extract().map_err(named)?,)*
                $($special => { let $value = &value; $set })*
                _ => {
                    let known = [$(stringify!($name),)* $($special),*].join(", ");
                    let message = format!("{name} is no option of {}; these are: {known}", $what);
                    return Err(invalid(value.py(), message));
                }
            }
        }
    };
}

/// How to read.
pub(crate) fn read(given: Option<&NamedOptions<'_>>) -> PyResult<ReadOptions> {
    let mut options = ReadOptions::default();
    let Some(given) = given else {
        return Ok(options);
    };
    fill!(options, given, "a read", [
        verify_checksums, fill_cache, iterate_lower_bound, iterate_upper_bound,
        prefix_same_as_start, total_order_seek, auto_prefix_mode, tailing,
        ignore_range_deletions, readahead_size, auto_readahead_size, adaptive_readahead, async_io,
        max_skippable_internal_keys, value_size_soft_limit, timestamp,
    ], "read_tier" => |value| {
        let tier = ReadTier::from_number(value.extract()?);
        options.read_tier = tier.ok_or_else(|| invalid(value.py(), "read_tier is 0 to 3"))?;
    });
    Ok(options)
}

/// How to write.
pub(crate) fn write(given: Option<&NamedOptions<'_>>) -> PyResult<WriteOptions> {
    let mut options = WriteOptions::default();
    let Some(given) = given else {
        return Ok(options);
    };
    fill!(options, given, "a write", [
        sync, disable_wal, ignore_missing_column_families, no_slowdown, low_pri,
    ], "disableWAL" => |value| options.disable_wal = value.extract()?);
    Ok(options)
}

/// How to flush.
pub(crate) fn flush(given: Option<&NamedOptions<'_>>) -> PyResult<FlushOptions> {
    let mut options = FlushOptions::default();
    let Some(given) = given else {
        return Ok(options);
    };
    fill!(options, given, "a flush", [wait, allow_write_stall]);
    Ok(options)
}

/// How to compact a range.
pub(crate) fn compact_range(given: Option<&NamedOptions<'_>>) -> PyResult<CompactRangeOptions> {
    let mut options = CompactRangeOptions::default();
    let Some(given) = given else {
        return Ok(options);
    };
    fill!(options, given, "a compaction", [
        exclusive_manual_compaction, change_level, target_level, allow_write_stall,
        max_subcompactions, target_path_id,
    ], "bottommost_level_compaction" => |value| {
        let choice = BottommostLevelCompaction::from_number(value.extract()?);
        options.bottommost_level_compaction = choice.ok_or_else(|| {
            invalid(value.py(), "bottommost_level_compaction is 0 to 3")
        })?;
    });
    Ok(options)
}

/// How a database keeps the locks of transactions.
pub(crate) fn transaction_db(given: Option<&NamedOptions<'_>>) -> PyResult<TransactionDbOptions> {
    let mut options = TransactionDbOptions::default();
    let Some(given) = given else {
        return Ok(options);
    };
    fill!(
        options,
        given,
        "a TransactionDB",
        [
            max_num_locks,
            max_num_deadlocks,
            num_stripes,
            transaction_lock_timeout,
            default_lock_timeout,
            skip_concurrency_control,
            rollback_merge_operands,
        ]
    );
    Ok(options)
}

/// How a transaction works that locks keys, and how it writes.
pub(crate) fn transaction(
    given: Option<&NamedOptions<'_>>,
) -> PyResult<(TransactionOptions, WriteOptions)> {
    let mut options = TransactionOptions::default();
    let mut writes = WriteOptions::default();
    let Some(given) = given else {
        return Ok((options, writes));
    };
    fill!(options, given, "a transaction", [
        set_snapshot, deadlock_detect, lock_timeout, expiration, deadlock_detect_depth,
        max_write_batch_size, skip_concurrency_control, skip_prepare,
    ],
        "sync" => |value| writes.sync = value.extract()?,
        "disable_wal" => |value| writes.disable_wal = value.extract()?,
        "no_slowdown" => |value| writes.no_slowdown = value.extract()?,
        "low_pri" => |value| writes.low_pri = value.extract()?,
    );
    Ok((options, writes))
}
