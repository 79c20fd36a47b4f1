//! The Java library's interface: one specification, and everything that follows from it.
//!
//! `bindings/jni/spec/natives.txt` names the native methods of `org.rocksdb` in the jars 6.20 to
//! 11.8. From it and from what `bindings/jni/src` implements by hand come accessors of options,
//! refusals of what is not supported, and a compile-time check that each function has the signature
//! that the JVM calls it by. A method becomes supported by being written.
//!
//! A symbol carries the descriptor where a method has several, in one jar or over all versions: the
//! JVM looks for the short name first, so a short name must never stand for two descriptors.

use crate::{Findings, generated};
use esker::observe::PerfMetric;
use esker::options::{DbOptions, FamilyOptions, OptionSet};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// A native method.
struct Native {
    class: String,
    name: String,
    descriptor: String,
    versions: String,
    symbol: String,
}

impl Native {
    /// The arguments as Rust types, and the answer; `None` for nothing.
    fn types(&self) -> (Vec<&'static str>, Option<&'static str>) {
        let (arguments, answer) = self.descriptor[1..]
            .split_once(')')
            .unwrap_or((&self.descriptor, "V"));
        let mut rest = arguments;
        let mut types = Vec::new();
        while !rest.is_empty() {
            let array = rest.len() - rest.trim_start_matches('[').len();
            let end = match &rest[array..=array] {
                "L" => rest.find(';').map_or(rest.len(), |at| at + 1),
                _ => array + 1,
            };
            types.push(rust_type(&rest[..end]));
            rest = &rest[end..];
        }
        (types, (answer != "V").then(|| rust_type(answer)))
    }

    /// As Java code would name it.
    fn shown(&self) -> String {
        let class = self.class.rsplit('/').next().unwrap_or(&self.class);
        format!("{}.{}", class.replace('$', "."), self.name)
    }
}

fn rust_type(descriptor: &str) -> &'static str {
    match descriptor {
        "Z" => "bool",
        "B" => "i8",
        "S" => "i16",
        "C" => "u16",
        "I" => "i32",
        "J" => "i64",
        "F" => "f32",
        "D" => "f64",
        _ => "jobject",
    }
}

fn mangle(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '/' => out.push('_'),
            '_' => out.push_str("_1"),
            ';' => out.push_str("_2"),
            '[' => out.push_str("_3"),
            c if c.is_ascii_alphanumeric() => out.push(c),
            c => {
                let _ = write!(out, "_0{:04x}", c as u32);
            }
        }
    }
    out
}

fn bad(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn read_spec(root: &Path) -> io::Result<Vec<Native>> {
    let text = std::fs::read_to_string(root.join("bindings/jni/spec/natives.txt"))?;
    let mut natives: Vec<Native> = Vec::new();
    let mut class = "";
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        if !line.starts_with(' ') {
            class = line;
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, descriptor, _kind, versions] = words[..] else {
            return Err(bad(format!("natives.txt: {line:?}")));
        };
        natives.push(Native {
            class: class.to_owned(),
            name: name.to_owned(),
            descriptor: descriptor.to_owned(),
            versions: versions.to_owned(),
            symbol: format!("Java_{}_{}", mangle(class), mangle(name)),
        });
    }
    let mut count = BTreeMap::new();
    for native in &natives {
        *count.entry(native.symbol.clone()).or_insert(0) += 1;
    }
    for native in &mut natives {
        if count[&native.symbol] > 1 {
            let arguments = native.descriptor[1..].split(')').next().unwrap_or("");
            native.symbol = format!("{}__{}", native.symbol, mangle(arguments));
        }
    }
    Ok(natives)
}

/// The symbols that are defined by hand below `dir`.
fn hand_written(dir: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_none_or(|n| n != "generated") {
            found.extend(hand_written(&path)?);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(path)?;
            let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            found.extend(words.filter(|w| w.starts_with("Java_")).map(str::to_owned));
        }
    }
    Ok(found)
}

