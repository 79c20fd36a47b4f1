//! A test for each friction of operators: times to live, binary keys, terminals, progress,
//! suggestions, damaged tables, and the commands that were missing.

mod common;

use common::{Ran, contents, esker, ldb_put, tool};
use esker::{Db, Options, WriteOptions};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn db_at(at: &Path, keys: &[(&[u8], &[u8])]) -> String {
    let db = Db::open(at, Options::new().create_if_missing(true)).expect("opens");
    for (key, value) in keys {
        db.put(key, value).expect("written");
    }
    db.close().expect("closes");
    format!("--db={}", at.display())
}

/// Runs `esker` with `input` on stdin.
fn fed(args: &[&str], input: &[u8], dir: &Path) -> Ran {
    let path = dir.join("input");
    fs::write(&path, input).expect("written");
    let ran = Command::new(env!("CARGO_BIN_EXE_esker"))
        .args(args)
        .stdin(Stdio::from(fs::File::open(path).expect("input")))
        .output();
    Ran::of(ran.expect("the command runs"))
}

/// Runs `esker` on a terminal; `None`, and a word, where `script` is not installed.
fn on_terminal(args: &str) -> Option<String> {
    let command = format!("{} {args}", env!("CARGO_BIN_EXE_esker"));
    let ran = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::null())
        .output();
    match ran {
        Ok(ran) => Some(String::from_utf8_lossy(&ran.stdout).into_owned()),
        Err(e) => {
            println!("skipped: script: {e}");
            None
        }
    }
}

#[test]
fn times_to_live_are_known_by_the_options_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    let made = Command::new("ldb")
        .arg(format!("--db={}", db.display()))
        .args(["--ttl", "--create_if_missing", "put", "a", "1"])
        .output();
    if made.is_err() {
        println!("skipped: ldb is not installed");
        return;
    }
    let db = format!("--db={}", db.display());
    let got = esker(&["get", &db, "a"]).expect(0);
    assert_eq!((got.out.as_str(), got.err.as_str()), ("1\n", ""));
    esker(&["put", &db, "b", "2"]).expect(0);
    assert_eq!(esker(&["scan", &db]).expect(0).out, "a ==> 1\nb ==> 2\n");
    let raw = esker(&["scan", &db, "--default-options", "--hex"]).expect(0);
    // Each value ends in four bytes.
    assert!(
        raw.out
            .lines()
            .all(|l| l.ends_with("6A") || l.len() > "0x61 ==> 0x31".len())
    );
    // RocksDB reads what was written.
    let args = [db, "--ttl".into(), "get".into(), "b".into()];
    let theirs = Command::new("ldb").args(args).output().expect("ldb runs");
    assert_eq!(theirs.stdout, b"2\n");
}

#[test]
fn times_to_live_can_be_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let db = Db::open_with_ttl(&at, Options::new().create_if_missing(true), 0).expect("opens");
    db.put("a", "1").expect("written");
    db.close().expect("closes");
    let db = format!("--db={}", at.display());
    assert_eq!(esker(&["get", &db, "--ttl", "a"]).expect(0).out, "1\n");
    esker(&["put", &db, "--ttl=3600", "b", "2"]).expect(0);
    assert_eq!(
        esker(&["scan", &db, "--ttl"]).expect(0).out,
        "a ==> 1\nb ==> 2\n"
    );
}

#[test]
fn json_keeps_utf8_and_reads_back_all_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let keys: [(&[u8], &[u8]); 4] = [
        ("kä".as_bytes(), b"1"),
        (b"a\xff\x00", b"\xfe"),
        (b"line\nbreak", b" ==> "),
        (b"", b""),
    ];
    let db = db_at(&dir.path().join("db"), &keys);
    let dump = esker(&["dump", &db, "--json"]).expect(0);
    assert!(dump.out.contains("\"key\":\"kä\""), "{}", dump.out);
    assert!(dump.out.contains("\"key_base64\":\"Yf8A\""), "{}", dump.out);
    let copy = format!("--db={}", dir.path().join("copy").display());
    let args = ["load", &copy, "--json", "--create-if-missing"];
    fed(&args, dump.out.as_bytes(), dir.path()).expect(0);
    assert_eq!(esker(&["dump", &copy, "--json"]).expect(0).out, dump.out);
    let wrong = fed(&args, b"a ==> b\n", dir.path()).expect(1);
    assert!(wrong.err.contains("line 1"), "{}", wrong.err);
}

