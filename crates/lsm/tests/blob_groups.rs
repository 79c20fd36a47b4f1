//! Sorted groups of blob files: which values a merge moves, what a merge needs for that, and what
//! scans pay for.

#[path = "support/trees.rs"]
mod trees;

use esker_format::blob::BlobIndex;
use esker_format::blob_groups::{BlobGroup, BlobGroups, BlobTier};
use esker_format::blob_refs::BlobRefs;
use esker_format::{FileNo, Level};
use esker_lsm::blob_groups::{GROUPS_MOST, extra_groups, has_unknown, sums, with_tiers};
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::file::BlobShares;
use esker_lsm::pick::{PickContext, Policy};
use esker_lsm::plan::{Busy, CompactionReason, Plan};
use esker_lsm::read_demand::{ReadDemand, SampledReads, extra_ns};
use esker_lsm::shape::blob_summary;
use esker_lsm::version::{BlobFile, Version};
use trees::{NOW, dynamic, fixed, pick, tree};

/// Bytes of a record.
const RECORD: u64 = 1 << 10;

/// A tree with blob files, each with the level of its group, which is its own. Tables refer to ten
/// values of each of theirs.
fn grouped(picture: &str, blobs: &[(u64, Option<u8>)], tables: &[(u64, &[u64])]) -> Version {
    let base = tree(picture);
    let mut edit = TreeEdit::default();
    for (number, level) in blobs {
        let number = FileNo(*number);
        let group = |level| BlobGroup {
            number,
            level: Level(level),
        };
        let values = tables
            .iter()
            .filter(|(_, refers)| refers.contains(&number.0));
        let values = 10 * values.count() as u64;
        edit.blobs.push(BlobFile {
            number,
            total_count: values,
            total_bytes: values * RECORD,
            tier: level.map_or(BlobTier::Large, |l| BlobTier::Medium(group(l))),
            ..BlobFile::default()
        });
    }
    for (table, refers) in tables {
        let mut refs = BlobRefs::default();
        for file in *refers {
            let index = BlobIndex::blob(FileNo(*file), 70, RECORD - 33, 0);
            (0..10).for_each(|_| refs.add(1, &index));
        }
        let (_, file) = base.find_file(FileNo(*table)).expect("in the picture");
        let set = file.blob_shares.set(BlobShares::from(&refs));
        assert!(set.is_ok() && refs.oldest() == file.oldest_blob_file);
    }
    apply(&base, &[edit]).expect("valid")
}

fn with_groups(policy: Policy) -> Policy {
    Policy {
        blob_groups_from: Some(Level(0)),
        ..policy
    }
}

fn regrouped(v: &Version, policy: &Policy) -> (Level, Vec<u64>, u64) {
    let plan = pick(v, policy, &Busy::new(), NOW).expect("a plan");
    let files = plan.regrouped.files.iter().map(|f| f.0).collect();
    (plan.output_level, files, plan.regrouped.bytes)
}

/// Level 1 is too large and goes down; what is deeper is far away.
fn of_level_1(deepest: u8) -> Version {
    let picture = format!("L1: 1[a-m]#20Mb10\nL2: 2[a-z]b11\nL{deepest}: 3[a-z]#80Mb12");
    let blobs = [
        (10, Some(1)),
        (11, Some(2)),
        (12, Some(deepest)),
        (13, None),
    ];
    grouped(&picture, &blobs, &[(1, &[10, 13]), (2, &[11]), (3, &[12])])
}

#[test]
fn values_leave_their_groups_on_the_way_into_the_last_two_levels() {
    let policy = with_groups(fixed());
    assert_eq!(
        regrouped(&of_level_1(4), &policy),
        (Level(2), vec![], 0),
        "the third level from the end"
    );
    let into_second = regrouped(&of_level_1(3), &policy);
    assert_eq!(into_second, (Level(2), vec![10], 10 * RECORD));
    assert_eq!(regrouped(&of_level_1(3), &fixed()).1, [0; 0], "off");
    let later = Policy {
        blob_groups_from: Some(Level(3)),
        ..fixed()
    };
    assert_eq!(regrouped(&of_level_1(3), &later).1, [0; 0]);
    let plan = pick(&of_level_1(3), &policy, &Busy::new(), NOW).expect("a plan");
    let usual = pick(&of_level_1(3), &fixed(), &Busy::new(), NOW).expect("a plan");
    assert_eq!(plan.room_needed(), usual.room_needed() + 10 * RECORD);
}

#[test]
fn values_stay_where_a_bound_has_no_room_for_them() {
    let bounded = |max_space_amplification_percent| {
        let policy = Policy {
            max_space_amplification_percent,
            write_buffer_size: 64 << 10,
            ..with_groups(fixed())
        };
        regrouped(&of_level_1(3), &policy).1
    };
    assert_eq!(bounded(1_000), [10]);
    assert_eq!(
        bounded(110),
        [0; 0],
        "the merge runs, and passes its values on"
    );
}

