//! The properties block of a table file: every property that RocksDB defines, typed, and the user's
//! own.
//!
//! Properties are (name, value) pairs in a block of their own, sorted by name. This module turns
//! [`TableProperties`] into sorted pairs and back and knows nothing of blocks. As in RocksDB a
//! value that does not parse is skipped, names that are not known are kept as the user's, and
//! unsorted names are `Corruption`. Plain values; no thread-safety concerns.

use crate::coding::{decode_varint64, fixed32_at, fixed64_at, put_varint64};
use crate::unique_id::UniqueId;
use esker_status::{Error, Result};
use std::collections::BTreeMap;

/// Metaindex name of the properties block.
pub const PROPERTIES_BLOCK: &str = "rocksdb.properties";
/// Metaindex name of the index block, from format version 6 on.
pub const INDEX_BLOCK: &str = "rocksdb.index";
/// Metaindex name of the compression dictionary.
pub const COMPRESSION_DICT_BLOCK: &str = "rocksdb.compression_dict";
/// Metaindex name of the range-deletion block.
pub const RANGE_DEL_BLOCK: &str = "rocksdb.range_del";
/// Metaindex name of the hash index's prefixes.
pub const HASH_INDEX_PREFIXES_BLOCK: &str = "rocksdb.hashindex.prefixes";
/// Metaindex name of the hash index's metadata.
pub const HASH_INDEX_METADATA_BLOCK: &str = "rocksdb.hashindex.metadata";
/// Metaindex name of a filter in one block.
pub const FULL_FILTER_BLOCK: &str = "fullfilter.rocksdb.BuiltinBloomFilter";
/// Metaindex name of the top level of a partitioned filter.
pub const PARTITIONED_FILTER_BLOCK: &str = "partitionedfilter.rocksdb.BuiltinBloomFilter";

/// The stored properties block with its global sequence number set to 0; `None` when it has none.
///
/// Ingestion may overwrite that number in place without renewing the block's checksum, so a block
/// whose checksum does not match must be tried once more in this form.
pub fn without_global_seqno(block: &[u8]) -> Option<Vec<u8>> {
    // Prefix compression may cut the name's start, never this part: no neighbour in order shares
    // it.
    const NAME_END: &[u8] = b"global_seqno";
    let at = block.windows(NAME_END.len()).position(|w| w == NAME_END)? + NAME_END.len();
    let mut out = block.to_vec();
    out.get_mut(at..at + 8)?.fill(0);
    Some(out)
}

/// One way to store a field: its bytes (or nothing when it need not be stored), and back.
trait FieldCodec<T> {
    fn put(value: &T) -> Option<Vec<u8>>;
    fn take(bytes: &[u8]) -> Option<T>;
}

fn varint(v: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint64(&mut out, v);
    out
}

fn take_varint(bytes: &[u8]) -> Option<u64> {
    decode_varint64(bytes).map(|(v, _)| v)
}

/// varint64, always written.
struct EachNumber;
impl FieldCodec<u64> for EachNumber {
    fn put(v: &u64) -> Option<Vec<u8>> {
        Some(varint(*v))
    }
    fn take(bytes: &[u8]) -> Option<u64> {
        take_varint(bytes)
    }
}
impl FieldCodec<bool> for EachNumber {
    fn put(v: &bool) -> Option<Vec<u8>> {
        Some(varint(u64::from(*v)))
    }
    fn take(bytes: &[u8]) -> Option<bool> {
        take_varint(bytes).map(|v| v != 0)
    }
}

/// varint64, written when not 0 (or true).
struct NumberNotZero;
impl FieldCodec<u64> for NumberNotZero {
    fn put(v: &u64) -> Option<Vec<u8>> {
        (*v != 0).then(|| varint(*v))
    }
    fn take(bytes: &[u8]) -> Option<u64> {
        take_varint(bytes)
    }
}
impl FieldCodec<bool> for NumberNotZero {
    fn put(v: &bool) -> Option<Vec<u8>> {
        v.then(|| varint(1))
    }
    fn take(bytes: &[u8]) -> Option<bool> {
        take_varint(bytes).map(|v| v != 0)
    }
}