#[test]
fn a_terminal_gets_no_control_bytes_and_no_bar_over_the_lines() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    db_at(&at, &[(b"a\x00\x1b[2J", b"\x07\xff")]);
    for command in ["scan", "dump"] {
        let Some(text) = on_terminal(&format!("{command} --db={}", at.display())) else {
            return;
        };
        assert!(text.contains("a\\x00\\x1b[2J ==> \\x07\\xff"), "{text:?}");
        assert!(
            !text.contains('\x1b') && !text.contains("dumping"),
            "{text:?}"
        );
    }
    // Not on a terminal, bytes are bytes.
    let raw = Command::new(env!("CARGO_BIN_EXE_esker"))
        .args(["scan".into(), format!("--db={}", at.display())])
        .output();
    assert_eq!(raw.expect("runs").stdout, b"a\x00\x1b[2J ==> \x07\xff\n");
}

#[test]
fn a_dump_is_refused_before_it_begins() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = db_at(&dir.path().join("db"), &[(b"a", b"1"), (b"b\n", b"2")]);
    let refused = esker(&["dump", &db]).expect(1);
    assert_eq!(refused.out, "");
    assert!(
        refused.err.contains("use --hex, or --json"),
        "{}",
        refused.err
    );
    assert!(!refused.err.contains("Not implemented"), "{}", refused.err);
    esker(&["dump", &db, "--max-keys=1"]).expect(0);
    esker(&["dump", &db, "--hex"]).expect(0);
}

#[test]
fn long_work_says_what_is_done_and_what_is_due() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    db_at(&at, &[(b"a", &[7; 100_000]), (b"b", &[8; 100_000])]);
    let (db, backups) = (at.display(), dir.path().join("backups"));
    for (doing, args) in [
        ("compacting", format!("compact --db={db}")),
        (
            "backup",
            format!("backup create --db={db} {}", backups.display()),
        ),
        (
            "restore",
            format!("backup restore {} --db={db} --yes", backups.display()),
        ),
        ("reading tables", format!("repair --db={db}")),
    ] {
        let Some(text) = on_terminal(&args) else {
            return;
        };
        let bar = text
            .split(['\r', '\n'])
            .find(|l| l.contains(doing) && l.contains(" of "));
        let bar = bar.unwrap_or_else(|| panic!("{args}: {text:?}"));
        assert!(bar.contains("/s, ") && bar.contains(" left"), "{bar:?}");
    }
}

#[test]
fn names_that_were_meant_are_found() {
    for (name, meant) in [
        ("compression_type", "db_bench and ldb call compression"),
        ("blob", "enable_blob_files"),
        ("filter", "filter_policy"),
    ] {
        let said = esker(&["options", "explain", name]).expect(1);
        assert!(said.err.contains(meant), "{name}: {}", said.err);
    }
    let dir = tempfile::tempdir().expect("a directory");
    let db = db_at(&dir.path().join("db"), &[]);
    let said = esker(&["get", &db, "--set", "compresion=kZSTD", "a"]).expect(2);
    assert!(
        said.err.contains("did you mean compression?"),
        "{}",
        said.err
    );
}

/// The database's OPTIONS file with faults, and what it is called.
fn with_faults(at: &Path) -> (std::path::PathBuf, String) {
    let entries = fs::read_dir(at)
        .expect("a directory")
        .map(|e| e.expect("an entry").path());
    let is_options = |p: &std::path::PathBuf| p.to_string_lossy().contains("OPTIONS-");
    let path = entries.filter(is_options).max().expect("an OPTIONS file");
    let text = fs::read_to_string(&path).expect("text");
    let text = text
        .replace("  max_open_files=", "  max_open_filez=")
        .replace("  write_buffer_size=", "  write_bufer_size=");
    (path, text)
}

#[test]
fn lint_reports_all_faults_and_unknown_options_can_be_ignored() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let db = db_at(&at, &[(b"a", b"1")]);
    let (path, text) = with_faults(&at);
    let unknown = text.clone();
    let text = text.replace("  num_levels=", "  num_levels=x");
    fs::write(&path, text).expect("written");
    let lint = esker(&["options", "lint", &path.display().to_string()]).expect(1);
    for fault in ["max_open_filez", "write_bufer_size", "num_levels"] {
        assert!(lint.out.contains(fault), "{fault}: {}", lint.out);
    }
    assert!(
        lint.out.contains("did you mean max_open_files?"),
        "{}",
        lint.out
    );
    fs::write(&path, unknown).expect("written");
    esker(&["get", &db, "a"]).expect(1);
    let got = esker(&["get", &db, "--ignore-unknown-options", "a"]).expect(0);
    assert_eq!(got.out, "1\n");
}

