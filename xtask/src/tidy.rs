//! The rules of the repository that neither the compiler nor clippy checks.

use crate::source::{Source, files};
use crate::{
    Findings, doc_examples, figures, floors, generated, ledger, links, load_constants,
    method_cycles, modules, paths, type_names,
};
use std::io;
use std::path::Path;

/// Crates that touch the outside world themselves.
const WORLDLY: &[&str] = &[
    "env",
    "lab",
    "differential",
    "sim",
    "torture",
    "fuzz",
    "cli",
    "xtask",
];
/// Crates that print.
const PRINTING: &[&str] = &[
    "cli",
    "lab",
    "differential",
    "sim",
    "torture",
    "fuzz",
    "xtask",
];
/// Crates, or parts of them, that may hold unsafe code.
const UNSAFE_ALLOWED: &[&str] = &[
    "crates/codec/",
    "crates/env/",
    "crates/memindex/",
    "crates/process/src/sys.rs",
    "crates/cache/",
    "bindings/jni/",
    "crates/capi/",
    "crates/lab/",
    "crates/differential/",
    "crates/torture/",
    "crates/fuzz/src/memory.rs",
];

/// A piece of code that is not allowed, where, and what to do instead.
struct Ban {
    code: &'static str,
    except: &'static [&'static str],
    instead: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        code: "std::fs",
        except: WORLDLY,
        instead: "use the Env's filesystem",
    },
    Ban {
        code: "Instant::now",
        except: WORLDLY,
        instead: "use the Env's clock",
    },
    Ban {
        code: "SystemTime",
        except: WORLDLY,
        instead: "use the Env's clock",
    },
    Ban {
        code: "thread::spawn",
        except: WORLDLY,
        instead: "use the Env's executor",
    },
    Ban {
        code: "thread::sleep",
        except: WORLDLY,
        instead: "use the Env's clock",
    },
    Ban {
        code: "println!",
        except: PRINTING,
        instead: "use the info log",
    },
    Ban {
        code: "print!",
        except: PRINTING,
        instead: "use the info log",
    },
    Ban {
        code: "dbg!",
        except: &[],
        instead: "remove it",
    },
    Ban {
        code: ".unwrap()",
        except: &[],
        instead: "use expect(\"why it holds\") or return the error",
    },
    Ban {
        code: "todo!",
        except: &[],
        instead: "write it",
    },
    Ban {
        code: "unimplemented!",
        except: &[],
        instead: "write it",
    },
];

/// Parts of paths that only exist on somebody's machine.
fn places() -> Vec<String> {
    let mut places = vec!["/home/".to_owned(), "/tmp/".to_owned()];
    if let Some(home) = std::env::var_os("HOME").filter(|h| h.len() > 1) {
        places.push(format!("{}/", Path::new(&home).display()));
    }
    places
}

fn headers(source: &Source, findings: &mut Findings) {
    if !source.lines.first().is_some_and(|l| l.starts_with("//!")) {
        findings.push(format!("{}:1: no //! header", source.path));
    }
}

