//! The command line: names, help and examples, and which module runs what.

use crate::access::{
    BatchPutArgs, DeleteArgs, DeleteRangeArgs, GetArgs, MergeArgs, MultiGetArgs, PutArgs,
};
use crate::backup::BackupArgs;
use crate::check::CheckArgs;
use crate::checkpoint::CheckpointArgs;
use crate::compact::CompactArgs;
use crate::destroy::DestroyArgs;
use crate::external::{IngestArgs, WriteSstArgs};
use crate::failure::Outcome;
use crate::families::FamiliesArgs;
use crate::forecast::ForecastArgs;
use crate::histogram::HistogramArgs;
use crate::idump::InternalDumpArgs;
use crate::inspect::{ApproximateSizeArgs, LiveFilesArgs, PropertyArgs};
#[cfg(feature = "lab")]
use crate::laboratory;
use crate::load::LoadArgs;
use crate::manifest::ManifestArgs;
use crate::manual::{CompletionsArgs, ManualArgs};
use crate::metrics::MetricsArgs;
use crate::options::OptionsArgs;
use crate::out::Out;
use crate::recompress::CompressionSizesArgs;
use crate::repair::RepairArgs;
use crate::scan::{DumpArgs, ScanArgs};
use crate::shape::ShapeArgs;
use crate::sst::SstArgs;
use crate::unsafe_edits::UnsafeEditArgs;
use crate::wal::WalArgs;
use crate::{
    access, backup, check, checkpoint, compact, destroy, external, families, forecast, histogram,
    idump, inspect, load, manifest, manual, metrics, options, place, recompress, repair, say, scan,
    shape, sst, unsafe_edits, wal,
};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use serde_json::json;
use std::ffi::OsString;
use std::process::ExitCode;

/// Reads, checks, writes and measures databases of Esker and RocksDB
#[derive(Parser, Debug)]
#[command(
    name = "esker",
    version,
    after_help = "\
Exit codes: 0 done; 1 an error, or problems found; 2 wrong usage.
With --json every line of output is one JSON object, and so is every message on stderr.
Commands take the database as --db=DB, before or after their name, or as their first argument;
else from the variable ESKER_DB, but for destroy and backup restore.

Start here:
  esker bench                      a short tour on a temporary database
  esker shape DB                   what a database looks like
  esker check DB                   verify every byte of it
  esker COMMAND --help             more, with examples"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON object per line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Verify every byte and every invariant of a database; read-only
    #[command(after_help = "\
Checks CURRENT, the MANIFEST and the trees it describes, every block, key, count and filter of
every table, every record of every log, blob files, OPTIONS and IDENTITY. All problems are
reported, not just the first.
Exit codes: 0 no error, 1 errors. Warnings (what could not be checked) and notes are not errors.
Files are reported as left over only when the MANIFEST was read to its end.

Examples:
  esker check DB
  esker check DB --json | jq 'select(.severity == \"error\")'")]
    Check(CheckArgs),
    /// Draw the tree of each column family
    #[command(after_help = "\
Examples:
  esker shape DB
  esker shape DB --files
  esker shape DB --json | jq '.levels[] | {level, files, bytes}'")]
    Shape(ShapeArgs),
    /// Show what table files (SST) hold
    #[command(after_help = "\
Examples:
  esker sst DB                             properties of every table
  esker sst DB/000012.sst --scan --limit 10
  esker sst DB/000012.sst --scan --from=a --to=b
  esker sst DB/000012.sst --scan --keep-going      what can be read of a damaged one
  esker sst DB/000012.sst --blocks --index
  esker sst DB --verify")]
    Sst(SstArgs),
    /// Show the batches of write-ahead logs
    #[command(after_help = "\
Examples:
  esker wal DB
  esker wal DB/000004.log --hex --full
  esker wal DB --recovery-mode point-in-time    what an open would replay

Exit code 1 when a log is damaged; a torn record at the end of a log is not damage.")]
    Wal(WalArgs),
    /// Show the edits of a MANIFEST
    #[command(after_help = "\
