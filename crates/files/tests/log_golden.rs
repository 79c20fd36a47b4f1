//! Reads every write-ahead log, MANIFEST, CURRENT, IDENTITY and blob file under the directory that
//! `ESKER_GOLDEN` names (databases written by RocksDB): each must be whole, and everything in it
//! understood.

use esker_env::Env;
use esker_files::blob::BlobFileReader;
use esker_files::log::{LogReader, LogReaderOptions, LogWriter, LogWriterOptions, ReadOutcome};
use esker_files::manifest::ManifestReader;
use esker_files::{current, identity};
use esker_format::FamilyId;
use esker_format::batch::BatchReader;
use esker_format::edit::VersionEdit;
use esker_format::file_name::{FileKind, manifest_name, parse_file_name};
use esker_format::options_text::OptionsText;
use std::path::{Path, PathBuf};

/// The golden directory, or `None` after saying that the test is skipped.
fn golden() -> Option<PathBuf> {
    let dir = std::env::var_os("ESKER_GOLDEN").map(PathBuf::from);
    if dir.is_none() {
        println!("SKIPPED: ESKER_GOLDEN is not set");
    }
    dir
}

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("the golden directory is readable") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            files(&path, out)
        } else {
            out.push(path)
        }
    }
}

fn of_kind(dir: &Path, wanted: FileKind) -> Vec<(PathBuf, esker_format::FileNo)> {
    let mut all = Vec::new();
    files(dir, &mut all);
    all.sort();
    all.into_iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            let (kind, number) = parse_file_name(&name)?;
            (kind == wanted).then_some((path, number))
        })
        .collect()
}

fn open(path: &Path) -> std::sync::Arc<dyn esker_env::RandomAccessFile> {
    Env::posix()
        .fs
        .open_read(path, Default::default())
        .expect("opens")
}

#[test]
fn every_log_is_whole_and_every_batch_parses() {
    let Some(dir) = golden() else { return };
    let (mut records, mut timestamps, mut predecessors, mut recycled) = (0, 0, 0, 0);
    let logs = of_kind(&dir, FileKind::Wal);
    for (path, number) in &logs {
        let mut reader = LogReader::new(open(path), LogReaderOptions::new(*number));
        loop {
            match reader.next().expect("readable") {
                ReadOutcome::Record { bytes, offset } => {
                    let batch = BatchReader::parse(bytes).expect("a header");
                    batch
                        .verify()
                        .unwrap_or_else(|e| panic!("{} at {offset}: {e}", path.display()));
                    records += 1;
                }
                ReadOutcome::TimestampSizes(sizes) => timestamps += sizes.len(),
                ReadOutcome::Predecessor(_) => predecessors += 1,
                ReadOutcome::End => break,
                ReadOutcome::OldRecord { .. } => break,
                other => panic!("{}: {other:?}", path.display()),
            }
        }
        recycled += usize::from(reader.is_recycled());
    }
    println!(
        "{} logs, {records} records, {timestamps} ts, {predecessors} pred, {recycled} recycled",
        logs.len()
    );
    assert!(records > 0 && timestamps > 0 && predecessors > 0 && recycled > 0);
}

#[test]
fn uncompressed_logs_are_written_back_byte_for_byte() {
    let Some(dir) = golden() else { return };
    let env = Env::in_memory();
    let mut same = 0;
    for kind in [FileKind::Wal, FileKind::Manifest] {
        for (path, number) in of_kind(&dir, kind) {
            let original = std::fs::read(&path).expect("readable");
            if original.get(6) == Some(&9) {
                continue; // Compressed: the frames depend on the encoder.
            }
            let number = if kind == FileKind::Wal {
                number
            } else {
                esker_format::FileNo(0)
            };
            let recyclable = original.get(6).is_some_and(|t| (5..=8).contains(t));
            let options = LogWriterOptions {
                recycle: recyclable.then_some(number),
                ..Default::default()
            };
            let copy = Path::new("/copy");
            let file = env.fs.create(copy, Default::default()).expect("creates");
            let mut writer = LogWriter::new(file, options).expect("a writer");
            let mut reader = LogReader::new(open(&path), LogReaderOptions::new(number));
            loop {
                match reader.next().expect("readable") {
                    ReadOutcome::Record { bytes, .. } => {
                        let (a, b) = bytes.split_at(bytes.len() / 3);
                        writer.add_record_parts(&[a, b]).expect("adds");
                    }
                    ReadOutcome::TimestampSizes(s) => writer.add_timestamp_sizes(&s).expect("adds"),
                    ReadOutcome::Predecessor(p) => writer.add_predecessor(&p).expect("adds"),
                    _ => break,
                }
            }
            let end = reader.valid_end() as usize;
            writer.close().expect("closes");
            let copied = env.fs.read_all(copy, u64::MAX).expect("readable");
            assert_eq!(&copied[..end], &original[..end], "{}", path.display());
            same += 1;
        }
    }
    println!("{same} logs are the same");
    assert!(same > 0);
}

