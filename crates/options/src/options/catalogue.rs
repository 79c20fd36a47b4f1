//! The catalogue: one row per option name, from which everything else about options follows.
//!
//! A row of `option_table!` gives an option its field, RocksDB name, type, default, fate, group,
//! which RocksDB versions know the name, whether it can change on an open database, and its text.
//! The structs, get and set by name, OPTIONS files, the compatibility table and the linter read the
//! rows. The rows of the picker's options are in `esker_lsm::policy`, where each names its
//! conversion into the policy too; a struct of options that the picker takes whole is declared
//! there, and `option_rows!` gives it its rows. Thread-safety: immutable statics.

use super::retired::{Retired, Section};
use esker_status::{Error, Result};

/// Fate of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It drives something.
    Live,
    /// It is kept and round-trips, and needs nothing here, for this reason.
    Accepted(&'static str),
    /// Anything but the default is an error, for this reason.
    Refused(&'static str),
}

/// Which subject an option belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Opening, paths and identity.
    Open,
    /// Memtables and memory limits.
    Memory,
    /// The write-ahead log and the write path.
    Wal,
    /// Table files.
    Table,
    /// Compression.
    Compression,
    /// The shape of the tree.
    Compaction,
    /// Slowing and stopping writers.
    Admission,
    /// Background threads, files and I/O.
    Jobs,
    /// Blob files.
    Blobs,
    /// Syncs, recovery and checks.
    Durability,
    /// Logs, statistics and checks.
    Observe,
    /// Reading.
    Read,
    /// Replicas that follow a primary.
    Follower,
}

/// Which RocksDB versions know a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// 7.8 and 11.x. Only these are printed, so that every version loads the file.
    Both,
    /// 11.x only.
    New,
    /// 7.8 only: later versions parse it and do nothing.
    Old,
    /// A name that was given up before 7.8, or that is never printed.
    Unprinted,
    /// Esker's own: in OPTIONS files it stands where RocksDB does not look.
    Own,
}

/// Times at which an option can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only at open.
    AtOpen,
    /// Also through `set_options` or `set_db_options`.
    AnyTime,
}

/// Description of one option, without its accessors.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// RocksDB's name, or Esker's own.
    pub name: &'static str,
    /// Where it lives.
    pub section: Section,
    /// Type of its value, as text.
    pub value_type: &'static str,
    /// Its effect.
    pub doc: &'static str,
    /// Fate of its value.
    pub fate: Fate,
    /// Its subject.
    pub group: Group,
    /// The engines that know the name.
    pub known: Known,
    /// When it can change.
    pub change: Change,
}

/// One row for the struct `S`.
#[derive(Clone, Copy)]
pub struct Entry<S: 'static> {
    /// Description of the option.
    pub info: Info,
    /// The value as RocksDB prints it.
    pub get: fn(&S) -> String,
    /// Replaces the value by the one that the text means.
    pub set: fn(&mut S, &str) -> Result<()>,
    /// The value as an OPTIONS file that every RocksDB since 7.8 loads holds it.
    pub get_for_file: fn(&S) -> String,
    /// Replaces the value by the one that an OPTIONS file holds.
    pub set_from_file: fn(&mut S, &str) -> Result<()>,
}

impl<S> std::fmt::Debug for Entry<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.info.fmt(f)
    }
}

