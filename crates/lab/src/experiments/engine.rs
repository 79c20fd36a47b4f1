//! The engines of experiments that run `esker bench`: the embedded one, loaded libraries, and other
//! builds of this program (`bin:PATH`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use esker::options::{LoadRules, lint, load_options_text};

use crate::child::Child;
use crate::experiment::host::hash_of;
use crate::experiment::plan::EngineSpec;
use crate::experiment::record::Engine;
use crate::interrupt::Scratch;
use crate::peers::peer;
use crate::{Failure, Result};

/// Checks that `esker bench` can drive it.
///
/// # Errors
/// Why not.
pub(super) fn supports(engine: &EngineSpec) -> Result<()> {
    match (engine.kind(), engine.path()) {
        ("esker", _) => Ok(()),
        ("lib" | "bin", Some(path)) if Path::new(path).is_file() => opens(engine),
        ("lib" | "bin", path) => {
            let path = path.unwrap_or_default();
            Err(Failure::new(format!("there is no file {path}")))
        }
        (kind, _) => Err(Failure::new(format!(
            "this experiment runs esker, lib:PATH and bin:PATH, and not {kind}"
        ))),
    }
}

/// Opens a database with an engine in a process of its own: two versions of a library do not go
/// together in one.
fn opens(engine: &EngineSpec) -> Result<()> {
    let scratch = Scratch::within(&std::env::temp_dir())?;
    let (program, name) = program(engine);
    let child = Child {
        path: scratch.path().join("db"),
        args: vec!["--benchmarks=flush".into()],
        engine: name,
        program,
        ..Child::default()
    };
    let cause = |failure: Failure| {
        let text = failure.to_string();
        let line = text.lines().next().unwrap_or_default();
        let why = line.split_once(" failed: ").map_or(line, |(_, why)| why);
        Failure::new(why.trim_start_matches("error: "))
    };
    child.run(&|| {}).map(drop).map_err(cause)
}

/// Checks that it is a peer of another kind that this build drives.
///
/// # Errors
/// Why not: it is no peer, or not built in.
pub(super) fn supports_peer(engine: &EngineSpec) -> Result<()> {
    match peer(engine.kind()) {
        Some(peer) => peer.check(&parts(engine).1),
        None => supports(engine),
    }
}

/// The program that drives an engine, if it is not this one, and what it calls the engine.
pub(super) fn program(engine: &EngineSpec) -> (Option<PathBuf>, String) {
    let is_build = engine.kind() == "bin";
    let name = match engine.text.split('?').next() {
        Some(name) if !is_build => name,
        _ => "esker",
    };
    let (_, options) = parts(engine);
    let own = match options.as_str() {
        "" => name.to_string(),
        options => format!("{name}?{options}"),
    };
    let path = engine.path().filter(|_| is_build);
    (path.map(PathBuf::from), own)
}

/// The prefix of the options that are the laboratory's own and not the engine's.
const LABORATORY: &str = "lab.";

/// The option by which an engine is slowed down.
pub(super) const PLANTED: &str = "lab.planted_rounds";

/// Flags of `esker bench` that an engine gets alone (`?lab.planted_rounds=20`), and its options.
fn parts(engine: &EngineSpec) -> (Vec<String>, String) {
    let all = engine.options().split(';').filter(|part| !part.is_empty());
    let (own, rest): (Vec<&str>, Vec<&str>) = all.partition(|part| part.starts_with(LABORATORY));
    let flag = |part: &&str| format!("--{}", part.trim_start_matches(LABORATORY));
    (own.iter().map(flag).collect(), rest.join(";"))
}

/// Flags of `esker bench` that an engine gets alone.
pub(super) fn own_flags(engine: &EngineSpec) -> Vec<String> {
    parts(engine).0
}

