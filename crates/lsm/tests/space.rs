//! The bound on a tree's space: what counts as alive, when writers are held back, and which plans
//! make room.

#[path = "support/trees.rs"]
mod trees;

use esker_format::blob::BlobIndex;
use esker_format::blob_refs::BlobRefs;
use esker_format::{FileNo, Level};
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::file::BlobShares;
use esker_lsm::load::Zone;
use esker_lsm::pick::{CompactionStyle, PickContext, Policy};
use esker_lsm::plan::{Busy, CompactionReason, Plan};
use esker_lsm::score::targets;
use esker_lsm::space::{PendingSpace, SpaceUse};
use esker_lsm::version::{BlobFile, Version};
use trees::{NOW, dynamic, pick, tree};

/// Bytes of a record.
const RECORD: u64 = 1 << 20;

/// Values of a blob file that tables refer to, and that are garbage.
type Values = (u64, u64, u64);

/// A tree with blob files. Each table refers to so many values of them.
fn with_blobs(picture: &str, blobs: &[Values], tables: &[(u64, &[(u64, u64)])]) -> Version {
    let base = tree(picture);
    for (table, refers) in tables {
        let mut refs = BlobRefs::default();
        for (file, values) in *refers {
            let index = BlobIndex::blob(FileNo(*file), 70, RECORD - 33, 0);
            (0..*values).for_each(|_| refs.add(1, &index));
        }
        let (_, file) = base.find_file(FileNo(*table)).expect("in the picture");
        let set = file.blob_shares.set(BlobShares::from(&refs));
        assert!(set.is_ok() && refs.oldest() == file.oldest_blob_file);
    }
    let mut edit = TreeEdit::default();
    for (number, live, garbage) in blobs {
        edit.blobs.push(BlobFile {
            number: FileNo(*number),
            total_count: live + garbage,
            total_bytes: (live + garbage) * RECORD,
            ..BlobFile::default()
        });
        if *garbage > 0 {
            let found = (FileNo(*number), *garbage, garbage * RECORD);
            edit.garbage.push(found);
        }
    }
    apply(&base, &[edit]).expect("valid")
}

/// A bound of so many percent; memtables are small.
fn bounded(percent: u32) -> Policy {
    Policy {
        max_space_amplification_percent: percent,
        write_buffer_size: 64 << 10,
        ..dynamic()
    }
}

fn of(v: &Version, policy: &Policy) -> Option<SpaceUse> {
    SpaceUse::of(v, policy, targets(v, policy).base_level)
}

fn memtables(bytes: u64) -> PendingSpace {
    PendingSpace {
        memtables: bytes,
        ..PendingSpace::default()
    }
}

fn space(v: &Version, percent: u32) -> SpaceUse {
    of(v, &bounded(percent)).expect("bounded")
}

fn plan_of(v: &Version, policy: &Policy) -> Option<Plan> {
    pick(v, policy, &Busy::new(), NOW)
}

/// One table that refers to all blob files.
fn one_table(blobs: &[Values]) -> Version {
    let refers: Vec<_> = blobs.iter().map(|(file, live, _)| (*file, *live)).collect();
    with_blobs(
        &format!("L6: 1[a-z]b{}", blobs[0].0),
        blobs,
        &[(1, &refers)],
    )
}

#[test]
fn the_largest_run_is_alive_but_for_what_newer_ones_delete() {
    let v =
        tree("L0: 9[a-z]#8M@30..39 8[a-z]#7M@20..29\nL5: 3[a-z]#10M\nL6: 2[a-k]#50M 1[l-z]#50M");
    let s = space(&v, 130);
    assert_eq!(
        (s.live >> 20, s.taken >> 20, s.hidden >> 20),
        (100, 125, 25)
    );
    assert_eq!((s.garbage, s.bound >> 20), (0, 130));
    assert!(of(&v, &dynamic()).is_none(), "no bound");
    // A tenth of a thousand entries is deleted above.
    let v = tree("L5: 3[a-z]#1Md100/100\nL6: 1[a-z]#100Md0/1000");
    assert_eq!(space(&v, 130).live >> 20, 90);
    let v = tree("L5: 3[a-z]#1Mr60M\nL6: 1[a-z]#100M");
    assert_eq!(space(&v, 130).live >> 20, 40);
}

