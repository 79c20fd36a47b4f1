//! The options of databases and families. What is a plain field is generated from the catalogue;
//! here is the rest.
//!
//! A value that RocksDB would not accept either leaves the option as it was. What has no effect
//! here is kept, so that its getter tells it, and listed in `spec/differences.md`.

use crate::boundary::{
    attempt, call, destroy, exclusive, free, give, learn_allocator, malloc_array, malloc_text,
    many, path, put, quiet, shared, text,
};
use crate::*;
use esker::Options;
use esker::load_latest_options;
use esker::options::{
    BlobCacheSource, BlockCacheSource, CompactionStyle, CompressionType, DataBlockIndexType,
    LoadRules, MemtableKind, TableFormat, Temperature,
};
use esker_format::filter::FilterPolicy;
use esker_sync::{Mutex, Rank};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_uchar};
use std::ptr;
use std::sync::Arc;

/// The options of a database and of a family, in one.
#[derive(Clone, Default)]
pub struct rocksdb_options_t {
    pub(crate) options: Options,
    kept: Kept,
}

/// Settings without an effect.
#[derive(Clone, Default)]
struct Kept {
    checksum_handoff_file_types: Vec<c_int>,
    /// Temperatures that are given by numbers without a name.
    temperatures: BTreeMap<&'static str, c_int>,
    told: TextCache,
}

