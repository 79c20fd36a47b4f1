//! `esker options`: the catalogue of option names, and the linter.

use crate::directory::{Directory, is_dir};
use crate::failure::{Failure, Outcome};
use crate::options_file::{OptionFault, RULES, faults, text_of, without};
use crate::out::Out;
use clap::{Args, Subcommand};
use esker::options::{
    CompressionSettings, DbOptions, FamilyOptions, Fate, FifoSettings, Info, MetadataCacheSettings,
    OptionSet, RETIRED, Severity, TableSettings, UniversalSettings, lint, load_options_text, names,
};
use esker_format::file_name::FileKind;
use esker_status::{Error, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Arguments of `esker options`.
#[derive(Args, Debug)]
pub(crate) struct OptionsArgs {
    #[command(subcommand)]
    command: OptionsCommand,
}

#[derive(Subcommand, Debug)]
enum OptionsCommand {
    /// Describe an option: type, default, fate; without NAME list all options
    #[command(
        after_help = "Examples:\n  esker options explain write_buffer_size\n  esker options explain --json | jq -r 'select(.fate == \"refused\").name'"
    )]
    Explain {
        /// The option's name; `table.block_size` and `block_size` mean the same
        name: Option<String>,
    },
    /// Find options of a file that contradict each other, and what to set instead
    #[command(
        after_help = "Examples:\n  esker options lint DB\n  esker options lint OPTIONS-000007\n\nExit code 1 when something in the file cannot work."
    )]
    Lint {
        /// An OPTIONS file, or a database's directory, for its newest one
        #[arg(value_name = "FILE|DB")]
        path: PathBuf,
    },
}

/// Runs `esker options`.
pub(crate) fn run(args: &OptionsArgs, out: &mut Out) -> Outcome {
    match &args.command {
        OptionsCommand::Explain { name: None } => list(out),
        OptionsCommand::Explain { name: Some(name) } => explain(name, out),
        OptionsCommand::Lint { path } => lint_file(path, out),
    }
}

/// An option with its default.
struct Row {
    info: Info,
    default: String,
}

fn rows_of<S: OptionSet>(out: &mut Vec<Row>) {
    let defaults = S::default();
    out.extend(S::entries().iter().map(|e| Row {
        info: e.info,
        default: (e.get)(&defaults),
    }));
}

fn rows() -> Vec<Row> {
    let mut out = Vec::new();
    rows_of::<DbOptions>(&mut out);
    rows_of::<FamilyOptions>(&mut out);
    rows_of::<TableSettings>(&mut out);
    rows_of::<CompressionSettings>(&mut out);
    rows_of::<UniversalSettings>(&mut out);
    rows_of::<FifoSettings>(&mut out);
    rows_of::<MetadataCacheSettings>(&mut out);
    out
}

fn fate(info: &Info) -> (&'static str, Option<&'static str>) {
    match info.fate {
        Fate::Live => ("live", None),
        Fate::Accepted(why) => ("accepted", Some(why)),
        Fate::Refused(why) => ("refused", Some(why)),
    }
}

fn row_json(row: &Row) -> Value {
    let (name, reason) = fate(&row.info);
    json!({"type": "option", "name": row.info.name, "section": row.info.section.title(),
        "value_type": row.info.value_type, "default": row.default, "fate": name, "reason": reason,
        "group": format!("{:?}", row.info.group), "known_to": format!("{:?}", row.info.known),
        "change": format!("{:?}", row.info.change), "doc": row.info.doc.trim()})
}

fn list(out: &mut Out) -> Outcome {
    let mut section = None;
    for row in rows() {
        if section.replace(row.info.section) != Some(row.info.section) {
            out.line(format!("[{}]", row.info.section.title()))?;
        }
        let (fate, _) = fate(&row.info);
        let doc = row.info.doc.trim();
        let (name, default) = (row.info.name, &row.default);
        out.line(format!("  {name}={default} ({fate}) {doc}"))?;
        out.object(|| row_json(&row))?;
    }
    out.line("[given up by RocksDB: accepted without effect]")?;
    for gone in RETIRED {
        let alias = gone
            .alias_of
            .map(|a| format!(" (now {a})"))
            .unwrap_or_default();
        out.line(format!(
            "  {} in {}{alias}",
            gone.name,
            gone.section.title()
        ))?;
        out.object(|| {
            json!({"type": "retired", "name": gone.name, "section": gone.section.title(),
                "alias_of": gone.alias_of})
        })?;
    }
    Ok(())
}

