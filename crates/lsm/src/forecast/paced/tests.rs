//! Trees that are overloaded, and trees that are not.

use super::*;
use crate::pick::CompactionStyle;

const MB: f64 = 1e6;
const MIB: u64 = 1 << 20;

fn policy(style: CompactionStyle, memtable: u64) -> Policy {
    Policy {
        compaction_style: style,
        write_buffer_size: memtable,
        target_file_size_base: memtable,
        max_bytes_for_level_base: 4 * memtable,
        ..Policy::default()
    }
}

fn mean(of: impl Iterator<Item = f64> + Clone) -> f64 {
    of.clone().sum::<f64>() / of.count().max(1) as f64
}

/// The shapes of overloaded trees: name, style, keys, bytes of a memtable, compactions at once and
/// their speed, and the least rate and the most variation of it that there should be.
type Shape = (
    &'static str,
    CompactionStyle,
    u64,
    u64,
    usize,
    f64,
    f64,
    f64,
);

const SHAPES: &[Shape] = &[
    (
        "4 GB",
        CompactionStyle::Level,
        10_000_000,
        64,
        1,
        200.0,
        55.0,
        0.2,
    ),
    (
        "4 GB, two",
        CompactionStyle::Level,
        10_000_000,
        64,
        2,
        100.0,
        45.0,
        0.3,
    ),
    (
        "4 GB, small",
        CompactionStyle::Level,
        10_000_000,
        16,
        2,
        150.0,
        58.0,
        0.3,
    ),
    (
        "4 GB, slow",
        CompactionStyle::Level,
        10_000_000,
        16,
        1,
        80.0,
        18.0,
        0.5,
    ),
    (
        "0.4 GB",
        CompactionStyle::Level,
        1_000_000,
        64,
        2,
        150.0,
        120.0,
        0.1,
    ),
    (
        "universal",
        CompactionStyle::Universal,
        10_000_000,
        16,
        2,
        150.0,
        48.0,
        0.6,
    ),
];

#[test]
fn writers_of_overloaded_trees_never_stand_still() -> Result<()> {
    for &(name, style, keys, memtable, jobs, speed, least, most_varied) in SHAPES {
        let machine = Machine {
            offered: 400.0 * MB,
            compaction: speed * MB,
            flush: 250.0 * MB,
            jobs,
        };
        let mut store = PacedForecast::new(policy(style, memtable * MIB), keys, machine)?;
        let seconds = store.run(400)?;
        let settled = seconds[130..].iter();
        let rate = mean(settled.clone().map(|s| s.written / MB));
        let square = mean(settled.clone().map(|s| (s.written / MB - rate).powi(2)));
        let varied = square.sqrt() / rate;
        let stopped = seconds.iter().map(|s| s.stopped).sum::<f64>();
        let told = format!(
            "{name}: {rate:.1} MB/s, varied {varied:.3}, stopped {stopped:.2} s, runs {:.1}, \
             write amplification {:.2}, space {:.2}",
            store.tree().mean_runs(),
            store.tree().write_amplification(),
            store.tree().mean_space_amplification()
        );
        println!("{told}");
        assert!(stopped < 0.05, "{told}");
        assert!(rate > least && varied < most_varied, "{told}");
    }
    Ok(())
}

#[test]
fn writers_that_compactions_keep_up_with_go_freely() -> Result<()> {
    for (memtable, offered) in [(16, 30.0), (64, 60.0)] {
        let machine = Machine {
            offered: offered * MB,
            compaction: 150.0 * MB,
            flush: 250.0 * MB,
            jobs: 2,
        };
        let policy = policy(CompactionStyle::Level, memtable * MIB);
        let mut store = PacedForecast::new(policy, 10_000_000, machine)?;
        let seconds = store.run(400)?;
        let paced: f64 = seconds.iter().map(|s| s.paced).sum();
        assert!(paced < 4.0, "paced for {paced} s of 400");
    }
    Ok(())
}

/// A bound in percent, and the trees that it holds for: MB of keys and of a memtable.
const BOUNDED: &[(u32, u64, u64)] = &[
    (130, 400, 8),
    (130, 1_600, 8),
    (150, 1_600, 16),
    (130, 6_400, 64),
    (115, 6_400, 16),
];

#[test]
fn overloaded_trees_keep_within_the_bound_on_their_space() -> Result<()> {
    for style in [CompactionStyle::Level, CompactionStyle::Universal] {
        for &(percent, mb, memtable) in BOUNDED {
            for speed in [40.0, 600.0] {
                bounded_forecast(style, (percent, mb, memtable), speed)?;
            }
        }
    }
    Ok(())
}

fn bounded_forecast(
    style: CompactionStyle,
    (percent, mb, memtable): (u32, u64, u64),
    speed: f64,
) -> Result<()> {
    let machine = Machine {
        offered: 400.0 * MB,
        compaction: speed * MB,
        flush: 250.0 * MB,
        jobs: 3,
    };
    let policy = Policy {
        max_space_amplification_percent: percent,
        ..policy(style, memtable * MIB)
    };
    let mut store = PacedForecast::new(policy, mb * MIB / ENTRY_BYTES, machine)?;
    let alive = store.tree().version.bytes() as f64;
    let seconds = store.run(200)?;
    let most = seconds.iter().map(|s| s.taken).fold(0.0, f64::max) * 100.0 / alive;
    let stopped = seconds.iter().map(|s| s.stopped).sum::<f64>();
    let told = format!(
        "{style:?}, {mb} MB in memtables of {memtable}, {speed} MB/s, {percent} %: \
         at most {most:.1} %, {:.1} MB/s, stopped {stopped:.1} s, write amplification {:.2}",
        mean(seconds.iter().map(|s| s.written / MB)),
        store.tree().write_amplification(),
    );
    println!("{told}");
    assert!(most <= f64::from(percent) && stopped < 40.0, "{told}");
    Ok(())
}