/// Texts that getters gave out; each lives until it is asked for again.
struct TextCache(Mutex<BTreeMap<&'static str, CString>>);

impl Default for TextCache {
    fn default() -> Self {
        TextCache(Mutex::new(Rank::LEAF, BTreeMap::new()))
    }
}

impl Clone for TextCache {
    fn clone(&self) -> Self {
        TextCache::default()
    }
}

impl rocksdb_options_t {
    /// A handle on `options`.
    pub(crate) fn new(options: Options) -> Self {
        rocksdb_options_t {
            options,
            kept: Kept::default(),
        }
    }

    /// `value` as text that ends with NUL and lives until `name` is asked for again.
    fn tell(&self, name: &'static str, value: &str, size: *mut usize) -> *const c_char {
        let value = CString::new(value).unwrap_or_default();
        put(size, value.as_bytes().len());
        let mut told = self.kept.told.0.lock();
        let unchanged = told.get(name).filter(|t| **t == value).is_some();
        if !unchanged {
            told.insert(name, value);
        }
        told.get(name).map_or(ptr::null(), |t| t.as_ptr())
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_create() -> *mut rocksdb_options_t {
    quiet(ptr::null_mut(), || {
        learn_allocator();
        give(rocksdb_options_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_create_copy(
    options: *mut rocksdb_options_t,
) -> *mut rocksdb_options_t {
    attempt(ptr::null_mut(), || Ok(give(shared(options)?.clone())))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_destroy(options: *mut rocksdb_options_t) {
    destroy(options);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_block_based_table_factory(
    opt: *mut rocksdb_options_t,
    table_options: *mut rocksdb_block_based_table_options_t,
) {
    attempt((), || {
        exclusive(opt)?.options.family.table = shared(table_options)?.table.clone();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_get_options_from_string(
    base_options: *const rocksdb_options_t,
    opts_str: *const c_char,
    new_options: *mut rocksdb_options_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let made = shared(base_options)?
            .options
            .clone()
            .set_all(text(opts_str)?)?;
        exclusive(new_options)?.options = made;
        Ok(())
    });
}

/// Exports a getter of text.
macro_rules! text_getter {
    ($name:ident, $field:ident) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(opt: *mut rocksdb_options_t, size: *mut usize) -> *const c_char {
            put(size, 0);
            attempt(ptr::null(), || {
                let opt = shared(opt)?;
                Ok(opt.tell(stringify!($field), &opt.options.db.$field, size))
            })
        }
    };
}

text_getter!(rocksdb_options_get_db_log_dir, db_log_dir);
text_getter!(rocksdb_options_get_wal_dir, wal_dir);
text_getter!(rocksdb_options_get_db_host_id, db_host_id);
text_getter!(
    rocksdb_options_get_daily_offpeak_time_utc,
    daily_offpeak_time_utc
);

/// Changes options, unless the handle is NULL.
fn change(opt: *mut rocksdb_options_t, how: impl FnOnce(&mut Options)) {
    attempt((), || {
        how(&mut exclusive(opt)?.options);
        Ok(())
    });
}

fn unsigned(value: c_int) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_compaction_readahead_size(
    options: *mut rocksdb_options_t,
    value: usize,
) {
    change(options, |o| o.db.compaction_readahead_size = value);
}

/// The codec with RocksDB's number; `None` when there is none.
fn codec(number: c_int) -> Option<CompressionType> {
    u8::try_from(number)
        .ok()
        .and_then(CompressionType::from_number)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_compression_per_level(
    opt: *mut rocksdb_options_t,
    level_values: *const c_int,
    num_levels: usize,
) {
    change(opt, |o| {
        let given: Option<Vec<_>> = many(level_values, num_levels)
            .iter()
            .map(|n| codec(*n))
            .collect();
        if let Some(given) = given {
            o.family.compression_per_level = given;
        }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_min_level_to_compress(
    opt: *mut rocksdb_options_t,
    level: c_int,
) {
    change(opt, |o| {
        if level < 0 {
            return;
        }
        let codec = o.family.compression;
        let of = |at: c_int| {
            if at < level {
                CompressionType::None
            } else {
                codec
            }
        };
        o.family.compression_per_level = (0..o.family.num_levels.clamp(0, 1000)).map(of).collect();
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_max_bytes_for_level_multiplier_additional(
    options: *mut rocksdb_options_t,
    level_values: *mut c_int,
    num_levels: usize,
) {
    change(options, |o| {
        o.family.max_bytes_for_level_multiplier_additional =
            many(level_values.cast_const(), num_levels).to_vec();
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_compression_options(
    options: *mut rocksdb_options_t,
    window_bits: c_int,
    level: c_int,
    strategy: c_int,
    max_dict_bytes: c_int,
) {
    change(options, |o| {
        let codec = &mut o.family.compression_opts;
        codec.window_bits = window_bits;
        codec.level = level;
        codec.strategy = strategy;
        codec.max_dict_bytes = unsigned(max_dict_bytes);
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_bottommost_compression_options(
    options: *mut rocksdb_options_t,
    window_bits: c_int,
    level: c_int,
    strategy: c_int,
    max_dict_bytes: c_int,
    enabled: c_uchar,
) {
    change(options, |o| {
        let codec = &mut o.family.bottommost_compression_opts;
        codec.window_bits = window_bits;
        codec.level = level;
        codec.strategy = strategy;
        codec.max_dict_bytes = unsigned(max_dict_bytes);
        codec.enabled = enabled != 0;
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(
    options: *mut rocksdb_options_t,
    value: c_int,
    enabled: c_uchar,
) {
    change(options, |o| {
        let codec = &mut o.family.bottommost_compression_opts;
        codec.zstd_max_train_bytes = unsigned(value);
        codec.enabled = enabled != 0;
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(
    options: *mut rocksdb_options_t,
    value: c_uchar,
    enabled: c_uchar,
) {
    change(options, |o| {
        let codec = &mut o.family.bottommost_compression_opts;
        codec.use_zstd_dict_trainer = value != 0;
        codec.enabled = enabled != 0;
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(
    options: *mut rocksdb_options_t,
    value: u64,
    enabled: c_uchar,
) {
    change(options, |o| {
        let codec = &mut o.family.bottommost_compression_opts;
        codec.max_dict_buffer_bytes = value;
        codec.enabled = enabled != 0;
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_increase_parallelism(
    opt: *mut rocksdb_options_t,
    total_threads: c_int,
) {
    change(opt, |o| o.db.max_background_jobs = total_threads);
}

/// RocksDB's choices for point lookups: hashed data blocks, a filter of 10 bits, a block cache of
/// its own.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_optimize_for_point_lookup(
    opt: *mut rocksdb_options_t,
    block_cache_size_mb: u64,
) {
    change(opt, |o| {
        let bytes = usize::try_from(block_cache_size_mb)
            .unwrap_or(usize::MAX)
            .saturating_mul(1 << 20);
        let table = &mut o.family.table;
        *table = esker::options::TableSettings::default();
        table.data_block_index_type = DataBlockIndexType::BinaryAndHash;
        table.data_block_hash_table_util_ratio = 0.75;
        table.filter_policy = FilterPolicy::parse("bloomfilter:10:false");
        table.block_cache = BlockCacheSource::Shared(crate::cache::lru(bytes));
        o.family.table_factory = TableFormat::BlockBased;
        o.family.memtable_prefix_bloom_size_ratio = 0.02;
        o.family.memtable_whole_key_filtering = true;
    });
}

/// The memtables of both styles: four write buffers, two of them merged by a flush, six at most.
fn share_memtables(o: &mut Options, budget: u64) {
    o.family.write_buffer_size = usize::try_from(budget / 4).unwrap_or(usize::MAX);
    o.family.min_write_buffer_number_to_merge = 2;
    o.family.max_write_buffer_number = 6;
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_optimize_level_style_compaction(
    opt: *mut rocksdb_options_t,
    memtable_memory_budget: u64,
) {
    change(opt, |o| {
        share_memtables(o, memtable_memory_budget);
        let family = &mut o.family;
        family.level0_file_num_compaction_trigger = 2;
        family.target_file_size_base = memtable_memory_budget / 8;
        family.max_bytes_for_level_base = memtable_memory_budget;
        family.compaction_style = CompactionStyle::Level;
        let at = |level: c_int| match level {
            0 | 1 => CompressionType::None,
            _ => CompressionType::Lz4,
        };
        family.compression_per_level = (0..family.num_levels.clamp(0, 1000)).map(at).collect();
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_optimize_universal_style_compaction(
    opt: *mut rocksdb_options_t,
    memtable_memory_budget: u64,
) {
    change(opt, |o| {
        share_memtables(o, memtable_memory_budget);
        let family = &mut o.family;
        family.compaction_style = CompactionStyle::Universal;
        family.compaction_options_universal.compression_size_percent = 80;
    });
}

/// No compactions and no limits that slow writers: load first, compact the whole range after.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_prepare_for_bulk_load(options: *mut rocksdb_options_t) {
    change(options, |o| {
        let never = 1 << 30;
        let family = &mut o.family;
        family.level0_file_num_compaction_trigger = never;
        family.level0_slowdown_writes_trigger = never;
        family.level0_stop_writes_trigger = never;
        family.soft_pending_compaction_bytes_limit = 0;
        family.hard_pending_compaction_bytes_limit = 0;
        family.disable_auto_compactions = true;
        family.max_compaction_bytes = 1 << 60;
        family.num_levels = 2;
        family.max_write_buffer_number = 6;
        family.min_write_buffer_number_to_merge = 1;
        family.target_file_size_base = 256 << 20;
        o.db.max_background_flushes = 4;
        o.db.max_background_compactions = 2;
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_memtable_vector_rep(options: *mut rocksdb_options_t) {
    change(options, |o| {
        o.family.memtable_factory = MemtableKind::Vector
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_hash_skip_list_rep(
    options: *mut rocksdb_options_t,
    _bucket_count: usize,
    _height: i32,
    _branching_factor: i32,
) {
    change(options, |o| {
        o.family.memtable_factory = MemtableKind::HashSkipList
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_hash_link_list_rep(
    options: *mut rocksdb_options_t,
    _value: usize,
) {
    change(options, |o| {
        o.family.memtable_factory = MemtableKind::HashLinkList
    });
}

/// Tables are written block-based all the same, and the LOG says so.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_plain_table_factory(
    options: *mut rocksdb_options_t,
    _user_key_len: u32,
    _bloom_bits_per_key: c_int,
    _hash_table_ratio: f64,
    _index_sparseness: usize,
    _huge_page_tlb_size: usize,
    _encoding_type: c_char,
    _full_scan_mode: c_uchar,
    _store_index_in_file: c_uchar,
) {
    change(options, |o| o.family.table_factory = TableFormat::Plain);
}

/// Settings of cuckoo tables.
pub struct rocksdb_cuckoo_table_options_t {
    pub(crate) hash_table_ratio: f64,
    pub(crate) max_search_depth: u32,
    pub(crate) cuckoo_block_size: u32,
    pub(crate) identity_as_first_hash: bool,
    pub(crate) use_module_hash: bool,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cuckoo_options_create() -> *mut rocksdb_cuckoo_table_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_cuckoo_table_options_t {
            hash_table_ratio: 0.9,
            max_search_depth: 100,
            cuckoo_block_size: 5,
            identity_as_first_hash: false,
            use_module_hash: true,
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_cuckoo_options_destroy(options: *mut rocksdb_cuckoo_table_options_t) {
    destroy(options);
}

/// Tables are written block-based all the same, and the LOG says so.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_cuckoo_table_factory(
    opt: *mut rocksdb_options_t,
    table_options: *mut rocksdb_cuckoo_table_options_t,
) {
    if !table_options.is_null() {
        change(opt, |o| o.family.table_factory = TableFormat::Cuckoo);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_env(
    options: *mut rocksdb_options_t,
    env: *mut rocksdb_env_t,
) {
    change(options, |o| {
        o.env = shared(env).ok().and_then(|e| e.env.clone());
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_row_cache(
    _opt: *mut rocksdb_options_t,
    _cache: *mut rocksdb_cache_t,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_blob_cache(
    opt: *mut rocksdb_options_t,
    blob_cache: *mut rocksdb_cache_t,
) {
    change(opt, |o| {
        let given = shared(blob_cache).ok().map(|c| Arc::clone(&c.cache));
        o.family.blob_cache = given.map(BlobCacheSource::shared_with).unwrap_or_default();
    });
}

/// Exports the five functions of an option that is a set: of what the numbers stand for, where they
/// stand for anything.
macro_rules! set_by_number {
    ($($field:ident).+, $of:expr, $clear:ident, $add:ident, $remove:ident, $contains:ident, $count:ident) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $clear(opt: *mut rocksdb_options_t) {
            attempt((), || {
                exclusive(opt)?.$($field).+.clear();
                Ok(())
            });
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $add(opt: *mut rocksdb_options_t, number: c_int) {
            attempt((), || {
                let set = &mut exclusive(opt)?.$($field).+;
                set.extend($of(number).filter(|one| !set.contains(one)));
                Ok(())
            });
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $remove(opt: *mut rocksdb_options_t, number: c_int) {
            attempt((), || {
                exclusive(opt)?.$($field).+.retain(|one| Some(*one) != $of(number));
                Ok(())
            });
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $contains(opt: *mut rocksdb_options_t, number: c_int) -> c_uchar {
            attempt(0, || {
                let set = &shared(opt)?.$($field).+;
                Ok(c_uchar::from($of(number).is_some_and(|one| set.contains(&one))))
            })
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $count(opt: *mut rocksdb_options_t) -> usize {
            attempt(0, || Ok(shared(opt)?.$($field).+.len()))
        }
    };
}

fn style_of(number: c_int) -> Option<CompactionStyle> {
    CompactionStyle::from_number(u8::try_from(number).ok()?)
}

set_by_number!(
    kept.checksum_handoff_file_types,
    Some,
    rocksdb_options_checksum_handoff_file_types_clear,
    rocksdb_options_checksum_handoff_file_types_add,
    rocksdb_options_checksum_handoff_file_types_remove,
    rocksdb_options_checksum_handoff_file_types_contains,
    rocksdb_options_checksum_handoff_file_types_count
);
set_by_number!(
    options.db.calculate_sst_write_lifetime_hint_set,
    style_of,
    rocksdb_options_calculate_sst_write_lifetime_hint_set_clear,
    rocksdb_options_calculate_sst_write_lifetime_hint_set_add,
    rocksdb_options_calculate_sst_write_lifetime_hint_set_remove,
    rocksdb_options_calculate_sst_write_lifetime_hint_set_contains,
    rocksdb_options_calculate_sst_write_lifetime_hint_set_count
);

/// The options of a database's newest OPTIONS file. Objects of the application (comparators and the
/// like) are not in it.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_load_latest_options(
    db_path: *const c_char,
    env: *mut rocksdb_env_t,
    ignore_unknown_options: bool,
    cache: *mut rocksdb_cache_t,
    db_options: *mut *mut rocksdb_options_t,
    num_column_families: *mut usize,
    column_family_names: *mut *mut *mut c_char,
    column_family_options: *mut *mut *mut rocksdb_options_t,
    errptr: *mut *mut c_char,
) {
    put(db_options, ptr::null_mut());
    put(num_column_families, 0);
    put(column_family_names, ptr::null_mut());
    put(column_family_options, ptr::null_mut());
    call(errptr, (), || {
        let env = shared(env).map_or_else(|_| esker::Env::posix(), rocksdb_env_t::to_env);
        let rules = LoadRules {
            ignore_unknown: ignore_unknown_options,
            ..LoadRules::default()
        };
        let loaded = load_latest_options(path(db_path)?, &env, rules)?;
        let cache = shared(cache).ok().map(|c| c.cache.clone());
        let mut names = Vec::with_capacity(loaded.families.len());
        let mut handles = Vec::with_capacity(loaded.families.len());
        for (name, family) in loaded.families {
            let mut options = Options::new();
            options.family = family;
            if let Some(cache) = cache
                .as_ref()
                .filter(|_| !options.family.table.no_block_cache)
            {
                options.family.table.block_cache = BlockCacheSource::Shared(Arc::clone(cache));
            }
            names.push(malloc_text(&name));
            handles.push(give(rocksdb_options_t::new(options)));
        }
        let mut options = Options::new();
        options.db = loaded.db;
        put(db_options, give(rocksdb_options_t::new(options)));
        put(num_column_families, names.len());
        put(column_family_names, malloc_array(&names));
        put(column_family_options, malloc_array(&handles));
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_load_latest_options_destroy(
    db_options: *mut rocksdb_options_t,
    list_column_family_names: *mut *mut c_char,
    list_column_family_options: *mut *mut rocksdb_options_t,
    len: usize,
) {
    destroy(db_options);
    for name in many(list_column_family_names.cast_const(), len) {
        free(name.cast());
    }
    for options in many(list_column_family_options.cast_const(), len) {
        destroy(*options);
    }
    free(list_column_family_names.cast());
    free(list_column_family_options.cast());
}

/// Exports the setter and the getter of a temperature, which takes any number and is used for
/// nothing.
macro_rules! temperature {
    ($set:ident, $get:ident, $($path:ident).+) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(opt: *mut rocksdb_options_t, v: c_int) {
            attempt((), || {
                let opt = exclusive(opt)?;
                let known = u8::try_from(v).ok().and_then(Temperature::from_number);
                opt.options.$($path).+ = known.unwrap_or(Temperature::Unknown);
                opt.kept.temperatures.insert(stringify!($set), v);
                Ok(())
            });
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $get(opt: *mut rocksdb_options_t) -> c_int {
            attempt(0, || {
                let opt = shared(opt)?;
                let named = c_int::from(opt.options.$($path).+.number());
                let given = opt.kept.temperatures.get(stringify!($set));
                Ok(given.filter(|_| named == 0).copied().unwrap_or(named))
            })
        }
    };
}

temperature!(
    rocksdb_options_set_metadata_write_temperature,
    rocksdb_options_get_metadata_write_temperature,
    db.metadata_write_temperature
);
temperature!(
    rocksdb_options_set_wal_write_temperature,
    rocksdb_options_get_wal_write_temperature,
    db.wal_write_temperature
);
temperature!(
    rocksdb_options_set_last_level_temperature,
    rocksdb_options_get_last_level_temperature,
    family.last_level_temperature
);
temperature!(
    rocksdb_options_set_default_write_temperature,
    rocksdb_options_get_default_write_temperature,
    family.default_write_temperature
);
temperature!(
    rocksdb_options_set_default_temperature,
    rocksdb_options_get_default_temperature,
    family.default_temperature
);
