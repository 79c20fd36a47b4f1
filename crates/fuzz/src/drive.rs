//! Running a target: the corpus, then inputs made of it; what fails is shrunk.
//!
//! Input `n` of a run follows from the corpus, the seed and `n` alone. One run at a time in a
//! process: memory and processor time are counted for all of it.

use crate::Target;
use crate::memory;
use crate::mutate::Source;
use esker_sim::Rng;
use std::cell::RefCell;
use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Processor time that an input may take.
pub const TIME_MAX: Duration = Duration::from_secs(5);

/// Where the corpus is: beside this crate's source.
pub fn corpus_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Longer seeds are made when they are needed, and not kept in the corpus.
pub const KEPT_MAX: usize = 40_000;

/// The inputs of a target, by name: the files of the corpus, and the seeds that are too long for
/// it.
pub fn corpus(dir: &Path, target: &Target) -> io::Result<Vec<(String, Vec<u8>)>> {
    let long = (target.seeds)()
        .into_iter()
        .filter(|(_, seed)| seed.len() > KEPT_MAX);
    let mut all: Vec<_> = long.map(|(name, seed)| (name.to_owned(), seed)).collect();
    for entry in fs::read_dir(dir.join(target.name))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        all.push((name, fs::read(entry.path())?));
    }
    all.sort();
    Ok(all)
}

thread_local! {
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics of targets are findings: they are remembered, not printed. Once per process.
pub fn catch_panics() {
    panic::set_hook(Box::new(|info| {
        let message = info.to_string();
        MESSAGE.with(|m| {
            let mut m = m.borrow_mut();
            // The first one is the cause of those that follow.
            if m.is_empty() {
                *m = message;
            }
        });
    }));
}

/// The cost of one input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Processor time of the process.
    pub time: Duration,
    /// Bytes beyond what was in use before.
    pub memory: usize,
}

/// Processor time of this process.
pub fn cpu_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Runs one input: what it took, or what was wrong.
pub fn run_one(target: &Target, input: &[u8]) -> Result<Cost, String> {
    MESSAGE.with(|m| m.borrow_mut().clear());
    let (base, start) = (memory::begin(), cpu_time());
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let cost = Cost {
        time: cpu_time().saturating_sub(start),
        memory: memory::most_since(base),
    };
    if outcome.is_err() {
        let message = MESSAGE.with(|m| m.borrow().clone());
        return Err(if message.is_empty() {
            "a thread panicked".to_owned()
        } else {
            message
        });
    }
    if cost.memory > target.memory << 20 {
        return Err(format!(
            "it took {} MiB of memory; the limit is {}",
            cost.memory >> 20,
            target.memory
        ));
    }
    if cost.time > TIME_MAX {
        return Err(format!(
            "it took {:.1} s; the limit is {} s",
            cost.time.as_secs_f64(),
            TIME_MAX.as_secs()
        ));
    }
    Ok(cost)
}

/// Input `n` of the run with this seed.
pub fn make(target: &Target, corpus: &[Vec<u8>], seed: u64, n: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut input = if corpus.is_empty() {
        Vec::new()
    } else {
        rng.pick(corpus).clone()
    };
    let mut source = Source {
        rng,
        others: corpus,
    };
    (target.change)(&mut input, &mut source);
    input
}

/// Makes a failing input smaller as long as `fails` says that it still does; at most `limit`.
pub fn shrink(input: &[u8], limit: Duration, mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let start = Instant::now();
    let mut best = input.to_vec();
    let mut piece = best.len().next_power_of_two() / 2;
    while piece > 0 && start.elapsed() < limit {
        let mut at = 0;
        let before = best.len();
        while at < best.len() && start.elapsed() < limit {
            let end = (at + piece).min(best.len());
            let mut less = best.clone();
            less.drain(at..end);
            if fails(&less) {
                best = less;
                continue;
            }
            let mut zeros = best.clone();
            zeros[at..end].fill(0);
            if zeros != best && fails(&zeros) {
                best = zeros;
            }
            at = end;
        }
        if piece == 1 && best.len() == before {
            break;
        }
        piece = (piece / 2).max(usize::from(best.len() < before && piece == 1));
    }
    best
}

/// How long a run is.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed of the inputs that are made.
    pub seed: u64,
    /// This many of them at most.
    pub iterations: u64,
    /// For so long at most.
    pub time: Duration,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Inputs that were run.
    pub inputs: u64,
    /// The most that any of them took.
    pub most: Cost,
    /// A failing input and what was wrong: the run ends at the first.
    pub failure: Option<(Vec<u8>, String)>,
}

/// Runs the corpus, then what is made of it. `before` is called with each input.
pub fn run(
    target: &Target,
    corpus: &[(String, Vec<u8>)],
    plan: Plan,
    mut before: impl FnMut(&[u8]),
) -> Outcome {
    let start = Instant::now();
    let mut outcome = Outcome::default();
    let mut try_one = |input: &[u8], outcome: &mut Outcome| {
        before(input);
        outcome.inputs += 1;
        match run_one(target, input) {
            Ok(cost) => {
                outcome.most.time = outcome.most.time.max(cost.time);
                outcome.most.memory = outcome.most.memory.max(cost.memory);
                true
            }
            Err(why) => {
                outcome.failure = Some((input.to_vec(), why));
                false
            }
        }
    };
    for (name, input) in corpus {
        if !try_one(input, &mut outcome) {
            if let Some((_, why)) = &mut outcome.failure {
                *why = format!("corpus/{}/{name}: {why}", target.name);
            }
            return outcome;
        }
    }
    // What is long only to be long would take all the time.
    let short = corpus.iter().filter(|(_, bytes)| bytes.len() <= KEPT_MAX);
    let inputs: Vec<Vec<u8>> = short.map(|(_, bytes)| bytes.clone()).collect();
    let mut n = 0;
    while n < plan.iterations && start.elapsed() < plan.time {
        let input = make(target, &inputs, plan.seed, n);
        n += 1;
        if !try_one(&input, &mut outcome) {
            return outcome;
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_keeps_what_matters() {
        let mut input = vec![9u8; 300];
        input[120] = 42;
        input[250] = 43;
        let fails = |b: &[u8]| {
            let at = b.iter().position(|b| *b == 42);
            at.is_some_and(|at| b[at..].contains(&43))
        };
        let small = shrink(&input, Duration::from_secs(30), fails);
        assert_eq!(small, [42, 43]);
    }
}
