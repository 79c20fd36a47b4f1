//! The front door of `esker lab`: reads the command line, runs an experiment, writes its report.

use std::path::PathBuf;

use crate::experiment::plan::{Request, Setting};
use crate::experiment::record::Record;
use crate::experiment::state::{State, read_record};
use crate::experiment::{Experiment, driver};
use crate::say::say;
use crate::{Failure, Result, experiments, interrupt, page};

/// Runs `esker lab` with these arguments (without the words `esker lab`).
///
/// # Errors
/// Wrong arguments, an engine that was asked for and did not run, or a failure of one that did.
pub fn main(args: &[String]) -> Result<()> {
    match args.first().map(String::as_str) {
        None | Some("--help" | "-h" | "help" | "list") => {
            say!("{}", help());
            Ok(())
        }
        Some("report") => report(&args[1..]),
        Some("model") => crate::model::command::main(&args[1..]),
        Some(name) => experiment(name, &args[1..]),
    }
}

/// The command line, read.
#[derive(Debug, Default)]
struct Arguments {
    request: Option<Request>,
    /// Tells whether the command line names engines.
    names_engines: bool,
    out: PathBuf,
    wants_help: bool,
}

fn experiment(name: &str, args: &[String]) -> Result<()> {
    let Some(experiment) = experiments::named(name) else {
        let names: Vec<&str> = experiments::all().iter().map(|e| e.name()).collect();
        return Err(Failure::usage(format!(
            "there is no experiment {name}; there are {}, and report",
            names.join(", ")
        )));
    };
    let arguments = parse(experiment, args).map_err(Failure::of_usage)?;
    if arguments.wants_help {
        say!("{}", help_of(experiment));
        return Ok(());
    }
    let Some(mut request) = arguments.request else {
        return Ok(());
    };
    // Nothing is made before all that was asked for is known to be sound.
    experiment.plan(&request).map_err(Failure::of_usage)?;
    if arguments.names_engines {
        check_engines(experiment, &request)?;
    }
    interrupt::watch()?;
    experiments::plant(&mut request, &arguments.out)?;
    let command = command(name, args);
    if !request.text("bisect").is_empty() {
        let (records, found) = experiments::bisect(&request, &arguments.out, &command)?;
        let records: Vec<&Record> = records.iter().collect();
        page::write(&records, &arguments.out)?;
        say!(
            "{found}\nThe page is {}",
            arguments.out.join("report.html").display()
        );
        return Ok(());
    }
    let state = State::open(&arguments.out, &request)?;
    say!(
        "{}: results go to {}",
        experiment.title(),
        arguments.out.display()
    );
    let record = driver::run(experiment, &request, &state, &command)?;
    finish(&record, &arguments.out)?;
    if arguments.names_engines && !interrupt::stopped() {
        return all_ran(&record);
    }
    Ok(())
}

/// Engines that the experiment cannot drive.
fn check_engines(experiment: &dyn Experiment, request: &Request) -> Result<()> {
    let wrong = request.engines.iter().filter_map(|engine| {
        let why = experiment.supports(engine).err()?;
        Some(format!("--engine={}: {why}", engine.text))
    });
    let wrong: Vec<String> = wrong.collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::new(wrong.join("\n  ")))
}

/// A failure where an engine that was asked for did not run.
fn all_ran(record: &Record) -> Result<()> {
    let missing = record.engines.iter().filter_map(|engine| {
        let why = engine.missing.as_ref()?;
        let why = why.lines().next().unwrap_or_default();
        Some(format!("{} did not run: {why}", engine.name))
    });
    let missing: Vec<String> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(missing.join("\n  ")))
}

/// Writes the page and what belongs to it, and says what it says.
fn finish(record: &Record, out: &std::path::Path) -> Result<()> {
    page::write(&[record], out)?;
    for sentence in page::verdict(record) {
        say!("{sentence}");
    }
    if !record.complete {
        say!("This is a part: run the same command again to go on.");
    }
    say!("The page is {}", out.join("report.html").display());
    Ok(())
}

/// The command as one would type it.
fn command(name: &str, args: &[String]) -> String {
    let quote = |arg: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
        if arg.chars().all(is_plain) {
            arg.clone()
        } else {
            format!("'{}'", arg.replace('\'', "'\\''"))
        }
    };
    let args: Vec<String> = args.iter().map(quote).collect();
    format!("esker lab {name} {}", args.join(" "))
        .trim()
        .to_string()
}