/// Describes the engine before it runs.
///
/// # Errors
/// None so far.
pub(super) fn describe(engine: &EngineSpec) -> Result<Engine> {
    let path = match engine.path() {
        Some(path) => fs::canonicalize(path).unwrap_or_else(|_| path.into()),
        None => std::env::current_exe()?,
    };
    let file = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let peer = peer(engine.kind());
    let (name, version) = match (engine.kind(), peer) {
        ("esker", _) => ("Esker".to_string(), env!("CARGO_PKG_VERSION").to_string()),
        (_, Some(peer)) => (peer.title.to_string(), peer.version()),
        // The library's own version follows when it has written its LOG.
        _ => (file.unwrap_or_default(), String::new()),
    };
    let hash = hash_of(&path).unwrap_or_default();
    // Builds have one file name; by their hash they can be told apart.
    let name = match engine.kind() {
        "bin" => format!("{name} {}", short_hash(&hash)).trim().to_string(),
        _ => name,
    };
    Ok(Engine {
        spec: engine.text.clone(),
        name,
        version,
        notes: peer.map(|peer| peer.note.to_string()).into_iter().collect(),
        hash,
        ..Engine::default()
    })
}

/// The first digits of a hash.
fn short_hash(hash: &str) -> &str {
    let digits = hash.split(' ').next_back().unwrap_or_default();
    &digits[..digits.len().min(8)]
}

/// Learns options and version from the database that an engine has just made.
///
/// # Errors
/// A file that cannot be kept.
pub(super) fn learn(engine: &mut Engine, database: &Path, keep_in: &Path) -> Result<()> {
    if let Some(path) = newest_options(database) {
        let text = fs::read_to_string(path)?;
        fs::write(keep_in.join("OPTIONS"), &text)?;
        engine.options = options(&text);
        engine.findings = findings(&text);
    }
    let log = fs::read(database.join("LOG")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log[..log.len().min(1 << 16)]).into_owned();
    if engine.version.is_empty() {
        engine.version = version(&log).unwrap_or_default();
        let maker = if log.contains("Esker") {
            "Esker's library"
        } else {
            "RocksDB"
        };
        if engine.name.contains(".so") {
            engine.name = format!("{maker} {}", engine.version).trim().to_string();
        }
    }
    Ok(())
}

/// The version in the first lines of a LOG.
fn version(log: &str) -> Option<String> {
    let line = log
        .lines()
        .take(20)
        .find_map(|line| line.split_once("version: "));
    // Esker's names the version of its formats first.
    line.map(
        |(_, version)| match version.split_once("the engine is Esker ") {
            Some((_, own)) => own.trim_end_matches(')').trim().to_string(),
            None => version.trim().to_string(),
        },
    )
}

fn newest_options(database: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(database).ok()?.flatten();
    let numbered = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let number: u64 = name.strip_prefix("OPTIONS-")?.parse().ok()?;
        Some((number, entry.path()))
    });
    numbered
        .max_by_key(|(number, _)| *number)
        .map(|(_, path)| path)
}

/// The options of the default family, of the table and of the database, by name.
fn options(text: &str) -> BTreeMap<String, String> {
    let (mut out, mut prefix) = (BTreeMap::new(), None);
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            prefix = match section.split(['"', '/', ']']).next().map(str::trim) {
                Some("DBOptions") => Some(""),
                Some("CFOptions") if section.contains("\"default\"") => Some(""),
                Some("TableOptions") if section.contains("\"default\"") => Some("table."),
                _ => None,
            };
        } else if let (Some(prefix), Some((name, value))) = (prefix, line.split_once('=')) {
            insert(&mut out, format!("{prefix}{name}"), value);
        }
    }
    out
}

/// Adds an option; the members of a nested one each by itself.
fn insert(out: &mut BTreeMap<String, String>, name: String, value: &str) {
    let inner = value
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    match inner.filter(|inner| inner.contains('=') && !inner.contains('{')) {
        Some(inner) => {
            for (member, value) in inner.split(';').filter_map(|part| part.split_once('=')) {
                out.insert(format!("{name}.{}", member.trim()), value.to_string());
            }
        }
        None => {
            out.insert(name, value.to_string());
        }
    }
}

