//! Writes behind the appends and reads ahead of their readers, with threads, without them, and with
//! failures.

use super::{CARRIERS, direct_dir, disks, read};
use crate::pool::{IoPool, IoThreads};
use crate::random_access::PendingRead;
use crate::write_behind::{BufferedFile, WriteBehind};
use crate::{
    Executor, FileSystem, JoinHandle, MemFs, PosixFs, RandomAccessFile, ReadOptions,
    ThreadExecutor, WritableFile, WriteOptions,
};
use esker_status::{Error, ErrorKind, Result};
use proptest::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Least request of a file that is written in the background.
const REQUEST: usize = 256 << 10;

/// A machine that starts no threads.
#[derive(Debug)]
struct NoThreads;

impl Executor for NoThreads {
    fn spawn(&self, name: &str, _: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        Err(Error::new(ErrorKind::Io, format!("no thread {name}")))
    }
    fn parallelism(&self) -> usize {
        1
    }
}

fn pools() -> [IoPool; 2] {
    [
        IoPool::new(Arc::new(ThreadExecutor::new())),
        IoPool::new(Arc::new(NoThreads)),
    ]
}

/// The bytes that arrived in a [`Sick`] file.
#[derive(Debug, Default)]
struct Arrived {
    bytes: Vec<u8>,
    calls: usize,
    after_failure: usize,
    synced: usize,
    closed: bool,
}

/// A slow file whose `fails_at`-th call fails.
#[derive(Debug)]
struct Sick {
    arrived: Arc<Mutex<Arrived>>,
    fails_at: usize,
    pause: Duration,
}

impl Sick {
    fn call(&self) -> Result<std::sync::MutexGuard<'_, Arrived>> {
        std::thread::sleep(self.pause);
        let mut arrived = self.arrived.lock().expect("nobody panics");
        arrived.calls += 1;
        if arrived.calls > self.fails_at {
            arrived.after_failure += 1;
        }
        if arrived.calls == self.fails_at {
            return Err(Error::new(ErrorKind::Io, "sick"));
        }
        Ok(arrived)
    }
}

impl WritableFile for Sick {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.call()?.bytes.extend_from_slice(data);
        Ok(())
    }
    fn flush(&mut self) -> Result<()> {
        self.call().map(drop)
    }
    fn sync(&mut self) -> Result<()> {
        let mut arrived = self.call()?;
        arrived.synced = arrived.bytes.len();
        Ok(())
    }
    fn len(&self) -> u64 {
        0
    }
    fn close(&mut self) -> Result<()> {
        self.call()?.closed = true;
        Ok(())
    }
    fn path(&self) -> &Path {
        Path::new("/sick")
    }
}

impl BufferedFile for Sick {}

