//! Directories that users really have: what cannot be read, what is damaged, what is not there. The
//! command says what is the matter, and changes nothing where it is not asked to; what a repair
//! drops it says.

mod common;

use common::damage::{
    ENTRIES, Somebody, blocks, checksums, count, files, flip, key, make, make_with, mode, options,
};
use common::{Ran, esker, esker_on};
use esker_files::table::BlockKind;
use std::path::{Path, PathBuf};

/// Three tables and the entry of the log.
const ALL: usize = 3 * ENTRIES as usize + 1;

/// A directory, and the path of the database in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    (dir, db)
}

fn repair(db: &Path, more: &[&str]) -> Ran {
    let flag = format!("--db={}", db.display());
    let mut args = vec!["repair", &flag];
    args.extend_from_slice(more);
    esker(&args)
}

/// The repair keeps the damaged file as it is, and gives a database without a fault.
#[track_caller]
fn is_mended(db: &Path, table: &Path, damaged: &[u8]) {
    let name = table.file_name().expect("a name");
    let kept = std::fs::read(db.join("lost").join(name)).expect("the damaged table is kept");
    assert!(kept == damaged, "the damaged table is kept as it was");
    esker_on(&["check"], db).expect(0);
    let ran = repair(db, &[]).expect(0);
    assert!(ran.out.contains("nothing to repair"), "{}", ran.out);
}

#[test]
fn a_file_that_may_not_be_read_stops_the_repair_before_anything_changes() {
    let Some(somebody) = Somebody::new() else {
        return;
    };
    for part in [".sst", "MANIFEST", "CURRENT", ".log", "OPTIONS", "IDENTITY"] {
        let (_dir, db) = place();
        make(&db);
        // Something else is damaged: a repair has a reason to go on.
        flip(&files(&db, ".sst")[2], 100);
        let before = checksums(&db);
        somebody.give(&db);
        let victims = files(&db, part);
        // Of several OPTIONS files the newest counts.
        let victim = match part {
            ".sst" => victims.first(),
            _ => victims.last(),
        };
        let victim = victim.expect("there is one");
        mode(victim, 0);
        let flag = format!("--db={}", db.display());
        for more in [&["--dry-run"][..], &[]] {
            let ran = somebody
                .esker(&[&["repair", &*flag][..], more].concat())
                .expect(1);
            assert!(ran.err.contains("Permission denied"), "{part}: {}", ran.err);
            assert!(
                ran.err.contains("nothing was changed"),
                "{part}: {}",
                ran.err
            );
            assert!(
                ran.err.contains("--give-up-unreadable"),
                "{part}: {}",
                ran.err
            );
        }
        mode(victim, 0o644);
        assert_eq!(checksums(&db), before, "{part}");
    }
}

#[test]
fn what_cannot_be_read_is_given_up_only_when_that_is_asked_for() {
    let Some(somebody) = Somebody::new() else {
        return;
    };
    let (_dir, db) = place();
    make(&db);
    somebody.give(&db);
    let victim = &files(&db, ".sst")[0];
    let bytes = std::fs::read(victim).expect("a table");
    mode(victim, 0);
    let flag = format!("--db={}", db.display());
    let ran = somebody
        .esker(&["repair", &flag, "--give-up-unreadable"])
        .expect(3);
    assert!(ran.out.contains("Permission denied"), "{}", ran.out);
    let kept = db.join("lost").join(victim.file_name().expect("a name"));
    mode(&kept, 0o644);
    assert!(std::fs::read(&kept).expect("it is kept") == bytes);
    assert_eq!(count(&db), ALL - ENTRIES as usize);
    esker_on(&["check"], &db).expect(0);
}

#[test]
fn a_damaged_manifest_makes_no_table_left_over() {
    let (_dir, db) = place();
    make(&db);
    let manifest = &files(&db, "MANIFEST")[0];
    let len = std::fs::metadata(manifest).expect("a MANIFEST").len() as usize;
    flip(manifest, len / 2);
    let before = checksums(&db);
    let ran = esker_on(&["check"], &db).expect(1);
    assert!(!ran.out.contains("left over"), "{}", ran.out);
    assert!(ran.out.contains("esker repair"), "{}", ran.out);
    for words in [
        &["shape"][..],
        &["manifest"],
        &["manifest", "--tree"],
        &["scan", "--db"],
    ] {
        let ran = esker_on(words, &db).expect(1);
        assert!(ran.err.contains("esker repair"), "{words:?}: {}", ran.err);
        assert!(words[0] != "shape" || ran.out.is_empty(), "{}", ran.out);
    }
    assert_eq!(checksums(&db), before);
    // Everything is there, so no entry is lost.
    repair(&db, &[]).expect(0);
    assert_eq!(count(&db), ALL);
    esker_on(&["check"], &db).expect(0);
}

