//! Secondary instances: they show states of the primary, one after the other, whatever the primary
//! does meanwhile.

use esker::{
    Db, Env, ErrorKind, FamilyDescriptor, FamilyOptions, Options, ReadOptions, Result, WriteBatch,
    WriteOptions,
};
use std::collections::BTreeMap;
use std::path::Path;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn small() -> Options {
    Options::new()
        .create_if_missing(true)
        .set_all("write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=262144;level0_file_num_compaction_trigger=2;compression=kNoCompression")
        .expect("these options exist")
}

fn contents(db: &Db, family: &str) -> Result<Model> {
    let family = db.family(family).expect("the family exists");
    let mut out = Model::new();
    let mut it = db.iter_cf(&family);
    it.seek_to_first();
    while it.valid() {
        out.insert(it.key().to_vec(), it.value().to_vec());
        it.next();
    }
    it.status()?;
    for (key, value) in &out {
        assert_eq!(db.get_cf(&family, key)?.as_ref(), Some(value));
    }
    Ok(out)
}

/// Names and bytes of the files of a directory.
fn listing(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(dir)
        .expect("the directory is there")
        .map(|e| e.expect("an entry"))
        .map(|e| {
            let name = e.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(e.path()).unwrap_or_default())
        })
        .collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % n
    }
}

#[test]
fn shows_the_primary_as_of_each_catch_up() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let primary = Db::open(&at, small())?;
    let other = primary.create_family("other", FamilyOptions::default())?;
    primary.put("a", "1")?;
    primary.put_cf(&other, "b", "2")?;
    let before = listing(&at);
    let second = Db::open_secondary(&at, dir.path().join("second"), Options::new())?;
    assert_eq!(second.get("a")?.as_deref(), Some(&b"1"[..]));
    let seen = second.family("other").expect("the family is opened too");
    assert_eq!(second.get_cf(&seen, "b")?.as_deref(), Some(&b"2"[..]));
    assert_eq!(
        second.latest_sequence_number(),
        primary.latest_sequence_number()
    );
    assert_eq!(before, listing(&at), "nothing of the primary changes");
    let log = std::fs::read_to_string(dir.path().join("second/LOG")).expect("it has a LOG");
    assert!(log.contains("Opening the db in secondary mode"), "{log}");

    let iterator = {
        let mut it = second.iter();
        it.seek_to_first();
        it
    };
    primary.put("a", "3")?;
    primary.delete_cf(&other, "b")?;
    primary.flush()?;
    primary.put("c", "4")?;
    assert_eq!(second.get("a")?.as_deref(), Some(&b"1"[..]));
    second.try_catch_up_with_primary()?;
    assert_eq!(second.get("a")?.as_deref(), Some(&b"3"[..]));
    assert_eq!(second.get("c")?.as_deref(), Some(&b"4"[..]));
    assert_eq!(second.get_cf(&seen, "b")?, None);
    assert_eq!(iterator.value(), b"1", "an iterator stays where it was");
    assert_eq!(
        second.latest_sequence_number(),
        primary.latest_sequence_number()
    );

    primary.compact_range(None, None)?;
    primary.close()?;
    second.try_catch_up_with_primary()?;
    assert_eq!(contents(&second, "default")?.len(), 2);
    second.close()?;
    let error = second.try_catch_up_with_primary().expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::ShutdownInProgress);
    Ok(())
}

#[test]
fn refuses_what_rocksdb_refuses() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let primary = Db::open(&at, small())?;
    primary.put("a", "1")?;
    let error = primary.try_catch_up_with_primary().expect_err("a primary");
    assert_eq!(
        error.to_string(),
        "Not implemented: Supported only by secondary instance"
    );
    let path = dir.path().join("second");
    let second = Db::open_secondary(&at, &path, Options::new())?;
    let text = "Not implemented: Not supported operation in secondary mode.";
    for error in [
        second.put("a", "2").expect_err("a write"),
        second.delete("a").expect_err("a write"),
        second.write(&mut WriteBatch::new()).expect_err("a write"),
        second.flush().expect_err("a flush"),
        second.compact_range(None, None).expect_err("a compaction"),
        second.sync_wal().expect_err("a sync"),
        second
            .set_db_options(&[("max_background_jobs", "3")])
            .expect_err("a change"),
        second
            .create_family("x", FamilyOptions::default())
            .expect_err("a change"),
    ] {
        assert_eq!(error.to_string(), text);
    }
    let snapshot = second.snapshot();
    let family = second.default_family_handle();
    let it = second.iter_opt(&family, ReadOptions::default(), Some(&snapshot));
    assert_eq!(
        it.status().expect_err("a snapshot").kind(),
        ErrorKind::NotSupported
    );
    let mut tailing = ReadOptions::default();
    tailing.tailing = true;
    let it = second.iter_opt(&family, tailing, None);
    assert_eq!(
        it.status().expect_err("tailing").kind(),
        ErrorKind::NotSupported
    );

    let named = vec![FamilyDescriptor::new("absent", FamilyOptions::default())];
    let error = Db::open_families_secondary(&at, &path, Options::new(), named).expect_err("absent");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let none =
        Db::open_secondary(dir.path().join("none"), &path, small()).expect_err("no database");
    assert_eq!(none.kind(), ErrorKind::InvalidArgument);
    assert!(!dir.path().join("none").exists());
    Ok(())
}

