//! The rule over trees from nothing to exabytes: bounds, thin levels, slow growth, few levels.

use super::*;
use crate::load::StallTriggers;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn policy(fanout: f64) -> Policy {
    Policy {
        write_buffer_size: 16 * MIB,
        target_file_size_base: 16 * MIB,
        max_bytes_for_level_base: 64 * MIB,
        max_bytes_for_level_multiplier: fanout,
        ..Policy::default()
    }
}

/// Triggers that slow writers down from this number of tables at level 0 on.
fn slowdown_at(tables: u32) -> StallTriggers {
    StallTriggers::new((tables.into(), 0), (0, 0))
}

/// The choice of a tree that has the number of levels it wants.
fn settled(policy: &Policy, data: u64, mut levels: usize, levels_max: usize) -> LevelSizes {
    for _ in 0..20 {
        let chosen = choose(policy, data, levels, levels_max);
        if chosen.levels.len() == levels {
            return chosen;
        }
        levels = chosen.levels.len();
    }
    panic!("no number of levels stays for {data}");
}

fn ratios(chosen: &LevelSizes) -> Vec<f64> {
    let pairs = chosen.levels.windows(2);
    pairs.map(|pair| pair[1] as f64 / pair[0] as f64).collect()
}

/// The bytes that RocksDB's rule would let the levels above the last hold, level 0 with half of its
/// trigger.
fn allowed(policy: &Policy, data: u64) -> f64 {
    let fanout = policy.max_bytes_for_level_multiplier;
    let trigger = u64::from(policy.level0_file_num_compaction_trigger) * policy.write_buffer_size;
    data as f64 / fanout * (1.0 + 1.0 / fanout)
        + policy.max_bytes_for_level_base as f64
        + trigger as f64 / 2.0
}

#[test]
fn sizes_of_a_growing_tree() {
    let told = |gib: u64| {
        let chosen = settled(&policy(8.0), gib * GIB, 1, 6);
        let mib: Vec<_> = chosen.levels.iter().map(|b| b / MIB).collect();
        (chosen.level0_files, mib)
    };
    assert_eq!(told(1), (4, vec![32, 128, 1024]));
    let (files, four) = told(4);
    assert_eq!((files, four.len()), (14, 3));
    let (_, fifty) = told(50);
    assert_eq!(fifty.len(), 4);
    assert!(fifty[0] > 64 && fifty[0] <= 14 * 16, "{fifty:?}");
}

#[test]
fn a_small_tree_is_one_level() {
    for data in [0, 1, MIB, 100 * MIB] {
        let chosen = settled(&policy(8.0), data, 1, 6);
        assert_eq!(chosen.levels.as_slice(), [data.max(1)]);
        assert_eq!(chosen.level0_files, 4, "a small tree has no room for more");
        assert_eq!(chosen.level0_bytes, 64 * MIB);
    }
}

#[test]
fn few_levels_are_kept_to() {
    let one = choose(&policy(8.0), 500 * GIB, 1, 1);
    assert_eq!(one.levels.as_slice(), [500 * GIB]);
    let two = choose(&policy(8.0), 500 * GIB, 1, 2);
    assert_eq!(two.levels.len(), 2);
    assert!(two.levels[0] <= 14 * 16 * MIB, "{two:?}");
}

#[test]
fn level0_stays_below_what_slows_writers_down() {
    let narrow = Policy {
        stall_triggers: slowdown_at(10),
        ..policy(8.0)
    };
    assert_eq!(choose(&narrow, 100 * GIB, 4, 6).level0_files, 7);
    let none = Policy {
        stall_triggers: slowdown_at(4),
        ..policy(8.0)
    };
    assert_eq!(choose(&none, 100 * GIB, 4, 6).level0_files, 4);
    // One memtable is more than the base: three more would be a level of their own.
    let large = Policy {
        write_buffer_size: GIB,
        ..policy(8.0)
    };
    let chosen = choose(&large, 1000 * GIB, 4, 6);
    assert!(chosen.level0_bytes <= 4 * GIB, "{chosen:?}");
}