/// The edits that could not be read removed tables that the earlier ones list.
#[test]
fn a_manifest_that_is_not_read_to_its_end_makes_no_table_missing() {
    let (_dir, db) = place();
    make(&db);
    let before = std::fs::read(&files(&db, "MANIFEST")[0])
        .expect("a MANIFEST")
        .len();
    let flag = format!("--db={}", db.display());
    esker(&["compact", &flag]).expect(0);
    esker(&["compact", &flag]).expect(0);
    let manifest = files(&db, "MANIFEST").pop().expect("a MANIFEST");
    let len = std::fs::metadata(&manifest).expect("a MANIFEST").len() as usize;
    assert!(len > 200, "{before} {len}");
    for at in [len / 2, len * 3 / 4, len - 20] {
        let bytes = std::fs::read(&manifest).expect("a MANIFEST");
        flip(&manifest, at);
        let ran = esker_on(&["check", "--json"], &db).expect(1);
        let errors = ran.json();
        let errors: Vec<_> = errors.iter().filter(|f| f["severity"] == "error").collect();
        assert_eq!(errors.len(), 1, "byte {at}: {errors:?}");
        let file = errors[0]["file"].as_str().expect("a file");
        assert!(file.contains("MANIFEST"), "byte {at}: {file}");
        std::fs::write(&manifest, bytes).expect("written");
    }
    esker_on(&["check"], &db).expect(0);
}

#[test]
fn a_manifest_that_is_read_to_its_end_tells_what_is_left_over() {
    let (_dir, db) = place();
    make(&db);
    std::fs::copy(&files(&db, ".sst")[0], db.join("000900.sst")).expect("a copy");
    let ran = esker_on(&["check"], &db).expect(0);
    assert!(ran.out.contains("left over"), "{}", ran.out);
}

#[test]
fn without_current_every_command_says_what_to_do() {
    let (_dir, db) = place();
    make(&db);
    std::fs::remove_file(db.join("CURRENT")).expect("removed");
    let before = checksums(&db);
    for words in [&["check"][..], &["shape"], &["manifest"], &["scan", "--db"]] {
        let ran = esker_on(words, &db).expect(1);
        let text = format!("{}{}", ran.out, ran.err);
        assert!(text.contains("CURRENT is missing"), "{words:?}: {text}");
        assert!(text.contains("esker repair"), "{words:?}: {text}");
    }
    assert_eq!(checksums(&db), before);
    repair(&db, &[]).expect(0);
    assert_eq!(count(&db), ALL);
}

#[test]
fn one_damaged_block_costs_its_entries_and_no_others() {
    let (_dir, db) = place();
    make(&db);
    let table = &files(&db, ".sst")[1];
    let data = blocks(table, |kind| *kind == BlockKind::Data);
    flip(table, data[data.len() / 2].0 + 20);
    let bytes = std::fs::read(table).expect("a table");
    let before = checksums(&db);
    let dry = repair(&db, &["--dry-run"]).expect(3);
    assert_eq!(checksums(&db), before);
    let ran = repair(&db, &["--json"]).expect(3);
    let told = ran.json();
    let told = told
        .iter()
        .find(|o| o["type"] == "salvaged")
        .expect("a table is told");
    let lost = told["lost"].as_u64().expect("a number") as usize;
    assert!((1..100).contains(&lost), "{told}");
    assert_eq!(told["family"], "default");
    let text = format!("at most {lost} of {ENTRIES} entries of family default");
    assert!(dry.out.contains(&text), "{}", dry.out);
    assert!(dry.out.contains("older versions"), "{}", dry.out);
    assert_eq!(count(&db), ALL - lost);
    // What is gone lies between the keys that are told.
    let range = &told["ranges"][0];
    let (first, last) = (range["first_key"].as_str(), range["last_key"].as_str());
    let (first, last) = (first.expect("a key"), last.expect("a key"));
    let flag = format!("--db={}", db.display());
    for n in ENTRIES..2 * ENTRIES {
        let key = key(n);
        if (&*key <= first || &*key > last) && n % 50 == 0 {
            esker(&["get", &flag, &key]).expect(0);
        }
    }
    is_mended(&db, table, &bytes);
}

#[test]
fn damage_beside_the_data_costs_nothing() {
    type Wanted = fn(&BlockKind) -> bool;
    let wanted: [(&str, Wanted); 4] = [
        (
            "filter",
            |kind| matches!(kind, BlockKind::Meta(name) if name.contains("filter")),
        ),
        (
            "properties",
            |kind| matches!(kind, BlockKind::Meta(name) if name.contains("properties")),
        ),
        ("index", |kind| *kind == BlockKind::Index),
        ("metaindex", |kind| *kind == BlockKind::Metaindex),
    ];
    for (what, wanted) in wanted {
        let (_dir, db) = place();
        make(&db);
        let table = &files(&db, ".sst")[1];
        let (at, size) = blocks(table, wanted)[0];
        flip(table, at + size / 2);
        let bytes = std::fs::read(table).expect("a table");
        let ran = repair(&db, &["--json"]);
        assert_eq!(count(&db), ALL, "{what}: {}", ran.out);
        // Without the metaindex nothing says whether there were range deletions.
        let code = if what == "metaindex" { 3 } else { 0 };
        ran.expect(code);
        is_mended(&db, table, &bytes);
    }
}