fn pattern(from: usize, n: usize) -> Vec<u8> {
    (from..from + n)
        .map(|i| ((i * 31) >> 3) as u8 ^ (i >> 17) as u8)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Whichever call below fails: some call above fails with it, all later ones do, and what
    /// arrived is a prefix.
    #[test]
    fn a_failure_behind_the_appends_is_told_and_stays(pieces in prop::collection::vec(1usize..900_000, 1..8), sync_each: bool, begins: bool,
                                                      fails_at in 1usize..14, pause_us in 0u64..400, threads: bool, writes_here: bool) {
        let [with, without] = pools();
        let pool = if threads { &with } else { &without };
        let arrived = Arc::new(Mutex::new(Arrived::default()));
        let sick = Sick { arrived: Arc::clone(&arrived), fails_at, pause: Duration::from_micros(pause_us) };
        let mut file = WriteBehind::new(Box::new(sick), pool.queue(), 0);
        if writes_here {
            file = file.writing_here();
        }
        let mut model: Vec<u8> = Vec::new();
        let mut failed = false;
        for n in pieces {
            let piece = pattern(model.len(), n);
            model.extend_from_slice(&piece);
            let mut outcome = file.append(&piece);
            if sync_each && outcome.is_ok() && !failed {
                if begins {
                    outcome = file.begin_sync();
                }
                outcome = outcome.and_then(|()| file.sync());
                let arrived = arrived.lock().expect("nobody panics");
                prop_assert!(outcome.is_err() || arrived.synced == model.len());
            }
            prop_assert!(!failed || outcome.is_err(), "a failure is forgotten");
            failed |= outcome.is_err();
        }
        let closed = file.close();
        prop_assert!(!failed || closed.is_err());
        failed |= closed.is_err();
        prop_assert!(file.append(b"more").is_err() && file.sync().is_err());
        prop_assert!(file.close().is_ok(), "it is closed already");
        drop(file);
        let arrived = arrived.lock().expect("nobody panics");
        prop_assert_eq!(failed, arrived.calls >= fails_at);
        prop_assert_eq!(arrived.after_failure, 0, "nothing is written after a failure");
        prop_assert!(model.starts_with(&arrived.bytes));
        prop_assert!(failed || arrived.closed && arrived.bytes == model);
    }

    /// A read that was begun brings what a plain read brings, whatever else is under way, is
    /// dropped or lies past the end.
    #[test]
    fn a_read_that_was_begun_brings_what_is_there(len in 0usize..600_000, direct: bool, threads: bool, carrier in prop::sample::select(&CARRIERS),
                                                  reads in prop::collection::vec((0usize..700_000, 1usize..400_000, any::<bool>()), 1..12)) {
        let dir = direct_dir();
        let (fs, path) = (PosixFs::new().carried_by(carrier), dir.path().join("x"));
        let model = pattern(0, len);
        super::write(&fs, &path, &model);
        let [with, without] = pools();
        let pool = if threads { &with } else { &without };
        let file = fs.open_read(&path, ReadOptions { direct, random: false }).expect("open");
        let mut begun = Vec::new();
        for (i, (at, n, dropped)) in reads.into_iter().enumerate() {
            let read = if i % 2 == 0 {
                PendingRead::begin(Arc::clone(&file), pool.queue(), at as u64, n)
            } else {
                Arc::clone(&file).begin_read(at as u64, n)
            };
            if !dropped {
                begun.push((at, n, read));
            }
        }
        for (at, n, read) in begun {
            let filled = read.wait().expect("read");
            prop_assert!(filled.as_slice() == &model[at.min(len)..(at + n).min(len)]);
        }
    }
}

#[test]
fn a_device_that_is_full_shows_at_the_latest_in_sync() {
    for (direct, fs) in [false, true]
        .into_iter()
        .flat_map(|d| disks().map(|fs| (d, fs)))
    {
        let options = WriteOptions {
            direct,
            background: true,
            ..Default::default()
        };
        let Ok(mut file) = fs.create(Path::new("/dev/full"), options) else {
            continue;
        };
        let mut outcome = Ok(());
        for _ in 0..20 {
            outcome = outcome.and_then(|()| file.append(&pattern(0, 100_000)));
        }
        let e = outcome.and_then(|()| file.sync()).expect_err("no space");
        assert_eq!(e.os_error(), Some(28), "{e}");
        assert_eq!(file.append(b"x").expect_err("it stays"), e);
        assert_eq!(file.close().expect_err("it stays"), e);
    }
}

#[test]
fn a_reader_that_finds_nothing_to_read_gets_the_error_of_the_read() {
    #[derive(Debug)]
    struct Unreadable;
    impl RandomAccessFile for Unreadable {
        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
            Err(Error::new(ErrorKind::Io, "unreadable"))
        }
        fn len(&self) -> u64 {
            1 << 20
        }
        fn path(&self) -> &Path {
            Path::new("/unreadable")
        }
    }
    let file: Arc<dyn RandomAccessFile> = Arc::new(Unreadable);
    for pool in &pools() {
        let read = PendingRead::begin(Arc::clone(&file), pool.queue(), 0, 4096);
        assert_eq!(read.wait().expect_err("unreadable").kind(), ErrorKind::Io);
    }
    assert!(file.begin_read(0, 4096).wait().is_err());
}

