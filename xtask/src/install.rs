//! `cargo xtask install`: builds the C library and the programs and lays them out below a prefix,
//! as RocksDB's own installation does; with `--java` the Java library, too, and with `--cxx` the
//! C++ library with its headers and a CMake package.
//!
//! Files are installed only after a check ([`symbols::check`]). Without `--cxx` neither a C++
//! compiler nor libclang is needed.

use crate::{Findings, cxx, installed, symbols};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version of RocksDB whose interface it is.
const VERSION: &str = "11.8.1";
/// Other names of the shared library: for programs linked with RocksDB 11, for linkers, for
/// Debian's programs.
const LINKS: &[&str] = &[symbols::SONAME, "librocksdb.so", "librocksdb.so.7.8"];

const USAGE: &str = "usage: cargo xtask install [--prefix DIR] [--destdir DIR] [--profile NAME] [--debug-info] [--java] [--cxx] [--links] | --uninstall [--prefix DIR] [--destdir DIR]";

/// The parts to install, and where.
pub(crate) struct Installation {
    /// Where it will be used from.
    pub(crate) prefix: PathBuf,
    /// Put in front of `prefix` for now, as packagers do.
    pub(crate) destdir: Option<PathBuf>,
    /// Cargo's profile.
    pub(crate) profile: String,
    /// True if debug information is kept.
    pub(crate) debug_info: bool,
    /// True if the Java library is installed as well.
    pub(crate) java: bool,
    /// True if the C++ library is installed as well.
    pub(crate) cxx: bool,
    /// True if the programs are installed, too.
    pub(crate) programs: bool,
    /// True if `esker` gets the names of RocksDB's tools as well.
    pub(crate) links: bool,
}

/// The programs, with the package that each is in.
const PROGRAMS: [(&str, &str); 2] = [("esker-cli", "esker"), ("esker-lab", "db_bench")];

/// The products of a build.
struct Built {
    shared: PathBuf,
    archive: PathBuf,
    /// Flags that the archive asks of the linker: `-lm -lc` and so on.
    native: String,
}

/// Installs as `args` say.
pub(crate) fn run(root: &Path, args: &[&str]) -> io::Result<Findings> {
    let mut wanted = Installation {
        prefix: "/usr/local".into(),
        destdir: None,
        profile: "release".into(),
        debug_info: false,
        java: false,
        cxx: false,
        programs: true,
        links: false,
    };
    let mut removes = false;
    let mut args = args.iter();
    while let Some(&flag) = args.next() {
        let mut value = || args.next().copied().ok_or_else(|| io::Error::other(USAGE));
        match flag {
            "--prefix" => wanted.prefix = std::path::absolute(value()?)?,
            "--destdir" => wanted.destdir = Some(std::path::absolute(value()?)?),
            "--profile" => wanted.profile = value()?.to_owned(),
            "--debug-info" => wanted.debug_info = true,
            "--java" => wanted.java = true,
            "--cxx" => wanted.cxx = true,
            "--links" => wanted.links = true,
            "--uninstall" => removes = true,
            _ => return Err(io::Error::other(USAGE)),
        }
    }
    if removes {
        installed::uninstall(&wanted.place())?;
        return Ok(Findings::new());
    }
    install(root, &wanted)
}

/// Builds, checks, and copies; with findings, nothing is copied.
pub(crate) fn install(root: &Path, wanted: &Installation) -> io::Result<Findings> {
    let place = wanted.place();
    if wanted.links {
        installed::check_links(&place)?;
    }
    let built = build(root, wanted)?;
    let findings = symbols::check(root, &built.shared)?;
    if !findings.is_empty() {
        return Ok(findings);
    }
    let mut files = installed::InstalledFiles::default();
    let lib = place.join("lib");
    let whole_name = format!("librocksdb.so.{VERSION}");
    copy(&built.shared, &lib.join(&whole_name), 0o755)?;
    copy(&built.archive, &lib.join("librocksdb.a"), 0o644)?;
    if !wanted.debug_info {
        strip(&lib.join(&whole_name))?;
        strip(&lib.join("librocksdb.a"))?;
    }
    for name in LINKS {
        let link = lib.join(name);
        if link.symlink_metadata().is_ok() {
            std::fs::remove_file(&link)?;
        }
        symlink(&whole_name, &link)?;
        files.add(format!("lib/{name}"));
    }
    for name in [whole_name.as_str(), "librocksdb.a", "pkgconfig/rocksdb.pc"] {
        files.add(format!("lib/{name}"));
    }
    if wanted.java {
        install_java(root, wanted, &lib)?;
        files.add("lib/librocksdbjni.so".to_owned());
        files.add("lib/librocksdbjni-linux64.so".to_owned());
    }
    for header in ["c.h", "esker.h"] {
        let name = format!("include/rocksdb/{header}");
        let from = root.join("crates/capi/include/rocksdb").join(header);
        copy(&from, &place.join(&name), 0o644)?;
        files.add(name);
    }
    if wanted.cxx {
        for file in cxx::installation(root, VERSION)? {
            copy(&file.from, &place.join(&file.to), 0o644)?;
            files.add(file.to);
        }
    }
    let description = lib.join("pkgconfig/rocksdb.pc");
    std::fs::create_dir_all(lib.join("pkgconfig"))?;
    std::fs::write(
        &description,
        pkg_config(&wanted.prefix, &built.native, wanted.cxx),
    )?;
    if wanted.programs {
        install_programs(root, wanted)?;
        for (_, program) in PROGRAMS {
            files.add(format!("bin/{program}"));
        }
    }
    if wanted.links {
        for name in installed::make_links(&place)? {
            files.add(name);
        }
    }
    files.write(&place)?;
    println!(
        "installed below {}: {whole_name} with {} links, librocksdb.a, rocksdb/c.h, rocksdb.pc{}",
        place.display(),
        LINKS.len(),
        if wanted.cxx {
            ", librocksdb_cxx.a with its headers"
        } else {
            ""
        },
    );
    Ok(findings)
}

