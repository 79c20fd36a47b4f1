//! The commands that go through the engine: alone, and in turn with RocksDB's own tools.

mod common;

use common::{Ran, contents, db_bench, esker, esker_on, ldb_put, tool};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place {
            dir: tempfile::tempdir().expect("a directory"),
        }
    }

    fn db(&self) -> PathBuf {
        self.dir.path().join("db")
    }

    /// `esker COMMAND --db=DB ARGS...`
    fn run(&self, command: &str, args: &[&str]) -> Ran {
        on(&self.db(), command, args)
    }
}

fn on(db: &Path, command: &str, args: &[&str]) -> Ran {
    let flag = format!("--db={}", db.display());
    let mut all = vec![command, &flag];
    all.extend_from_slice(args);
    esker(&all)
}

fn load(db: &Path, args: &[&str], input: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_esker"))
        .arg("load")
        .arg(format!("--db={}", db.display()))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    // A command that fails early closes its end; what it says is looked at then.
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes());
    Ran::of(child.wait_with_output().expect("it ends"))
}

#[test]
fn put_get_delete_scan() {
    let p = Place::new();
    p.run("put", &["a", "1"]).expect(1);
    assert!(
        !p.db().exists(),
        "a put without --create-if-missing made something"
    );
    p.run("put", &["--create-if-missing", "a", "1"]).expect(0);
    p.run("batchput", &["b", "2", "c", "3", "d", "4"]).expect(0);
    p.run("batchput", &["b", "2", "c"]).expect(2);
    assert_eq!(p.run("get", &["b"]).expect(0).out, "2\n");
    assert_eq!(p.run("get", &["--hex", "0x62"]).expect(0).out, "0x32\n");
    p.run("get", &["--hex", "b"]).expect(2);
    assert_eq!(
        p.run("get", &["b", "--json"]).expect(0).json()[0]["value"],
        "2"
    );
    p.run("delete", &["b"]).expect(0);
    let gone = p.run("get", &["b"]).expect(1);
    assert_eq!(gone.err, "error: NotFound: key \"b\"\n");
    let all = "a ==> 1\nc ==> 3\nd ==> 4\n";
    assert_eq!(p.run("scan", &[]).expect(0).out, all);
    assert_eq!(
        p.run("scan", &["--from=b", "--to=d"]).expect(0).out,
        "c ==> 3\n"
    );
    assert_eq!(
        p.run("scan", &["--reverse", "--max-keys=2", "--no-value"])
            .expect(0)
            .out,
        "d\nc\n"
    );
    assert_eq!(
        p.run("scan", &["--json", "--hex"]).expect(0).json()[2]["key"],
        "0x64"
    );
    let before = contents(&p.db());
    p.run("scan", &[]).expect(0);
    p.run("get", &["a"]).expect(0);
    p.run("dump", &[]).expect(0);
    assert_eq!(contents(&p.db()), before, "reading changed something");
    assert_eq!(
        p.run("dump", &["--count-only"]).expect(0).out,
        "Keys in range: 3\n"
    );
    p.run("compact", &[]).expect(0);
    assert_eq!(p.run("scan", &[]).expect(0).out, all);
    esker_on(&["check"], &p.db()).expect(0);
}

#[test]
fn keys_and_values_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let p = Place::new();
    let db = format!("--db={}", p.db().display());
    let raw = std::ffi::OsStr::from_bytes(b"a\xff");
    let with = |words: &[&str]| {
        let words = words.iter().map(std::ffi::OsStr::new);
        esker(&words.chain([raw]).collect::<Vec<_>>())
    };
    with(&["put", &db, "--create-if-missing", "key"]).expect(0);
    assert_eq!(
        p.run("get", &["key", "--value-hex"]).expect(0).out,
        "0x61FF\n"
    );
    with(&["batchput", &db, "b", "1", "c"]).expect(0);
    assert_eq!(
        with(&["scan", &db, "--no-value", "--from"]).expect(0).out,
        "b\nc\nkey\n"
    );
    assert_eq!(
        with(&["get", &db]).expect(1).err,
        "error: NotFound: key \"a\\xFF\"\n"
    );
}

#[test]
fn options_and_families() {
    let p = Place::new();
    p.run("put", &["--create-if-missing", "a", "1"]).expect(0);
    p.run("put", &["--column-family=other", "a", "2"]).expect(1);
    p.run(
        "put",
        &["--column-family=other", "--create-if-missing", "a", "2"],
    )
    .expect(0);
    assert_eq!(
        p.run("get", &["--column_family=other", "a"]).expect(0).out,
        "2\n"
    );
    assert_eq!(p.run("get", &["a"]).expect(0).out, "1\n");
    p.run("put", &["--set", "no_such_option=1", "a", "1"])
        .expect(2);
    p.run("put", &["--set", "write_buffer_size", "a", "1"])
        .expect(2);
    p.run("put", &["--set", "write_buffer_size=many", "a", "1"])
        .expect(2);
    p.run("put", &["--set", "write_buffer_size=1048576", "a", "3"])
        .expect(0);
    let names: Vec<_> = esker_on(&["shape", "--json"], &p.db()).expect(0).json();
    assert_eq!(names.len(), 2);
    assert_eq!(names[1]["name"], "other");
    // The options that it was opened with are in its OPTIONS file, and are taken from there.
    let text = contents(&p.db())
        .into_iter()
        .rfind(|(name, _)| name.starts_with("OPTIONS-"))
        .map(|(_, bytes)| String::from_utf8(bytes).expect("text"))
        .expect("an OPTIONS file");
    assert!(text.contains("write_buffer_size=1048576"), "{text}");
    esker_on(&["check"], &p.db()).expect(0);
}

