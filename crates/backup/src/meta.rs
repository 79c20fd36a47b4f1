//! The file `meta/N`: what backup N consists of, as text.
//!
//! ```text
//! schema_version 2.1              only from version 2 on
//! 1700000000                      when it was made
//! 42                              a sequence number
//! metadata 6D657461               the application's, in hex; only when there is any
//! 2                               how many files follow, excluded ones not counted
//! private/1/CURRENT crc32 1234
//! shared_checksum/000008_sABC_1000.sst crc32 5678 temp kWarm
//! shared_checksum/000009_sABC_1000.sst ni::excluded true
//! // FOOTER                       version 2: fields of later versions may follow
//! ```
//!
//! In version 2 a file has fields in pairs. What is not known is passed over, unless its name
//! starts with `ni::`: then the backup cannot be used. Pure functions over text.

use crate::names;
use esker::{Error, Result};
use std::fmt::Write as _;

const SCHEMA_PREFIX: &str = "schema_version ";
const FOOTER: &str = "// FOOTER";
const NON_IGNORABLE: &str = "ni::";
const EXCLUDED: &str = "ni::excluded";
/// The largest version that is written, and how it is called.
pub(crate) const LATEST_SCHEMA: i32 = 2;
const LATEST_SCHEMA_NAME: &str = "2.1";
/// The most that an application may store with a backup.
pub(crate) const MAX_APP_METADATA: usize = 1 << 20;
/// A longer file is not read.
pub(crate) const MAX_META_BYTES: u64 = 256 << 20;

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetaFile {
    pub(crate) name: String,
    pub(crate) crc32c: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) temperature: Option<String>,
}

/// Contents of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MetaText {
    pub(crate) timestamp: u64,
    pub(crate) sequence: u64,
    pub(crate) app_metadata: Vec<u8>,
    pub(crate) files: Vec<MetaFile>,
    pub(crate) excluded: Vec<String>,
}

