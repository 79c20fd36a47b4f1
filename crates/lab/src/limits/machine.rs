//! The constants of a machine, measured.

use crate::codec::{block, compressor};
use crate::flags::Flags;
use crate::generate::Rng;
use crate::interrupt::Scratch;
use crate::{Failure, Result};
use esker::codec::checksum;
use esker::codec::compress::{Codec, decompress};
use esker::env::{AlignedBuf, Clock, FileSystem, PosixFs, ReadOptions, SystemClock, WriteOptions};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// More than the caches of a processor hold.
const FAR: usize = 128 << 20;
/// Bytes of each file.
const FILE: usize = 128 << 20;
/// Bytes of a request.
const REQUEST: usize = 1 << 20;
/// Files that are written to the device, and read from it, at the same time.
const FILES: usize = 4;
/// Dependent misses at the same time that count as overlapping.
const CHAINS: usize = 8;
/// The best of this many attempts counts: what disturbs makes things slower.
const ATTEMPTS: usize = 4;

/// Best rates of a machine: seconds, and bytes a second of one thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Processors that may be used.
    pub processors: usize,
    /// Seconds of a load from memory whose address the load before it gave.
    pub miss: f64,
    /// Seconds of a miss where eight are under way at once.
    pub overlapping_miss: f64,
    /// Copies of memory.
    pub copy: f64,
    /// CRC-32C of blocks in the cache.
    pub crc32c: f64,
    /// XXH3 of blocks in the cache.
    pub xxh3: f64,
    /// Compression with `compression_type`, counted before it; without limit for `none`.
    pub compress: f64,
    /// The way back.
    pub decompress: f64,
    /// Processor time of writing into the page cache.
    pub file_write: f64,
    /// Processor time of reading from it.
    pub file_read: f64,
    /// Writes of the device below the directory, all threads together.
    pub device_write: f64,
    /// Reads of it.
    pub device_read: f64,
}

impl Machine {
    /// Measures. Files of half a gigabyte come and go in a new directory in `directory`.
    ///
    /// # Errors
    /// Files that cannot be written, and a codec that is not built in.
    pub fn measure(directory: &Path, flags: &Flags) -> Result<Machine> {
        let (miss, overlapping_miss) = misses();
        let block = block(flags);
        let (compress, decompress) = Machine::codec(flags)?;
        let scratch = Scratch::within(directory)?;
        let (file_write, file_read) = page_cache(scratch.path())?;
        let (device_write, device_read) = device(scratch.path())?;
        Ok(Machine {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            miss,
            overlapping_miss,
            copy: copies(),
            crc32c: per_second(block.len(), || {
                u64::from(checksum::crc32c(black_box(&block)))
            }),
            xxh3: per_second(block.len(), || checksum::xxh3_64(black_box(&block))),
            compress,
            decompress,
            file_write,
            file_read,
            device_write,
            device_read,
        })
    }

    /// Bytes a second of `compression_type` and back.
    pub(super) fn codec(flags: &Flags) -> Result<(f64, f64)> {
        if Codec::from_tool_name(flags.text("compression_type")) == Some(Codec::None) {
            return Ok((f64::INFINITY, f64::INFINITY));
        }
        let block = block(flags);
        let size = block.len();
        let mut compressor = compressor(flags)?;
        let (mut stored, mut raw, mut failed) = (Vec::new(), Vec::new(), None);
        compressor.compress_always(&block, &mut stored)?;
        let compress = per_second(size, || {
            stored.clear();
            failed = compressor
                .compress_always(black_box(&block), &mut stored)
                .err();
            stored.len() as u64
        });
        let codec = compressor.codec();
        let back = per_second(size, || {
            raw.clear();
            failed = decompress(codec, black_box(&stored), None, size, &mut raw).err();
            raw.len() as u64
        });
        failed.map_or(Ok((compress, back)), |e| Err(e.into()))
    }

    /// One line.
    pub fn line(&self) -> String {
        let (ns, gb) = (|s: f64| s * 1e9, |b: f64| b / 1e9);
        let codec = if self.compress.is_finite() {
            format!(
                "codec {:.2} and back {:.2}, ",
                gb(self.compress),
                gb(self.decompress)
            )
        } else {
            String::new()
        };
        format!(
            "Machine limits: {} processors; a miss {:.0} ns, one of eight {:.0} ns; GB/s of a thread: copy {:.1}, crc32c {:.1}, xxh3 {:.1}, {codec}\
             file write {:.1}, file read {:.1}; GB/s of the device: {:.2} written, {:.2} read",
            self.processors,
            ns(self.miss),
            ns(self.overlapping_miss),
            gb(self.copy),
            gb(self.crc32c),
            gb(self.xxh3),
            gb(self.file_write),
            gb(self.file_read),
            gb(self.device_write),
            gb(self.device_read),
        )
    }
}

