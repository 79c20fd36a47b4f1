//! Every engine against the model on a random trace, and the workloads' own checks.

#[cfg(feature = "servers")]
mod servers;

use std::path::Path;

use super::catalogue;
use super::drive::Pace;
use super::engine::{
    Access, Durability, Engine, EnginePlan, Scan, Session, TransactionError, retry,
};
use super::linkbench::{self, verify::verify};
use super::oracle::Oracle;
use super::row::{ColumnType, Index, Row, Schema, Table, Value};
use crate::Failure;
use crate::generate::Rng;

fn plan(directory: &Path, schema: Schema) -> EnginePlan {
    EnginePlan {
        directory: directory.to_path_buf(),
        durability: Durability::Process,
        cache: 16 << 20,
        memtable: 1 << 20,
        sessions: 2,
        schema,
    }
}

/// A table with a key of two columns, a plain index, one that carries, and one that is made late.
fn schema() -> Schema {
    let index = |name, columns: &[usize], carried: &[usize], later| Index {
        name,
        columns: columns.to_vec(),
        carried: carried.to_vec(),
        later,
    };
    Schema {
        tables: vec![
            Table {
                name: "things",
                columns: vec![
                    ("a", ColumnType::Int),
                    ("b", ColumnType::Int),
                    ("c", ColumnType::Int),
                    ("d", ColumnType::Bytes(200)),
                    ("e", ColumnType::Int),
                ],
                key: 2,
                indexes: vec![
                    index("by_c", &[2], &[], false),
                    index("by_b_c", &[1, 2], &[3], false),
                    index("by_e", &[4, 2], &[], true),
                ],
            },
            Table {
                name: "sums",
                columns: vec![("id", ColumnType::Int), ("sum", ColumnType::Int)],
                key: 1,
                indexes: Vec::new(),
            },
        ],
    }
}

fn row(rng: &mut Rng) -> Row {
    let small = |rng: &mut Rng| Value::Int(rng.below(6) as i64 - 2);
    let bytes = (0..rng.below(20)).map(|_| rng.next_u64() as u8).collect();
    vec![
        small(rng),
        small(rng),
        small(rng),
        Value::Bytes(bytes),
        small(rng),
    ]
}

fn scan(rng: &mut Rng, indexes: u64) -> Scan {
    let index = match rng.below(indexes + 1) {
        0 => None,
        number => Some(number as usize - 1),
    };
    let mut value = || Value::Int(rng.below(6) as i64 - 2);
    let prefix = vec![value()];
    // The next column is an integer in each index, or a column of the key.
    let (low, high) = (value(), value());
    let takes = rng.below(8);
    Scan {
        table: 0,
        index,
        prefix: if takes & 1 == 0 { prefix } else { Vec::new() },
        low: (takes & 2 == 0).then_some(low),
        high: (takes & 4 == 0).then_some(high),
        descending: rng.below(2) == 0,
        limit: rng.below(2) * (1 + rng.below(5)),
        fetch: rng.below(2) == 0,
    }
}

/// Runs one transaction, and returns what it saw: outcomes and rows as text.
fn transaction(session: &mut dyn Session, seed: u64, indexes: u64) -> Vec<String> {
    let mut seen = Vec::new();
    let done = session.transact(Access::Write, &mut |rows| {
        let mut rng = Rng::new(seed);
        seen.clear();
        for _ in 0..1 + rng.below(6) {
            let row = row(&mut rng);
            match rng.below(8) {
                0..3 => seen.push(format!("insert {}", rows.insert(0, &row)?)),
                3 => {
                    let set = [(2, row[2].clone()), (3, row[3].clone())];
                    seen.push(format!("update {}", rows.update(0, &row[..2], &set)?));
                }
                4 => seen.push(format!("delete {}", rows.delete(0, &row[..2])?)),
                5 => {
                    let by = row[2].int();
                    rows.add(1, &[row[0].clone(), Value::Int(by)], 1, by)?;
                }
                6 => seen.push(format!("{:?}", rows.get(0, &row[..2], rng.below(2) == 0)?)),
                _ => {
                    let scan = scan(&mut rng, indexes);
                    rows.scan(&scan, &mut |row| {
                        seen.push(format!("{row:?}"));
                        true
                    })?;
                }
            }
        }
        if rng.below(8) == 0 {
            return Err(Failure::new("given up").into());
        }
        Ok(())
    });
    seen.push(match done {
        Ok(()) => "committed".into(),
        Err(TransactionError::Failed(failure)) => failure.to_string(),
        Err(TransactionError::Conflict) => "conflict".into(),
    });
    seen
}