/// A struct whose fields are rows of the catalogue.
pub trait OptionSet: Default + Clone + 'static {
    /// Where the options of this struct live.
    const SECTION: Section;

    /// The rows.
    fn entries() -> &'static [Entry<Self>];

    /// The values of the default set as RocksDB prints them, by row.
    fn defaults() -> &'static [String];

    /// The row of `name`.
    fn entry(name: &str) -> Option<&'static Entry<Self>> {
        Self::entries().iter().find(|e| e.info.name == name)
    }

    /// The value of `name` as text, or `None` for a name that is not in this section.
    fn get(&self, name: &str) -> Option<String> {
        Self::entry(name).map(|e| (e.get)(self))
    }

    /// Sets `name` from text. A name RocksDB retired is accepted without effect; an unknown name, a
    /// value that does not parse and a refused value are `InvalidArgument` or `NotSupported`.
    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let (head, rest) = match name.split_once('.') {
            Some((head, rest)) => (head, Some(rest)),
            None => (name, None),
        };
        let Some(entry) = Self::entry(head) else {
            return match super::retired::find(Self::SECTION, name) {
                Some(Retired {
                    alias_of: Some(real),
                    ..
                }) => self.set(real, value),
                Some(_) => Ok(()),
                None => Err(unknown::<Self>(name)),
            };
        };
        let before = self.clone();
        let outcome = match rest {
            // `compaction_options_universal.size_ratio=5` changes one member.
            Some(member) => (entry.set)(self, &format!("{{{member}={value};}}")),
            None => (entry.set)(self, value),
        };
        let outcome = outcome
            .map_err(|e| Error::new(e.kind(), format!("option {name}: {}", e.message())))
            .and_then(|()| refuse(entry, self));
        if outcome.is_err() {
            *self = before;
        }
        outcome
    }

    /// Sets every option of a list `a=1;b={c=2;d=3};`. Nothing changes when one of them fails.
    fn set_list(&mut self, list: &str) -> Result<()> {
        let mut next = self.clone();
        for (name, value) in esker_format::options_text::parse_pairs(list)? {
            next.set(&name, &value)?;
        }
        *self = next;
        Ok(())
    }

    /// An error for the first refused option that is not at its default.
    fn check_refused(&self) -> Result<()> {
        Self::entries().iter().try_for_each(|e| refuse(e, self))
    }

    /// The names and values that differ from `base`.
    fn changes_from(&self, base: &Self) -> Vec<(&'static str, String)> {
        Self::entries()
            .iter()
            .map(|e| (e.info.name, (e.get)(self), (e.get)(base)))
            .filter(|(_, mine, theirs)| mine != theirs)
            .map(|(name, mine, _)| (name, mine))
            .collect()
    }
}

/// Says which names come near one that is unknown.
#[cold]
pub(super) fn unknown<S: OptionSet>(name: &str) -> Error {
    let names = S::entries().iter().map(|e| e.info.name).collect();
    let meant = super::nearest::suggestion(name, names).unwrap_or_default();
    Error::invalid_argument(format!("unknown option {name:?} in {}", S::SECTION.title()))
        .with_hint(format!("{meant} `esker options explain` lists the names"))
}

/// `NotSupported` when the option is refused and not at its default.
pub fn refuse<S: OptionSet>(entry: &Entry<S>, options: &S) -> Result<()> {
    let Fate::Refused(reason) = entry.info.fate else {
        return Ok(());
    };
    let (value, default) = ((entry.get)(options), (entry.get)(&S::default()));
    if value == default {
        return Ok(());
    }
    Err(Error::not_supported(format!(
        "option {}={value} is refused: {reason}",
        entry.info.name
    ))
    .with_hint(format!(
        "leave it at {}",
        if default.is_empty() {
            "its empty default"
        } else {
            &default
        }
    )))
}

