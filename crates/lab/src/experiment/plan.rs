//! Settings, requests and plans: what is to be run, before anything runs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::record::Step;
use crate::{Failure, Result};

/// A setting of an experiment, given as `--name=value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its name without dashes.
    pub name: &'static str,
    /// Its value with `--quick`.
    pub quick: &'static str,
    /// Its value without.
    pub full: &'static str,
    /// One line for the help.
    pub doc: &'static str,
}

/// A setting of an experiment.
pub(crate) const fn setting(
    name: &'static str,
    quick: &'static str,
    full: &'static str,
    doc: &'static str,
) -> Setting {
    Setting {
        name,
        quick,
        full,
        doc,
    }
}

/// An engine as the command line names it.
///
/// `esker`; `lib:PATH` for any `librocksdb.so`; other engines by their word. Behind a question mark
/// stand options of this engine alone: `esker?recycle_log_file_num=4;allow_mmap_writes=true`. A
/// name for tables and legends may stand in front: `stock=lib:PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineSpec {
    /// All of it but the name in front.
    pub text: String,
    /// The name in front, or nothing.
    pub label: String,
}

impl EngineSpec {
    /// Reads one.
    pub fn parse(text: &str) -> EngineSpec {
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' '))
        };
        match text.split_once('=') {
            Some((label, rest)) if is_name(label) => EngineSpec {
                text: rest.to_string(),
                label: label.to_string(),
            },
            _ => EngineSpec {
                text: text.to_string(),
                label: String::new(),
            },
        }
    }

    /// The word in front: `esker`, `lib`, `lmdb`.
    pub fn kind(&self) -> &str {
        let end = self.text.find([':', '?']);
        &self.text[..end.unwrap_or(self.text.len())]
    }

    /// Returns the text between the colon and the options: the path of a library.
    pub fn path(&self) -> Option<&str> {
        let (_, rest) = self.text.split_once(':')?;
        Some(rest.split('?').next().unwrap_or(rest))
    }

    /// Options of this engine alone.
    pub fn options(&self) -> &str {
        self.text.split_once('?').map_or("", |(_, options)| options)
    }
}

/// The request of the command line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The experiment.
    pub experiment: String,
    /// The quick size.
    pub quick: bool,
    /// The engines.
    pub engines: Vec<EngineSpec>,
    /// How often A B B A is run.
    pub pairs: usize,
    /// Every setting of the experiment with its value.
    pub settings: Vec<(String, String)>,
    /// Flags of `esker bench` that are handed on, behind those of the experiment.
    pub flags: Vec<String>,
    /// Where databases are made; empty for the system's temporary directory.
    pub scratch: PathBuf,
}

impl Request {
    /// One pair of an experiment on some engines, with the settings of a size but for those that
    /// are given.
    pub fn of(
        experiment: &str,
        settings: &[Setting],
        quick: bool,
        engines: &[&str],
        given: &[(&str, &str)],
    ) -> Request {
        let value = |setting: &Setting| {
            let given = given.iter().rev().find(|(name, _)| *name == setting.name);
            let default = if quick { setting.quick } else { setting.full };
            let value = given.map_or(default, |(_, value)| value);
            (setting.name.to_string(), value.to_string())
        };
        Request {
            experiment: experiment.into(),
            quick,
            engines: engines.iter().map(|text| EngineSpec::parse(text)).collect(),
            pairs: 1,
            settings: settings.iter().map(value).collect(),
            ..Request::default()
        }
    }

    /// A setting as text; empty for one that the experiment does not have.
    pub fn text(&self, name: &str) -> &str {
        let found = self.settings.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// A setting as a number that is not negative.
    ///
    /// # Errors
    /// It is not one.
    pub fn count(&self, name: &str) -> Result<u64> {
        let text = self.text(name);
        text.parse()
            .map_err(|_| Failure::new(format!("--{name}={text}: a whole number is wanted")))
    }

    /// A setting as numbers with commas between.
    ///
    /// # Errors
    /// One of them is not a number, or there is none.
    pub fn counts(&self, name: &str) -> Result<Vec<u64>> {
        let wrong = || {
            let text = self.text(name);
            Failure::new(format!(
                "--{name}={text}: whole numbers are wanted, as 1,2,4"
            ))
        };
        let parts = self.text(name).split(',').map(|part| part.trim().parse());
        parts
            .collect::<std::result::Result<_, _>>()
            .map_err(|_| wrong())
    }

    /// A setting as words with commas between; none for an empty text.
    pub fn words(&self, name: &str) -> Vec<&str> {
        let parts = self.text(name).split(',').map(str::trim);
        parts.filter(|part| !part.is_empty()).collect()
    }
}

/// Steps that work on one database in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chain {
    /// Its name, unlike that of all other chains; empty where there is one only.
    pub name: String,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// All chains of an experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The chains.
    pub chains: Vec<Chain>,
    /// About how many seconds one run of all chains on one engine takes.
    pub seconds: u64,
    /// About how many bytes a database takes at most.
    pub bytes: u64,
}

impl Plan {
    /// All steps, chain by chain, as the record has them.
    pub fn steps(&self) -> Vec<Step> {
        let chains = self.chains.iter();
        let steps = chains.flat_map(|chain| {
            let named = |step: &Step| Step {
                chain: chain.name.clone(),
                ..step.clone()
            };
            chain.steps.iter().map(named).collect::<Vec<_>>()
        });
        steps.collect()
    }

    /// Where the first step of a chain is among all steps.
    pub fn first_step(&self, chain: usize) -> usize {
        let before = self.chains.iter().take(chain);
        before.map(|chain| chain.steps.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_have_names_kinds_paths_and_options() {
        let spec = EngineSpec::parse("stock=lib:/usr/lib/librocksdb.so?compression=kZSTD;x=1");
        assert_eq!((spec.label.as_str(), spec.kind()), ("stock", "lib"));
        assert_eq!(spec.path(), Some("/usr/lib/librocksdb.so"));
        assert_eq!(spec.options(), "compression=kZSTD;x=1");
        let plain = EngineSpec::parse("esker?a=b");
        assert_eq!((plain.label.as_str(), plain.kind()), ("", "esker"));
        assert_eq!((plain.path(), plain.options()), (None, "a=b"));
        assert_eq!(EngineSpec::parse("lib:/a?b=c").label, "");
    }

    #[test]
    fn settings_are_read_as_what_they_should_be() {
        let settings = [
            setting("num", "7", "9", ""),
            setting("threads", "1,2, 4", "8", ""),
            setting("none", "", "1", ""),
        ];
        let given = [("num", "8"), ("num", "10")];
        let request = Request::of("x", &settings, true, &[], &given);
        assert_eq!(request.count("num"), Ok(10));
        assert!(request.count("threads").is_err());
        assert_eq!(request.counts("threads"), Ok(vec![1, 2, 4]));
        assert!(request.counts("none").is_err() && request.words("none").is_empty());
    }

    #[test]
    fn steps_are_counted_through_all_chains() {
        let chain = |name: &str, steps: usize| Chain {
            name: name.into(),
            steps: vec![Step::default(); steps],
        };
        let plan = Plan {
            chains: vec![chain("a", 2), chain("b", 3)],
            ..Plan::default()
        };
        assert_eq!((plan.first_step(0), plan.first_step(1)), (0, 2));
        assert_eq!(plan.steps()[2].chain, "b");
    }
}
