//! Benchmarks that do no operations of their own: jobs work for them, or they print something.

use std::path::Path;
use std::time::Instant;

use super::{Before, Runner};
use crate::flags::Flags;
use crate::generate::{KeyFormatter, ValueSizes, ValueSource};
use crate::measure::Measurement;
use crate::memory::memory;
use crate::report::Row;
use crate::shape::shape_line;
use crate::store::{Iter, OpenPlan, Session, Store};
use crate::{Failure, Result};

impl<S: Store, O: Fn(&OpenPlan) -> Result<S>> Runner<'_, S, O> {
    /// A step that does no operations of its own, with a row where jobs work for it.
    pub(super) fn step(&mut self, name: &str) -> Result<()> {
        let store = self.store.as_ref().expect("opened by run_all");
        let before = Before::of(store, &self.path);
        let start = Instant::now();
        let Some(said) = self.work(store, name)? else {
            return self.admin(name);
        };
        let seconds = start.elapsed().as_secs_f64();
        self.print_timed(store, name, seconds, &said);
        self.sync_device()?;
        let mut around = before.around(store, &self.path, &self.space);
        if self.flags.flag("watch") {
            around.memory = memory(store, 0);
        }
        self.rows.push(Row::of_step(name, seconds, &around));
        Ok(())
    }

    /// Lets jobs work, if `name` is a step that does; what there is to say about it.
    fn work(&self, store: &S, name: &str) -> Result<Option<String>> {
        let mut said = String::new();
        match name {
            "compact" | "compactall" => {
                let subcompactions = self.flags.count("subcompactions") as u32;
                store.compact_all(name == "compact", subcompactions)?;
            }
            "compact0" | "compact1" => {
                said = format!(
                    " ({})",
                    compact_level(store, u32::from(name == "compact1"))?
                );
            }
            "flush" => store.flush()?,
            "waitforcompaction" => store.wait_for_compaction()?,
            _ => return Ok(None),
        }
        Ok(Some(said))
    }

    fn print_timed(&self, store: &S, name: &str, seconds: f64, said: &str) {
        (self.print)(&format!(
            "{name:<12} : finished in {seconds:.3} seconds{said}\n  after  {}",
            shape_line(store)
        ));
    }

    /// The line of a benchmark that is one operation.
    fn print_one(&mut self, name: &str, start: Instant, bytes: u64, operations: u64, said: String) {
        let mut measured = Measurement::between(start, Instant::now(), operations);
        (measured.bytes, measured.message) = (bytes, said);
        (self.print)(&measured.line(name));
    }

    fn admin(&mut self, name: &str) -> Result<()> {
        let store = self.store.as_ref().expect("opened by run_all");
        let print = self.print;
        let property = |name: &str| {
            store
                .property(name)
                .unwrap_or_else(|| format!("{name}: not available"))
        };
        match name {
            "stats" => print(&property("rocksdb.stats")),
            "levelstats" => print(&property("rocksdb.levelstats")),
            "sstables" => print(&property("rocksdb.sstables")),
            "block_cache_entry_stats" => print(&property("rocksdb.block-cache-entry-stats")),
            "stats_history" => {
                print("stats_history: no history is kept; the LOG has the statistics of each dump");
            }
            "memstats" => {
                for name in MEMORY {
                    print(&format!("{name}: {}", property(name)));
                }
            }
            "resetstats" => {
                if !store.reset_statistics() {
                    print("resetstats   : skipped (this engine offers no such call)");
                }
            }
            _ => return self.single(name),
        }
        Ok(())
    }

    /// A benchmark that is one operation, or a few large ones.
    fn single(&mut self, name: &str) -> Result<()> {
        let store = self.store.as_ref().expect("opened by run_all");
        let start = Instant::now();
        let (mut bytes, mut operations, mut said) = (0, 1, String::new());
        match name {
            "verifychecksum" => store.verify_checksums()?,
            "verifyfilechecksums" => store.verify_file_checksums()?,
            "verify" => said = format!("({} pairs alike)", self.verify(store)?),
            "backup" => {
                let directory = given(self.flags, "backup_dir")?;
                (self.print)(&format!("Backup path: [{}]", directory.display()));
                store.backup(directory, self.flags.count("backup_rate_limit"))?;
            }
            "restore" => {
                let backups = given(self.flags, "backup_dir")?;
                let target = given(self.flags, "restore_dir")?;
                (self.print)(&format!("Restore path: [{}]", target.display()));
                store.restore(backups, target, self.flags.count("restore_rate_limit"))?;
            }
            "ingestexternalfile" => (bytes, operations, said) = self.ingest(store)?,
            _ => return Err(Failure::new("unknown benchmark")),
        }
        self.print_one(name, start, bytes, operations, said);
        Ok(())
    }

    /// Makes tables that all cover the same keys, and takes them in, batch by batch.
    fn ingest(&self, store: &S) -> Result<(u64, u64, String)> {
        let flags = self.flags;
        let (size, batches) = (
            flags.count("ingest_external_file_batch_size").max(1),
            flags.count("ingest_external_file_num_batches").max(1),
        );
        let num = flags.count("num");
        let directory = self.path.join("ingest_tmp");
        std::fs::create_dir_all(&directory)?;
        let mut keys = KeyFormatter::new(flags.count("key_size") as usize);
        let sizes = ValueSizes::Fixed(flags.count("value_size") as usize);
        let mut values = ValueSource::new(sizes, flags.number("compression_ratio"));
        let mut bytes = 0;
        for batch in 0..batches {
            let mut files = Vec::new();
            for file in 0..size {
                let path = directory.join(format!("ingest_{batch}_{file}.sst"));
                store.make_table(&path, &mut |put| {
                    for number in 0..num {
                        let (key, value) = (keys.key(number), values.value());
                        bytes += (key.len() + value.len()) as u64;
                        put(key, value)?;
                    }
                    Ok(())
                })?;
                files.push(path);
            }
            store.ingest(&files, flags.flag("ingest_external_file_fill_cache"))?;
        }
        // What was moved is gone; only an empty directory goes.
        let _ = std::fs::remove_dir(&directory);
        let said = format!("({batches} batches x {size} files, {num} keys/file)");
        Ok((bytes, batches, said))
    }

    /// Compares all pairs with those of the database `truth_db`; how many there are.
    fn verify(&self, store: &S) -> Result<u64> {
        let mut plan = crate::options::open_plan(self.flags, given(self.flags, "truth_db")?)?;
        plan.must_exist = true;
        let truth = (self.open)(&plan).map_err(|e| e.context("truth_db"))?;
        let session = crate::options::session_plan(self.flags);
        let (mut theirs, mut ours) = (truth.session(&session)?, store.session(&session)?);
        let (mut theirs, mut ours) = (theirs.iter(None, None)?, ours.iter(None, None)?);
        let (mut more, mut on) = (theirs.seek_to_first(), ours.seek_to_first());
        let mut pairs = 0;
        while more && on {
            if (theirs.key(), theirs.value()) != (ours.key(), ours.value()) {
                let text = format!("pair {pairs} differs: truth_db has {:?}", theirs.key());
                return Err(Failure::new(text));
            }
            pairs += 1;
            (more, on) = (theirs.next(), ours.next());
        }
        theirs.status()?;
        ours.status()?;
        match (more, on) {
            (false, false) => Ok(pairs),
            (true, _) => Err(Failure::new(format!(
                "truth_db has more than {pairs} pairs"
            ))),
            (_, true) => Err(Failure::new(format!(
                "truth_db has {pairs} pairs, the database more"
            ))),
        }
    }
}

