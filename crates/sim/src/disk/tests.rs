//! Tests of the disk: it behaves as a filesystem does, and its log says what was done.

use super::*;
use crate::crash::{Point, Variant};

fn path(text: &str) -> &Path {
    Path::new(text)
}

fn write(fs: &SimFs, at: &str, data: &[u8], sync: bool) {
    let mut file = fs
        .create(path(at), WriteOptions::default())
        .expect("creates");
    file.append(data).expect("appends");
    if sync {
        file.sync().expect("syncs");
    }
    file.close().expect("closes");
}

fn read(fs: &SimFs, at: &str) -> Option<Vec<u8>> {
    fs.read_all(path(at), 1 << 20).ok()
}

fn after_crash(fs: &SimFs, variant: Variant, seed: u64) -> SimFs {
    let log = fs.log();
    SimFs::from_image(Point::at(&log, log.ops.len()).state(variant, seed))
}

#[test]
fn names_behave_as_on_a_disk() {
    let fs = SimFs::new();
    fs.create_dir_all(path("/a/b")).expect("makes");
    write(&fs, "/a/one", b"1", false);
    fs.hard_link(path("/a/one"), path("/a/b/two"))
        .expect("links");
    fs.rename(path("/a/one"), path("/a/three"))
        .expect("renames");
    assert!(!fs.exists(path("/a/one")).expect("asks"));
    assert_eq!(read(&fs, "/a/b/two"), read(&fs, "/a/three"));
    assert!(fs.remove_dir(path("/a")).is_err());
    assert!(fs.rename(path("/a"), path("/a/b/c")).is_err());
    let names: Vec<_> = fs.read_dir(path("/a")).expect("lists");
    let names: Vec<_> = names.iter().map(|e| (e.name.as_str(), e.is_file)).collect();
    assert_eq!(names, [("b", false), ("three", true)]);
    let exclusive = WriteOptions {
        exclusive: true,
        ..WriteOptions::default()
    };
    assert!(fs.create(path("/a/three"), exclusive).is_err());
    assert!(fs.create(path("/none/x"), exclusive).is_err());
}

#[test]
fn what_was_not_synced_is_lost_and_what_was_is_not() {
    let fs = SimFs::new();
    write(&fs, "/sure", b"kept", true);
    fs.sync_dir(path("/")).expect("syncs");
    write(&fs, "/no-name", b"kept", true);
    let mut file = fs
        .open_append(path("/sure"), WriteOptions::default())
        .expect("opens");
    file.append(b" and more").expect("appends");
    let lost = after_crash(&fs, Variant::Lost, 0);
    assert_eq!(read(&lost, "/sure").as_deref(), Some(&b"kept"[..]));
    assert_eq!(read(&lost, "/no-name"), None);
    let kept = after_crash(&fs, Variant::Kept, 0);
    assert_eq!(read(&kept, "/sure").as_deref(), Some(&b"kept and more"[..]));
    assert!(read(&kept, "/no-name").is_some());
    for seed in 0..200 {
        let any = after_crash(&fs, Variant::Mixed, seed);
        let sure = read(&any, "/sure").expect("its name is sure");
        assert!(sure.starts_with(b"kept"), "{sure:?}");
        let ext4 = after_crash(&fs, Variant::Ext4Mixed, seed);
        assert!(read(&ext4, "/sure").expect("there").starts_with(b"kept"));
    }
}

#[test]
fn a_rename_leaves_one_of_both_and_never_none() {
    let fs = SimFs::new();
    write(&fs, "/current", b"old", true);
    fs.sync_dir(path("/")).expect("syncs");
    write(&fs, "/temp", b"new", true);
    fs.rename(path("/temp"), path("/current")).expect("renames");
    let mut seen = std::collections::BTreeSet::<Vec<u8>>::new();
    for seed in 0..100 {
        let any = after_crash(&fs, Variant::Mixed, seed);
        seen.extend(read(&any, "/current"));
    }
    assert_eq!(seen.len(), 2, "both: {seen:?}");
    for seed in 0..100 {
        let found = read(&after_crash(&fs, Variant::Mixed, seed), "/current");
        assert!(
            matches!(found.as_deref(), Some(b"old" | b"new")),
            "{found:?}"
        );
    }
}

#[test]
fn a_failed_sync_is_not_made_good_by_the_next() {
    for (pages, name) in [
        (Pages::Kept, "fsync-kept"),
        (Pages::Reverted, "fsync-reverted"),
        (Pages::Dropped, "fsync-dropped"),
    ] {
        let fs = SimFs::new();
        let mut file = fs
            .create(path("/f"), WriteOptions::default())
            .expect("creates");
        fs.sync_dir(path("/")).expect("syncs");
        file.append(b"first").expect("appends");
        let plan = format!("sync:any:1:{name}:once");
        fs.inject(&plan.parse().expect("a plan"));
        assert!(file.sync().is_err());
        let now = read(&fs, "/f").expect("there");
        match pages {
            Pages::Kept => assert_eq!(now, b"first"),
            Pages::Reverted => assert_eq!(now, b""),
            Pages::Dropped => assert_eq!(now, [0; 5]),
        }
        file.sync().expect("the pages are clean");
        let lost = read(&after_crash(&fs, Variant::Lost, 0), "/f").expect("there");
        assert_ne!(lost, b"first", "{name}");
    }
}

#[test]
fn a_dead_process_changes_nothing() {
    let fs = SimFs::new();
    let held = fs.lock(path("/LOCK")).expect("locks");
    let options = WriteOptions {
        buffer_size: 100,
        ..WriteOptions::default()
    };
    let mut file = fs.create(path("/f"), options).expect("creates");
    file.append(b"buffered").expect("appends");
    let next = fs.kill();
    let again = next
        .lock(path("/LOCK"))
        .expect("the lock went with the process");
    drop(held);
    assert!(next.lock(path("/LOCK")).is_err(), "it is the new one's");
    drop(file);
    assert!(fs.remove_file(path("/f")).is_err());
    assert_eq!(read(&next, "/f").as_deref(), Some(&b""[..]));
    drop(again);
}

#[test]
fn a_short_append_takes_half() {
    let fs = SimFs::new();
    let mut file = fs
        .create(path("/000001.log"), WriteOptions::default())
        .expect("creates");
    fs.inject(&"append:wal:2:short-ENOSPC:until".parse().expect("a plan"));
    file.append(b"whole").expect("the first");
    let e = file.append(b"four").expect_err("the second");
    assert!(e.is_no_space());
    assert_eq!(read(&fs, "/000001.log").as_deref(), Some(&b"wholefo"[..]));
    fs.heal();
    assert_eq!(fs.failed_calls(), 1);
}

#[test]
fn plans_and_cuts_are_read_as_they_are_printed() {
    let mut rng = crate::Rng::new(5);
    for _ in 0..500 {
        let plan = crate::trial::draw_plan(&mut rng, None);
        assert_eq!(plan.to_string().parse::<FaultSpec>().expect("reads"), plan);
    }
    for (variant, _) in crate::crash::VARIANTS {
        let cut = crate::crash::Cut {
            at: 17,
            variant: *variant,
            seed: rng.next_u64(),
        };
        assert_eq!(
            cut.to_string().parse::<crate::crash::Cut>().expect("reads"),
            cut
        );
    }
    assert!("append:wal:x:EIO:once".parse::<FaultSpec>().is_err());
}