#[test]
fn a_table_that_does_not_say_it_may_refer_to_any_group() {
    let v = of_level_1(3);
    let silent = tree("L1: 1[a-m]#20Mb10\nL2: 2[a-z]b11\nL3: 3[a-z]#80Mb12");
    let edit = TreeEdit {
        blobs: TreeEdit::snapshot(&v).blobs,
        ..TreeEdit::default()
    };
    let v = apply(&silent, &[edit]).expect("valid");
    let (_, files, _) = regrouped(&v, &with_groups(fixed()));
    assert_eq!(files, [10]);
}

/// A last level of one table whose values are in so many groups.
fn overlapping(groups: u64) -> Version {
    let refers: Vec<u64> = (10..10 + groups).collect();
    let blobs: Vec<_> = refers.iter().map(|n| (*n, Some(6))).collect();
    grouped("L6: 1[a-z]#4Mb10", &blobs, &[(1, &refers)])
}

#[test]
fn what_overlaps_too_much_is_written_anew_with_the_next_merge() {
    let most = GROUPS_MOST as u64;
    let merged = |groups: u64| {
        let refers: Vec<u64> = (10..10 + groups).collect();
        let mut blobs: Vec<_> = refers.iter().map(|n| (*n, Some(6))).collect();
        blobs.push((90, Some(0)));
        let picture = "L0: 5[a-z]@50..59b90 4[a-z]@40..49 3[a-z]@30..39 2[a-z]@20..29\n\
                       L6: 1[a-z]#4Mb10";
        let v = grouped(picture, &blobs, &[(1, &refers), (5, &[90])]);
        regrouped(&v, &with_groups(dynamic())).1
    };
    assert_eq!(merged(most), [90], "the last level stays");
    assert_eq!(merged(most + 1).len() as u64, most + 2);
}

#[test]
fn scans_pay_for_groups_as_for_runs() {
    let seek = SampledReads::Seek { took_ns: 8_000 };
    let gets = SampledReads::Gets {
        count: 10,
        took_ns: 8_000,
        data_blocks: 10,
    };
    assert_eq!(extra_ns(&overlapping(1), 0, seek), 0);
    assert_eq!(extra_groups(&overlapping(4)), 3);
    assert_eq!(extra_ns(&overlapping(4), 0, seek), 3 * 2_000);
    assert_eq!(extra_ns(&overlapping(4), 0, gets), 0, "a read meets one");
    let v = overlapping(4);
    let paid = |debt_ns: u64, policy: &Policy| -> Option<Plan> {
        let reads = ReadDemand {
            debt_ns,
            merge_pace: None,
            writers_rest: true,
        };
        pick(&v, policy, &Busy::new(), PickContext { reads, ..NOW })
    };
    let policy = with_groups(dynamic());
    let cost = 8 * ((4 << 20) + 40 * RECORD);
    assert!(paid(cost.max(100_000_000) - 1, &policy).is_none());
    let plan = paid(cost.max(100_000_000), &policy).expect("paid for");
    assert_eq!(plan.reason, CompactionReason::ReadTriggered);
    assert_eq!(plan.regrouped.files.len(), 4);
    assert_eq!(
        (plan.output_level, plan.regrouped.bytes),
        (Level(6), 40 * RECORD)
    );
    assert!(paid(1 << 40, &dynamic()).is_none(), "off");
}

#[test]
fn unknown_tiers_are_those_that_tables_name() {
    let v = of_level_1(3);
    let mut edit = TreeEdit::snapshot(&v);
    for b in edit.blobs.iter_mut().filter(|b| b.number != FileNo(12)) {
        b.tier = BlobTier::Unknown;
    }
    let lost = apply(&Version::empty(v.order().clone(), 7), &[edit]).expect("valid");
    assert!(has_unknown(&lost) && !has_unknown(&v));
    let mut named = BlobGroups::default();
    for (number, level) in [(10, 1), (11, 2), (12, 5)] {
        let number = FileNo(number);
        let level = Level(level);
        named.insert(number, BlobGroup { number, level });
    }
    let found = with_tiers(&lost, &named);
    assert_eq!(found.blob_files(), v.blob_files());
    assert_eq!(sums(&found)[&Level(3)].bytes, 10 * RECORD);
    let text = blob_summary(&found, &Busy::new());
    let line =
        "medium values of level 2: groups 1, blob files 1, live bytes 10240, garbage bytes 0";
    assert!(text.lines().any(|l| l == line), "{text}");
}