#[test]
fn listeners_of_a_program_are_not_told_about() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    if common::db_bench(&at, &["--num=100"]).is_none() {
        return;
    }
    let scan = esker(&["scan", &format!("--db={}", at.display()), "--max-keys=1"]).expect(0);
    assert_eq!(scan.err, "");
}

#[test]
fn a_checkpoint_is_fresh_and_not_doubtful() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = db_at(&dir.path().join("db"), &[(b"a", b"1")]);
    let target = dir.path().join("copy").display().to_string();
    esker(&["checkpoint", &db, &target]).expect(0);
    let check = esker(&["check", &target]).expect(0);
    assert!(check.out.contains("no problem found"), "{}", check.out);
}

#[test]
fn a_destruction_can_be_tried() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let db = db_at(&at, &[(b"a", b"1")]);
    let before = contents(&at);
    let tried = esker(&["destroy", &db, "--dry-run"]).expect(0);
    assert!(tried.out.starts_with("would remove "), "{}", tried.out);
    assert_eq!(contents(&at), before);
}

#[test]
fn completions_and_pages_name_every_command() {
    let all = esker(&["--json", "commands"]).expect(0).json();
    let names = all
        .iter()
        .map(|c| c["command"].as_str().expect("text").to_owned());
    let hidden = [
        "commands",
        "update_manifest",
        "unsafe_remove_sst_file",
        "reduce_levels",
    ];
    let names: Vec<String> = names
        .filter(|n| !hidden.contains(&n.as_str()) && !n.contains("help"))
        .collect();
    for shell in ["bash", "zsh", "fish"] {
        let text = esker(&["completions", shell]).expect(0).out;
        for word in names.iter().flat_map(|n| n.split(' ')) {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    let dir = tempfile::tempdir().expect("a directory");
    esker(&[OsStr::new("man"), dir.path().as_os_str()]).expect(0);
    for name in &names {
        let page = dir
            .path()
            .join(format!("esker-{}.1", name.replace(' ', "-")));
        let text = fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(text.contains(".SH SYNOPSIS"), "{name}");
    }
}

#[test]
fn a_damaged_table_is_read_behind_the_damage() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let options = Options::new().create_if_missing(true);
    let db = Db::open(&at, options.set("block_size", "512").expect("an option")).expect("opens");
    for n in 0..1000 {
        db.put(format!("key{n:04}"), format!("{n:050}"))
            .expect("written");
    }
    db.flush().expect("flushed");
    let table = db.live_files_metadata()[0].path();
    db.close().expect("closes");
    let path = table.display().to_string();
    let range = ["sst", &path, "--scan", "--from=key0010", "--to=key0012"];
    let few = esker(&range).expect(0).out;
    assert_eq!(few.lines().count(), 3, "{few}");
    let few = esker(&["sst", &path, "--scan", "--prefix=key099"])
        .expect(0)
        .out;
    assert_eq!(few.lines().count(), 11, "{few}");
    let mut bytes = fs::read(&table).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&table, bytes).expect("written");
    let stopped = esker(&["sst", &path, "--scan"]).expect(1).out;
    assert!(!stopped.contains("key0999"), "{stopped}");
    let whole = esker(&["sst", &path, "--scan", "--keep-going"])
        .expect(1)
        .out;
    assert!(
        whole.contains("key0000") && whole.contains("key0999"),
        "{whole}"
    );
    assert!(
        whole.lines().count() > 950 && whole.contains("  damaged: "),
        "{whole}"
    );
}

#[test]
fn single_keys_and_ranges_are_written_and_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let keys: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")];
    let db = db_at(&dir.path().join("db"), &keys);
    esker(&["singledelete", &db, "a"]).expect(0);
    esker(&["deleterange", &db, "b", "c"]).expect(0);
    let operator = "--set=merge_operator=stringappend";
    esker(&["merge", &db, operator, "c", "4"]).expect(0);
    assert_eq!(esker(&["scan", &db, operator]).expect(0).out, "c ==> 3,4\n");
    let several = esker(&["multi-get", &db, operator, "c", "a"]).expect(1);
    assert_eq!(several.out, "c ==> 3,4\na is not there\n");
}