#[test]
fn values_weigh_where_tables_refer_to_them() {
    let v = with_blobs(
        "L5: 2[a-z]b11\nL6: 1[a-z]b10",
        &[(10, 50, 10), (11, 5, 0)],
        &[(1, &[(10, 50)]), (2, &[(11, 5)])],
    );
    let s = space(&v, 130);
    assert_eq!((s.live >> 20, s.taken >> 20), (51, 67));
    assert_eq!((s.garbage >> 20, s.hidden >> 20), (10, 6));
    // Nobody looked into the tables yet: values count as alive.
    let v = with_blobs(
        "L5: 2[a-z]b11\nL6: 1[a-z]b10",
        &[(10, 50, 10), (11, 5, 0)],
        &[],
    );
    assert_eq!(space(&v, 130).live >> 20, 56);
}

#[test]
fn writers_stop_before_the_last_quarter_which_jobs_have() {
    let s = SpaceUse {
        live: 100,
        taken: 100,
        garbage: 0,
        hidden: 0,
        upper_runs: 0,
        bound: 140,
    };
    let zone = |taken: u64, beside, running| {
        Zone::of(SpaceUse { taken, ..s }.load(memtables(beside), running))
    };
    assert_eq!(zone(100, 0, 0), Zone::Calm);
    assert_eq!(zone(117, 0, 0), Zone::Near);
    assert_eq!(zone(110, 13, 0), Zone::Slow, "memtables count");
    assert_eq!(zone(130, 0, 0), Zone::Stop);
    assert_eq!(zone(100, 0, 10), Zone::Calm, "the quarter of jobs");
    assert_eq!(zone(110, 0, 30), Zone::Stop, "more than that");
    let room = |running| s.room(memtables(10), running);
    assert_eq!((room(0), room(25), room(50)), (30, 5, 0));
}

#[test]
fn writers_leave_room_for_the_merge_of_what_they_bring() {
    let v = tree("L0: 9[a-z]#4M@30..39 8[a-z]#4M@20..29\nL5: 3[a-z]#8M\nL6: 1[a-z]#100M");
    let s = space(&v, 140);
    assert_eq!(s.upper_runs >> 20, 16, "level 0 and the base");
    // 16 of 40 are taken, and 16 are for their merge.
    assert_eq!(Zone::of(s.load(memtables(0), 0)), Zone::Near);
    assert_eq!(
        Zone::of(s.load(memtables(2 << 20), 0)),
        Zone::Slow,
        "memtables count for both"
    );
    assert_eq!(Zone::of(s.load(memtables(4 << 20), 0)), Zone::Stop);
    assert!(
        s.room(memtables(4 << 20), 0) >= s.upper_runs + (4 << 20),
        "the merge finds room"
    );
    let universal = Policy {
        compaction_style: CompactionStyle::Universal,
        ..bounded(140)
    };
    let v = tree("L0: 9[a-z]#4M@30..39\nL4: 4[a-z]#5M\nL5: 3[a-z]#8M\nL6: 1[a-z]#100M");
    let s = of(&v, &universal).expect("bounded");
    assert_eq!(s.upper_runs >> 20, 17, "all runs but the oldest");
    let v = tree("L0: 9[a-z]#4M@30..39 8[a-z]#3M@20..29 7[a-z]#90M@10..19");
    let s = of(&v, &universal).expect("bounded");
    assert_eq!(s.upper_runs >> 20, 7, "at level 0, too");
}

#[test]
fn obsolete_files_take_space_and_no_merge_takes_them() {
    let v = tree("L0: 9[a-z]#4M@30..39 8[a-z]#4M@20..29\nL5: 3[a-z]#8M\nL6: 1[a-z]#100M");
    let s = space(&v, 140);
    let obsolete = PendingSpace {
        obsolete: 4 << 20,
        ..PendingSpace::default()
    };
    assert_eq!(s.room(obsolete, 0), s.room(memtables(4 << 20), 0));
    assert!(s.load(obsolete, 0) < s.load(memtables(4 << 20), 0));
    assert!(s.load(obsolete, 0) > s.load(memtables(0), 0));
}

#[test]
fn the_base_that_level_0_goes_down_to_counts() {
    // Level 0 goes to level 4, which is empty yet.
    let v = tree("L0: 9[a-z]#4M@30..39\nL5: 3[a-z]#8M\nL6: 1[a-z]#100M");
    let upper = |base| SpaceUse::of(&v, &bounded(140), Level(base)).map(|s| s.upper_runs >> 20);
    assert_eq!((upper(4), upper(5)), (Some(4), Some(12)));
}