/// varint64 0, written when false.
struct ZeroIfFalse;
impl FieldCodec<bool> for ZeroIfFalse {
    fn put(v: &bool) -> Option<Vec<u8>> {
        (!v).then(|| varint(0))
    }
    fn take(bytes: &[u8]) -> Option<bool> {
        take_varint(bytes).map(|v| v != 0)
    }
}

/// varint64(s), written when present.
struct Present;
impl FieldCodec<Option<u64>> for Present {
    fn put(v: &Option<u64>) -> Option<Vec<u8>> {
        v.map(varint)
    }
    fn take(bytes: &[u8]) -> Option<Option<u64>> {
        take_varint(bytes).map(Some)
    }
}
impl FieldCodec<Option<(u64, u64)>> for Present {
    fn put(v: &Option<(u64, u64)>) -> Option<Vec<u8>> {
        v.map(|(a, b)| [varint(a), varint(b)].concat())
    }
    fn take(bytes: &[u8]) -> Option<Option<(u64, u64)>> {
        let (a, n) = decode_varint64(bytes)?;
        take_varint(bytes.get(n..)?).map(|b| Some((a, b)))
    }
}

/// fixed32 or fixed64, written when present.
struct FixedNumber;
impl FieldCodec<Option<u32>> for FixedNumber {
    fn put(v: &Option<u32>) -> Option<Vec<u8>> {
        v.map(|v| v.to_le_bytes().to_vec())
    }
    fn take(bytes: &[u8]) -> Option<Option<u32>> {
        fixed32_at(bytes, 0).map(Some)
    }
}
impl FieldCodec<Option<u64>> for FixedNumber {
    fn put(v: &Option<u64>) -> Option<Vec<u8>> {
        v.map(|v| v.to_le_bytes().to_vec())
    }
    fn take(bytes: &[u8]) -> Option<Option<u64>> {
        fixed64_at(bytes, 0).map(Some)
    }
}

/// The digit 1 or 0, written when present.
struct OptionalDigit;
impl FieldCodec<Option<bool>> for OptionalDigit {
    fn put(v: &Option<bool>) -> Option<Vec<u8>> {
        v.map(|v| vec![b'0' + u8::from(v)])
    }
    fn take(bytes: &[u8]) -> Option<Option<bool>> {
        match bytes {
            b"1" => Some(Some(true)),
            b"0" => Some(Some(false)),
            _ => None,
        }
    }
}

