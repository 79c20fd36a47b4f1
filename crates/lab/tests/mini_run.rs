//! A short run through a real library, named by `ESKER_REF_LIB` (several with `:` between them).
//!
//! Without the variable the tests say that they skip.

use std::path::Path;

use esker_lab::bench::{BenchProgress, run_engine};
use esker_lab::dlopen::LibStore;
use esker_lab::flags::Flags;
use esker_lab::options::open_plan;
use esker_lab::report::{Row, document, summary};
use esker_lab::store::{Iter, Session, SessionPlan, Store};

fn libraries() -> Vec<String> {
    let named = std::env::var("ESKER_REF_LIB").unwrap_or_default();
    let found: Vec<String> = named
        .split(':')
        .filter(|l| !l.is_empty())
        .map(String::from)
        .collect();
    if found.is_empty() {
        eprintln!("skipped: set ESKER_REF_LIB to a librocksdb.so");
    }
    found
}

const RUN: &[&str] = &[
    "--num=2000",
    "--key_size=20",
    "--value_size=100",
    "--seed=1",
    "--histogram",
    "--statistics",
    "--batch_size=10",
    "--seek_nexts=5",
    "--bloom_bits=10",
    "--merge_operator=put",
    "--compression_type=none",
    "--benchmarks=filluniquerandom,flush,readrandom,readmissing,readseq,readreverse,multireadrandom,\
     seekrandom,readwhilewriting,readwhilescanning,revrangewhilewriting,readrandomwriterandom,updaterandom,\
     mergerandom,newiterator,deleteseq,compact,waitforcompaction,readrandom",
];

#[test]
fn a_list_of_benchmarks_finds_what_it_wrote() {
    let loaded = libraries().into_iter().map(|l| format!("lib:{l}"));
    for engine in std::iter::once("esker".to_string()).chain(loaded) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let flags = Flags::parse(RUN).expect("known flags");
        let rows = run_engine(
            &flags,
            &engine,
            &directory.path().join("db"),
            &|_| {},
            &BenchProgress::new(false),
        );
        let rows = rows.unwrap_or_else(|e| panic!("{engine}: {e}"));
        check(&rows);
        if engine.starts_with("lib:") {
            let amplification = rows[0].number("w_amp_wal");
            assert!(amplification.is_some_and(|a| a > 1.0), "{amplification:?}");
        }
        let text = document(&engine, &[], &rows).to_string();
        assert!(
            text.contains("\"ops_sec\"") && text.contains("\"w_amp_flush\""),
            "{text}"
        );
        assert_eq!(summary(&rows).lines().count(), rows.len() + 1);
    }
}

fn check(rows: &[Row]) {
    let tests: Vec<&str> = rows.iter().map(|row| row.test.as_str()).collect();
    assert_eq!(tests[..3], ["filluniquerandom", "flush", "readrandom"]);
    assert_eq!(rows.len(), 19);
    let row = |test: &str| {
        rows.iter()
            .find(|r| r.test == test)
            .expect("a row of each benchmark")
    };
    let number = |test: &str, column: &str| row(test).number(column).expect("a number");
    for test in [
        "filluniquerandom",
        "readrandom",
        "readseq",
        "readreverse",
        "seekrandom",
    ] {
        assert_eq!(number(test, "operations"), 2000.0, "{test}");
    }
    // Every key was written once, so that every read finds a pair.
    for test in [
        "filluniquerandom",
        "readrandom",
        "readseq",
        "readreverse",
        "multireadrandom",
    ] {
        assert_eq!(number(test, "bytes"), 2000.0 * 120.0, "{test}");
    }
    assert_eq!(number("readmissing", "bytes"), 0.0);
    // Steps that jobs work for have no operations of their own.
    for test in ["flush", "compact", "waitforcompaction"] {
        assert_eq!(row(test).number("operations"), None, "{test}");
        assert!(number(test, "peak_sz") >= number(test, "lsm_sz"), "{test}");
    }
    assert!(number("filluniquerandom", "p50") > 0.0);
    assert!(
        row("readwhilewriting")
            .text("background")
            .starts_with("background: ")
    );
    assert!(
        row("readrandom")
            .text("shape_after")
            .contains("| L0 1 files"),
        "{}",
        row("readrandom").text("shape_after")
    );
    // After deleting everything and compacting, the last readrandom finds nothing.
    assert_eq!(rows.last().expect("rows").number("bytes"), Some(0.0));
}