/// Returns whether `code` stands in `line` and is not the tail of a longer word.
fn stands_in(line: &str, code: &str) -> bool {
    line.match_indices(code).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        code.starts_with('.') || !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

fn bans(source: &Source, findings: &mut Findings) {
    // A build script talks to cargo by printing.
    if source.path.ends_with("/build.rs") {
        return;
    }
    for (line_no, line) in source.production() {
        for ban in BANS {
            if !ban.except.contains(&source.crate_name()) && stands_in(line, ban.code) {
                findings.push(format!(
                    "{}:{line_no}: {} is not allowed here: {}",
                    source.path, ban.code, ban.instead
                ));
            }
        }
    }
    if !UNSAFE_ALLOWED.iter().any(|p| source.path.starts_with(p)) {
        for at in ledger::unsafe_lines(source) {
            findings.push(format!(
                "{}:{}: unsafe code in a crate that has none",
                source.path,
                at + 1
            ));
        }
    }
}

/// Public text names no place on a machine.
fn hygiene(path: &str, text: &str, places: &[String], findings: &mut Findings) {
    for (at, line) in text.lines().enumerate() {
        if let Some(place) = places.iter().find(|place| line.contains(place.as_str())) {
            findings.push(format!(
                "{path}:{}: names a place on a machine: {place}",
                at + 1
            ));
        }
    }
}

fn is_public_text(path: &Path) -> bool {
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    matches!(
        extension,
        "rs" | "md" | "toml" | "sh" | "yml" | "c" | "h" | "txt"
    ) || path.ends_with(".ci/run")
}

/// Runs every check; with `bless`, writes the unsafe ledger instead of comparing it.
pub(crate) fn run(root: &Path, bless: bool) -> io::Result<Findings> {
    let mut findings = floors::check(root)?;
    let mut texts = Vec::new();
    files(root, root, &is_public_text, &mut texts)?;
    let mut sources = Vec::new();
    let places = places();
    for (path, text) in &texts {
        // This file names the places it looks for.
        if path != "xtask/src/tidy.rs" {
            hygiene(path, text, &places, &mut findings);
        }
        if path.ends_with(".rs") {
            sources.push(Source::parse(path.clone(), text));
        }
    }
    // That file names pages that are missing, to find them.
    texts.retain(|(path, _)| path != "xtask/src/links.rs");
    findings.extend(links::check(root, &texts));
    for source in &sources {
        headers(source, &mut findings);
        bans(source, &mut findings);
    }
    modules::check(&sources, &mut findings);
    method_cycles::check(&sources, &mut findings);
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    type_names::check(&sources, &page, &mut findings);
    paths::check(&texts, &sources, &mut findings);
    eprintln!("{}", load_constants::check(&texts, &sources, &mut findings));
    eprintln!("{}", figures::check(&texts, &sources, &mut findings));
    eprintln!("{}", doc_examples::check(&sources, &mut findings));
    let (ledger_text, missing) = ledger::ledger(&sources);
    findings.extend(missing);
    let ledger_path = root.join("docs/unsafe.md");
    findings.extend(if bless {
        generated::write(&ledger_path, &ledger_text)?
    } else {
        generated::check(&ledger_path, &ledger_text, "cargo xtask tidy --bless")?
    });
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Findings {
        let mut findings = Vec::new();
        let source = Source::parse(path.into(), text);
        headers(&source, &mut findings);
        bans(&source, &mut findings);
        hygiene(path, text, &places(), &mut findings);
        findings
    }

    #[test]
    fn each_rule_finds_its_offence() {
        let cases = [
            ("fn f() {}", "no //! header"),
            ("//! x\nuse std::fs;", "std::fs"),
            ("//! x\nfn f() { g().unwrap(); }", ".unwrap()"),
            ("//! x\nfn f() { println!(\"\"); }", "println!"),
            ("//! x\nfn f() { unsafe { g() } }", "unsafe code"),
            ("//! x\n// see /home/me/x", "/home/"),
            ("//! x\nfn f() { todo!() }", "todo!"),
        ];
        for (text, expected) in cases {
            let findings = found("crates/lsm/src/a.rs", text);
            assert!(
                findings.iter().any(|f| f.contains(expected)),
                "{text:?} gave {findings:?}"
            );
        }
    }

    #[test]
    fn what_is_allowed_is_not_found() {
        for (path, text) in [
            ("crates/env/src/a.rs", "//! x\nuse std::fs;"),
            (
                "crates/lsm/src/a.rs",
                "//! x\nfn f() { g().unwrap_or(1); }\n#[cfg(test)]\nmod tests {\nfn f() { g().unwrap(); }\n}",
            ),
            ("crates/lsm/tests/a.rs", "//! x\nuse std::fs;"),
            (
                "crates/lsm/src/a.rs",
                "//! x\n// println! is not called\nlet a = \"std::fs\";",
            ),
        ] {
            let findings = found(path, text);
            assert!(findings.is_empty(), "{text:?} gave {findings:?}");
        }
    }
}