#[test]
fn every_version_of_a_key_is_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let db = Db::open(&at, Options::new().create_if_missing(true)).expect("opens");
    db.put("a", "1").expect("written");
    db.flush().expect("flushed");
    db.put("a", "2").expect("written");
    let family = db.default_family_handle();
    db.delete_range_opt(&family, "b", "c", &WriteOptions::default())
        .expect("deleted");
    db.close().expect("closes");
    let before = contents(&at);
    let dump = esker(&[OsStr::new("idump"), at.as_os_str()]).expect(0).out;
    let wanted = "a @2:Value ==> 2\na @1:Value ==> 1\n[b, c) @3:RangeDeletion\n\
                  Internal keys in range: 2\n";
    assert_eq!(dump, wanted);
    assert_eq!(contents(&at), before);
}

#[test]
fn sizes_properties_files_and_prefixes_are_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let keys: [(&[u8], &[u8]); 3] = [(b"u:1", b"1"), (b"u:2", b"22"), (b"v:1", b"3")];
    let db = db_at(&dir.path().join("db"), &keys);
    esker(&["compact", &db]).expect(0);
    let size = esker(&["approxsize", &db]).expect(0).out;
    assert!(
        size.trim().parse::<u64>().expect("a number") > 100,
        "{size}"
    );
    let name = "rocksdb.num-files-at-level0";
    let said = esker(&["property", &db, name]).expect(0).out;
    assert_eq!(said, format!("{name}: 0\n"));
    let wrong = esker(&["property", &db, "rocksdb.num-files"]).expect(1);
    assert!(wrong.err.contains("num-files-at-level"), "{}", wrong.err);
    let files = esker(&["live-files", &db, "--json"]).expect(0).json();
    assert_eq!(files.len(), 1);
    assert!(files[0]["level"].as_u64().expect("a level") > 0 && files[0]["family"] == "default");
    let prefixes = esker(&["histogram", &db, "--json"]).expect(0).json();
    let found: Vec<_> = prefixes
        .iter()
        .map(|p| (&p["prefix"], &p["keys"]))
        .collect();
    assert!(
        found[0].0 == "u" && found[0].1 == 2 && found[1].0 == "v",
        "{found:?}"
    );
    let top = esker(&["histogram", &db, "--bytes=1", "--top=1"])
        .expect(0)
        .out;
    assert_eq!(top.lines().count(), 2, "{top}");
}

#[test]
fn tables_are_written_taken_in_and_weighed() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = db_at(&dir.path().join("db"), &[(b"a", b"old")]);
    let table = dir.path().join("new.sst").display().to_string();
    let before = contents(&dir.path().join("db"));
    fed(
        &["write-sst", &db, &table],
        b"a ==> new\nb ==> 2\n",
        dir.path(),
    )
    .expect(0);
    assert_eq!(contents(&dir.path().join("db")), before);
    let other = dir.path().join("other.sst").display().to_string();
    fed(
        &["write-sst", &db, &other],
        b"b ==> 2\na ==> 1\n",
        dir.path(),
    )
    .expect(1);
    assert!(!Path::new(&other).exists());
    let weighed = esker(&["recompress", &table, "--codecs=zstd,none", "--json"])
        .expect(0)
        .json();
    assert_eq!(weighed.len(), 2);
    assert!(weighed[0]["bytes"].as_u64().expect("bytes") > 100);
    esker(&["ingest", &db, &table, "--move-files"]).expect(0);
    assert_eq!(esker(&["scan", &db]).expect(0).out, "a ==> new\nb ==> 2\n");
    assert!(!Path::new(&table).exists());
}

#[test]
fn a_database_that_is_open_is_read_as_a_secondary() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let db = Db::open(&at, Options::new().create_if_missing(true)).expect("opens");
    db.put("a", "1").expect("written");
    db.flush().expect("flushed");
    let own = format!("--secondary-path={}", dir.path().join("own").display());
    let named = format!("--db={}", at.display());
    assert_eq!(esker(&["get", &named, &own, "a"]).expect(0).out, "1\n");
    esker(&["put", &named, &own, "a", "2"]).expect(2);
}

#[test]
fn keys_of_any_bytes_are_given_and_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = db_at(&dir.path().join("db"), &[]);
    let key = OsStr::from_bytes(b"a\xffb").to_owned();
    let args: [OsString; 4] = ["put".into(), db.clone().into(), key, "v".into()];
    esker(&args).expect(0);
    assert_eq!(
        esker(&["scan", &db, "--key-hex"]).expect(0).out,
        "0x61FF62 ==> v\n"
    );
}