#[test]
fn the_files_with_most_garbage_are_collected_whatever_their_age() {
    // The oldest file is cold: all of it is alive.
    let blobs = [
        (10, 40, 0),
        (11, 20, 1),
        (12, 5, 9),
        (13, 6, 8),
        (14, 10, 0),
    ];
    let v = one_table(&blobs);
    let mut policy = bounded(130);
    policy.forced_blob_gc = None;
    let plan = plan_of(&v, &policy).expect("room is short");
    assert_eq!(plan.reason, CompactionReason::ForcedBlobGarbageCollection);
    assert_eq!(
        (plan.start_level(), plan.output_level),
        (Level(6), Level(6))
    );
    assert_eq!(plan.collected[..], [FileNo(12)], "as far as there is room");
    assert_eq!(plan.moved_bytes, 5 * RECORD);
    assert!(plan.room_needed() <= space(&v, 130).room(memtables(0), 0));
    let wide = plan_of(&v, &bounded(150));
    assert!(wide.is_none(), "the bound needs nothing");
}

#[test]
fn nothing_is_collected_where_nothing_is_garbage() {
    let v = one_table(&[(10, 40, 0), (11, 60, 0)]);
    assert!(plan_of(&v, &bounded(110)).is_none());
    // New keys may hide old ones: keys alone are merged, and no value moves.
    let v = with_blobs(
        "L5: 2[a-m]b12 3[n-z]b12\nL6: 1[a-z]b10",
        &[(10, 60, 0), (12, 16, 0)],
        &[(1, &[(10, 60)]), (2, &[(12, 8)]), (3, &[(12, 8)])],
    );
    let plan = plan_of(&v, &bounded(130)).expect("room is short");
    assert_eq!((plan.output_level, plan.moved_bytes), (Level(6), 0));
    assert!(plan.collected.is_empty());
}

/// A job may end in files as small as its inputs: merging them would never end.
#[test]
fn small_files_without_garbage_are_left_alone() {
    let blobs: Vec<Values> = (10..30).map(|n| (n, 1, 0)).chain([(40, 300, 0)]).collect();
    let policy = Policy {
        write_buffer_size: 32 << 20,
        ..bounded(200)
    };
    assert!(plan_of(&one_table(&blobs), &policy).is_none());
}

#[test]
fn a_plan_waits_for_room_while_another_runs() {
    let v = one_table(&[(10, 40, 0), (12, 5, 9), (13, 6, 8), (14, 10, 0)]);
    let policy = bounded(130);
    let plan = plan_of(&v, &policy).expect("room is short");
    let full = PickContext {
        beside: memtables(space(&v, 130).room(memtables(0), 0)),
        ..NOW
    };
    // Memtables have taken the room: with nothing running the plan that needs least begins.
    assert!(pick(&v, &policy, &Busy::new(), full).is_some());
    // Obsolete files have taken it, and go in a moment.
    let taken = full.beside.total();
    let leaving = |leaving| PickContext {
        beside: PendingSpace {
            memtables: 0,
            obsolete: taken,
            leaving,
        },
        ..NOW
    };
    assert!(pick(&v, &policy, &Busy::new(), leaving(taken)).is_none());
    assert!(pick(&v, &policy, &Busy::new(), leaving(0)).is_some());
    let mut busy = Busy::new();
    let elsewhere = tree("L6: 77[a-z]");
    let other = Plan {
        inputs: plan
            .inputs
            .iter()
            .map(|_| esker_lsm::plan::LevelInputs {
                level: Level(6),
                files: elsewhere.level(Level(6)).files().to_vec(),
            })
            .collect(),
        output_level: Level(5),
        ..Plan::default()
    };
    let _held = busy.register(v.order(), &other);
    assert!(pick(&v, &policy, &busy, full).is_none());
}

#[test]
fn universal_runs_merge_when_they_hide_too_much() {
    let policy = Policy {
        compaction_style: CompactionStyle::Universal,
        ..bounded(400)
    };
    let v = tree("L0: 9[a-z]#30M@30..39e9\nL6: 1[a-z]#20M");
    let plan = plan_of(&v, &policy);
    assert!(plan.is_none(), "room for three times as much: {plan:?}");
    let v = tree("L0: 9[a-z]#15M@30..39e9 8[a-z]#14M@20..29e8\nL6: 1[a-z]#20M");
    let plan = plan_of(&v, &policy).expect("runs hide more than is alive");
    assert_eq!(plan.reason, CompactionReason::UniversalSizeAmplification);
}
