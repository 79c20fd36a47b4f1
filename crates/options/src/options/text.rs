//! OPTIONS files: printed so that every RocksDB since 7.8 loads them, and loaded from any version.
//!
//! Only names that 7.8.3 knows are printed as statements. A live option that only later versions
//! know, or Esker alone, is kept in a comment that starts with `#+`, when it is not at its default:
//! RocksDB skips it, and it is read back here. An unknown name, or a value that cannot be read, is
//! an error unless the file comes from a RocksDB newer than the catalogue and the caller asks to go
//! on.

use super::catalogue::{Known, OptionSet};
use super::nested_value::load_one;
use super::{DbOptions, FamilyOptions, TableSettings};
use esker_format::options_text::{OptionsText, Section, escape};
use esker_status::{Error, ErrorKind, Result};
use std::fmt::Write as _;

/// The newest RocksDB whose names the catalogue has.
const NEWEST_KNOWN: (u32, u32) = (11, 9);
/// The version that printed files name.
const PRINTED_VERSION: &str = "7.8.3";
/// The start of a comment that holds an option.
const KEPT: &str = "#+ ";

const TABLE_TITLE: &str = "TableOptions/BlockBasedTable";

/// Treatment of options that cannot be taken over.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadRules {
    /// Goes on at unknown names, and at values of known ones that cannot be read, when the file
    /// comes from a newer RocksDB. Such an option keeps its default, or what else of a nested value
    /// can be read.
    pub ignore_unknown: bool,
    /// Makes errors of refused values and of objects without a built-in; else they are remarks, and
    /// the option stays at its default.
    pub strict: bool,
}

/// Something in a file that was not taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The family, or `None` for the database's own options.
    pub family: Option<String>,
    /// The option.
    pub option: String,
    /// Its value in the file.
    pub value: String,
    /// Why it was not taken over.
    pub reason: String,
}

/// Contents of an OPTIONS file.
#[derive(Clone, Debug, Default)]
pub struct LoadedOptions {
    /// The RocksDB version that the file names.
    pub version: String,
    /// The database's options.
    pub db: DbOptions,
    /// The families' options, in the order of the file; `default` is first.
    pub families: Vec<(String, FamilyOptions)>,
    /// Options that were not taken over: names of newer versions, refused values, objects of the
    /// application.
    pub remarks: Vec<Remark>,
}

fn print_section<S: OptionSet>(out: &mut String, header: &str, options: &S) {
    let _ = writeln!(out, "[{header}]");
    for (entry, default) in S::entries().iter().zip(S::defaults()) {
        if matches!(entry.info.known, Known::Both | Known::Old) {
            let value = (entry.get_for_file)(options);
            if !value.is_empty() {
                let _ = writeln!(out, "  {}={value}", entry.info.name);
            }
        }
        let hidden = match entry.info.known {
            Known::New | Known::Own => true,
            Known::Unprinted => entry.info.value_type != "struct",
            // Members of a nested struct that only later versions know.
            Known::Both => entry.info.value_type == "struct",
            Known::Old => false,
        };
        if !hidden {
            continue;
        }
        let value = (entry.get)(options);
        if value != *default {
            let _ = writeln!(out, "  {KEPT}{}={value}", entry.info.name);
        }
    }
    out.push('\n');
}

/// The OPTIONS file of a database with these families. `default` must come first.
pub fn print_options_text<'a>(
    db: &DbOptions,
    families: impl IntoIterator<Item = (&'a str, &'a FamilyOptions)>,
) -> String {
    // About what one family takes.
    let mut out = String::with_capacity(16 << 10);
    out.push_str(
        "# This is a RocksDB option file.\n#\n# Lines that begin with #+ hold options that RocksDB 7.8 does not know.\n\n",
    );
    let _ = writeln!(
        out,
        "[Version]\n  rocksdb_version={PRINTED_VERSION}\n  options_file_version=1.1\n"
    );
    print_section(&mut out, "DBOptions", db);
    for (name, family) in families {
        let name = escape(name);
        print_section(&mut out, &format!("CFOptions \"{name}\""), family);
        print_section(
            &mut out,
            &format!("{TABLE_TITLE} \"{name}\""),
            &family.table,
        );
    }
    out
}

/// The text of an OPTIONS file for a copy of the database that has all tables in one directory:
/// without paths.
pub fn without_paths(text: &str) -> String {
    let names_paths = |line: &&str| {
        let name = line.trim_start().strip_prefix(KEPT).map(str::trim_start);
        name.is_some_and(|n| n.starts_with("db_paths=") || n.starts_with("cf_paths="))
    };
    let kept = text.split_inclusive('\n').filter(|line| !names_paths(line));
    kept.collect()
}