#[test]
fn a_table_that_ends_early_keeps_its_beginning() {
    for (compression, version) in [("kNoCompression", 5), ("kLZ4Compression", 5), ("kZSTD", 6)] {
        let (_dir, db) = place();
        let options = options()
            .set("compression", compression)
            .and_then(|o| {
                o.set(
                    "block_based_table_factory",
                    &format!("{{format_version={version}}}"),
                )
            })
            .expect("options");
        make_with(&db, options);
        let table = &files(&db, ".sst")[1];
        let data = blocks(table, |kind| *kind == BlockKind::Data);
        let whole = std::fs::read(table).expect("a table");
        let cut = data[data.len() / 2].0 + 7;
        std::fs::write(table, &whole[..cut]).expect("written");
        let ran = repair(&db, &["--json"]).expect(3);
        let told = ran.json();
        let told = told
            .iter()
            .find(|o| o["type"] == "salvaged")
            .expect("a table is told");
        let kept = told["kept"].as_u64().expect("a number") as usize;
        assert!(kept > ENTRIES as usize / 4, "{compression}: {told}");
        assert_eq!(count(&db), ALL - ENTRIES as usize + kept);
        is_mended(&db, table, &whole[..cut]);
    }
}

#[test]
fn a_damaged_block_and_a_damaged_index_leave_the_other_blocks() {
    let (_dir, db) = place();
    make(&db);
    let table = &files(&db, ".sst")[1];
    let index = blocks(table, |kind| *kind == BlockKind::Index)[0];
    let data = blocks(table, |kind| *kind == BlockKind::Data);
    flip(table, index.0 + index.1 / 2);
    flip(table, data[data.len() / 2].0 + 20);
    let bytes = std::fs::read(table).expect("a table");
    let ran = repair(&db, &["--json"]).expect(3);
    let told = ran.json();
    let told = told
        .iter()
        .find(|o| o["type"] == "salvaged")
        .expect("a table is told");
    let lost = told["lost"].as_u64().expect("a number") as usize;
    assert!((1..100).contains(&lost), "{told}");
    assert_eq!(count(&db), ALL - lost);
    is_mended(&db, table, &bytes);
}

#[test]
fn sound_blocks_are_kept_without_a_manifest_too() {
    let (_dir, db) = place();
    make(&db);
    for path in files(&db, "MANIFEST")
        .into_iter()
        .chain(files(&db, "CURRENT"))
    {
        std::fs::remove_file(path).expect("removed");
    }
    let table = &files(&db, ".sst")[1];
    let data = blocks(table, |kind| *kind == BlockKind::Data);
    flip(table, data[1].0 + 20);
    let bytes = std::fs::read(table).expect("a table");
    let ran = repair(&db, &["--json"]).expect(3);
    let told = ran.json();
    let told = told
        .iter()
        .find(|o| o["type"] == "salvaged")
        .expect("a table is told");
    let lost = told["lost"].as_u64().expect("a number") as usize;
    assert_eq!(count(&db), ALL - lost);
    is_mended(&db, table, &bytes);
}

#[test]
fn several_directories_and_files_are_looked_at_in_one_run() {
    let (_dir, db) = place();
    let (_other, second) = place();
    make(&db);
    make(&second);
    flip(&files(&second, ".sst")[0], 100);
    let (a, b) = (db.display().to_string(), second.display().to_string());
    let ran = esker(&["check", &a, &b]).expect(1);
    assert!(ran.out.contains(&format!("{a}:\n")), "{}", ran.out);
    assert!(ran.out.contains("no problem found"), "{}", ran.out);
    assert!(ran.out.contains("1 error"), "{}", ran.out);
    let tables = files(&db, ".sst");
    let tables: Vec<String> = tables.iter().map(|p| p.display().to_string()).collect();
    let ran = esker(&["sst", &tables[0], &tables[1]]).expect(0);
    assert!(ran.out.contains(&tables[0]) && ran.out.contains(&tables[1]));
    let ran = esker(&["wal", &a, &b]).expect(0);
    assert_eq!(ran.out.matches(".log (").count(), 2, "{}", ran.out);
}

#[test]
fn a_directory_without_a_database_is_said_to_be_none() {
    let dir = tempfile::tempdir().expect("a directory");
    for command in ["check", "sst", "wal", "shape", "manifest"] {
        let ran = esker_on(&[command], dir.path()).expect(1);
        assert!(ran.out.is_empty(), "{command}: {}", ran.out);
        assert!(ran.err.starts_with("error: "), "{command}: {}", ran.err);
    }
}