fn everything(session: &mut dyn Session, indexes: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let scans = [None].into_iter().chain((0..indexes).map(Some));
    let scans = scans.map(|index| Scan {
        index,
        ..Scan::default()
    });
    let sums = Scan {
        table: 1,
        ..Scan::default()
    };
    for scan in scans.chain([sums]) {
        retry(session, Access::Read, &mut |rows| {
            rows.scan(&scan, &mut |row| {
                seen.push(format!("{:?} {row:?}", scan.index));
                true
            })?;
            Ok(())
        })
        .expect("a scan");
    }
    seen
}

/// Runs the same transactions on an engine and on the model.
fn agrees_with_the_model(engine: &dyn Engine, name: &str) {
    let oracle = Oracle::new(schema());
    let (mut real, mut model) = (engine.session().expect("a session"), oracle);
    for seed in 0..400 {
        let late = seed >= 200;
        if seed == 200 {
            engine.build_index(0, 2).expect("an index");
        }
        let indexes = 2 + u64::from(late);
        let wanted = transaction(&mut model, seed, indexes);
        let found = transaction(&mut *real, seed, indexes);
        assert_eq!(found, wanted, "{name}, seed {seed}");
    }
    assert_eq!(
        everything(&mut *real, 3),
        everything(&mut model, 3),
        "{name}"
    );
    engine.settle().expect("an end of background work");
    let mut again = engine.session().expect("a session");
    assert_eq!(
        everything(&mut *again, 3),
        everything(&mut model, 3),
        "{name}"
    );
    assert!(engine.disk_bytes() > 0, "{name} has nothing on disk");
}

/// Threads that add to the same rows: no addition is lost.
fn loses_no_addition(engine: &dyn Engine, name: &str) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = engine.session().expect("a session");
                for number in 0..50 {
                    let id = Value::Int(100 + number % 3);
                    retry(&mut *session, Access::Write, &mut |rows| {
                        rows.get(1, std::slice::from_ref(&id), true)?;
                        rows.add(1, &[id.clone(), Value::Int(1)], 1, 1)
                    })
                    .expect("an addition");
                }
            });
        }
    });
    let mut session = engine.session().expect("a session");
    let mut sum = 0;
    for id in 100..103 {
        retry(&mut *session, Access::Read, &mut |rows| {
            let row = rows.get(1, &[Value::Int(id)], false)?;
            sum += row.map_or(0, |row| row[1].int());
            Ok(())
        })
        .expect("a row");
    }
    assert_eq!(sum, 200, "{name}");
}

