//! The best that a row could reach on this machine: a lower bound for the time of an operation, and
//! the part of it that was reached.
//!
//! [`Machine`] measures constants in a few seconds: cache misses, copies, checksums, the codec,
//! files in the page cache and the device. A [`Need`] is what one operation takes of a client's
//! thread, of all processors, and of the device, at the least, by the models below; the scarcest of
//! them is the limit. Work that an engine chose to do, such as how often compactions rewrote an
//! entry, is taken from what it did: so the limit of a row belongs to the shape of its tree, and a
//! tree that needs less work raises it.
//!
//! * put: two misses where keys are random (the place in the memtable, the new entry), a copy and a
//!   checksum of the entry, 0.1 us;
//! * flushes and compactions: of each entry read a miss that overlaps with seven others, checksum
//!   and decompression of its bytes; of each entry written a copy, compression, a checksum; the
//!   kernel's part of reads and writes through the page cache;
//! * get that finds blocks in memory: five misses, an overlapping one for each further run, 0.2 us;
//! * scan: five misses, two overlapping ones and 30 ns for each run, and for each entry the copy or
//!   15 ns;
//! * walk over everything: for each entry the copy or 15 ns;
//! * device: bytes that were written and read, over its bandwidth; those of a log only where it is
//!   synced.
//!
//! A lower bound is no promise: the clients' own time, scheduling and memory bandwidth that threads
//! share are not in it. Data is taken to be much larger than the processors' caches, and runs to be
//! long enough for the device to get what was written: else more than 1 is reached. Rejected: *a
//! published figure of the processor* (machines that share a host reach a fraction of it, and not
//! the same on every day); *the best engine seen so far as the limit* (it cannot tell that all of
//! them waste the same).

mod machine;

pub use machine::Machine;

use crate::workload::Task;

/// The figures of a row that a limit needs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RowFigures {
    /// Operations.
    pub operations: u64,
    /// Threads of clients.
    pub threads: usize,
    /// Bytes of a key and its value.
    pub entry_bytes: f64,
    /// Bytes of an entry in a table file.
    pub stored_bytes: f64,
    /// Bytes of tables that flushes and compactions read.
    pub tables_read: f64,
    /// Bytes of tables that they wrote.
    pub tables_written: f64,
    /// Bytes that came from the device.
    pub device_read: f64,
    /// True if writes go to a log.
    pub is_logged: bool,
    /// True if that is synced. One that is not is deleted before the device gets it.
    pub is_synced: bool,
    /// True if flushes and compactions go past the page cache.
    pub is_direct: bool,
    /// Sorted runs: tables of level 0 and levels below that have any.
    pub runs: u64,
    /// Entries that a seek reads.
    pub nexts: u64,
}

/// Least time of an operation, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Need {
    /// Of the thread of its client.
    pub client: f64,
    /// Of flushes and compactions, on whatever processor.
    pub jobs: f64,
    /// Of the device, for writes.
    pub device_write: f64,
    /// Of the device, for reads.
    pub device_read: f64,
}

/// The most operations a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Operations a second.
    pub ops_per_second: f64,
    /// The resource that limits it.
    pub by: &'static str,
    /// The least times that it follows from.
    pub need: Need,
}

/// The limit of a row; `None` where there is no model: mixed work, deletions, and reads that went
/// to the device.
pub fn limit(machine: &Machine, task: Task, done: &RowFigures) -> Option<Limit> {
    let need = match task {
        Task::FillSeq => writing(machine, done, 0.0),
        Task::FillRandom | Task::FillUnique => writing(machine, done, 2.0),
        Task::Read | Task::Seek | Task::ReadSeq | Task::ReadReverse => {
            let from_device = done.device_read / done.operations.max(1) as f64;
            if from_device > done.entry_bytes / 100.0 {
                return None;
            }
            reading(machine, task, done)
        }
        _ => return None,
    };
    let per_second = |available: f64, seconds: f64| {
        if seconds > 0.0 {
            available / seconds
        } else {
            f64::INFINITY
        }
    };
    let clients = done.threads.min(machine.processors) as f64;
    let processors = machine.processors as f64;
    let limits = [
        (per_second(clients, need.client), "its clients' threads"),
        (
            per_second(processors, need.client + need.jobs),
            "processors",
        ),
        (per_second(1.0, need.device_write), "writes of the device"),
        (per_second(1.0, need.device_read), "reads of the device"),
    ];
    let (ops_per_second, by) = limits.into_iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    ops_per_second.is_finite().then_some(Limit {
        ops_per_second,
        by,
        need,
    })
}

/// A write that misses the cache so often, and its part of the jobs.
fn writing(machine: &Machine, done: &RowFigures, misses: f64) -> Need {
    let m = machine;
    let (entry, stored) = (done.entry_bytes, done.stored_bytes);
    let each = |bytes: f64| bytes / done.operations.max(1) as f64;
    let log = f64::from(done.is_logged);
    let synced = f64::from(done.is_logged && done.is_synced);
    let client = misses * m.miss + entry / m.copy + log * entry / m.crc32c + 100e-9;
    let (read, written) = (each(done.tables_read), each(done.tables_written));
    let entries = |bytes: f64| if stored > 0.0 { bytes / stored } else { 0.0 };
    let taken = entries(read) * (m.overlapping_miss + entry / m.decompress + stored / m.xxh3);
    let given = entries(written) * (entry / m.copy + entry / m.compress + stored / m.xxh3);
    let kernel = if done.is_direct {
        0.0
    } else {
        read / m.file_read + written / m.file_write
    };
    Need {
        client,
        jobs: taken + given + kernel,
        device_write: (written + synced * entry) / m.device_write,
        device_read: each(done.device_read) / m.device_read,
    }
}

/// A read that finds everything in memory.
fn reading(machine: &Machine, task: Task, done: &RowFigures) -> Need {
    let m = machine;
    let runs = done.runs.max(1) as f64;
    let step = (done.entry_bytes / m.copy).max(15e-9);
    let client = match task {
        Task::Read => 5.0 * m.miss + (runs - 1.0) * m.overlapping_miss + 200e-9,
        Task::Seek => {
            5.0 * m.miss + runs * (2.0 * m.overlapping_miss + 30e-9) + done.nexts as f64 * step
        }
        _ => step,
    };
    Need {
        client,
        ..Need::default()
    }
}

impl Limit {
    /// One line: the limit, what it follows from, and the part that `reached` operations a second
    /// are.
    pub fn line(&self, reached: f64) -> String {
        let us = |seconds: f64| seconds * 1e6;
        let Need {
            client,
            jobs,
            device_write,
            device_read,
        } = self.need;
        format!(
            "limit: {:.0} ops/sec by {}, of which {:.2} were reached; an operation needs {:.3} us of its client, {:.3} us of jobs, \
             {:.3} us of the device's writes, {:.3} us of its reads",
            self.ops_per_second,
            self.by,
            reached / self.ops_per_second,
            us(client),
            us(jobs),
            us(device_write),
            us(device_read)
        )
    }
}

#[cfg(test)]
mod tests;
