//! Tests of every filesystem with the same expectations, and of a real disk alone.

mod background;
mod file_reuse;
mod mapped;

use crate::{
    BackgroundIo, Env, FileSystem, MemFs, PosixFs, ReadOptions, WritableFile, WriteOptions,
};
use esker_status::{ErrorKind, LockHolder, Subcode};
use proptest::prelude::*;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Every choice of what carries out large requests.
const CARRIERS: [BackgroundIo; 3] = [
    BackgroundIo::Auto,
    BackgroundIo::Threads,
    BackgroundIo::IoUring,
];

/// The disk with each of them; where the system has no io_uring it is threads.
fn disks() -> [PosixFs; 3] {
    CARRIERS.map(|carrier| PosixFs::new().carried_by(carrier))
}

/// Runs `test` with each filesystem and a fresh directory in it.
fn on_each(test: impl Fn(&dyn FileSystem, &Path)) {
    for disk in disks() {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        test(&disk, dir.path());
    }
    let mem = MemFs::new();
    mem.create_dir_all(Path::new("/a/b"))
        .expect("the root is a directory");
    test(&mem, Path::new("/a/b"));
}

fn write(fs: &dyn FileSystem, path: &Path, data: &[u8]) {
    let mut file = fs.create(path, WriteOptions::default()).expect("create");
    file.append(data).expect("append");
    file.close().expect("close");
}

fn read(fs: &dyn FileSystem, path: &Path) -> Vec<u8> {
    fs.read_all(path, 1 << 30).expect("read")
}

#[test]
fn files_are_written_read_and_listed() {
    on_each(|fs, dir| {
        let path = dir.join("x");
        let mut file = fs
            .create(
                &path,
                WriteOptions {
                    buffer_size: 10,
                    ..Default::default()
                },
            )
            .expect("create");
        for piece in [&b"0123"[..], b"456789abcdefghij", b"k"] {
            file.append(piece).expect("append");
        }
        assert_eq!(file.len(), 21);
        file.flush().expect("flush");
        assert_eq!(read(fs, &path), b"0123456789abcdefghijk");
        file.append(b"tail").expect("append");
        file.sync().expect("sync");
        file.close().expect("close");
        assert!(file.append(b"more").is_err() && file.close().is_ok());

        let reader = fs
            .open_read(
                &path,
                ReadOptions {
                    random: true,
                    direct: false,
                },
            )
            .expect("open");
        let mut buf = [0; 8];
        assert_eq!(
            (reader.len(), reader.read_at(20, &mut buf).expect("read")),
            (25, 5)
        );
        assert_eq!(
            (&buf[..5], reader.read_at(25, &mut [0; 4]), reader.path()),
            (&b"ktail"[..], Ok(0), &*path)
        );

        let mut file = fs
            .open_append(&path, WriteOptions::default())
            .expect("open");
        file.append(b"!").expect("append");
        assert_eq!(file.len(), 26);
        file.close().expect("close");
        fs.truncate(&path, 3).expect("truncate");
        assert_eq!(read(fs, &path), b"012");
        assert!(fs.read_all(&path, 2).expect_err("too long").is_corruption());

        fs.create_dir_all(&dir.join("d/e")).expect("create");
        fs.create_dir_all(&dir.join("d/e"))
            .expect("one that exists is fine");
        let names: Vec<_> = fs
            .read_dir(dir)
            .expect("list")
            .into_iter()
            .map(|e| (e.name, e.is_file))
            .collect();
        assert_eq!(names, [("d".to_owned(), false), ("x".to_owned(), true)]);
        fs.sync_dir(dir).expect("sync");
        assert!(fs.remove_dir(&dir.join("d")).is_err(), "it is not empty");
        fs.remove_dir(&dir.join("d/e")).expect("remove");
        let d = fs.metadata(&dir.join("d")).expect("stat");
        assert!(d.is_dir && fs.metadata(&path).expect("stat").len == 3);
        assert_eq!(
            fs.canonical(&dir.join("d/../x")).expect("resolve"),
            fs.canonical(&path).expect("resolve")
        );
        assert!(fs.free_space(dir).expect("statvfs") > 0);
    });
}

