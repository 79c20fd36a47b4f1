//! A search for the name that was meant by one that is not known.

/// Names of `db_bench` and `ldb`, and the options that they set.
const TOOL_NAMES: &[(&str, &str)] = &[
    ("auto_compaction", "disable_auto_compactions"),
    ("blob_compression_type", "blob_compression_type"),
    ("bloom_bits", "filter_policy"),
    ("cache_size", "block_cache"),
    ("compression_level", "compression_opts"),
    ("compression_max_dict_bytes", "compression_opts"),
    ("compression_type", "compression"),
    ("file_size", "target_file_size_base"),
    ("fix_prefix_len", "prefix_extractor"),
    ("memtablerep", "memtable_factory"),
    ("mmap_read", "allow_mmap_reads"),
    ("mmap_write", "allow_mmap_writes"),
    ("open_files", "max_open_files"),
    ("prefix_size", "prefix_extractor"),
];

/// The names among `options` that somebody may have meant by one that there is not.
pub(super) fn suggestion(name: &str, options: Vec<&'static str>) -> Option<String> {
    let tool = |name: &str| TOOL_NAMES.iter().find(|(tool, _)| *tool == name);
    if let Some((tool, option)) = tool(name) {
        return Some(format!("{tool} is what db_bench and ldb call {option}."));
    }
    let near = options
        .iter()
        .copied()
        .chain(TOOL_NAMES.iter().map(|(tool, _)| *tool))
        .min_by_key(|n| distance(name, n))?;
    if distance(name, near) <= (name.len() / 4).max(1) {
        return Some(match tool(near).filter(|(t, o)| t != o) {
            Some((tool, option)) => {
                format!("did you mean {option}, which db_bench and ldb call {tool}?")
            }
            None => format!("did you mean {near}?"),
        });
    }
    let mut with: Vec<&str> = options
        .into_iter()
        .filter(|n| name.len() > 2 && n.contains(name))
        .collect();
    with.dedup();
    if with.is_empty() {
        return Some(format!("did you mean {near}?"));
    }
    Some(format!("names with {name} in them: {}.", with.join(", ")))
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<u8> = b.bytes().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_changed_letters() {
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