#[test]
fn rocksdb_reads_what_was_ingested() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    if ldb_put(&at, &[("a", "1")]).is_none() {
        return;
    }
    let db = format!("--db={}", at.display());
    let table = dir.path().join("new.sst").display().to_string();
    fed(&["write-sst", &db, &table], b"b ==> 2\n", dir.path()).expect(0);
    esker(&["ingest", &db, &table]).expect(0);
    esker(&["deleterange", &db, "a", "b"]).expect(0);
    let scan = tool("ldb", &[db, "scan".to_owned()]).expect("ldb");
    assert_eq!(scan, "b : 2\n");
}

#[test]
fn a_variable_names_the_database() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    db_at(&at, &[(b"a", b"1")]);
    let with = |args: &[&str]| {
        let ran = Command::new(env!("CARGO_BIN_EXE_esker"))
            .args(args)
            .env("ESKER_DB", &at)
            .output();
        Ran::of(ran.expect("the command runs"))
    };
    assert_eq!(with(&["get", "a"]).expect(0).out, "1\n");
    assert!(with(&["check"]).expect(0).out.contains("no problem found"));
    let other = dir.path().join("other");
    let named = db_at(&other, &[(b"a", b"2")]);
    assert_eq!(with(&["get", &named, "a"]).expect(0).out, "2\n");
    with(&["destroy", "--yes"]).expect(2);
    assert!(at.join("CURRENT").exists());
}

#[test]
fn one_of_a_kind_is_not_called_several() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("db");
    let db = Db::open(&at, Options::new().create_if_missing(true)).expect("opens");
    db.put("a", "1").expect("written");
    db.flush().expect("flushed");
    db.put("b", "2").expect("written");
    db.close().expect("closes");
    let mut said = String::new();
    for command in ["check", "shape", "wal", "manifest"] {
        let ran = esker(&[OsStr::new(command), at.as_os_str()]).expect(0);
        said += &(ran.out + &ran.err);
    }
    said += &esker(&["repair", &format!("--db={}", at.display()), "--dry-run"])
        .expect(0)
        .out;
    for one in [
        "1 family",
        "1 table",
        "1 entry",
        "in 1 log",
        "1 column family",
    ] {
        assert!(said.contains(one), "{one}: {said}");
    }
    let words: Vec<&str> = said.split_whitespace().collect();
    for pair in words.windows(2).filter(|pair| pair[0] == "1") {
        let noun = pair[1].trim_end_matches([',', '.', ')', ':', ';']);
        assert!(
            !noun.ends_with("ies") && !noun.ends_with("es"),
            "1 {noun}: {said}"
        );
    }
    assert!(!said.contains("(s)"), "{said}");
}

#[test]
fn a_full_disk_says_what_to_free_and_loses_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mount = dir.path().join("mount");
    fs::create_dir(&mount).expect("a directory");
    let lines: String = (0..20_000)
        .map(|n| format!("key{n:05} ==> {n:0400}\n"))
        .collect();
    let input = dir.path().join("input");
    fs::write(&input, lines).expect("written");
    // A filesystem of four megabytes that only these commands see.
    let script = "mount -t tmpfs -o size=4m none \"$1\" || exit 77
        \"$0\" load --db=\"$1/db\" --create-if-missing <\"$2\"
        code=$?
        \"$0\" dump --db=\"$1/db\" --max-keys=100000 >\"$3\" || exit 78
        exit $code";
    let output = dir.path().join("output");
    let ran = Command::new("unshare")
        .args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_esker")])
        .args([&mount, &input, &output])
        .output();
    let ran = match ran.map(Ran::of) {
        Ok(ran) if ran.code != 77 && !ran.err.starts_with("unshare:") => ran.expect(1),
        Ok(ran) => return println!("skipped: {}", ran.err),
        Err(e) => return println!("skipped: unshare: {e}"),
    };
    let place = format!(
        "the filesystem of {} is full: free some space there",
        mount.display()
    );
    let is_said = ran.err.contains(&place) || ran.err.contains(&place.replace(" is", "/db is"));
    assert!(is_said, "{}", ran.err);
    let kept = fs::read_to_string(output).expect("a dump").lines().count();
    let loaded = ran.out.split_whitespace().chain(ran.err.split_whitespace());
    let loaded: usize = loaded
        .filter_map(|w| w.parse().ok())
        .next()
        .expect("a number");
    assert!(
        kept >= loaded && loaded > 1_000,
        "{loaded} loaded, {kept} kept"
    );
}
