//! `esker recompress`: how large a table would be with other codecs, levels and block sizes. The
//! tables that it makes are in memory and are dropped.

use crate::directory::files_of;
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::sst::open;
use crate::text::size;
use clap::Args;
use esker::codec::compress::{Codec, CompressionOptions};
use esker_env::{FileSystem, MemFs, WriteOptions};
use esker_files::table::{
    ReadContext, TableBuilder, TableBuilderOptions, TableOptions, TableReader,
};
use esker_format::Cursor;
use esker_format::file_name::FileKind;
use esker_status::Result;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that are read ahead.
const READAHEAD: usize = 1 << 20;

/// Arguments of `esker recompress`.
#[derive(Args, Debug)]
pub(crate) struct CompressionSizesArgs {
    /// Table files, or databases' directories, whose tables they are then
    #[arg(value_name = "FILE|DB", required = true)]
    paths: Vec<PathBuf>,
    /// Codecs by RocksDB's names, as kZSTD or zstd; all when not given
    #[arg(long, value_name = "CODEC", value_delimiter = ',')]
    codecs: Vec<String>,
    /// The first level; the codec's own when not given
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    level_from: Option<i32>,
    /// The last level
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        requires = "level_from"
    )]
    level_to: Option<i32>,
    /// Bytes of a block before compression
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    block_size: usize,
    /// Bytes of a dictionary; 0 for none
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    dict_bytes: u32,
    /// Bytes of samples that a dictionary of zstd is trained from
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    train_bytes: u32,
}

/// A table that was made again.
pub(crate) struct CompressedTable {
    /// Its bytes.
    pub(crate) bytes: u64,
    /// Its data blocks.
    pub(crate) blocks: u64,
    /// Blocks that did not shrink enough.
    pub(crate) rejected: u64,
    /// Blocks that were not tried.
    pub(crate) bypassed: u64,
    /// The time that it took.
    pub(crate) time: Duration,
}

/// Every codec that can be written.
pub(crate) fn all_codecs() -> Vec<Codec> {
    let all = (0..=7).filter_map(Codec::from_u8);
    all.filter(|c| c.is_supported()).collect()
}

/// Makes a table again in memory.
pub(crate) fn again(
    table: &Arc<TableReader>,
    shape: &TableOptions,
    codec: Codec,
    options: &CompressionOptions,
) -> Result<CompressedTable> {
    let begin = Instant::now();
    let fs = MemFs::new();
    let p = table.properties();
    let builder = TableBuilderOptions {
        order: table.order().clone(),
        table: shape.clone(),
        compression: codec,
        compression_opts: options.clone(),
        merge_operator: Some(p.merge_operator_name.clone()).filter(|n| !n.is_empty()),
        db_id: p.db_id.clone(),
        db_session_id: p.db_session_id.clone(),
        db_host_id: p.db_host_id.clone(),
        ..TableBuilderOptions::default()
    };
    let file = fs.create(Path::new("/table"), WriteOptions::default())?;
    let mut builder = TableBuilder::new(file, builder)?;
    let context = ReadContext {
        readahead_size: READAHEAD,
        ..ReadContext::compaction(READAHEAD)
    };
    let mut cursor = table.cursor(&context);
    cursor.seek_to_first();
    while cursor.valid() {
        builder.add(cursor.key(), cursor.value())?;
        cursor.next();
    }
    cursor.status()?;
    for t in table.range_tombstones().iter() {
        builder.add_tombstone(t);
    }
    let (made, _) = builder.finish()?;
    let p = &made.properties;
    Ok(CompressedTable {
        bytes: made.file_size,
        blocks: p.num_data_blocks,
        rejected: p.num_data_blocks_compression_rejected,
        bypassed: p.num_data_blocks_compression_bypassed,
        time: begin.elapsed(),
    })
}

/// The codec of a name of an option or of a tool.
pub(crate) fn codec_of(name: &str) -> Option<Codec> {
    let found = Codec::from_option_name(name).or_else(|| Codec::from_tool_name(name));
    found.filter(|c| c.is_supported())
}

/// Runs `esker recompress`.
pub(crate) fn run(args: &CompressionSizesArgs, out: &mut Out) -> Outcome {
    let mut codecs = Vec::new();
    for name in &args.codecs {
        let unknown = || {
            let all = all_codecs();
            let all: Vec<_> = all.iter().map(|c| c.tool_name()).collect();
            Failure::Usage(format!("{name} is not a codec: {}", all.join(", ")))
        };
        codecs.push(codec_of(name).ok_or_else(unknown)?);
    }
    if codecs.is_empty() {
        codecs = all_codecs();
    }
    let shape = TableOptions {
        block_size: args.block_size,
        ..TableOptions::default()
    };
    for path in &args.paths {
        let files = files_of(path, FileKind::Table)?;
        if files.is_empty() {
            out.line(format!("no tables in {}", path.display()))?;
        }
        for file in files {
            let table = open(&file.path, file.number)?;
            out.line(format!("{} ({})", file.path.display(), size(file.len)))?;
            for codec in &codecs {
                for level in levels(args) {
                    show(args, &file.path, &table, &shape, *codec, level, out)?;
                    out.flush()?;
                }
            }
        }
    }
    Ok(())
}

/// The levels to try; `None` is the codec's own.
fn levels(args: &CompressionSizesArgs) -> Vec<Option<i32>> {
    match args.level_from {
        None => vec![None],
        Some(from) => (from..=args.level_to.unwrap_or(from)).map(Some).collect(),
    }
}

fn show(
    args: &CompressionSizesArgs,
    path: &Path,
    table: &Arc<TableReader>,
    shape: &TableOptions,
    codec: Codec,
    level: Option<i32>,
    out: &mut Out,
) -> Outcome {
    let mut options = CompressionOptions {
        max_dict_bytes: args.dict_bytes,
        zstd_max_train_bytes: args.train_bytes,
        ..CompressionOptions::default()
    };
    if let Some(level) = level {
        options.level = level;
    }
    let made = again(table, shape, codec, &options)?;
    let named = level.map_or_else(String::new, |l| format!(" level {l}"));
    let share = made.bytes as f64 * 100.0 / (table.file_size().max(1)) as f64;
    out.line(format!(
        "  {:<8}{named:<9} {:>10} {share:>6.1} % {:>9} blocks {:>9.3} s",
        codec.tool_name(),
        size(made.bytes),
        made.blocks,
        made.time.as_secs_f64()
    ))?;
    out.object(|| {
        json!({"type": "recompressed", "path": path.to_string_lossy(), "codec": codec.tool_name(),
            "level": level, "bytes": made.bytes, "blocks": made.blocks,
            "blocks_not_compressed": made.rejected + made.bypassed,
            "seconds": made.time.as_secs_f64()})
    })
}