#[test]
fn appends_do_not_wait_for_a_slow_file_until_its_buffers_are_full() {
    let arrived = Arc::new(Mutex::new(Arrived::default()));
    let pool = IoPool::new(Arc::new(ThreadExecutor::new()));
    let sick = Sick {
        arrived: Arc::clone(&arrived),
        fails_at: usize::MAX,
        pause: Duration::ZERO,
    };
    let mut file = WriteBehind::new(Box::new(sick), pool.queue(), 0);
    // As long as this is held the file below stands still.
    let stopped = arrived.lock().expect("nobody panics");
    file.append(&pattern(0, 2 * REQUEST + REQUEST / 2))
        .expect("append");
    assert_eq!((stopped.bytes.len(), file.len()), (0, 655_360));
    drop(stopped);
    file.sync().expect("sync");
    let arrived = arrived.lock().expect("nobody panics");
    assert_eq!((arrived.calls, arrived.synced), (4, 655_360));
}

#[test]
fn a_sync_that_was_begun_is_not_done_twice() {
    for pool in &pools() {
        let arrived = Arc::new(Mutex::new(Arrived::default()));
        let sick = Sick {
            arrived: Arc::clone(&arrived),
            fails_at: usize::MAX,
            pause: Duration::ZERO,
        };
        let calls = || arrived.lock().expect("nobody panics").calls;
        let mut file = WriteBehind::new(Box::new(sick), pool.queue(), 0);
        file.append(b"some").expect("append");
        file.begin_sync().expect("begun");
        file.sync().expect("sync");
        assert_eq!((calls(), file.sync(), calls()), (2, Ok(()), 2));
        file.append(b" more").expect("append");
        file.sync().expect("sync");
        assert_eq!(calls(), 4);
        file.begin_sync().expect("begun");
        file.append(b" and more").expect("append");
        file.sync().expect("sync");
        let arrived = arrived.lock().expect("nobody panics");
        assert_eq!(
            (arrived.bytes.as_slice(), arrived.synced),
            (&b"some more and more"[..], 18)
        );
    }
}

#[test]
fn a_sync_that_was_begun_changes_no_byte() {
    for fs in disks() {
        let dir = direct_dir();
        for (buffer_size, direct, mapped, background) in [
            (0, false, false, false),
            (5000, false, false, false),
            (0, true, false, false),
            (0, false, true, false),
            (0, false, false, true),
        ] {
            let path = dir.path().join("x");
            let options = WriteOptions {
                buffer_size,
                direct,
                mapped,
                background,
                ..WriteOptions::default()
            };
            let mut file = fs.create(&path, options).expect("create");
            let mut all = Vec::new();
            for n in 0..20_u8 {
                file.append(&[n; 1000]).expect("append");
                file.begin_sync().expect("begun");
                all.extend_from_slice(&[n; 1000]);
                if n % 7 == 0 {
                    file.sync().expect("sync");
                }
            }
            file.sync().expect("sync");
            file.close().expect("close");
            assert_eq!(read(&fs, &path), all, "{options:?}");
        }
    }
}

#[test]
fn files_outlive_their_filesystem_and_its_threads() {
    for fs in disks() {
        let dir = direct_dir();
        let path = dir.path().join("x");
        let options = WriteOptions {
            background: true,
            direct: true,
            ..Default::default()
        };
        let mut file = fs.create(&path, options).expect("create");
        let model = pattern(0, 1_500_001);
        file.append(&model[..700_000]).expect("append");
        let reading = PosixFs::new().carried_by(fs.carrier());
        drop(fs);
        file.append(&model[700_000..]).expect("append");
        file.close().expect("close");
        let direct = ReadOptions {
            direct: true,
            random: false,
        };
        let reader = reading.open_read(&path, direct).expect("open");
        let begun = Arc::clone(&reader).begin_read(0, 8192);
        drop(reading);
        assert!(begun.wait().expect("read").as_slice() == &model[..8192]);
        let after = reader.begin_read(8192, 8192).wait().expect("read");
        assert!(after.as_slice() == &model[8192..16384]);
        assert!(read(&PosixFs::new(), &path) == model);
    }
}

/// Writes a file in the background under a shell's limit on the size of files, and returns the
/// error of each carrier.
fn too_large(dir: &Path) -> Vec<Error> {
    let options = WriteOptions {
        background: true,
        direct: true,
        ..Default::default()
    };
    let errors = disks().into_iter().map(|fs| {
        let path = dir.join("x");
        let mut file = fs.create(&path, options).expect("create");
        let model = pattern(0, 3 << 20);
        let mut outcome = Ok(());
        for piece in model.chunks(100_000) {
            outcome = outcome.and_then(|()| file.append(piece));
        }
        let e = outcome.and_then(|()| file.sync()).expect_err("too large");
        assert_eq!(file.append(b"x").expect_err("it stays"), e);
        assert_eq!(file.close().expect_err("it stays"), e);
        drop(file);
        let arrived = read(&fs, &path);
        assert!(arrived.len() <= LIMIT && model.starts_with(&arrived));
        e
    });
    errors.collect()
}

