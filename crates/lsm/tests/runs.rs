//! Decisions of universal and FIFO compaction, as pictures: a tree as text goes in, a plan as text
//! comes out.

#[path = "support/trees.rs"]
mod trees;

use esker_format::FileNo;
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::file::{FileMeta, FileStats};
use esker_lsm::load::Zone;
use esker_lsm::pick::{
    CompactionStyle, FifoSettings, FileTemperatureAge, PickContext, Policy, Temperature,
    WriterState,
};
use esker_lsm::plan::{Busy, CompactionReason, PlanKind};
use esker_lsm::shape::{draw, draw_plan};
use esker_lsm::version::{BlobFile, Version};
use std::sync::Arc;
use trees::{NOW, fixed, pick, picked, tree, with_times};

fn universal() -> Policy {
    Policy {
        compaction_style: CompactionStyle::Universal,
        ..fixed()
    }
}

#[test]
fn universal_merges_everything_when_space_is_wasted() {
    let v = tree("L0: 9[a-z]#9M@40..49 8[a-z]#9M@30..39 7[a-z]#9M@20..29\nL6: 1[a-z]#10M");
    assert_eq!(
        picked(&v, &universal()),
        "L0 9 8 7 + L6 1 -> L6 merge UniversalSizeAmplification"
    );
}

#[test]
fn universal_merges_runs_of_similar_size() {
    let v = tree(
        "L0: 9[a-z]#1M@40..49 8[a-z]#1M@30..39 7[a-z]#2M@20..29\nL5: 2[a-z]#50M\nL6: 1[a-z]#100M",
    );
    assert_eq!(
        picked(&v, &universal()),
        "L0 9 8 7 -> L4 merge UniversalSizeRatio"
    );
}

#[test]
fn universal_reduces_the_number_of_runs() {
    let v = tree(
        "L0: 9[a-z]#1M@40..49 8[a-z]#5M@30..39 7[a-z]#20M@20..29\nL5: 2[a-z]#80M\nL6: 1[a-z]#400M",
    );
    assert_eq!(
        picked(&v, &universal()),
        "L0 9 8 -> L0 merge UniversalSortedRunNum"
    );
    let mut busy = Busy::new();
    let plan = pick(&v, &universal(), &busy, NOW).expect("too many runs");
    let _ticket = busy.register(v.order(), &plan);
    assert!(pick(&v, &universal(), &busy, NOW).is_none());
}

#[test]
fn runs_gather_while_writers_are_held_back() {
    let newest = |count: u64| {
        let runs = (10..10 + count).rev();
        let runs: Vec<_> = runs.map(|n| format!("{n}[a-z]#1M@{n}..{n}")).collect();
        tree(&format!("L0: {}\nL6: 1[a-z]#400M", runs.join(" ")))
    };
    let mut busy = Busy::new();
    let _oldest = busy.reserve(vec![FileNo(1)], None);
    let pressed = PickContext {
        writers: WriterState::Writing,
        paced: Zone::Near,
        ..NOW
    };
    let width = |count, policy: &Policy, busy: &Busy, moment| {
        let plan = pick(&newest(count), policy, busy, moment);
        plan.map_or(0, |plan| plan.runs())
    };
    let mut policy = universal();
    // Half of the way from 4 to 20.
    assert_eq!(width(7, &policy, &busy, pressed), 0);
    assert_eq!(width(8, &policy, &busy, pressed), 8);
    // What is there is merged where writers rest, and where nothing else can be done.
    assert_eq!(width(4, &policy, &busy, NOW), 4);
    assert_eq!(width(4, &policy, &Busy::new(), pressed), 4);
    // No further than writers and options allow: half of the way from 4 to 17, behind one that is
    // being merged.
    policy.stall_triggers.level0.stop = 17.0;
    assert_eq!(width(5, &policy, &busy, pressed), 0);
    assert_eq!(width(6, &policy, &busy, pressed), 6);
    policy.compaction_options_universal.max_merge_width = 5;
    assert_eq!(width(5, &policy, &busy, pressed), 5);
}

