//! `sst_dump`: the program answers to this name, too, with the commands, flags and lines of RocksDB
//! 7.8. As there, what is wrong with a table goes to stderr, and the exit code says whether any
//! table was found.
//!
//! Left out is the line `options.env is`, which holds an address.

use crate::directory::is_dir;
use crate::out::Out;
use crate::recompress::{again, all_codecs};
use crate::rocks_text;
use crate::say;
use crate::sst::{as_stored, open};
use crate::text::{one_line, unhex};
use esker::codec::compress::{Codec, CompressionOptions};
use esker_env::{FileSystem, PosixFs, ReadOptions};
use esker_files::table::{Salvage, SalvageOptions, TableOptions, TableReader};
use esker_format::file_name::{FileKind, parse_file_name};
use esker_format::{FileNo, KeyOrder, ParsedKey};
use esker_status::{Error, Result};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// A level that stands for the codec's own.
const OWN_LEVEL: i32 = 32_767;

const HELP: &str = "\
sst_dump --file=<data_dir_OR_sst_file> [--command=check|scan|verify|recompress|identify]

The commands of RocksDB 7.8 on Esker; `esker sst --help` has more of them.

    --file=<data_dir_OR_sst_file>
    --command=check       Read the entries (the default)
    --command=scan        Print the entries
    --command=verify      Check every block
    --command=recompress  Print the size with other codecs
    --command=identify    Tell whether files are tables
    --command=raw         is refused: `esker sst --index --blocks --scan` prints it
    --output_hex
    --from=<user_key> --to=<user_key> --input_key_hex
    --prefix=<user_key>   Not with --from
    --read_num=<num>
    --verify_checksum     Tables are always verified
    --show_properties
    --set_block_size=<bytes>
    --compression_types=<names, as kZSTD>
    --compression_level_from=<level> --compression_level_to=<level>
    --compression_max_dict_bytes=<bytes>
    --compression_zstd_max_train_bytes=<bytes>
    --compression_max_dict_buffer_bytes=<bytes>
    --compression_use_zstd_finalize_dict
    --parse_internal_key=<0xKEY>
";

/// The command line.
#[derive(Debug)]
struct DumpCall {
    file: Option<PathBuf>,
    command: String,
    is_hex: bool,
    takes_hex: bool,
    from: Vec<u8>,
    to: Vec<u8>,
    is_prefix: bool,
    most: u64,
    has_properties: bool,
    block_size: usize,
    codecs: Vec<Codec>,
    levels: (Option<i32>, Option<i32>),
    compression: CompressionOptions,
}

/// The request of a command line.
enum DumpRequest {
    Run(Box<DumpCall>),
    /// Prints this and ends.
    Said(String),
    /// Complains and ends.
    Wrong(String, ExitKind),
}

