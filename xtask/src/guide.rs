//! `cargo xtask guide`: runs the commands of the pages in `docs/guide`.
//!
//! The library and `esker` are installed below cargo's target directory first. Then each page is
//! one run of bash in an empty directory of its own: its blocks marked `sh`, in order, stopping at
//! the first command that fails. The word after `sh` names what a block needs ([`Need`]); a block
//! is skipped, with the reason, where that is missing. A block marked `output` is what the block
//! before it prints.

mod page;

use crate::install::{self, Installation};
use crate::oracle::process::{must, watch};
use crate::oracle::{go_suite, library, package};
use crate::{Findings, cxx};
use page::{Block, Need};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const USAGE: &str =
    "usage: cargo xtask guide [--profile NAME | --prefix DIR (installed already)] [--only PAGE]";

/// How long a page may say nothing.
const PATIENCE: Duration = Duration::from_secs(240);

/// Where things are.
struct Place {
    /// The checkout, `$SOURCE` on the pages.
    source: PathBuf,
    /// Where the library and `esker` are, `$PREFIX` on the pages.
    prefix: PathBuf,
    /// Where pages run; emptied before.
    work: PathBuf,
}

/// Runs the pages of the guide.
pub(crate) fn run(root: &Path, args: &[&str]) -> io::Result<Findings> {
    let (mut profile, mut prefix, mut only) = ("release", None, "");
    let mut args = args.iter();
    while let Some(&word) = args.next() {
        let mut value = || args.next().copied().ok_or_else(|| io::Error::other(USAGE));
        match word {
            "--profile" => profile = value()?,
            "--prefix" => prefix = Some(std::path::absolute(value()?)?),
            "--only" => only = value()?,
            _ => return Err(io::Error::other(USAGE)),
        }
    }
    let work = library::target_directory(root)?.join("guide");
    let place = Place {
        source: root.to_owned(),
        prefix: prefix.clone().unwrap_or_else(|| work.join("prefix")),
        work,
    };
    if prefix.is_none() {
        let findings = place.install(profile)?;
        if !findings.is_empty() {
            return Ok(findings);
        }
    }
    let mut findings = Findings::new();
    for path in pages(&root.join("docs/guide"))? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if name.contains(only) {
            findings.extend(place.page(&name, &std::fs::read_to_string(&path)?)?);
        }
    }
    Ok(findings)
}