Examples:
  esker manifest DB
  esker manifest DB --tree                 the state that the edits add up to
  esker manifest DB/MANIFEST-000005 --json | jq .new_files")]
    Manifest(ManifestArgs),
    /// Predict the shape of a tree and what writing costs, by options; writes nothing
    #[command(after_help = "\
The real compaction rules run over tables of which only the size is known. That takes seconds,
where loading the keys takes hours. Compression, indexes, filters and deletions are left out.

--service limits the bytes that compactions may read for each flushed byte: a small number is a
writer that is faster than the disk. Without it compactions always keep up.

Examples:
  esker forecast --keys 100000000 --entry-bytes 420
  esker forecast --keys 100000000 --set max_bytes_for_level_multiplier=8 --set write_buffer_size=16777216
  esker forecast --compare --keys 10000000,100000000 --fanout 8,10 --order overwrite
  esker forecast --keys 20000000 --set compaction_style=kCompactionStyleUniversal --service 5")]
    Forecast(ForecastArgs),
    /// Explain option names, check OPTIONS files
    Options(OptionsArgs),
    /// Print the value of a key
    #[command(after_help = "\
Exit code 1 when the key does not exist.

Examples:
  esker get --db=DB apple
  esker get --db=DB --hex 0x6170706C65
  esker get --db=DB --column-family=stock apple --json")]
    Get(GetArgs),
    /// Print the values of several keys
    #[command(after_help = "\
Exit code 1 when one of them does not exist.

Example:
  esker multi-get --db=DB apple pear")]
    MultiGet(MultiGetArgs),
    /// Set a key to a value
    #[command(after_help = "\
Examples:
  esker put --db=DB --create-if-missing apple red
  esker put --db=DB --set compression=kZSTD apple red")]
    Put(PutArgs),
    /// Delete a key
    #[command(after_help = "\
Example:
  esker delete --db=DB apple")]
    Delete(DeleteArgs),
    /// Delete a key that was set at most once since it was deleted last
    #[command(after_help = "\
Cheaper than delete. Of a key that was set more often, an older value may come back.

Example:
  esker singledelete --db=DB apple")]
    Singledelete(DeleteArgs),
    /// Delete all keys of a range
    #[command(after_help = "\
Example:
  esker deleterange --db=DB a b            all keys that begin with a")]
    Deleterange(DeleteRangeArgs),
    /// Add an operand to a key, for its merge operator
    #[command(after_help = "\
Examples:
  esker merge --db=DB apple red
  esker merge --db=DB --set merge_operator=stringappend apple red")]
    Merge(MergeArgs),
    /// Set several keys at once: all of them or none
    #[command(after_help = "\
Example:
  esker batchput --db=DB apple red pear green")]
    Batchput(BatchPutArgs),
    /// Print entries in order, as `key ==> value`
    #[command(after_help = "\
Examples:
  esker scan --db=DB --from=a --to=b --max-keys=10
  esker scan --db=DB --reverse --no-value
  esker scan --db=DB --json | jq -r .key")]
    Scan(ScanArgs),
    /// Print every version of every key, with sequence numbers and kinds
    #[command(after_help = "\
Reads tables and logs as they are; the database is not opened.

Examples:
  esker idump DB --from=a --to=b
  esker idump DB --json | jq 'select(.kind == \"Deletion\").key'")]
    Idump(InternalDumpArgs),
    /// Count keys and bytes by prefix
    #[command(after_help = "\
Examples:
  esker histogram --db=DB                  prefixes end before :
  esker histogram --db=DB --bytes=4 --top=20")]
    Histogram(HistogramArgs),
    /// Print about how many bytes of tables a range of keys takes
    #[command(after_help = "\
Example:
  esker approxsize --db=DB --from=a --to=b")]
    Approxsize(ApproximateSizeArgs),
    /// Print properties by RocksDB's names
    #[command(after_help = "\
Examples:
  esker property --db=DB
  esker property --db=DB rocksdb.stats rocksdb.estimate-num-keys")]
    Property(PropertyArgs),
    /// List live tables and blob files, with their families and levels
    #[command(after_help = "\
Example:
  esker live-files --db=DB --json | jq 'select(.level == 0).path'")]
    LiveFiles(LiveFilesArgs),
    /// Print all entries in a form that `esker load` and `ldb load` read
    #[command(after_help = "\