#[test]
fn a_tree_with_a_bound_is_merged_while_it_fits() {
    let v = tree("L0: 9[a-z]#20M@40..49 8[a-z]#20M@30..39 7[a-z]#20M@20..29\nL6: 1[a-z]#100M");
    let mut policy = universal();
    let mut with_peak = |percent| {
        policy
            .compaction_options_universal
            .max_peak_size_amplification_percent = percent;
        picked(&v, &policy)
    };
    let all = "L0 9 8 7 + L6 1 -> L6 merge UniversalSizeAmplification";
    let similar = "L0 9 8 7 -> L5 merge UniversalSizeRatio";
    // Three fifths of what a merge of everything leaves free.
    assert_eq!(with_peak(200), all);
    assert_eq!(with_peak(202), similar);
    // Too little is free for such merges to be worth their while, or there is no bound.
    assert_eq!(with_peak(130), similar);
    assert_eq!(with_peak(0), similar);
}

#[test]
fn files_are_not_moved_to_another_path() {
    let v = tree("L1: 1[a-b]#4M 2[c-d]#4M 3[e-f]#4M 4[g-h]#4M");
    let one = fixed();
    assert_eq!(picked(&v, &one), "L1 1 2 3 4 -> L2 move LevelMaxLevelSize");
    // Levels 0 and 1 fit into the first path, level 2 does not.
    let two = Policy {
        path_targets: vec![20 << 20, 0],
        ..fixed()
    };
    assert_eq!(picked(&v, &two), "L1 1 -> L2 merge LevelMaxLevelSize");
    let plan = pick(&v, &two, &Busy::new(), NOW).expect("a plan");
    assert_eq!(plan.output_path, 1);
    // Where both levels are in one path a file is moved, by itself.
    let roomy = Policy {
        path_targets: vec![200 << 20, 0],
        ..fixed()
    };
    assert_eq!(picked(&v, &roomy), "L1 1 -> L2 move LevelMaxLevelSize");

    let runs = tree("L0: 9[g-h]@40..49 8[e-f]@30..39 7[c-d]@20..29 6[a-b]@10..19");
    let mut universal = Policy {
        path_targets: vec![1, 0],
        ..universal()
    };
    universal.compaction_options_universal.allow_trivial_move = true;
    assert_eq!(
        picked(&runs, &universal),
        "L0 9 8 7 6 -> L6 merge UniversalSizeAmplification"
    );
    universal.path_targets[0] = 100 << 20;
    assert_eq!(
        picked(&runs, &universal),
        "L0 9 8 7 6 -> L6 move UniversalSizeAmplification"
    );
}

/// Ten files each at levels 5 and 6, and level 5 is a third of level 6; what is above comes before.
fn two_large_runs(above: &str) -> Version {
    let files = |first: u32, size: u32| {
        let ends = [
            "a-b", "c-d", "e-f", "g-h", "i-j", "k-l", "m-n", "o-p", "q-r", "s-t",
        ];
        let file = |(i, ends): (u32, &&str)| format!("{}[{ends}]#{size}M", first + i);
        let list: Vec<_> = (0..).zip(&ends).map(file).collect();
        list.join(" ")
    };
    tree(&format!(
        "{above}L5: {}\nL6: {}",
        files(20, 10),
        files(10, 30)
    ))
}

fn slicing(percent: u32, most_bytes: u64) -> Policy {
    let mut policy = Policy {
        level0_file_num_compaction_trigger: 2,
        max_compaction_bytes: most_bytes,
        target_file_size_base: 10 << 20,
        ..universal()
    };
    let options = &mut policy.compaction_options_universal;
    options.max_size_amplification_percent = percent;
    options.incremental = true;
    policy
}

