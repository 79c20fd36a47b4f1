//! Builds that nobody here makes by hand: `cargo xtask minimum` with the oldest compiler that the
//! manifests allow, `cargo xtask lean` with each codec alone, with none, and without a C compiler,
//! and `cargo xtask portable` for another system.

use crate::Findings;
use crate::package::{cargo, is_published, manifests, must};
use serde_json::Value;
use std::io;
use std::path::Path;
use std::process::{Command, Output};

/// The codecs that are features, in the order of the checks.
const CODECS: [&str; 5] = ["bzip2", "lz4", "snappy", "zlib", "zstd"];
/// The library that is published for programs; it uses all others.
const LIBRARIES: [&str; 1] = ["esker"];

/// A system that is not this one.
const ELSEWHERE: &str = "x86_64-apple-darwin";

/// Checks the libraries, without what only tests need, with the `rust-version` of the manifests.
pub(crate) fn minimum(root: &Path) -> io::Result<Findings> {
    let mut versions: Vec<String> = manifests(root)?
        .iter()
        .filter(|package| is_published(package))
        .map(|package| {
            package["rust_version"]
                .as_str()
                .unwrap_or("none")
                .to_owned()
        })
        .collect();
    versions.sort();
    versions.dedup();
    let [version] = versions.as_slice() else {
        return Ok(vec![format!(
            "the crates have other rust-versions: {versions:?}"
        )]);
    };
    let readme = std::fs::read_to_string(root.join("README.md"))?;
    if !readme.contains(&format!("Rust {version}")) {
        return Ok(vec![format!("README.md does not say \"Rust {version}\"")]);
    }
    if !has_toolchain(version) {
        println!("skipped: Rust {version} is not there, and rustup cannot install it");
        return Ok(Findings::new());
    }
    let mut command = Command::new("rustup");
    command.args([
        "run", version, "cargo", "check", "--locked", "--quiet", "--lib",
    ]);
    command.args(LIBRARIES.iter().flat_map(|name| ["--package", name]));
    // Cargo that runs this one has set its own.
    command
        .current_dir(root)
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN");
    quick(&mut command);
    let target = tempfile::tempdir()?;
    command.arg("--target-dir").arg(target.path());
    must(&mut command, "check with the oldest compiler")?;
    println!("Rust {version} takes {}", LIBRARIES.join(", "));
    Ok(Findings::new())
}

/// Returns whether this version is installed, or could be.
fn has_toolchain(version: &str) -> bool {
    let rustup = |args: &[&str]| {
        let output = Command::new("rustup").args(args).output();
        output.is_ok_and(|output| output.status.success())
    };
    rustup(&["run", version, "cargo", "--version"])
        || rustup(&[
            "toolchain",
            "install",
            version,
            "--profile",
            "minimal",
            "--no-self-update",
        ])
}

/// Returns whether the standard library for this system is installed, or could be.
fn has_target(triple: &str) -> bool {
    let rustup = |args: &[&str]| {
        let output = Command::new("rustup").args(args).output();
        output.ok().filter(|output| output.status.success())
    };
    let is_installed = |listed: &Output| {
        let listed = String::from_utf8_lossy(&listed.stdout);
        listed.lines().any(|line| line == triple)
    };
    rustup(&["target", "list", "--installed"]).is_some_and(|listed| is_installed(&listed))
        || rustup(&["target", "add", triple]).is_some()
}

/// Crates below `esker` that may know the system.
const OF_THE_SYSTEM: [&str; 1] = ["esker-env"];
/// Crates that they know it by.
const SYSTEMS: [&str; 3] = ["io-uring", "libc", "rustix"];

/// The manifests of the library and of those that it uses, itself or through others.
fn of_the_library(manifests: &[Value]) -> Vec<&Value> {
    let mut names: Vec<&str> = LIBRARIES.to_vec();
    let mut out: Vec<&Value> = Vec::new();
    while let Some(name) = names.pop() {
        let is_known = out.iter().any(|package| package["name"] == name);
        let Some(package) = manifests.iter().find(|package| package["name"] == name) else {
            continue;
        };
        if is_known {
            continue;
        }
        out.push(package);
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let is_used = |dependency: &&Value| dependency["kind"].is_null();
        names.extend(
            dependencies
                .filter(is_used)
                .filter_map(|d| d["name"].as_str()),
        );
    }
    out
}