A line is KEY ==> VALUE; with --hex both are 0x and two digits for each byte. Without --hex, a key
or value that does not fit on a line of text is an error, before anything is printed. With --json,
keys and values are UTF-8; others are in base64, as key_base64 and value_base64.

Examples:
  esker dump --db=DB --hex > entries
  esker dump --db=DB --hex | esker load --db=COPY --hex --create-if-missing")]
    Dump(DumpArgs),
    /// Put the lines of a dump into a database
    #[command(after_help = "\
Examples:
  esker load --db=DB --create-if-missing --hex < entries
  esker dump --db=DB --json | esker load --db=COPY --json --create-if-missing
  ldb --db=OLD dump --hex | esker load --db=DB --create-if-missing --hex --compact")]
    Load(LoadArgs),
    /// List, make and drop column families
    #[command(after_help = "\
Examples:
  esker families list --db=DB
  esker families create --db=DB users
  esker families drop --db=DB users --yes")]
    Families(FamiliesArgs),
    /// Print the sizes, levels and counts of a database as OpenMetrics text; read-only
    #[command(after_help = "\
For the textfile collector of an exporter, and for a look. Counts of a running program are in its
memory: it calls Db::metrics, or runs with ESKER_STATS=127.0.0.1:PORT (docs/statistics.md).

Example:
  esker metrics DB > esker.prom")]
    Metrics(MetricsArgs),
    /// Write a table file of the lines of a dump, for `esker ingest`
    #[command(after_help = "\
The keys must be in order. The table has the options of the database, which is not changed.

Example:
  esker dump --db=OLD --hex | esker write-sst --db=DB --hex new.sst")]
    WriteSst(WriteSstArgs),
    /// Take table files into a database
    #[command(after_help = "\
Example:
  esker ingest --db=DB new.sst --move-files")]
    Ingest(IngestArgs),
    /// Show how large tables would be with other codecs; writes nothing
    #[command(after_help = "\
Examples:
  esker recompress DB/000012.sst
  esker recompress DB --codecs=zstd --level-from=1 --level-to=9 --block-size=16384")]
    Recompress(CompressionSizesArgs),
    /// Rewrite tables: drops deleted and overwritten entries, applies changed options
    #[command(after_help = "\
Examples:
  esker compact --db=DB
  esker compact --db=DB --from=a --to=b --set compression=kZSTD")]
    Compact(CompactArgs),
    /// Make a second database with the same contents, sharing table files
    #[command(after_help = "\
The database must not be open. It is not changed, so its directory may be read-only. A database
that cannot be opened for writing is refused. The target is complete when it exists.

Example:
  esker checkpoint --db=DB BACKUP")]
    Checkpoint(CheckpointArgs),
    /// Make, list, check and restore backups in RocksDB's layout
    #[command(after_help = "\
Examples:
  esker backup create --db=DB BACKUPS
  esker backup list BACKUPS
  esker backup restore BACKUPS --db=DB --id=3")]
    Backup(BackupArgs),
    /// Repair a database whose MANIFEST or tables are damaged or missing
    #[command(after_help = "\
A sound database is not changed. The sound blocks of a damaged table are copied to a new one, and
lost entries are listed. If a MANIFEST can be read, trees keep their shape. Otherwise they are
rebuilt from the tables, and deleted entries may come back. Then the logs are replayed as far as
they can be read. Nothing is deleted: files that are not part of the result move to lost/.
A file that the system refuses to read may be intact, so it ends the repair before any change.
Work on a copy of the directory if you can.

Exit codes: 0 nothing was lost, 1 an error, 3 data was lost, which is listed (with --dry-run:
would be lost).

Examples:
  esker repair --db=DB --dry-run
  esker repair --db=DB && esker check DB")]
    Repair(RepairArgs),
    /// Remove a database's files
    #[command(after_help = "\
Only files of the database are removed, and the directory if nothing else is in it.

Examples:
  esker destroy --db=DB --dry-run
  esker destroy --db=DB --yes")]
    Destroy(DestroyArgs),
    #[cfg(feature = "lab")]
    /// Measure: db_bench's benchmarks and flags on Esker, or on any librocksdb.so
    #[command(disable_help_flag = true)]
    Bench(laboratory::BenchArgs),
    #[cfg(feature = "lab")]
    /// Experiments on Esker and its peers, each with a page of results
    #[command(disable_help_flag = true)]
    Lab(laboratory::LabArgs),
    /// Print completions for a shell
    #[command(after_help = "\