/// Builds and copies the programs.
fn install_programs(root: &Path, wanted: &Installation) -> io::Result<()> {
    let bin = wanted.place().join("bin");
    for (package, program) in PROGRAMS {
        let mut command = cargo(root, true);
        command
            .args(["build", "-p", package, "--bin", program])
            .args(["--profile", &wanted.profile])
            .arg("--message-format=json-render-diagnostics")
            .stderr(Stdio::inherit());
        let output = command.output()?;
        if !output.status.success() {
            return Err(io::Error::other(format!("{program} does not build")));
        }
        let built = executable(&output.stdout, program)?;
        copy(&built, &bin.join(program), 0o755)?;
        if !wanted.debug_info {
            strip(&bin.join(program))?;
        }
    }
    println!("installed below {}: esker, db_bench", bin.display());
    Ok(())
}

/// The program that cargo says it made.
pub(crate) fn executable(stdout: &[u8], program: &str) -> io::Result<PathBuf> {
    let lines = stdout.split(|byte| *byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    messages
        .filter(|message| message["target"]["name"] == program)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| io::Error::other(format!("cargo names no {program}")))
}

/// Cargo, for what is used elsewhere told of the commit that is built, where git knows it. Each
/// commit compiles the engine anew then, which tests of an installation are spared.
fn cargo(root: &Path, is_for_use: bool) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    let git = Command::new("git")
        .current_dir(root)
        .args(["rev-parse", "HEAD"])
        .output();
    if let Ok(output) = git
        && output.status.success()
        && is_for_use
    {
        let sha = String::from_utf8_lossy(&output.stdout);
        command.env("ESKER_GIT_SHA", sha.trim());
    }
    command
}

impl Installation {
    /// Where files go now.
    fn place(&self) -> PathBuf {
        match &self.destdir {
            None => self.prefix.clone(),
            Some(dir) => dir.join(self.prefix.strip_prefix("/").unwrap_or(&self.prefix)),
        }
    }
}

