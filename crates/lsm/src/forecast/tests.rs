//! The union of tables, loads in order and at random, a machine that is too slow.

use super::*;
use crate::pick::CompactionStyle;

const MIB: u64 = 1 << 20;

fn policy() -> Policy {
    Policy {
        write_buffer_size: MIB,
        target_file_size_base: MIB,
        max_bytes_for_level_base: 4 * MIB,
        max_bytes_for_level_multiplier: 8.0,
        ..Policy::default()
    }
}

fn load(order: WriteOrder) -> Workload {
    Workload {
        keys: 1_000_000,
        entry_bytes: 128,
        flush_bytes: MIB,
        order,
        service: f64::INFINITY,
        jobs: 2,
        level0_stop: 36,
        rests: false,
    }
}

fn entries(forecast: &Forecast) -> f64 {
    let files = forecast.version().files();
    files.map(|(_, f)| piece_of(f).entries).sum()
}

#[test]
fn what_two_tables_hold_together() {
    let piece = |lo, hi, entries| KeySpan { lo, hi, entries };
    // Half of 0..100, and half of 50..150: three quarters of what both cover.
    let both = union(&[piece(0, 100, 50.0), piece(50, 150, 50.0)], &[70]);
    let told: Vec<_> = both.iter().map(|p| (p.lo, p.hi, p.entries)).collect();
    let wanted = [
        (0, 50, 25.0),
        (50, 70, 15.0),
        (70, 100, 22.5),
        (100, 150, 25.0),
    ];
    assert_eq!(told, wanted);
}

#[test]
fn keys_in_order_are_written_once() -> Result<()> {
    let mut forecast = Forecast::new(policy(), 7, load(WriteOrder::InOrder));
    forecast.write(1_000_000)?;
    assert!(forecast.write_amplification() < 1.01, "{forecast:?}");
    assert!((forecast.space_amplification() - 1.0).abs() < 0.02);
    Ok(())
}

#[test]
fn a_sorted_tree_of_random_writes_holds_what_was_written() -> Result<()> {
    for dynamic in [true, false] {
        let policy = Policy {
            level_compaction_dynamic_level_bytes: dynamic,
            ..policy()
        };
        let mut forecast = Forecast::new(policy, 7, load(WriteOrder::AtRandom));
        forecast.write(2_000_000)?;
        // 1 - 1 / e^2 of the keys; some of them once more in a level above.
        let distinct = 1_000_000.0 * (1.0 - (-2.0f64).exp());
        let held = entries(&forecast);
        assert!(held > distinct * 0.98 && held < distinct * 1.3, "{held}");
        let writes = forecast.write_amplification();
        assert!(writes > 4.0 && writes < 10.0, "{writes}");
    }
    Ok(())
}

#[test]
fn a_slow_machine_holds_writers_back() -> Result<()> {
    let slow = Workload {
        service: 0.5,
        level0_stop: 10,
        ..load(WriteOrder::AtRandom)
    };
    let mut forecast = Forecast::new(policy(), 7, slow);
    forecast.write(1_000_000)?;
    assert!(
        forecast.level0_max >= 10 && forecast.blocked() > 0.0,
        "{forecast:?}"
    );
    let mut idle = Forecast::new(policy(), 7, load(WriteOrder::AtRandom));
    idle.write(1_000_000)?;
    assert!(idle.level0_max < 8 && idle.blocked() == 0.0, "{idle:?}");
    // A longer wait merges more at once.
    let (slow, quick) = (forecast.write_amplification(), idle.write_amplification());
    assert!(slow < quick, "{slow} {quick}");
    Ok(())
}

/// Where compactions cannot keep up, runs above the base and merges through several levels write a
/// quarter less, and leave no more behind.
#[test]
fn an_overloaded_tree_by_cost_writes_less() -> Result<()> {
    let after = |by_cost: bool| -> Result<(f64, f64)> {
        let policy = Policy {
            level_shape_by_cost: by_cost,
            ..policy()
        };
        let slow = Workload {
            keys: 4_000_000,
            service: 4.0,
            level0_stop: 26,
            ..load(WriteOrder::AtRandom)
        };
        let mut forecast = Forecast::new(policy, 7, slow);
        forecast.fill()?;
        forecast.write(4_000_000)?;
        forecast.measure();
        forecast.write(12_000_000)?;
        let space = forecast.mean_space_amplification();
        Ok((forecast.write_amplification(), space))
    };
    let (by_cost, fixed) = (after(true)?, after(false)?);
    assert!(by_cost.0 < 0.8 * fixed.0, "{by_cost:?} {fixed:?}");
    assert!(by_cost.1 < fixed.1, "{by_cost:?} {fixed:?}");
    Ok(())
}

#[test]
fn a_universal_tree_keeps_to_its_space() -> Result<()> {
    let universal = Policy {
        compaction_style: CompactionStyle::Universal,
        ..policy()
    };
    let mut forecast = Forecast::new(universal, 7, load(WriteOrder::AtRandom));
    forecast.write(2_000_000)?;
    // Twice the live data on top of it, and what comes in meanwhile.
    assert!(forecast.space_amplification() < 3.1, "{forecast:?}");
    assert!(forecast.level0_max <= 6, "{forecast:?}");
    forecast.settle()?;
    assert!(entries(&forecast) > 860_000.0);
    Ok(())
}
