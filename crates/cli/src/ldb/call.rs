//! The command line of `ldb`: words, options with values, and flags, in any order.

use crate::database::{DbArgs, HexArgs};
use crate::directory::Directory;
use crate::fold::Fold;
use crate::idump::live;
use crate::text::unhex;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The result of a command: what is said behind `Failed: ` when it is an error.
pub(super) type LdbOutcome<T = ()> = Result<T, LdbFailure>;

/// The failure of a command of `ldb`.
pub(super) enum LdbFailure {
    /// It says this.
    Text(String),
    /// As other commands of `esker` fail.
    Of(crate::failure::Failure),
}

impl<E: Into<crate::failure::Failure>> From<E> for LdbFailure {
    fn from(e: E) -> Self {
        LdbFailure::Of(e.into())
    }
}

/// Fails with a text.
pub(super) fn failed<T>(text: impl Into<String>) -> LdbOutcome<T> {
    Err(LdbFailure::Text(text.into()))
}

/// A command line, taken apart.
#[derive(Debug, Default)]
pub(super) struct LdbCall {
    /// The command and its words.
    pub(super) words: Vec<OsString>,
    /// `--name=value`.
    pub(super) options: BTreeMap<String, OsString>,
    /// `--name`.
    pub(super) flags: BTreeSet<String>,
}

/// Options of every command, which say how the database is opened.
pub(super) const COMMON: &[&str] = &[
    "env_uri",
    "fs_uri",
    "db",
    "secondary_path",
    "column_family",
    "key_hex",
    "value_hex",
    "hex",
    "try_load_options",
    "ignore_unknown_options",
    "disable_consistency_checks",
    "bloom_bits",
    "fix_prefix_len",
    "compression_type",
    "compression_max_dict_bytes",
    "block_size",
    "auto_compaction",
    "db_write_buffer_size",
    "write_buffer_size",
    "file_size",
    "enable_blob_files",
    "min_blob_size",
    "blob_file_size",
    "blob_compression_type",
    "enable_blob_garbage_collection",
    "blob_garbage_collection_age_cutoff",
    "blob_garbage_collection_force_threshold",
    "blob_compaction_readahead_size",
];

impl LdbCall {
    /// Takes the arguments apart.
    pub(super) fn parse(args: &[OsString]) -> LdbCall {
        let mut call = LdbCall::default();
        for arg in args {
            let Some(named) = arg.as_bytes().strip_prefix(b"--") else {
                call.words.push(arg.clone());
                continue;
            };
            match named.iter().position(|b| *b == b'=') {
                Some(at) => {
                    let name = String::from_utf8_lossy(&named[..at]).into_owned();
                    let value = OsStr::from_bytes(&named[at + 1..]).to_owned();
                    call.options.insert(name, value);
                }
                None => {
                    call.flags
                        .insert(String::from_utf8_lossy(named).into_owned());
                }
            }
        }
        call
    }

