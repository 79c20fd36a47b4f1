//! Contents of a family's tables: files, sizes, aggregated properties; and sizes of key ranges.

use super::{Db, PropertyMap};
use crate::core::Core;
use crate::family::{Family, FamilyHandle};
use esker_format::key::user_key;
use esker_format::properties::TableProperties;
use esker_format::{InternalKey, Level};
use esker_lsm::version::Version;
use esker_status::Result;
use esker_sync::Arc;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

pub(super) fn files_at_level(family: &Family, level: usize) -> Option<String> {
    let view = family.view_guard();
    let files = view.version.levels().get(level)?;
    Some(files.len().to_string())
}

/// Raw bytes over stored bytes; -1 where that is not known.
pub(super) fn compression_ratio(family: &Family, level: usize) -> Option<String> {
    let view = family.view_guard();
    let files = view.version.levels().get(level)?;
    let (mut raw, mut stored) = (0u64, 0u64);
    for file in files.files() {
        let Some(s) = file.stats.get() else { continue };
        stored += file.size;
        raw += s.raw_key_size + s.raw_value_size;
    }
    let ratio = if stored == 0 {
        -1.0
    } else {
        raw as f64 / stored as f64
    };
    Some(format!("{ratio:.6}"))
}

pub(super) fn level_stats(family: &Family) -> String {
    let view = family.view_guard();
    let mut out = String::from("Level Files Size(MB)\n--------------------\n");
    for (l, level) in view.version.levels().iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{l:>3} {:>8} {:>8.0}",
            level.len(),
            super::human::mb(level.bytes())
        );
    }
    out
}

pub(super) fn bytes_at_temperature(family: &Family, temperature: usize) -> String {
    let view = family.view_guard();
    let files = view.version.files();
    files
        .filter(|(_, f)| usize::from(f.temperature) == temperature)
        .map(|(_, f)| f.size)
        .sum::<u64>()
        .to_string()
}

/// Bytes of the tables that some version in use lists, each once.
pub(super) fn bytes_of_all(versions: &[Arc<Version>]) -> u64 {
    if let [only] = versions {
        return only.bytes();
    }
    let mut files = BTreeMap::new();
    for version in versions {
        files.extend(version.files().map(|(_, f)| (f.number, f.size)));
    }
    files.values().sum()
}

/// Memory of the open tables outside of the block cache.
pub(super) fn reader_memory(core: &Core, version: &Version) -> u64 {
    let files = version.files();
    files
        .filter_map(|(_, f)| core.trees.tables.opened(f))
        .map(|t| t.reader.memory_usage() as u64)
        .sum()
}

