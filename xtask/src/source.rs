//! Rust source as the checks see it: lines of code with comments and literals blanked, and which of
//! them are tests.

use std::io;
use std::path::{Path, PathBuf};

/// One source file.
pub(crate) struct Source {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    /// The lines as written.
    pub(crate) lines: Vec<String>,
    /// The lines with comments and the insides of literals blanked.
    pub(crate) code: Vec<String>,
    /// The first line of the tests at the end of the file, or the number of lines.
    pub(crate) tests_from: usize,
}

impl Source {
    /// Takes a file apart.
    pub(crate) fn parse(path: String, text: &str) -> Source {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let code: Vec<String> = blank(text).lines().map(str::to_owned).collect();
        let is_test_file = path
            .split('/')
            .any(|part| matches!(part, "tests" | "benches" | "examples"))
            || path.ends_with("/tests.rs")
            || path.ends_with("_tests.rs");
        let tests_from = if is_test_file { 0 } else { inline_tests(&code) };
        Source {
            path,
            lines,
            code,
            tests_from,
        }
    }

    /// The crate's directory name, `xtask` for the tasks.
    pub(crate) fn crate_name(&self) -> &str {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates") => parts.next().unwrap_or_default(),
            other => other.unwrap_or_default(),
        }
    }

    /// Code lines outside tests, counted from 1.
    pub(crate) fn production(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code
            .iter()
            .take(self.tests_from)
            .enumerate()
            .map(|(at, line)| (at + 1, line.as_str()))
    }
}

/// Where `#[cfg(test)] mod name {` begins.
fn inline_tests(code: &[String]) -> usize {
    let begins = |at: usize| {
        matches!(
            code[at].trim(),
            "#[cfg(test)]" | "#[cfg(all(test, debug_assertions))]"
        ) && code[at + 1..]
            .iter()
            .find(|l| !l.trim().starts_with("#["))
            .is_some_and(|l| l.contains("mod ") && l.trim_end().ends_with('{'))
    };
    (0..code.len()).find(|&at| begins(at)).unwrap_or(code.len())
}

/// Replaces comments and the insides of string and character literals by spaces.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    let wipe = |out: &mut Vec<u8>, from: usize, to: usize| {
        for byte in &mut out[from..to] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    while at < bytes.len() {
        let start = at;
        let rest = &bytes[at..];
        let word_before =
            at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        if rest.starts_with(b"//") {
            at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
            wipe(&mut out, start, at);
        } else if rest.starts_with(b"/*") {
            at = block_comment_end(bytes, at);
            wipe(&mut out, start, at);
        } else if rest[0] == b'r' && !word_before && raw_string_end(bytes, at).is_some() {
            at = raw_string_end(bytes, at).unwrap_or(bytes.len());
            wipe(&mut out, start, at);
        } else if rest[0] == b'"' {
            at = quoted_end(bytes, at, b'"');
            wipe(&mut out, start + 1, at.saturating_sub(1).max(start + 1));
        } else if rest[0] == b'\'' && is_char_literal(rest) {
            at = quoted_end(bytes, at, b'\'');
            wipe(&mut out, start + 1, at.saturating_sub(1).max(start + 1));
        } else {
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn block_comment_end(bytes: &[u8], from: usize) -> usize {
    let (mut at, mut depth) = (from, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn raw_string_end(bytes: &[u8], from: usize) -> Option<usize> {
    let hashes = bytes[from + 1..].iter().take_while(|&&b| b == b'#').count();
    let open = from + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let end = bytes[open + 1..]
        .windows(close.len())
        .position(|w| w == close);
    Some(end.map_or(bytes.len(), |e| open + 1 + e + close.len()))
}

fn quoted_end(bytes: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Tells `'a'` and `'\n'` from the lifetime `'a`.
fn is_char_literal(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(b) if b.is_ascii() => rest.get(2) == Some(&b'\''),
        Some(_) => true,
        None => false,
    }
}

/// Every file below `directory` that `wanted` takes, as path from `root` and content.
pub(crate) fn files(
    root: &Path,
    directory: &Path,
    wanted: &dyn Fn(&Path) -> bool,
    out: &mut Vec<(String, String)>,
) -> io::Result<()> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)?
        .map(|e| e.map(|e| e.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    for path in entries {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | ".git" | "data" | "corpus") {
                files(root, &path, wanted, out)?;
            }
        } else if wanted(&path) {
            let relative = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .replace('\\', "/");
            out.push((relative, std::fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_do_not_count() {
        let text = "let a = \"unsafe\"; // unsafe\nlet b = 'x'; /* unsafe /* nested */ */ fn f<'a>() {}\nlet c = r#\"un\"safe\"#;";
        let code = blank(text);
        assert!(!code.contains("unsafe"), "{code}");
        assert!(code.contains("fn f<'a>() {}"), "{code}");
        assert_eq!(code.lines().count(), 3);
    }

    #[test]
    fn tests_at_the_end_are_found() {
        let source = Source::parse(
            "crates/x/src/a.rs".into(),
            "fn f() {}\n#[cfg(test)]\nmod tests {\n}\n",
        );
        assert_eq!(source.tests_from, 1);
        assert_eq!(source.crate_name(), "x");
        let source = Source::parse(
            "crates/x/src/a.rs".into(),
            "#[cfg(test)]\nmod tests;\nfn f() {}\n",
        );
        assert_eq!(source.tests_from, 3);
        assert_eq!(
            Source::parse("crates/x/tests/a.rs".into(), "fn f() {}\n").tests_from,
            0
        );
    }
}
