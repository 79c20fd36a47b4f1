//! `cargo xtask examples`: installs the C library below cargo's target directory, then builds and
//! runs the programs in `examples` on it, and compares what they print with
//! `examples/expected.txt`.
//!
//! Without names it runs those that need neither downloads nor long builds. What cannot run for
//! want of a tool is skipped, and said.

use crate::Findings;
use crate::install::{self, Installation};
use crate::oracle::process::{must, watch};
use crate::oracle::{go_suite, library, package};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const USAGE: &str = "usage: cargo xtask examples [c|python|go|rust|replicated ...|all] \
    [--profile NAME] [--prefix DIR (installed already)]";

const ALL: &[&str] = &["c", "python", "go", "rust", "replicated"];
const QUICK: &[&str] = &["c", "python"];
/// How long a program may say nothing.
const PATIENCE: Duration = Duration::from_secs(240);

/// Where things are.
struct Place {
    /// `examples`.
    sources: PathBuf,
    /// Where the library is installed.
    prefix: PathBuf,
    /// Where programs are built and run; kept between runs.
    work: PathBuf,
}

/// How an example went, apart from errors.
enum Outcome {
    /// It printed what it should.
    Passed,
    /// It printed something else.
    Differs(String),
    /// A tool is missing.
    Skipped(String),
}

/// Runs the examples that `args` name.
pub(crate) fn run(root: &Path, args: &[&str]) -> io::Result<Findings> {
    let (mut names, mut profile, mut prefix) = (Vec::new(), "release", None);
    let mut args = args.iter();
    while let Some(&word) = args.next() {
        let mut value = || args.next().copied().ok_or_else(|| io::Error::other(USAGE));
        match word {
            "--profile" => profile = value()?,
            "--prefix" => prefix = Some(std::path::absolute(value()?)?),
            "all" => names.extend(ALL),
            name if ALL.contains(&name) => names.push(name),
            _ => return Err(io::Error::other(USAGE)),
        }
    }
    if names.is_empty() {
        names.extend(QUICK);
    }
    let work = library::target_directory(root)?.join("examples-of-use");
    let place = Place {
        sources: root.join("examples"),
        prefix: prefix.clone().unwrap_or_else(|| work.join("prefix")),
        work,
    };
    if prefix.is_none() {
        let wanted = Installation {
            prefix: place.prefix.clone(),
            destdir: None,
            profile: profile.to_owned(),
            debug_info: false,
            java: false,
            cxx: false,
            programs: false,
            links: false,
        };
        let findings = install::install(root, &wanted)?;
        if !findings.is_empty() {
            return Ok(findings);
        }
    }
    let mut findings = Findings::new();
    let (mut passed, mut skipped) = (0, 0);
    for name in names {
        match place.example(name)? {
            Outcome::Passed => {
                println!("{name}: passed");
                passed += 1;
            }
            Outcome::Skipped(why) => {
                println!("{name}: SKIPPED, {why}");
                skipped += 1;
            }
            Outcome::Differs(how) => findings.push(format!("{name}: {how}")),
        }
    }
    println!(
        "examples: {passed} passed, {} failed, {skipped} skipped",
        findings.len()
    );
    Ok(findings)
}

impl Place {
    fn example(&self, name: &str) -> io::Result<Outcome> {
        match name {
            "c" => self.c(),
            "python" => self.python(),
            "go" => self.go(),
            "rust" => self.cargo("rust-rocksdb-crate", "quickstart"),
            _ => self.cargo("replicated", "replicated"),
        }
    }

    fn lib(&self) -> PathBuf {
        self.prefix.join("lib")
    }

    /// Linked to the shared library, then to the archive.
    fn c(&self) -> io::Result<Outcome> {
        for tool in ["cc", "pkg-config"] {
            if !is_at_hand(tool) {
                return Ok(Outcome::Skipped(format!("{tool} is not installed")));
            }
        }
        let words = self.pkg_config(&["--cflags", "--libs"])?;
        let shared = self.compile("quickstart-shared", &words)?;
        let outcome = self.compare(&mut Command::new(shared))?;
        if !matches!(outcome, Outcome::Passed) {
            return Ok(outcome);
        }
        let mut words = self.pkg_config(&["--cflags"])?;
        words.push(self.lib().join("librocksdb.a").display().to_string());
        let beside = self.pkg_config(&["--static", "--libs-only-l"])?;
        words.extend(beside.into_iter().filter(|word| word != "-lrocksdb"));
        let fixed = self.compile("quickstart-static", &words)?;
        self.compare(&mut Command::new(fixed))
    }

