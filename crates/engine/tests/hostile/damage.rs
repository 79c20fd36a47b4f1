//! Ways to damage files: changed bytes, edits of a MANIFEST, records of a log, blocks of a table.

use esker::Env;
use esker::codec::checksum::{crc32c, mask};
use esker_files::log::{LogWriter, LogWriterOptions};
use esker_files::manifest::{ManifestReader, ManifestWriter};
use esker_format::FileNo;
use esker_format::edit::VersionEdit;
use esker_format::footer::{BlockHandle, Footer};
use std::path::{Path, PathBuf};

pub(crate) fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(dir)
        .expect("the directory")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.to_string_lossy().contains(ending))
        .collect();
    found.sort();
    found
}

pub(crate) fn file(dir: &Path, part: &str) -> PathBuf {
    files(dir, part)
        .pop()
        .unwrap_or_else(|| panic!("no {part} in {}", dir.display()))
}

/// The table that comes first in key order of the default family: the first that was compacted.
pub(crate) fn table(dir: &Path) -> PathBuf {
    file(dir, ".sst")
}

pub(crate) fn change(path: &Path, f: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).expect("the file");
    f(&mut bytes);
    std::fs::write(path, bytes).expect("written");
}

pub(crate) fn cut(path: &Path, len: u64) {
    let f = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .expect("the file");
    f.set_len(len).expect("cut");
}

pub(crate) fn len(path: &Path) -> u64 {
    std::fs::metadata(path).expect("the file").len()
}

pub(crate) fn flip(part: &'static str, at: impl Fn(u64) -> u64 + 'static) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| {
        let path = file(dir, part);
        change(&path, |b| {
            let i = at(b.len() as u64) as usize;
            b[i] ^= 0x15;
        });
    })
}

pub(crate) fn current(content: &'static [u8]) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| std::fs::write(dir.join("CURRENT"), content).expect("written"))
}

/// Rewrites the MANIFEST with edits that `f` changed; every checksum is right.
pub(crate) fn manifest(f: impl Fn(&mut Vec<VersionEdit>) + 'static) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| {
        let env = Env::posix();
        let path = file(dir, "MANIFEST-");
        let mut reader = ManifestReader::open(&*env.fs, &path).expect("good before");
        let mut edits = Vec::new();
        while let Some(group) = reader.next_group().expect("good before") {
            edits.extend(group.edits);
        }
        f(&mut edits);
        std::fs::remove_file(&path).expect("ours");
        let number = reader_number(&path);
        let mut writer = ManifestWriter::create(&*env.fs, dir, number, Default::default(), &edits)
            .expect("written");
        writer
            .sync()
            .and_then(|()| writer.close())
            .expect("written");
    })
}

/// Replaces the MANIFEST by one that holds `record` after its edits; every checksum is right.
pub(crate) fn manifest_record(record: Vec<u8>) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| {
        let env = Env::posix();
        let path = file(dir, "MANIFEST-");
        let mut reader = ManifestReader::open(&*env.fs, &path).expect("good before");
        let mut log = LogWriter::new(
            env.fs
                .create(&dir.join("new"), Default::default())
                .expect("created"),
            LogWriterOptions::default(),
        )
        .expect("a log");
        while let Some(group) = reader.next_group().expect("good before") {
            for edit in group.edits {
                let mut bytes = Vec::new();
                edit.encode_into(&mut bytes);
                log.add_record(&bytes).expect("written");
            }
        }
        log.add_record(&record).expect("written");
        log.flush().and_then(|()| log.close()).expect("written");
        std::fs::rename(dir.join("new"), path).expect("renamed");
    })
}

pub(crate) fn reader_number(path: &Path) -> FileNo {
    let name = path.to_string_lossy();
    let digits = name.rsplit('-').next().expect("a number");
    FileNo(digits.parse().expect("a number"))
}

/// Replaces the newest log by one that holds `record` alone; its checksum is right.
pub(crate) fn log_record(record: Vec<u8>) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| {
        let env = Env::posix();
        let path = file(dir, ".log");
        let file = env.fs.create(&path, Default::default()).expect("created");
        let mut log = LogWriter::new(file, LogWriterOptions::default()).expect("a log");
        log.add_record(&record).expect("written");
        log.flush().and_then(|()| log.close()).expect("written");
    })
}

/// A batch with `count` in its header and `body` after it.
pub(crate) fn batch(count: u32, body: &[u8]) -> Vec<u8> {
    let mut out = 5000u64.to_le_bytes().to_vec();
    out.extend(count.to_le_bytes());
    out.extend(body);
    out
}

pub(crate) const HUGE: [u8; 10] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];

pub(crate) fn footer(bytes: &[u8]) -> Footer {
    Footer::decode(&bytes[bytes.len() - 53..], bytes.len() as u64).expect("good before")
}

pub(crate) fn put_footer(bytes: &mut [u8], footer: &Footer) {
    let at = bytes.len() - 53;
    let encoded = footer.encode(at as u64).expect("it fits");
    bytes[at..].copy_from_slice(&encoded);
}

/// Writes a block with the right checksum at `at`.
pub(crate) fn put_block(bytes: &mut [u8], at: usize, block: &[u8]) {
    bytes[at..at + block.len()].copy_from_slice(block);
    bytes[at + block.len()] = 0;
    let sum = mask(crc32c(&bytes[at..=at + block.len()]));
    bytes[at + block.len() + 1..at + block.len() + 5].copy_from_slice(&sum.to_le_bytes());
}

/// An index block with one entry, `key`, that leads to `to`.
pub(crate) fn index_block(key: &[u8], to: BlockHandle) -> Vec<u8> {
    let mut block = vec![0, key.len() as u8];
    block.extend(key);
    to.encode_to(&mut block);
    block.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    block
}

/// Makes the top of the index lead to a place that `to` computes from the new top.
pub(crate) fn index_to(to: impl Fn(BlockHandle) -> BlockHandle + 'static) -> Box<dyn Fn(&Path)> {
    Box::new(move |dir| {
        change(&table(dir), |bytes| {
            let mut f = footer(bytes);
            let at = f.index.offset as usize;
            let key_len = bytes[at + 1] as usize;
            let key = bytes[at + 2..at + 2 + key_len].to_vec();
            let mut top = f.index;
            for _ in 0..4 {
                top.size = index_block(&key, to(top)).len() as u64;
            }
            assert!(
                top.size <= f.index.size,
                "the new top fits in the old one's place"
            );
            let block = index_block(&key, to(top));
            put_block(bytes, at, &block);
            f.index = top;
            put_footer(bytes, &f);
        });
    })
}

pub(crate) fn file_edit(
    edits: &mut [VersionEdit],
    f: impl FnOnce(&mut esker_format::edit::NewFile),
) {
    let edit = edits
        .iter_mut()
        .rev()
        .find(|e| !e.new_files.is_empty())
        .expect("tables");
    f(&mut edit.new_files[0].1);
}