#[test]
fn a_batch_replaces_a_fifth_of_the_values_in_blob_files() {
    let mut policy = policy(8.0);
    assert_eq!(batch_over_blobs(&policy, 0), 0);
    assert_eq!(batch_over_blobs(&policy, 800 * MIB), 10);
    let most = choose(&policy, 100 * GIB, 4, 6).level0_files;
    assert_eq!(batch_over_blobs(&policy, 100 * GIB), most);
    policy.max_space_amplification_percent = 130;
    assert_eq!(batch_over_blobs(&policy, 100 * GIB), 0, "space is bounded");
}

#[test]
fn hysteresis_keeps_what_is_there() {
    let policy = policy(8.0);
    // Where another number of levels begins to pay, going up and coming down.
    let edge = |from: usize, to: usize, step: f64, start: f64| {
        let mut data = start;
        while choose(&policy, data as u64, from, 6).levels.len() != to {
            data *= step;
            assert!((1e6..1e15).contains(&data), "never from {from} to {to}");
        }
        data
    };
    for levels in 1..4 {
        let up = edge(levels, levels + 1, 1.01, 50e6);
        let down = edge(levels + 1, levels, 0.99, up);
        assert!(down < up * 0.9, "{levels}: up at {up:e}, down at {down:e}");
    }
}

#[test]
fn slow_growth_adds_one_level_after_the_other() {
    for fanout in [4.0, 8.0, 10.0, 16.0] {
        let policy = policy(fanout);
        let (mut data, mut levels, mut changes) = (MIB as f64, 1, 0);
        while data < 1e14 {
            let now = choose(&policy, data as u64, levels, 8).levels.len();
            assert!(
                now == levels || now == levels + 1,
                "{fanout} {data:e}: {levels} to {now}"
            );
            changes += usize::from(now != levels);
            levels = now;
            data *= 1.003;
        }
        assert!((3..8).contains(&changes), "{fanout}: {changes}");
    }
}

proptest! {
    #[test]
    fn no_level_is_thin_and_none_takes_more_than_its_share(
        mib in 1u64..1 << 30,
        fanout in 2u32..30,
        base in 1u64..2000,
        memtable in 1u64..500,
        trigger in 1u32..30,
        levels_max in 1usize..10,
        start in 1usize..10,
    ) {
        let data = mib * MIB;
        let policy = Policy {
            write_buffer_size: memtable * MIB,
            max_bytes_for_level_base: base * MIB,
            level0_file_num_compaction_trigger: trigger,
            stall_triggers: slowdown_at(trigger.max(20)),
            ..policy(f64::from(fanout))
        };
        let chosen = settled(&policy, data, start.min(levels_max), levels_max);
        prop_assert_eq!(chosen.levels.last(), Some(&data));
        prop_assert!(chosen.levels.len() <= levels_max);
        prop_assert!(chosen.level0_files >= trigger);
        let ratios = ratios(&chosen);
        let least = RATIO_MIN.min(f64::from(fanout)) * 0.999;
        prop_assert!(ratios.iter().all(|r| *r >= least), "{:?}", ratios);
        if let Some(last) = ratios.last() {
            prop_assert!(*last >= f64::from(fanout) * 0.999);
        }
        let upper: u64 = chosen.levels.iter().rev().skip(1).sum();
        prop_assert!(upper as f64 <= allowed(&policy, data) * 1.001);
    }

    #[test]
    fn more_data_asks_for_no_fewer_levels(mib in 1u64..1 << 28, more in 1.0f64..4.0, levels in 1usize..7) {
        let fewer = choose(&policy(10.0), mib * MIB, levels, 6);
        let data = (mib as f64 * more) as u64 * MIB;
        let many = choose(&policy(10.0), data, levels, 6);
        prop_assert!(many.levels.len() >= fewer.levels.len());
        prop_assert!(many.level0_files >= fewer.level0_files);
    }

    #[test]
    fn nothing_overflows(data: u64, fanout: f64, base: u64, memtable: u64, trigger: u32, slow: u32) {
        let policy = Policy {
            write_buffer_size: memtable,
            max_bytes_for_level_base: base,
            max_bytes_for_level_multiplier: fanout,
            level0_file_num_compaction_trigger: trigger,
            stall_triggers: slowdown_at(slow),
            ..Policy::default()
        };
        let chosen = choose(&policy, data, 3, 6);
        prop_assert!(!chosen.levels.is_empty() && chosen.levels.iter().all(|b| *b > 0));
        prop_assert!(chosen.levels.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
