//! Blocks come out of windows as they are in the file, and the requests are the ones that were
//! promised.

use super::*;
use esker_env::{Env, ReadOptions, WriteOptions};
use esker_status::{Error, ErrorKind};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Mutex;

/// Bytes in memory; notes what is asked for, and fails from some request on.
#[derive(Debug)]
struct Noted {
    bytes: Vec<u8>,
    requests: Mutex<Vec<(u64, usize)>>,
    fails_at: usize,
}

impl Noted {
    fn new(bytes: Vec<u8>, fails_at: usize) -> Arc<Self> {
        Arc::new(Noted {
            bytes,
            requests: Mutex::default(),
            fails_at,
        })
    }

    fn requests(&self) -> Vec<(u64, usize)> {
        self.requests.lock().expect("nobody panics").clone()
    }
}

impl RandomAccessFile for Noted {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut requests = self.requests.lock().expect("nobody panics");
        requests.push((offset, buf.len()));
        if requests.len() > self.fails_at {
            return Err(Error::new(ErrorKind::Io, "unreadable"));
        }
        let rest = self.bytes.get(offset as usize..).unwrap_or(&[]);
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn path(&self) -> &Path {
        Path::new("/noted")
    }
}

fn pattern(n: usize) -> Vec<u8> {
    (0..n)
        .map(|i| ((i * 31) >> 3) as u8 ^ (i >> 16) as u8)
        .collect()
}

const MB: u64 = 1 << 20;

/// Reads the file in blocks of 8 KB.
fn walk(windows: &mut Windows, file: &Arc<Noted>, blocks: std::ops::Range<u64>) {
    let plain: Arc<dyn RandomAccessFile> = Arc::clone(file) as _;
    for block in blocks {
        let at = block * 8100;
        let got = windows.read(&plain, plain.len(), at, 8100, None);
        let got = got.expect("read");
        assert!(got.as_slice() == &file.bytes[at as usize..at as usize + 8100]);
    }
}

#[test]
fn a_walk_asks_for_large_aligned_pieces_once() {
    let file = Noted::new(pattern(8100 * 1857), usize::MAX);
    walk(&mut Windows::new(2 << 20, None), &file, 0..1857);
    let (first, two) = (256u64 << 10, (2u64 << 20));
    let mut expected: Vec<_> = (0..7).map(|i| (first + i * two, two as usize)).collect();
    // The one in use is asked for after the one behind it. What is left goes with the last one.
    expected.insert(1, (0, first as usize));
    let last = expected.last_mut().expect("there are eight");
    let left = (file.len() - last.0).next_multiple_of(ALIGN);
    assert!((two..two + first).contains(&left));
    last.1 = left as usize;
    assert_eq!(file.requests(), expected);
}

#[test]
fn a_reader_that_stops_has_read_one_window_too_much() {
    let file = Noted::new(pattern(8100 * 2000), usize::MAX);
    walk(&mut Windows::new(1 << 20, None), &file, 0..150);
    let read_to = file.requests().iter().map(|r| r.0 + r.1 as u64).max();
    let (used_to, read_to) = (150 * 8100, read_to.expect("something was read"));
    assert!(read_to - used_to <= 2 * MB, "{read_to} for {used_to}");
}

#[test]
fn a_small_table_is_read_at_once() {
    let file = Noted::new(pattern(8100 * 10), usize::MAX);
    walk(&mut Windows::new(2 << 20, None), &file, 0..10);
    assert_eq!(file.requests(), [(0, 81_920)]);
}

#[test]
fn a_size_that_is_too_small_is_raised() {
    let file = Noted::new(pattern(8100 * 1000), usize::MAX);
    walk(&mut Windows::new(4096, None), &file, 0..1000);
    assert!(file.requests().iter().all(|r| r.1 >= 64 << 10));
}

#[test]
fn a_handle_of_its_own_is_used_instead() {
    let (own, other) = (
        Noted::new(pattern(81_000), usize::MAX),
        Noted::new(pattern(81_000), 0),
    );
    walk(
        &mut Windows::new(1 << 20, Some(Arc::clone(&own) as _)),
        &other,
        0..10,
    );
    assert_eq!((own.requests().len(), other.requests().len()), (1, 0));
}