/// The exit of a program with wrong arguments.
#[derive(Clone, Copy, PartialEq)]
enum ExitKind {
    /// With 1.
    One,
    /// With the help, and 1.
    Help,
    /// With -1.
    Minus,
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> std::result::Result<T, DumpRequest> {
    text.parse()
        .map_err(|_| DumpRequest::Wrong(format!("{name}: {text:?} is not a number"), ExitKind::One))
}

fn parse(args: &[OsString]) -> std::result::Result<DumpCall, DumpRequest> {
    let mut call = DumpCall {
        file: None,
        command: "check".to_owned(),
        is_hex: false,
        takes_hex: false,
        from: Vec::new(),
        to: Vec::new(),
        is_prefix: false,
        most: u64::MAX,
        has_properties: false,
        block_size: 16 << 10,
        codecs: Vec::new(),
        levels: (None, None),
        compression: CompressionOptions::default(),
    };
    let (mut from, mut prefix) = (None, None);
    for arg in args {
        let text = arg.to_string_lossy();
        let unknown =
            || DumpRequest::Wrong(format!("Unrecognized argument '{text}'\n"), ExitKind::Help);
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text.as_ref(), None),
        };
        let raw = || {
            let at = arg.as_bytes().iter().position(|b| *b == b'=');
            arg.as_bytes()[at.map_or(0, |at| at + 1)..].to_vec()
        };
        match (name, value) {
            ("--output_hex", None) => call.is_hex = true,
            ("--input_key_hex", None) => call.takes_hex = true,
            ("--verify_checksum", None) | ("--decode_blob_index", None) => {}
            ("--show_properties", None) => call.has_properties = true,
            ("--compression_use_zstd_finalize_dict", None) => {
                call.compression.use_zstd_dict_trainer = false;
            }
            ("--help", None) => return Err(DumpRequest::Said(HELP.to_owned())),
            ("--version", None) => {
                let own = env!("CARGO_PKG_VERSION");
                let text = format!(
                    "sst_dump (RocksDB) 7.8.3 (commands and lines; the program is esker {own})\n"
                );
                return Err(DumpRequest::Said(text));
            }
            ("--file", Some(_)) => {
                use std::os::unix::ffi::OsStringExt;
                call.file = Some(OsString::from_vec(raw()).into());
            }
            ("--command", Some(value)) => call.command = value.to_owned(),
            ("--from", Some(_)) => from = Some(raw()),
            ("--to", Some(_)) => call.to = raw(),
            ("--prefix", Some(_)) => prefix = Some(raw()),
            ("--read_num", Some(value)) => {
                let n: u64 = number(name, value)?;
                call.most = if n == 0 { u64::MAX } else { n };
            }
            ("--set_block_size", Some(value)) => call.block_size = number(name, value)?,
            ("--compression_types", Some(value)) => {
                for one in value.split(',') {
                    let codec = Codec::from_option_name(one).filter(|c| c.is_supported());
                    let wrong = format!("{one} is not a valid CompressionType");
                    call.codecs
                        .push(codec.ok_or(DumpRequest::Wrong(wrong, ExitKind::One))?);
                }
            }
            ("--compression_level_from", Some(value)) => {
                call.levels.0 = Some(number(name, value)?);
            }
            ("--compression_level_to", Some(value)) => call.levels.1 = Some(number(name, value)?),
            ("--compression_max_dict_bytes", Some(value)) => {
                call.compression.max_dict_bytes = number(name, value)?;
            }
            ("--compression_zstd_max_train_bytes", Some(value)) => {
                call.compression.zstd_max_train_bytes = number(name, value)?;
            }
            ("--compression_max_dict_buffer_bytes", Some(value)) => {
                call.compression.max_dict_buffer_bytes = number(name, value)?;
            }
            ("--parse_internal_key", Some(value)) => return Err(internal_key(value)),
            ("--env_uri" | "--fs_uri", Some("")) => {}
            ("--env_uri" | "--fs_uri", Some(_)) => {
                let text = format!("{name} is refused: tables are read from this machine's disks");
                return Err(DumpRequest::Wrong(text, ExitKind::One));
            }
            _ => return Err(unknown()),
        }
    }
    if prefix.is_some() && from.is_some() {
        let text = "Cannot specify --prefix and --from\n".to_owned();
        return Err(DumpRequest::Wrong(text, ExitKind::One));
    }
    call.is_prefix = prefix.is_some();
    call.from = prefix.or(from).unwrap_or_default();
    if call.takes_hex {
        for key in [&mut call.from, &mut call.to] {
            if !key.is_empty() {
                let wrong = |e: Error| DumpRequest::Wrong(e.message().to_owned(), ExitKind::One);
                *key = unhex(key).map_err(wrong)?;
            }
        }
    }
    Ok(call)
}

/// The parts of an internal key, and the exit code of RocksDB's tool.
fn internal_key(text: &str) -> DumpRequest {
    let Ok(bytes) = unhex(text.as_bytes()) else {
        let text = format!(
            "ERROR: Invalid key input '{text}' Use 0x{{hex representation of internal rocksdb key}}"
        );
        return DumpRequest::Wrong(text, ExitKind::Minus);
    };
    match ParsedKey::parse(&bytes) {
        Ok(key) => {
            let shown = rocks_text::internal_key(&key, true);
            let shown = String::from_utf8_lossy(&shown).into_owned();
            DumpRequest::Said(format!("key={shown}\n"))
        }
        Err(e) => DumpRequest::Wrong(format!("Corrupted Key: {}", e.message()), ExitKind::Minus),
    }
}