const LIMIT: usize = 1 << 20;
const IN_CHILD: &str = "ESKER_TEST_TOO_LARGE";

#[test]
fn a_file_that_must_not_grow_is_the_same_error_whoever_carries() {
    if let Some(dir) = std::env::var_os(IN_CHILD) {
        let errors = too_large(Path::new(&dir));
        for e in &errors {
            assert_eq!(
                (e.os_error(), e.offset()),
                (Some(27), Some(LIMIT as u64)),
                "{e}"
            );
            assert_eq!(e, &errors[0]);
        }
        return;
    }
    let dir = direct_dir();
    let own = std::env::current_exe().expect("a program");
    let name = "a_file_that_must_not_grow_is_the_same_error_whoever_carries";
    // Only a shell can forget the signal that comes with the error.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\""]);
    shell
        .arg(own)
        .args(["--test-threads=1", "--nocapture", name]);
    let done = shell.env(IN_CHILD, dir.path()).output().expect("it runs");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_read_that_fails_is_the_same_error_whoever_carries() {
    // Nothing is mapped at address 0.
    let errors = disks().map(|fs| {
        let options = ReadOptions::default();
        let memory = fs.open_read(Path::new("/proc/self/mem"), options);
        let read = memory.expect("opens").begin_read(0, 4096);
        read.wait().expect_err("nothing there")
    });
    for e in &errors {
        assert_eq!((e.os_error(), e.offset()), (Some(5), Some(0)), "{e}");
        assert_eq!(e, &errors[0]);
    }
}

#[test]
fn requests_go_to_who_is_wanted() {
    let ring = crate::sys::ring::Ring::new();
    let by = |fs: &PosixFs| [false, true].map(|d| fs.background_carrier(d).expect("somebody"));
    let [auto, threads, kernel] = disks();
    assert_eq!(by(&threads), ["threads", "threads"]);
    match ring {
        Ok(_) => {
            assert_eq!(by(&kernel), ["io_uring", "io_uring"]);
            assert_eq!(by(&auto), ["threads", "io_uring"]);
        }
        Err(e) => {
            let instead = format!("threads, since io_uring is not available: {e}");
            assert_eq!(by(&kernel), [instead.as_str(), &instead]);
            assert_eq!(by(&auto), ["threads", &instead]);
        }
    }
}

/// 256 requests at once, which is more than a ring has slots: the others are done otherwise.
#[test]
fn more_reads_than_a_ring_takes_are_all_done() {
    for fs in disks() {
        let dir = direct_dir();
        let path = dir.path().join("x");
        let model = pattern(0, 4 << 20);
        super::write(&fs, &path, &model);
        let options = ReadOptions {
            direct: true,
            random: false,
        };
        let file = fs.open_read(&path, options).expect("open");
        let begin = |i: usize| Arc::clone(&file).begin_read((i * 16384) as u64, 16384);
        let begun: Vec<_> = (0..256).map(begin).collect();
        for (i, read) in begun.into_iter().enumerate().rev() {
            if i % 3 == 0 {
                drop(read);
                continue;
            }
            let filled = read.wait().expect("read");
            assert!(filled.as_slice() == &model[i * 16384..][..16384]);
        }
    }
}

#[test]
fn a_file_that_is_dropped_without_close_has_what_was_appended() {
    let dir = direct_dir();
    let (fs, path) = (PosixFs::new(), dir.path().join("x"));
    let options = WriteOptions {
        background: true,
        ..Default::default()
    };
    let mut file = fs.create(&path, options).expect("create");
    file.append(&pattern(0, 1_000_000)).expect("append");
    drop(file);
    assert!(read(&fs, &path) == pattern(0, 1_000_000));
}

#[test]
fn memory_writes_and_reads_at_once() {
    let (fs, path) = (MemFs::new(), Path::new("/x"));
    let options = WriteOptions {
        background: true,
        ..Default::default()
    };
    let mut file = fs.create(path, options).expect("create");
    file.append(b"0123456789").expect("append");
    assert_eq!(read(&fs, path), b"0123456789");
    let reader = fs.open_read(path, ReadOptions::default()).expect("open");
    let filled = reader.begin_read(4, 100).wait().expect("read");
    assert_eq!(filled.as_slice(), b"456789");
}

#[test]
fn threads_are_few_and_started_by_need() {
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);
    impl Executor for Counting {
        fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            ThreadExecutor::new().spawn(name, body)
        }
        fn parallelism(&self) -> usize {
            2
        }
    }
    let counting = Arc::new(Counting::default());
    let pool = IoPool::new(Arc::clone(&counting) as Arc<dyn Executor>);
    let fs = MemFs::new();
    super::write(&fs, Path::new("/x"), &pattern(0, 10_000));
    let file = fs
        .open_read(Path::new("/x"), ReadOptions::default())
        .expect("open");
    assert_eq!(counting.0.load(Ordering::Relaxed), 0);
    let begun: Vec<_> = (0..200)
        .map(|i| PendingRead::begin(Arc::clone(&file), pool.queue(), i * 10, 10))
        .collect();
    for (i, read) in begun.into_iter().enumerate() {
        assert_eq!(read.wait().expect("read").as_slice(), pattern(i * 10, 10));
    }
    assert!((1..=8).contains(&counting.0.load(Ordering::Relaxed)));
}

