//! Files for ingestion go both ways: RocksDB's `ldb` makes them and takes ours, and so does a
//! RocksDB library.
//!
//! The tools of RocksDB must be installed, or the tests say that they skip. `ESKER_GOLDEN` names a
//! set of databases with an external file of RocksDB 7.8 in it.

mod rocksdb_tools;

use esker::{Db, IngestOptions, Options, SstFileWriter};
use rocksdb_tools::library::Library;
use rocksdb_tools::{Tools, say};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents(db: &Db) -> Model {
    let mut out = Model::new();
    let mut it = db.iter();
    it.seek_to_first();
    while it.valid() {
        out.insert(it.key().to_vec(), it.value().to_vec());
        it.next();
    }
    it.status().expect("reads");
    out
}

fn pair(n: u32, value: &str) -> (Vec<u8>, Vec<u8>) {
    (format!("key{n:05}").into(), format!("{value}-{n}").into())
}

/// Lets `ldb` write a file of `pairs` for ingestion.
fn written_by_ldb(db: &Path, file: &Path, pairs: &Model) {
    let mut ldb = Command::new("ldb")
        .arg(format!("--db={}", db.display()))
        .arg("write_extern_sst")
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("ldb starts");
    let mut lines = ldb.stdin.take().expect("is piped");
    for (key, value) in pairs {
        let (key, value) = (String::from_utf8_lossy(key), String::from_utf8_lossy(value));
        writeln!(lines, "{key} ==> {value}").expect("is read");
    }
    drop(lines);
    assert!(ldb.wait().expect("ends").success());
    assert!(file.exists(), "ldb wrote {}", file.display());
}

/// A file of ours in one of several shapes.
fn written_by_us(file: &Path, shape: &str, pairs: &Model, deleted: Option<(&str, &str)>) {
    let options = Options::new().set_all(shape).expect("these options exist");
    let mut writer = SstFileWriter::new(&options).expect("a writer");
    writer.open(file).expect("opens");
    for (key, value) in pairs {
        writer.put(key, value).expect("is added");
    }
    if let Some((begin, end)) = deleted {
        writer.delete_range(begin, end).expect("is added");
    }
    writer.finish().expect("is finished");
}

const SHAPES: &[&str] = &[
    "compression=kNoCompression",
    "compression=kZSTD;filter_policy=bloomfilter:10:false;format_version=5",
    "compression=kLZ4Compression;index_type=kTwoLevelIndexSearch;partition_filters=true;filter_policy=ribbonfilter:10:0;metadata_block_size=256",
    "compression=kSnappyCompression;format_version=4;checksum=kCRC32c;block_size=512",
];

#[test]
fn their_files_are_taken_in() {
    let Some(tools) = Tools::find() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let (theirs, ours) = (dir.path().join("theirs"), dir.path().join("ours"));
    tools.ldb(&theirs, &["--create_if_missing", "put", "first", "1"]);
    let db = Db::open(&ours, Options::new().create_if_missing(true)).expect("opens");
    let family = db.default_family_handle();
    let mut model = Model::new();
    for n in 0..1_000 {
        let (k, v) = pair(n * 3, "old");
        db.put(&k, &v).expect("writes");
        model.insert(k, v);
    }
    for round in 0..4 {
        let pairs: Model = (0..400)
            .map(|n| pair(round * 300 + n, &format!("round{round}")))
            .collect();
        let file = dir.path().join(format!("{round}.sst"));
        written_by_ldb(&theirs, &file, &pairs);
        let mut options = IngestOptions::default();
        options.verify_checksums_before_ingest = true;
        options.write_global_seqno = round % 2 == 1;
        options.move_files = round > 1;
        db.ingest(&family, &[&file], &options).expect("is taken in");
        model.extend(pairs);
        assert_eq!(contents(&db), model);
    }
    db.close().expect("closes");
    // RocksDB reads what came of it, with the numbers in the files and without.
    let scanned = tools.scan(&ours, "default");
    assert_eq!(scanned.into_iter().collect::<Model>(), model);
    tools.ldb(&ours, &["checkconsistency"]);
    tools.ldb(&ours, &["compact"]);
    let db = Db::open(&ours, Options::new()).expect("opens");
    assert_eq!(contents(&db), model);
}

