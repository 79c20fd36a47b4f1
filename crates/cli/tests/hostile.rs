//! Damaged and hostile directories: every command ends with a clear word, and changes nothing.

mod common;

use common::{contents, db_bench, esker_on};
use std::path::Path;
use std::time::{Duration, Instant};

/// Names and contents.
type Files = &'static [(&'static str, &'static [u8])];

const COMMANDS: &[&[&str]] = &[
    &["check"],
    &["check", "--json"],
    &["shape", "--files"],
    &["shape", "--json"],
    &[
        "sst",
        "--properties",
        "--blocks",
        "--scan",
        "--verify",
        "--index",
        "--filter",
    ],
    &["sst", "--scan", "--json"],
    &["wal", "--full"],
    &["wal", "--recovery-mode", "skip"],
    &["manifest"],
    &["manifest", "--tree", "--json"],
    &["options", "lint"],
    &["scan", "--hex", "--db"],
    &["dump", "--json", "--db"],
    &["get", "key", "--db"],
    &["repair", "--dry-run", "--db"],
];

/// Runs every command; none may crash, run on, or write.
#[track_caller]
fn all_commands_survive(db: &Path, what: &str) {
    let before = contents(db);
    for command in COMMANDS {
        let start = Instant::now();
        let ran = esker_on(command, db);
        assert!(
            ran.code == 0 || ran.code == 1 || (ran.code == 3 && command[0] == "repair"),
            "{what}: {command:?}: exit code {}",
            ran.code
        );
        assert!(
            !ran.err.contains("panicked"),
            "{what}: {command:?}: {}",
            ran.err
        );
        let starts: &[&str] = if command.contains(&"--json") {
            &["{\"type\":\"error\"", "{\"type\":\"note\""]
        } else {
            &["error: ", "note: "]
        };
        let is_known = |l: &str| starts.iter().any(|s| l.starts_with(s));
        assert!(
            ran.err.lines().all(is_known),
            "{what}: {command:?}: {}",
            ran.err
        );
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "{what}: {command:?} took too long"
        );
        if command.contains(&"--json") {
            ran.json();
        }
    }
    assert_eq!(contents(db), before, "{what}: something was written");
}

/// Returns the next random number; each run has the same numbers.
fn random(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn flipped_cut_and_blown_up_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = dir.path().join("db");
    if db_bench(
        &db,
        &[
            "--num=2000",
            "--compression_type=snappy",
            "--write_buffer_size=70000",
        ],
    )
    .is_none()
    {
        return;
    }
    let mut original = contents(&db);
    original.retain(|(name, _)| !name.starts_with("LOG"));
    let mut seed = 42;
    for round in 0..24 {
        let broken = dir.path().join(format!("broken{round}"));
        std::fs::create_dir(&broken).expect("created");
        for (name, bytes) in &original {
            std::fs::write(broken.join(name), bytes).expect("written");
        }
        let (name, bytes) = &original[random(&mut seed) % original.len()];
        let mut bytes = bytes.clone();
        let what = format!("round {round}: {name}");
        match round % 4 {
            0 if !bytes.is_empty() => {
                let n = 1 + random(&mut seed) % 8;
                for _ in 0..n {
                    let at = random(&mut seed) % bytes.len();
                    bytes[at] ^= 1 << (random(&mut seed) % 8);
                }
            }
            1 => bytes.truncate(random(&mut seed) % (bytes.len() + 1)),
            2 => {
                let at = random(&mut seed) % (bytes.len() + 1);
                bytes.splice(at..at, [0xff; 40]);
            }
            _ => bytes = vec![0xff; 1 + random(&mut seed) % 4096],
        }
        std::fs::write(broken.join(name), bytes).expect("written");
        all_commands_survive(&broken, &what);
    }
}

#[test]
fn odd_directories() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases: [(&str, Files); 7] = [
        ("empty CURRENT", &[("CURRENT", b"")]),
        (
            "CURRENT without a line end",
            &[("CURRENT", b"MANIFEST-000001")],
        ),
        (
            "CURRENT that names a path",
            &[("CURRENT", b"../../MANIFEST-000001\n")],
        ),
        (
            "CURRENT that names nothing",
            &[("CURRENT", b"MANIFEST-000009\n")],
        ),
        (
            "empty MANIFEST",
            &[("CURRENT", b"MANIFEST-000001\n"), ("MANIFEST-000001", b"")],
        ),
        (
            "zeros",
            &[
                ("CURRENT", b"MANIFEST-000001\n"),
                ("MANIFEST-000001", &[0; 70_000]),
            ],
        ),
        (
            "odd files",
            &[
                ("000001.sst", b"x"),
                ("000002.log", &[7; 100]),
                ("OPTIONS-000003", &[0xff; 10]),
            ],
        ),
    ];
    for (what, files) in cases {
        let db = dir.path().join(what.replace(' ', "-"));
        std::fs::create_dir(&db).expect("created");
        for (name, bytes) in files {
            std::fs::write(db.join(name), bytes).expect("written");
        }
        all_commands_survive(&db, what);
        assert_eq!(esker_on(&["check"], &db).code, 1, "{what}");
    }
    // A directory where a file should be.
    let db = dir.path().join("nested");
    std::fs::create_dir_all(db.join("CURRENT")).expect("created");
    std::fs::create_dir_all(db.join("000007.sst")).expect("created");
    all_commands_survive(&db, "directories in place of files");
}
