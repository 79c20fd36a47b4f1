//! State of logs that take no more records.

use super::*;
use crate::store::continuity::ManifestEnd;

const DIR: &str = "/db";

/// A log state that takes appends in log 1, of files in memory.
fn state() -> LogState {
    state_with(&DbOptions::default())
}

fn state_with(options: &DbOptions) -> LogState {
    let env = Env::in_memory();
    env.fs.create_dir_all(Path::new(DIR)).expect("a directory");
    let settings = LogSettings::of(options, 1 << 20);
    let wal_link = Arc::new(WalManifestLink::new(ManifestEnd::default(), None));
    let obsolete_files = ObsoleteFiles::new(env.clone(), DIR.into(), None, 0, None);
    let mut state = LogState::new(
        env,
        Arc::new(obsolete_files),
        DIR.into(),
        settings,
        wal_link,
    );
    state.rotate(FileNo(1), Seq(1)).expect("the first log");
    state
}

/// Puts an empty batch with `seq` into the log, and begins log `next`.
fn append_and_rotate(state: &mut LogState, seq: Seq, next: FileNo) {
    state.append(&[&encode_header(seq, 0)]).expect("a record");
    state.rotate(next, seq.next()).expect("the next log");
}

fn numbers(logs: &[Arc<OldLog>]) -> Vec<u64> {
    logs.iter().map(|log| log.number.0).collect()
}

#[test]
fn no_table_goes_ahead_of_a_log_that_broke() {
    let mut state = state();
    append_and_rotate(&mut state, Seq(1), FileNo(2));
    append_and_rotate(&mut state, Seq(2), FileNo(3));
    state
        .append(&[&encode_header(Seq(3), 0)])
        .expect("a record");
    state.fail(&Error::corruption("lost its end"));
    state.rotate(FileNo(4), Seq(4)).expect("a new log");

    // Not in the log's own way any more, but in that of tables.
    state.sync_written().expect("the new log is whole");
    assert!(state.sync().is_err(), "something is in memtables alone");
    let unsure = state.unsure_before(FileNo(4));
    assert_eq!(numbers(&unsure), [1, 2, 3]);
    let sure: Vec<bool> = unsure.iter().map(|log| log.sync().is_ok()).collect();
    assert_eq!(sure, [true, true, false], "nothing tells what 3 holds");
    assert_eq!(numbers(&state.unsure_before(FileNo(3))), [1, 2]);

    // Until what they held is in tables.
    let open = Arc::downgrade(&unsure[2]);
    drop(unsure);
    let released = state.release_before(FileNo(4));
    assert_eq!(released.logs.len(), 3);
    assert!(open.upgrade().is_some(), "closed by who releases it, later");
    drop(released);
    assert!(open.upgrade().is_none());
    assert!(state.unsure_before(FileNo(9)).is_empty());
}

#[test]
fn a_sync_makes_old_logs_sure() {
    let mut state = state();
    append_and_rotate(&mut state, Seq(1), FileNo(2));
    append_and_rotate(&mut state, Seq(2), FileNo(3));
    assert_eq!(numbers(&state.unsure_before(FileNo(2))), [1]);
    state.sync().expect("all logs");
    assert!(state.unsure_before(FileNo(9)).is_empty());
}

#[test]
fn no_log_begins_in_the_file_of_one_that_broke() {
    for count in [0, 2] {
        let mut options = DbOptions::default();
        options.recycle_log_file_num = count;
        let mut state = state_with(&options);
        append_and_rotate(&mut state, Seq(1), FileNo(2));
        state
            .append(&[&encode_header(Seq(2), 0)])
            .expect("a record");
        state.fail(&Error::corruption("lost its end"));
        state.rotate(FileNo(3), Seq(3)).expect("a new log");
        append_and_rotate(&mut state, Seq(3), FileNo(4));
        let released = state.release_before(FileNo(4));
        let reusable: Vec<_> = released.logs.iter().map(|log| log.recyclable).collect();
        assert_eq!(reusable, [count > 0, false, count > 0]);
    }
}
