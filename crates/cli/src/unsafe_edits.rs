//! Commands of `ldb` that change what a MANIFEST says without looking at the data. They are refused
//! here, each with what does the same safely.

use crate::failure::{Failure, Outcome};
use clap::Args;
use std::ffi::OsString;

/// A command that is refused.
pub(crate) struct UnsafeEdit {
    /// Its name in `ldb`.
    pub(crate) name: &'static str,
    /// The reason, and what to use instead.
    pub(crate) instead: &'static str,
}

/// All of them.
pub(crate) const UNSAFE_EDITS: &[UnsafeEdit] = &[
    UnsafeEdit {
        name: "update_manifest",
        instead: "it writes what the files are found to be into the MANIFEST. An open does that \
                  for temperatures; `esker repair --db=DB --dry-run` reports what differs, and \
                  `esker repair` writes a MANIFEST that is checked",
    },
    UnsafeEdit {
        name: "unsafe_remove_sst_file",
        instead: "it forgets a table, and older versions of its keys come back. `esker repair` \
                  copies the sound blocks of a damaged table and reports what is lost; `esker \
                  deleterange` removes keys",
    },
    UnsafeEdit {
        name: "reduce_levels",
        instead: "it moves tables to levels of another number without looking at the levels \
                  between. `esker dump --db=DB --hex | esker load --db=NEW --hex \
                  --create-if-missing --set num_levels=N` makes a database with fewer levels",
    },
];

/// Arguments of a command that is refused.
#[derive(Args, Debug)]
pub(crate) struct UnsafeEditArgs {
    /// They are not looked at
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Refuses the command.
pub(crate) fn refuse(name: &str) -> Outcome {
    let found = UNSAFE_EDITS.iter().find(|e| e.name == name);
    let instead = found.map_or("it is not safe", |e| e.instead);
    Err(Failure::Usage(format!("{name} is refused: {instead}")))
}