#[test]
fn memory_of_its_own_holds_what_is_there_and_no_more() {
    on_each(|fs, dir| {
        let path = dir.join("x");
        let bytes: Vec<u8> = (0..100_000u32).map(|i| (i * 7 % 251) as u8).collect();
        write(fs, &path, &bytes);
        for direct in [false, true] {
            let options = ReadOptions {
                direct,
                ..ReadOptions::default()
            };
            let file = fs.open_read(&path, options).expect("open");
            for (at, len) in [
                (0, 100_000),
                (3, 77),
                (4096, 8192),
                (99_999, 1),
                (50_000, 0),
            ] {
                let got = file.read_to_vec(at as u64, len).expect("read");
                assert!(got == bytes[at..at + len], "{at}+{len}, direct: {direct}");
            }
            let short = file.read_to_vec(99_000, 5_000).expect("read");
            assert!(short == bytes[99_000..], "fewer at the end");
            assert!(file.read_to_vec(200_000, 10).expect("read").is_empty());
        }
    });
}

#[test]
fn names_move_link_and_go() {
    on_each(|fs, dir| {
        let at = |n: &str| dir.join(n);
        write(fs, &at("a"), b"aa");
        write(fs, &at("b"), b"b");
        let open = fs
            .open_read(&at("b"), ReadOptions::default())
            .expect("open");
        fs.rename(&at("a"), &at("b")).expect("rename over");
        assert_eq!(
            (read(fs, &at("b")), fs.exists(&at("a"))),
            (b"aa".to_vec(), Ok(false))
        );
        let mut buf = [0; 4];
        assert_eq!(
            (open.read_at(0, &mut buf), buf[0]),
            (Ok(1), b'b'),
            "an open file outlives its name"
        );
        fs.hard_link(&at("b"), &at("c")).expect("link");
        assert!(fs.hard_link(&at("b"), &at("c")).is_err());
        fs.remove_file(&at("b")).expect("remove");
        assert_eq!(read(fs, &at("c")), b"aa");
        fs.create_dir_all(&at("d")).expect("create");
        write(fs, &at("d/x"), b"x");
        fs.rename(&at("d"), &at("e")).expect("rename a directory");
        assert_eq!(
            (read(fs, &at("e/x")), fs.exists(&at("d/x"))),
            (b"x".to_vec(), Ok(false))
        );
    });
}

#[test]
fn errors_name_the_path_and_absence_has_its_subcode() {
    on_each(|fs, dir| {
        let gone = dir.join("gone");
        let errors = [
            fs.open_read(&gone, ReadOptions::default())
                .expect_err("absent"),
            fs.open_append(&gone, WriteOptions::default())
                .expect_err("absent"),
            fs.create(&gone.join("x"), WriteOptions::default())
                .expect_err("absent"),
            fs.metadata(&gone).expect_err("absent"),
            fs.remove_file(&gone).expect_err("absent"),
            fs.rename(&gone, &dir.join("to")).expect_err("absent"),
            fs.read_dir(&gone).expect_err("absent"),
            fs.truncate(&gone, 0).expect_err("absent"),
            fs.canonical(&gone).expect_err("absent"),
        ];
        for e in errors {
            assert_eq!(
                (e.kind(), e.subcode()),
                (ErrorKind::Io, Subcode::PathNotFound),
                "{e}"
            );
            assert!(e.to_string().contains("gone"), "{e}");
        }
        assert_eq!(fs.exists(&gone), Ok(false));
        write(fs, &dir.join("x"), b"x");
        let exclusive = WriteOptions {
            exclusive: true,
            ..Default::default()
        };
        assert!(fs.create(&dir.join("x"), exclusive).is_err());
        assert_eq!(
            read(fs, &dir.join("x")),
            b"x",
            "a refused creation leaves the file alone"
        );
        assert!(
            fs.open_read(dir, ReadOptions::default()).is_err(),
            "a directory is not a file"
        );
        assert!(fs.create_dir_all(&dir.join("x")).is_err());
    });
}

