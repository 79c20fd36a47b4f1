//! `cargo xtask wheel`: the Python package, and its tests.
//!
//! Maturin builds the wheel, in a virtual environment below cargo's target directory, into which
//! `--test` installs it, with mypy for the check of the type stubs. Without Python, or without
//! these two and a registry to have them from, the task says so and does nothing.

use crate::Findings;
use crate::oracle::library::target_directory;
use crate::package::must;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const USAGE: &str = "usage: cargo xtask wheel [--profile NAME] [--test]";
/// Tools of the environment, by the names and versions of Python's registry.
const TOOLS: [&str; 2] = ["maturin>=1.9.4,<2", "mypy>=1.19,<3"];

/// The virtual environment.
struct VirtualEnv(PathBuf);

impl VirtualEnv {
    /// The environment with its tools; `None`, and why, where it cannot be made.
    fn make(at: PathBuf) -> Result<Self, String> {
        let environment = VirtualEnv(at);
        let new_enough = "import sys, venv; sys.exit(sys.version_info < (3, 9))";
        if !is_quiet(Command::new("python3").args(["-c", new_enough])) {
            return Err("python3, 3.9 or later with venv, is not installed".to_owned());
        }
        if !is_quiet(environment.program("python").arg("--version")) {
            let mut command = Command::new("python3");
            command.args(["-m", "venv", "--clear"]).arg(&environment.0);
            if !is_quiet(&mut command) {
                return Err("python3 makes no virtual environment".to_owned());
            }
        }
        let mut check = environment.program("python");
        check.args(["-c", "import maturin, mypy"]);
        let mut install = environment.pip();
        install.args(["install", "--quiet"]).args(TOOLS);
        if !is_quiet(&mut check) && !is_quiet(&mut install) {
            return Err(format!("{} cannot be installed", TOOLS.join(" and ")));
        }
        Ok(environment)
    }

    fn program(&self, name: &str) -> Command {
        Command::new(self.0.join("bin").join(name))
    }

    fn pip(&self) -> Command {
        let mut pip = self.program("python");
        pip.args(["-m", "pip", "--disable-pip-version-check"]);
        pip
    }
}

/// Returns whether a command succeeds, whatever it says.
fn is_quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Builds the wheel, and tests it.
pub(crate) fn run(root: &Path, args: &[&str]) -> io::Result<Findings> {
    let (mut profile, mut tests) = ("release", false);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match (*arg, rest.as_slice().first()) {
            ("--profile", Some(name)) => {
                profile = name;
                rest.next();
            }
            ("--test", _) => tests = true,
            _ => return Err(io::Error::other(USAGE)),
        }
    }
    let work = target_directory(root)?.join("wheel");
    let environment = match VirtualEnv::make(work.join("venv")) {
        Ok(environment) => environment,
        Err(why) => {
            println!("skipped: {why}");
            return Ok(Findings::new());
        }
    };
    let wheel = build(root, &work, &environment, profile)?;
    println!("built {}", wheel.display());
    if tests {
        test(root, &environment, &wheel)?;
    }
    Ok(Findings::new())
}

/// Builds the only wheel of the directory `dist`.
fn build(root: &Path, work: &Path, environment: &VirtualEnv, profile: &str) -> io::Result<PathBuf> {
    let dist = work.join("dist");
    if dist.exists() {
        std::fs::remove_dir_all(&dist)?;
    }
    let mut maturin = environment.program("maturin");
    maturin.args(["build", "--quiet", "--locked", "--profile", profile]);
    maturin.arg("--manifest-path");
    maturin.arg(root.join("bindings/python/Cargo.toml"));
    maturin.arg("--out").arg(&dist);
    maturin.current_dir(root);
    must(&mut maturin, "maturin")?;
    let built = std::fs::read_dir(&dist)?.map(|entry| entry.map(|entry| entry.path()));
    let built = built.collect::<io::Result<Vec<_>>>()?;
    let [wheel] = built.as_slice() else {
        return Err(io::Error::other(format!("not one wheel: {built:?}")));
    };
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    if !name.contains("-abi3-") {
        return Err(io::Error::other(format!("not for every Python: {name}")));
    }
    Ok(wheel.clone())
}

/// Runs the tests on the wheel.
fn test(root: &Path, environment: &VirtualEnv, wheel: &Path) -> io::Result<()> {
    let mut pip = environment.pip();
    pip.args(["install", "--quiet", "--no-deps", "--force-reinstall"]);
    must(pip.arg(wheel), "installing the wheel")?;
    let tests = root.join("bindings/python/tests");
    let mut command = environment.program("python");
    // Faults of the interpreter print where they happened.
    command.args([
        "-X",
        "faulthandler",
        "-m",
        "unittest",
        "discover",
        "-b",
        "-s",
    ]);
    command.arg(&tests);
    // No compiled files beside the tests.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    must(&mut command, "the tests of the Python package")
}
