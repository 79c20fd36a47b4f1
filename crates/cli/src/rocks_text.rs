//! Keys, properties, edits and times as RocksDB's tools print them.

use crate::failure::Outcome;
use crate::out::Out;
use esker_files::table::TableReader;
use esker_format::edit::{NewFile, UNKNOWN_CHECKSUM, VersionEdit};
use esker_format::properties::TableProperties;
use esker_format::{InternalKey, ParsedKey};
use std::fmt::Write;

/// Two digits for each byte, without `0x`.
pub(crate) fn digits(bytes: &[u8]) -> String {
    crate::text::hex(bytes).split_off(2)
}

/// Bytes as they are, or in digits.
pub(crate) fn plain(bytes: &[u8], is_hex: bool) -> Vec<u8> {
    if is_hex {
        digits(bytes).into_bytes()
    } else {
        bytes.to_vec()
    }
}

/// `'key' seq:1, type:1`.
pub(crate) fn internal_key(key: &ParsedKey<'_>, is_hex: bool) -> Vec<u8> {
    let mut out = b"'".to_vec();
    out.extend_from_slice(&plain(key.user, is_hex));
    let rest = format!("' seq:{}, type:{}", key.seq, key.kind as u8);
    out.extend_from_slice(rest.as_bytes());
    out
}

fn boundary(key: &InternalKey) -> String {
    let (seq, kind) = (key.seq(), key.kind() as u8);
    format!(
        "'{}' seq:{seq}, type:{kind}",
        String::from_utf8_lossy(key.user())
    )
}

/// A line of an entry: key, `=>` and value.
pub(crate) fn entry(key: &ParsedKey<'_>, value: &[u8], is_hex: bool, out: &mut Out) -> Outcome {
    out.stored(&internal_key(key, is_hex))?;
    out.bytes(b" => ")?;
    out.stored(&plain(value, is_hex))?;
    out.bytes(b"\n")
}

/// The id of a table that is shown, by the one in the MANIFEST.
fn public_id(internal: [u64; 2]) -> [u64; 2] {
    const HIGH: u64 = 17_391_078_804_906_429_400;
    const LOW: u64 = 6_417_269_962_128_484_497;
    let wide = |a: u64, b: u64| u128::from(a) * u128::from(b);
    let avalanche = |mut n: u64| {
        n ^= n >> 37;
        n = n.wrapping_mul(0x1656_6791_9E37_79F9);
        n ^ (n >> 32)
    };
    let high = internal[1].wrapping_add(HIGH);
    let low = internal[0].wrapping_add(LOW);
    let first = wide(low ^ high ^ 0x5997_3f00_3336_2349, 0x9E37_79B1_85EB_CA87);
    let mut lower = (first as u64).wrapping_add(15 << 54);
    let flipped = high ^ 0xc202_7976_92d6_3d58;
    let upper = ((first >> 64) as u64)
        .wrapping_add(flipped)
        .wrapping_add((flipped & 0xFFFF_FFFF).wrapping_mul(0x85EB_CA76));
    lower ^= upper.swap_bytes();
    let second = wide(lower, 0xC2B2_AE3D_27D4_EB4F);
    let upper = ((second >> 64) as u64).wrapping_add(upper.wrapping_mul(0xC2B2_AE3D_27D4_EB4F));
    [avalanche(second as u64), avalanche(upper)]
}

/// `0123456789ABCDEF-0123456789ABCDEF`.
fn public_id_text(internal: [u64; 2]) -> String {
    let words = public_id(internal).map(|w| digits(&w.to_le_bytes()));
    words.join("-")
}

