//! Esker is killed while it writes; RocksDB 7.8 and Esker recover copies of what is left, and
//! agree.
//!
//! The writer is this program once more, on the test that is ignored. It tells each acknowledged
//! batch on its output; what is recovered must be the model after some number of batches, no fewer
//! than those.

mod rocksdb_tools;

use esker::{CompactRangeOptions, WriteBatch};
use rocksdb_tools::settings::Settings;
use rocksdb_tools::workload::{self, FAMILIES, Rng, Steps};
use rocksdb_tools::{Content, Contents, Copy, Tally, Tools, say};
use rocksdb_tools::{compare_ours, is_misread, read_all, seeds, with_suffix};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const KEYS: u64 = 1_000;
/// Tells the ignored test what to do: `SEED DIRECTORY`.
const TASK: &str = "ESKER_COMPAT_WRITER";

#[test]
#[ignore = "the other test starts it as the process to kill: cargo test -p esker-engine --test rocksdb_ours_killed"]
fn writer() {
    let Ok(task) = std::env::var(TASK) else {
        return;
    };
    let (seed, dir) = task.split_once(' ').expect("SEED DIRECTORY");
    let seed: u64 = seed.parse().expect("a seed");
    let db = Settings::random(seed, 5)
        .open(Path::new(dir))
        .expect("an open database");
    let lossy = Settings::random(seed, 5)
        .db
        .contains("manual_wal_flush=true");
    let ids = workload::ids(&db);
    let mut steps = Steps::new(seed, KEYS);
    let mut rng = Rng(seed);
    let mut out = std::io::stdout().lock();
    loop {
        let mut batch = WriteBatch::new();
        let ops = steps.next_batch();
        workload::fill(&mut batch, &ids, &ops).expect("a batch");
        db.write(&mut batch).expect("a write");
        if rng.one_in(100) {
            let families = db.families();
            let family = rng.pick(&families);
            if rng.one_in(4) {
                let how = CompactRangeOptions::default();
                db.compact_range_opt(family, None, None, &how)
                    .expect("a compaction");
            } else {
                db.flush_cf(family, &Default::default()).expect("a flush");
            }
        }
        if lossy && rng.one_in(10) {
            db.flush_wal(false).expect("the log is handed over");
            writeln!(out, "acknowledged {}", steps.number()).expect("a reader");
        } else if !lossy {
            writeln!(out, "acknowledged {}", steps.number()).expect("a reader");
        }
        out.flush().expect("a reader");
    }
}

/// Starts the writer, kills it once it has acknowledged `until` batches, and returns how many it
/// had.
fn write_and_kill(seed: u64, dir: &Path, until: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "writer", "--ignored", "--nocapture"])
        .env(TASK, format!("{seed} {}", dir.display()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut acknowledged = 0;
    let mut killed = false;
    let out = BufReader::new(child.stdout.take().expect("its output"));
    // After the kill the loop goes on to what the pipe still holds: that was acknowledged too.
    for line in out.lines() {
        let line = line.expect("text");
        let Some((_, number)) = line.rsplit_once("acknowledged ") else {
            continue;
        };
        let Ok(number) = number.parse() else { continue };
        acknowledged = number;
        if acknowledged >= until && !killed {
            child.kill().expect("a process that lives");
            killed = true;
        }
    }
    child.wait().expect("its end");
    assert!(
        killed,
        "the writer ended by itself after {acknowledged} batches"
    );
    acknowledged
}

fn recovered_by_rocksdb(tools: Tools, dir: &Path) -> Contents {
    let families = FAMILIES.iter();
    families
        .map(|f| ((*f).to_owned(), tools.scan(dir, f)))
        .collect()
}

#[test]
fn what_a_killed_writer_leaves_is_one_state_for_both() {
    let Some(tools) = Tools::find() else { return };
    let mut tally = Tally::default();
    let mut unflushed = 0;
    for seed in seeds(12) {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("db");
        let until = 20 + Rng(seed).below(1200);
        let acknowledged = write_and_kill(seed, &dir, until);
        let what = format!("seed {seed}, killed after {acknowledged} batches");
        let logs = with_suffix(&dir, ".log");
        let in_logs: u64 = logs
            .iter()
            .map(|l| l.metadata().expect("a file").len())
            .sum();
        unflushed += usize::from(in_logs > 0);
        println!("{what}: {} logs of {in_logs} bytes", logs.len());
        if logs.iter().any(|log| is_misread(log)) {
            println!("{what}: RocksDB 7.8 does not read such a record");
            continue;
        }

        let theirs = recovered_by_rocksdb(tools, &Copy::of(&dir).path);
        let steps = workload::steps_in(&theirs);
        assert!(steps >= acknowledged, "{what}: only {steps} are left");
        let model = workload::replay(seed, KEYS, steps);
        for (family, content) in &theirs {
            rocksdb_tools::same(
                &format!("{what}, RocksDB reads {family}"),
                content,
                &model[family],
            );
        }
        tools.examine_wreck(&dir, &model, &what, &mut tally);

        let settings = Settings::random(seed, 5);
        let ours = Copy::of(&dir);
        let db = settings
            .open(&ours.path)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        compare_ours(&db, &model, &what);
        db.close().expect("a clean end");
        drop(db);
        // A table that was begun after the last word of the MANIFEST goes at the second opening
        // only.
        let db = settings.open(&ours.path).expect("it opens again");
        compare_ours(&db, &model, &what);
        db.close().expect("a clean end");
        drop(db);
        tools.examine(
            &ours.path,
            &model,
            &format!("{what}, recovered by Esker"),
            &mut tally,
        );
        tally.entries += model.values().map(Content::len).sum::<usize>();
    }
    assert!(unflushed > 0, "no kill left anything in a log");
    say(format_args!("{tally}"));
}

#[test]
fn a_read_only_opening_of_a_dirty_directory_changes_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("db");
    let seed = 77;
    let acknowledged = write_and_kill(seed, &dir, 150);
    let state = |d: &Path| -> Vec<_> {
        let mut files = with_suffix(d, "");
        files.sort();
        let read = |p: &std::path::PathBuf| std::fs::read(p).expect("a readable file");
        files.iter().map(|p| (p.clone(), read(p))).collect()
    };
    let before = state(&dir);
    let (options, families) = rocksdb_tools::latest_options(&dir);
    let db = esker::Db::open_families_read_only(&dir, options, families).expect("it opens");
    let found = read_all(&db);
    let steps = workload::steps_in(&found);
    assert!(steps >= acknowledged);
    compare_ours(&db, &workload::replay(seed, KEYS, steps), "read only");
    drop(db);
    assert!(before == state(&dir), "the directory is what it was");
}