/// The least seconds that `work` took.
fn best(mut work: impl FnMut()) -> f64 {
    let attempt = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..ATTEMPTS).map(attempt).fold(f64::INFINITY, f64::min)
}

/// Bytes a second where `work` takes care of this many, in the cache.
fn per_second(bytes: usize, mut work: impl FnMut() -> u64) -> f64 {
    let times = ((16 << 20) / bytes).max(1);
    let seconds = best(|| {
        let sum = (0..times).fold(0, |sum: u64, _| sum.wrapping_add(work()));
        black_box(sum);
    });
    (bytes * times) as f64 / seconds
}

fn copies() -> f64 {
    let (from, mut to) = (vec![1u8; FAR / 2], vec![0u8; FAR / 2]);
    let seconds = best(|| black_box(&mut to[..]).copy_from_slice(black_box(&from)));
    from.len() as f64 / seconds
}

/// Seconds of a dependent load, alone and among others.
fn misses() -> (f64, f64) {
    /// As large as a line of the cache: each load needs another one.
    #[derive(Clone, Copy)]
    #[repr(align(64))]
    struct Line(u32);
    let mut rng = Rng::new(1);
    let mut lines: Vec<Line> = (0..(FAR / 64) as u32).map(Line).collect();
    // One cycle through all lines (Sattolo).
    for i in (1..lines.len()).rev() {
        let j = rng.below(i as u64) as usize;
        lines.swap(i, j);
    }
    let steps = 400_000;
    let mut at = 0u32;
    let alone = best(|| {
        for _ in 0..steps {
            at = lines[at as usize].0;
        }
        black_box(at);
    });
    let mut each: [u32; CHAINS] = std::array::from_fn(|_| rng.below(lines.len() as u64) as u32);
    let among = best(|| {
        for _ in 0..steps {
            for at in &mut each {
                *at = lines[*at as usize].0;
            }
        }
        black_box(&each);
    });
    (
        alone / f64::from(steps),
        among / f64::from(steps) / CHAINS as f64,
    )
}

/// Bytes for a second of processor time through the page cache: written over pages that are there,
/// and read from them.
fn page_cache(directory: &Path) -> Result<(f64, f64)> {
    let (clock, mut buffer) = (SystemClock::new(), vec![1u8; REQUEST]);
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(directory.join("cached"))?;
    let offsets = || (0..FILE as u64).step_by(REQUEST);
    let (mut write, mut read) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ATTEMPTS {
        let begin = clock.thread_cpu_ns();
        offsets().try_for_each(|at| file.write_all_at(&buffer, at))?;
        let middle = clock.thread_cpu_ns();
        offsets().try_for_each(|at| file.read_exact_at(&mut buffer, at))?;
        let end = clock.thread_cpu_ns();
        write = write.min((middle - begin).max(1) as f64);
        read = read.min((end - middle).max(1) as f64);
    }
    Ok((FILE as f64 * 1e9 / write, FILE as f64 * 1e9 / read))
}

/// Bytes a second of the device, past the page cache where the filesystem lets us.
fn device(directory: &Path) -> Result<(f64, f64)> {
    let fs = PosixFs::new();
    let paths: Vec<_> = (0..FILES)
        .map(|i| directory.join(format!("direct-{i}")))
        .collect();
    let at_once = |work: &(dyn Fn(&Path) -> Result<()> + Sync)| -> Result<f64> {
        let start = Instant::now();
        std::thread::scope(|scope| {
            let threads: Vec<_> = paths.iter().map(|p| scope.spawn(move || work(p))).collect();
            let panicked = |_| Err(Failure::new("a thread panicked"));
            let ends = threads
                .into_iter()
                .map(|t| t.join().unwrap_or_else(panicked));
            ends.collect::<Result<()>>()
        })?;
        Ok((FILES * FILE) as f64 / start.elapsed().as_secs_f64())
    };
    let write = |path: &Path| {
        let options = WriteOptions {
            direct: true,
            buffer_size: REQUEST,
            ..WriteOptions::default()
        };
        let (mut file, bytes) = (fs.create(path, options)?, vec![1u8; REQUEST]);
        (0..FILE / REQUEST).try_for_each(|_| file.append(&bytes))?;
        file.sync()?;
        Ok(file.close()?)
    };
    let read = |path: &Path| {
        let options = ReadOptions {
            direct: true,
            ..ReadOptions::default()
        };
        let (file, mut buffer) = (fs.open_read(path, options)?, AlignedBuf::new(REQUEST));
        for at in (0..FILE as u64).step_by(REQUEST) {
            file.read_at(at, &mut buffer.as_mut_slice()[..REQUEST])?;
        }
        Ok(())
    };
    Ok((at_once(&write)?, at_once(&read)?))
}