/// Batches write one number under every key of two families: any mixture of two states shows.
#[test]
fn every_state_is_whole_while_the_primary_flushes_compacts_and_rolls() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let options = small().set("max_manifest_file_size", "3000")?;
    let primary = Db::open(&at, options)?;
    let other = primary.create_family("other", FamilyOptions::default())?;
    let write = |n: u32| -> Result<()> {
        let mut batch = WriteBatch::new();
        let value = format!("{n:08}{}", "x".repeat(500));
        for key in 0..10u8 {
            batch.put(&[key], value.as_bytes())?;
            batch.put_cf(&other, &[key], value.as_bytes())?;
        }
        primary.write(&mut batch)
    };
    write(0)?;
    let second = Db::open_secondary(&at, dir.path().join("second"), Options::new())?;
    let families = [
        second.default_family_handle(),
        second.family("other").expect("the family exists").into(),
    ];
    let number = |value: &[u8]| -> u32 {
        std::str::from_utf8(&value[..8])
            .expect("digits")
            .parse()
            .expect("a number")
    };
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(|| (1..1500).try_for_each(write));
        let mut last = 0;
        let mut turns = 0;
        while !writer.is_finished() || turns < 3 {
            match second.try_catch_up_with_primary() {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::TryAgain => {}
                Err(e) => return Err(e),
            }
            let keys: Vec<_> = (0..10u8)
                .flat_map(|k| families.iter().map(move |f| (f, [k])))
                .collect();
            let mut seen: Vec<u32> = Vec::new();
            for answer in second.multi_get_families(&keys, &ReadOptions::default(), None) {
                seen.push(number(&answer?.expect("was put")));
            }
            for family in &families {
                let mut it = second.iter_cf(family);
                it.seek_to_first();
                while it.valid() {
                    seen.push(number(it.value()));
                    it.next();
                }
                it.status()?;
            }
            assert!(seen.iter().all(|n| *n == seen[0]), "{seen:?}");
            assert!(seen[0] >= last, "{} after {last}", seen[0]);
            last = seen[0];
            turns += 1;
        }
        writer.join().expect("no panic")?;
        second.try_catch_up_with_primary()?;
        assert_eq!(number(&second.get([0u8])?.expect("was put")), 1499);
        Ok(())
    })
}

/// Reopening, dropping families, range deletions, merges; each time against the primary itself.
#[test]
fn follows_a_primary_that_is_opened_again() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let path = dir.path().join("second");
    let options = || {
        small()
            .set("merge_operator", "stringappend")
            .expect("exists")
    };
    let mut random = Random(7);
    let mut second: Option<Db> = None;
    for turn in 0..8u64 {
        let primary = Db::open(&at, options())?;
        if primary.family("kept").is_none() {
            primary.create_family("kept", FamilyOptions::default())?;
            primary.create_family("dropped", FamilyOptions::default())?;
        }
        let kept = primary.family("kept").expect("the family exists");
        for n in 0..1500u64 {
            let key = format!("key{:04}", random.below(400));
            match random.below(20) {
                0 => primary.delete(&key)?,
                1 => primary.merge(&key, "+")?,
                2 => primary.delete_range_cf(&kept, &key, format!("{key}5"))?,
                3..=5 => primary.put_cf(&kept, &key, format!("k{turn}.{n}"))?,
                6 if n % 5 == 0 => primary.flush()?,
                7 if turn % 2 == 1 => {
                    primary.put_opt(&kept, &key, "unlogged", &WriteOptions::unlogged())?
                }
                _ => primary.put(&key, format!("{turn}.{n}{}", "y".repeat(200)))?,
            }
            if n % 300 == 299 {
                // Writes that went past the log come with their flush.
                primary.flush()?;
                let second = match &second {
                    Some(s) => s,
                    None => second.insert(Db::open_secondary(&at, &path, options())?),
                };
                second.try_catch_up_with_primary()?;
                for family in ["default", "kept"] {
                    assert_eq!(contents(second, family)?, contents(&primary, family)?);
                }
            }
        }
        if turn == 3 {
            let gone = primary.family("dropped").expect("the family exists");
            primary.put_cf(&gone, "last", "words")?;
            let second = second.as_ref().expect("was opened");
            let held = second.family("dropped").expect("the family is open");
            second.try_catch_up_with_primary()?;
            primary.drop_family(&gone)?;
            second.try_catch_up_with_primary()?;
            assert!(second.family("dropped").is_none());
            assert_eq!(
                second.get_cf(&held, "last")?.as_deref(),
                Some(&b"words"[..])
            );
        }
        primary.compact_range(None, None)?;
        if turn % 3 == 2 {
            second = None;
        }
    }
    Ok(())
}