/// Bytes as they are, written when not empty.
struct Raw;
impl FieldCodec<String> for Raw {
    fn put(v: &String) -> Option<Vec<u8>> {
        (!v.is_empty()).then(|| v.as_bytes().to_vec())
    }
    fn take(bytes: &[u8]) -> Option<String> {
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}
impl FieldCodec<Vec<u8>> for Raw {
    fn put(v: &Vec<u8>) -> Option<Vec<u8>> {
        (!v.is_empty()).then(|| v.clone())
    }
    fn take(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
}

macro_rules! table_properties {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $default:expr, $name:literal, $how:ident;)*) => {
        /// Properties of a table file.
        ///
        /// Fields carry RocksDB's names. Sizes are bytes, times Unix seconds with 0 for unknown.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct TableProperties {
            $($(#[$doc])* #[doc = concat!("\n\nProperty `", $name, "`.")] pub $field: $type,)*
            /// Properties that RocksDB does not define: what property collectors add.
            pub user_collected: BTreeMap<Vec<u8>, Vec<u8>>,
        }

        impl Default for TableProperties {
            fn default() -> Self {
                TableProperties { $($field: $default,)* user_collected: BTreeMap::new() }
            }
        }

        impl TableProperties {
            /// The names of all properties that RocksDB defines.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The pairs to store, strictly ascending by name.
            ///
            /// A user-collected property with the name of a defined one is left out.
            pub fn encode(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
                let mut pairs = self.user_collected.clone();
                pairs.retain(|name, _| !Self::NAMES.iter().any(|n| n.as_bytes() == name));
                $(if let Some(value) = <$how as FieldCodec<$type>>::put(&self.$field) {
                    pairs.insert($name.as_bytes().to_vec(), value);
                })*
                pairs.into_iter().collect()
            }

            fn set(&mut self, name: &[u8], value: &[u8]) {
                match std::str::from_utf8(name).unwrap_or_default() {
                    $($name => if let Some(v) = <$how as FieldCodec<$type>>::take(value) {
                        self.$field = v;
                    },)*
                    _ => {
                        self.user_collected.insert(name.to_vec(), value.to_vec());
                    }
                }
            }
        }
    };
}

table_properties! {
    /// The file's number in the database that wrote it.
    orig_file_number: u64 = 0, "rocksdb.original.file.number", EachNumber;
    /// Stored bytes of all data blocks.
    data_size: u64 = 0, "rocksdb.data.size", EachNumber;
    /// Stored bytes of the index, trailers included.
    index_size: u64 = 0, "rocksdb.index.size", EachNumber;
    /// Partitions of a two-level index.
    index_partitions: u64 = 0, "rocksdb.index.partitions", NumberNotZero;
    /// Stored bytes of the top level of a two-level index.
    top_level_index_size: u64 = 0, "rocksdb.top-level.index.size", NumberNotZero;
    /// True if index keys are user keys.
    index_key_is_user_key: bool = false, "rocksdb.index.key.is.user.key", EachNumber;
    /// True if handles in the index are delta encoded.
    index_value_is_delta_encoded: bool = false, "rocksdb.index.value.is.delta.encoded", EachNumber;
    /// Not 0 if a user-defined index is the primary one.
    udi_is_primary_index: u64 = 0, "rocksdb.udi.is.primary.index", NumberNotZero;
    /// Stored bytes of the filter.
    filter_size: u64 = 0, "rocksdb.filter.size", EachNumber;
    /// Bytes of internal keys before any encoding.
    raw_key_size: u64 = 0, "rocksdb.raw.key.size", EachNumber;
    /// Bytes of values before any encoding.
    raw_value_size: u64 = 0, "rocksdb.raw.value.size", EachNumber;
    /// Data blocks.
    num_data_blocks: u64 = 0, "rocksdb.num.data.blocks", EachNumber;
    /// Data blocks stored raw because they did not compress well.
    num_data_blocks_compression_rejected: u64 = 0,
        "rocksdb.num.data.blocks.compression.rejected", NumberNotZero;
    /// Data blocks that compression was not tried on.
    num_data_blocks_compression_bypassed: u64 = 0,
        "rocksdb.num.data.blocks.compression.bypassed", NumberNotZero;
    /// Blocks marked as suited to interpolation search.
    num_uniform_blocks: u64 = 0, "rocksdb.num.uniform.blocks", NumberNotZero;
    /// Entries, range tombstones included.
    num_entries: u64 = 0, "rocksdb.num.entries", EachNumber;
    /// Keys and prefixes added to the filter.
    num_filter_entries: u64 = 0, "rocksdb.num.filter_entries", EachNumber;
    /// Deletions of every kind, range tombstones included.
    num_deletions: u64 = 0, "rocksdb.deleted.keys", EachNumber;
    /// Merge operands.
    num_merge_operands: u64 = 0, "rocksdb.merge.operands", EachNumber;
    /// Range tombstones.
    num_range_deletions: u64 = 0, "rocksdb.num.range-deletions", EachNumber;
    /// The `format_version`; 0 when the writer did not say. From 5 on the entry counts are exact.
    format_version: u64 = 0, "rocksdb.format.version", EachNumber;
    /// Length of all keys, when they have one; 0 otherwise.
    fixed_key_len: u64 = 0, "rocksdb.fixed.key.length", EachNumber;
    /// The column family's number; `i32::MAX` as u64 for unknown.
    column_family_id: u64 = i32::MAX as u64, "rocksdb.column.family.id", EachNumber;
    /// The column family's name.
    column_family_name: String = String::new(), "rocksdb.column.family.name", Raw;
    /// When the oldest data was first written to a file.
    creation_time: u64 = 0, "rocksdb.creation.time", EachNumber;
    /// When the oldest key was written.
    oldest_key_time: u64 = 0, "rocksdb.oldest.key.time", EachNumber;
    /// When the newest key was written.
    newest_key_time: u64 = 0, "rocksdb.newest.key.time", EachNumber;
    /// When the file was made.
    file_creation_time: u64 = 0, "rocksdb.file.creation.time", NumberNotZero;
    /// Estimated data size under a slow codec.
    slow_compression_estimated_data_size: u64 = 0,
        "rocksdb.sample_for_compression.slow.data.size", NumberNotZero;
    /// Estimated data size under a fast codec.
    fast_compression_estimated_data_size: u64 = 0,
        "rocksdb.sample_for_compression.fast.data.size", NumberNotZero;
    /// Offset of the first byte after the data blocks.
    tail_start_offset: u64 = 0, "rocksdb.tail.start.offset", NumberNotZero;
    /// True if keys carry their user-defined timestamps.
    user_defined_timestamps_persisted: bool = true,
        "rocksdb.user.defined.timestamps.persisted", ZeroIfFalse;
    /// The largest sequence number of any entry.
    key_largest_seqno: Option<u64> = None, "rocksdb.key.largest.seqno", Present;
    /// The smallest sequence number of any entry.
    key_smallest_seqno: Option<u64> = None, "rocksdb.key.smallest.seqno", Present;
    /// Restart interval of data blocks.
    data_block_restart_interval: u64 = 0, "rocksdb.data.block.restart.interval", NumberNotZero;
    /// Restart interval of index blocks.
    index_block_restart_interval: u64 = 0, "rocksdb.index.block.restart.interval", NumberNotZero;
    /// True if data blocks keep keys and values apart.
    separate_key_value_in_data_block: bool = false,
        "rocksdb.separate.key.value.in.data.block", NumberNotZero;
    /// The database's id.
    db_id: String = String::new(), "rocksdb.creating.db.identity", Raw;
    /// The session that wrote the file.
    db_session_id: String = String::new(), "rocksdb.creating.session.identity", Raw;
    /// The host that wrote the file.
    db_host_id: String = String::new(), "rocksdb.creating.host.identity", Raw;
    /// Name of the filter policy; empty for none.
    filter_policy_name: String = String::new(), "rocksdb.filter.policy", Raw;
    /// Name of the comparator.
    comparator_name: String = String::new(), "rocksdb.comparator", Raw;
    /// Name of the merge operator, `nullptr` for none.
    merge_operator_name: String = String::new(), "rocksdb.merge.operator", Raw;
    /// Name of the prefix extractor, `nullptr` for none.
    prefix_extractor_name: String = String::new(), "rocksdb.prefix.extractor.name", Raw;
    /// Names of the property collectors, for example `[]`.
    property_collectors_names: String = String::new(), "rocksdb.property.collectors", Raw;
    /// The codecs of the blocks; the form depends on the format version.
    compression_name: String = String::new(), "rocksdb.compression", Raw;
    /// The options of the codec.
    compression_options: String = String::new(), "rocksdb.compression_options", Raw;
    /// Sequence numbers and when they were written; see [`TableProperties::seqno_times`].
    seqno_to_time_mapping: Vec<u8> = Vec::new(), "rocksdb.seqno.time.map", Raw;
    /// The index type as RocksDB numbers it. Required by RocksDB 11.
    index_type: Option<u32> = None, "rocksdb.block.based.table.index.type", FixedNumber;
    /// True if the filter holds whole keys; absent means it may be asked.
    whole_key_filtering: Option<bool> = None, "rocksdb.block.based.table.whole.key.filtering", OptionalDigit;
    /// True if the filter holds prefixes; absent means it may be asked.
    prefix_filtering: Option<bool> = None, "rocksdb.block.based.table.prefix.filtering", OptionalDigit;
    /// True if filter partitions need not line up with index partitions.
    decoupled_partitioned_filters: Option<bool> = None,
        "rocksdb.block.based.table.decoupled.partitioned.filters", OptionalDigit;
    /// Version of a file made for ingestion; absent in files that a database wrote.
    external_sst_file_version: Option<u32> = None, "rocksdb.external_sst_file.version", FixedNumber;
    /// The sequence number that an ingested file's entries stand for.
    external_sst_file_global_seqno: Option<u64> = None,
        "rocksdb.external_sst_file.global_seqno", FixedNumber;
    /// The smallest user-defined timestamp, as raw bytes.
    timestamp_min: Vec<u8> = Vec::new(), "rocksdb.timestamp_min", Raw;
    /// The largest user-defined timestamp, as raw bytes.
    timestamp_max: Vec<u8> = Vec::new(), "rocksdb.timestamp_max", Raw;
    /// Count and bytes of blobs inside the file; absent when there are none.
    embedded_blob_stats: Option<(u64, u64)> = None, "rocksdb.embedded.blob.stats", Present;
}

/// Takes pairs in stored order, one by one, as a cursor over the properties block meets them.
#[derive(Debug, Default)]
pub struct PropertiesDecoder {
    properties: TableProperties,
    last: Option<Vec<u8>>,
}

impl PropertiesDecoder {
    /// A decoder that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one pair; `Corruption` unless its name comes after the one before.
    pub fn add(&mut self, name: &[u8], value: &[u8]) -> Result<()> {
        if self.last.as_deref().is_some_and(|last| last >= name) {
            return Err(Error::corruption(format!(
                "properties unsorted at {}",
                name.escape_ascii()
            )));
        }
        self.last = Some(name.to_vec());
        self.properties.set(name, value);
        Ok(())
    }