/// The pages, in the order of their names.
fn pages(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

impl Place {
    /// The library as users install it, and the `esker` of the same profile.
    fn install(&self, profile: &str) -> io::Result<Findings> {
        let wanted = Installation {
            prefix: self.prefix.clone(),
            destdir: None,
            profile: profile.to_owned(),
            debug_info: false,
            java: false,
            cxx: cxx::has_compiler(),
            // They would be compiled anew for each commit, whose name is in them.
            programs: false,
            links: false,
        };
        let findings = install::install(&self.source, &wanted)?;
        if findings.is_empty() {
            let mut command = Command::new(package::cargo());
            command.current_dir(&self.source);
            command.args(["build", "--bin", "esker"]);
            command.args(["--profile", profile]);
            command.arg("--message-format=json-render-diagnostics");
            let output = command.stderr(Stdio::inherit()).output()?;
            let built = install::executable(&output.stdout, "esker")?;
            let bin = self.prefix.join("bin");
            std::fs::create_dir_all(&bin)?;
            std::fs::copy(built, bin.join("esker"))?;
        }
        Ok(findings)
    }

    fn page(&self, name: &str, text: &str) -> io::Result<Findings> {
        let blocks = match page::blocks(text) {
            Ok(blocks) if blocks.is_empty() => return Ok(Findings::new()),
            Ok(blocks) => blocks,
            Err(problem) => return Ok(vec![format!("{name}: {problem}")]),
        };
        let began = Instant::now();
        let mut missing = HashMap::new();
        let mut to_run = Vec::new();
        for block in &blocks {
            let why = match missing.get(&block.need) {
                Some(known) => known,
                None => &*missing
                    .entry(block.need)
                    .or_insert(self.missing(block.need)?),
            };
            match why {
                None => to_run.push(block),
                Some(_) if block.need == Need::Install => {}
                Some(why) => println!("{name}:{}: SKIPPED, {why}", block.line),
            }
        }
        let findings = self.blocks(name, &to_run)?;
        println!(
            "{name}: {} of {} blocks in {:.1} s",
            to_run.len(),
            blocks.len(),
            began.elapsed().as_secs_f32()
        );
        Ok(findings)
    }

    /// Runs blocks in an empty directory.
    fn blocks(&self, name: &str, blocks: &[&Block]) -> io::Result<Findings> {
        let (run, said) = (self.work.join("run"), self.work.join("said"));
        for directory in [&run, &said] {
            if directory.exists() {
                std::fs::remove_dir_all(directory)?;
            }
            std::fs::create_dir_all(directory)?;
        }
        let mut command = Command::new("bash");
        command
            .current_dir(&run)
            .args(["-c", &page::script(blocks)]);
        command.env("SAID", &said);
        command
            .env("PREFIX", &self.prefix)
            .env("SOURCE", &self.source);
        command.env("CARGO_TARGET_DIR", self.work.join("target"));
        command.env("PATH", self.path()?);
        let ended = watch(&mut command, PATIENCE, |_| {})?;
        let mut findings = Findings::new();
        for (at, block) in blocks.iter().enumerate() {
            let Ok(printed) = std::fs::read_to_string(said.join(at.to_string())) else {
                break;
            };
            let is_last = blocks.len() == at + 1 || !said.join((at + 1).to_string()).exists();
            if is_last && !ended.success() {
                findings.push(format!(
                    "{name}:{}: {}\n{printed}{}",
                    block.line,
                    ended.how(),
                    ended.text()
                ));
            } else if let Some(expected) = block.output.as_ref().filter(|e| **e != printed) {
                findings.push(format!(
                    "{name}:{}: printed\n{printed}in the place of\n{expected}",
                    block.line
                ));
            }
        }
        Ok(findings)
    }

    /// Where programs are looked for: the installed ones first.
    fn path(&self) -> io::Result<std::ffi::OsString> {
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let mut parts = vec![self.prefix.join("bin")];
        parts.extend(std::env::split_paths(&usual));
        parts.extend(go_suite::go().parent().map(Path::to_owned));
        std::env::join_paths(parts).map_err(io::Error::other)
    }

    /// Why a block with this need cannot run, if so.
    fn missing(&self, need: Need) -> io::Result<Option<String>> {
        let tools = |names: &[&str]| {
            let missing = names.iter().find(|name| !is_at_hand(name));
            missing.map(|name| format!("{name} is not installed"))
        };
        Ok(match need {
            Need::Nothing => None,
            Need::Install => Some("done before the pages run".into()),
            Need::C => tools(&["cc", "pkg-config"]),
            Need::Cxx if !cxx::has_compiler() => Some("no C++ compiler is installed".into()),
            Need::Cxx => tools(&["pkg-config", "cmake"]),
            Need::Python => tools(&["python3"]),
            Need::Go => self.go()?,
            Need::Rust => self.rust()?,
        })
    }

    /// Builds the binding and the example, so that the page finds them built.
    fn go(&self) -> io::Result<Option<String>> {
        let go = |args: &[&str]| {
            let mut command = Command::new(go_suite::go());
            command.current_dir(self.source.join("examples/go"));
            command.args(args);
            command
        };
        if go(&["version"]).output().is_err() {
            return Ok(Some("go is not installed".into()));
        }
        if must(&mut go(&["mod", "download"]), "downloading grocksdb").is_err() {
            return Ok(Some("grocksdb cannot be downloaded".into()));
        }
        let prefix = self.prefix.display();
        let mut build = go(&["build", "-tags", "grocksdb_no_link", "-o"]);
        build.arg(self.work.join("quickstart-go"));
        build.env("CGO_CFLAGS", format!("-I{prefix}/include"));
        build.env("CGO_LDFLAGS", format!("-L{prefix}/lib -lrocksdb"));
        must(&mut build, "building the example in Go").map(|_| None)
    }

    /// Builds the example of the crate `rocksdb`, so that the page finds it built.
    fn rust(&self) -> io::Result<Option<String>> {
        if !has_libclang() {
            return Ok(Some("libclang is not installed".into()));
        }
        let cargo = |word: &str| {
            let mut command = Command::new(package::cargo());
            command.current_dir(self.source.join("examples/rust-rocksdb-crate"));
            command.args([word, "--locked"]);
            command
        };
        if must(&mut cargo("fetch"), "downloading the crate rocksdb").is_err() {
            return Ok(Some("the crate rocksdb cannot be downloaded".into()));
        }
        let include = Command::new("cc")
            .arg("-print-file-name=include")
            .output()?;
        let include = String::from_utf8_lossy(&include.stdout).trim().to_owned();
        let mut build = cargo("build");
        build.env("CARGO_TARGET_DIR", self.work.join("target"));
        build.env("ROCKSDB_LIB_DIR", self.prefix.join("lib"));
        build.env("ROCKSDB_INCLUDE_DIR", self.prefix.join("include"));
        build.env("BINDGEN_EXTRA_CLANG_ARGS", format!("-isystem {include}"));
        must(&mut build, "building the example in Rust").map(|_| None)
    }
}

/// Returns whether a tool is on the path.
fn is_at_hand(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(tool).is_file())
}

