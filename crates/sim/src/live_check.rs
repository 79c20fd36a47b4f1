//! A workload on a working disk: the open database is compared with the model all the time, or
//! copies of it are.
//!
//! Checks for errors that power cuts show only by chance (a filter that denies a key, a version
//! that a snapshot still needs). Used by one thread; runs share a [`SimEnv`].

use crate::model::drive::Session;
use crate::model::judge::{self, Violation, ViolationKind, violation};
use crate::model::probe::{self, HeldIterators, HeldSnapshots};
use crate::model::settings::{DIR, Settings};
use crate::model::state::State;
use crate::rng::Rng;
use crate::run::{Counts, Failure, RunPart, empty_disk};
use crate::sim_env::SimEnv;
use esker::Db;

/// Steps of one workload.
const STEPS: usize = 150;

fn broken(doing: &str) -> impl Fn(esker::Error) -> Violation + '_ {
    move |e| violation(ViolationKind::Broken, format!("{doing}: {e}"))
}

/// A directory has one opener.
fn second_opener(world: &SimEnv, session: &Session, settings: &Settings) -> Result<(), Violation> {
    let options = settings.options(world, session.disk());
    let again = Db::open(DIR, options.map_err(broken("options"))?);
    match again {
        Ok(_) => Err(violation(
            ViolationKind::Broken,
            "a second opener was let in",
        )),
        Err(_) => Ok(()),
    }
}

fn play(world: &SimEnv, seed: u64, counts: &mut Counts) -> Result<(), Violation> {
    let settings = Settings::draw(seed);
    let disk = empty_disk().map_err(broken("disk"))?.without_log();
    let opened = Session::open(world, &settings, &disk, State::default(), seed);
    let mut session = opened.map_err(|e| violation(ViolationKind::Unopenable, e.to_string()))?;
    let (mut held, mut rng) = (HeldSnapshots::default(), Rng::new(seed ^ 0x6c6f_6f6b));
    let mut iterators = HeldIterators::new(seed);
    second_opener(world, &session, &settings)?;
    session.begin().map_err(broken("begin"))?;
    for step in 0..STEPS {
        session.run(1).map_err(broken("step"))?;
        iterators.look(&mut session)?;
        if rng.one_in(3) {
            probe::look(&mut session, &mut held, &mut rng)?;
            counts.looks += 1;
        }
        if rng.one_in(10) || step + 1 == STEPS {
            judge::compare(&session, "a step")?;
            counts.looks += 1;
        }
    }
    drop((held, iterators));
    drop(session.finish());
    Ok(())
}

/// The workload of `seed`, of which checkpoints are made and backups restored, and compared.
fn play_copies(world: &SimEnv, seed: u64, counts: &mut Counts) -> Result<(), Violation> {
    let settings = Settings::draw(seed);
    let disk = empty_disk().map_err(broken("disk"))?.without_log();
    let opened = Session::open(world, &settings, &disk, State::default(), seed);
    let mut session = opened.map_err(|e| violation(ViolationKind::Unopenable, e.to_string()))?;
    let mut rng = Rng::new(seed ^ 0x636f_7079);
    session.begin().map_err(broken("begin"))?;
    for _ in 0..STEPS {
        session.run(1).map_err(broken("step"))?;
        match rng.below(6) {
            0..2 => {
                session.check_checkpoint()?;
                counts.checkpoints += 1;
            }
            2 => {
                session.check_backup()?;
                counts.restores += 1;
            }
            _ => {}
        }
    }
    judge::compare(&session, "copies")?;
    drop(session.finish());
    Ok(())
}

/// The workload of `seed` with its copies.
pub fn copies(world: &SimEnv, seed: u64, counts: &mut Counts) -> Option<Failure> {
    counts.runs += 1;
    let done = world.play(seed, |world| play_copies(world, seed, counts));
    done.err().map(|violation| Failure {
        seed,
        story: RunPart::Copies,
        cuts: Vec::new(),
        violation,
        left: String::new(),
    })
}

/// The workload of `seed`.
pub fn run(world: &SimEnv, seed: u64, counts: &mut Counts) -> Option<Failure> {
    counts.runs += 1;
    let done = world.play(seed, |world| play(world, seed, counts));
    done.err().map(|violation| Failure {
        seed,
        story: RunPart::Live,
        cuts: Vec::new(),
        violation,
        left: String::new(),
    })
}
