//! Lock files and directories that cannot be written: errors name the cause and the process that
//! has the database open, and what only reads works there.

mod common;

use common::{Ran, contents, esker};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `esker COMMAND --db=DB ARGS...`
fn on(db: &Path, command: &str, args: &[&str]) -> Ran {
    let flag = format!("--db={}", db.display());
    let mut all = vec![command, &flag];
    all.extend_from_slice(args);
    esker(&all)
}

fn words(db: &Path, command: &[&str]) -> Vec<String> {
    let command = command.iter().map(|w| (*w).to_owned());
    command.chain([format!("--db={}", db.display())]).collect()
}

/// A process that has a database open: it waits for lines to load.
struct Holder(Child);

impl Holder {
    fn of(db: &Path) -> Holder {
        let mut child = Command::new(env!("CARGO_BIN_EXE_esker"))
            .args(["load", "--create-if-missing"])
            .arg(format!("--db={}", db.display()))
            .stdin(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let pipe = child.stdin.as_mut().expect("a pipe");
        pipe.write_all(b"k ==> v\n").expect("it reads");
        let holder = Holder(child);
        // It waits for the next line once OPTIONS are written and nothing changes any more.
        let mut before = Vec::new();
        for _ in 0..200 {
            std::thread::sleep(std::time::Duration::from_millis(250));
            if !db.join("CURRENT").exists() {
                continue;
            }
            let now = contents(db);
            let is_option = |name: &str| name.starts_with("OPTIONS-") && !name.ends_with(".dbtmp");
            if now == before && now.iter().any(|(name, _)| is_option(name)) {
                return holder;
            }
            before = now;
        }
        panic!("it does not open the database");
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ended = self.0.wait();
    }
}

#[test]
fn a_database_that_is_open_elsewhere_names_the_process() {
    let home = tempfile::tempdir().expect("a directory");
    let db = home.path().join("db");
    let target = home.path().join("target").display().to_string();
    let holder = Holder::of(&db);
    let before = contents(&db);
    let hint = format!(
        "; {} is open in process {} (esker)\n",
        db.display(),
        holder.0.id()
    );
    let text = format!(
        "error: IO error: While lock file: {}: Resource temporarily unavailable{hint}",
        db.join("LOCK").display()
    );
    for (command, args) in [
        ("put", &["k", "v"][..]),
        ("delete", &["k"]),
        ("compact", &[]),
        ("checkpoint", &[&target]),
        ("repair", &[]),
        ("destroy", &["--yes"]),
    ] {
        let ran = on(&db, command, args).expect(1);
        assert_eq!(ran.err, text, "{command}");
    }
    for flags in [&[][..], &["--read-only"]] {
        let create = ["backup", "create", &target];
        let ran = esker(&words(&db, &[&create, flags].concat())).expect(1);
        assert_eq!(ran.err, text, "backup {flags:?}");
    }
    assert!(!Path::new(&target).exists());
    assert!(contents(&db) == before, "something changed");
    drop(holder);
    on(&db, "get", &["k"]).expect(0);
    on(&db, "put", &["k", "w"]).expect(0);
}

#[test]
fn a_database_that_was_renamed_while_it_is_open_is_still_open() {
    let home = tempfile::tempdir().expect("a directory");
    let (db, moved) = (home.path().join("db"), home.path().join("moved"));
    let holder = Holder::of(&db);
    std::fs::rename(&db, &moved).expect("it moves");
    let before = contents(&moved);
    for (command, args) in [("put", &["k", "v"][..]), ("compact", &[]), ("repair", &[])] {
        let ran = on(&moved, command, args).expect(1);
        let named = format!("{} is open in process {}", moved.display(), holder.0.id());
        assert!(ran.err.contains(&named), "{command}: {}", ran.err);
        assert!(contents(&moved) == before, "{command}: something changed");
    }
    on(&moved, "scan", &[]).expect(0);
    assert!(contents(&moved) == before, "reading changed something");
    drop(holder);
}

/// Runs `esker` as a user who owns nothing.
fn stranger<S: AsRef<std::ffi::OsStr>>(program: &Path, args: &[S]) -> Ran {
    let mut command = Command::new(program);
    command.args(args);
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
    if is_root {
        command.uid(65_534).gid(65_534);
    }
    Ran::of(command.output().expect("the command runs"))
}

/// A database in a directory that [`stranger`] may read and not write, the program where it may run
/// it, and a directory of its own.
struct Foreign {
    home: tempfile::TempDir,
    db: PathBuf,
    program: PathBuf,
    own: PathBuf,
}

fn mode(path: &Path, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("it is ours");
}

impl Foreign {
    fn new() -> Foreign {
        let home = tempfile::tempdir().expect("a directory");
        let at = |name: &str| home.path().join(name);
        let (db, program, own) = (at("db"), at("esker"), at("own"));
        mode(home.path(), 0o755);
        // Copied by a child: a file that this process writes is busy in forks of other tests.
        let mut cp = Command::new("cp");
        cp.arg(env!("CARGO_BIN_EXE_esker")).arg(&program);
        assert!(cp.status().expect("cp starts").success(), "copied");
        std::fs::create_dir(&own).expect("made");
        mode(&own, 0o777);
        for key in ["a", "b"] {
            on(&db, "put", &["--create-if-missing", key, "v"]).expect(0);
        }
        let foreign = Foreign {
            home,
            db,
            program,
            own,
        };
        foreign.close_to_writers();
        foreign
    }

