//! How much memory values of many megabytes take on their way: each is held once where it is stored
//! as it is, and twice where it is compressed.

use esker_codec::compress::Codec;
use esker_env::{Env, ReadOptions, WriteOptions};
use esker_files::table::{
    LookupKey, ReadContext, TableBuilder, TableBuilderOptions, TableOptions, TableReader,
    TableReaderOptions,
};
use esker_format::key::append_internal;
use esker_format::{Cursor, Seq, ValueType};
use esker_fuzz::memory::{self, Counting};
use esker_status::Result;
use std::path::Path;
use std::sync::Arc;

#[global_allocator]
static COUNTED: Counting = Counting;

const VALUE: usize = 16 << 20;
const VALUES: u64 = 5;
/// Windows of a file, write buffers and all that is small.
const REST: usize = 9 << 20;

fn key(i: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let user = format!("key{i:03}");
    append_internal(&mut out, user.as_bytes(), Seq(9), ValueType::Value);
    out
}

/// A value of which a compressor can take away about half.
fn value(i: u64) -> Vec<u8> {
    let mut state = i + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut out = Vec::with_capacity(VALUE);
    while out.len() < VALUE {
        out.extend(next().to_le_bytes());
        out.extend([b'v'; 8]);
    }
    out
}

/// Writes a table; the memory that it took beyond the values themselves.
fn write(path: &Path, compression: Codec) -> Result<usize> {
    let values: Vec<_> = (0..VALUES).map(value).collect();
    let options = TableBuilderOptions {
        compression,
        ..TableBuilderOptions::default()
    };
    let base = memory::begin();
    let file = Env::posix().fs.create(path, WriteOptions::default())?;
    let mut b = TableBuilder::new(file, options)?;
    for (i, value) in (0..).zip(&values) {
        b.add(&key(i), value)?;
    }
    let (_, mut file) = b.finish()?;
    file.close()?;
    Ok(memory::most_since(base))
}

fn open(path: &Path) -> Result<Arc<TableReader>> {
    let options = TableReaderOptions {
        table: TableOptions {
            no_block_cache: true,
            ..TableOptions::default()
        },
        ..TableReaderOptions::default()
    };
    let file = Env::posix().fs.open_read(path, ReadOptions::default())?;
    let size = file.len();
    TableReader::open(file, size, options)
}

/// Walks the table; the memory that it took.
fn walk(table: &Arc<TableReader>, ctx: &ReadContext) -> Result<usize> {
    let base = memory::begin();
    let mut c = table.cursor(ctx);
    let mut n = 0;
    c.seek_to_first();
    while c.valid() {
        assert_eq!(c.value().len(), VALUE);
        n += 1;
        c.next();
    }
    c.status()?;
    assert_eq!(n, VALUES);
    drop(c);
    Ok(memory::most_since(base))
}

#[test]
fn values_are_held_once_and_compressed_ones_twice() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    for (compression, copies) in [(Codec::None, 1), (Codec::Lz4, 2), (Codec::Zstd, 2)] {
        let path = dir.path().join(format!("{}.sst", compression as u8));
        // A growing buffer counts twice while it is moved.
        let took = write(&path, compression)?;
        let bound = (copies + 1) * VALUE + REST;
        assert!(
            took <= bound,
            "{compression:?}: writing took {took} of {bound}"
        );
        let table = open(&path)?;
        let bound = copies * VALUE + REST;
        let job = ReadContext {
            fill_cache: false,
            readahead_size: 2 << 20,
            background: true,
            ..ReadContext::default()
        };
        let ahead = ReadContext {
            background: false,
            ..job.clone()
        };
        for (name, ctx) in [
            ("a job", job),
            ("readahead", ahead),
            ("a walk", ReadContext::default()),
        ] {
            let took = walk(&table, &ctx)?;
            assert!(took <= bound, "{compression:?}, {name}: {took} of {bound}");
        }
        let base = memory::begin();
        let mut len = 0;
        table.get(&ReadContext::default(), &LookupKey::new(&key(3), 0), |e| {
            len = e.value().len();
            false
        })?;
        assert_eq!(len, VALUE);
        let took = memory::most_since(base);
        assert!(took <= bound, "{compression:?}, a Get: {took} of {bound}");
    }
    Ok(())
}
