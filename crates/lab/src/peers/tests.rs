//! Tests of each peer that is built with one walk, and the benchmarks of the cached recipe.

use std::path::Path;

use crate::Result;
use crate::bench::{BenchProgress, run_engine};
use crate::flags::Flags;
use crate::store::{Iter, OpenPlan, Session, SessionPlan, Store};

fn plan(path: &Path) -> OpenPlan {
    OpenPlan {
        path: path.to_path_buf(),
        ..OpenPlan::default()
    }
}

/// Reads what was written, in both directions, with turns and bounds.
fn walk<S: Store>(store: &S) -> Result<()> {
    let mut session = store.session(&SessionPlan::default())?;
    for n in 0..10u8 {
        session.batch_clear();
        session.batch_put(&[n], &[n, n]);
        session.batch_write()?;
    }
    session.put(&[3], b"new")?;
    session.delete(&[4])?;
    assert_eq!(session.get(&[3], <[u8]>::to_vec)?, Some(b"new".to_vec()));
    assert_eq!(session.get(&[4], <[u8]>::len)?, None);
    assert_eq!(session.multi_get(&[1, 4, 5], 1)?, (2, 4));
    let mut iter = session.iter(None, None)?;
    let mut seen = Vec::new();
    let mut on = iter.seek_to_first();
    while on {
        seen.push(iter.key()[0]);
        on = iter.next();
    }
    assert_eq!(seen, [0, 1, 2, 3, 5, 6, 7, 8, 9]);
    assert!(iter.seek(&[4]) && iter.key() == [5]);
    assert!(iter.prev() && iter.key() == [3] && iter.value() == b"new");
    assert!(iter.next() && iter.key() == [5]);
    assert!(iter.seek_for_prev(&[4]) && iter.key() == [3]);
    assert!(iter.seek_to_last() && iter.key() == [9]);
    assert!(!iter.next());
    iter.status()?;
    drop(iter);
    let mut bound = session.iter(Some(&[2]), Some(&[6]))?;
    assert!(bound.seek_to_first() && bound.key() == [2]);
    assert!(bound.seek_to_last() && bound.key() == [5]);
    assert!(!bound.next());
    assert!(bound.seek(&[0]) && bound.key() == [2], "from the bound on");
    assert!(bound.seek_for_prev(&[9]) && bound.key() == [5]);
    assert!(bound.prev() && bound.key() == [3] && bound.prev() && !bound.prev());
    drop(bound);
    store.flush()?;
    store.compact_all(false, 1)?;
    store.wait_for_compaction()
}

fn benchmarks(engine: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let flags = Flags::parse(&[
        "--benchmarks=fillseq,overwrite,waitforcompaction,readtocache,readrandom,readseq,\
         readreverse,seekrandom,readwhilewriting,fwdrangewhilewriting",
        "--compression_type=none",
        "--num=2000",
        "--reads=500",
        "--threads=2",
        "--seek_nexts=10",
    ]);
    let flags = flags.expect("known flags");
    let path = directory.path().join("db");
    let rows =
        run_engine(&flags, engine, &path, &|_| {}, &BenchProgress::new(false)).expect("it runs");
    assert_eq!(rows.len(), 10);
    assert_eq!(rows[4].number("operations"), Some(1000.0));
    assert_eq!(rows[4].number("bytes"), Some(116_000.0), "all are found");
}

/// Checks that options which an engine would ignore are errors.
fn refusals(engine: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let said = |engine: &str, more: &[&str]| {
        let mut args = vec!["--benchmarks=fillseq", "--num=100"];
        args.extend(more);
        let flags = Flags::parse(&args).expect("known flags");
        let path = directory.path().join("db");
        let rows = run_engine(&flags, engine, &path, &|_| {}, &BenchProgress::new(false));
        rows.expect_err("is refused").to_string()
    };
    let none = "--compression_type=none";
    for (args, words) in [
        (&["--compression_type=lz4"][..], "without compression"),
        (&[none, "--sync"], "--sync"),
        (&[none, "--num_column_families=2"], "--num_column_families"),
        (&[none, "--use_tailing_iterator"], "--use_tailing_iterator"),
        (&[none, "--explicit_snapshot"], "--explicit_snapshot"),
    ] {
        let said = said(engine, args);
        assert!(said.contains(words), "{args:?}: {said}");
    }
    let own = said(&format!("{engine}?write_buffer_size=1"), &[none]);
    assert!(own.contains("no options of its own"), "{own}");
}

#[cfg(feature = "peer-lmdb")]
#[test]
fn lmdb_walks_and_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = super::LmdbStore::open(&plan(directory.path())).expect("opened");
    walk(&store).expect("walked");
    benchmarks("lmdb");
    refusals("lmdb");
}

#[cfg(feature = "peer-fjall")]
#[test]
fn fjall_walks_and_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = super::FjallStore::open(&plan(directory.path())).expect("opened");
    walk(&store).expect("walked");
    benchmarks("fjall");
    refusals("fjall");
}