    fn close_to_writers(&self) {
        for entry in std::fs::read_dir(&self.db).expect("a directory").flatten() {
            mode(&entry.path(), 0o444);
        }
        mode(&self.db, 0o555);
    }

    fn open_to_writers(&self) {
        mode(&self.db, 0o777);
        for entry in std::fs::read_dir(&self.db).expect("a directory").flatten() {
            mode(&entry.path(), 0o666);
        }
    }

    fn run(&self, command: &[&str]) -> Ran {
        stranger(&self.program, &words(&self.db, command))
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        mode(&self.db, 0o755);
        let _home = &self.home;
    }
}

/// Everything that reads works on a directory that cannot be written; what writes says why it does
/// not.
fn reads_and_refuses(place: &Foreign, cause: &str) {
    let before = contents(&place.db);
    let all = "a ==> v\nb ==> v\n";
    assert_eq!(place.run(&["scan"]).expect(0).out, all);
    assert_eq!(place.run(&["get", "a"]).expect(0).out, "v\n");
    let db = place.db.display().to_string();
    stranger(&place.program, &["check", &db]).expect(0);
    let (copy, backups) = (place.own.join("copy"), place.own.join("backups"));
    let target = copy.display().to_string();
    place.run(&["checkpoint", &target]).expect(0);
    stranger(&place.program, &["check", &target]).expect(0);
    let scanned = stranger(&place.program, &words(&copy, &["scan"]));
    assert_eq!(scanned.expect(0).out, all);
    let dir = backups.display().to_string();
    let made = place.run(&["backup", "create", &dir]).expect(0);
    let line = format!("{db}: left as it is, since it cannot be written\n");
    assert!(made.out.ends_with(&line), "{}", made.out);
    place
        .run(&["backup", "create", &dir, "--read-only"])
        .expect(0);
    place.run(&["backup", "create", &dir, "--flush"]).expect(1);
    stranger(&place.program, &["backup", "verify", &dir]).expect(0);
    let lock = place.db.join("LOCK").display().to_string();
    for command in [
        &["put", "a", "w"][..],
        &["compact"],
        &["repair"],
        &["destroy", "--yes"],
    ] {
        let ran = place.run(command).expect(1);
        let why = format!("{lock}: {cause}; no permission to write {lock}");
        let text = format!("error: IO error: while open a file for lock: {why}\n");
        assert_eq!(ran.err, text, "{command:?}");
    }
    assert!(contents(&place.db) == before, "something changed");
    std::fs::remove_dir_all(&copy).expect("it goes");
    std::fs::remove_dir_all(&backups).expect("it goes");
}

#[test]
fn a_foreign_directory_is_read_and_copied_and_not_written() {
    let place = Foreign::new();
    reads_and_refuses(&place, "Permission denied");
    // A checkpoint has no lock file.
    mode(&place.db, 0o755);
    std::fs::remove_file(place.db.join("LOCK")).expect("it goes");
    mode(&place.db, 0o555);
    reads_and_refuses(&place, "Permission denied");
}

/// A filesystem that is mounted for reading, until dropped.
struct ReadOnlyMount<'a>(&'a Path);

impl ReadOnlyMount<'_> {
    /// `None`, and a word, where this process may not mount.
    fn over(dir: &Path) -> Option<ReadOnlyMount<'_>> {
        let mount = |args: &[&std::ffi::OsStr]| {
            let ran = Command::new("mount").args(args).output();
            ran.is_ok_and(|ran| ran.status.success())
        };
        let at = dir.as_os_str();
        if !mount(&["--bind".as_ref(), at, at]) {
            println!("skipped: this process may not mount");
            return None;
        }
        let mounted = ReadOnlyMount(dir);
        let is_read_only = mount(&["-o".as_ref(), "remount,bind,ro".as_ref(), at]);
        if !is_read_only {
            println!("skipped: this process may not remount");
        }
        is_read_only.then_some(mounted)
    }
}

impl Drop for ReadOnlyMount<'_> {
    fn drop(&mut self) {
        let _done = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_read_only_mount_is_read_and_copied() {
    let place = Foreign::new();
    let at = place.db.clone();
    place.open_to_writers();
    if let Some(_mounted) = ReadOnlyMount::over(&at) {
        reads_and_refuses(&place, "Read-only file system");
    }
}

#[test]
fn a_lock_file_that_is_a_directory_is_no_lock_of_somebody() {
    let home = tempfile::tempdir().expect("a directory");
    let db = home.path().join("db");
    on(&db, "put", &["--create-if-missing", "a", "v"]).expect(0);
    std::fs::remove_file(db.join("LOCK")).expect("it goes");
    std::fs::create_dir(db.join("LOCK")).expect("made");
    let ran = on(&db, "put", &["a", "w"]).expect(1);
    assert!(ran.err.contains("LOCK: Is a directory"), "{}", ran.err);
    assert!(!ran.err.contains("is open in"), "{}", ran.err);
}
