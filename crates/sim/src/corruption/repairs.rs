//! Repairs that end early: power cuts inside one, and calls to the disk that fail in it.
//!
//! A database is damaged, in its tables, in what leads to them or in a log, and repaired once
//! without anything in the way: what that gives is the measure. Then the same repair is cut off by
//! the power in many places, or its calls fail; after that the database is repaired again, and has
//! to hold the same. Before it is, it may be opened as it is: what it shows then without an error
//! is the same, too, or what it was before the repair. No table, blob file, log or MANIFEST may be
//! gone with its bytes.
//!
//! All follows from a seed. Used by one thread.

use super::{Change, Damage, Listener, Subject, damaged};
use crate::Rng;
use crate::crash::{Cut, Point, VARIANTS};
use crate::disk::{Image, SimFs};
use crate::model::area::Area;
use crate::model::judge::{ViolationKind, violation};
use crate::model::settings::DIR;
use crate::run::{Counts, Failure, RunPart};
use crate::sim_env::SimEnv;
use crate::trial::draw_plan;
use esker::{Db, Options, RepairReport};
use esker_format::file_name::{FileKind, parse_file_name};
use esker_status::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How often the repair of a seed is cut off, and how often its calls fail.
pub const USUAL: (usize, usize) = (24, 16);

/// Where the transactions that are prepared stand among the families.
const PREPARED: &str = "(prepared)";

type Contents = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// Everything that an open database shows; a Get finds what an iterator finds.
fn contents(db: &Db) -> Result<Contents> {
    let mut out = Contents::new();
    for family in db.families() {
        let mut entries = BTreeMap::new();
        let mut it = db.iter_cf(&family);
        it.seek_to_first();
        while let Some((key, value)) = it.entry() {
            entries.insert(key.to_vec(), value.to_vec());
            it.next();
        }
        it.status()?;
        for (key, value) in &entries {
            if db.get_cf(&family, key)?.as_ref() != Some(value) {
                let key = key.escape_ascii();
                return Err(Error::aborted(format!(
                    "a Get and an iterator differ at {key}"
                )));
            }
        }
        out.insert(family.name().to_owned(), entries);
    }
    Ok(out)
}

/// A damaged database, and what its repair makes of it.
struct Case<'a> {
    subject: &'a Subject,
    damaged: Image,
    /// The damage, as text.
    told: String,
    /// Its contents when it is opened as it is; `None` when that fails.
    before: Option<Contents>,
    /// Its contents after a repair that nothing disturbed.
    repaired: Contents,
}

impl Subject {
    fn repair(&self, world: &SimEnv, disk: &SimFs) -> Result<RepairReport> {
        Db::repair(DIR, &self.plain(world, disk)?)
    }

    fn show(&self, world: &SimEnv, disk: &SimFs) -> Result<Contents> {
        let db = Db::open(DIR, self.plain(world, disk)?.create_if_missing(false))?;
        let mut found = contents(&db)?;
        let prepared = db.take_prepared_transactions().into_iter();
        let prepared = prepared.map(|(name, batch)| (name, batch.body().to_vec()));
        found.insert(PREPARED.to_owned(), prepared.collect());
        db.close()?;
        Ok(found)
    }

    fn plain(&self, world: &SimEnv, disk: &SimFs) -> Result<Options> {
        let ear = Arc::new(Listener(AtomicBool::new(false)));
        self.options(world, disk, &ear, 0)
    }

