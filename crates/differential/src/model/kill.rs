//! Programs in a process of their own, which is killed in the middle: what was acknowledged is
//! there afterwards, and of the call that was in the making all or nothing.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::program::{Mode, Program};
use super::shrink::FailedCall;
use super::table::{Table, changes};
use super::world::ModelState;
use super::writer::{self, Writer};
use super::{ModelPlan, ProgramResult, load};
use crate::draw::RandomStream;
use crate::{Failure, Result};

/// Kinds whose outcome only the process that is killed would know.
const UNKNOWN: &[&str] = &[
    "put_once",
    "single_delete",
    "ingest",
    "files_in_range",
    "import",
    "make_family",
    "drop_family",
    "transaction",
    "prepare",
    "resolve",
];

/// Tells whether the outcome of a kind is known without asking the database.
pub(super) fn knows(kind: &str) -> bool {
    !UNKNOWN.contains(&kind)
}

/// Where the process writes how many calls are done.
const DONE: &str = "done";

/// The body of the process: runs the program that lies in the directory.
pub(super) fn child(plan: &ModelPlan) -> Result<ProgramResult> {
    let text = std::fs::read_to_string(plan.directory.join("program.txt"))?;
    super::play_in(plan, &Program::parse(&text)?)
}

/// The file for the number of calls that are done.
pub(super) fn done_file(directory: &Path) -> Result<std::fs::File> {
    Ok(std::fs::File::create(directory.join(DONE))?)
}

/// Notes how many calls are done; what a process wrote stays when it is killed.
pub(super) fn note(file: &std::fs::File, calls: u64) -> Result<()> {
    Ok(file.write_all_at(&calls.to_le_bytes(), 0)?)
}

/// Contents of the families after so many calls of the first thread.
fn after(program: &Program, calls: usize) -> Vec<Table> {
    let setting = &program.setting;
    let mut tables = vec![Table::new(setting.keys); setting.families];
    for call in program.threads[0].iter().take(calls) {
        for (place, edit) in changes(setting, setting.families, call).unwrap_or_default() {
            tables[place].apply(&edit);
        }
    }
    tables
}

/// Runs a program in a process, kills it, and compares what is left.
pub(super) fn play(plan: &ModelPlan, mut program: Program, seed: u64) -> Result<ProgramResult> {
    program.setting.nowal = false;
    program.setting.mode = Mode::Plain;
    let directory = &plan.directory;
    // A failed removal shows as a database that is not new.
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("program.txt"), program.to_string())?;
    note(&done_file(directory)?, 0)?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(["model", "--child", "--lib"])
        .arg(&plan.library)
        .arg("--dir")
        .arg(directory)
        .stdout(Stdio::piped())
        .spawn()?;
    let millis = RandomStream::new(seed ^ 0x6b69_6c6c).below(1500) as u64;
    std::thread::sleep(Duration::from_millis(millis));
    let ended = child.try_wait()?;
    // It may have ended by itself meanwhile.
    let _ = child.kill();
    let output = child.wait_with_output()?;
    if ended.is_some_and(|status| !status.success()) {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let failure = Failure::new(format!("before it was killed: {said}"));
        return Ok(ProgramResult::Wrong(FailedCall {
            call: None,
            failure,
        }));
    }
    let world = ModelState::new(load(&plan.library)?, directory, &program.setting)?;
    let outcome = compare(&world, &program);
    world.end(program.setting.mode, false);
    let mut counts = world.counts();
    world.free();
    *counts.entry("kills".to_owned()).or_default() += u64::from(ended.is_none());
    Ok(match outcome {
        Ok(()) => ProgramResult::Right(counts),
        Err(failure) => ProgramResult::Wrong(FailedCall {
            call: None,
            failure: failure.context(format!("after a kill at {millis} ms")),
        }),
    })
}

/// Opens what a killed process left, and compares it with the two states that are right.
fn compare(world: &ModelState, program: &Program) -> Result<()> {
    let bytes = std::fs::read(world.base.join(DONE))?;
    let done = bytes
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes)) as usize;
    world.begin(
        program.setting.mode,
        &writer::first_names(program.setting.families),
    )?;
    world.count_many("calls before kills", done as u64);
    let mut writer = Writer::new(world, &program.setting);
    writer.tables = after(program, done);
    let first = writer.verify(false);
    writer.tables = after(program, done + 1);
    match (first, writer.verify(true)) {
        (Err(failure), Err(_)) => Err(failure.context(format!("{done} calls were done"))),
        _ => Ok(()),
    }
}
