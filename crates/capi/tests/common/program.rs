//! C programs that are linked with the library as cargo built it.

use super::loaded::ours;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Compiles a program of this directory; `None` where there is no compiler. The directory has the
/// library too, and is open to every user.
pub(crate) fn compile(source: &str) -> Option<(TempDir, PathBuf)> {
    let dir = tempfile::tempdir().expect("a directory");
    // As an installation has it; cargo's own directory may be closed to other users.
    fs::copy(ours(), dir.path().join("librocksdb.so")).expect("copies");
    symlink("librocksdb.so", dir.path().join("librocksdb.so.11")).expect("links");
    let program = dir.path().join("program");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Werror", "-pthread", "-o"]);
    cc.arg(&program).arg(root.join("tests").join(source));
    cc.arg("-I").arg(root.join("include"));
    cc.arg("-L").arg(dir.path()).arg("-lrocksdb");
    cc.arg(format!("-Wl,-rpath,{}", dir.path().display()));
    match cc.status() {
        Ok(status) => assert!(status.success(), "{source} compiles"),
        Err(_) => {
            println!("skipped: cc is not installed");
            return None;
        }
    }
    let all = fs::Permissions::from_mode(0o755);
    fs::set_permissions(dir.path(), all).expect("a mode");
    Some((dir, program))
}

/// Copies a program that this process will start. A child of its own writes the copy: a file that
/// this process has open for writing is busy in each child that another test forks meanwhile.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    let status = Command::new("cp").arg(from).arg(to).status();
    assert!(status.expect("cp starts").success(), "copies");
}
