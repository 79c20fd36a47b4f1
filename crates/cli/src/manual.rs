//! `esker completions` and `man`: texts for shells and for `man`, from the parser itself.

use crate::failure::{Failure, Outcome};
use crate::out::Out;
use clap::Args;
use clap_complete::Shell;
use esker_env::{FileSystem, PosixFs, WriteOptions};
use esker_status::{Error, ErrorKind};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `esker completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Arguments of `esker man`.
#[derive(Args, Debug)]
pub(crate) struct ManualArgs {
    /// Write a page for each command into this directory; without it, the page of `esker` itself
    /// is printed
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs `esker completions`.
pub(crate) fn completions(
    args: &CompletionsArgs,
    mut root: clap::Command,
    out: &mut Out,
) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut root, "esker", &mut text);
    if !out.is_json() {
        return out.bytes(&text);
    }
    let text = String::from_utf8_lossy(&text);
    out.object(|| json!({"type": "completions", "shell": args.shell.to_string(), "text": text}))
}

/// Runs `esker man`.
pub(crate) fn man(args: &ManualArgs, root: clap::Command, out: &mut Out) -> Outcome {
    let Some(dir) = &args.dir else {
        let text = page(root)?;
        if !out.is_json() {
            return out.bytes(&text);
        }
        let text = String::from_utf8_lossy(&text);
        return out.object(|| json!({"type": "man", "name": "esker", "text": text}));
    };
    PosixFs::new().create_dir_all(dir)?;
    pages(dir, root, out)
}

/// Writes the pages of a command and of those below it.
fn pages(dir: &Path, command: clap::Command, out: &mut Out) -> Outcome {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        pages(dir, below.clone(), out)?;
    }
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned();
    let path = dir.join(format!("{name}.1"));
    let text = page(command)?;
    let mut file = PosixFs::new().create(&path, WriteOptions::default())?;
    file.append(&text)?;
    file.close()?;
    out.line(path.display().to_string())?;
    out.object(|| json!({"type": "man", "name": name, "path": path.to_string_lossy()}))
}

fn page(command: clap::Command) -> Outcome<Vec<u8>> {
    let mut text = Vec::new();
    let made = clap_mangen::Man::new(command).render(&mut text);
    let failed = |e| Failure::Status(Error::new(ErrorKind::Io, format!("write a page: {e}")));
    made.map_err(failed)?;
    Ok(text)
}