#[test]
fn a_block_larger_than_a_window_comes_in_windows_and_in_memory_of_its_own() {
    let file = Noted::new(pattern(20 << 20), usize::MAX);
    let plain: Arc<dyn RandomAccessFile> = Arc::clone(&file) as _;
    let mut windows = Windows::new(1 << 20, None);
    // From the start, behind another one, and after a jump.
    for (at, len) in [(0u64, 5 << 20), (5 << 20, 7_000_001), (13 << 20, 4 << 20)] {
        let got = windows
            .read(&plain, plain.len(), at, len, None)
            .expect("read");
        let StoredBlock::Own(bytes) = got else {
            panic!("the block at {at} is lent");
        };
        assert!(bytes == file.bytes[at as usize..at as usize + len]);
        assert_eq!(bytes.capacity(), len, "no room that nobody needs");
    }
    let largest = file.requests().iter().map(|r| r.1).max();
    assert!(largest <= Some(2 << 20), "{largest:?}");
    assert!(
        windows.joined.capacity() == 0,
        "nothing is kept for the next one"
    );
}

/// Where reads of a test begin, and how long they are.
fn blocks() -> impl Strategy<Value = Vec<(bool, u64, usize)>> {
    prop::collection::vec(
        (
            prop::bool::weighted(0.1),
            0u64..3_000_000,
            prop_oneof![6 => 1usize..20_000, 1 => 200_000usize..1_200_000],
        ),
        1..60,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// In sequence with gaps, back and forth, past the end, from a file that is shorter than it
    /// should be: what comes is what is there, and an error is one.
    #[test]
    fn what_windows_give_is_what_is_there(len in 0usize..3_000_000, missing in prop_oneof![3 => Just(0u64), 1 => 1u64..500_000], size in 1usize..1_500_000,
                                          steps in blocks(), fails_at in prop_oneof![2 => Just(usize::MAX), 1 => 0usize..12]) {
        let file = Noted::new(pattern(len), fails_at);
        let plain: Arc<dyn RandomAccessFile> = Arc::clone(&file) as _;
        let end = len as u64 + missing;
        let mut windows = Windows::new(size, None);
        let mut at = 0;
        for (jumps, to, n) in steps {
            if jumps {
                at = to;
            }
            if at + n as u64 > end {
                continue;
            }
            match windows.read(&plain, end, at, n, None) {
                Ok(got) => {
                    let got = got.as_slice();
                    let from = (at as usize).min(len);
                    let there = &file.bytes[from..(at as usize + n).min(len).max(from)];
                    // A block that is cut short may give nothing at all.
                    prop_assert!(got == there || there.len() < n && there.starts_with(got));
                }
                Err(e) => {
                    prop_assert!(file.requests().len() > fails_at, "{e}");
                }
            }
            at += n as u64;
        }
        for (offset, n) in file.requests() {
            prop_assert!(offset.is_multiple_of(ALIGN) && n.is_multiple_of(DIRECT_ALIGN));
            prop_assert!(offset + n as u64 <= end.next_multiple_of(ALIGN), "nothing beyond the end");
        }
    }
}

#[test]
fn threads_read_a_direct_file_ahead() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a temporary directory");
    let (env, path) = (Env::posix(), dir.path().join("x"));
    let bytes = pattern(8100 * 1500);
    let mut file = env
        .fs
        .create(&path, WriteOptions::default())
        .expect("create");
    file.append(&bytes).expect("append");
    file.close().expect("close");
    for direct in [true, false] {
        let options = ReadOptions {
            direct,
            random: false,
        };
        let file = env.fs.open_read(&path, options).expect("open");
        let mut windows = Windows::new(1 << 20, None);
        for block in 0..1500 {
            let at = block * 8100;
            let got = windows.read(&file, file.len(), at as u64, 8100, None);
            assert!(got.expect("read").as_slice() == &bytes[at..at + 8100]);
        }
    }
}
