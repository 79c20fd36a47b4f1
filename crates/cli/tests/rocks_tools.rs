//! RocksDB's `ldb` and `sst_dump` beside ours of the same name: each command on copies of one
//! directory, every line of stdout and every exit code. Says so when it skips, where they are not
//! installed. The table of `docs/tools.md` is that of this file.

mod common;

use common::tool;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a comparison.
enum Verdict {
    /// Every line and the exit code.
    Same,
    /// Compared without what the words name, which the function puts aside.
    But(&'static str, fn(&str) -> String),
    /// Refused, and why.
    Refused(&'static str),
}

use Verdict::{But, Refused, Same};

/// A command of a tool, and the command lines that are tried.
struct Row {
    tool: &'static str,
    command: &'static str,
    verdict: Verdict,
    /// `{log}`, `{table}` and `{manifest}` are files of the database.
    lines: &'static [&'static str],
}

const fn row(
    tool: &'static str,
    command: &'static str,
    verdict: Verdict,
    lines: &'static [&'static str],
) -> Row {
    Row {
        tool,
        command,
        verdict,
        lines,
    }
}

fn sorted(text: &str) -> String {
    let first = |l: &&str| !l.starts_with("from [");
    let mut lines: Vec<&str> = text.lines().filter(first).collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Without what was measured, and what counts other blocks.
fn without_measures(text: &str) -> String {
    let kept = |line: &str| match line.split_once(" Size:") {
        Some((before, _)) => before.to_owned(),
        None => line.to_owned(),
    };
    text.lines().map(kept).collect::<Vec<_>>().join("\n")
}

/// Without rows of statistics that 7.8 has not, or that speak of the process.
fn without_statistics(text: &str) -> String {
    let kept = text
        .lines()
        .filter(|l| l.contains("==>") || l.contains("=>") || l.contains("Keys"));
    kept.collect::<Vec<_>>().join("\n")
}

const ROWS: &[Row] = &[
    row(
        "ldb",
        "put",
        Same,
        &["put x y", "put x", "--hex put 0x78 0x79", "put x y --bogus"],
    ),
    row(
        "ldb",
        "get",
        Same,
        &[
            "get a",
            "get b",
            "get",
            "get a b",
            "get --hex 0x61",
            "get --key_hex 0x61",
            "get --column_family=nope a",
            "get a --block_size=0",
            "get a --write_buffer_size=x",
            "get a --secondary_path=second",
            "get a --try_load_options=false",
            "get a --bogus=1",
        ],
    ),
    row(
        "ldb",
        "batchput",
        Same,
        &["batchput x y z w", "batchput x", "batchput"],
    ),
    row(
        "ldb",
        "scan",
        Same,
        &[
            "scan",
            "scan --hex --from=0x62 --to=0x65",
            "scan --no_value --max_keys=2",
            "scan --max_keys=x",
            "scan --from=b --to=e",
            "scan --timestamp",
        ],
    ),
    row("ldb", "delete", Same, &["delete a", "delete"]),
    row(
        "ldb",
        "deleterange",
        Same,
        &["deleterange a b", "deleterange a"],
    ),
    row("ldb", "query", Same, &["query"]),
    row(
        "ldb",
        "approxsize",
        Same,
        &[
            "approxsize --from=a --to=z",
            "approxsize",
            "approxsize --from=a",
        ],
    ),
    row("ldb", "checkconsistency", Same, &["checkconsistency"]),
    row(
        "ldb",
        "list_file_range_deletes",
        Same,
        &[
            "list_file_range_deletes",
            "list_file_range_deletes --max_keys=1",
        ],
    ),
    row(
        "ldb",
        "dump_wal",
        Same,
        &[
            "dump_wal --walfile={log}",
            "dump_wal --walfile={log} --header --print_value",
            "dump_wal --walfile=nofile",
            "dump_wal",
        ],
    ),
    row(
        "ldb",
        "compact",
        Same,
        &["compact", "compact --from=a --to=b"],
    ),
    row(
        "ldb",
        "reduce_levels",
        Refused("`esker dump`, and `esker load --set num_levels=N`"),
        &["reduce_levels --new_levels=3"],
    ),
    row(
        "ldb",
        "change_compaction_style",
        Refused("`esker compact --set compaction_style=...`; nothing to do is said as in RocksDB"),
        &["change_compaction_style --old_compaction_style=1 --new_compaction_style=0"],
    ),
    row(
        "ldb",
        "dump",
        But(
            "the numbers of `--stats` are those of our process; `--path` of a blob file is refused",
            |t| t.to_owned(),
        ),
        &[
            "dump",
            "dump --hex",
            "dump --count_only",
            "dump --count_delim=0",
            "dump --count_delim",
            "dump --max_keys=2",
            "dump --from=b --to=e",
            "dump --path={table}",
            "dump --path={log}",
            "dump --path={manifest}",
        ],
    ),
    row(
        "ldb",
        "dump --stats",
        But(
            "the statistics are those of our process",
            without_statistics,
        ),
        &["dump --stats"],
    ),
    row(
        "ldb",
        "load",
        Same,
        &["load", "load --disable_wal --compact", "load --bulk_load"],
    ),
    row(
        "ldb",
        "manifest_dump",
        Same,
        &[
            "manifest_dump",
            "manifest_dump --verbose",
            "manifest_dump --json",
            "manifest_dump --path={manifest}",
        ],
    ),
    row(
        "ldb",
        "update_manifest",
        Refused("`esker repair`"),
        &["update_manifest --update_temperatures"],
    ),
    row("ldb", "file_checksum_dump", Same, &["file_checksum_dump"]),
    row(
        "ldb",
        "get_property",
        But(
            "estimates and properties of later versions may differ",
            |t| t.to_owned(),
        ),
        &[
            "get_property rocksdb.num-files-at-level0",
            "get_property rocksdb.total-sst-files-size",
            "get_property nope",
            "get_property",
        ],
    ),
    row(
        "ldb",
        "list_column_families",
        Same,
        &["list_column_families"],
    ),
    row(
        "ldb",
        "create_column_family",
        Same,
        &[
            "create_column_family f",
            "create_column_family default",
            "create_column_family",
        ],
    ),
    row(
        "ldb",
        "drop_column_family",
        Same,
        &["drop_column_family f", "drop_column_family"],
    ),
    row("ldb", "dump_live_files", Same, &["dump_live_files"]),
    row(
        "ldb",
        "idump",
        But(
            "range deletions that are only in a log hide keys, too",
            |t| t.to_owned(),
        ),
        &[
            "idump",
            "idump --hex",
            "idump --count_only",
            "idump --count_delim=0",
            "idump --max_keys=2",
            "idump --from=b --to=d",
        ],
    ),
    row(
        "ldb",
        "list_live_files_metadata",
        Same,
        &[
            "list_live_files_metadata",
            "list_live_files_metadata --sort_by_filename",
        ],
    ),
    row(
        "ldb",
        "repair",
        But(
            "lost data is exit code 3, and what was lost is on stderr",
            |t| t.to_owned(),
        ),
        &["repair"],
    ),
    row(
        "ldb",
        "backup",
        Same,
        &["backup --backup_dir=made", "backup"],
    ),
    row(
        "ldb",
        "restore",
        Same,
        &["restore --backup_dir=backups", "restore"],
    ),
    row(
        "ldb",
        "checkpoint",
        Same,
        &[
            "checkpoint --checkpoint_dir=made",
            "checkpoint",
            "checkpoint --checkpoint_dir=backups",
        ],
    ),
    row(
        "ldb",
        "write_extern_sst",
        Same,
        &["write_extern_sst made.sst", "write_extern_sst"],
    ),
    row(
        "ldb",
        "ingest_extern_sst",
        Same,
        &["ingest_extern_sst outside.sst", "ingest_extern_sst"],
    ),
    row(
        "ldb",
        "unsafe_remove_sst_file",
        Refused("`esker repair`, `esker deleterange`"),
        &["unsafe_remove_sst_file 13"],
    ),
    row("ldb", "an unknown command", Same, &["bogus"]),
    row(
        "sst_dump",
        "check",
        Same,
        &[
            "--file={table}",
            "--file={table} --command=check --verify_checksum",
            "--file=nofile",
            "--file={manifest}",
        ],
    ),
    row(
        "sst_dump",
        "check of a directory",
        But("in the order of the names", sorted),
        &["--file=db"],
    ),
    row(
        "sst_dump",
        "scan",
        Same,
        &[
            "--file={table} --command=scan",
            "--file={table} --command=scan --output_hex",
            "--file={table} --command=scan --from=b --to=c",
            "--file={table} --command=scan --prefix=key",
            "--file={table} --command=scan --read_num=1",
            "--file={table} --command=scan --from=0x62 --input_key_hex",
            "--file={table} --from=a --prefix=b",
        ],
    ),
    row(
        "sst_dump",
        "scan of a directory",
        But("in the order of the names", sorted),
        &["--file=db --command=scan"],
    ),
    row(
        "sst_dump",
        "--show_properties",
        Same,
        &["--file={table} --show_properties"],
    ),
    row(
        "sst_dump",
        "verify",
        But("damage that 7.8 does not see is said on stderr", |t| {
            t.to_owned()
        }),
        &["--file={table} --command=verify"],
    ),
    row(
        "sst_dump",
        "identify",
        Same,
        &["--file={table} --command=identify"],
    ),
    row(
        "sst_dump",
        "identify of a directory",
        But("in the order of the names", sorted),
        &["--file=db --command=identify"],
    ),
    row(
        "sst_dump",
        "recompress",
        But(
            "sizes differ by some bytes of properties; counts leave index blocks out",
            without_measures,
        ),
        &[
            "--file={table} --command=recompress --compression_types=kNoCompression,kSnappyCompression",
            "--file={table} --command=recompress --compression_types=kZSTD --compression_level_from=1 --compression_level_to=3",
        ],
    ),
    row(
        "sst_dump",
        "raw",
        Refused("`esker sst --properties --index --blocks --scan --full`"),
        &["--file={table} --command=raw"],
    ),
    row(
        "sst_dump",
        "--parse_internal_key",
        Same,
        &[
            "--parse_internal_key=0x610100000000000000",
            "--parse_internal_key=zz",
        ],
    ),
    row("sst_dump", "wrong arguments", Same, &["", "--bogus"]),
];

/// Exit code, stdout, and whether something is on stderr.
#[derive(Debug, PartialEq)]
struct Answer {
    code: i32,
    out: String,
    complains: bool,
}

struct Bench {
    home: tempfile::TempDir,
}

impl Bench {
    /// A database that RocksDB's tool made, with a backup and a table outside of it.
    fn new() -> Option<Bench> {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("made");
        fs::create_dir(&dir).expect("made");
        let db = dir.join("db").display().to_string();
        let run = |words: &str| {
            let mut args = vec![format!("--db={db}")];
            args.extend(words.split(' ').map(str::to_owned));
            tool("ldb", &args)
        };
        run("--create_if_missing batchput a 1 b 2 c 3 key0001 v1")?;
        run("compact")?;
        run("put d 4")?;
        run("delete b")?;
        run("deleterange c d")?;
        run("create_column_family f")?;
        tool("sst_dump", &["--version".to_owned()])?;
        run(&format!(
            "backup --backup_dir={}",
            dir.join("backups").display()
        ))?;
        fs::write(dir.join("lines"), "q1 ==> w\nbad\nq2 ==> w2\n").expect("written");
        let made = Command::new("ldb")
            .args([format!("--db={db}"), "write_extern_sst".into()])
            .arg(dir.join("outside.sst"))
            .stdin(fs::File::open(dir.join("lines")).expect("lines"))
            .output();
        assert!(made.expect("ldb runs").status.success());
        for name in ["ldb", "sst_dump"] {
            symlink(env!("CARGO_BIN_EXE_esker"), home.path().join(name)).expect("a link");
        }
        Some(Bench { home })
    }

    /// A fresh copy of everything, at the same path each time.
    fn fresh(&self) -> PathBuf {
        let at = self.home.path().join("work");
        let _ = fs::remove_dir_all(&at);
        let copied = Command::new("cp")
            .arg("-a")
            .arg(self.home.path().join("made"))
            .arg(&at)
            .status();
        assert!(copied.expect("cp runs").success());
        at
    }

    fn answer(&self, program: &Path, row: &Row, line: &str) -> Answer {
        let at = self.fresh();
        let found = |end: &str| {
            let names = fs::read_dir(at.join("db")).expect("a directory");
            let names = names.map(|e| {
                e.expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("text")
            });
            let mut all: Vec<_> = names.filter(|n| n.contains(end)).collect();
            all.sort();
            all
        };
        let line = line
            .replace("{table}", &format!("db/{}", found(".sst")[0]))
            .replace(
                "{log}",
                &format!("db/{}", found(".log").pop().expect("a log")),
            )
            .replace(
                "{manifest}",
                &format!("db/{}", found("MANIFEST").pop().expect("one")),
            );
        let input = if row.command == "query" {
            fs::write(
                at.join("lines"),
                "get a\nput z 9\nscan\nhelp\ndelete z\nbogus\nput q\n",
            )
            .expect("written");
            at.join("lines")
        } else if line.starts_with("load") || line.starts_with("write_extern") {
            at.join("lines")
        } else {
            PathBuf::from("/dev/null")
        };
        let mut command = Command::new(program);
        let has_place = ["--path", "--walfile", "--db"]
            .iter()
            .any(|p| line.contains(p));
        if row.tool == "ldb" && !has_place {
            command.arg(if line.starts_with("restore") {
                "--db=restored"
            } else {
                "--db=db"
            });
        }
        let ran = command
            .args(line.split(' ').filter(|w| !w.is_empty()))
            .current_dir(&at)
            .env("TZ", "UTC")
            .stdin(Stdio::from(fs::File::open(input).expect("lines")))
            .output()
            .expect("the program runs");
        let out = String::from_utf8_lossy(&ran.stdout);
        let kept = out.lines().filter(|l| !l.starts_with("options.env is "));
        Answer {
            code: ran.status.code().expect("no signal"),
            out: kept.map(|l| format!("{l}\n")).collect(),
            complains: !ran.stderr.is_empty(),
        }
    }
}

#[test]
fn our_tools_print_what_rocksdbs_print() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let (mut compared, mut different) = (0, Vec::new());
    for row in ROWS {
        let ours = bench.home.path().join(row.tool);
        for line in row.lines {
            let own = bench.answer(&ours, row, line);
            let what = format!("{} {line}", row.tool);
            if let Refused(_) = row.verdict {
                assert!(own.code == 1 && own.complains, "{what}: {own:?}");
                continue;
            }
            let theirs = bench.answer(Path::new(row.tool), row, line);
            let same: fn(&str) -> String = match &row.verdict {
                But(_, kept) => *kept,
                _ => |t| t.to_owned(),
            };
            // Only what failed is said on stderr.
            let complains = theirs.code == 0 || own.complains == theirs.complains;
            if own.code != theirs.code || same(&own.out) != same(&theirs.out) || !complains {
                different.push(format!("{what}:\nours {own:?}\ntheirs {theirs:?}\n"));
            }
            compared += 1;
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    println!("{compared} command lines gave the same answers");
    assert!(compared > 90);
}

#[test]
fn what_is_refused_says_what_to_use() {
    let home = tempfile::tempdir().expect("a directory");
    let ldb = home.path().join("ldb");
    symlink(env!("CARGO_BIN_EXE_esker"), &ldb).expect("a link");
    for name in ["update_manifest", "unsafe_remove_sst_file", "reduce_levels"] {
        for (program, args) in [
            (ldb.clone(), vec!["--db=none", name, "1"]),
            (
                env!("CARGO_BIN_EXE_esker").into(),
                vec![name, "--db=none", "--x=1"],
            ),
        ] {
            let ran = Command::new(program).args(args).output().expect("runs");
            let err = String::from_utf8_lossy(&ran.stderr);
            assert!(!ran.status.success() && err.contains("is refused"), "{err}");
            assert!(err.contains("`esker "), "{name}: {err}");
        }
    }
}

/// The table of the page.
fn table() -> String {
    let mut text = String::from("| tool | command | answer |\n|---|---|---|\n");
    for row in ROWS {
        let answer = match &row.verdict {
            Same => "the same lines and exit codes".to_owned(),
            But(what, _) => format!("the same; {what}"),
            Refused(instead) => format!("refused: {instead}"),
        };
        text += &format!("| `{}` | {} | {answer} |\n", row.tool, row.command);
    }
    text
}

#[test]
fn the_page_has_this_table() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    let text = fs::read_to_string(&page).expect("docs/tools.md");
    let from = text.find("| tool |").expect("a table");
    let to = text[from..]
        .find("\n\n")
        .map_or(text.len(), |at| from + at + 1);
    if std::env::var_os("ESKER_BLESS").is_some() {
        let blessed = format!("{}{}{}", &text[..from], table(), &text[to..]);
        fs::write(&page, blessed).expect("written");
        return;
    }
    assert_eq!(
        &text[from..to],
        table(),
        "ESKER_BLESS=1 writes the table of docs/tools.md"
    );
}