#[test]
fn an_incremental_tree_is_merged_slice_by_slice() {
    let v = two_large_runs("");
    // Half of max_compaction_bytes is for two files and the six times as much that they meet.
    let mut policy = slicing(30, 160 << 20);
    assert_eq!(
        picked(&v, &policy),
        "L5 20 21 + L6 10 11 -> L6 merge UniversalSizeAmplification"
    );
    let plan = pick(&v, &policy, &Busy::new(), NOW).expect("a slice");
    assert_eq!(plan.max_compaction_bytes, 15 << 20);
    // Nothing else of these levels starts beside it.
    let mut busy = Busy::new();
    let _ticket = busy.register(v.order(), &plan);
    assert!(pick(&v, &policy, &busy, NOW).is_none());
    // Where not even one file fits, and without the option, it is everything.
    policy.max_compaction_bytes = 60 << 20;
    let all = picked(&v, &policy);
    assert!(
        all.starts_with("L5 20 21 22 23 24 25 26 27 28 29 + L6 10 11"),
        "{all}"
    );
    policy.max_compaction_bytes = 160 << 20;
    policy.compaction_options_universal.incremental = false;
    assert_eq!(picked(&v, &policy), all);
    let plan = pick(&v, &policy, &Busy::new(), NOW).expect("everything");
    assert_eq!(
        (plan.max_compaction_bytes, plan.grandparents.len()),
        (u64::MAX, 0)
    );
}

#[test]
fn a_slice_takes_newer_files_along_only_with_what_is_older() {
    let policy = slicing(30, 170 << 20);
    // File 6 lies inside the slice, file 7 reaches out of it on the right.
    let v = two_large_runs("L4: 6[b-c]#1M 7[d-e]#1M\n");
    assert_eq!(
        picked(&v, &policy),
        "L4 6 + L5 20 21 + L6 10 11 -> L6 merge UniversalSizeAmplification"
    );
    // File 5 is older than file 4, overlaps it and stays: so does file 4.
    let v = two_large_runs("L3: 4[b-c]#1M\nL4: 5[c-e]#1M\n");
    assert_eq!(
        picked(&v, &policy),
        "L5 20 21 + L6 10 11 -> L6 merge UniversalSizeAmplification"
    );
    // A level without files in the range hides nothing.
    let v = two_large_runs("L3: 4[b-c]#1M\nL4: 5[x-z]#1M\n");
    assert_eq!(
        picked(&v, &policy),
        "L3 4 + L5 20 21 + L6 10 11 -> L6 merge UniversalSizeAmplification"
    );
}

#[test]
fn a_tree_stays_within_its_peak() {
    let v = two_large_runs("");
    let mut policy = Policy {
        write_buffer_size: 1 << 20,
        ..slicing(30, 10 << 30)
    };
    policy.compaction_options_universal.incremental = false;
    let mut with_peak = |percent| {
        policy
            .compaction_options_universal
            .max_peak_size_amplification_percent = percent;
        picked(&v, &policy)
    };
    // The tree has a third more than its largest run, and a merge of all takes that much of 300M
    // beside it again: what it makes beyond that is alive.
    let all = with_peak(0);
    assert_eq!(with_peak(134), all);
    assert_ne!(with_peak(133), all);
    assert_eq!(
        with_peak(80),
        "L5 20 21 22 + L6 10 11 12 -> L6 merge UniversalSizeAmplification"
    );
    // Over its peak it takes the smallest step.
    let least = "L5 20 + L6 10 -> L6 merge UniversalSizeAmplification";
    assert_eq!(with_peak(10), least);

    // A step that does not fit waits while another runs.
    let v = tree(
        "L0: 9[a-z]#10M@40..49 8[a-z]#10M@30..39 7[a-z]#10M@20..29\nL5: 2[a-z]#60M\nL6: 1[a-z]#100M",
    );
    policy
        .compaction_options_universal
        .max_peak_size_amplification_percent = 110;
    policy
        .compaction_options_universal
        .max_size_amplification_percent = 300;
    let plan = pick(&v, &policy, &Busy::new(), NOW).expect("runs of one size");
    assert_eq!(
        draw_plan(Some(&plan)),
        "L0 9 8 7 -> L4 merge UniversalSizeRatio"
    );
    let mut busy = Busy::new();
    let ticket = busy.register(v.order(), &plan);
    assert_eq!(busy.output_bytes(), 30 << 20);
    let v = apply_flush(&v);
    assert!(pick(&v, &policy, &busy, NOW).is_none());
    busy.release(ticket);
    assert!(pick(&v, &policy, &busy, NOW).is_some());
}

/// With two more files at level 0.
fn apply_flush(v: &Version) -> Version {
    let text = draw(v).replace("L0: ", "L0: 12[a-z]#10M@60..69 11[a-z]#10M@50..59 ");
    tree(&text)
}