fn parse(experiment: &dyn Experiment, args: &[String]) -> Result<Arguments> {
    let (own, flags) = match args.iter().position(|arg| arg == "--") {
        Some(at) => (&args[..at], args[at + 1..].to_vec()),
        None => (args, Vec::new()),
    };
    let (mut quick, mut pairs, mut engines) = (false, experiment.default_pairs(), Vec::new());
    let (mut out, mut scratch, mut wants_help) = (PathBuf::new(), PathBuf::new(), false);
    let mut given: Vec<(String, String)> = Vec::new();
    for arg in own {
        let body = arg.trim_start_matches('-');
        match body.split_once('=') {
            None if body == "quick" => quick = true,
            None if matches!(body, "help" | "h") => wants_help = true,
            Some(("engine", value)) => engines.push(value.to_string()),
            Some(("pairs", value)) => {
                let number = value.parse().ok().filter(|n| *n > 0);
                let wrong = || Failure::new(format!("--pairs={value}: a number from 1 on"));
                pairs = number.ok_or_else(wrong)?;
            }
            Some(("out", value)) => out = value.into(),
            Some(("scratch", value)) => scratch = value.into(),
            Some((name, value)) if known(experiment, name).is_some() => {
                given.push((name.to_string(), value.to_string()));
            }
            _ => return Err(Failure::new(unknown(experiment, arg))),
        }
    }
    let names_engines = !engines.is_empty();
    if !names_engines {
        let defaults = experiment.default_engines().iter();
        engines = defaults.map(|text| (*text).to_string()).collect();
    }
    let size = if quick { "quick" } else { "full" };
    if out.as_os_str().is_empty() {
        out = format!("lab-{}-{size}", experiment.name()).into();
    }
    let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
    let given: Vec<(&str, &str)> = given
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    let settings = experiment.settings();
    let request = Request::of(experiment.name(), settings, quick, &engines, &given);
    Ok(Arguments {
        request: Some(Request {
            pairs,
            flags,
            scratch,
            engines: experiment.engines(request.engines.clone()),
            ..request
        }),
        names_engines,
        out,
        wants_help,
    })
}

fn known(experiment: &dyn Experiment, name: &str) -> Option<&'static Setting> {
    experiment.settings().iter().find(|s| s.name == name)
}

fn unknown(experiment: &dyn Experiment, arg: &str) -> String {
    let names: Vec<String> = experiment
        .settings()
        .iter()
        .map(|setting| format!("--{}=", setting.name))
        .collect();
    format!(
        "{arg} is not an argument of {}: there are --quick, --engine=, --pairs=, --out=, \
         --scratch=, {}; flags of esker bench follow after --",
        experiment.name(),
        names.join(", ")
    )
}

fn help() -> String {
    let mut out = String::from(
        "Runs experiments on Esker and on its peers, and writes a page that shows what was \
         measured.\n\n\
         usage: esker lab EXPERIMENT [--quick] [--engine=ENGINE]... [--pairs=N] [--out=DIR]\n\
         \x20                          [--SETTING=VALUE]... [-- FLAGS OF esker bench]\n\
         \x20      esker lab EXPERIMENT --help      its steps and settings\n\
         \x20      esker lab report DIR... [--out=DIR] [--history]\n\
         \x20      esker lab model --help           calculators of amplification and scalability\n\n\
         experiments:\n",
    );
    for experiment in experiments::all() {
        out.push_str(&format!(
            "  {:<14} {}\n",
            experiment.name(),
            experiment.help()
        ));
    }
    out.push_str(
        "\nengines: esker; lib:/path/to/librocksdb.so; bin:/path/to/esker (another build); \
         with ?name=value;...\nfor options of one engine, and NAME= in front for another name. \
         The first that is not esker is\nthe one that others are divided by.\n\n\
         Each pair runs every engine twice, forward and backward (A B B A). Finished steps are \
         kept in\n--out: the same command goes on where it was stopped. Ctrl-C ends it after the \
         step, with a report.\n\n\
         examples:\n\
         \x20 esker lab byrx --quick --engine=esker --engine=lib:/usr/lib/librocksdb.so\n\
         \x20 esker lab report lab-byrx-quick lab-iodir-quick --out=both\n",
    );
    out
}

fn help_of(experiment: &dyn Experiment) -> String {
    let mut out = format!(
        "{}\n\n{}\n\nsettings:\n",
        experiment.title(),
        experiment.about()
    );
    for setting in experiment.settings() {
        out.push_str(&format!(
            "  --{}={}\n        {} ({} with --quick)\n",
            setting.name, setting.full, setting.doc, setting.quick
        ));
    }
    out
}