    /// Returns the properties of the pairs.
    pub fn finish(self) -> TableProperties {
        self.properties
    }
}

impl TableProperties {
    /// Decodes pairs in stored order; `Corruption` when the names are not strictly ascending.
    pub fn decode<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self> {
        let mut decoder = PropertiesDecoder::new();
        for (name, value) in pairs {
            decoder.add(name.as_ref(), value.as_ref())?;
        }
        Ok(decoder.finish())
    }

    /// The file's identity; `None` when the properties do not give one.
    pub fn unique_id(&self) -> Option<UniqueId> {
        UniqueId::from_identity(&self.db_id, &self.db_session_id, self.orig_file_number)
    }

    /// The pairs (sequence number, Unix time) of [`TableProperties::seqno_to_time_mapping`],
    /// ascending.
    pub fn seqno_times(&self) -> Result<Vec<(u64, u64)>> {
        let mut reader = crate::coding::Reader::new(&self.seqno_to_time_mapping);
        if reader.is_empty() {
            return Ok(Vec::new());
        }
        let count = reader.varint64()?;
        let mut pairs = Vec::new();
        let (mut seqno, mut time) = (0u64, 0u64);
        for _ in 0..count {
            seqno = seqno.wrapping_add(reader.varint64()?);
            time = time.wrapping_add(reader.varint64()?);
            pairs.push((seqno, time));
        }
        reader.finish("sequence to time mapping")?;
        Ok(pairs)
    }

    /// Replaces the sequence to time mapping by these ascending pairs.
    pub fn set_seqno_times(&mut self, pairs: &[(u64, u64)]) {
        self.seqno_to_time_mapping.clear();
        if pairs.is_empty() {
            return;
        }
        put_varint64(&mut self.seqno_to_time_mapping, pairs.len() as u64);
        let mut before = (0u64, 0u64);
        for &(seqno, time) in pairs {
            put_varint64(
                &mut self.seqno_to_time_mapping,
                seqno.wrapping_sub(before.0),
            );
            put_varint64(&mut self.seqno_to_time_mapping, time.wrapping_sub(before.1));
            before = (seqno, time);
        }
    }
}

#[cfg(test)]
mod tests;
