//! The targets under libFuzzer, which chooses inputs by the code they reach.
//!
//! Built by `cargo xtask fuzz TARGET --coverage` with the compiler's coverage instrumentation; the
//! target is named by `ESKER_FUZZ_TARGET`. Inputs are changed by the target's own mutator half of
//! the time.
#![no_main]

use esker_fuzz::Target;
use esker_fuzz::drive;
use esker_fuzz::memory::Counting;
use esker_fuzz::mutate::Source;
use esker_sim::Rng;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use std::sync::OnceLock;

#[global_allocator]
static MEMORY: Counting = Counting;

fn target() -> &'static Target {
    static TARGET: OnceLock<Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let name = std::env::var("ESKER_FUZZ_TARGET").unwrap_or_default();
        esker_fuzz::targets::find(&name).expect("ESKER_FUZZ_TARGET names a target")
    })
}

fuzz_target!(|data: &[u8]| {
    if let Err(why) = drive::run_one(target(), data) {
        panic!("{why}");
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 2 == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let mut input = data[..size].to_vec();
    let rng = Rng::new(u64::from(seed));
    (target().change)(&mut input, &mut Source { rng, others: &[] });
    let n = input.len().min(max_size);
    data[..n].copy_from_slice(&input[..n]);
    n
});