/// `esker lab report`: one page of several records, or of one experiment over time.
fn report(args: &[String]) -> Result<()> {
    let (mut directories, mut out, mut history) = (Vec::new(), PathBuf::from("lab-report"), false);
    for arg in args {
        match arg.trim_start_matches('-').split_once('=') {
            Some(("out", value)) => out = value.into(),
            None if arg == "--history" => history = true,
            _ if arg.starts_with('-') => {
                return Err(Failure::usage(format!(
                    "{arg} is not an argument of report"
                )));
            }
            _ => directories.push(PathBuf::from(arg)),
        }
    }
    if directories.is_empty() {
        return Err(Failure::usage("report needs directories of results"));
    }
    let records = directories
        .iter()
        .map(|path| read_record(path))
        .collect::<Result<Vec<Record>>>()?;
    std::fs::create_dir_all(&out)?;
    let records: Vec<&Record> = records.iter().collect();
    if history {
        page::write_history(&records, &out)?;
    } else {
        page::write(&records, &out)?;
    }
    say!("The page is {}", out.join("report.html").display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Arguments> {
        let experiment = experiments::named("byrx").expect("an experiment");
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_string()).collect();
        parse(experiment, &args)
    }

    #[test]
    fn a_command_line_becomes_a_request() {
        let args = [
            "--quick",
            "--engine=esker",
            "--engine=stock=lib:/a.so",
            "--num=7",
            "--num=8",
            "--pairs=5",
            "--",
            "--bloom_bits=12",
        ];
        let arguments = parsed(&args).expect("is sound");
        let request = arguments.request.expect("a request");
        assert_eq!(request.count("num"), Ok(8));
        assert_eq!((request.quick, request.pairs), (true, 5));
        assert_eq!(request.engines[1].label, "stock");
        assert_eq!(request.flags, ["--bloom_bits=12"]);
        assert_eq!(arguments.out, PathBuf::from("lab-byrx-quick"));
        let full = parsed(&[]).expect("is sound").request.expect("a request");
        assert_eq!(full.count("num"), Ok(40_000_000));
        assert_eq!(full.engines[0].text, "esker");
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_there_is() {
        let unknown = parsed(&["--bloom_bits=12"]).expect_err("is a flag of bench");
        assert!(unknown.to_string().contains("--duration="), "{unknown}");
        assert!(parsed(&["--pairs=0"]).is_err() && parsed(&["word"]).is_err());
        assert!(parsed(&["--help"]).expect("is sound").wants_help);
    }

    #[test]
    fn nothing_is_made_for_settings_and_engines_that_are_wrong() {
        let root = tempfile::tempdir().expect("a directory");
        let out = root.path().join("results");
        let run = |args: &[&str]| {
            let out = format!("--out={}", out.display());
            let args = args.iter().map(|arg| (*arg).to_string());
            let args: Vec<String> = args.chain([out, "--quick".into()]).collect();
            experiment("byrx", &args).expect_err("is wrong").to_string()
        };
        let setting = run(&["--num=abc"]);
        assert!(setting.contains("--num=abc: a whole number"), "{setting}");
        let engine = run(&[
            "--engine=esker",
            "--engine=lib:/nonexist.so",
            "--engine=lmbd",
        ]);
        assert!(engine.contains("there is no file /nonexist.so"), "{engine}");
        assert!(engine.contains("--engine=lmbd"), "all at once: {engine}");
        let flag = run(&["--", "--bloom_bit=10"]);
        assert!(flag.contains("--bloom_bits"), "{flag}");
        assert!(!out.exists(), "the directory was made");
    }

    #[test]
    fn an_engine_of_the_list_that_did_not_run_is_a_failure() {
        let mut record = crate::page::sample::record();
        assert_eq!(all_ran(&record), Ok(()));
        record.engines[1].missing = Some("it broke\nbefore that:\nKeys".into());
        let why = all_ran(&record).expect_err("it did not run").to_string();
        assert_eq!(why, "RocksDB 11.8.1 did not run: it broke");
    }

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let args = ["--engine=esker?a=b;c=d".to_string(), "--quick".to_string()];
        assert_eq!(
            command("byrx", &args),
            "esker lab byrx '--engine=esker?a=b;c=d' --quick"
        );
    }

    #[test]
    fn the_help_names_every_experiment() {
        let help = help();
        for experiment in experiments::all() {
            assert!(help.contains(experiment.name()));
            assert!(help_of(experiment).contains(experiment.settings()[0].name));
        }
    }
}