#[test]
fn families_are_listed_made_and_dropped() {
    let p = Place::new();
    p.run("put", &["--create-if-missing", "a", "1"]).expect(0);
    let db = format!("--db={}", p.db().display());
    let families = |args: &[&str]| esker(&[&["families", args[0], &db], &args[1..]].concat());
    families(&["create", "users"]).expect(0);
    let twice = families(&["create", "users"]).expect(1);
    assert!(twice.err.contains("already"), "{}", twice.err);
    assert_eq!(families(&["list"]).expect(0).out, "default\nusers\n");
    families(&["drop", "users"]).expect(2);
    families(&["drop", "others", "--yes"]).expect(1);
    families(&["drop", "default", "--yes"]).expect(1);
    p.run("put", &["--column-family=users", "a", "2"]).expect(0);
    families(&["drop", "users", "--yes"]).expect(0);
    assert_eq!(families(&["list", "--json"]).expect(0).json().len(), 1);
    assert_eq!(p.run("get", &["a"]).expect(0).out, "1\n");
    esker_on(&["check"], &p.db()).expect(0);
}

#[test]
fn a_dump_loads_into_the_same_database() {
    let p = Place::new();
    let copy = p.dir.path().join("copy");
    p.run(
        "put",
        &["--create-if-missing", "--hex", "0x00FF0A", "0x203D3D3E20"],
    )
    .expect(0);
    p.run("put", &["plain", "text"]).expect(0);
    let refused = p.run("dump", &[]).expect(1);
    assert!(refused.err.contains("--hex"), "{}", refused.err);
    let dump = p.run("dump", &["--hex"]).expect(0).out;
    assert_eq!(
        dump,
        "0x00FF0A ==> 0x203D3D3E20\n0x706C61696E ==> 0x74657874\nKeys in range: 2\n"
    );
    load(
        &copy,
        &["--create-if-missing", "--hex", "--disable-wal", "--compact"],
        &dump,
    )
    .expect(0);
    assert_eq!(on(&copy, "dump", &["--hex"]).expect(0).out, dump);
    let bad = load(&copy, &["--hex"], "0x61 ==> 0x61\n0x62 -> 0x62\n").expect(1);
    assert!(bad.err.contains("line 2"), "{}", bad.err);
    esker_on(&["check"], &copy).expect(0);
}

#[test]
fn rocksdb_and_esker_read_each_other() {
    let p = Place::new();
    let db = format!("--db={}", p.db().display());
    if ldb_put(&p.db(), &[("apple", "red"), ("pear", "green")]).is_none() {
        return;
    }
    assert_eq!(
        p.run("scan", &[]).expect(0).out,
        "apple ==> red\npear ==> green\n"
    );
    p.run("put", &["plum", "blue"]).expect(0);
    p.run("delete", &["apple"]).expect(0);
    let dump = tool("ldb", &[db.clone(), "dump".into()]).expect("ldb is there");
    assert_eq!(dump, "pear ==> green\nplum ==> blue\nKeys in range: 2\n");
    assert_eq!(p.run("dump", &[]).expect(0).out, dump);
    esker_on(&["check"], &p.db()).expect(0);
}

#[test]
fn a_larger_database_survives_every_command() {
    let p = Place::new();
    if db_bench(&p.db(), &["--compression_type=snappy"]).is_none() {
        return;
    }
    let ldb = |db: &Path| {
        tool(
            "ldb",
            &[
                format!("--db={}", db.display()),
                "dump".into(),
                "--hex".into(),
            ],
        )
        .expect("ldb")
    };
    let original = ldb(&p.db());
    assert_eq!(p.run("dump", &["--hex"]).expect(0).out, original);
    p.run("compact", &["--set", "compression=kLZ4Compression"])
        .expect(0);
    esker_on(&["check"], &p.db()).expect(0);
    assert_eq!(p.run("dump", &["--hex"]).expect(0).out, original);
    assert_eq!(ldb(&p.db()), original);
    let copy = p.dir.path().join("copy");
    load(&copy, &["--create-if-missing", "--hex"], &original).expect(0);
    assert_eq!(ldb(&copy), original);
    esker_on(&["check"], &copy).expect(0);
}

#[test]
fn bench_has_its_own_flags() {
    let help = esker(&["bench", "--help"]).expect(0);
    assert!(help.out.contains("--benchmarks"), "{}", help.out);
}

