//! Repository tasks.
//!
//! `cargo xtask tidy [--bless]` checks the rules of the repository (`--bless` writes the unsafe
//! ledger); `cargo xtask compat [--check]` writes `COMPAT.md` from the option catalogue, or checks
//! that it is current; `cargo xtask calls [--check]` writes the table of calls and of the random
//! tests that make them, or checks it; `cargo xtask db-bench [--check]` writes `docs/db-bench.md`
//! from the table of flags, or checks it; `cargo xtask bench-scripts [--compare]` runs RocksDB's
//! own benchmark scripts on our `db_bench`; `cargo xtask capi [--check]` writes what follows from
//! the C library's specification, or checks it; `cargo xtask capi --import HEADER` prints a
//! specification made from a header, and `--against HEADER` compares; `cargo xtask capi --symbols
//! LIB` checks what a shared library exports; `cargo xtask jni [--check]` does the same for the
//! Java library;
//! `cargo xtask cxx [--check]` does it for the option structs of the C++ library;
//! `cargo xtask header-words DIR` writes the words of RocksDB's headers, which type names may use;
//! `cargo xtask install --prefix DIR` builds and installs the C library, `esker` and `db_bench`,
//! with `--links` under the names `ldb` and `sst_dump`, too; `--uninstall` removes what it
//! installed;
//! `cargo xtask wheel [--test]` builds the Python package, and tests it;
//! `cargo xtask examples [NAME ...]` builds and runs the programs in `examples` on it;
//! `cargo xtask bounded` runs many databases in a control group of little memory;
//! `cargo xtask guide` runs the commands of `docs/guide`;
//! `cargo xtask scraped COMMAND...` runs a command with `ESKER_STATS` beside a scraper;
//! `cargo xtask oracle NAME` runs somebody else's test suite on our C library;
//! `cargo xtask sanitize thread|address` runs the Rust tests under a sanitizer;
//! `cargo xtask fuzz [TARGET]` feeds hostile bytes to every decoder (`cargo xtask fuzz --help`);
//! `cargo xtask page` checks the laboratory's pages in headless Chromium, and
//! `cargo xtask page --publish` the records that are published;
//! `cargo xtask loom` runs the models of the lock-free index and of the hand-overs between writers;
//! `cargo xtask seeded-bugs` counts how many bugs on purpose the simulator finds;
//! `cargo xtask package` packs the crates and builds a fresh project from them, `cargo xtask
//! minimum` checks the libraries with the oldest compiler, `cargo xtask lean` checks builds with
//! some codecs, and `cargo xtask portable` checks the library for another system.

mod bench_scripts;
mod bounded;
mod builds;
mod calls;
mod capi;
mod cxx;
mod doc_examples;
mod examples;
mod figures;
mod floors;
mod generated;
mod guide;
mod install;
mod installed;
mod jni;
mod ledger;
mod links;
mod load_constants;
mod method_cycles;
mod modules;
mod oracle;
mod package;
mod page;
mod paths;
mod publish;
mod sanitize;
mod scraped;
mod seeded;
mod source;
mod symbols;
mod tidy;
mod trials;
mod type_names;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Faults that a task found, one line each.
pub(crate) type Findings = Vec<String>;

/// The checkout that the current directory is in, or else the one that this was built from.
fn root() -> PathBuf {
    let is_root = |dir: &&Path| dir.join("xtask/Cargo.toml").is_file();
    let current = std::env::current_dir().unwrap_or_default();
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built_from = built_from.parent().unwrap_or(built_from);
    current
        .ancestors()
        .find(is_root)
        .unwrap_or(built_from)
        .to_owned()
}