/// The bytes of a largest set of files that do not meet a file of a deeper level (or one before
/// them), and the live bytes of blob files.
pub(super) fn estimate_live_data(version: &Version) -> u64 {
    let order = version.order();
    // Ordered by largest key; disjoint.
    let mut taken: Vec<(&InternalKey, &InternalKey)> = Vec::new();
    let mut bytes = 0u64;
    for level in version.levels().iter().rev() {
        for file in level.files() {
            let at = taken.partition_point(|(_, largest)| {
                order
                    .compare_internal(largest.as_bytes(), file.smallest.as_bytes())
                    .is_lt()
            });
            let free = taken.get(at).is_none_or(|(smallest, _)| {
                order
                    .compare_internal(file.largest.as_bytes(), smallest.as_bytes())
                    .is_lt()
            });
            if free {
                taken.insert(at, (&file.smallest, &file.largest));
                bytes += file.size;
            }
        }
    }
    let blobs = version.blob_files().values();
    bytes + blobs.map(|b| b.live_bytes()).sum::<u64>()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

fn key_text(key: &InternalKey) -> String {
    let bytes = key.as_bytes();
    let trailer = esker_format::key::trailer(bytes);
    format!(
        "'{}' seq:{}, type:{}",
        hex(user_key(bytes)),
        trailer >> 8,
        trailer & 0xff
    )
}

pub(super) fn sstables(family: &Family) -> String {
    let view = family.view_guard();
    let mut out = String::new();
    for (l, level) in view.version.levels().iter().enumerate() {
        let _ = write!(out, "--- level {l} --- version# {}", view.number);
        if let Some(cursor) = view.version.compact_cursor(Level(l as u8)) {
            let _ = write!(out, " --- compact_cursor: {}", key_text(cursor));
        }
        out.push_str(" ---\n");
        for f in level.files() {
            let _ = write!(
                out,
                " {}:{}[{} .. {}][{} .. {}]",
                f.number.0,
                f.size,
                f.smallest_seq.0,
                f.largest_seq.0,
                key_text(&f.smallest),
                key_text(&f.largest)
            );
            if let Some(blob) = f.oldest_blob_file {
                let _ = write!(out, " blob_file:{}", blob.0);
            }
            out.push('\n');
        }
    }
    let blobs = view.version.blob_files();
    if !blobs.is_empty() {
        let _ = writeln!(out, "--- blob files --- version# {} ---", view.number);
        for b in blobs.values() {
            let _ = writeln!(
                out,
                "blob_file_number: {} total_blob_count: {} total_blob_bytes: {} garbage_blob_count: {} garbage_blob_bytes: {}",
                b.number.0, b.total_count, b.total_bytes, b.garbage_count, b.garbage_bytes
            );
        }
    }
    out
}

pub(super) fn blob_stats(family: &Family) -> String {
    let view = family.view_guard();
    let files = view.version.blob_files();
    let total: u64 = files.values().map(|b| b.total_bytes).sum();
    let garbage: u64 = files.values().map(|b| b.garbage_bytes).sum();
    let live = total - garbage.min(total);
    let amp = if live == 0 {
        0.0
    } else {
        total as f64 / live as f64
    };
    format!(
        "Number of blob files: {}\nTotal size of blob files: {total}\nTotal size of garbage in blob files: {garbage}\n\
         Blob file space amplification: {amp}\n",
        files.len()
    )
}

/// A property's name in maps, and its field.
type Sum = (&'static str, fn(&mut TableProperties) -> &mut u64);

/// The sizes and counts that can be added up.
const SUMS: [Sum; 18] = [
    ("data_size", |p| &mut p.data_size),
    ("index_size", |p| &mut p.index_size),
    ("index_partitions", |p| &mut p.index_partitions),
    ("top_level_index_size", |p| &mut p.top_level_index_size),
    ("filter_size", |p| &mut p.filter_size),
    ("raw_key_size", |p| &mut p.raw_key_size),
    ("raw_value_size", |p| &mut p.raw_value_size),
    ("num_data_blocks", |p| &mut p.num_data_blocks),
    ("num_data_blocks_compression_rejected", |p| {
        &mut p.num_data_blocks_compression_rejected
    }),
    ("num_data_blocks_compression_bypassed", |p| {
        &mut p.num_data_blocks_compression_bypassed
    }),
    ("num_uniform_blocks", |p| &mut p.num_uniform_blocks),
    ("num_entries", |p| &mut p.num_entries),
    ("num_filter_entries", |p| &mut p.num_filter_entries),
    ("num_deletions", |p| &mut p.num_deletions),
    ("num_merge_operands", |p| &mut p.num_merge_operands),
    ("num_range_deletions", |p| &mut p.num_range_deletions),
    ("slow_compression_estimated_data_size", |p| {
        &mut p.slow_compression_estimated_data_size
    }),
    ("fast_compression_estimated_data_size", |p| {
        &mut p.fast_compression_estimated_data_size
    }),
];

/// The added-up properties of a level or of all levels, with how many index keys are user keys and
/// how many index values are in the short form.
fn aggregate(
    core: &Core,
    family: &Family,
    level: Option<usize>,
) -> Option<(TableProperties, u64, u64)> {
    let version = family.view_guard().version.clone();
    if level.is_some_and(|l| l >= version.num_levels()) {
        return None;
    }
    let mut sum = TableProperties {
        column_family_id: i32::MAX as u64,
        ..TableProperties::default()
    };
    let (mut user_keys, mut delta_values) = (0, 0);
    for (at, file) in version.files() {
        if level.is_some_and(|l| l != at.index()) {
            continue;
        }
        let table = core.trees.tables.get(file, at, &family.reading).ok()?;
        let mut p = table.reader.properties().clone();
        for (_, field) in SUMS {
            *field(&mut sum) += *field(&mut p);
        }
        user_keys += u64::from(p.index_key_is_user_key);
        delta_values += u64::from(p.index_value_is_delta_encoded);
    }
    Some((sum, user_keys, delta_values))
}

pub(super) fn aggregated_map(
    core: &Core,
    family: &Family,
    level: Option<usize>,
) -> Option<PropertyMap> {
    let (mut sum, _, _) = aggregate(core, family, level)?;
    let values = SUMS
        .iter()
        .map(|(name, field)| ((*name).to_owned(), field(&mut sum).to_string()));
    let mut out: PropertyMap = values.collect();
    // Files do not keep it: RocksDB knows it only while it writes them.
    out.insert("uncompressed_data_size".to_owned(), "0".to_owned());
    Some(out)
}

pub(super) fn aggregated_text(
    core: &Core,
    family: &Family,
    level: Option<usize>,
) -> Option<String> {
    let (p, user_keys, delta_values) = aggregate(core, family, level)?;
    let mean = |sum: u64| sum as f64 / p.num_entries.max(1) as f64;
    let mut out = String::new();
    let mut put = |name: &str, value: &dyn std::fmt::Display| {
        let _ = write!(out, "{name}={value}; ");
    };
    put("# data blocks", &p.num_data_blocks);
    put(
        "# data blocks compression rejected",
        &p.num_data_blocks_compression_rejected,
    );
    put(
        "# data blocks compression bypassed",
        &p.num_data_blocks_compression_bypassed,
    );
    put("# uniform blocks", &p.num_uniform_blocks);
    put("# entries", &p.num_entries);
    put("# deletions", &p.num_deletions);
    put("# merge operands", &p.num_merge_operands);
    put("# range deletions", &p.num_range_deletions);
    put("raw key size", &p.raw_key_size);
    put(
        "raw average key size",
        &format!("{:.6}", mean(p.raw_key_size)),
    );
    put("raw value size", &p.raw_value_size);
    put(
        "raw average value size",
        &format!("{:.6}", mean(p.raw_value_size)),
    );
    put("data block size", &p.data_size);
    put("data uncompressed size", &0);
    put(
        &format!("index block size (user-key? {user_keys}, delta-value? {delta_values})"),
        &p.index_size,
    );
    if p.index_partitions != 0 {
        put("# index partitions", &p.index_partitions);
        put("top-level index size", &p.top_level_index_size);
    }
    put("filter block size", &p.filter_size);
    put("# entries for filter", &p.num_filter_entries);
    put(
        "(estimated) table size",
        &(p.data_size + p.index_size + p.filter_size),
    );
    for name in [
        "filter policy name",
        "prefix extractor name",
        "column family ID",
        "column family name",
        "comparator name",
    ] {
        put(name, &"N/A");
    }
    put("user defined timestamps persisted", &"true");
    for name in [
        "merge operator name",
        "property collectors names",
        "SST file compression algo",
        "SST file compression options",
    ] {
        put(name, &"N/A");
    }
    for name in [
        "creation time",
        "time stamp of earliest key",
        "time stamp of newest key",
        "file creation time",
    ] {
        put(name, &0);
    }
    put(
        "slow compression estimated data size",
        &p.slow_compression_estimated_data_size,
    );
    put(
        "fast compression estimated data size",
        &p.fast_compression_estimated_data_size,
    );
    for name in ["DB identity", "DB session identity", "DB host id"] {
        put(name, &"");
    }
    put("original file number", &0);
    put("unique ID", &"N/A");
    Some(out)
}

impl Db {
    /// The properties of every table of `family`, by path.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// let tables = db.properties_of_all_tables(&db.default_family_handle())?;
    /// assert_eq!(tables.values().map(|table| table.num_entries).sum::<u64>(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn properties_of_all_tables(
        &self,
        family: &FamilyHandle,
    ) -> Result<BTreeMap<PathBuf, TableProperties>> {
        let core = self.core();
        let version = family.0.view_guard().version.clone();
        let mut out = BTreeMap::new();
        for (level, file) in version.files() {
            let table = core.trees.tables.get(file, level, &family.0.reading)?;
            let path = core.trees.tables.path(&family.0.reading.paths, file)?;
            out.insert(path, table.reader.properties().clone());
        }
        Ok(out)
    }
}
