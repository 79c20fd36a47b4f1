//! Power cuts on a real ext4, by the ioctl that takes the filesystem away from its device.
//!
//! Each worker has an ext4 in a file of its own. A process loads a database there; at a random
//! moment the filesystem is shut down, the process dies, the filesystem is mounted again, which
//! replays its journal, and the database is opened and judged. What reached the image before the
//! cut stays; what lay in the page cache or in the journal's memory is gone.
//!
//! Only what was acknowledged before the cut began counts: ext4 answers an fdatasync that the
//! shutdown overtakes with success (a program that appends and syncs in a loop shows it without any
//! database, in one cut of ten), and a machine without power acknowledges nothing.

use crate::check::{Violation, ViolationKind, violation};
use crate::kill::gained;
use crate::load::Promise;
use crate::mounts::{Image, Mount};
use crate::process::{Loader, ProcessReport};
use crate::recipe::{Choices, RECIPES, Recipe};
use crate::report::{Report, home, jobs, lock};
use crate::rng::Rng;
use crate::shutdown::{PageCacheFate, shut_down};
use crate::survivor::{OpenMethod, judge};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of an image.
const IMAGE: u64 = 96 << 20;
/// A filesystem is made anew after this many cuts.
const CUTS_PER_IMAGE: u64 = 60;

/// Options of the command.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Power cuts of each combination of --data and --sync
    #[arg(long, default_value_t = 1000, value_name = "N")]
    cycles: u64,
    /// How ext4 orders data and journal
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "ordered,writeback",
        value_name = "MODE"
    )]
    data: Vec<String>,
    /// Syncs of writes: yes is from all to one in sixteen, no is none but what flush and flush_wal
    /// sync
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "yes,no",
        value_name = "WORD"
    )]
    sync: Vec<String>,
    #[command(flatten)]
    choices: Choices,
    /// Filesystems at a time; 0 for one per processor
    #[arg(long, default_value_t = 0, value_name = "N")]
    jobs: usize,
    /// Where the images go; in memory (such as /dev/shm/cuts) cuts are twice as quick
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Cuts the power as often as asked for; the report of all combinations together.
pub(crate) fn run(args: &Args) -> Result<Report, String> {
    let (home, _guard) = home(args.dir.as_deref())?;
    let mut total = Report::default();
    if let Err(reason) = try_out(&home) {
        println!("power cuts: skipped, {reason}");
        return Ok(total);
    }
    for data in &args.data {
        for sync in &args.sync {
            let synced = match sync.as_str() {
                "yes" => true,
                "no" => false,
                _ => return Err(format!("--sync is yes or no, not {sync}")),
            };
            let report = combination(args, &home, data, synced)?;
            println!("data={data}, sync={sync}: {report}");
            total.add(&report);
        }
    }
    Ok(total)
}

/// Checks that this machine lets us make, mount and shut down a filesystem.
fn try_out(home: &Path) -> Result<(), String> {
    let mount = Image::ext4(home, IMAGE, "data=ordered")?.mount()?;
    shut_down(&mount.point, PageCacheFate::Nothing).map_err(|e| format!("shutdown: {e}"))?;
    mount.unmount()
}

fn combination(args: &Args, home: &Path, data: &str, synced: bool) -> Result<Report, String> {
    let left = AtomicU64::new(args.cycles);
    let report = Mutex::new(Report::default());
    let trouble = Mutex::new(None);
    std::thread::scope(|scope| {
        for worker in 0..jobs(args.jobs) {
            let (left, report, trouble) = (&left, &report, &trouble);
            scope.spawn(move || {
                let mut worker = Worker {
                    home: home.join(format!("{data}-{synced}-{worker}")),
                    options: format!("data={data},commit=1"),
                    synced,
                    recipe: args.choices.recipe,
                    rng: Rng::new(args.choices.seed ^ ((worker as u64) << 32) ^ u64::from(synced)),
                };
                let some = |n: u64| n.checked_sub(CUTS_PER_IMAGE.min(n)).filter(|_| n > 0);
                while let Ok(n) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, some) {
                    if let Err(e) = worker.image(n.min(CUTS_PER_IMAGE), report) {
                        *lock(trouble) = Some(e);
                        return;
                    }
                }
            });
        }
    });
    match trouble.into_inner().unwrap_or_default() {
        Some(e) => Err(e),
        None => Ok(report.into_inner().unwrap_or_default()),
    }
}

/// One filesystem after the other.
struct Worker {
    home: PathBuf,
    options: String,
    synced: bool,
    recipe: Option<Recipe>,
    rng: Rng,
}

