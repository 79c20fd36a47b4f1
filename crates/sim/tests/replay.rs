//! In a controlled world a seed decides everything that happens.

use esker_sim::run::workload;
use esker_sim::sim_env::SimEnv;

#[test]
fn a_seed_gives_the_same_history_every_time() {
    let world = SimEnv::controlled();
    let mut operations = 0;
    for seed in 1..=6 {
        let once = workload(&world, seed, 60).expect("the workload runs");
        let again = workload(&world, seed, 60).expect("the workload runs");
        operations += once.log.ops.len();
        for (at, (a, b)) in once.log.ops.iter().zip(&again.log.ops).enumerate() {
            assert_eq!(
                format!("{a:?}"),
                format!("{b:?}"),
                "seed {seed}, operation {at}"
            );
        }
        assert_eq!(once.log.ops.len(), again.log.ops.len(), "seed {seed}");
    }
    println!("6 histories of {operations} operations, each made twice: the same");
}
