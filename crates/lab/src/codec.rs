//! The benchmarks of single routines: checksums and compressors over blocks of `--block_size`
//! bytes.
//!
//! They measure the embedded engine's own routines, whatever `--engine` says, as `db_bench` does.

use esker::codec::checksum::{self, ChecksumType};
use esker::codec::compress::{Codec, CompressionOptions, Compressor, decompress};

use crate::flags::Flags;
use crate::generate::{ValueSizes, ValueSource};
use crate::measure::{Measurement, Meter, Slot};
use crate::{Failure, Result};

/// Bytes that a checksum benchmark covers; compressors cover a tenth.
const CHECKSUM_BYTES: u64 = 5_000_000_000;
const COMPRESSOR_BYTES: u64 = CHECKSUM_BYTES / 10;

/// Runs the benchmark `name`; `None` when it is not one of [`crate::benchmarks::CODEC_BENCHMARKS`].
///
/// # Errors
/// A compression that is not built in, or a block that does not come back.
pub fn run(name: &str, flags: &Flags) -> Result<Option<Measurement>> {
    let block = block(flags);
    let size = block.len();
    let mut meter = Meter::start(&IDLE, flags.flag("histogram"));
    match name {
        "crc32c" => checksums(&mut meter, &block, |b| u64::from(checksum::crc32c(b))),
        "xxhash" => block_checksums(&mut meter, &block, "kxxHash")?,
        "xxhash64" => block_checksums(&mut meter, &block, "kxxHash64")?,
        "xxh3" => checksums(&mut meter, &block, checksum::xxh3_64),
        "compress" => {
            let mut compressor = compressor(flags)?;
            let mut stored = Vec::new();
            for _ in 0..COMPRESSOR_BYTES / size as u64 {
                if crate::interrupt::stopped() {
                    break;
                }
                stored.clear();
                compressor.compress_always(std::hint::black_box(&block), &mut stored)?;
                meter.add_bytes(size as u64);
                meter.finished(1);
            }
            let percent = 100.0 * stored.len() as f64 / size as f64;
            meter.set_message(format!("(output: {percent:.1}%)"));
        }
        "uncompress" => {
            let mut compressor = compressor(flags)?;
            let (mut stored, mut raw) = (Vec::new(), Vec::new());
            compressor.compress_always(&block, &mut stored)?;
            for _ in 0..COMPRESSOR_BYTES / size as u64 {
                if crate::interrupt::stopped() {
                    break;
                }
                decompress(compressor.codec(), &stored, None, size, &mut raw)?;
                meter.add_bytes(size as u64);
                meter.finished(1);
            }
            if raw != block {
                return Err(Failure::new("the block did not come back"));
            }
        }
        _ => return Ok(None),
    }
    Ok(Some(meter.stop()))
}

/// A block of `block_size` bytes, of which `compression_ratio` is left by compression.
pub(crate) fn block(flags: &Flags) -> Vec<u8> {
    let size = flags.count("block_size").clamp(16, 1 << 20) as usize;
    let mut maker = ValueSource::new(ValueSizes::Fixed(size), flags.number("compression_ratio"));
    maker.value().to_vec()
}

/// Nobody samples these benchmarks while they run.
static IDLE: Slot = Slot::new();

fn checksums(meter: &mut Meter<'_>, block: &[u8], sum: impl Fn(&[u8]) -> u64) {
    let mut last = 0;
    for _ in 0..CHECKSUM_BYTES / block.len() as u64 {
        if crate::interrupt::stopped() {
            break;
        }
        last ^= sum(std::hint::black_box(block));
        meter.add_bytes(block.len() as u64);
        meter.finished(1);
    }
    std::hint::black_box(last);
    meter.set_message(format!("({} per op)", block.len()));
}

/// A checksum of blocks by the name of its option.
fn block_checksums(meter: &mut Meter<'_>, block: &[u8], name: &str) -> Result<()> {
    let kind = ChecksumType::from_option_name(name)
        .ok_or_else(|| Failure::new(format!("there is no checksum {name}")))?;
    checksums(meter, block, |b| u64::from(kind.compute(b, 0)));
    Ok(())
}

/// A compressor of `compression_type`.
pub(crate) fn compressor(flags: &Flags) -> Result<Compressor> {
    let name = flags.text("compression_type");
    let codec = Codec::from_tool_name(name)
        .ok_or_else(|| Failure::new(format!("unknown compression `{name}`")))?;
    if codec == Codec::None {
        return Err(Failure::new("--compression_type=none compresses nothing"));
    }
    Ok(Compressor::new(codec, CompressionOptions::default(), None)?)
}