    /// The words behind the command.
    pub(super) fn params(&self) -> &[OsString] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Returns whether the flag is there.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.contains(flag)
    }

    /// The text of an option.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let value = self.options.get(name)?;
        Some(value.to_string_lossy().into_owned())
    }

    /// The path of an option.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        self.options.get(name).map(PathBuf::from)
    }

    /// A flag, or an option that is `true` or `false`.
    pub(super) fn is_on(&self, name: &str, default: bool) -> LdbOutcome<bool> {
        match self.text(name).as_deref() {
            None => Ok(self.has(name) || default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => failed(format!("{name} has a value not-a-boolean.")),
        }
    }

    /// A number.
    pub(super) fn number(&self, name: &str) -> LdbOutcome<Option<i64>> {
        match self.text(name) {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(n) => Ok(Some(n)),
                Err(_) => failed(format!("{name} has an invalid value.")),
            },
        }
    }

    /// The number of keys at which a listing ends.
    pub(super) fn max_keys(&self) -> LdbOutcome<u64> {
        let Some(text) = self.text("max_keys") else {
            return Ok(u64::MAX);
        };
        match text.parse::<i64>() {
            Ok(n) => Ok(u64::try_from(n).unwrap_or(u64::MAX)),
            Err(_) => failed("max_keys has an invalid value"),
        }
    }

    /// How keys and values are given and shown.
    pub(super) fn hex(&self) -> LdbOutcome<HexArgs> {
        let all = self.is_on("hex", false)?;
        Ok(HexArgs {
            hex: all,
            key_hex: self.is_on("key_hex", false)?,
            value_hex: self.is_on("value_hex", false)?,
        })
    }

    /// A key that is an option.
    pub(super) fn bound(&self, name: &str) -> LdbOutcome<Option<Vec<u8>>> {
        let Some(value) = self.options.get(name) else {
            return Ok(None);
        };
        let is_hex = self.hex()?.keys() || self.is_on("input_key_hex", false)?;
        if is_hex {
            Ok(Some(unhex(value.as_bytes())?))
        } else {
            Ok(Some(value.clone().into_vec()))
        }
    }

    /// Where the database is, and the options it is opened with.
    pub(super) fn database(&self) -> LdbOutcome<DbArgs> {
        let Some(db) = self.path("db").filter(|p| !p.as_os_str().is_empty()) else {
            return failed("--db must be specified");
        };
        for name in ["env_uri", "fs_uri"] {
            if self.text(name).is_some_and(|v| !v.is_empty()) {
                return failed(format!(
                    "--{name} is refused: databases are read from this machine's filesystem"
                ));
            }
        }
        let loads = self.is_on("try_load_options", true)?;
        let mut db = DbArgs::at(db);
        if let Some(name) = self.text("column_family") {
            db.column_family = name;
        }
        db.default_options = !loads;
        db.ignore_unknown_options = self.is_on("ignore_unknown_options", false)?;
        db.secondary_path = self
            .path("secondary_path")
            .filter(|p| !p.as_os_str().is_empty());
        db.ttl = self.has("ttl").then_some(0);
        db.set = self.settings()?;
        Ok(db)
    }

    /// The directory of the database, and its live MANIFEST.
    pub(super) fn folded(&self) -> LdbOutcome<(Directory, Fold)> {
        let dir = Directory::read(self.database()?.path())?;
        let fold = live(&dir)?;
        Ok((dir, fold))
    }

    /// The options of the command line by their names as options.
    fn settings(&self) -> LdbOutcome<Vec<String>> {
        let mut set = Vec::new();
        let sized = [
            ("block_size", "block_size"),
            ("db_write_buffer_size", "db_write_buffer_size"),
            ("write_buffer_size", "write_buffer_size"),
            ("file_size", "target_file_size_base"),
            ("min_blob_size", "min_blob_size"),
            ("blob_file_size", "blob_file_size"),
            (
                "blob_compaction_readahead_size",
                "blob_compaction_readahead_size",
            ),
        ];
        for (name, option) in sized {
            if let Some(n) = self.number(name)? {
                if n < 0 || (n == 0 && !name.contains("blob")) {
                    return failed(format!("{name} must be > 0."));
                }
                set.push(format!("{option}={n}"));
            }
        }
        if let Some(n) = self.number("bloom_bits")? {
            if n <= 0 {
                return failed("bloom_bits must be > 0.");
            }
            set.push(format!("filter_policy=bloomfilter:{n}:false"));
        }
        if let Some(n) = self.number("fix_prefix_len")? {
            if n <= 0 {
                return failed("fix_prefix_len must be > 0.");
            }
            set.push(format!("prefix_extractor=rocksdb.FixedPrefix.{n}"));
        }
        if let Some(n) = self.number("compression_max_dict_bytes")? {
            if n < 0 {
                return failed("compression_max_dict_bytes must be >= 0.");
            }
            set.push(format!("compression_opts={{max_dict_bytes={n}}}"));
        }
        for (name, option) in [
            ("compression_type", "compression"),
            ("blob_compression_type", "blob_compression_type"),
        ] {
            let Some(text) = self.text(name) else {
                continue;
            };
            let codec = match text.as_str() {
                "no" => Some(esker::codec::compress::Codec::None),
                text => crate::recompress::codec_of(text),
            };
            let Some(codec) = codec else {
                return failed(format!("Unknown compression algorithm: {text}"));
            };
            set.push(format!("{option}={}", codec.option_name()));
        }
        for name in ["enable_blob_files", "enable_blob_garbage_collection"] {
            if self.is_on(name, false)? {
                set.push(format!("{name}=true"));
            }
        }
        for name in [
            "blob_garbage_collection_age_cutoff",
            "blob_garbage_collection_force_threshold",
        ] {
            if let Some(text) = self.text(name) {
                set.push(format!("{name}={text}"));
            }
        }
        if self.options.contains_key("auto_compaction") {
            let on = self.is_on("auto_compaction", true)?;
            set.push(format!("disable_auto_compactions={}", !on));
        }
        if self.is_on("disable_consistency_checks", false)? {
            set.push("force_consistency_checks=false".to_owned());
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> LdbCall {
        let args: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        LdbCall::parse(&args)
    }

    #[test]
    fn words_options_and_flags_come_in_any_order() {
        let call = parsed("--db=d get --hex a --from=x=y -");
        assert_eq!(call.words, ["get", "a", "-"]);
        assert_eq!(call.text("from").as_deref(), Some("x=y"));
        assert!(call.has("hex") && !call.has("db"));
    }

    #[test]
    fn options_have_the_names_of_the_catalogue() {
        let call = parsed(
            "--db=d put --bloom_bits=10 --file_size=7 --compression_type=zstd \
             --auto_compaction=false --enable_blob_files",
        );
        let Ok(set) = call.settings() else {
            panic!("settings");
        };
        for wanted in [
            "filter_policy=bloomfilter:10:false",
            "target_file_size_base=7",
            "compression=kZSTD",
            "disable_auto_compactions=true",
            "enable_blob_files=true",
        ] {
            assert!(set.iter().any(|s| s == wanted), "{wanted}: {set:?}");
        }
        for bad in ["--block_size=0", "--file_size=x", "--compression_type=foo"] {
            assert!(parsed(bad).settings().is_err(), "{bad}");
        }
    }
}
