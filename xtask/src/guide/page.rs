//! A page of the guide: its blocks of commands, and the script that runs them.

use std::fmt::Write as _;

/// The block that installs, which the runner does itself, with a profile of its own.
const INSTALL: &str = "export PREFIX=$HOME/esker SOURCE=$PWD\n\
                       cargo xtask install --prefix \"$PREFIX\"\n";
/// The block that installs the C++ library as well.
const INSTALL_CXX: &str = "export PREFIX=$HOME/esker SOURCE=$PWD\n\
                           cargo xtask install --cxx --prefix \"$PREFIX\"\n";

/// Names of shells that readers might mark commands with, which then would not run.
const NOT_RUN: &[&str] = &["bash", "shell", "console", "zsh"];

/// The tools that a block needs beside the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Need {
    /// `sh`
    Nothing,
    /// `sh install`: done by the runner.
    Install,
    /// `sh c`: a C compiler and pkg-config.
    C,
    /// `sh cxx`: a C++ compiler and pkg-config.
    Cxx,
    /// `sh python`
    Python,
    /// `sh go`: Go, and the module of the example.
    Go,
    /// `sh rust`: libclang, and the crate of the example.
    Rust,
}

impl Need {
    fn parse(word: Option<&str>) -> Option<Need> {
        Some(match word {
            None => Need::Nothing,
            Some("install") => Need::Install,
            Some("c") => Need::C,
            Some("cxx") => Need::Cxx,
            Some("python") => Need::Python,
            Some("go") => Need::Go,
            Some("rust") => Need::Rust,
            Some(_) => return None,
        })
    }
}

/// A block of commands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The line of its fence, from 1.
    pub(super) line: usize,
    pub(super) need: Need,
    /// The commands, each line ended.
    pub(super) commands: String,
    /// The output of the commands, where the page says it.
    pub(super) output: Option<String>,
}

/// The blocks of commands on a page, or what is wrong with one.
pub(super) fn blocks(page: &str) -> Result<Vec<Block>, String> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_after_commands = false;
    let mut lines = page.lines().zip(1..);
    while let Some((line, line_no)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let mut content = String::new();
        let is_closed = lines.by_ref().any(|(line, _)| {
            let is_end = line == "```";
            if !is_end {
                content.push_str(line);
                content.push('\n');
            }
            is_end
        });
        if !is_closed {
            return Err(format!("line {line_no}: the block does not end"));
        }
        let mut words = info.split_whitespace();
        let is_commands = match words.next() {
            Some("sh") => {
                let need = Need::parse(words.next());
                let need = need.ok_or_else(|| format!("line {line_no}: unknown need: {info}"))?;
                let is_known = [INSTALL, INSTALL_CXX].contains(&content.as_str());
                if need == Need::Install && !is_known {
                    return Err(format!("line {line_no}: the runner installs by\n{INSTALL}"));
                }
                blocks.push(Block {
                    line: line_no,
                    need,
                    commands: content,
                    output: None,
                });
                true
            }
            Some("output") => match blocks.last_mut().filter(|_| is_after_commands) {
                Some(block) => {
                    block.output = Some(content);
                    false
                }
                None => return Err(format!("line {line_no}: output of no commands")),
            },
            Some(word) if NOT_RUN.contains(&word) => {
                return Err(format!("line {line_no}: mark commands with sh, not {word}"));
            }
            None => return Err(format!("line {line_no}: a block without a mark")),
            Some(_) => false,
        };
        is_after_commands = is_commands;
    }
    Ok(blocks)
}

/// The script that runs blocks in one shell; the output of each goes to the file `$SAID/INDEX`.
pub(super) fn script(blocks: &[&Block]) -> String {
    let mut script = String::from("set -eu -o pipefail\n");
    for (at, block) in blocks.iter().enumerate() {
        let _ = write!(script, "{{\n{}}} >\"$SAID/{at}\"\n", block.commands);
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(line: usize, need: Need, commands: &str, output: Option<&str>) -> Block {
        Block {
            line,
            need,
            commands: commands.into(),
            output: output.map(Into::into),
        }
    }

    #[test]
    fn blocks_are_found_in_order_with_their_output() {
        let page = "# A page\n\n```sh\necho a\n```\n\n```output\na\n```\n\n```c\nint a;\n```\n\
                    ```sh python\npython3 -c 'print(1)'\n\n```\n```text\nb\n```\n";
        assert_eq!(
            blocks(page),
            Ok(vec![
                block(3, Need::Nothing, "echo a\n", Some("a\n")),
                block(14, Need::Python, "python3 -c 'print(1)'\n\n", None),
            ])
        );
    }

    #[test]
    fn what_would_not_run_is_an_error() {
        for (page, problem) in [
            ("```sh\necho a\n", "does not end"),
            ("```sh ruby\necho a\n```\n", "unknown need"),
            ("```bash\necho a\n```\n", "mark commands with sh"),
            ("```\necho a\n```\n", "without a mark"),
            ("```output\na\n```\n", "output of no commands"),
            (
                "```sh\necho a\n```\n```c\n```\n```output\na\n```\n",
                "output of no commands",
            ),
            ("```sh install\nmake install\n```\n", "the runner installs"),
        ] {
            let found = blocks(page);
            let error = found.as_ref().err().map(String::as_str).unwrap_or_default();
            assert!(error.contains(problem), "{page:?} gave {found:?}");
        }
    }

    #[test]
    fn the_script_ends_at_the_first_failure_and_keeps_outputs_apart() {
        let first = block(1, Need::Nothing, "echo a\n", None);
        let second = block(5, Need::C, "cc a.c\n", None);
        assert_eq!(
            script(&[&first, &second]),
            "set -eu -o pipefail\n{\necho a\n} >\"$SAID/0\"\n{\ncc a.c\n} >\"$SAID/1\"\n"
        );
    }
}
