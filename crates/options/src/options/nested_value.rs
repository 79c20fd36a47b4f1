//! Structs of options as the value of one option: `{a=1;b=2;}`.

use super::catalogue::{Known, OptionSet, refuse, unknown};
use super::retired::{self, Section};
use esker_format::options_text::parse_pairs;
use esker_status::Result;
use std::borrow::Cow;

/// Takes over one option. On a failure nothing changes, unless `keeps_members` leaves of a nested
/// value what could be read.
pub fn load_one<S: OptionSet>(
    options: &mut S,
    name: &str,
    value: &str,
    keeps_members: bool,
) -> Result<()> {
    let Some(entry) = S::entry(name) else {
        return match retired::find(S::SECTION, name) {
            Some(_) => Ok(()),
            None => Err(unknown::<S>(name)),
        };
    };
    let before = options.clone();
    let value = retired::meant(S::SECTION, name, value);
    let outcome = (entry.set_from_file)(options, &value).and_then(|()| refuse(entry, options));
    let is_nested = entry.info.value_type == "struct";
    if outcome.is_err() && !(keeps_members && is_nested) {
        *options = before;
    }
    outcome
}

/// Takes over the members of a nested value that can be read; the error is that of the first one
/// that cannot.
pub fn load_nested<S: OptionSet>(options: &mut S, text: &str) -> Result<()> {
    let mut outcome = Ok(());
    for (name, value) in parse_pairs(&positional(S::SECTION, text))? {
        let taken = load_one(options, &name, &value, false);
        outcome = outcome.and(taken);
    }
    outcome
}

/// Settings of compression as releases before 6.20 print them, and RocksDB reads them still:
/// `-14:4:0`, the members in this order, of which the first three have to be there.
fn positional(section: Section, text: &str) -> Cow<'_, str> {
    if section != Section::Compression || text.contains('=') {
        return Cow::Borrowed(text);
    }
    let values: Vec<_> = text.split(':').collect();
    // `enabled` is older than the number of threads before it: alone it is what comes sixth.
    let names: &[_] = match values.len() {
        3..=5 => &POSITIONS[..5],
        6 => &[&POSITIONS[..5], &["enabled"]].concat(),
        7..=9 => &POSITIONS,
        _ => return Cow::Borrowed(text),
    };
    let mut pairs = String::new();
    for (name, value) in names.iter().zip(values) {
        push_member(&mut pairs, name, value);
    }
    Cow::Owned(pairs)
}

const POSITIONS: [&str; 9] = [
    "window_bits",
    "level",
    "strategy",
    "max_dict_bytes",
    "zstd_max_train_bytes",
    "parallel_threads",
    "enabled",
    "max_dict_buffer_bytes",
    "use_zstd_dict_trainer",
];

/// Sets every member that `text` names.
pub fn parse_nested<S: OptionSet>(options: &mut S, text: &str) -> Result<()> {
    options.set_list(&positional(S::SECTION, text))
}

fn push_member(out: &mut String, name: &str, value: &str) {
    [name, "=", value, ";"].iter().for_each(|s| out.push_str(s));
}

/// Prints the members that RocksDB 7.8 knows, for OPTIONS files.
pub fn print_nested_for_file<S: OptionSet>(options: &S) -> String {
    let mut out = String::with_capacity(256);
    out.push('{');
    for entry in S::entries() {
        if matches!(entry.info.known, Known::Both) {
            push_member(&mut out, entry.info.name, &(entry.get)(options));
        }
    }
    out.push('}');
    out
}

/// Prints every member of a nested struct as `{a=1;b=2;}`.
pub fn print_nested<S: OptionSet>(options: &S) -> String {
    let mut out = String::with_capacity(256);
    out.push('{');
    for entry in S::entries() {
        push_member(&mut out, entry.info.name, &(entry.get)(options));
    }
    out.push('}');
    out
}

/// Makes option sets usable as the value of an option.
macro_rules! nested_option {
    ($($t:ty),*) => {$(
        impl $crate::options::value::OptionValue for $t {
            const TYPE: &'static str = "struct";
            fn print(&self) -> String {
                $crate::options::nested_value::print_nested(self)
            }
            fn parse_into(&mut self, text: &str) -> esker_status::Result<()> {
                $crate::options::nested_value::parse_nested(self, text)
            }
            fn print_for_file(&self) -> String {
                $crate::options::nested_value::print_nested_for_file(self)
            }
            fn parse_from_file(&mut self, text: &str) -> esker_status::Result<()> {
                $crate::options::nested_value::load_nested(self, text)
            }
        }
    )*};
}
pub(crate) use nested_option;