    fn pkg_config(&self, args: &[&str]) -> io::Result<Vec<String>> {
        let mut command = Command::new("pkg-config");
        command.args(args).arg("rocksdb");
        command.env("PKG_CONFIG_PATH", self.lib().join("pkgconfig"));
        let output = command.output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(why));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }

    fn compile(&self, name: &str, words: &[String]) -> io::Result<PathBuf> {
        let program = self.work.join(name);
        let mut command = Command::new("cc");
        command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]);
        command.arg(&program);
        command.arg(self.sources.join("c/quickstart.c")).args(words);
        must(&mut command, &format!("compiling {name}"))?;
        Ok(program)
    }

    fn python(&self) -> io::Result<Outcome> {
        if !is_at_hand("python3") {
            return Ok(Outcome::Skipped("python3 is not installed".into()));
        }
        let mut command = Command::new("python3");
        command.arg(self.sources.join("python/quickstart.py"));
        self.compare(&mut command)
    }

    fn go(&self) -> io::Result<Outcome> {
        let go = go_suite::go();
        if Command::new(&go).arg("version").output().is_err() {
            return Ok(Outcome::Skipped("go is not installed".into()));
        }
        let program = self.work.join("quickstart-go");
        let mut command = Command::new(go);
        command.current_dir(self.sources.join("go"));
        command.args(["build", "-tags", "grocksdb_no_link", "-o"]);
        command.arg(&program);
        command.env("CGO_ENABLED", "1");
        let include = self.prefix.join("include");
        command.env("CGO_CFLAGS", format!("-I{}", include.display()));
        let flags = format!("-L{} -lrocksdb", self.lib().display());
        command.env("CGO_LDFLAGS", flags);
        must(&mut command, "building the example in Go")?;
        self.compare(&mut Command::new(program))
    }

    /// Builds and runs a workspace of its own that uses the `rocksdb` crate.
    fn cargo(&self, directory: &str, program: &str) -> io::Result<Outcome> {
        let target = self.work.join(directory);
        let mut command = Command::new(package::cargo());
        command.current_dir(self.sources.join(directory));
        command.args(["build", "--locked"]);
        command.env("CARGO_TARGET_DIR", &target);
        command.env("ROCKSDB_LIB_DIR", self.lib());
        command.env("ROCKSDB_INCLUDE_DIR", self.prefix.join("include"));
        if std::env::var_os("BINDGEN_EXTRA_CLANG_ARGS").is_none() {
            // libclang without its own headers finds the C compiler's.
            let ask = Command::new("cc").arg("-print-file-name=include").output();
            if let Ok(found) = ask.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()) {
                command.env("BINDGEN_EXTRA_CLANG_ARGS", format!("-isystem {found}"));
            }
        }
        match must(&mut command, &format!("building {directory}")) {
            Ok(_) => {}
            Err(e) if e.to_string().contains("Unable to find libclang") => {
                return Ok(Outcome::Skipped("libclang is not installed".into()));
            }
            Err(error) => return Err(error),
        }
        let mut command = Command::new(target.join("debug").join(program));
        if directory != "replicated" {
            return self.compare(&mut command);
        }
        command.arg("trial").env("LD_LIBRARY_PATH", self.lib());
        let ended = watch(&mut command, PATIENCE, |line| println!("  {line}"))?;
        let whole = ended.lines.last().is_some_and(|l| l == "nothing was lost");
        if ended.success() && whole {
            Ok(Outcome::Passed)
        } else {
            Ok(Outcome::Differs(ended.how()))
        }
    }

    /// Runs a program on an empty directory, and compares what it prints.
    fn compare(&self, command: &mut Command) -> io::Result<Outcome> {
        let directory = self.work.join("data");
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        std::fs::create_dir_all(&directory)?;
        command.arg(&directory).env("LD_LIBRARY_PATH", self.lib());
        let ended = watch(command, PATIENCE, |_| {})?;
        let expected = std::fs::read_to_string(self.sources.join("expected.txt"))?;
        if ended.success() && ended.lines.iter().eq(expected.lines()) {
            return Ok(Outcome::Passed);
        }
        Ok(Outcome::Differs(format!(
            "{}, and printed\n{}\nin the place of\n{expected}",
            ended.how(),
            ended.text()
        )))
    }
}

/// Returns whether a tool is on the path.
fn is_at_hand(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(tool).is_file())
}