/// A database on the filesystem.
struct TrialDatabase {
    dir: PathBuf,
    recipe: Recipe,
    heard: ProcessReport,
}

impl Worker {
    /// Makes a filesystem and cuts its power so often.
    fn image(&mut self, cuts: u64, report: &Mutex<Report>) -> Result<(), String> {
        std::fs::create_dir_all(&self.home).map_err(|e| e.to_string())?;
        let image = Image::ext4(&self.home, IMAGE, &self.options)?;
        let mut mount = image.mount()?;
        let mut places: Vec<TrialDatabase> = Vec::new();
        for _ in 0..cuts {
            let recipe = self
                .recipe
                .unwrap_or_else(|| RECIPES[self.rng.below(RECIPES.len() as u64) as usize]);
            let at = places.iter().position(|p| p.recipe.name == recipe.name);
            let at = at.unwrap_or_else(|| {
                places.push(TrialDatabase {
                    dir: mount.point.join(recipe.name),
                    recipe,
                    heard: ProcessReport::default(),
                });
                places.len() - 1
            });
            let place = &mut places[at];
            let seed = self.rng.next_u64();
            let mut judged = self.load_and_cut(place, &mount, seed);
            mount.unmount()?;
            mount = image.mount()?;
            let mut counts = Report::default();
            counts.cuts += 1;
            if judged.is_ok() {
                judged = self.judge(place, &mut counts);
            }
            let mut report = lock(report);
            report.add(&counts);
            if let Err(v) = judged {
                let what = format!("{} {} seed {seed}", self.options, recipe.name);
                report.violation(&v, &what);
                let kept = self.keep(&place.dir);
                println!("  what the cut left: {kept}");
                places.remove(at);
            }
        }
        mount.unmount()
    }

    /// Loads a database and takes its filesystem away.
    fn load_and_cut(
        &mut self,
        place: &mut TrialDatabase,
        mount: &Mount,
        seed: u64,
    ) -> Result<(), Violation> {
        let rng = &mut self.rng;
        let mut recipe = place.recipe;
        recipe.sync_one_in = if self.synced {
            [1, 1, 4, 16][rng.below(4) as usize]
        } else {
            0
        };
        let mut loader = Loader::start(&place.dir, recipe, Promise::Power, seed)?;
        if rng.one_in(8) {
            std::thread::sleep(Duration::from_millis(rng.below(30)));
        } else {
            loader.wait_ready()?;
            std::thread::sleep(Duration::from_micros(500 + rng.below(120_000)));
        }
        // The kernel writes back when it likes.
        if rng.one_in(4) {
            write_back(mount);
            std::thread::sleep(Duration::from_micros(rng.below(30_000)));
        }
        let alive = loader.is_alive();
        let cut = match rng.below(10) {
            0 => PageCacheFate::Flush,
            1 | 2 => PageCacheFate::Journal,
            _ => PageCacheFate::Nothing,
        };
        let before = loader.heard();
        let done = shut_down(&mount.point, cut);
        // It may go on for a while, on a filesystem that takes nothing.
        std::thread::sleep(Duration::from_micros(rng.below(3_000)));
        let failed = loader.kill().0.failed;
        place.heard.follow(before);
        if let Err(e) = done {
            return violation(ViolationKind::Misbehaved, format!("shutdown: {e}"));
        }
        if alive {
            Ok(())
        } else {
            violation(
                ViolationKind::Misbehaved,
                format!("the process ended by itself: {failed:?}"),
            )
        }
    }

    fn judge(&mut self, place: &mut TrialDatabase, report: &mut Report) -> Result<(), Violation> {
        let how = match self.rng.below(4) {
            0 => OpenMethod::ReadOnly,
            n => OpenMethod::Writing { commit: n == 1 },
        };
        let found = judge(&place.dir, place.recipe, &place.heard, how)?;
        report.operations += gained(&mut place.heard, found, how);
        Ok(())
    }

    /// Moves what was left out of the filesystem that is used further.
    fn keep(&mut self, dir: &Path) -> String {
        let to = std::env::temp_dir().join(format!("esker-cut-{:016x}", self.rng.next_u64()));
        let mut copy = std::process::Command::new("cp");
        let copied = copy.arg("-r").arg(dir).arg(&to).status();
        match copied {
            Ok(s) if s.success() => to.display().to_string(),
            _ => "it could not be copied".to_owned(),
        }
    }
}

/// Starts and awaits write-back of the whole filesystem, beside the process.
fn write_back(mount: &Mount) {
    if let Ok(root) = std::fs::File::open(&mount.point) {
        // What it does to the state is the point; that it may fail is not.
        let _ = rustix::fs::syncfs(&root);
    }
}