Examples:
  esker completions bash > ~/.local/share/bash-completion/completions/esker
  esker completions zsh > ~/.zfunc/_esker
  esker completions fish > ~/.config/fish/completions/esker.fish")]
    Completions(CompletionsArgs),
    /// Write man pages
    #[command(after_help = "\
Examples:
  esker man /usr/local/share/man/man1
  esker man | man -l -")]
    Man(ManualArgs),
    #[command(hide = true, name = "update_manifest")]
    UpdateManifest(UnsafeEditArgs),
    #[command(hide = true, name = "unsafe_remove_sst_file")]
    UnsafeRemoveSstFile(UnsafeEditArgs),
    #[command(hide = true, name = "reduce_levels")]
    ReduceLevels(UnsafeEditArgs),
    /// List the commands and what each needs, from the parser itself
    #[command(hide = true)]
    Commands,
    #[cfg(feature = "lab")]
    /// Compare two librocksdb.so: one random trace of calls, every result
    #[command(disable_help_flag = true)]
    Diff(laboratory::DiffArgs),
}

/// The command line. Sets how messages are given, too.
pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let root = root();
    let given: Vec<OsString> = args.collect();
    let (placed, command) = place::placed(&root, given, std::env::var_os("ESKER_DB"));
    let takes = |long: &str| command.get_arguments().any(|a| a.get_long() == Some(long));
    say::begin(say::MessageStyle {
        json: is_json(&placed, command),
        takes_set: takes("set"),
        takes_create: takes("create-if-missing"),
        is_quiet: false,
    });
    let matches = root.clone().try_get_matches_from(placed)?;
    Cli::from_arg_matches(&matches)
}

/// The parser, with the paragraphs of its help as long as the terminal is wide.
fn root() -> clap::Command {
    let mut root = with_paragraphs(Cli::command());
    root.build();
    root
}

fn with_paragraphs(command: clap::Command) -> clap::Command {
    let after = command.get_after_help().map(ToString::to_string);
    let command = match after {
        Some(after) => command.after_help(paragraphs(&after)),
        None => command,
    };
    let below: Vec<String> = command
        .get_subcommands()
        .map(|c| c.get_name().to_owned())
        .collect();
    let by_name =
        |command: clap::Command, name: String| command.mut_subcommand(name, with_paragraphs);
    below.into_iter().fold(command, by_name)
}

/// Makes one line of the lines of each paragraph. Indented lines stay as they are.
fn paragraphs(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let is_prose = |l: &str| !l.is_empty() && !l.starts_with(' ');
        let last = out.rsplit('\n').next().unwrap_or_default();
        if is_prose(line) && is_prose(last) && !last.ends_with([':', '.']) {
            out.push(' ');
        } else if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(line);
    }
    out
}

/// Tells whether `--json` is there without the name of a file, which `esker bench` takes.
fn is_json(words: &[OsString], command: &clap::Command) -> bool {
    let takes_file = command.get_name() == "bench";
    let is_value = |word: &&OsString| !word.to_string_lossy().starts_with('-');
    let own = words.iter().position(|word| word == command.get_name());
    let is_it = |(at, word): (usize, &OsString)| {
        let is_own = takes_file && own.is_some_and(|own| at > own);
        word == "--json" && !(is_own && words.get(at + 1).filter(is_value).is_some())
    };
    let words = words.iter().enumerate();
    words.take_while(|(_, word)| *word != "--").any(is_it)
}