#[test]
fn pools_share_threads_and_end_one_by_one() {
    let threads = IoThreads::new(Arc::new(ThreadExecutor::new()));
    let fs = MemFs::new();
    super::write(&fs, Path::new("/x"), &pattern(0, 10_000));
    let file = fs
        .open_read(Path::new("/x"), ReadOptions::default())
        .expect("open");
    let stopped = Arc::new(Mutex::new(Arrived::default()));
    let slow = IoPool::on(Arc::clone(&threads));
    let sick = Sick {
        arrived: Arc::clone(&stopped),
        fails_at: usize::MAX,
        pause: Duration::ZERO,
    };
    let mut written = WriteBehind::new(Box::new(sick), slow.queue(), 0);
    let held = stopped.lock().expect("nobody panics");
    written.append(&pattern(0, REQUEST + 1)).expect("append");
    for _ in 0..100 {
        let pool = IoPool::on(Arc::clone(&threads));
        let begun: Vec<_> = (0..10)
            .map(|i| PendingRead::begin(Arc::clone(&file), pool.queue(), i * 10, 10))
            .collect();
        assert!((1..=8).contains(&pool.threads()));
        // Ends while a thread does what the slow one asked for.
        drop(pool);
        for (i, read) in begun.into_iter().enumerate() {
            assert_eq!(read.wait().expect("read").as_slice(), pattern(i * 10, 10));
        }
    }
    drop(held);
    drop(slow);
    assert_eq!(stopped.lock().expect("nobody panics").bytes.len(), REQUEST);
    written.sync().expect("sync");
}

#[test]
fn an_idle_pool_has_no_threads_and_gets_them_again() {
    let pool = IoPool::new(Arc::new(ThreadExecutor::new()));
    let fs = MemFs::new();
    super::write(&fs, Path::new("/x"), &pattern(0, 10_000));
    let file = fs
        .open_read(Path::new("/x"), ReadOptions::default())
        .expect("open");
    for round in 0..3 {
        let read = PendingRead::begin(Arc::clone(&file), pool.queue(), 0, 10);
        assert_eq!(pool.threads(), 1, "round {round}");
        assert_eq!(read.wait().expect("read").as_slice(), pattern(0, 10));
        while pool.threads() > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_buffer_is_used_again() {
    let pool = IoPool::new(Arc::new(NoThreads));
    let first = pool.queue().buffer(1 << 20);
    let place = first.as_slice().as_ptr().addr();
    assert!(place.is_multiple_of(4096));
    drop(first);
    let again = pool.queue().buffer((1 << 20) - 5000);
    assert_eq!(again.as_slice().as_ptr().addr(), place);
    assert_ne!(
        pool.queue().buffer(1 << 20).as_slice().as_ptr().addr(),
        place
    );
}