/// `maxOpenFiles` as `max_open_files`.
fn snake(camel: &str) -> String {
    let mut out = String::new();
    let mut before_was_lower = false;
    for c in camel.chars() {
        if c.is_ascii_uppercase() && before_was_lower {
            out.push('_');
        }
        before_was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Options by their catalogue names, and the path in `esker::Options` where each is.
fn catalogue() -> BTreeMap<String, String> {
    let db = DbOptions::entries().iter().map(|e| (e.info.name, "db"));
    let family = FamilyOptions::entries()
        .iter()
        .map(|e| (e.info.name, "family"));
    let field = |(name, section): (&str, &str)| {
        let name = name.to_lowercase();
        (name.clone(), format!("{section}.{name}"))
    };
    db.chain(family).map(field).collect()
}

/// `spec/accessors.txt`: `Class RUSTTYPE` and below it `method=path`, or `*` for every option of
/// the catalogue.
struct Accessors {
    classes: BTreeMap<String, (String, BTreeMap<String, String>)>,
}

impl Accessors {
    fn read(root: &Path) -> io::Result<Accessors> {
        let text = std::fs::read_to_string(root.join("bindings/jni/spec/accessors.txt"))?;
        let mut classes: BTreeMap<String, (String, BTreeMap<String, String>)> = BTreeMap::new();
        let catalogue = catalogue();
        for line in text
            .lines()
            .filter(|l| !l.starts_with('#') && !l.is_empty())
        {
            let (names, rest) = line
                .split_once(": ")
                .ok_or_else(|| bad(format!("accessors.txt: {line:?}")))?;
            let mut words = rest.split_whitespace();
            let kind = words.next().unwrap_or_default();
            let mut fields = BTreeMap::new();
            for word in words {
                if word == "*" {
                    fields.extend(catalogue.clone());
                } else if let Some((name, path)) = word.split_once('=') {
                    fields.insert(name.to_owned(), path.to_owned());
                } else {
                    fields.insert(word.to_owned(), word.to_owned());
                }
            }
            for name in names.split(' ') {
                let class = classes.entry(name.to_owned()).or_default();
                class.0 = kind.to_owned();
                class.1.extend(fields.clone());
            }
        }
        Ok(Accessors { classes })
    }

    /// The line of the generated file for this method, if it is an accessor.
    fn find(&self, native: &Native) -> Option<String> {
        let class = native.class.rsplit('/').next()?;
        if class == "PerfContext" {
            return figure(native);
        }
        let (kind, fields) = self.classes.get(class)?;
        let (types, answer) = native.types();
        let name = snake(&native.name);
        let (macro_name, field, value) = match (&types[..], answer) {
            (["i64", value], None) => ("set", name.strip_prefix("set_")?.to_owned(), *value),
            (["i64"], Some(value)) => ("get", name, value),
            _ => return None,
        };
        if value == "jobject" {
            return None;
        }
        // Objects come by handles of their own.
        let path = fields.get(&field).filter(|p| *p != "db.wal_filter")?;
        let symbol = &native.symbol;
        Some(format!(
            "{macro_name}!({symbol}, {kind}, {value}, {path});\n"
        ))
    }
}

/// The getter of a figure of the perf context. Java leaves a `get` of the name out where there is
/// one.
fn figure(native: &Native) -> Option<String> {
    let name = snake(&native.name);
    let short = name.strip_prefix("get_")?;
    let known = PerfMetric::ALL.iter();
    let mut known = known.filter(|m| m.name() == short || m.name() == name);
    let metric = known.next()?;
    Some(format!("figure!({}, {metric:?});\n", native.symbol))
}

/// Texts that follow from the specification.
struct Made {
    accessors: String,
    refused: String,
    signatures: String,
    status: String,
}

fn header(what: &str) -> String {
    format!(
        "//! {what} Generated by `cargo xtask jni`; do not edit.\n//!\n//! The file is long because the interface is.\n\n"
    )
}

fn make(root: &Path) -> io::Result<Made> {
    let natives = read_spec(root)?;
    let written = hand_written(&root.join("bindings/jni/src"))?;
    let accessors = Accessors::read(root)?;
    let mut made = Made {
        accessors: header("Setters and getters of options."),
        refused: header("Native methods that are not supported."),
        signatures: header("Each function has the signature that the JVM calls it by."),
        status: String::new(),
    };
    made.accessors += "use crate::access::{get, set};\nuse crate::objects::*;\n";
    made.accessors += "use crate::perf::figure;\n\n";
    made.refused += "use crate::refusal::refused;\nuse jni_sys::jobject;\n\n";
    made.signatures += "#![allow(unused_imports, clippy::type_complexity)]\n\n";
    made.signatures += "use crate::boundary::RawEnv;\nuse crate::*;\nuse jni_sys::jobject;\n\n";
    let modules = modules(root)?;
    let mut refused: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut newest = 0;
    let mut unknown: BTreeSet<String> = written.clone();
    for native in &natives {
        unknown.remove(&native.symbol);
        let (types, answer) = native.types();
        let arrow = answer.map(|a| format!(" -> {a}")).unwrap_or_default();
        let is_current = native.versions.ends_with("..11.8");
        newest += usize::from(is_current);
        let module;
        if written.contains(&native.symbol) {
            module = modules.get(&native.symbol).cloned().unwrap_or_default();
        } else if let Some(line) = accessors.find(native) {
            made.accessors += &line;
            module = "generated::accessors".to_owned();
        } else {
            let _ = writeln!(
                made.refused,
                "refused!({}, {:?}, ({}){arrow});",
                native.symbol,
                native.shown(),
                types.join(", ")
            );
            if is_current {
                let (class, method) = (native.shown(), native.name.clone());
                let class = class.trim_end_matches(&format!(".{method}")).to_owned();
                refused.entry(class).or_default().insert(method);
            }
            module = "generated::refused".to_owned();
        }
        let arguments: String = types.iter().map(|t| format!(", {t}")).collect();
        let _ = writeln!(
            made.signatures,
            "const _: extern \"system\" fn(RawEnv, jobject{arguments}){arrow} = {module}::{};",
            native.symbol
        );
    }
    if let Some(name) = unknown.iter().next() {
        return Err(bad(format!("{name} is not in spec/natives.txt")));
    }
    made.accessors = generated::formatted(&made.accessors)?;
    made.refused = generated::formatted(&made.refused)?;
    made.signatures = generated::formatted(&made.signatures)?;
    made.status = status(natives.len(), newest, &refused);
    Ok(made)
}

/// The module that defines each symbol.
fn modules(root: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut modules = BTreeMap::new();
    let dir = root.join("bindings/jni/src");
    for entry in std::fs::read_dir(&dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "rs") {
            let module = path.file_stem().unwrap_or_default().to_string_lossy();
            let text = std::fs::read_to_string(&path)?;
            let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            for word in words.filter(|w| w.starts_with("Java_")) {
                modules.insert(word.to_owned(), module.clone().into_owned());
            }
        }
    }
    Ok(modules)
}

fn status(all: usize, newest: usize, refused: &BTreeMap<String, BTreeSet<String>>) -> String {
    let count: usize = refused.values().map(BTreeSet::len).sum();
    let mut text = format!(
        "\n# The Java library\n\n`librocksdbjni` exports the {all} native methods of `org.rocksdb` in the jars 6.20 to 11.8, \
         {newest} of them\nin 11.8. Of those in 11.8 these {count} throw `RocksDBException` with the status NotSupported:\n\n"
    );
    for (class, methods) in refused {
        let methods: Vec<String> = methods.iter().map(|m| format!("`{m}`")).collect();
        let _ = writeln!(text, "- `{class}`: {}", methods.join(", "));
    }
    text
}

fn outputs(root: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let made = make(root)?;
    let dir = root.join("bindings/jni/src/generated");
    Ok(vec![
        (dir.join("accessors.rs"), made.accessors),
        (dir.join("refused.rs"), made.refused),
        (dir.join("signatures.rs"), made.signatures),
    ])
}

/// The section of the compatibility page about the Java library.
pub(crate) fn page(root: &Path) -> io::Result<String> {
    Ok(make(root)?.status)
}

/// Writes what follows from the specification.
pub(crate) fn write(root: &Path) -> io::Result<Findings> {
    let mut findings = Findings::new();
    for (path, text) in outputs(root)? {
        findings.extend(generated::write(&path, &text)?);
    }
    Ok(findings)
}

/// Checks that what follows from the specification is current.
pub(crate) fn check(root: &Path) -> io::Result<Findings> {
    let mut findings = Findings::new();
    for (path, text) in outputs(root)? {
        findings.extend(generated::check(&path, &text, "cargo xtask jni")?);
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_mangled_as_the_jvm_does() {
        assert_eq!(mangle("J[BLjava/lang/String;"), "J_3BLjava_lang_String_2");
        assert_eq!(mangle("WriteBatch$Handler"), "WriteBatch_00024Handler");
        assert_eq!(snake("setMaxOpenFiles"), "set_max_open_files");
        assert_eq!(
            snake("level0SlowdownWritesTrigger"),
            "level0_slowdown_writes_trigger"
        );
    }
}