#[test]
fn every_manifest_is_understood_and_survives_a_round_trip() {
    let Some(dir) = golden() else { return };
    let (mut files, mut groups, mut blobs, mut wals) = (0, 0, 0, 0);
    let manifests = of_kind(&dir, FileKind::Manifest);
    for (path, _) in &manifests {
        let mut reader = ManifestReader::over(open(path));
        while let Some(group) = reader.next_group().unwrap_or_else(|e| panic!("{e}")) {
            groups += usize::from(group.edits.len() > 1);
            for edit in group.edits {
                files += edit.new_files.len();
                blobs += edit.blob_additions.len();
                wals += edit.wal_additions.len();
                assert_eq!(
                    VersionEdit::decode(&edit.encode()).expect("own bytes"),
                    edit
                );
            }
        }
        assert!(!reader.has_torn_tail(), "{}", path.display());
    }
    println!(
        "{} MANIFESTs, {files} files, {groups} groups, {blobs} blobs, {wals} WALs",
        manifests.len()
    );
    assert!(files > 0 && groups > 0 && blobs > 0 && wals > 0);
}

#[test]
fn current_and_identity_are_read() {
    let Some(dir) = golden() else { return };
    let fs = Env::posix().fs;
    for (path, _) in of_kind(&dir, FileKind::Current) {
        let db = path.parent().expect("a directory");
        let manifest = current::read(&*fs, db).expect("CURRENT");
        assert!(
            db.join(manifest_name(manifest)).exists(),
            "{}",
            db.display()
        );
        assert_eq!(identity::read(&*fs, db).expect("IDENTITY").len(), 36);
    }
}

#[test]
fn every_blob_is_read_through_its_index() {
    let Some(dir) = golden() else { return };
    let mut values = 0;
    for (path, number) in of_kind(&dir, FileKind::Blob) {
        let reader = BlobFileReader::over(open(&path), number, FamilyId(0)).expect("opens");
        let bytes = std::fs::read(&path).expect("readable");
        let mut at = esker_format::blob::HEADER_LEN;
        for _ in 0..reader.blob_count() {
            let header =
                esker_format::blob::BlobRecordHeader::decode(&bytes[at..at + 32]).expect("header");
            let key = &bytes[at + 32..at + 32 + header.key_len as usize];
            let offset = (at + 32 + key.len()) as u64;
            let codec = reader.codec() as u8;
            let index =
                esker_format::blob::BlobIndex::blob(number, offset, header.value_len, codec);
            let (mut checked, mut plain) = (Vec::new(), Vec::new());
            reader
                .get(key, &index, true, &mut checked)
                .expect("verified");
            reader.get(key, &index, false, &mut plain).expect("plain");
            assert_eq!(checked, plain);
            at = (offset + header.value_len) as usize;
            values += 1;
        }
        assert_eq!(
            at + esker_format::blob::FOOTER_LEN,
            bytes.len(),
            "{}",
            path.display()
        );
    }
    println!("{values} blobs");
    assert!(values > 0);
}

#[test]
fn options_files_print_to_the_same_statements() {
    let Some(dir) = golden() else { return };
    let mut statements = 0;
    for (path, _) in of_kind(&dir, FileKind::Options) {
        let text = std::fs::read_to_string(&path).expect("text");
        let parsed =
            OptionsText::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let printed = parsed.to_string();
        let trimmed = |t: &str| -> Vec<String> {
            let lines = t
                .lines()
                .map(str::trim)
                .filter(|l| !l.is_empty() && !l.starts_with('#'));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(trimmed(&printed), trimmed(&text), "{}", path.display());
        statements += parsed
            .sections
            .iter()
            .map(|s| s.statements.len())
            .sum::<usize>();
        assert!(parsed.section("CFOptions", Some("default")).is_some());
    }
    println!("{statements} statements");
    assert!(statements > 0);
}