#[test]
fn they_take_our_files_in() {
    let Some(tools) = Tools::find() else { return };
    for shape in SHAPES {
        let dir = tempfile::tempdir().expect("a directory");
        let theirs = dir.path().join("theirs");
        tools.ldb(&theirs, &["--create_if_missing", "put", "key00007", "old"]);
        tools.ldb(&theirs, &["put", "key00950", "old"]);
        tools.ldb(&theirs, &["put", "last", "old"]);
        let pairs: Model = (0..900).map(|n| pair(n, "ours")).collect();
        let file = dir.path().join("ours.sst");
        written_by_us(&file, shape, &pairs, Some(("key00900", "key00960")));
        let said = Command::new("sst_dump")
            .arg(format!("--file={}", file.display()))
            .arg("--command=verify")
            .output()
            .expect("sst_dump starts");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains("The file is ok"), "{shape}: {said}");
        let path = file.to_str().expect("a path in UTF-8");
        tools.ldb(&theirs, &["ingest_extern_sst", path]);
        let mut model = pairs;
        model.insert(b"last".to_vec(), b"old".to_vec());
        let scanned: Model = tools.scan(&theirs, "default").into_iter().collect();
        assert_eq!(scanned, model, "{shape}");
        // And we read what they made of it.
        let db = Db::open(&theirs, Options::new()).expect("opens");
        assert_eq!(contents(&db), model, "{shape}");
        db.verify_checksums().expect("whole");
    }
}

#[test]
fn a_library_and_we_take_each_others_files() {
    let Ok(path) = std::env::var("ESKER_REF_LIB") else {
        say(format_args!(
            "compat: skipped, ESKER_REF_LIB names no librocksdb.so"
        ));
        return;
    };
    let library = Library::load(&path);
    let dir = tempfile::tempdir().expect("a directory");
    let home = dir.path().join("db");
    let mut model = Model::new();
    for (round, shape) in SHAPES.iter().enumerate() {
        let round = u32::try_from(round).expect("a few");
        let db = Db::open(&home, Options::new().create_if_missing(true)).expect("opens");
        let family = db.default_family_handle();
        let (k, v) = pair(round * 150 + 100, "written");
        db.put(&k, &v).expect("writes");
        model.insert(k, v);
        let pairs: Model = (0..300)
            .map(|n| pair(round * 150 + n, &format!("theirs{round}")))
            .collect();
        let file = dir.path().join(format!("theirs{round}.sst"));
        library.write_external(&file, &pairs);
        let mut options = IngestOptions::default();
        options.verify_checksums_before_ingest = true;
        options.write_global_seqno = round % 2 == 1;
        db.ingest(&family, &[&file], &options).expect("is taken in");
        model.extend(pairs);
        assert_eq!(contents(&db), model);
        db.close().expect("closes");

        let pairs: Model = (0..300)
            .map(|n| pair(round * 150 + 75 + n, &format!("ours{round}")))
            .collect();
        let file = dir.path().join(format!("ours{round}.sst"));
        written_by_us(&file, shape, &pairs, Some(("key00000", "key00020")));
        model.retain(|k, _| **k >= b"key00020"[..] || **k < b"key00000"[..]);
        model.extend(pairs);
        let theirs = library.open(&home, "after our files");
        theirs.ingest("default", &file);
        assert_eq!(theirs.read_all()["default"], model, "{shape}");
        theirs.settle(round == 2);
        assert_eq!(theirs.read_all()["default"], model, "{shape}");
    }
    let db = Db::open(&home, Options::new()).expect("opens");
    assert_eq!(contents(&db), model);
    db.verify_checksums().expect("whole");
}

#[test]
fn the_golden_file_is_taken_in() {
    let Some(root) = std::env::var_os("ESKER_GOLDEN").map(PathBuf::from) else {
        say(format_args!("compat: skipped, ESKER_GOLDEN is not set"));
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let mut file = root.join("7.8.3/ext.sst");
    if !file.exists() {
        let archive = root.join("rocksdb-7.8.3.tar.xz");
        let unpacked = Command::new("tar")
            .arg("xf")
            .arg(&archive)
            .arg("-C")
            .arg(dir.path())
            .arg("7.8.3/ext.sst")
            .status()
            .expect("tar starts");
        assert!(unpacked.success(), "{}", archive.display());
        file = dir.path().join("7.8.3/ext.sst");
    }
    let db = Db::open(
        dir.path().join("db"),
        Options::new().create_if_missing(true),
    )
    .expect("opens");
    db.put("key000003", "old").expect("writes");
    let mut options = IngestOptions::default();
    options.verify_checksums_before_ingest = true;
    db.ingest(&db.default_family_handle(), &[&file], &options)
        .expect("is taken in");
    let found = contents(&db);
    assert!(found.len() > 50);
    assert_eq!(
        found[&b"key000003"[..].to_vec()],
        b"value-3-dehmtcnapgzurqruzgpa"
    );
}