/// Loads one section.
struct Loader<'a> {
    rules: LoadRules,
    from_newer: bool,
    family: Option<&'a str>,
    remarks: &'a mut Vec<Remark>,
}

impl Loader<'_> {
    fn remark(&mut self, option: &str, value: &str, error: &Error) {
        self.remarks.push(Remark {
            family: self.family.map(str::to_owned),
            option: option.to_owned(),
            value: value.to_owned(),
            reason: error.message().to_owned(),
        });
    }

    fn section<S: OptionSet>(&mut self, section: &Section, options: &mut S) -> Result<()> {
        for (name, value) in &section.statements {
            // A newer release may know more values of a name as well as more names.
            let is_newer = self.rules.ignore_unknown && self.from_newer;
            if let Err(error) = load_one(options, name, value, is_newer) {
                let error = Error::new(
                    error.kind(),
                    format!("OPTIONS [{}] {name}: {}", section.title, error.message()),
                );
                let is_refused = S::entry(name).is_some()
                    && !self.rules.strict
                    && error.kind() == ErrorKind::NotSupported;
                if !is_newer && !is_refused {
                    return Err(error.with_hint("see `esker options explain`"));
                }
                self.remark(name, value, &error);
            }
        }
        Ok(())
    }
}

/// Turns `#+ name=value` into `name=value`, so that it overrides the statement before it.
fn uncover(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        out.push_str(line.trim_start().strip_prefix(KEPT).unwrap_or(line));
        out.push('\n');
    }
    out
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Reads an OPTIONS file.
pub fn load_options_text(text: &str, rules: LoadRules) -> Result<LoadedOptions> {
    let file = OptionsText::parse(&uncover(text))?;
    let version = file
        .section("Version", None)
        .and_then(|s| s.get("rocksdb_version"))
        .ok_or_else(|| {
            Error::invalid_argument(
                "OPTIONS: the section [Version] with rocksdb_version is missing",
            )
        })?;
    let number = parse_version(version).ok_or_else(|| {
        Error::invalid_argument(format!(
            "OPTIONS: rocksdb_version={version} is not a version"
        ))
    })?;
    let mut loaded = LoadedOptions {
        version: version.to_owned(),
        ..LoadedOptions::default()
    };
    let mut remarks = Vec::new();
    let mut seen_db = false;
    for section in &file.sections {
        let family = section.argument.as_deref();
        let mut loader = Loader {
            rules,
            from_newer: number > NEWEST_KNOWN,
            family,
            remarks: &mut remarks,
        };
        match (section.title.as_str(), family) {
            ("Version", None) => {}
            ("DBOptions", None) if !seen_db => {
                seen_db = true;
                loader.section(section, &mut loaded.db)?;
            }
            ("CFOptions", Some(name)) => {
                if loaded.families.iter().any(|(n, _)| n == name) {
                    return Err(misplaced(section, "the family was described before"));
                }
                if loaded.families.is_empty() && name != "default" {
                    return Err(misplaced(section, "the family \"default\" must come first"));
                }
                let mut options = FamilyOptions::default();
                loader.section(section, &mut options)?;
                loaded.families.push((name.to_owned(), options));
            }
            (TABLE_TITLE, Some(name)) => {
                match loaded.families.last_mut().filter(|(n, _)| n == name) {
                    Some((_, options)) => {
                        loader.section::<TableSettings>(section, &mut options.table)?
                    }
                    None => {
                        return Err(misplaced(
                            section,
                            "it must follow its family's [CFOptions]",
                        ));
                    }
                }
            }
            (title, Some(name)) if title.starts_with("TableOptions/") => {
                // The family's `table_factory` says which tables were meant.
                let why = Error::not_supported(format!(
                    "new tables of family {name:?} are block-based: these settings are not used"
                ));
                loader.remark("table_factory", title, &why);
            }
            _ => return Err(misplaced(section, "the section is unknown or repeated")),
        }
    }
    if !seen_db || loaded.families.is_empty() {
        return Err(Error::invalid_argument(
            "OPTIONS: [DBOptions] or [CFOptions \"default\"] is missing",
        )
        .with_hint("the file is incomplete: use an older OPTIONS file"));
    }
    loaded.remarks = remarks;
    Ok(loaded)
}

#[cold]
fn misplaced(section: &Section, why: &str) -> Error {
    Error::invalid_argument(format!(
        "OPTIONS: [{}] at line {}: {why}",
        section.title, section.line
    ))
}
