//! `ldb`: the program answers to this name, too, with the commands, flags and lines of RocksDB 7.8.
//!
//! [`COMMANDS`] is the one table of its commands: dispatch, the flags that each takes, and help
//! follow from it. What it prints beyond RocksDB's lines goes to stderr.

mod call;
mod entries;
mod files;
mod jobs;
mod repl;

use crate::failure::Failure;
use crate::out::Out;
use crate::say;
use crate::text::one_line;
use call::{COMMON, LdbCall, LdbFailure, LdbOutcome};
use std::ffi::OsString;
use std::process::ExitCode;

/// A command.
struct LdbCommand {
    name: &'static str,
    /// Flags and options besides those of every command.
    takes: &'static [&'static str],
    /// The text behind its name in the help.
    usage: &'static str,
    run: fn(&LdbCall, &mut Out) -> LdbOutcome,
}

const RANGE: &str = "[--from=KEY] [--to=KEY]";

/// All commands, in the order of the help.
const COMMANDS: &[LdbCommand] = &[
    LdbCommand {
        name: "put",
        takes: &["create_if_missing", "ttl"],
        usage: "<key> <value> [--create_if_missing] [--ttl]",
        run: entries::put,
    },
    LdbCommand {
        name: "get",
        takes: &["ttl"],
        usage: "<key> [--ttl]",
        run: entries::get,
    },
    LdbCommand {
        name: "batchput",
        takes: &["create_if_missing", "ttl"],
        usage: "<key> <value> [<key> <value>] [..] [--create_if_missing] [--ttl]",
        run: entries::batchput,
    },
    LdbCommand {
        name: "scan",
        takes: &[
            "from",
            "to",
            "ttl",
            "timestamp",
            "max_keys",
            "start_time",
            "end_time",
            "no_value",
        ],
        usage: "[--from] [--to] [--ttl] [--timestamp] [--max_keys=<N>] [--start_time=<N>] \
                [--end_time=<N>] [--no_value]",
        run: entries::scan,
    },
    LdbCommand {
        name: "delete",
        takes: &[],
        usage: "<key>",
        run: entries::delete,
    },
    LdbCommand {
        name: "deleterange",
        takes: &[],
        usage: "<begin key> <end key>",
        run: entries::deleterange,
    },
    LdbCommand {
        name: "query",
        takes: &["ttl"],
        usage: "[--ttl]: reads commands from standard input",
        run: repl::query,
    },
    LdbCommand {
        name: "approxsize",
        takes: &["from", "to"],
        usage: "--from --to",
        run: entries::approxsize,
    },
    LdbCommand {
        name: "checkconsistency",
        takes: &[],
        usage: "",
        run: jobs::checkconsistency,
    },
    LdbCommand {
        name: "list_file_range_deletes",
        takes: &["max_keys"],
        usage: "[--max_keys=<N>]",
        run: files::range_deletes,
    },
    LdbCommand {
        name: "dump_wal",
        takes: &["walfile", "header", "print_value", "write_committed"],
        usage: "--walfile=<path> [--header] [--print_value]",
        run: files::dump_wal,
    },
    LdbCommand {
        name: "compact",
        takes: &["from", "to"],
        usage: RANGE,
        run: jobs::compact,
    },
    LdbCommand {
        name: "reduce_levels",
        takes: &["new_levels", "print_old_levels"],
        usage: "is refused",
        run: |_, _| jobs::refuse("reduce_levels"),
    },
    LdbCommand {
        name: "change_compaction_style",
        takes: &["old_compaction_style", "new_compaction_style"],
        usage: "is refused",
        run: jobs::change_compaction_style,
    },
    LdbCommand {
        name: "dump",
        takes: &[
            "from",
            "to",
            "ttl",
            "max_keys",
            "timestamp",
            "count_only",
            "count_delim",
            "stats",
            "bucket",
            "start_time",
            "end_time",
            "path",
            "decode_blob_index",
            "dump_uncompressed_blobs",
        ],
        usage: "[--from] [--to] [--ttl] [--max_keys=<N>] [--timestamp] [--count_only] \
                [--count_delim=<char>] [--stats] [--bucket=<N>] [--start_time=<N>] \
                [--end_time=<N>] [--path=<file>]",
        run: entries::dump,
    },
    LdbCommand {
        name: "load",
        takes: &["create_if_missing", "disable_wal", "bulk_load", "compact"],
        usage: "[--create_if_missing] [--disable_wal] [--bulk_load] [--compact]",
        run: jobs::load,
    },
    LdbCommand {
        name: "manifest_dump",
        takes: &["verbose", "json", "path"],
        usage: "[--verbose] [--json] [--path=<path>]",
        run: files::manifest_dump,
    },
    LdbCommand {
        name: "update_manifest",
        takes: &["update_temperatures", "verbose"],
        usage: "is refused",
        run: |_, _| jobs::refuse("update_manifest"),
    },
    LdbCommand {
        name: "file_checksum_dump",
        takes: &["path"],
        usage: "[--path=<path>]",
        run: files::file_checksum_dump,
    },
    LdbCommand {
        name: "get_property",
        takes: &[],
        usage: "<property_name>",
        run: jobs::get_property,
    },
    LdbCommand {
        name: "list_column_families",
        takes: &[],
        usage: "",
        run: jobs::list_column_families,
    },
    LdbCommand {
        name: "create_column_family",
        takes: &[],
        usage: "--db=<path> <name>",
        run: jobs::create_column_family,
    },
    LdbCommand {
        name: "drop_column_family",
        takes: &[],
        usage: "--db=<path> <name>",
        run: jobs::drop_column_family,
    },
    LdbCommand {
        name: "dump_live_files",
        takes: &["decode_blob_index", "dump_uncompressed_blobs"],
        usage: "",
        run: files::dump_live_files,
    },
    LdbCommand {
        name: "idump",
        takes: &[
            "from",
            "to",
            "input_key_hex",
            "max_keys",
            "count_only",
            "count_delim",
            "stats",
            "decode_blob_index",
        ],
        usage: "[--from] [--to] [--input_key_hex] [--max_keys=<N>] [--count_only] \
                [--count_delim=<char>] [--stats]",
        run: entries::idump,
    },
    LdbCommand {
        name: "list_live_files_metadata",
        takes: &["sort_by_filename"],
        usage: "[--sort_by_filename]",
        run: files::list_live_files_metadata,
    },
    LdbCommand {
        name: "repair",
        takes: &["verbose"],
        usage: "[--verbose]",
        run: jobs::repair,
    },
    LdbCommand {
        name: "backup",
        takes: &[
            "backup_env_uri",
            "backup_fs_uri",
            "backup_dir",
            "num_threads",
            "stderr_log_level",
        ],
        usage: "[--backup_dir] [--num_threads]",
        run: jobs::backup,
    },
    LdbCommand {
        name: "restore",
        takes: &[
            "backup_env_uri",
            "backup_fs_uri",
            "backup_dir",
            "num_threads",
            "stderr_log_level",
        ],
        usage: "[--backup_dir] [--num_threads]",
        run: jobs::restore,
    },
    LdbCommand {
        name: "checkpoint",
        takes: &["checkpoint_dir"],
        usage: "[--checkpoint_dir]",
        run: jobs::checkpoint,
    },
    LdbCommand {
        name: "write_extern_sst",
        takes: &[],
        usage: "<output_sst_path>",
        run: jobs::write_extern_sst,
    },
    LdbCommand {
        name: "ingest_extern_sst",
        takes: &[
            "move_files",
            "snapshot_consistency",
            "allow_global_seqno",
            "allow_blocking_flush",
            "ingest_behind",
            "write_global_seqno",
        ],
        usage: "<input_sst_path> [--move_files] [--snapshot_consistency] [--allow_global_seqno] \
                [--allow_blocking_flush] [--ingest_behind] [--write_global_seqno]",
        run: jobs::ingest_extern_sst,
    },
    LdbCommand {
        name: "unsafe_remove_sst_file",
        takes: &[],
        usage: "is refused",
        run: |_, _| jobs::refuse("unsafe_remove_sst_file"),
    },
];