/// Runs `sst_dump` with the arguments behind its name.
pub(crate) fn main(args: &[OsString]) -> ExitCode {
    say::begin(say::MessageStyle {
        is_quiet: true,
        ..say::MessageStyle::default()
    });
    let asked = match parse(args) {
        Ok(call) => DumpRequest::Run(Box::new(call)),
        Err(asked) => asked,
    };
    let mut out = Out::new(false);
    match asked {
        DumpRequest::Said(text) => {
            let _unread = out.bytes(text.as_bytes()).and_then(|()| out.flush());
            ExitCode::SUCCESS
        }
        DumpRequest::Wrong(text, ending) => {
            say::plain(&text);
            if ending == ExitKind::Help {
                say::plain(HELP);
            }
            match ending {
                ExitKind::Minus => ExitCode::from(255),
                _ => ExitCode::FAILURE,
            }
        }
        DumpRequest::Run(call) => {
            let Some(file) = call.file.clone() else {
                say::plain("file or directory must be specified.\n");
                say::plain(HELP);
                return ExitCode::FAILURE;
            };
            match run(&call, &file, &mut out) {
                Ok(true) => ExitCode::SUCCESS,
                Ok(false) | Err(crate::failure::Failure::Said) => ExitCode::FAILURE,
                Err(crate::failure::Failure::Closed) => ExitCode::SUCCESS,
                Err(crate::failure::Failure::Status(e)) => {
                    say::error(&e);
                    ExitCode::FAILURE
                }
                Err(_) => ExitCode::FAILURE,
            }
        }
    }
}

/// The files that an argument means, and whether it is a directory.
fn files(path: &Path) -> Result<(Vec<PathBuf>, bool)> {
    if !is_dir(path)? {
        return Ok((vec![path.to_owned()], false));
    }
    let entries = PosixFs::new().read_dir(path)?;
    let names = entries.into_iter().map(|e| path.join(e.name));
    Ok((names.collect(), true))
}

/// Shows the tables; false when there is none.
fn run(call: &DumpCall, path: &Path, out: &mut Out) -> crate::failure::Outcome<bool> {
    let (all, is_dir) = match files(path) {
        Ok(found) => found,
        Err(e) => {
            say::plain(&one_line(&e.to_string()));
            return Ok(false);
        }
    };
    let is_table = |p: &&PathBuf| p.as_os_str().as_bytes().ends_with(b".sst");
    let mut valid: Vec<String> = Vec::new();
    let mut left = call.most;
    for file in all.iter().filter(is_table) {
        let shown = file.display().to_string();
        out.line(format!("Process {shown}"))?;
        let number = match parse_file_name(&file.file_name().unwrap_or_default().to_string_lossy())
        {
            Some((FileKind::Table, number)) => number,
            _ => FileNo(0),
        };
        let table = match open(file, number) {
            Ok(table) => table,
            Err(e) => {
                say::plain(&format!("{shown}: {}", one_line(&e.to_string())));
                continue;
            }
        };
        out.line("Sst file format: block-based")?;
        valid.push(shown.clone());
        let reads = matches!(call.command.as_str(), "check" | "scan" | "");
        if valid.len() == 1 && reads {
            let (from, to) = (rocks_text::digits(&call.from), rocks_text::digits(&call.to));
            out.line(format!("from [{from}] to [{to}]"))?;
        }
        match call.command.as_str() {
            "recompress" => {
                recompress(call, &table, out)?;
                continue;
            }
            "raw" => {
                say::plain(&format!(
                    "{shown}: raw is refused: `esker sst {shown} --properties --index --blocks \
                     --scan --full` prints what is in it"
                ));
                return Ok(false);
            }
            "verify" => {
                match table.verify() {
                    Ok(()) => out.line("The file is ok")?,
                    Err(e) => say::plain(&format!(
                        "{shown} is corrupted: {}",
                        one_line(&e.to_string())
                    )),
                }
                continue;
            }
            _ if reads => read(call, file, &table, &mut left, out)?,
            _ => {}
        }
        if call.has_properties {
            properties(&table, out)?;
        }
        if left == 0 {
            break;
        }
    }
    ended(call, path, is_dir, &valid, out)
}

/// Says which of the files are tables; false when none is.
fn ended(
    call: &DumpCall,
    path: &Path,
    is_dir: bool,
    valid: &[String],
    out: &mut Out,
) -> crate::failure::Outcome<bool> {
    let path = path.display();
    if valid.is_empty() {
        out.flush()?;
        if is_dir {
            out.line("------------------------------")?;
            out.flush()?;
            say::plain(&format!("No valid SST files found in {path}"));
        } else {
            say::plain(&format!("{path} is not a valid SST file"));
        }
        return Ok(false);
    }
    if call.command == "identify" {
        if is_dir {
            out.line("------------------------------")?;
            out.line(format!("List of valid SST files found in {path}:"))?;
            for file in valid {
                out.line(file)?;
            }
            out.line(format!("Number of valid SST files: {}", valid.len()))?;
        } else {
            out.line(format!("{path} is a valid SST file"))?;
        }
    }
    out.flush()?;
    Ok(true)
}