#[test]
fn a_second_lock_in_the_process_fails_and_leaves_the_first() {
    on_each(|fs, dir| {
        let path = dir.join("LOCK");
        let first = fs.lock(&path).expect("lock");
        for _ in 0..2 {
            let e = fs.lock(&path).expect_err("taken");
            let (kind, subcode) = (ErrorKind::Io, Subcode::Locked);
            assert_eq!((e.kind(), e.subcode()), (kind, subcode));
            assert_eq!(e.lock_holder(), Some(&LockHolder::ThisProcess));
            // RocksDB's text.
            let text = e.to_string();
            let end = format!(": {}: No locks available", path.display());
            let begin = "IO error: lock hold by current process, acquire time ";
            assert!(text.starts_with(begin) && text.ends_with(&end), "{text}");
        }
        assert_eq!(
            fs.read_dir(dir).expect("list").len(),
            1,
            "no trace but the lock file"
        );
        drop(first);
        drop(fs.lock(&path).expect("free again"));
    });
}

#[test]
fn another_process_sees_the_lock_even_after_a_failed_second_take() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let (fs, path) = (PosixFs::new(), dir.path().join("LOCK"));
    let _held = fs.lock(&path).expect("lock");
    // The same file by another name: closing a second descriptor of it would drop the lock.
    let other_name = dir.path().join("LINK");
    fs.hard_link(&path, &other_name).expect("link");
    assert!(fs.lock(&other_name).is_err());
    // /proc/locks names holders by inode.
    let inode = std::fs::metadata(&path).expect("stat").ino();
    let locks = std::fs::read_to_string("/proc/locks").expect("read");
    let mine = |l: &str| l.contains(" WRITE ") && l.contains(&format!(":{inode} "));
    assert!(locks.lines().any(mine), "{inode} not in {locks}");
}

#[test]
fn a_link_at_the_end_of_the_path_is_not_followed() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let (target, link) = (dir.path().join("target"), dir.path().join("link"));
    let fs = PosixFs::new();
    write(&fs, &target, b"precious");
    std::os::unix::fs::symlink(&target, &link).expect("symlink");
    assert!(fs.create(&link, WriteOptions::default()).is_err());
    assert!(fs.lock(&link).is_err() && fs.truncate(&link, 0).is_err());
    assert_eq!(read(&fs, &target), b"precious");
}

#[test]
fn reserved_space_is_given_back() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let (fs, path) = (PosixFs::new(), dir.path().join("x"));
    let options = WriteOptions {
        preallocate: 1 << 20,
        ..Default::default()
    };
    let mut file = fs.create(&path, options).expect("create");
    file.append(b"some").expect("append");
    let during = std::fs::metadata(&path).expect("stat");
    file.close().expect("close");
    let after = std::fs::metadata(&path).expect("stat");
    assert_eq!(
        (during.len(), after.len()),
        (4, 4),
        "the length is never more than was written"
    );
    assert!(after.blocks() * 512 < 1 << 20, "{}", after.blocks());
}

#[test]
fn power_loss_takes_what_was_not_synced() {
    let fs = MemFs::new();
    let path = Path::new("/x");
    let mut file = fs.create(path, WriteOptions::default()).expect("create");
    file.append(b"kept").expect("append");
    file.sync().expect("sync");
    file.append(b"lost").expect("append");
    drop(file);
    assert_eq!(
        (read(&fs, path), fs.total_bytes()),
        (b"keptlost".to_vec(), 8)
    );
    fs.drop_unsynced();
    assert_eq!(read(&fs, path), b"kept");
}