#[test]
fn the_first_slices_come_from_what_level_0_was_merged_to() {
    let v = tree("L0: 9[a-z]#10M@40..49 8[a-z]#30M@30..39\nL6: 1[a-m]#50M 2[n-z]#50M");
    let mut policy = Policy {
        write_buffer_size: 1 << 20,
        ..slicing(30, 10 << 30)
    };
    let options = &mut policy.compaction_options_universal;
    (
        options.max_read_amp,
        options.max_peak_size_amplification_percent,
    ) = (5, 90);
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 -> L5 merge UniversalSizeAmplification"
    );
}

#[test]
fn read_amplification_has_a_limit_of_its_own() {
    let v = tree(
        "L0: 9[a-z]#1M@40..49 8[a-z]#5M@30..39 7[a-z]#20M@20..29\nL5: 2[a-z]#80M\nL6: 1[a-z]#400M",
    );
    let mut policy = universal();
    let mut with_limit = |most| {
        policy.compaction_options_universal.max_read_amp = most;
        picked(&v, &policy)
    };
    let reduced = "L0 9 8 -> L0 merge UniversalSortedRunNum";
    assert_eq!(with_limit(-1), reduced);
    assert_eq!(with_limit(4), reduced);
    assert_eq!(with_limit(5), "nothing");
    // From 64M: 64, 64.6, 130, 261, 525.
    assert_eq!(with_limit(0), "nothing");
    policy.write_buffer_size = 128 << 20;
    policy.compaction_options_universal.max_read_amp = 0;
    assert_eq!(picked(&v, &policy), reduced);
}

#[test]
fn old_data_is_compressed_first() {
    let v = tree(
        "L0: 9[a-z]#1M@40..49 8[a-z]#1M@30..39 7[a-z]#2M@20..29\nL5: 2[a-z]#36M\nL6: 1[a-z]#60M",
    );
    let uncompressed = |percent| {
        let mut policy = universal();
        policy.compaction_options_universal.compression_size_percent = percent;
        let plan = pick(&v, &policy, &Busy::new(), NOW).expect("runs of one size");
        assert_eq!(plan.reason, CompactionReason::UniversalSizeRatio);
        plan.uncompressed
    };
    assert_eq!(
        [-1, 0, 95, 96, 97].map(uncompressed),
        [false, true, true, true, false]
    );
}

#[test]
fn the_newest_runs_are_left_out_of_a_large_merge() {
    let v = tree(
        "L0: 9[a-z]#1M@50..59 8[a-z]#1M@40..49 7[a-z]#9M@20..29 6[a-z]#20M@10..19\nL6: 1[a-z]#10M",
    );
    let mut policy = universal();
    assert_eq!(
        picked(&v, &policy),
        "L0 7 6 + L6 1 -> L6 merge UniversalSizeAmplification"
    );
    // Not when enough may be merged beside it for writers to go on.
    policy.compaction_options_universal.max_merge_width = 3;
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 7 6 + L6 1 -> L6 merge UniversalSizeAmplification"
    );
    // Two more runs would stop them: one of these is left, to be merged with the next.
    policy.stall_triggers.level0.stop = 6.0;
    policy.compaction_options_universal.max_merge_width = 2;
    assert_eq!(
        picked(&v, &policy),
        "L0 8 7 6 + L6 1 -> L6 merge UniversalSizeAmplification"
    );
}

#[test]
fn a_marked_file_goes_to_the_next_run() {
    let policy = Policy {
        level0_file_num_compaction_trigger: 9,
        ..universal()
    };
    let v = tree("L0: 9[a-c]@40..49 8[m-p]@30..39*\nL4: 3[a-k]#9M 4[l-z]#9M\nL6: 1[a-z]#90M");
    assert_eq!(
        picked(&v, &policy),
        "L0 8 + L4 4 -> L4 merge FilesMarkedForCompaction"
    );
    let v = tree("L4: 3[a-k]#9M 4[l-z]#9M*\nL6: 1[a-f]#50M 2[g-z]#40M*");
    assert_eq!(
        picked(&v, &policy),
        "L4 4 + L6 2 -> L6 merge FilesMarkedForCompaction"
    );
    assert_eq!(picked(&tree("L6: 1[a-f]#50M*"), &policy), "nothing");
}