fn check(kind: &str, path: Option<&str>) {
    if let Err(why) = catalogue::check(kind, path) {
        println!("{kind} skips: {why}");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    // The user of a server has to get through.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).expect("permissions");
    let plan = plan(directory.path(), schema());
    let mut plan = plan;
    if kind == "redb" {
        plan.durability = Durability::Sync;
    }
    let opened = catalogue::open(kind, path, &plan);
    if let Err(e) = &opened
        && e.to_string().contains("does not export transactions")
    {
        println!("SKIPPED: {kind}: {e}");
        return;
    }
    let engine = opened.expect(kind);
    agrees_with_the_model(&*engine, kind);
    loses_no_addition(&*engine, kind);
    let facts = engine.facts();
    assert!(!facts.name.is_empty() && !facts.durability.is_empty());
    println!("{kind} agrees with the model: {}", facts.name);
}

#[test]
fn esker_agrees_with_the_model() {
    check("esker", None);
}

/// A `librocksdb.so`, the first that is at hand: one process does not take two.
#[test]
fn rocksdb_agrees_with_the_model() {
    let places = [
        std::env::var("ESKER_LAB_ROCKSDB").unwrap_or_default(),
        "/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8".into(),
        "/usr/lib/aarch64-linux-gnu/librocksdb.so.7.8".into(),
    ];
    match places.iter().find(|place| Path::new(place).is_file()) {
        Some(place) => check("lib", Some(place)),
        None => println!("rocksdb skips: no library; ESKER_LAB_ROCKSDB names one"),
    }
}

#[test]
fn peers_agree_with_the_model() {
    for kind in ["lmdb", "redb", "fjall", "sqlite"] {
        check(kind, None);
    }
}

#[test]
fn servers_agree_with_the_model() {
    for kind in ["postgres", "innodb", "myrocks"] {
        check(kind, None);
    }
}

/// The trace would notice an engine that forgets an index: the model with a hole is told apart.
#[test]
fn the_trace_tells_a_wrong_engine() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut wrong = schema();
    wrong.tables[0].indexes[0].columns = vec![4];
    let engine = super::embedded::open(&plan(directory.path(), wrong)).expect("an engine");
    let oracle = Oracle::new(schema());
    let (mut real, mut model) = (engine.session().expect("a session"), oracle);
    let differ =
        (0..200).any(|seed| transaction(&mut *real, seed, 2) != transaction(&mut model, seed, 2));
    assert!(differ);
}

#[test]
fn the_mix_is_the_published_one() {
    assert_eq!(
        linkbench::MIX.iter().map(|(_, share)| share).sum::<u64>(),
        10_000
    );
    let mut counts = [0u64; 10];
    let mut rng = Rng::new(7);
    for _ in 0..200_000 {
        counts[linkbench::pick(rng.below(10_000))] += 1;
    }
    for (count, (name, share)) in counts.iter().zip(linkbench::MIX) {
        let (is, wanted) = (*count as f64 / 2000.0, share as f64 / 100.0);
        // Four standard deviations of a binomial distribution.
        let tolerance = 4.0 * (wanted * (100.0 - wanted) / 200_000.0).sqrt();
        assert!(
            (is - wanted).abs() < tolerance,
            "{name}: {is} instead of {wanted}"
        );
    }
}

fn small() -> linkbench::Sizes {
    linkbench::Sizes {
        nodes: 500,
        node_data: 64,
        link_data: 8,
    }
}

/// Loads and runs LinkBench; the counts are right, until one of them is not.
#[test]
fn a_wrong_count_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let plan = plan(directory.path(), linkbench::schema());
    let engine = super::embedded::open(&plan).expect("an engine");
    let bench = linkbench::Bench::new(small());
    let load = bench.load(&engine, 2).expect("a load");
    let pace = Pace {
        threads: 3,
        operations: 6000,
        ..Pace::default()
    };
    let step = bench.run(&engine, "run", pace).expect("a run");
    assert_eq!(step.operations, 6000);
    let by_kind: u64 = step.latencies.iter().map(|l| l.service.len()).sum();
    assert_eq!(by_kind, 6000);
    assert!(step.wrote > 0 && step.read > 0 && load.wrote > step.wrote);
    let right = verify(&engine).expect("a look");
    assert!(right.is_right(), "{:?}", right.wrong);
    assert!(right.rows[0] > 400 && right.rows[1] > 1000 && right.live_bytes > 50_000);

    let mut session = engine.session().expect("a session");
    let key = graph_key();
    retry(&mut *session, Access::Write, &mut |rows| {
        rows.add(linkbench::COUNTS, &key, linkbench::COUNT, 1)
    })
    .expect("a change");
    let wrong = verify(&engine).expect("a look");
    assert_eq!(wrong.mismatches, 1, "{:?}", wrong.wrong);
    assert!(
        wrong.wrong[0].starts_with("node 7 type 123456789: count "),
        "{:?}",
        wrong.wrong
    );
}