    /// Damages tables, and at times what leads to them, or a log.
    fn draw_damages(&self, rng: &mut Rng) -> Vec<Damage> {
        let files = self.files();
        let of = |wanted: &[FileKind]| -> BTreeMap<_, _> {
            let is_of = |path: &str| {
                let name = path.rsplit('/').next().unwrap_or(path);
                parse_file_name(name).is_some_and(|(kind, _)| wanted.contains(&kind))
            };
            let files = files.iter().filter(|(path, _)| is_of(path.as_str()));
            files.map(|(p, b)| (p.clone(), Arc::clone(b))).collect()
        };
        let (tables, leading, logs) = (
            of(&[FileKind::Table]),
            of(&[FileKind::Manifest, FileKind::Current]),
            of(&[FileKind::Wal]),
        );
        let mut out = Vec::new();
        for _ in 0..rng.below(3) {
            if !tables.is_empty() {
                out.push(Damage::draw(&tables, rng));
            }
        }
        if !leading.is_empty() && (out.is_empty() || rng.one_in(2)) {
            let mut damage = Damage::draw(&leading, rng);
            if rng.one_in(2) {
                damage.change = Change::Delete;
            }
            out.push(damage);
        }
        if !logs.is_empty() && rng.one_in(4) {
            out.push(Damage::draw(&logs, rng));
        }
        out
    }
}

/// Returns whether the error is about a blob file that the report says is missing.
fn is_told(report: &RepairReport, error: &str) -> bool {
    let losses = report.losses.iter();
    let missing = losses.filter_map(|loss| loss.split_once(" is missing: reads of "));
    missing
        .map(|(name, _)| format!("/{name} at offset"))
        .any(|place| error.contains(&place))
}