/// Declares a struct of options, row by row. See the module's text.
macro_rules! option_table {
    (
        // Rows of the picker, with the type and the conversion that its policy has.
        {
            $(
                $(#[doc = $pdoc:literal])+
                $pfield:ident : $pty:ty = $pdefault:expr,
                $pfate:ident, $pgroup:ident, $pknown:ident, $pchange:ident
                    => $picked:ty, $convert:ident;
            )*
        }
        $(#[$meta:meta])*
        $vis:vis struct $name:ident in $section:ident;
        $(
            $(#[doc = $doc:literal])+
            $field:ident : $ty:ty = $default:expr,
            $fate:ident $(($reason:literal))?, $group:ident, $known:ident, $change:ident;
        )*
        $(objects { $($objects:tt)* })?
    ) => {
        $crate::options::catalogue::option_table! {
            $(#[$meta])*
            $vis struct $name in $section;
            $(
                $(#[doc = $doc])+
                $field: $ty = $default, $fate $(($reason))?, $group, $known, $change;
            )*
            $(
                $(#[doc = $pdoc])+
                $pfield: $pty = $pdefault, $pfate, $pgroup, $pknown, $pchange;
            )*
            $(objects { $($objects)* })?
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident in $section:ident;
        $(
            $(#[doc = $doc:literal])+
            $field:ident $([$alias:literal])? : $ty:ty = $default:expr,
            $fate:ident $(($reason:literal))?, $group:ident, $known:ident, $change:ident;
        )*
        $(objects { $( $(#[doc = $odoc:literal])+ $ofield:ident : $oty:ty = $odefault:expr; )* })?
    ) => {
        $(#[$meta])*
        #[derive(Clone)]
        #[non_exhaustive]
        $vis struct $name {
            $( $(#[doc = $doc])+ pub $field: $ty, )*
            $($( $(#[doc = $odoc])+ pub $ofield: $oty, )*)?
        }

        impl Default for $name {
            fn default() -> Self {
                $name {
                    $( $field: $default, )*
                    $($( $ofield: $odefault, )*)?
                }
            }
        }

        impl std::fmt::Debug for $name {
            /// Only what differs from the defaults.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut out = f.debug_struct(stringify!($name));
                for (name, value) in $crate::options::OptionSet::changes_from(self, &Self::default()) {
                    out.field(name, &value);
                }
                out.finish_non_exhaustive()
            }
        }

        $crate::options::catalogue::option_rows! {
            $name in $section;
            $( $(#[doc = $doc])+ $field $([$alias])? : $ty, $fate $(($reason))?, $group, $known, $change; )*
        }
    };
}

/// Declares the rows of a struct that is there already; defaults are the struct's.
macro_rules! option_rows {
    (
        $name:ident in $section:ident;
        $(
            $(#[doc = $doc:literal])+
            $field:ident $([$alias:literal])? : $ty:ty,
            $fate:ident $(($reason:literal))?, $group:ident, $known:ident, $change:ident;
        )*
    ) => {
        impl $crate::options::OptionSet for $name {
            const SECTION: $crate::options::Section = $crate::options::Section::$section;

            fn entries() -> &'static [$crate::options::Entry<Self>] {
                static ENTRIES: &[$crate::options::Entry<$name>] = &[
                    $( $crate::options::Entry {
                        info: $crate::options::Info {
                            name: $crate::options::catalogue::option_name!($field $($alias)?),
                            section: $crate::options::Section::$section,
                            value_type: <$ty as $crate::options::value::OptionValue>::TYPE,
                            doc: concat!($($doc),+),
                            fate: $crate::options::Fate::$fate $(($reason))?,
                            group: $crate::options::Group::$group,
                            known: $crate::options::Known::$known,
                            change: $crate::options::Change::$change,
                        },
                        get: |s| $crate::options::value::OptionValue::print(&s.$field),
                        set: |s, text| $crate::options::value::OptionValue::parse_into(&mut s.$field, text),
                        get_for_file: |s| $crate::options::value::OptionValue::print_for_file(&s.$field),
                        set_from_file: |s, text| $crate::options::value::OptionValue::parse_from_file(&mut s.$field, text),
                    }, )*
                ];
                ENTRIES
            }

            fn defaults() -> &'static [String] {
                static DEFAULTS: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
                DEFAULTS.get_or_init(|| {
                    let (entries, default) = (Self::entries(), Self::default());
                    entries.iter().map(|e| (e.get)(&default)).collect()
                })
            }
        }
    };
}

/// The RocksDB name of a field: the field's, unless an alias is given.
macro_rules! option_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $alias:literal) => {
        $alias
    };
}

pub(crate) use {option_name, option_rows, option_table};
