//! The table of flags: those of `db_bench` 11.8, and a few of our own, each with its fate.
//!
//! It is the only place that names a flag. The parser, `--help`, the options that an engine is
//! opened with and the page of flags follow from it. One file for each kind of fate; a row is
//! `KIND "name" = "default", FATE, "one line for --help";`.

mod accepted;
mod engine;
mod options;
mod refused;
mod run;

use super::{Fate, Flag};

/// Rows of the table.
macro_rules! flags {
    ($($kind:ident $name:literal = $default:literal, $fate:expr, $doc:literal;)*) => {
        &[$(Flag {
            name: $name,
            kind: crate::flags::FlagType::$kind,
            default: $default,
            fate: $fate,
            doc: $doc,
        }),*]
    };
}
use flags;

const PARTS: [&[Flag]; 5] = [
    run::FLAGS,
    engine::FLAGS,
    options::FLAGS,
    accepted::FLAGS,
    refused::FLAGS,
];

const COUNT: usize = {
    let (mut part, mut count) = (0, 0);
    while part < PARTS.len() {
        count += PARTS[part].len();
        part += 1;
    }
    count
};

static ALL: [Flag; COUNT] = {
    let mut all = [Flag {
        name: "",
        kind: super::FlagType::Text,
        default: "",
        fate: Fate::Run,
        doc: "",
    }; COUNT];
    let (mut part, mut at) = (0, 0);
    while part < PARTS.len() {
        let mut i = 0;
        while i < PARTS[part].len() {
            all[at] = PARTS[part][i];
            at += 1;
            i += 1;
        }
        part += 1;
    }
    all
};

/// All flags.
pub static FLAGS: &[Flag] = &ALL;