impl MetaText {
    /// The text in schema `version`.
    pub(crate) fn print(&self, version: i32) -> Result<String> {
        if version < 1 {
            return Err(Error::invalid_argument(
                "BackupEngineOptions::schema_version must be >= 1",
            ));
        }
        if version > LATEST_SCHEMA {
            return Err(Error::not_supported(format!(
                "Only BackupEngineOptions::schema_version <= {LATEST_SCHEMA} is supported"
            )));
        }
        let mut out = String::new();
        if version >= 2 {
            out.push_str(SCHEMA_PREFIX);
            out.push_str(LATEST_SCHEMA_NAME);
            out.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = write!(out, "{}\n{}\n", self.timestamp, self.sequence);
        if !self.app_metadata.is_empty() {
            out.push_str("metadata ");
            for byte in &self.app_metadata {
                let _ = write!(out, "{byte:02X}");
            }
            out.push('\n');
        }
        let _ = writeln!(out, "{}", self.files.len());
        for file in &self.files {
            out.push_str(&file.name);
            if let Some(crc) = file.crc32c {
                let _ = write!(out, " crc32 {crc}");
            }
            if let Some(temperature) = file.temperature.as_ref().filter(|_| version >= 2) {
                let _ = write!(out, " temp {temperature}");
            }
            out.push('\n');
        }
        for name in &self.excluded {
            let _ = writeln!(out, "{name} {EXCLUDED} true");
        }
        Ok(out)
    }

    /// Reads the text. `Corruption` for one that is damaged, `NotSupported` for one of a later
    /// version.
    pub(crate) fn parse(bytes: &[u8]) -> Result<MetaText> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Error::corruption("a backup's meta file is not text"))?;
        let mut lines = text.lines();
        let mut next = || lines.next();
        let mut line = next().ok_or_else(|| Error::corruption("Unexpected empty line"))?;
        let mut schema = 1;
        if let Some(version) = line.strip_prefix(SCHEMA_PREFIX) {
            if version != "2" && !version.starts_with("2.") {
                return Err(Error::not_supported(format!(
                    "Unsupported/unrecognized schema version: {version}"
                )));
            }
            schema = 2;
            line = next().unwrap_or_default();
        }
        let mut meta = MetaText {
            timestamp: number(line, "timestamp")?,
            sequence: number(next().unwrap_or_default(), "sequence number")?,
            ..MetaText::default()
        };
        let expected = meta.header(schema, &mut next)?;
        let footer = meta.file_lines(schema, &mut next)?;
        if footer {
            footer_lines(&mut next)?;
        }
        if meta.files.len() as u64 != expected {
            return Err(Error::corruption(format!(
                "Inconsistent number of files or missing/incomplete header: {expected} announced, {} found",
                meta.files.len()
            )));
        }
        Ok(meta)
    }

    /// Fields up to the number of files, which is returned.
    fn header<'t>(
        &mut self,
        schema: u32,
        next: &mut impl FnMut() -> Option<&'t str>,
    ) -> Result<u64> {
        while let Some(line) = next() {
            if line.starts_with(|c: char| c.is_ascii_digit()) {
                return number(line, "number of files");
            }
            let Some((name, data)) = line.split_once(' ') else {
                return Err(Error::corruption("Expected number of files or meta field"));
            };
            if name == "metadata" {
                self.app_metadata = unhex(data).ok_or_else(|| {
                    Error::corruption("Failed to decode stored hex encoded app metadata")
                })?;
            } else if schema < 2 {
                return Err(Error::corruption(
                    "Expected number of files or \"metadata\" field",
                ));
            } else {
                check_ignorable("meta", name)?;
            }
        }
        Err(Error::corruption("the number of files is missing"))
    }

    /// The files; whether a footer follows.
    fn file_lines<'t>(
        &mut self,
        schema: u32,
        next: &mut impl FnMut() -> Option<&'t str>,
    ) -> Result<bool> {
        while let Some(line) = next() {
            if schema >= 2 && line == FOOTER {
                return Ok(true);
            }
            let mut words = line.split(' ');
            let name = words.next().unwrap_or_default();
            let fields: Vec<&str> = words.collect();
            if schema < 2 && (fields.len() != 2 || fields[0] != "crc32") {
                return Err(Error::corruption(format!(
                    "a file entry has no checksum, or more than that: {line:?}"
                )));
            }
            if !fields.len().is_multiple_of(2) {
                return Err(Error::corruption(
                    "Bad number of line components for file entry.",
                ));
            }
            names::parse(name)?;
            self.file(name, &fields)?;
        }
        Ok(false)
    }

    fn file(&mut self, name: &str, fields: &[&str]) -> Result<()> {
        let mut file = MetaFile {
            name: name.to_owned(),
            crc32c: None,
            size: None,
            temperature: None,
        };
        let mut excluded = false;
        for pair in fields.chunks_exact(2) {
            let (field, data) = (pair[0], pair[1]);
            match (field, data) {
                ("crc32", _) => file.crc32c = Some(checksum(name, data)?),
                ("size", _) => file.size = Some(number(data, "size")?),
                ("temp", _) => file.temperature = Some(data.to_owned()),
                (EXCLUDED, "true") => excluded = true,
                (EXCLUDED, "false") => excluded = false,
                (EXCLUDED, _) => {
                    return Err(Error::not_supported(format!(
                        "Unrecognized value {data:?} for field {field}"
                    )));
                }
                _ => check_ignorable("file", field)?,
            }
        }
        if excluded {
            self.excluded.push(name.to_owned());
        } else {
            self.files.push(file);
        }
        Ok(())
    }
}

fn footer_lines<'t>(next: &mut impl FnMut() -> Option<&'t str>) -> Result<()> {
    while let Some(line) = next() {
        let Some((name, _)) = line.split_once(' ') else {
            return Err(Error::corruption("Expected footer field"));
        };
        check_ignorable("footer", name)?;
    }
    Ok(())
}

fn check_ignorable(what: &str, field: &str) -> Result<()> {
    if field.starts_with(NON_IGNORABLE) {
        return Err(Error::not_supported(format!(
            "Unrecognized non-ignorable {what} field {field} (from future version?)"
        )));
    }
    Ok(())
}

fn number(text: &str, what: &str) -> Result<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Error::corruption(format!("{text:?} is not a valid {what}")));
    }
    text.parse()
        .map_err(|_| Error::corruption(format!("{text:?} is not a valid {what}")))
}