/// Merges a level down. As `db_bench` does, it begins again behind a compaction that has some of
/// the files already.
fn compact_level<S: Store>(store: &S, from: u32) -> Result<String> {
    begin_again(|| store.compact_level(from), || store.wait_for_compaction())
}

/// Does `merge` until no compaction is in the way, which `wait` waits for.
fn begin_again(
    mut merge: impl FnMut() -> Result<String>,
    mut wait: impl FnMut() -> Result<()>,
) -> Result<String> {
    const TRIES: u32 = 20;
    // The words of RocksDB and of Esker: of a file that was named, and of one that it overlaps.
    let is_busy = |failure: &Failure| {
        let text = failure.to_string();
        ["already being compacted", "currently being compacted"]
            .iter()
            .any(|words| text.contains(words))
    };
    for _ in 1..TRIES {
        match merge() {
            Err(failure) if is_busy(&failure) => wait()?,
            done => return done,
        }
    }
    merge()
}

/// The path of a flag that has to be given.
fn given<'a>(flags: &'a Flags, name: &str) -> Result<&'a Path> {
    match flags.text(name) {
        "" => Err(Failure::new(format!("--{name} is needed"))),
        path => Ok(Path::new(path)),
    }
}

/// The properties of `memstats`.
const MEMORY: [&str; 9] = [
    "rocksdb.num-immutable-mem-table",
    "rocksdb.cur-size-active-mem-table",
    "rocksdb.cur-size-all-mem-tables",
    "rocksdb.size-all-mem-tables",
    "rocksdb.num-entries-active-mem-table",
    "rocksdb.num-entries-imm-mem-tables",
    "rocksdb.estimate-table-readers-mem",
    "rocksdb.block-cache-usage",
    "rocksdb.block-cache-pinned-usage",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_begins_again_behind_a_compaction_and_not_behind_a_failure() {
        let busy = "some input files are already being compacted";
        let run = |failures: u32, why: &str| {
            let (mut left, mut waits) = (failures, 0);
            let merge = || match left.checked_sub(1) {
                Some(fewer) => {
                    left = fewer;
                    Err(Failure::new(why))
                }
                None => Ok("done".to_string()),
            };
            let wait = || {
                waits += 1;
                Ok(())
            };
            let said = begin_again(merge, wait);
            (said.is_ok(), waits)
        };
        assert_eq!(run(0, busy), (true, 0));
        assert_eq!(run(2, busy), (true, 2));
        let overlapped =
            "Necessary compaction input file /000074.sst is currently being compacted.";
        assert_eq!(run(2, overlapped), (true, 2));
        assert_eq!(run(1000, busy), (false, 19));
        assert_eq!(run(1, "the disk is full"), (false, 0));
    }
}
