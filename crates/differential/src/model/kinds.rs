//! Kinds of calls that a program may have, and how their arguments are drawn.
//!
//! An argument is a number: of a family, of a key, of a value. So a call is a line of text, and a
//! program that lacks some of its calls is still one.

use crate::draw::RandomStream;

/// How one argument is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    /// A family, modulo those that are open.
    Family,
    /// A key, modulo those of the program.
    Key,
    /// A number that no other value has.
    Id,
    /// A class of sizes: [`SIZES`].
    Size,
    /// A number below this one.
    Below(u64),
    /// Up to so many groups of such arguments.
    Many(u64, &'static [Arg]),
}

use Arg::{Below, Family, Id, Key, Many, Size};

/// Sizes of values.
pub(super) const SIZES: [usize; 6] = [5, 20, 100, 400, 1200, 400];

/// Lengths of ranges of keys, by a class of sizes.
pub(super) const LENGTHS: [usize; 6] = [1, 2, 3, 6, 20, 80];

/// A kind of calls.
#[derive(Debug)]
pub(super) struct CallKind {
    pub(super) name: &'static str,
    /// How often the model's thread makes it.
    pub(super) writer: u32,
    /// How often a thread that changes no contents makes it.
    pub(super) neutral: u32,
    pub(super) args: &'static [Arg],
    /// Functions without which it cannot be made.
    pub(super) needs: &'static [&'static str],
}

const fn kind(
    name: &'static str,
    writer: u32,
    neutral: u32,
    args: &'static [Arg],
    needs: &'static [&'static str],
) -> CallKind {
    CallKind {
        name,
        writer,
        neutral,
        args,
        needs,
    }
}

/// One change: what, family, key, value, size.
const EDIT: &[Arg] = &[Below(20), Family, Key, Id, Size];

/// One step of an iterator: what, key.
const STEP: &[Arg] = &[Below(10), Key];