fn graph_key() -> Row {
    let kind = linkbench::graph::TYPES[0];
    [7, kind, 99, 0, 0].map(Value::Int).to_vec()
}

/// A link without its count, and an index without an entry, are found as well.
#[test]
fn a_lost_count_and_a_lost_entry_are_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let plan = plan(directory.path(), linkbench::schema());
    let engine = super::embedded::open(&plan).expect("an engine");
    let bench = linkbench::Bench::new(small());
    bench.load(&engine, 1).expect("a load");
    let mut session = engine.session().expect("a session");
    let key = graph_key();
    retry(&mut *session, Access::Write, &mut |rows| {
        assert!(rows.delete(linkbench::COUNTS, &key[..2])?);
        Ok(())
    })
    .expect("a change");
    let wrong = verify(&engine).expect("a look");
    assert_eq!(wrong.mismatches, 1);
    assert!(wrong.wrong[0].contains("no count"), "{:?}", wrong.wrong);
    let mut all = Vec::new();
    retry(&mut *session, Access::Read, &mut |rows| {
        rows.scan(
            &Scan {
                table: linkbench::LINKS,
                limit: 1,
                ..Scan::default()
            },
            &mut |row| {
                all.push(row.to_vec());
                true
            },
        )?;
        Ok(())
    })
    .expect("a link");
    drop(session);
    drop(engine);

    // The same database, opened as if links had no index: a row goes, and its entry stays.
    let mut other = linkbench::schema();
    other.tables[linkbench::LINKS].indexes.clear();
    let blind = super::embedded::open(&self::plan(directory.path(), other)).expect("an engine");
    let mut session = blind.session().expect("a session");
    retry(&mut *session, Access::Write, &mut |rows| {
        assert!(rows.delete(linkbench::LINKS, &all[0][..3])?);
        rows.add(linkbench::COUNTS, &count_of(&all[0]), linkbench::COUNT, -1)
    })
    .expect("a change");
    drop(session);
    drop(blind);
    let engine = super::embedded::open(&plan).expect("an engine");
    let wrong = verify(&engine).expect("a look");
    assert!(
        wrong.wrong[0].starts_with("index id1_type: "),
        "{:?}",
        wrong.wrong
    );
    assert_eq!(wrong.mismatches, 2, "{:?}", wrong.wrong);
}

/// The count that a link belongs to.
fn count_of(link: &[Value]) -> Row {
    let zero = Value::Int(0);
    vec![
        link[1].clone(),
        link[0].clone(),
        zero.clone(),
        zero.clone(),
        zero,
    ]
}

/// With a rate, operations are due at their time, and latencies are taken from then.
#[test]
fn a_fixed_rate_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let plan = plan(directory.path(), linkbench::schema());
    let engine = super::embedded::open(&plan).expect("an engine");
    let bench = linkbench::Bench::new(small());
    bench.load(&engine, 1).expect("a load");
    let pace = Pace {
        threads: 2,
        seconds: 1.0,
        rate: 200.0,
        ..Pace::default()
    };
    let step = bench.run(&engine, "rate", pace).expect("a run");
    assert_eq!(step.operations, 200);
    assert!(step.seconds > 0.9, "{}", step.seconds);
    let intended: u64 = step.latencies.iter().map(|l| l.intended.len()).sum();
    assert_eq!(intended, 200);
    assert!(step.overall().is_some_and(|all| all.len() == 200));
}