#[test]
fn universal_moves_disjoint_runs() {
    let mut policy = universal();
    policy.compaction_options_universal.allow_trivial_move = true;
    let v = tree("L0: 9[g-h]@40..49 8[e-f]@30..39 7[c-d]@20..29 6[a-b]@10..19");
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 7 6 -> L6 move UniversalSizeAmplification"
    );
}

#[test]
fn fifo_drops_the_oldest() {
    let mut policy = Policy {
        compaction_style: CompactionStyle::Fifo,
        ..fixed()
    };
    policy.compaction_options_fifo.max_table_files_size = 10 << 20;
    let v = tree("L0: 9[a-z]#4M@40..49 8[a-z]#4M@30..39 7[a-z]#4M@20..29 6[a-z]#4M@10..19");
    assert_eq!(picked(&v, &policy), "L0 7 6 -> L0 delete FifoMaxSize");
    policy.compaction_options_fifo.max_table_files_size = 1 << 30;
    assert_eq!(picked(&v, &policy), "nothing");
    policy.ttl = 100;
    assert_eq!(
        picked(&with_times(&v, 5, 5, 0), &policy),
        "L0 9 8 7 6 -> L0 delete FifoTtl"
    );
    policy.ttl = 0;
    policy.compaction_options_fifo.allow_compaction = true;
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 7 6 -> L0 merge FifoReduceNumFiles"
    );
    let plan = pick(&v, &policy, &Busy::new(), NOW).expect("small files");
    assert!(plan.edit_without_job().is_none() && plan.kind == PlanKind::Merge);
}

/// Gives each level 0 file of the tree the time of its newest write; `newest` is ordered newest
/// first.
fn with_newest(v: &Version, newest: &[u64]) -> Version {
    let mut edit = TreeEdit::default();
    for ((level, f), time) in v.files().zip(newest) {
        let mut new = FileMeta::from(esker_format::edit::NewFile::from(&**f));
        // Merged of old and new files, and made a while later.
        (new.oldest_ancestor_time, new.file_creation_time) = (5, *time + 50);
        let stats = FileStats {
            newest_key_time: *time,
            ..FileStats::default()
        };
        new.stats.set(stats).expect("fresh");
        edit.added.push((level, Arc::new(new)));
    }
    apply(&Version::empty(v.order().clone(), v.num_levels()), &[edit]).expect("valid")
}

fn fifo() -> Policy {
    Policy {
        compaction_style: CompactionStyle::Fifo,
        ..fixed()
    }
}

#[test]
fn a_file_expires_by_its_newest_write() {
    let policy = Policy { ttl: 100, ..fifo() };
    let v = tree("L0: 9[a-z]@40..49 8[a-z]@30..39 7[a-z]@20..29");
    let at = |newest: [u64; 3]| picked(&with_newest(&v, &newest), &policy);
    let now = NOW.now;
    assert_eq!(at([now, now - 99, now - 100]), "nothing");
    assert_eq!(at([now, now - 99, now - 101]), "L0 7 -> L0 delete FifoTtl");
    // In order, even when an older file has newer writes.
    assert_eq!(at([now, now - 200, now - 10]), "nothing");
    // Files that were not opened are as young as their creation.
    let unopened = with_times(&v, 5, now - 10, 0);
    assert_eq!(picked(&unopened, &policy), "nothing");
}

#[test]
fn blob_files_count_where_all_data_has_a_limit() {
    let v = tree("L0: 9[a-z]#4M@40..49b7 8[a-z]#4M@30..39b7 7[a-z]#2M@20..29b7 6[a-z]#2M@10..19b7");
    let blob = BlobFile {
        number: FileNo(7),
        total_count: 1,
        total_bytes: 12 << 20,
        ..BlobFile::default()
    };
    let edit = TreeEdit {
        blobs: vec![blob],
        ..TreeEdit::default()
    };
    let v = apply(&v, &[edit]).expect("valid");
    let mut policy = fifo();
    policy.compaction_options_fifo.max_table_files_size = 14 << 20;
    assert_eq!(picked(&v, &policy), "nothing");
    // Each table stands for as many bytes of values as it has of its own.
    policy.compaction_options_fifo.max_data_files_size = 20 << 20;
    assert_eq!(picked(&v, &policy), "L0 6 -> L0 delete FifoMaxSize");
    policy.compaction_options_fifo.max_data_files_size = 24 << 20;
    assert_eq!(picked(&v, &policy), "nothing");
}