/// Builds the library, and listens to what the compiler says on the way.
fn build(root: &Path, wanted: &Installation) -> io::Result<Built> {
    let mut child = cargo(root, wanted.programs)
        .args([
            "rustc",
            "-p",
            "esker-capi",
            "--lib",
            "--profile",
            &wanted.profile,
        ])
        // Beside a Rust library Cargo would leave out optimisation across crates.
        .args(["--crate-type", "cdylib,staticlib"])
        .args(["--message-format=json-render-diagnostics"])
        .args(["--", "--print", "native-static-libs"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().expect("a pipe was asked for");
    let stderr = child.stderr.take().expect("a pipe was asked for");
    // Both at once, or a full pipe would stop the compiler.
    let listener = std::thread::spawn(move || native_libraries(stderr));
    let files = artifacts(stdout)?;
    let native = listener.join().expect("reading does not panic")?;
    if !child.wait()?.success() {
        return Err(io::Error::other("the library does not build"));
    }
    let find = |name: &str| -> io::Result<PathBuf> {
        let found = files.iter().find(|path| path.ends_with(name));
        found
            .cloned()
            .ok_or_else(|| io::Error::other(format!("no {name} was built")))
    };
    Ok(Built {
        shared: find("librocksdb.so")?,
        archive: find("librocksdb.a")?,
        native: native.ok_or_else(|| io::Error::other("the compiler names no native libraries"))?,
    })
}

/// The Java library, under both names that the stock jars look for.
fn install_java(root: &Path, wanted: &Installation, lib: &Path) -> io::Result<()> {
    const NAME: &str = "librocksdbjni.so";
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut child = Command::new(cargo)
        .current_dir(root)
        .args([
            "rustc",
            "-p",
            "esker-jni",
            "--lib",
            "--profile",
            &wanted.profile,
        ])
        .args(["--crate-type", "cdylib"])
        .args(["--message-format=json-render-diagnostics"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let files = artifacts(child.stdout.take().expect("a pipe was asked for"))?;
    if !child.wait()?.success() {
        return Err(io::Error::other("the Java library does not build"));
    }
    let built = files.iter().find(|path| path.ends_with(NAME));
    let built = built.ok_or_else(|| io::Error::other(format!("no {NAME} was built")))?;
    let to = lib.join(NAME);
    copy(built, &to, 0o755)?;
    if !wanted.debug_info {
        strip(&to)?;
    }
    let link = lib.join("librocksdbjni-linux64.so");
    if link.symlink_metadata().is_ok() {
        std::fs::remove_file(&link)?;
    }
    symlink(NAME, &link)
}

/// The files that cargo says it made.
fn artifacts(stdout: impl Read) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let is_ours = ["rocksdb", "rocksdbjni"]
            .iter()
            .any(|n| message["target"]["name"] == *n);
        if message["reason"] == "compiler-artifact" && is_ours {
            let names = message["filenames"].as_array().into_iter().flatten();
            files.extend(names.filter_map(Value::as_str).map(PathBuf::from));
        }
    }
    Ok(files)
}

/// Passes on what the compiler says, and keeps what it says of native libraries.
fn native_libraries(stderr: impl Read) -> io::Result<Option<String>> {
    const MARK: &str = "native-static-libs: ";
    let mut found = None;
    for line in BufReader::new(stderr).lines() {
        let line = line?;
        match line.split_once(MARK) {
            Some((_, list)) => found = Some(list.trim().to_owned()),
            None if line.is_empty() || line.starts_with("note: link against") => {}
            None => eprintln!("{line}"),
        }
    }
    Ok(found)
}

/// A copy in one step: a program that has the old file mapped keeps it.
fn copy(from: &Path, to: &Path, mode: u32) -> io::Result<()> {
    let at = |error: io::Error| io::Error::other(format!("{}: {error}", to.display()));
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(at)?;
    }
    let mut fresh = to.as_os_str().to_owned();
    fresh.push(".new");
    std::fs::copy(from, &fresh).map_err(at)?;
    std::fs::set_permissions(&fresh, PermissionsExt::from_mode(mode)).map_err(at)?;
    std::fs::rename(&fresh, to).map_err(at)
}

fn strip(path: &Path) -> io::Result<()> {
    let status = Command::new("strip")
        .arg("--strip-debug")
        .arg(path)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("strip: {status}"))),
        Err(error) => Err(io::Error::other(format!("strip (binutils): {error}"))),
    }
}

fn pkg_config(prefix: &Path, native: &str, has_cxx: bool) -> String {
    // A program in C takes nothing from the C++ library.
    let libraries = if has_cxx {
        "-lrocksdb_cxx -lrocksdb"
    } else {
        "-lrocksdb"
    };
    format!(
        "prefix={}\n\
         exec_prefix=${{prefix}}\n\
         libdir=${{exec_prefix}}/lib\n\
         includedir=${{prefix}}/include\n\
         \n\
         Name: rocksdb\n\
         Description: Embedded key-value store with RocksDB's C interface (Esker)\n\
         Version: {VERSION}\n\
         Libs: -L${{libdir}} {libraries}\n\
         Libs.private: {native}\n\
         Cflags: -I${{includedir}}\n",
        prefix.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destdir_stands_before_the_prefix() {
        let mut wanted = Installation {
            prefix: "/opt/esker".into(),
            destdir: None,
            profile: "release".into(),
            debug_info: false,
            java: false,
            cxx: false,
            programs: false,
            links: false,
        };
        assert_eq!(wanted.place(), Path::new("/opt/esker"));
        wanted.destdir = Some("/stage".into());
        assert_eq!(wanted.place(), Path::new("/stage/opt/esker"));
        let text = pkg_config(&wanted.prefix, "-lm -lc", false);
        assert!(text.starts_with("prefix=/opt/esker\n"), "{text}");
        assert!(text.contains("\nLibs.private: -lm -lc\n"), "{text}");
        let text = pkg_config(&wanted.prefix, "-lm -lc", true);
        assert!(text.contains(" -lrocksdb_cxx -lrocksdb\n"), "{text}");
        assert!(text.contains("\nlibdir=${exec_prefix}/lib\n"), "{text}");
    }

    #[test]
    fn what_cargo_and_the_compiler_say_is_understood() {
        let said = "note: link against\nnote: native-static-libs: -lgcc_s -lc\n";
        let found = native_libraries(said.as_bytes()).expect("a slice is read");
        assert_eq!(found.as_deref(), Some("-lgcc_s -lc"));
        let said = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"rocksdb\"},\"filenames\":[\"/t/librocksdb.so\"]}\n\
                    {\"reason\":\"build-finished\"}\n";
        let files = artifacts(said.as_bytes()).expect("lines of JSON");
        assert_eq!(files, [Path::new("/t/librocksdb.so")]);
    }
}