/// Returns the findings of the linter about an OPTIONS file.
fn findings(text: &str) -> Vec<String> {
    let Ok(loaded) = load_options_text(text, LoadRules::default()) else {
        return Vec::new();
    };
    let families = loaded.families.iter().map(|(name, o)| (name.as_str(), o));
    lint(&loaded.db, families)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_by_section() {
        let text = "[Version]\n  rocksdb_version=11.8.1\n[DBOptions]\n  max_background_jobs=2\n\
                    [CFOptions \"default\"]\n  write_buffer_size=5\n\
                    \x20 compression_opts={level=3;strategy=0;}\n\
                    [TableOptions/BlockBasedTable \"default\"]\n  block_size=4096\n\
                    [CFOptions \"other\"]\n  write_buffer_size=6\n";
        let options = options(text);
        let get = |name: &str| options.get(name).map(String::as_str);
        assert_eq!(get("max_background_jobs"), Some("2"));
        assert_eq!(get("write_buffer_size"), Some("5"));
        assert_eq!(get("table.block_size"), Some("4096"));
        assert_eq!(get("compression_opts.level"), Some("3"));
        assert_eq!(options.len(), 5);
    }

    #[test]
    fn other_builds_are_programs_and_libraries_are_not() {
        let own = program(&EngineSpec::parse("esker?a=b"));
        assert_eq!(own, (None, "esker?a=b".into()));
        let build = program(&EngineSpec::parse("bin:/old/esker?a=b"));
        assert_eq!(build, (Some("/old/esker".into()), "esker?a=b".into()));
        let slow = EngineSpec::parse("lib:/a.so?a=b;lab.planted_rounds=7;c=d");
        assert_eq!(program(&slow), (None, "lib:/a.so?a=b;c=d".into()));
        assert_eq!(own_flags(&slow), ["--planted_rounds=7"]);
        let slow = EngineSpec::parse("bin:/old/esker?lab.planted_rounds=7");
        assert_eq!(program(&slow), (Some("/old/esker".into()), "esker".into()));
        let strange = supports(&EngineSpec::parse("lmdb")).expect_err("is not driven");
        assert!(strange.to_string().contains("not lmdb"));
        let own = supports_peer(&EngineSpec::parse("fjall?a=b")).expect_err("has no options");
        assert!(own.to_string().contains("fjall"), "{own}");
        let missing = supports(&EngineSpec::parse("lib:/no/such.so")).expect_err("is not there");
        assert!(missing.to_string().contains("no file /no/such.so"));
    }

    #[test]
    fn builds_are_told_apart_by_their_hashes_and_have_their_own_version() {
        let directory = tempfile::tempdir().expect("a directory");
        let name = |text: &str| {
            let path = directory.path().join("esker");
            fs::write(&path, text).expect("writes");
            let spec = EngineSpec::parse(&format!("bin:{}", path.display()));
            describe(&spec).expect("is there").name
        };
        assert_eq!(name("abc"), "esker 90015098");
        assert_ne!(name("other"), name("abc"));
        let log = "x RocksDB version: 11.8.1 (formats and options of; the engine is Esker 0.1.0)\n";
        assert_eq!(version(log).as_deref(), Some("0.1.0"));
        assert_eq!(
            version("RocksDB version: 7.8.3\n").as_deref(),
            Some("7.8.3")
        );
    }

    #[test]
    fn a_database_tells_options_findings_and_version() {
        let directory = tempfile::tempdir().expect("a directory");
        let kept = tempfile::tempdir().expect("a directory");
        let text = "[Version]\n  rocksdb_version=11.8.1\n  options_file_version=1.1\n[DBOptions]\n  \
                    max_open_files=0\n[CFOptions \"default\"]\n  num_levels=7\n";
        fs::write(directory.path().join("OPTIONS-000007"), text).expect("writes");
        fs::write(directory.path().join("OPTIONS-000005"), "").expect("writes");
        fs::write(directory.path().join("LOG"), "x RocksDB version: 11.8.1\n").expect("writes");
        let mut engine = Engine {
            name: "librocksdb.so.11".into(),
            ..Engine::default()
        };
        learn(&mut engine, directory.path(), kept.path()).expect("learns");
        assert_eq!(engine.name, "RocksDB 11.8.1");
        assert_eq!(engine.options["num_levels"], "7");
        assert!(
            engine.findings.iter().any(|f| f.contains("max_open_files")),
            "{:?}",
            engine.findings
        );
        assert!(kept.path().join("OPTIONS").exists());
    }
}