/// Names and values of a table's properties, in RocksDB's order.
pub(crate) fn properties(p: &TableProperties) -> Vec<(String, String)> {
    let or = |text: &str, none: &str| {
        if text.is_empty() {
            none.to_owned()
        } else {
            text.to_owned()
        }
    };
    let share = |n: u64, of: u64| if of == 0 { 0.0 } else { n as f64 / of as f64 };
    let number = |n: u64| n.to_string();
    let average = |n: u64| format!("{:.6}", share(n, p.num_entries));
    let index = format!(
        "index block size (user-key? {}, delta-value? {})",
        u8::from(p.index_key_is_user_key),
        u8::from(p.index_value_is_delta_encoded)
    );
    let family = match p.column_family_id {
        n if n == i32::MAX as u64 => "N/A".to_owned(),
        n => n.to_string(),
    };
    let id = p
        .unique_id()
        .map_or_else(|| "N/A".to_owned(), |id| public_id_text(id.0));
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| all.push((name.to_owned(), value));
    add("# data blocks", number(p.num_data_blocks));
    add("# entries", number(p.num_entries));
    add("# deletions", number(p.num_deletions));
    add("# merge operands", number(p.num_merge_operands));
    add("# range deletions", number(p.num_range_deletions));
    add("raw key size", number(p.raw_key_size));
    add("raw average key size", average(p.raw_key_size));
    add("raw value size", number(p.raw_value_size));
    add("raw average value size", average(p.raw_value_size));
    add("data block size", number(p.data_size));
    add(&index, number(p.index_size));
    if p.index_partitions > 0 {
        add("# index partitions", number(p.index_partitions));
        add("top-level index size", number(p.top_level_index_size));
    }
    add("filter block size", number(p.filter_size));
    add("# entries for filter", number(p.num_filter_entries));
    let estimated = p.data_size + p.index_size + p.filter_size;
    add("(estimated) table size", number(estimated));
    add("filter policy name", or(&p.filter_policy_name, "N/A"));
    add("prefix extractor name", or(&p.prefix_extractor_name, "N/A"));
    add("column family ID", family);
    add("column family name", or(&p.column_family_name, "N/A"));
    add("comparator name", or(&p.comparator_name, "N/A"));
    add("merge operator name", or(&p.merge_operator_name, "N/A"));
    add(
        "property collectors names",
        or(&p.property_collectors_names, "N/A"),
    );
    add("SST file compression algo", or(&p.compression_name, "N/A"));
    add(
        "SST file compression options",
        or(&p.compression_options, "N/A"),
    );
    add("creation time", number(p.creation_time));
    add("time stamp of earliest key", number(p.oldest_key_time));
    add("file creation time", number(p.file_creation_time));
    add(
        "slow compression estimated data size",
        number(p.slow_compression_estimated_data_size),
    );
    add(
        "fast compression estimated data size",
        number(p.fast_compression_estimated_data_size),
    );
    add("DB identity", p.db_id.clone());
    add("DB session identity", p.db_session_id.clone());
    add("DB host id", p.db_host_id.clone());
    add("original file number", number(p.orig_file_number));
    add("unique ID", id);
    let times = p.seqno_times().unwrap_or_default();
    let times: Vec<String> = times.iter().map(|(s, t)| format!("{s}->{t}")).collect();
    add("Sequence number to time mapping", times.join(","));
    all
}

/// `Process PATH` and the kind of the file.
pub(crate) fn begin_table(path: &str, out: &mut Out) -> Outcome {
    out.line(format!("Process {path}"))?;
    out.line("Sst file format: block-based")
}

/// The properties of a table, with `indent` before each and `between` name and value.
pub(crate) fn show_properties(
    table: &TableReader,
    indent: &str,
    between: &str,
    out: &mut Out,
) -> Outcome {
    for (name, value) in properties(table.properties()) {
        out.line(format!("{indent}{name}{between}{value}"))?;
    }
    Ok(())
}

/// A table of a MANIFEST: its number, size, sequences and boundaries.
pub(crate) fn table_line(file: &NewFile) -> String {
    format!(
        " {}:{}[{} .. {}][{} .. {}]",
        file.number,
        file.size,
        file.smallest_seq,
        file.largest_seq,
        boundary(&file.smallest),
        boundary(&file.largest)
    )
}

fn added(level: impl std::fmt::Display, f: &NewFile) -> String {
    let mut text = format!(
        "\n  AddFile: {level} {} {} {} .. {}",
        f.number,
        f.size,
        boundary(&f.smallest),
        boundary(&f.largest)
    );
    if let Some(blob) = f.oldest_blob_file {
        let _ = write!(text, " blob_file:{blob}");
    }
    let function = if f.checksum_function.is_empty() {
        UNKNOWN_CHECKSUM
    } else {
        &f.checksum_function
    };
    let _ = write!(
        text,
        " oldest_ancester_time:{} file_creation_time:{} file_checksum:{} file_checksum_func_name: \
         {function}",
        f.oldest_ancestor_time,
        f.creation_time,
        digits(&f.checksum)
    );
    if f.temperature != 0 {
        let _ = write!(text, " temperature: {}", f.temperature);
    }
    if let Some(id) = f.unique_id {
        let public = public_id_text(id);
        let _ = write!(
            text,
            " unique_id(internal): {{{},{}}} public_unique_id: {public}",
            id[0], id[1]
        );
    }
    text
}