fn explain(name: &str, out: &mut Out) -> Outcome {
    // The last word counts: `table.block_size`, `block_based_table_factory.block_size`.
    let name = name.rsplit('.').next().unwrap_or(name);
    let rows = rows();
    let mut found = false;
    for row in rows.iter().filter(|r| r.info.name == name) {
        found = true;
        let (fate, reason) = fate(&row.info);
        let default = if row.default.is_empty() {
            "(empty)"
        } else {
            &row.default
        };
        out.line(format!("{} in {}", row.info.name, row.info.section.title()))?;
        out.line(format!("  {}", row.info.doc.trim()))?;
        out.line(format!("  type:     {}", row.info.value_type))?;
        out.line(format!("  default:  {default}"))?;
        let reason = reason.map(|why| format!(": {why}")).unwrap_or_default();
        let effect = match fate {
            "live" => "as in RocksDB",
            "accepted" => "none",
            _ => "refused",
        };
        out.line(format!("  effect:   {effect}{reason}"))?;
        let change = match row.info.change {
            esker::options::Change::AtOpen => "only at open",
            esker::options::Change::AnyTime => "at any time",
        };
        out.line(format!("  changes:  {change}"))?;
        out.object(|| row_json(row))?;
    }
    for gone in RETIRED.iter().filter(|r| r.name == name) {
        found = true;
        let alias = gone
            .alias_of
            .map(|a| format!("; it is {a} now"))
            .unwrap_or_default();
        let place = gone.section.title();
        out.line(format!(
            "{name} in {place}: RocksDB gave it up, accepted without effect{alias}"
        ))?;
        out.object(|| {
            json!({"type": "retired", "name": name, "section": place, "alias_of": gone.alias_of})
        })?;
    }
    if found {
        return Ok(());
    }
    let meant = names::suggestion(name).unwrap_or_default();
    Err(Error::invalid_argument(format!("unknown option {name:?}"))
        .with_hint(format!("{meant} `esker options explain` lists all"))
        .into())
}

fn newest_options(path: &Path) -> Result<PathBuf> {
    if !is_dir(path)? {
        return Ok(path.to_owned());
    }
    let dir = Directory::read(path)?;
    let newest = dir.of(FileKind::Options).max_by_key(|f| f.number);
    newest
        .map(|file| file.path.clone())
        .ok_or_else(|| Error::not_found("no OPTIONS file in the directory").with_file(path))
}

fn lint_file(path: &Path, out: &mut Out) -> Outcome {
    let path = newest_options(path)?;
    let text = text_of(&path)?;
    let faults = match load_options_text(&text, RULES) {
        Ok(_) => Vec::new(),
        Err(_) => faults(&text),
    };
    for fault in &faults {
        show_fault(fault, &path, out)?;
    }
    // What is left may contradict itself as well.
    let kept = without(&text, &faults);
    let loaded = load_options_text(&kept, RULES).map_err(|e| e.with_file(&path))?;
    out.line(format!("{} (RocksDB {})", path.display(), loaded.version))?;
    for r in &loaded.remarks {
        let family = r
            .family
            .as_ref()
            .map(|f| format!("[{f}] "))
            .unwrap_or_default();
        out.line(format!(
            "remark: {family}{}={}: {}",
            r.option, r.value, r.reason
        ))?;
        out.object(|| {
            json!({"type": "remark", "family": r.family, "option": r.option, "value": r.value,
                "reason": r.reason})
        })?;
    }
    let families = loaded.families.iter().map(|(name, o)| (name.as_str(), o));
    let findings = lint(&loaded.db, families);
    for f in &findings {
        out.line(f.to_string())?;
        out.object(|| {
            let severity = if f.severity == Severity::Error {
                "error"
            } else {
                "advice"
            };
            json!({"type": "finding", "severity": severity, "family": f.family, "option": f.option,
                "problem": f.problem, "instead": f.instead})
        })?;
    }
    if findings.is_empty() && loaded.remarks.is_empty() && faults.is_empty() {
        out.line("nothing to say")?;
    }
    out.flush()?;
    if !faults.is_empty() || findings.iter().any(|f| f.severity == Severity::Error) {
        return Err(Failure::Said);
    }
    Ok(())
}

/// Shows a statement that cannot be taken over.
fn show_fault(fault: &OptionFault, path: &Path, out: &mut Out) -> Outcome {
    let (line, e) = (fault.line, fault.error.message());
    let meant = if names::is_known(&fault.name) {
        None
    } else {
        names::suggestion(&fault.name)
    };
    let hint = meant.as_ref().map(|m| format!("; {m}")).unwrap_or_default();
    out.line(format!("error: {} line {line}: {e}{hint}", path.display()))?;
    out.object(|| {
        json!({"type": "finding", "severity": "error", "line": line, "option": fault.name,
            "problem": e, "instead": meant})
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_text() {
        let rows = rows();
        assert!(rows.len() > 250, "{}", rows.len());
        assert!(rows.iter().all(|r| !r.info.doc.trim().is_empty()));
    }
}