#[test]
fn backups_go_to_and_from_rocksdb() {
    let p = Place::new();
    let dir = p.dir.path().join("backups");
    let dir_text = dir.display().to_string();
    let backup = |args: &[&str]| {
        let all = [&["backup", args[0], &dir_text], &args[1..]].concat();
        esker(&all)
    };
    backup(&["list"]).expect(1);
    p.run("put", &["--create-if-missing", "a", "first"])
        .expect(0);
    let db_flag = format!("--db={}", p.db().display());
    backup(&["create", &db_flag, "--metadata=the first"]).expect(0);
    p.run("put", &["a", "second"]).expect(0);
    let made = backup(&["create", &db_flag, "--flush", "--json"]).expect(0);
    assert_eq!(made.json()[0]["backup_id"], 2);
    p.run("put", &["a", "third"]).expect(0);

    let listed = backup(&["list", "--json", "--files"]).expect(0).json();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["app_metadata"], "the first");
    assert!(listed[1]["files"].as_array().is_some_and(|f| f.len() > 3));
    let text = backup(&["list"]).expect(0).out;
    assert!(text.contains("UTC") && text.contains("the first"), "{text}");
    backup(&["verify"]).expect(0);

    backup(&["restore", &db_flag, "--id=1"]).expect(2);
    assert_eq!(p.run("get", &["a"]).expect(0).out, "third\n");
    backup(&["restore", &db_flag, "--id=1", "--yes"]).expect(0);
    assert_eq!(p.run("get", &["a"]).expect(0).out, "first\n");
    backup(&["restore", &db_flag, "--yes", "--keep=same-checksum"]).expect(0);
    assert_eq!(p.run("get", &["a"]).expect(0).out, "second\n");
    backup(&["restore", &db_flag, "--id=9", "--yes"]).expect(1);
    assert_eq!(p.run("get", &["a"]).expect(0).out, "second\n");

    let to = format!("--db={}", p.dir.path().join("theirs").display());
    let flag = format!("--backup_dir={dir_text}");
    if tool("ldb", &[to.clone(), "restore".into(), flag.clone()]).is_some() {
        let value = tool("ldb", &[to.clone(), "get".into(), "a".into()]);
        assert_eq!(value.as_deref(), Some("second\n"));
        tool(
            "ldb",
            &[to.clone(), "put".into(), "a".into(), "fourth".into()],
        );
        tool("ldb", &[to, "backup".into(), flag]);
        backup(&["verify", "--id=3"]).expect(0);
        backup(&["restore", &db_flag, "--yes", "--keep=same-session"]).expect(0);
        assert_eq!(p.run("get", &["a"]).expect(0).out, "fourth\n");
    }

    std::fs::write(dir.join("meta/1"), "not a backup").expect("written");
    let ran = backup(&["verify", "--json"]).expect(1);
    assert_eq!(ran.json()[0]["whole"], false);
    assert_eq!(ran.json()[1]["whole"], true);
    let kept = backup(&["purge", "--keep=1", "--json"]).expect(0).json();
    assert!(kept.iter().any(|o| o["type"] == "unreadable"), "{kept:?}");
    backup(&["delete", "1"]).expect(0);
    backup(&["delete", "1"]).expect(1);
    assert_eq!(backup(&["list"]).expect(0).out.lines().count(), 1);
}

#[test]
fn a_database_with_paths_is_served_by_every_command() {
    let home = tempfile::tempdir().expect("a directory");
    let at = |name: &str| home.path().join(name).display().to_string();
    let (db, copy) = (format!("--db={}", at("db")), at("copy"));
    let paths = format!(
        "db_paths={{{{path={};target_size=0;}}:{{path={};target_size=0;}}}}",
        at("fast"),
        at("large")
    );
    esker(&[
        "put",
        &db,
        "--create-if-missing",
        "--set",
        &paths,
        "key",
        "value",
    ])
    .expect(0);
    // From here on the OPTIONS file says where tables are.
    esker(&["compact", &db]).expect(0);
    let tables = || {
        let entries = std::fs::read_dir(home.path().join("fast")).expect("the path was made");
        entries.count()
    };
    assert_eq!(tables(), 1);
    esker(&["check", &at("db")]).expect(0);
    esker(&["checkpoint", &db, &copy]).expect(0);
    for place in [&at("db"), &copy] {
        let ran = esker(&["get", &format!("--db={place}"), "key"]).expect(0);
        assert_eq!(ran.out, "value\n");
    }
    std::fs::remove_file(home.path().join("db/CURRENT")).expect("it is there");
    esker(&["repair", &db]).expect(0);
    assert_eq!(esker(&["get", &db, "key"]).expect(0).out, "value\n");
    esker(&["destroy", &db, "--yes"]).expect(0);
    assert_eq!(
        tables(),
        1,
        "paths are left alone unless they are asked for"
    );
    let db = format!("--db={copy}");
    esker(&["destroy", &db, "--with-paths", "--yes"]).expect(0);
    assert_eq!(tables(), 1, "the copy knows nothing of the paths");
}