/// All kinds.
pub(super) const KINDS: &[CallKind] = &[
    kind("put", 60, 0, &[Family, Key, Id, Size], &[]),
    kind("delete", 20, 0, &[Family, Key], &[]),
    kind("put_once", 10, 0, &[Family, Below(20), Id], &[]),
    kind("single_delete", 10, 0, &[Family, Below(20)], &[]),
    kind("merge", 15, 0, &[Family, Key, Id, Size], &[]),
    kind("delete_range", 10, 0, &[Family, Key, Size], &[]),
    kind("batch", 220, 0, &[Below(2), Many(25, EDIT)], &[]),
    kind("get", 30, 0, &[Family, Key, Below(8)], &[]),
    kind(
        "multi_get",
        20,
        0,
        &[Below(8), Many(16, &[Family, Key])],
        &[],
    ),
    kind(
        "batched_multi_get",
        20,
        0,
        &[Family, Below(8), Below(2), Many(16, &[Key])],
        &["batched_multi_get_cf"],
    ),
    kind("verify", 15, 0, &[Below(2)], &[]),
    kind("snapshot", 15, 0, &[Below(4)], &[]),
    kind("verify_snapshot", 5, 0, &[Below(4), Below(2)], &[]),
    kind("release", 6, 0, &[Below(4)], &[]),
    kind(
        "iterator",
        15,
        0,
        &[Below(6), Family, Below(8), Below(16), Key, Size],
        &[],
    ),
    kind("step", 45, 0, &[Below(6), Many(8, STEP)], &[]),
    kind("refresh", 5, 0, &[Below(6)], &["iter_refresh"]),
    kind("prefix", 5, 0, &[Family, Key, Below(12)], &[]),
    kind("tail", 8, 0, &[Family, Key, Below(12), Below(3)], &[]),
    kind("flush", 20, 40, &[Family, Below(2)], &[]),
    kind("flush_all", 5, 5, &[], &["flush_cfs"]),
    kind(
        "compact_range",
        10,
        120,
        &[Family, Key, Key, Below(4), Below(3), Below(14), Below(3)],
        &["compact_range_cf_opt"],
    ),
    kind(
        "refit",
        5,
        30,
        &[Family, Below(7), Below(2)],
        &["compact_range_cf_opt"],
    ),
    kind(
        "compact_files",
        12,
        40,
        &[Family, Below(7), Below(4), Below(64)],
        &["compact_files_cf"],
    ),
    kind(
        "merge_zero",
        15,
        10,
        &[Family, Below(64)],
        &["compact_files_cf"],
    ),
    kind(
        "suggest",
        5,
        20,
        &[Family, Key, Key],
        &["suggest_compact_range_cf"],
    ),
    kind("set_options", 10, 40, &[Family, Below(9), Below(7)], &[]),
    kind("pause", 0, 10, &[Below(20)], &["pause_background_work"]),
    kind(
        "manual_off",
        0,
        10,
        &[Below(10)],
        &["disable_manual_compaction"],
    ),
    kind("deletions_off", 0, 10, &[Below(20)], &[]),
    kind("settle", 3, 3, &[], &["wait_for_compact"]),
    kind("verify_checksum", 2, 5, &[], &["verify_checksum"]),
    kind("sleep", 10, 150, &[Below(12)], &[]),
    kind(
        "ingest",
        40,
        0,
        &[Family, Below(40), Key, Size, Below(6), Id, Many(3, EDIT)],
        &[],
    ),
    kind(
        "ingest_nothing",
        0,
        20,
        &[Family, Below(8)],
        &["sstfilewriter_delete_range"],
    ),
    kind(
        "files_in_range",
        4,
        0,
        &[Family, Key, Size],
        &["delete_file_in_range_cf"],
    ),
    kind(
        "import",
        4,
        0,
        &[Family, Below(2)],
        &["create_column_family_with_import"],
    ),
    kind("make_family", 3, 0, &[], &[]),
    kind("drop_family", 3, 0, &[Below(8)], &[]),
    kind("checkpoint", 40, 0, &[Below(4), Below(4)], &[]),
    kind("backup", 15, 0, &[Below(3)], &[]),
    kind("read_only", 8, 0, &[], &[]),
    kind("secondary", 8, 0, &[Below(3)], &[]),
    kind("reopen", 5, 0, &[Below(6)], &[]),
    kind(
        "transaction",
        25,
        0,
        &[Below(6), Below(2), Many(12, EDIT)],
        &[],
    ),
    kind(
        "prepare",
        8,
        0,
        &[Id, Many(6, EDIT)],
        &["transaction_prepare"],
    ),
    kind(
        "resolve",
        8,
        0,
        &[Below(3), Many(6, EDIT)],
        &["transactiondb_get_prepared_transactions"],
    ),
    kind(
        "additions",
        25,
        0,
        &[Below(10), Family, Key, Id],
        &["esker_transactiondb_each_lock"],
    ),
];

/// The kind of this name.
pub(super) fn find(name: &str) -> Option<&'static CallKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// How many arguments a kind has before its list, and how many each group of that list has.
pub(super) fn groups(kind: &CallKind) -> Option<(usize, usize)> {
    match kind.args.split_last() {
        Some((Many(_, group), before)) => Some((before.len(), group.len())),
        _ => None,
    }
}

/// Draws arguments and appends them.
pub(super) fn draw(args: &[Arg], draw_from: &mut RandomStream, id: &mut u64, to: &mut Vec<u64>) {
    for arg in args {
        match arg {
            Family => to.push(draw_from.below(16) as u64),
            Key => to.push(draw_from.below(420) as u64),
            Id => {
                *id += 1;
                to.push(*id);
            }
            Size => to.push(draw_from.below(SIZES.len()) as u64),
            Below(bound) => to.push(draw_from.below(*bound as usize) as u64),
            Many(most, group) => {
                // Short lists more often than long ones.
                let most = [*most, most.div_ceil(4)][usize::from(draw_from.below(3) > 0)];
                for _ in 0..=draw_from.below(most as usize) {
                    draw(group, draw_from, id, to);
                }
            }
        }
    }
}