/// The compatibility page: options, differences, and the C library.
fn compat_page() -> std::io::Result<String> {
    let differences = root().join("crates/capi/spec/differences.md");
    let options = esker::options::compat_markdown();
    let capi = capi::status(&root())?;
    let cxx = std::fs::read_to_string(root().join("bindings/cxx/spec/compat.md"))?;
    let differences = std::fs::read_to_string(differences)?;
    Ok(options + &differences + &capi + &cxx + &jni::page(&root())?)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["tidy"] => tidy::run(&root(), false),
        ["tidy", "--bless"] => tidy::run(&root(), true),
        ["compat"] => {
            compat_page().and_then(|text| generated::write(&root().join("COMPAT.md"), &text))
        }
        ["compat", "--check"] => compat_page().and_then(|text| {
            generated::check(&root().join("COMPAT.md"), &text, "cargo xtask compat")
        }),
        ["db-bench"] => generated::write(
            &root().join("docs/db-bench.md"),
            &esker_lab::flags::page::page(),
        ),
        ["db-bench", "--check"] => generated::check(
            &root().join("docs/db-bench.md"),
            &esker_lab::flags::page::page(),
            "cargo xtask db-bench",
        ),
        ["bench-scripts", rest @ ..] => bench_scripts::run(&root(), rest),
        ["oracle", rest @ ..] => oracle::run(&root(), rest),
        ["scraped", rest @ ..] => return scraped::run(rest),
        ["sanitize", rest @ ..] => sanitize::run(&root(), rest),
        ["capi"] => capi::write(&root()),
        ["capi", "--check"] => capi::check(&root()),
        ["capi", "--import", header] => capi::import(Path::new(header)),
        ["cxx"] => cxx::write(&root()),
        ["cxx", "--check"] => cxx::check(&root()),
        ["calls"] => calls::write(&root()),
        ["calls", "--check"] => calls::check(&root()),
        ["header-words", directory] => {
            type_names::write_header_words(&root(), Path::new(directory))
        }
        ["jni"] => jni::write(&root()),
        ["jni", "--check"] => jni::check(&root()),
        ["capi", "--against", header] => capi::compare(&root(), Path::new(header)),
        ["capi", "--symbols", library] => symbols::check(&root(), Path::new(library)),
        ["examples", rest @ ..] => examples::run(&root(), rest),
        ["bounded", rest @ ..] => bounded::run(&root(), rest),
        ["guide", rest @ ..] => guide::run(&root(), rest),
        ["fuzz", rest @ ..] => trials::fuzz(&root(), rest),
        ["page", "--publish", rest @ ..] => publish::run(&root(), rest),
        ["page", rest @ ..] => page::run(rest),
        ["wheel", rest @ ..] => wheel::run(&root(), rest),
        ["loom", rest @ ..] => trials::loom(&root(), rest),
        ["seeded-bugs", rest @ ..] => seeded::run(&root(), rest),
        ["package"] => package::run(&root()),
        ["minimum"] => builds::minimum(&root()),
        ["portable"] => builds::portable(&root()),
        ["lean"] => builds::lean(&root()),
        ["install", rest @ ..] => install::run(&root(), rest),
        _ => {
            eprintln!(
                "usage: cargo xtask tidy [--bless] | compat [--check] | calls [--check] | db-bench [--check] | bench-scripts [--compare] | capi [--check | --import HEADER | --against HEADER | --symbols LIB] | jni [--check] | header-words DIR | install [--prefix DIR] [--links | --uninstall] | examples [NAME ...] | bounded [--limit MB] [[--unset] -- COMMAND...] | guide [--profile NAME] | oracle NAME | scraped [--pause MS] COMMAND... | sanitize thread|address | fuzz [TARGET] | loom | page [--screenshots PREFIX] [FILE ...] | page --publish [--check] [RESULTS ...] | seeded-bugs [--quick | --long] [--only NAME] | package | minimum | lean | portable | wheel [--profile NAME] [--test]"
            );
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(findings) if findings.is_empty() => {
            eprintln!("{}: ok", args.join(" "));
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in &findings {
                println!("{finding}");
            }
            println!("{}: {} findings", args.join(" "), findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{}: {error}", args.join(" "));
            ExitCode::FAILURE
        }
    }
}