/// The help.
fn help() -> String {
    let mut text = String::from(
        "ldb - RocksDB Tool\n\nThe commands of RocksDB 7.8 on Esker; `esker --help` has more of \
         them.\ncommands MUST specify --db=<full_path_to_db_directory> when necessary\n\n\
         Every command takes these:\n",
    );
    for name in COMMON {
        text.push_str(&format!("  --{name}\n"));
    }
    text.push_str("\nCommands:\n");
    for command in COMMANDS {
        text.push_str(&format!("  {} {}\n", command.name, command.usage));
    }
    text
}

/// Runs `ldb` with the arguments behind its name.
pub(crate) fn main(args: &[OsString]) -> ExitCode {
    say::begin(say::MessageStyle {
        is_quiet: true,
        ..say::MessageStyle::default()
    });
    let mut out = Out::new(false);
    match args {
        [one] if one == "--version" => {
            let _unread = out.line(version());
            return ended(out);
        }
        [one] if one == "--help" => {
            let _unread = out.line(help());
            return ended(out);
        }
        [] | [_] => {
            say::plain(&help());
            return ExitCode::FAILURE;
        }
        _ => {}
    }
    let call = LdbCall::parse(args);
    let name = call.words.first().map(|w| w.to_string_lossy());
    let found = COMMANDS.iter().find(|c| name.as_deref() == Some(c.name));
    let Some(command) = found else {
        say::plain("Unknown command");
        say::plain(&help());
        return ExitCode::FAILURE;
    };
    let is_unknown =
        |n: &&String| !COMMON.contains(&n.as_str()) && !command.takes.contains(&n.as_str());
    if let Some(option) = call.options.keys().find(is_unknown) {
        say::plain(&format!("Invalid command-line option {option}"));
        return ExitCode::FAILURE;
    }
    if let Some(flag) = call.flags.iter().find(is_unknown) {
        say::plain(&format!("Invalid command-line flag {flag}"));
        return ExitCode::FAILURE;
    }
    let has_place = call.options.contains_key("db")
        || call.options.contains_key("path")
        || call.options.contains_key("walfile");
    if !has_place {
        say::plain("Either db or path must be specified.");
        return ExitCode::FAILURE;
    }
    let outcome = (command.run)(&call, &mut out);
    let outcome = outcome.and_then(|()| Ok(out.flush()?));
    let text = match outcome {
        Ok(()) | Err(LdbFailure::Of(Failure::Closed)) => return ExitCode::SUCCESS,
        Err(LdbFailure::Text(text)) => text,
        Err(LdbFailure::Of(Failure::Usage(text))) => text,
        Err(LdbFailure::Of(Failure::Status(e))) => one_line(&say::explained(e).to_string()),
        Err(LdbFailure::Of(Failure::Said)) => return ExitCode::FAILURE,
        Err(LdbFailure::Of(Failure::LostData)) => return ExitCode::from(3),
    };
    let _unread = out.flush();
    say::plain(&format!("Failed: {text}"));
    ExitCode::FAILURE
}

fn version() -> String {
    format!(
        "ldb from RocksDB 7.8.3 (commands and lines; the program is esker {})",
        env!("CARGO_PKG_VERSION")
    )
}

fn ended(mut out: Out) -> ExitCode {
    let _unread = out.flush();
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_one_name_and_is_in_the_help() {
        let help = help();
        for (at, command) in COMMANDS.iter().enumerate() {
            let same = COMMANDS.iter().position(|c| c.name == command.name);
            assert_eq!(same, Some(at), "{}", command.name);
            assert!(help.contains(&format!("  {} ", command.name)));
        }
    }
}