fn checksum(name: &str, data: &str) -> Result<u32> {
    data.parse()
        .ok()
        .filter(|v: &u32| v.to_string() == data)
        .ok_or_else(|| Error::corruption(format!("Invalid checksum value for {name}")))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() > 2 * MAX_APP_METADATA || !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let digit = |b: u8| char::from(b).to_digit(16);
    text.as_bytes()
        .chunks_exact(2)
        .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> MetaText {
        let file = |name: &str, crc: u32| MetaFile {
            name: name.to_owned(),
            crc32c: Some(crc),
            size: None,
            temperature: None,
        };
        MetaText {
            timestamp: 1_700_000_000,
            sequence: 42,
            app_metadata: b"meta\x00\xff".to_vec(),
            files: vec![
                file("private/1/CURRENT", 0),
                file("shared_checksum/000008_sABC_10.sst", u32::MAX),
            ],
            excluded: Vec::new(),
        }
    }

    #[test]
    fn both_schemas_come_back() {
        let mut meta = sample();
        let text = meta.print(1).expect("a version");
        assert_eq!(
            text,
            "1700000000\n42\nmetadata 6D65746100FF\n2\nprivate/1/CURRENT crc32 0\n\
             shared_checksum/000008_sABC_10.sst crc32 4294967295\n"
        );
        assert_eq!(MetaText::parse(text.as_bytes()).expect("ours"), meta);
        meta.files[1].temperature = Some("kWarm".to_owned());
        meta.excluded = vec!["shared_checksum/000009_sABC_10.sst".to_owned()];
        let text = meta.print(2).expect("a version");
        assert!(text.starts_with("schema_version 2.1\n"), "{text}");
        assert_eq!(MetaText::parse(text.as_bytes()).expect("ours"), meta);
        meta.print(0).expect_err("no version");
        meta.print(3).expect_err("a later version");
    }

    #[test]
    fn version_2_passes_over_what_it_does_not_know() {
        let text = "schema_version 2.7\n1\n2\nnew field\n1\nprivate/1/CURRENT size 16 new thing crc32 7\n// FOOTER\nlater on\n";
        let meta = MetaText::parse(text.as_bytes()).expect("readable");
        assert_eq!(meta.files[0].size, Some(16));
        assert_eq!(meta.files[0].crc32c, Some(7));
        for text in [
            "schema_version 3\n1\n2\n0\n",
            "schema_version 2.1\n1\n2\nni::new field\n0\n",
            "schema_version 2.1\n1\n2\n1\nprivate/1/CURRENT ni::new thing\n",
            "schema_version 2.1\n1\n2\n1\nprivate/1/CURRENT ni::excluded maybe\n",
            "schema_version 2.1\n1\n2\n0\n// FOOTER\nni::later on\n",
        ] {
            let e = MetaText::parse(text.as_bytes()).expect_err(text);
            assert_eq!(e.kind(), esker::ErrorKind::NotSupported, "{text}");
        }
    }

    #[test]
    fn damage_is_told() {
        let whole = sample().print(1).expect("a version");
        // Cut off within the last line, a checksum can still be one.
        let last = whole.trim_end().rfind('\n').expect("lines") + 1;
        for cut in 0..last {
            if whole.is_char_boundary(cut) {
                MetaText::parse(&whole.as_bytes()[..cut]).expect_err(&whole[..cut]);
            }
        }
        for text in [
            "\n",
            "x\n1\n0\n",
            "-1\n1\n0\n",
            "1\n1\nmetadata 1\n0\n",
            "1\n1\nmetadata xx\n0\n",
            "1\n1\nother field\n0\n",
            "1\n1\n1\nprivate/1/CURRENT\n",
            "1\n1\n1\nprivate/1/CURRENT crc32 01\n",
            "1\n1\n1\nprivate/1/CURRENT crc32 4294967296\n",
            "1\n1\n1\nprivate/1/CURRENT crc32 1 size 2\n",
            "1\n1\n1\n../CURRENT crc32 1\n",
            "1\n1\n0\n\n",
            "1\n1\n99999999999999999999\n",
        ] {
            let e = MetaText::parse(text.as_bytes()).expect_err(text);
            assert!(e.is_corruption(), "{text}: {e}");
        }
        MetaText::parse(&[0xff, b'\n']).expect_err("no text");
    }
}
