//! Reads every table under the directory that `ESKER_GOLDEN` names (files written by RocksDB) in
//! every way the reader knows, and compares the ways with each other and with the table's own
//! counts.

use esker_env::{Env, ReadOptions};
use esker_files::table::{
    BlockCache, LookupKey, ReadContext, TableOptions, TableReader, TableReaderOptions,
    read_properties,
};
use esker_format::key::user_key;
use esker_format::{Comparator, Cursor, KeyOrder, PrefixExtractor};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn tables(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir)
        .expect("readable directory")
        .flatten()
        .map(|e| e.path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            tables(&path, out);
        } else if path.extension().is_some_and(|e| e == "sst") {
            out.push(path);
        }
    }
}

/// An order of bytes under a name of MyRocks.
struct SqlOrder(&'static str);

impl Comparator for SqlOrder {
    fn name(&self) -> &str {
        self.0
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.0.starts_with("rev:") {
            b.cmp(a)
        } else {
            a.cmp(b)
        }
    }

    fn can_keys_with_different_bytes_be_equal(&self) -> bool {
        false
    }
}

fn order_of(name: &str) -> KeyOrder {
    let of_sql = ["RocksDB_SE_v3.10", "rev:RocksDB_SE_v3.10"];
    match of_sql.into_iter().find(|known| *known == name) {
        Some(known) => KeyOrder::Custom(Arc::new(SqlOrder(known))),
        None => KeyOrder::builtin(name).expect("a built-in comparator"),
    }
}

fn options(order: KeyOrder, extractor: &str, cached: bool) -> TableReaderOptions {
    TableReaderOptions {
        order,
        prefix_extractor: PrefixExtractor::builtin(extractor),
        cache: cached.then(|| {
            Arc::new(BlockCache::new(esker_cache::CacheOptions::with_capacity(
                1 << 20,
            )))
        }),
        table: TableOptions {
            cache_index_and_filter_blocks: cached,
            ..TableOptions::default()
        },
        ..TableReaderOptions::default()
    }
}

fn walk(reader: &Arc<TableReader>, path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let ctx = ReadContext::default();
    let mut c = reader.cursor(&ctx);
    let mut all = Vec::new();
    c.seek_to_first();
    while c.valid() {
        all.push((c.key().to_vec(), c.value().to_vec()));
        c.next();
    }
    c.status()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut at = all.len();
    c.seek_to_last();
    while c.valid() {
        at -= 1;
        assert_eq!(
            (c.key(), c.value()),
            (&all[at].0[..], &all[at].1[..]),
            "{} backwards at {at}",
            path.display()
        );
        c.prev();
    }
    c.status()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(at, 0, "{} backwards", path.display());
    all
}

fn check(path: &Path, cached: bool) -> Option<usize> {
    let file = Env::posix()
        .fs
        .open_read(path, ReadOptions::default())
        .expect("opens");
    let size = file.len();
    let props = read_properties(file.clone()).unwrap_or_else(|e| panic!("{e}"));
    // Keys whose timestamps were not stored are whole in the order without them.
    let name = if props.user_defined_timestamps_persisted {
        props.comparator_name.as_str()
    } else {
        props.comparator_name.trim_end_matches(".u64ts")
    };
    let order = order_of(name);
    let options = options(order.clone(), &props.prefix_extractor_name, cached);
    let reader = match TableReader::open(file, size, options) {
        Ok(r) => r,
        Err(e) if e.kind() == esker_status::ErrorKind::NotSupported => {
            println!("refused: {e}");
            return None;
        }
        Err(e) => panic!("{e}"),
    };
    let all = walk(&reader, path);
    assert_eq!(
        all.len() as u64,
        props.num_entries - props.num_range_deletions,
        "{}",
        path.display()
    );
    assert_eq!(
        reader.range_tombstones().len() as u64,
        props.num_range_deletions,
        "{}",
        path.display()
    );
    for pair in all.windows(2) {
        assert!(
            order.compare_internal(&pair[0].0, &pair[1].0).is_lt(),
            "{} order",
            path.display()
        );
    }
    let mut c = reader.cursor(&ReadContext::default());
    let mut prefix = reader.cursor(&ReadContext {
        prefix_same_as_start: true,
        ..ReadContext::default()
    });
    for (i, (key, value)) in all.iter().enumerate() {
        let lookup = LookupKey::new(key, order.timestamp_size());
        let mut found = None;
        reader
            .get(&ReadContext::default(), &lookup, |e| {
                found = Some((e.key().to_vec(), e.pin().as_slice().to_vec()));
                false
            })
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(
            found,
            Some((key.clone(), value.clone())),
            "{} get {i}",
            path.display()
        );
        if i % 7 == 0 {
            c.seek(key);
            assert!(
                c.valid() && c.key() == &key[..] && c.value() == &value[..],
                "{} seek {i}",
                path.display()
            );
            prefix.seek(key);
            assert!(
                prefix.valid() && prefix.key() == &key[..],
                "{} prefix seek {i}",
                path.display()
            );
            c.seek_for_prev(key);
            assert!(
                c.valid() && c.key() == &key[..],
                "{} seek_for_prev {i}",
                path.display()
            );
        }
        let mut absent = user_key(key).to_vec();
        absent.extend_from_slice(b"~~");
        if order.is_bytewise() {
            esker_format::key::append_internal(
                &mut absent,
                b"",
                esker_format::Seq::MAX,
                esker_format::ValueType::SEEK,
            );
            let lookup = LookupKey::new(&absent, 0);
            reader
                .get(&ReadContext::default(), &lookup, |_| {
                    panic!("found what is not there")
                })
                .expect("reads");
        }
    }
    Some(all.len())
}

#[test]
fn reads_every_golden_table() {
    let Some(dir) = std::env::var_os("ESKER_GOLDEN") else {
        println!("SKIPPED: ESKER_GOLDEN is not set");
        return;
    };
    let mut paths = Vec::new();
    tables(Path::new(&dir), &mut paths);
    assert!(!paths.is_empty(), "no tables under {dir:?}");
    let (mut entries, mut refused) = (0, 0);
    for path in &paths {
        for cached in [false, true] {
            match check(path, cached) {
                Some(n) => entries += n,
                None => refused += 1,
            }
        }
    }
    println!(
        "{} tables, {entries} entries, {refused} refused",
        paths.len()
    );
}