#[test]
fn sessions_do_what_they_say() {
    for library in libraries() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let flags = Flags::parse(&["--merge_operator=put"]).expect("known flags");
        let plan = open_plan(&flags, directory.path()).expect("a plan");
        let store = LibStore::open(Path::new(&library), &plan).expect("opens");
        let mut session = store.session(&SessionPlan::default()).expect("a session");
        session.put(b"a", b"1").expect("put");
        session.merge(b"b", b"22").expect("merge");
        session.batch_clear();
        session.batch_put(b"c", b"333");
        session.batch_put(b"d", b"");
        session.batch_delete(b"a");
        session.batch_write().expect("write");
        session.delete(b"missing").expect("delete");
        assert_eq!(session.get(b"a", <[u8]>::to_vec).expect("get"), None);
        assert_eq!(
            session.get(b"b", <[u8]>::to_vec).expect("get"),
            Some(b"22".to_vec())
        );
        assert_eq!(session.get(b"d", <[u8]>::len).expect("get"), Some(0));
        assert_eq!(session.multi_get(b"abcde", 1).expect("multi-get"), (3, 5));
        walk(&mut session);
        store.flush().expect("flush");
        store.wait_for_compaction().expect("wait");
        assert!(
            store
                .property("rocksdb.levelstats")
                .expect("a property")
                .starts_with("Level Files")
        );
        assert_eq!(store.property("rocksdb.no-such-thing"), None);
    }
}

fn walk(session: &mut impl Session) {
    let mut iter = session.iter(None, None).expect("an iterator");
    assert!(iter.seek_to_first());
    assert_eq!((iter.key(), iter.value()), (&b"b"[..], &b"22"[..]));
    assert!(iter.next() && iter.next());
    assert_eq!((iter.key(), iter.value()), (&b"d"[..], &b""[..]));
    assert!(!iter.next());
    assert!(iter.seek_for_prev(b"cc") && iter.key() == b"c");
    assert!(iter.prev() && !iter.prev());
    iter.status().expect("no error");
    drop(iter);
    let mut bounded = session.iter(Some(b"c"), Some(b"d")).expect("an iterator");
    assert!(bounded.seek(b"a") && bounded.key() == b"c" && !bounded.next());
    drop(bounded);
    let mut free = session.iter(None, None).expect("an iterator");
    assert!(free.seek_to_last() && free.key() == b"d");
}

#[test]
fn failures_are_sentences() {
    let flags = |args: &[&str]| Flags::parse(args).expect("known flags");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = |flags: &Flags, engine: &str| {
        let outcome = run_engine(
            flags,
            engine,
            &directory.path().join("db"),
            &|_| {},
            &BenchProgress::new(false),
        );
        outcome.expect_err("must fail").to_string()
    };
    assert!(run(&flags(&[]), "lib:/no/such/library.so").contains("cannot load"));
    for library in libraries() {
        let engine = format!("lib:{library}");
        let unknown = run(&flags(&["--benchmarks=fillseq,nonsense"]), &engine);
        assert!(
            unknown.contains("unknown benchmark `nonsense`"),
            "{unknown}"
        );
        assert!(run(&flags(&["--benchmarks=replay"]), &engine).contains("not offered"));
        let option = run(&flags(&["--options=no_such_option=1"]), &engine);
        assert!(option.contains("no_such_option"), "{option}");
        std::fs::write(directory.path().join("precious"), "x").expect("a file");
        let outcome = run_engine(
            &flags(&[]),
            &engine,
            directory.path(),
            &|_| {},
            &BenchProgress::new(false),
        );
        assert!(
            outcome
                .expect_err("must not delete")
                .to_string()
                .contains("not removing")
        );
        std::fs::remove_file(directory.path().join("precious")).expect("still there");
    }
}

#[test]
fn both_caches_work_where_the_library_has_them() {
    for library in libraries() {
        for args in [
            &["--cache_size=0"][..],
            &["--cache_size=1048576", "--cache_numshardbits=2"],
        ] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let plan =
                open_plan(&Flags::parse(args).expect("flags"), directory.path()).expect("a plan");
            LibStore::open(Path::new(&library), &plan).expect("opens");
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let args = [
            "--cache_type=hyper_clock_cache",
            "--bloom_bits=10",
            "--block_size=8192",
            "--checksum_type=4",
        ];
        let plan =
            open_plan(&Flags::parse(&args).expect("flags"), directory.path()).expect("a plan");
        match LibStore::open(Path::new(&library), &plan) {
            Ok(store) => assert!(store.property("rocksdb.block-cache-capacity").is_some()),
            Err(e) => assert!(e.to_string().contains("hyper_clock_cache"), "{e}"),
        }
    }
}
