//! The models, on a machine with round numbers, and the measured constants of the real one.

use super::*;
use crate::flags::Flags;

fn machine() -> Machine {
    Machine {
        processors: 2,
        miss: 100e-9,
        overlapping_miss: 20e-9,
        copy: 10e9,
        crc32c: 10e9,
        xxh3: 20e9,
        compress: 1e9,
        decompress: 4e9,
        file_write: 2e9,
        file_read: 4e9,
        device_write: 2e9,
        device_read: 1e9,
    }
}

fn close(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 1e-9,
        "{found} is not {expected}"
    );
}

#[test]
fn a_write_needs_its_client_its_jobs_and_the_device() {
    let done = RowFigures {
        operations: 1_000,
        threads: 1,
        entry_bytes: 400.0,
        stored_bytes: 200.0,
        // Each entry is flushed, and rewritten three times.
        tables_read: 600_000.0,
        tables_written: 800_000.0,
        device_read: 100_000.0,
        is_logged: true,
        ..RowFigures::default()
    };
    let limit = limit(&machine(), Task::FillRandom, &done).expect("a model");
    close(limit.need.client, 200e-9 + 40e-9 + 40e-9 + 100e-9);
    let taken = 3.0 * (20e-9 + 100e-9 + 10e-9);
    let given = 4.0 * (40e-9 + 400e-9 + 10e-9);
    close(limit.need.jobs, taken + given + 600.0 / 4e9 + 800.0 / 2e9);
    close(limit.need.device_write, 800.0 / 2e9);
    close(limit.need.device_read, 100.0 / 1e9);
    assert_eq!(limit.by, "processors");
    close(
        limit.ops_per_second,
        2.0 / (limit.need.client + limit.need.jobs),
    );
    let synced = RowFigures {
        is_synced: true,
        ..done
    };
    let synced = super::limit(&machine(), Task::FillRandom, &synced).expect("a model");
    close(synced.need.device_write, 1_200.0 / 2e9);
    let line = limit.line(limit.ops_per_second / 2.0);
    assert!(
        line.contains("by processors, of which 0.50 were reached"),
        "{line}"
    );
}

#[test]
fn what_is_left_out_costs_nothing() {
    let done = RowFigures {
        operations: 1_000,
        threads: 1,
        entry_bytes: 400.0,
        stored_bytes: 400.0,
        tables_written: 400_000.0,
        is_direct: true,
        ..RowFigures::default()
    };
    let plain = Machine {
        compress: f64::INFINITY,
        ..machine()
    };
    let limit = limit(&plain, Task::FillSeq, &done).expect("a model");
    close(limit.need.client, 40e-9 + 100e-9);
    close(limit.need.jobs, 40e-9 + 20e-9);
    close(limit.need.device_write, 400.0 / 2e9);
    assert_eq!(limit.by, "writes of the device");
}

#[test]
fn reads_from_memory_have_a_limit_and_others_none() {
    let done = RowFigures {
        operations: 1_000,
        threads: 4,
        entry_bytes: 400.0,
        runs: 3,
        nexts: 10,
        ..RowFigures::default()
    };
    let per_second =
        |task, done: &RowFigures| limit(&machine(), task, done).map(|l| l.ops_per_second);
    close(
        per_second(Task::Read, &done).expect("a model"),
        2.0 / 740e-9,
    );
    let seek = 500e-9 + 3.0 * 70e-9 + 10.0 * 40e-9;
    close(per_second(Task::Seek, &done).expect("a model"), 2.0 / seek);
    close(
        per_second(Task::ReadReverse, &done).expect("a model"),
        2.0 / 40e-9,
    );
    let cold = RowFigures {
        device_read: 8_192_000.0,
        ..done
    };
    assert_eq!(per_second(Task::Read, &cold), None);
    assert_eq!(per_second(Task::ReadWrite, &done), None);
}

#[test]
fn a_machine_has_constants_of_a_machine() {
    let dir = tempfile::tempdir().expect("a directory");
    let flags = Flags::parse(&["--compression_type=lz4"]).expect("flags");
    let m = Machine::measure(dir.path(), &flags).expect("constants");
    assert!(m.processors > 0);
    // From a nanosecond to a microsecond: this may be a debug build on a busy machine.
    assert!((1e-9..5e-6).contains(&m.miss), "{m:?}");
    assert!(m.overlapping_miss < m.miss, "{m:?}");
    let speeds = [
        m.copy,
        m.crc32c,
        m.xxh3,
        m.compress,
        m.decompress,
        m.file_write,
        m.file_read,
        m.device_write,
        m.device_read,
    ];
    assert!(speeds.iter().all(|s| (1e6..1e13).contains(s)), "{m:?}");
    assert_eq!(
        std::fs::read_dir(dir.path()).expect("it is there").count(),
        0
    );
    let plain = Flags::parse(&["--compression_type=none"]).expect("flags");
    let plain = Machine::codec(&plain).expect("constants");
    assert_eq!(plain, (f64::INFINITY, f64::INFINITY));
}