/// Crates that know the system, of those that are to do without.
fn knows_the_system(package: &Value) -> Findings {
    let name = package["name"].as_str().unwrap_or_default();
    if OF_THE_SYSTEM.contains(&name) {
        return Findings::new();
    }
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let names = dependencies.filter(|dependency| dependency["kind"].is_null());
    let names = names.filter_map(|dependency| dependency["name"].as_str());
    let of_systems = names.filter(|dependency| SYSTEMS.contains(dependency));
    of_systems
        .map(|dependency| format!("{name} uses {dependency}; only esker-env knows the system"))
        .collect()
}

/// Checks the library, without C codecs, for macOS; only the crate `env` may know the system.
pub(crate) fn portable(root: &Path) -> io::Result<Findings> {
    let manifests = manifests(root)?;
    let library = of_the_library(&manifests);
    let findings: Findings = library.iter().flat_map(|p| knows_the_system(p)).collect();
    if !has_target(ELSEWHERE) {
        println!("skipped: {ELSEWHERE} is not there, and rustup cannot add it");
        return Ok(findings);
    }
    let mut command = cargo(root);
    command.args([
        "check", "--locked", "--quiet", "--lib", "--target", ELSEWHERE,
    ]);
    command.args(["--no-default-features", "--features", "async"]);
    command.args(LIBRARIES.iter().flat_map(|name| ["--package", name]));
    command.env("RUSTFLAGS", "-Dwarnings");
    quick(&mut command);
    let target = tempfile::tempdir()?;
    command.arg("--target-dir").arg(target.path());
    must(&mut command, "check for another system")?;
    println!("{ELSEWHERE} takes {} crates of our own", library.len());
    Ok(findings)
}

/// Without optimisation and debug information, which nobody looks at.
fn quick(command: &mut Command) {
    for profile in ["DEV", "TEST"] {
        command.env(format!("CARGO_PROFILE_{profile}_OPT_LEVEL"), "0");
        command.env(format!("CARGO_PROFILE_{profile}_DEBUG"), "0");
    }
    command.env("CARGO_INCREMENTAL", "0");
}

/// Places outside `esker-codec` that are compiled for some codecs only. There are none, so checks
/// of that crate with each codec are checks of all.
fn strays(root: &Path) -> io::Result<Findings> {
    let mut out = Findings::new();
    let mut left = vec![root.join("crates")];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path)?;
            let paths = entries.map(|entry| entry.map(|entry| entry.path()));
            left.extend(paths.collect::<io::Result<Vec<_>>>()?);
            continue;
        }
        let within = path.strip_prefix(root.join("crates")).unwrap_or(&path);
        let is_source = within.components().any(|part| part.as_os_str() == "src");
        if !is_source || within.starts_with("codec") || path.extension() != Some("rs".as_ref()) {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let is_of = |codec: &&&str| text.contains(&format!("feature = \"{codec}\""));
        for codec in CODECS.iter().filter(is_of) {
            out.push(format!(
                "{}: compiled for {codec}; ask Codec::is_supported",
                within.display()
            ));
        }
    }
    Ok(out)
}

/// Checks each codec alone, the command and the engine with none, and tests the engine without C
/// codecs, where no C compiler works.
pub(crate) fn lean(root: &Path) -> io::Result<Findings> {
    let target = tempfile::tempdir()?;
    let of = |verb: &str, package: &str, features: &str| {
        let mut command = cargo(root);
        command.args([verb, "--locked", "--quiet", "--package", package]);
        command.args(["--no-default-features", "--features", features]);
        command.arg("--target-dir").arg(target.path());
        quick(&mut command);
        // For all, since another value would build everything again.
        command.env("RUSTFLAGS", "-Dwarnings");
        command
    };
    let findings = strays(root)?;
    for codec in CODECS {
        let mut command = of("check", "esker-codec", codec);
        if !matches!(codec, "lz4" | "zstd") {
            command.env("CC", "false");
        }
        must(&mut command, &format!("esker-codec with {codec}"))?;
        println!("checked: esker-codec with {codec} alone");
    }
    let mut command = of("check", "esker-cli", "");
    must(command.env("CC", "false"), "esker-cli without any feature")?;
    println!("checked: esker-cli and esker without any feature");
    let mut command = of("test", "esker-engine", "snappy");
    command
        .args(["--test", "left_out_codecs"])
        .env("CC", "false");
    must(&mut command, "esker without a C compiler")?;
    println!("tested: esker without a C compiler");
    Ok(findings)
}
