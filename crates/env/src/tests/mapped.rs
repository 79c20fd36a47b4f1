//! Logs that are written through a mapping.

use super::{direct_dir, read};
use crate::{FileSystem, PosixFs, ReadOptions, WriteOptions};
use proptest::prelude::*;
use std::path::Path;

fn mapped() -> WriteOptions {
    WriteOptions {
        mapped: true,
        exclusive: true,
        preallocate: 300_000,
        ..WriteOptions::default()
    }
}

/// Bytes that differ by where they stand, none of them 0.
fn bytes(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(|i| (i % 251 + 1) as u8).collect()
}

/// Returns whether the filesystem of this directory is one that is mapped.
fn is_mapped_here(fs: &PosixFs, dir: &Path) -> bool {
    let path = dir.join("probe");
    let mut file = fs.create(&path, mapped()).expect("create");
    file.append(b"x").expect("append");
    let len = fs.metadata(&path).expect("stat").len;
    file.close().expect("close");
    fs.remove_file(&path).expect("remove");
    len > 1
}

#[test]
fn what_is_appended_shows_at_once_and_zeros_behind_it_until_close() {
    let (fs, dir) = (PosixFs::new(), direct_dir());
    if !is_mapped_here(&fs, dir.path()) {
        println!("skipped: this filesystem is not mapped");
        return;
    }
    let path = dir.path().join("log");
    let mut file = fs.create(&path, mapped()).expect("create");
    let reader = fs.open_read(&path, ReadOptions::default()).expect("open");
    let all = bytes(0, 5 << 20);
    let mut at = 0;
    // Small ones, ones that go across windows, and one that is longer than a window.
    for len in [1, 7, 8, 9, 70_000, 400, 1 << 20, 3 << 20, 430, 11] {
        file.append(&all[at..at + len]).expect("append");
        at += len;
        assert_eq!(file.len(), at as u64);
        let mut seen = vec![0; len];
        let n = reader.read_at((at - len) as u64, &mut seen).expect("read");
        assert_eq!((n, &seen[..]), (len, &all[at - len..at]));
    }
    let now = read(&fs, &path);
    assert!(now.len() > at, "{} bytes, {at} appended", now.len());
    assert_eq!(now[..at], all[..at]);
    assert!(now[at..].iter().all(|b| *b == 0));
    file.sync().expect("sync");
    file.append(b"more").expect("append");
    file.close().expect("close");
    assert_eq!(read(&fs, &path), [&all[..at], b"more"].concat());
    assert!(file.append(b"late").is_err());
}

#[test]
fn windows_are_ready_as_far_ahead_as_the_file_usually_gets() {
    const MB: u64 = 1 << 20;
    let (fs, dir) = (PosixFs::new(), direct_dir());
    if !is_mapped_here(&fs, dir.path()) {
        println!("skipped: this filesystem is not mapped");
        return;
    }
    for (preallocate, least, most) in [(32 * MB, 3 * MB, 5 * MB), (300_000, 0, 2 * MB)] {
        let path = dir.path().join(format!("log{preallocate}"));
        let options = WriteOptions {
            preallocate,
            ..mapped()
        };
        let mut file = fs.create(&path, options).expect("create");
        for _ in 0..60 {
            file.append(&bytes(0, 100_000)).expect("append");
        }
        let ahead = || fs.metadata(&path).expect("stat").len - 6_000_000;
        for _ in 0..1_000 {
            if ahead() >= least {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(
            (least..=most).contains(&ahead()),
            "{} of {preallocate}",
            ahead()
        );
        file.close().expect("close");
        assert_eq!(fs.metadata(&path).expect("stat").len, 6_000_000);
    }
}

#[test]
fn a_mapped_file_that_is_dropped_has_its_length() {
    let (fs, dir) = (PosixFs::new(), direct_dir());
    let path = dir.path().join("log");
    let mut file = fs.create(&path, mapped()).expect("create");
    // Into the second window, so that more are being made.
    file.append(&bytes(0, 100_000)).expect("append");
    drop(file);
    assert_eq!(read(&fs, &path), bytes(0, 100_000));
    let mut more = fs.open_append(&path, mapped()).expect("open");
    more.append(b"x").expect("append");
    more.close().expect("close");
    assert_eq!(read(&fs, &path).len(), 100_001);
}

#[test]
fn bytes_survive_a_process_that_is_killed() {
    let (fs, dir) = (PosixFs::new(), direct_dir());
    let path = dir.path().join("log");
    if let Some(place) = std::env::var_os("ESKER_MAPPED_CHILD") {
        let mut file = fs.create(Path::new(&place), mapped()).expect("create");
        file.append(&bytes(0, 1_500_000)).expect("append");
        std::process::abort();
    }
    let me = std::env::current_exe().expect("a path");
    let status = std::process::Command::new(me)
        .args([
            "--exact",
            "tests::mapped::bytes_survive_a_process_that_is_killed",
        ])
        .env("ESKER_MAPPED_CHILD", &path)
        .output()
        .expect("it runs")
        .status;
    assert!(!status.success());
    let found = read(&fs, &path);
    assert_eq!(found[..1_500_000], bytes(0, 1_500_000));
    assert!(found[1_500_000..].iter().all(|b| *b == 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn pieces_of_any_length_make_the_file(lens in prop::collection::vec(prop_oneof![0usize..600, 0usize..200_000, Just(64 << 10), Just(1 << 20)], 0..30),
                                          syncs: bool, bytes_per_sync in prop_oneof![Just(0u64), Just(65_536)]) {
        let (fs, dir) = (PosixFs::new(), direct_dir());
        let path = dir.path().join("log");
        let mut file = fs.create(&path, WriteOptions { bytes_per_sync, ..mapped() }).expect("create");
        let all = bytes(0, lens.iter().sum());
        let mut at = 0;
        for len in lens {
            file.append(&all[at..at + len]).expect("append");
            at += len;
            if syncs {
                file.sync().expect("sync");
            }
        }
        file.close().expect("close");
        prop_assert!(read(&fs, &path) == all);
    }
}