#[test]
fn small_files_are_merged_tier_by_tier() {
    let mut policy = fifo();
    policy.max_compaction_bytes = 64 << 20;
    policy.level0_file_num_compaction_trigger = 4;
    let mut options = FifoSettings::default();
    options.allow_compaction = true;
    options.use_kv_ratio_compaction = true;
    options.max_data_files_size = 2 << 30;
    policy.compaction_options_fifo = options;
    // Tiers of 64M, 16M, 4M and so on. The newest have not enough for 4M, and go with what makes
    // 16M.
    let v = tree(
        "L0: 9[a-z]#1M@70..79 8[a-z]#1M@60..69 7[a-z]#1M@50..59 6[a-z]#5M@40..49 5[a-z]#5M@30..39 4[a-z]#7M@20..29 3[a-z]#70M@10..19",
    );
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 7 6 5 4 -> L0 merge FifoReduceNumFiles"
    );
    let v = tree(
        "L0: 10[a-z]#1M@80..89 9[a-z]#1M@70..79 8[a-z]#1M@60..69 7[a-z]#1M@50..59 6[a-z]#5M@40..49 5[a-z]#5M@30..39 4[a-z]#7M@20..29",
    );
    assert_eq!(
        picked(&v, &policy),
        "L0 10 9 8 7 -> L0 merge FifoReduceNumFiles"
    );
    // Without a size of its own a file is the limit's part for each of the trigger's number.
    policy.max_compaction_bytes = 0;
    policy.compaction_options_fifo.max_data_files_size = 1 << 30;
    let v = tree(
        "L0: 9[a-z]#50M@70..79 8[a-z]#90M@60..69 7[a-z]#90M@50..59 6[a-z]#90M@40..49 5[a-z]#256M@30..39",
    );
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 7 6 -> L0 merge FifoReduceNumFiles"
    );
    let v = tree("L0: 9[a-z]#256M@70..79 8[a-z]#256M@60..69 7[a-z]#256M@50..59 6[a-z]#30M@40..49");
    assert_eq!(picked(&v, &policy), "nothing");
}

#[test]
fn files_cool_with_age() {
    let mut policy = fifo();
    let age = |age, temperature| FileTemperatureAge { temperature, age };
    policy
        .compaction_options_fifo
        .file_temperature_age_thresholds =
        vec![age(100, Temperature::Warm), age(1000, Temperature::Cold)];
    let v = tree("L0: 9[a-z]@40..49 8[a-z]@30..39 7[a-z]@20..29");
    let now = NOW.now;
    let cooled = |v: &Version| {
        let plan = pick(v, &policy, &Busy::new(), NOW);
        let temperature = plan.as_ref().map_or(0, |p| p.temperature);
        (draw_plan(plan.as_ref()), temperature)
    };
    let nothing = ("nothing".to_owned(), 0);
    assert_eq!(
        cooled(&with_newest(&v, &[now, now - 50, now - 99])),
        nothing
    );
    let merge = |n: u32| format!("L0 {n} -> L0 merge ChangeTemperature");
    let v = with_newest(&v, &[now, now - 500, now - 2000]);
    assert_eq!(cooled(&v), (merge(7), 12));
    // Then the next, and then none.
    let cold = |v: &Version, number: u64, temperature: u8| {
        let (level, f) = v.find_file(FileNo(number)).expect("there");
        let mut new = FileMeta::from(esker_format::edit::NewFile::from(&**f));
        new.temperature = temperature;
        new.stats.set(*f.stats.get().expect("set")).expect("fresh");
        let edit = TreeEdit {
            deleted: vec![(level, f.number)],
            added: vec![(level, Arc::new(new))],
            ..TreeEdit::default()
        };
        apply(v, &[edit]).expect("valid")
    };
    let v = cold(&v, 7, 12);
    assert_eq!(cooled(&v), (merge(8), 8));
    assert_eq!(cooled(&cold(&v, 8, 8)), nothing);
}