/// Reads, and with `scan` prints, the entries of the sound blocks in the range.
fn read(
    call: &DumpCall,
    path: &Path,
    table: &Arc<TableReader>,
    left: &mut u64,
    out: &mut Out,
) -> crate::failure::Outcome {
    let name = &table.properties().comparator_name;
    let order = KeyOrder::builtin(name);
    if order.is_none() && !(call.from.is_empty() && call.to.is_empty()) {
        say::plain(&format!(
            "{}: the order {name:?} is not built in",
            path.display()
        ));
        return Ok(());
    }
    let order = order.unwrap_or_else(|| as_stored(name));
    let disk = PosixFs::new().open_read(path, ReadOptions::default())?;
    let options = SalvageOptions {
        order: order.clone(),
        ..SalvageOptions::default()
    };
    let salvage = Salvage::open(disk, options).map_err(|e| e.with_file(path))?;
    let mut failure = None;
    let is_out = |user: &[u8]| {
        let is_before = !call.from.is_empty() && order.compare(user, &call.from).is_lt();
        let is_behind = !call.to.is_empty() && order.compare(user, &call.to).is_ge();
        is_before || is_behind || (call.is_prefix && !user.starts_with(&call.from))
    };
    let counts = salvage.walk(|key, value| {
        let key = ParsedKey::parse(key)?;
        if *left == 0 || failure.is_some() || is_out(key.user) {
            return Ok(());
        }
        *left -= 1;
        if call.command == "scan" {
            failure = rocks_text::entry(&key, value, call.is_hex, out).err();
        }
        Ok(())
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    for damage in &counts.damages {
        let (why, at, bytes) = (&damage.why, damage.offset, damage.bytes);
        say::plain(&format!(
            "{}: Corruption: {why} in {} offset {at} size {bytes}",
            path.display(),
            path.display()
        ));
    }
    Ok(())
}

fn properties(table: &TableReader, out: &mut Out) -> crate::failure::Outcome {
    out.line("Table Properties:\n------------------------------")?;
    rocks_text::show_properties(table, "  ", ": ", out)?;
    // The last line of RocksDB's has no end.
    out.line("  Raw user collected properties\n------------------------------")?;
    let p = table.properties();
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = p.user_collected.clone().into_iter().collect();
    let with_builder = |name: &[u8]| {
        name.starts_with(b"rocksdb.block.based.table.")
            || name == b"rocksdb.deleted.keys"
            || name == b"rocksdb.merge.operands"
    };
    all.extend(
        p.encode()
            .into_iter()
            .filter(|(name, _)| with_builder(name)),
    );
    all.sort();
    all.dedup();
    for (name, value) in all {
        let (name, value) = (String::from_utf8_lossy(&name), rocks_text::digits(&value));
        out.line(format!("  # {name}: 0x{value}"))?;
    }
    Ok(())
}

/// Prints the size of the table with each codec and level.
fn recompress(call: &DumpCall, table: &Arc<TableReader>, out: &mut Out) -> crate::failure::Outcome {
    out.line(format!("Block Size: {}", call.block_size))?;
    let shape = TableOptions {
        block_size: call.block_size,
        ..TableOptions::default()
    };
    let codecs = if call.codecs.is_empty() {
        all_codecs()
    } else {
        call.codecs.clone()
    };
    let levels = match call.levels {
        (Some(from), Some(to)) => from..=to,
        _ => OWN_LEVEL..=OWN_LEVEL,
    };
    for codec in codecs {
        out.line(format!("Compression: {:<24}", codec.option_name()))?;
        for level in levels.clone() {
            let options = CompressionOptions {
                level,
                ..call.compression.clone()
            };
            let made = again(table, &shape, codec, &options)?;
            let is_none = codec == Codec::None;
            let all = made.blocks;
            let rejected = if is_none { all } else { made.rejected };
            let bypassed = if is_none { 0 } else { made.bypassed };
            let compressed = if is_none {
                0
            } else {
                all.saturating_sub(rejected + bypassed)
            };
            let share = |n: u64| {
                if all == 0 {
                    0.0
                } else {
                    n as f64 * 100.0 / all as f64
                }
            };
            out.line(format!(
                "Compression level: {level} Size: {:>10} Blocks: {all:>6} Time Taken: {:>10} \
                 microsecs Compressed: {compressed:>6} ({:5.1}%) Not compressed (ratio): \
                 {rejected:>6} ({:5.1}%) Not compressed (abort): {bypassed:>6} ({:5.1}%)",
                made.bytes,
                made.time.as_micros(),
                share(compressed),
                share(rejected),
                share(bypassed)
            ))?;
        }
    }
    Ok(())
}