/// An edit of a MANIFEST.
pub(crate) fn edit(e: &VersionEdit) -> String {
    let mut r = String::from("VersionEdit {");
    if let Some(id) = &e.db_id {
        let _ = write!(r, "\n  DB ID: {id}");
    }
    if let Some(name) = &e.comparator {
        let _ = write!(r, "\n  Comparator: {name}");
    }
    for (name, value) in [
        ("LogNumber", e.log_number.map(|n| n.0)),
        ("PrevLogNumber", e.prev_log_number.map(|n| n.0)),
        ("NextFileNumber", e.next_file_number.map(|n| n.0)),
        (
            "MaxColumnFamily",
            e.max_column_family.map(|n| u64::from(n.0)),
        ),
        ("MinLogNumberToKeep", e.min_log_number_to_keep.map(|n| n.0)),
        ("LastSeq", e.last_sequence.map(|n| n.0)),
    ] {
        if let Some(value) = value {
            let _ = write!(r, "\n  {name}: {value}");
        }
    }
    for (level, key) in &e.compact_cursors {
        let _ = write!(r, "\n  CompactCursor: {level} {}", boundary(key));
    }
    for (level, number) in &e.deleted_files {
        let _ = write!(r, "\n  DeleteFile: {level} {number}");
    }
    for (level, file) in &e.new_files {
        r.push_str(&added(level, file));
    }
    for b in &e.blob_additions {
        let _ = write!(
            r,
            "\n  BlobFileAddition: blob_file_number: {} total_blob_count: {} total_blob_bytes: {} \
             checksum_method: {} checksum_value: {}",
            b.number,
            b.total_count,
            b.total_bytes,
            b.checksum_method,
            digits(&b.checksum_value)
        );
    }
    for g in &e.blob_garbage {
        let _ = write!(
            r,
            "\n  BlobFileGarbage: blob_file_number: {} garbage_blob_count: {} \
             garbage_blob_bytes: {}",
            g.number, g.count, g.bytes
        );
    }
    for wal in &e.wal_additions {
        let size = wal
            .synced_size
            .map_or_else(|| u64::MAX.to_string(), |s| s.to_string());
        let _ = write!(
            r,
            "\n  WalAddition: log_number: {} synced_size_in_bytes: {size}",
            wal.number
        );
    }
    if let Some(number) = e.wal_deletion {
        let _ = write!(r, "\n  WalDeletion: log_number: {number}");
    }
    let _ = write!(r, "\n  ColumnFamily: {}", e.family);
    if let Some(name) = &e.family_add {
        let _ = write!(r, "\n  ColumnFamilyAdd: {name}");
    }
    if e.family_drop {
        r.push_str("\n  ColumnFamilyDrop");
    }
    if let Some(left) = e.remaining_in_group {
        let _ = write!(r, "\n  AtomicGroup: {left} entries remains");
    }
    r.push_str("\n}");
    r
}

/// Unix seconds as a date in UTC: `Sun Nov 29 06:38:02 2026`.
pub(crate) fn time(unix: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let unix = u64::try_from(unix).unwrap_or_default();
    let (year, month, day) = crate::backup::date(unix);
    let (h, m, s) = (unix / 3_600 % 24, unix / 60 % 60, unix % 60);
    let weekday = DAYS[(unix / 86_400 % 7) as usize];
    let month = MONTHS[(month - 1) as usize];
    format!("{weekday} {month} {day:>2} {h:02}:{m:02}:{s:02} {year}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_c_library() {
        assert_eq!(time(1_368_146_402), "Fri May 10 00:40:02 2013");
        assert_eq!(time(i64::from(i32::MAX)), "Tue Jan 19 03:14:07 2038");
        assert_eq!(time(0), "Thu Jan  1 00:00:00 1970");
    }

    #[test]
    fn the_id_that_is_shown_is_rocksdbs() {
        let internal = [12_130_949_406_843_324_768, 14_854_391_037_153_084_879];
        assert_eq!(
            public_id_text(internal),
            "615BF84F584BF5AA-C5FD7069457A0E8E"
        );
    }
}