impl<'a> Case<'a> {
    /// The damaged database of a seed; `None` when nothing is damaged, or a repair refuses it and
    /// changes nothing.
    fn new(subject: &'a Subject, rng: &mut Rng) -> std::result::Result<Option<Case<'a>>, String> {
        let mut image = subject.image.clone();
        let mut told = Vec::new();
        for damage in subject.draw_damages(rng) {
            if let Some(next) = damaged(&image, &damage) {
                image = next;
                told.push(damage.to_string());
            }
        }
        let told = told.join(", ");
        let disk = || SimFs::from_image(image.clone()).without_log();
        let before = play(1, |world| subject.show(world, &disk())).ok();
        let whole = disk();
        let report = match play(2, |world| subject.repair(world, &whole)) {
            Ok(report) if report.is_sound => return Ok(None),
            Ok(report) => report,
            Err(e) => {
                let changed = super::untouched(&image.list(), &whole).err();
                return changed.map_or(Ok(None), |what| Err(format!("{told}: {what}: {e}")));
            }
        };
        let repaired = match play(3, |world| subject.show(world, &whole)) {
            Ok(repaired) => repaired,
            // Without a MANIFEST tables come back whose blob files were deleted: those of dropped
            // families, and old ones. The report names the files, and reads of these values fail.
            Err(e) if is_told(&report, &e.to_string()) => return Ok(None),
            Err(e) => {
                return Err(format!(
                    "{told}: repaired, it cannot be read: {e}; {report:?}"
                ));
            }
        };
        let case = Case {
            subject,
            damaged: image,
            told,
            before,
            repaired,
        };
        case.nothing_is_gone(&whole.image())?;
        Ok(Some(case))
    }

    /// Every file that holds data is somewhere, with its bytes.
    fn nothing_is_gone(&self, after: &Image) -> std::result::Result<(), String> {
        let after = after.list();
        let there: BTreeSet<&Vec<u8>> = after.values().map(Arc::as_ref).collect();
        for (path, bytes) in self.damaged.list() {
            let name = path.rsplit('/').next().unwrap_or(&path);
            let kind = parse_file_name(name).map(|(kind, _)| kind);
            let is_data = matches!(
                kind,
                Some(FileKind::Table | FileKind::Blob | FileKind::Wal | FileKind::Manifest)
            );
            if is_data && !there.contains(&*bytes) {
                return Err(format!("{}: {path} is nowhere after the repair", self.told));
            }
        }
        Ok(())
    }

    /// Repairs again after an interruption, and checks the result.
    fn again(&self, left: &Image) -> std::result::Result<(), String> {
        let told = &self.told;
        let disk = SimFs::from_image(left.clone()).without_log();
        if let Ok(found) = play(4, |world| self.subject.show(world, &disk))
            && found != self.repaired
            && self.before.as_ref() != Some(&found)
        {
            return Err(format!(
                "{told}: opened as it was left it shows something else"
            ));
        }
        let disk = SimFs::from_image(left.clone()).without_log();
        let report = play(5, |world| self.subject.repair(world, &disk))
            .map_err(|e| format!("{told}: it cannot be repaired again: {e}"))?;
        self.nothing_is_gone(&disk.image())?;
        let found = play(6, |world| self.subject.show(world, &disk))
            .map_err(|e| format!("{told}: repaired again, it cannot be read: {e}"))?;
        if found == self.repaired {
            Ok(())
        } else {
            Err(format!(
                "{told}: repaired again it holds {}, not {}: {report:?}",
                sizes(&found),
                sizes(&self.repaired)
            ))
        }
    }

    /// A power cut inside the repair.
    fn cut(&self, rng: &mut Rng) -> std::result::Result<(), String> {
        let disk = SimFs::from_image(self.damaged.clone());
        let done = play(2, |world| self.subject.repair(world, &disk));
        done.map_err(|e| format!("{}: the same repair fails: {e}", self.told))?;
        let log = disk.log();
        let cut = Cut {
            at: 1 + rng.index(log.ops.len().max(1)),
            variant: rng.pick(VARIANTS).0,
            seed: rng.next_u64() >> 32,
        };
        let point = Point::at(&log, cut.at.min(log.ops.len()));
        let left = point.state(cut.variant, cut.seed);
        self.again(&left).map_err(|e| format!("{cut}: {e}"))
    }

    /// Calls fail inside the repair.
    fn fail(&self, rng: &mut Rng) -> std::result::Result<(), String> {
        let plan = draw_plan(rng, Some(Area::Tables));
        let disk = SimFs::from_image(self.damaged.clone());
        disk.inject(&plan);
        let done = play(2, |world| self.subject.repair(world, &disk));
        disk.heal();
        if disk.failed_calls() == 0 {
            return Ok(());
        }
        let how = done.map_or_else(|e| format!("it failed: {e}"), |_| "it succeeded".to_owned());
        let left = disk.image();
        self.again(&left).map_err(|e| format!("{plan}: {e}; {how}"))
    }
}

fn sizes(contents: &Contents) -> String {
    let sizes = contents
        .iter()
        .map(|(name, all)| format!("{name}: {}", all.len()));
    sizes.collect::<Vec<_>>().join(", ")
}

/// One part of a case, on a clock and with threads of its own.
fn play<R>(seed: u64, part: impl FnOnce(&SimEnv) -> R) -> R {
    SimEnv::controlled().play(seed, part)
}

/// Repairs that end early of the database of one seed.
pub fn turn(seed: u64, (cuts, faults): (usize, usize), counts: &mut Counts) -> Vec<Failure> {
    let failure = |text: String| Failure {
        seed,
        story: RunPart::Repair(text.clone()),
        cuts: Vec::new(),
        violation: violation(ViolationKind::Broken, text),
        left: String::new(),
    };
    let mut rng = Rng::new(seed ^ 0x6d65_6e64);
    let subject = match Subject::simulated(seed) {
        Ok(subject) => subject,
        Err(e) => return vec![failure(e.to_string())],
    };
    let case = match Case::new(&subject, &mut rng) {
        Ok(Some(case)) => case,
        Ok(None) => return Vec::new(),
        Err(rule) => return vec![failure(rule)],
    };
    let mut failures = Vec::new();
    for i in 0..cuts + faults {
        counts.repairs += 1;
        let done = if i < cuts {
            case.cut(&mut rng)
        } else {
            case.fail(&mut rng)
        };
        failures.extend(done.err().map(failure));
    }
    failures
}