#[test]
fn follows_copies_of_a_directory_taken_while_it_is_written() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let primary = Db::open(&at, small())?;
    for n in 0..3000u32 {
        primary.put(
            format!("key{:04}", n % 700),
            format!("{n:06}{}", "z".repeat(300)),
        )?;
    }
    // What a kill leaves: the same files, and the last log cut anywhere.
    let copy = dir.path().join("copy");
    std::fs::create_dir(&copy).expect("made");
    primary.disable_file_deletions();
    let mut newest_log = None;
    for file in primary.live_files()? {
        let to = copy.join(&file.name);
        let mut bytes = std::fs::read(&file.path).expect("it is there");
        bytes.truncate(usize::try_from(file.bytes).expect("small"));
        if file.name.ends_with(".log") {
            newest_log = Some(to.clone());
        }
        std::fs::write(to, bytes).expect("written");
    }
    primary.enable_file_deletions(false);
    std::fs::copy(at.join("CURRENT"), copy.join("CURRENT")).expect("copied");
    let log = newest_log.expect("there is a log");
    let whole = std::fs::read(&log).expect("it is there");
    let all = contents(&primary, "default")?;
    let second = Db::open_secondary(&copy, dir.path().join("second"), Options::new())?;
    assert_eq!(contents(&second, "default")?, all);
    for cut in [whole.len() * 9 / 10, whole.len() / 2, 40_000, 3, 0] {
        std::fs::write(&log, &whole[..cut.min(whole.len())]).expect("written");
        let second = Db::open_secondary(&copy, dir.path().join("second"), Options::new())?;
        let before = contents(&second, "default")?;
        assert!(before.values().max() <= all.values().max());
        // The rest comes.
        std::fs::write(&log, &whole).expect("written");
        second.try_catch_up_with_primary()?;
        assert_eq!(contents(&second, "default")?, all);
    }
    Ok(())
}

#[test]
fn damage_is_an_error_and_the_state_before_stays() -> Result<()> {
    let env = Env::in_memory();
    let options = || small().env(env.clone());
    let primary = Db::open("/db", options())?;
    primary.put("a", "1")?;
    let second = Db::open_secondary("/db", "/second", options())?;
    primary.put("a", "2")?;
    primary.put("b", "3")?;
    let log = Path::new("/db").join(
        env.fs
            .read_dir(Path::new("/db"))?
            .into_iter()
            .map(|e| e.name)
            .rfind(|n| n.ends_with(".log"))
            .expect("there is a log"),
    );
    let whole = env.fs.read_all(&log, u64::MAX)?;
    let rewrite = |bytes: &[u8]| -> Result<()> {
        // In place: the file that is open is the one that changes.
        env.fs.truncate(&log, 0)?;
        let mut file = env.fs.open_append(&log, Default::default())?;
        file.append(bytes)?;
        file.close()
    };
    let mut bad = whole.clone();
    let at = bad.len() - 2;
    bad[at] ^= 0x55;
    rewrite(&bad)?;
    let error = second.try_catch_up_with_primary().expect_err("damaged");
    assert!(error.is_corruption() && error.file().is_some(), "{error}");
    assert_eq!(second.get("a")?.as_deref(), Some(&b"1"[..]));
    assert_eq!(second.get("b")?, None);
    rewrite(&whole)?;
    second.try_catch_up_with_primary()?;
    assert_eq!(second.get("a")?.as_deref(), Some(&b"2"[..]));
    assert_eq!(second.get("b")?.as_deref(), Some(&b"3"[..]));
    Ok(())
}
