//! The library under test: built here, or given, and staged under the names that programs ask for.

use super::Request;
use super::package::cargo;
use super::process::must;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A staged library, and where an oracle may work.
pub(super) struct Staged {
    /// Holds `librocksdb.so` and its links.
    pub(super) directory: PathBuf,
    /// Below cargo's target directory; kept between runs.
    pub(super) work: PathBuf,
}

/// Where cargo puts what it builds for this repository.
pub(crate) fn target_directory(root: &Path) -> io::Result<PathBuf> {
    let output = Command::new(cargo())
        .current_dir(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let directory = found["target_directory"].as_str();
    directory
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other("cargo metadata names no target directory"))
}

/// Builds the library with the profile that was asked for.
fn build(request: &Request, target: &Path) -> io::Result<PathBuf> {
    let mut command = Command::new(cargo());
    command.current_dir(&request.root);
    command.args(["rustc", "-p", "esker-capi", "--lib"]);
    command.args(["--profile", &request.profile]);
    // As it is installed: beside a Rust library Cargo would leave out optimisation across crates.
    command.args(["--crate-type", "cdylib"]);
    let mut place = target.to_owned();
    if request.sanitize {
        // A compiler's own runtime must be found by the program that loads the library.
        let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        command.args(["--target", &triple]);
        // The sanitizers are unstable options of a stable compiler.
        command.env("RUSTC_BOOTSTRAP", "1");
        command.env("RUSTFLAGS", "-Zsanitizer=address");
        place = target.join("oracle/sanitized").join(&triple);
        command.env("CARGO_TARGET_DIR", target.join("oracle/sanitized"));
    }
    must(&mut command, "building librocksdb.so")?;
    let folder = match request.profile.as_str() {
        "dev" => "debug",
        other => other,
    };
    Ok(place.join(folder).join("librocksdb.so"))
}

/// Builds or takes the library, and makes links to it in a directory of its own.
pub(super) fn stage(request: &Request, oracle: &str) -> io::Result<Staged> {
    let target = target_directory(&request.root)?;
    let library = match &request.library {
        Some(given) => given.clone(),
        None => build(request, &target)?,
    };
    let library = library
        .canonicalize()
        .map_err(|error| io::Error::other(format!("{}: {error}", library.display())))?;
    println!("library: {}", library.display());
    let work = target.join("oracle");
    let directory = work.join(format!("{oracle}-lib"));
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    let own_name = library.file_name().map(|name| name.to_string_lossy());
    let own_name = own_name.unwrap_or_default().into_owned();
    for name in [
        "librocksdb.so",
        "librocksdb.so.11",
        "librocksdb.so.7.8",
        &own_name,
    ] {
        let link = directory.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(&library, link)?;
        }
    }
    Ok(Staged { directory, work })
}

impl Staged {
    /// A directory of the work area, empty.
    pub(super) fn fresh(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.work.join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }
}