#[test]
fn the_environment_ticks_draws_and_runs() {
    let env = Env::posix();
    let before = env.clock.now_ns();
    env.clock.sleep(std::time::Duration::from_millis(2));
    assert!(env.clock.now_ns() >= before + 2_000_000 && env.clock.now_us() >= 2_000);
    assert!(env.clock.unix_us() > 1_600_000_000_000_000);
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut draws: HashSet<u64> = (0..1000).map(|_| env.entropy.next_u64()).collect();
    let entropy = env.entropy.clone();
    let body = move || {
        let name = rustix::thread::name().expect("it has one");
        let draws: Vec<u64> = (0..1000).map(|_| entropy.next_u64()).collect();
        sender.send((name, draws)).expect("the test is waiting");
    };
    env.executor
        .spawn("worker", Box::new(body))
        .expect("a thread")
        .join();
    let (name, more) = receiver
        .recv()
        .expect("it was sent before the thread ended");
    draws.extend(more);
    assert_eq!((name.to_str(), draws.len()), (Ok("worker"), 2000));
    assert!(env.executor.parallelism() > 0);
}

/// A step of a writer: append this many bytes, flush, sync.
#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Flush,
    Sync,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop_oneof![0usize..200, 3000usize..9000, 60_000usize..140_000, 200_000usize..900_000].prop_map(Step::Append),
        1 => Just(Step::Flush),
        1 => Just(Step::Sync),
        1 => Just(Step::Reopen),
    ]
}

fn direct_dir() -> tempfile::TempDir {
    // The build's directory is on a disk more often than the temporary one.
    tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a temporary directory can be made")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever the mode and the pieces, the file holds what was appended, and reads agree.
    #[test]
    fn what_was_appended_is_read(steps in prop::collection::vec(step(), 1..12), direct: bool, background: bool, carrier in prop::sample::select(&CARRIERS), buffer in 0usize..20_000,
                                 preallocate in prop_oneof![Just(0u64), Just(100_000)], at in any::<u32>(), n in 0usize..70_000) {
        let dir = direct_dir();
        let (fs, path): (_, PathBuf) = (PosixFs::new().carried_by(carrier), dir.path().join("x"));
        let options = WriteOptions { direct, buffer_size: buffer, preallocate, bytes_per_sync: 4096, exclusive: true, background, ..WriteOptions::default() };
        let mut file: Box<dyn WritableFile> = fs.create(&path, options).expect("create");
        let mut model: Vec<u8> = Vec::new();
        for step in steps {
            match step {
                Step::Append(n) => {
                    let piece: Vec<u8> = (0..n).map(|i| (((model.len() + i) * 31) >> 3) as u8).collect();
                    file.append(&piece).expect("append");
                    model.extend(piece);
                }
                Step::Flush => {
                    file.flush().expect("flush");
                    prop_assert!(read(&fs, &path) == model);
                }
                Step::Sync => file.sync().expect("sync"),
                Step::Reopen => {
                    file.close().expect("close");
                    file = fs.open_append(&path, options).expect("open");
                }
            }
            prop_assert_eq!(file.len(), model.len() as u64);
        }
        file.close().expect("close");
        prop_assert!(read(&fs, &path) == model);
        let reader = fs.open_read(&path, ReadOptions { direct, random: false }).expect("open");
        let at = at as usize % (model.len() + 10);
        let mut buf = vec![0; n];
        let got = reader.read_at(at as u64, &mut buf).expect("read");
        let expected = &model[at.min(model.len())..(at + n).min(model.len()).max(at.min(model.len()))];
        prop_assert!(&buf[..got] == expected);
    }
}

#[test]
fn a_symbolic_link_is_what_it_leads_to() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("file"), "bytes").expect("write");
    std::fs::create_dir(at("folder")).expect("create");
    for (target, link) in [("file", "a"), ("folder", "b"), ("nothing", "c"), ("d", "d")] {
        std::os::unix::fs::symlink(target, at(link)).expect("link");
    }
    let fs = PosixFs::new();
    let listed = fs.read_dir(dir.path()).expect("list").into_iter();
    let files: Vec<_> = listed.map(|e| (e.name, e.is_file)).collect();
    let kinds = [
        ("a", true),
        ("b", false),
        ("c", false),
        ("d", false),
        ("file", true),
        ("folder", false),
    ];
    assert_eq!(files, kinds.map(|(name, is)| (name.to_owned(), is)));
    // A second name is one of the file, wherever it lies.
    fs.hard_link(&at("a"), &at("folder/second")).expect("link");
    assert_eq!(std::fs::read(at("folder/second")).expect("read"), b"bytes");
}
