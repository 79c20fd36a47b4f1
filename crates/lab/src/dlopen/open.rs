//! Opening a database through a loaded library: option strings, the table factory and its cache.
//!
//! The library parses the same option strings that every other engine gets. Only a cache that the
//! option grammar cannot name (the clock cache) goes through setters, together with the table
//! options, because the string form would make a new table factory with a new cache.

use std::ffi::c_int;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use super::api::Api;
use super::{Handle, Inner, LibStore, c_string};
use crate::options::render;
use crate::store::{CachePolicy, OpenPlan, SessionPlan, not_driven};
use crate::{Failure, Result};

/// The option string of a plan, with table options when they can be part of it.
fn option_string(plan: &OpenPlan) -> String {
    let mut options = plan.options.clone();
    if plan.cache.policy == CachePolicy::Lru {
        let mut table = plan.table.clone();
        table.extend(crate::options::lru_cache_options(&plan.cache));
        options.push((
            "block_based_table_factory".into(),
            format!("{{{}}}", render(&table)),
        ));
    }
    render(&options)
}

/// A setter of read options that not every library has.
type Switch = unsafe extern "C" fn(Handle, std::ffi::c_uchar);

impl Api {
    /// The switches of a session's plan: whether it does, by which function, and its name.
    pub(super) fn switches(&self, plan: &SessionPlan) -> [(bool, Option<Switch>, &'static str); 7] {
        [
            (plan.async_io, self.readoptions_set_async_io, "async_io"),
            (plan.tailing, self.readoptions_set_tailing, "tailing"),
            (
                plan.auto_refresh,
                self.readoptions_set_auto_refresh_iterator_with_snapshot,
                "auto_refresh_iterator_with_snapshot",
            ),
            (
                plan.total_order_seek,
                self.readoptions_set_total_order_seek,
                "total_order_seek",
            ),
            (
                plan.prefix_same_as_start,
                self.readoptions_set_prefix_same_as_start,
                "prefix_same_as_start",
            ),
            (
                plan.adaptive_readahead,
                self.readoptions_set_adaptive_readahead,
                "adaptive_readahead",
            ),
            (
                plan.auto_readahead_size,
                self.readoptions_set_auto_readahead_size,
                "auto_readahead_size",
            ),
        ]
    }
}

/// Opens the database of `plan` with the functions of `api`.
pub(super) fn open(api: Api, library: &Path, plan: &OpenPlan) -> Result<LibStore> {
    if let Some(flag) = plan.beyond_one_family() {
        return Err(not_driven(&format!("--{flag}")));
    }
    let options = options_of(&api, plan)?;
    let path = c_string(&plan.path.to_string_lossy())?;
    let (mut error, mut family) = (ptr::null_mut(), ptr::null_mut());
    let db = match api.open_column_families {
        // Older libraries give the default family, which a batched multi-get wants, only so.
        Some(open) if api.default_column_family.is_none() => {
            let names = [c"default".as_ptr()];
            // SAFETY: `options` is ours, the path zero-terminated; each array has one place.
            unsafe {
                open(
                    options,
                    path.as_ptr(),
                    1,
                    names.as_ptr(),
                    &options,
                    &mut family,
                    &mut error,
                )
            }
        }
        // SAFETY: `options` is ours and the path zero-terminated.
        _ => unsafe { (api.open)(options, path.as_ptr(), &mut error) },
    };
    api.check(error)?;
    let handles = [db, ptr::null_mut(), family];
    Ok(store(api, library, plan, options, handles))
}

/// The open database with its options. The handles are its own, that of its layer of transactions,
/// and that of the default family.
pub(super) fn store(
    api: Api,
    library: &Path,
    plan: &OpenPlan,
    options: Handle,
    [db, layer, family]: [Handle; 3],
) -> LibStore {
    let inner = Inner {
        api,
        db,
        layer,
        family,
        options,
        statistics: plan.statistics,
        library: library.display().to_string(),
        version: String::new(),
    };
    let mut store = LibStore {
        inner: Arc::new(inner),
    };
    store.find_version(&plan.path);
    store
}

/// The options object of a plan.
pub(super) fn options_of(api: &Api, plan: &OpenPlan) -> Result<Handle> {
    // SAFETY: plain constructor.
    let base = unsafe { (api.options_create)() };
    // SAFETY: `base` is fresh and ours.
    unsafe { (api.options_set_create_if_missing)(base, u8::from(!plan.must_exist)) };
    // SAFETY: plain constructor.
    let options = unsafe { (api.options_create)() };
    let text = option_string(plan);
    let c_text = c_string(&text)?;
    let mut error = ptr::null_mut();
    // SAFETY: both options objects are ours and the text is zero-terminated.
    unsafe { (api.get_options_from_string)(base, c_text.as_ptr(), options, &mut error) };
    // SAFETY: `base` is not used after this.
    unsafe { (api.options_destroy)(base) };
    api.check(error)
        .map_err(|e| e.context(format!("options `{text}`")))?;
    if plan.statistics {
        // SAFETY: `options` is ours.
        unsafe { (api.options_enable_statistics)(options) };
    }
    if plan.cache.policy == CachePolicy::HyperClock {
        set_clock_cache(api, options, plan)?;
    }
    Ok(options)
}

/// Builds the table factory by setters, with a clock cache.
fn set_clock_cache(api: &Api, options: Handle, plan: &OpenPlan) -> Result<()> {
    let create = api.hyper_clock_create;
    let create = create.ok_or_else(|| Failure::new("this library has no hyper_clock_cache"))?;
    if plan.cache.shard_bits >= 0 {
        return Err(not_driven("--cache_numshardbits of a hyper_clock_cache"));
    }
    // SAFETY: plain constructor.
    let table = unsafe { (api.table_create)() };
    for (name, value) in &plan.table {
        set_table_option(api, table, name, value)?;
    }
    if plan.cache.capacity == 0 {
        // SAFETY: `table` is ours.
        unsafe { (api.table_set_no_block_cache)(table, 1) };
    } else {
        let capacity = usize::try_from(plan.cache.capacity)
            .map_err(|_| Failure::new("hyper_clock_cache needs a cache_size"))?;
        // SAFETY: plain constructor; 0 lets the cache choose its table by itself.
        let cache = unsafe { create(capacity, 0) };
        // SAFETY: both are ours; the factory shares ownership of the cache.
        unsafe { (api.table_set_block_cache)(table, cache) };
        // SAFETY: our share of the cache is not used after this.
        unsafe { (api.cache_destroy)(cache) };
    }
    // SAFETY: both are ours; the options copy the table's.
    unsafe { (api.options_set_table_factory)(options, table) };
    // SAFETY: `table` is not used after this.
    unsafe { (api.table_destroy)(table) };
    Ok(())
}

fn set_table_option(api: &Api, table: Handle, name: &str, value: &str) -> Result<()> {
    let wrong = || {
        Failure::new(format!(
            "table option {name}={value} has no setter in the C API"
        ))
    };
    let number = || value.parse::<u64>().map_err(|_| wrong());
    let flag = u8::from(value == "true");
    match name {
        // SAFETY: `table` is ours, here and in all arms below.
        "block_size" => unsafe { (api.table_set_block_size)(table, number()? as usize) },
        "block_restart_interval" => {
            let n = number()? as c_int;
            // SAFETY: see above.
            unsafe { (api.table_set_block_restart_interval)(table, n) }
        }
        "index_block_restart_interval" => {
            let n = number()? as c_int;
            // SAFETY: see above.
            unsafe { (api.table_set_index_block_restart_interval)(table, n) }
        }
        "metadata_block_size" => {
            let n = number()?;
            // SAFETY: see above.
            unsafe { (api.table_set_metadata_block_size)(table, n) }
        }
        "format_version" => {
            let n = number()? as c_int;
            // SAFETY: see above.
            unsafe { (api.table_set_format_version)(table, n) }
        }
        // SAFETY: see above.
        "partition_filters" => unsafe { (api.table_set_partition_filters)(table, flag) },
        "whole_key_filtering" => {
            // SAFETY: see above.
            unsafe { (api.table_set_whole_key_filtering)(table, flag) }
        }
        "cache_index_and_filter_blocks" => {
            // SAFETY: see above.
            unsafe { (api.table_set_cache_index_and_filter_blocks)(table, flag) }
        }
        // SAFETY: see above.
        "pin_l0_filter_and_index_blocks_in_cache" => unsafe { (api.table_set_pin_l0)(table, flag) },
        // SAFETY: see above.
        "pin_top_level_index_and_filter" => unsafe { (api.table_set_pin_top)(table, flag) },
        // SAFETY: see above; 2 is kTwoLevelIndexSearch.
        "index_type" if value == "kTwoLevelIndexSearch" => unsafe {
            (api.table_set_index_type)(table, 2);
        },
        "checksum" => {
            let kinds = ["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"];
            let kind = kinds.iter().position(|k| *k == value).ok_or_else(wrong)?;
            // SAFETY: see above.
            unsafe { (api.table_set_checksum)(table, kind as std::ffi::c_char) }
        }
        "filter_policy" => {
            let (kind, bits) = value.split_once(':').ok_or_else(wrong)?;
            let bits: f64 = bits
                .split(':')
                .next()
                .unwrap_or("")
                .parse()
                .map_err(|_| wrong())?;
            let create = if kind == "ribbonfilter" {
                api.ribbon_create
            } else {
                api.bloom_create
            };
            // SAFETY: plain constructor.
            let policy = unsafe { create(bits) };
            // SAFETY: the table takes the policy over.
            unsafe { (api.table_set_filter_policy)(table, policy) }
        }
        _ => return Err(wrong()),
    }
    Ok(())
}