/// Shows the help that was asked for, or what is wrong with the arguments.
pub(crate) fn refused(e: &clap::Error) -> ExitCode {
    if e.use_stderr() {
        say::refused(e);
        return ExitCode::from(2);
    }
    // Nobody may be left to read it.
    let _unread = e.print();
    ExitCode::SUCCESS
}

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> Outcome<ExitCode> {
    let mut out = Out::new(cli.json);
    match &cli.command {
        Command::Check(args) => check::run(args, &mut out),
        Command::Shape(args) => shape::run(args, &mut out),
        Command::Sst(args) => sst::run(args, &mut out),
        Command::Wal(args) => wal::run(args, &mut out),
        Command::Manifest(args) => manifest::run(args, &mut out),
        Command::Forecast(args) => forecast::run(args, &mut out),
        Command::Options(args) => options::run(args, &mut out),
        Command::Get(args) => access::get(args, &mut out),
        Command::Put(args) => access::put(args, &mut out),
        Command::Delete(args) => access::delete(args, &mut out),
        Command::Batchput(args) => access::batchput(args, &mut out),
        Command::Scan(args) => scan::scan(args, &mut out),
        Command::Dump(args) => scan::dump(args, &mut out),
        Command::Families(args) => families::run(args, &mut out),
        Command::Metrics(args) => metrics::run(args, &mut out),
        Command::Load(args) => load::run(args, &mut out),
        Command::Compact(args) => compact::run(args, &mut out),
        Command::Backup(args) => backup::run(args, &mut out),
        Command::Checkpoint(args) => checkpoint::run(args, &mut out),
        Command::Repair(args) => repair::run(args, &mut out),
        Command::Destroy(args) => destroy::run(args, &mut out),
        Command::MultiGet(args) => access::multi_get(args, &mut out),
        Command::Singledelete(args) => access::single_delete(args, &mut out),
        Command::Deleterange(args) => access::delete_range(args, &mut out),
        Command::Merge(args) => access::merge(args, &mut out),
        Command::Idump(args) => idump::run(args, &mut out),
        Command::Histogram(args) => histogram::run(args, &mut out),
        Command::Approxsize(args) => inspect::approx_size(args, &mut out),
        Command::Property(args) => inspect::property(args, &mut out),
        Command::LiveFiles(args) => inspect::live_files(args, &mut out),
        Command::WriteSst(args) => external::write(args, &mut out),
        Command::Ingest(args) => external::ingest(args, &mut out),
        Command::Recompress(args) => recompress::run(args, &mut out),
        Command::Completions(args) => manual::completions(args, root(), &mut out),
        Command::Man(args) => manual::man(args, root(), &mut out),
        Command::UpdateManifest(_) => unsafe_edits::refuse("update_manifest"),
        Command::UnsafeRemoveSstFile(_) => unsafe_edits::refuse("unsafe_remove_sst_file"),
        Command::ReduceLevels(_) => unsafe_edits::refuse("reduce_levels"),
        Command::Commands => commands(&root(), "", &mut out),
        // These print by themselves, from several threads.
        #[cfg(feature = "lab")]
        Command::Bench(args) => {
            drop(out);
            return Ok(laboratory::bench(args));
        }
        #[cfg(feature = "lab")]
        Command::Lab(args) => {
            drop(out);
            return Ok(laboratory::lab(args));
        }
        #[cfg(feature = "lab")]
        Command::Diff(args) => {
            drop(out);
            return Ok(laboratory::diff(args));
        }
    }?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Shows the commands below `parent` that have none below them.
fn commands(parent: &clap::Command, path: &str, out: &mut Out) -> Outcome {
    for command in parent.get_subcommands() {
        let name = format!("{path} {}", command.get_name());
        let name = name.trim_start();
        if command.has_subcommands() {
            commands(command, name, out)?;
            continue;
        }
        let needs = command.get_arguments().filter(|a| a.is_required_set());
        let needs: Vec<String> = needs
            .map(|a| match a.get_long() {
                Some(long) => format!("--{long}"),
                None => a
                    .get_value_names()
                    .map_or_else(|| a.get_id().to_string(), |n| n.join(" ")),
            })
            .collect();
        out.line(format!("{name} {}", needs.join(" ")))?;
        out.object(|| json!({"type": "command", "command": name, "needs": needs}))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn paragraphs_are_lines() {
        let text = "One that\ngoes on.\nTwo.\n\nExamples:\n  a\n  b";
        let joined = "One that goes on.\nTwo.\n\nExamples:\n  a\n  b";
        assert_eq!(paragraphs(text), joined);
        assert_eq!(paragraphs(joined), joined);
    }
}