/// Returns whether libclang is in one of the usual places.
fn has_libclang() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    let listed = |directory: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.flatten().map(|entry| entry.path()).collect()
    };
    let mut directories: Vec<PathBuf> = listed("/usr/lib");
    for inner in directories.clone() {
        directories.push(inner.join("lib"));
    }
    directories.extend(["/usr/lib".into(), "/usr/lib64".into()]);
    directories.iter().any(|directory| {
        listed(&directory.to_string_lossy()).iter().any(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libclang") && name.contains(".so") && !name.contains("cpp")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_in(name: &str, text: &str) -> Findings {
        let place = Place {
            source: crate::root(),
            prefix: std::env::temp_dir().join("esker-guide-prefix"),
            work: std::env::temp_dir().join(format!("esker-guide-{name}-{}", std::process::id())),
        };
        let findings = place.page(name, text).expect("bash runs");
        std::fs::remove_dir_all(&place.work).expect("the directory was made here");
        findings
    }

    #[test]
    fn blocks_share_a_directory_and_variables() {
        let text = "```sh\nA=one; echo $A >file\n```\n```sh\ncat file\n```\n```output\none\n```\n";
        assert_eq!(page_in("shared", text), Findings::new());
    }

    #[test]
    fn a_command_that_fails_is_found_with_its_line() {
        let text = "x\n```sh\ntrue\n```\n```sh\necho said; false; true\n```\n```sh\ntrue\n```\n";
        let findings = page_in("fails", text);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("fails:5: "), "{findings:?}");
        assert!(findings[0].contains("said"), "{findings:?}");
    }

    #[test]
    fn other_output_is_found() {
        let findings = page_in("differs", "```sh\necho b\n```\n```output\na\n```\n");
        assert_eq!(
            findings,
            ["differs:1: printed\nb\nin the place of\na\n".to_owned()]
        );
    }

    #[test]
    fn the_pages_of_the_guide_are_understood() {
        let mut commands = 0;
        for path in pages(&crate::root().join("docs/guide")).expect("the guide is there") {
            let text = std::fs::read_to_string(&path).expect("a page is text");
            match page::blocks(&text) {
                Ok(blocks) => commands += blocks.len(),
                Err(problem) => panic!("{}: {problem}", path.display()),
            }
        }
        assert!(commands >= 20, "{commands} blocks");
    }
}
