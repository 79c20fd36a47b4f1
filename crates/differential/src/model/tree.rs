//! Calls that change the tree and no contents. Any thread may make them at any time.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::program::Call;
use super::table::key;
use super::world::{ModelState, at, c_path, c_text};
use crate::api::{H, T, c};
use crate::{Failure, Result};

/// A table file of a database.
struct File {
    name: CString,
    level: c_int,
}

/// Options by number, each with the values that it is set to.
const CHANGES: [(&str, [&str; 7]); 9] = [
    (
        "max_bytes_for_level_base",
        ["1024", "2048", "4096", "8192", "16384", "32768", "65536"],
    ),
    (
        "target_file_size_base",
        ["1024", "2048", "4096", "8192", "16384", "32768", "65536"],
    ),
    (
        "level0_file_num_compaction_trigger",
        ["2", "3", "4", "5", "6", "2", "3"],
    ),
    (
        "max_bytes_for_level_multiplier",
        ["2", "3", "4", "5", "6", "10", "2"],
    ),
    (
        "disable_auto_compactions",
        ["true", "false", "false", "false", "false", "false", "true"],
    ),
    (
        "write_buffer_size",
        [
            "65536", "131072", "262144", "524288", "1048576", "67108864", "65536",
        ],
    ),
    (
        "max_compaction_bytes",
        ["1024", "2048", "4096", "8192", "16384", "65536", "1000000"],
    ),
    (
        "level0_slowdown_writes_trigger",
        ["20", "22", "24", "26", "28", "30", "40"],
    ),
    (
        "compaction_options_universal",
        [
            "{size_ratio=1}",
            "{size_ratio=50}",
            "{min_merge_width=2}",
            "{min_merge_width=4}",
            "{max_size_amplification_percent=20}",
            "{max_size_amplification_percent=200}",
            "{allow_trivial_move=true}",
        ],
    ),
];

/// Makes a call that changes no contents; false when it is none.
pub(super) fn make(world: &ModelState, keys: usize, call: &Call) -> Result<bool> {
    let held = world.hold();
    let (db, arg) = (held.db, |index: usize| {
        call.args.get(index).copied().unwrap_or(0)
    });
    if db.is_null() {
        // The model's thread is about to open it again.
        drop(held);
        std::thread::sleep(Duration::from_micros(200));
        return Ok(true);
    }
    let family = || world.family(arg(0));
    let outcome = match call.kind {
        "sleep" => {
            drop(held);
            std::thread::sleep(Duration::from_micros(50 << arg(0).min(12)));
            Ok(())
        }
        "flush" => flush(world, db, family().handle, arg(1) == 0),
        "flush_all" => flush_all(world, db),
        "compact_range" => compact_range(world, db, keys, &arg),
        "refit" => refit(world, db, &arg),
        "compact_files" => {
            let family = family();
            let files = files(world, db, &family.name);
            let many = (arg(2) as usize + 1).min(files.len());
            let from = arg(3) as usize % (files.len() - many + 1).max(1);
            let chosen = &files[from..from + many];
            compact_files(world, db, family.handle, chosen, arg(1) as c_int)
        }
        "merge_zero" => {
            let family = family();
            let mut files = files(world, db, &family.name);
            files.retain(|file| file.level == 0);
            compact_files(world, db, family.handle, &files, 0)
        }
        "suggest" => suggest(world, db, keys, &arg),
        "set_options" => set_options(world, db, family().handle, arg(1), arg(2)),
        "pause" => pause(world, db, arg(0)),
        "manual_off" => {
            c!(world, disable_manual_compaction, db);
            std::thread::sleep(Duration::from_millis(arg(0)));
            c!(world, enable_manual_compaction, db);
            Ok(())
        }
        "deletions_off" => deletions_off(world, db, || {
            std::thread::sleep(Duration::from_millis(arg(0)));
            Ok(())
        }),
        "settle" => settle(world, db),
        "verify_checksum" => {
            let mut e = ptr::null_mut();
            c!(world, verify_checksum, db, &mut e);
            world.done(e)
        }
        "ingest_nothing" => ingest_nothing(world, db, family().handle, arg(1)),
        _ => return Ok(false),
    };
    world.count(call.kind);
    match outcome {
        Ok(()) => Ok(true),
        Err(error) => world.refused(call.kind, &error).map(|()| true),
    }
}

/// Makes calls of a list until all threads are to stop.
pub(super) fn neutral(world: &ModelState, keys: usize, thread: usize, calls: &[Call]) {
    while !calls.is_empty() {
        for call in calls {
            if world.stopped() {
                return;
            }
            world.does(thread, call);
            if let Err(failure) = make(world, keys, call) {
                world.saw(failure.context(call));
                return;
            }
            // Calls that have nothing to do come back at once.
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

fn flush(world: &ModelState, db: H, family: H, wait: bool) -> Result<()> {
    let options = c!(world, flushoptions_create);
    c!(world, flushoptions_set_wait, options, u8::from(wait));
    let mut e = ptr::null_mut();
    c!(world, flush_cf, db, options, family, &mut e);
    c!(world, flushoptions_destroy, options);
    world.done(e)
}

/// Flushes all families at once.
pub(super) fn flush_all(world: &ModelState, db: H) -> Result<()> {
    let (options, handles) = (c!(world, flushoptions_create), world.handles());
    let (many, mut e) = (handles.len() as c_int, ptr::null_mut());
    c!(
        world,
        flush_cfs,
        db,
        options,
        handles.as_ptr(),
        many,
        &mut e
    );
    c!(world, flushoptions_destroy, options);
    world.done(e)
}

/// Two keys in order.
fn bounds(keys: usize, a: u64, b: u64) -> ([u8; 4], [u8; 4]) {
    let (a, b) = (a as usize % keys, b as usize % keys);
    (key(a.min(b), keys), key(a.max(b), keys))
}

fn compact_range(world: &ModelState, db: H, keys: usize, arg: &dyn Fn(usize) -> u64) -> Result<()> {
    let options = c!(world, compactoptions_create);
    let bottommost = arg(3) as u8;
    c!(
        world,
        compactoptions_set_bottommost_level_compaction,
        options,
        bottommost
    );
    let exclusive = u8::from(arg(4) == 0);
    c!(
        world,
        compactoptions_set_exclusive_manual_compaction,
        options,
        exclusive
    );
    if let level @ 0..=7 = arg(5) {
        c!(world, compactoptions_set_change_level, options, 1);
        c!(
            world,
            compactoptions_set_target_level,
            options,
            level as c_int - 1
        );
    }
    if arg(5) == 8
        && !world
            .api
            .missing
            .contains("compactoptions_set_max_subcompactions")
    {
        c!(world, compactoptions_set_max_subcompactions, options, 3);
    }
    if arg(5) == 9
        && !world
            .api
            .missing
            .contains("compactoptions_set_allow_write_stall")
    {
        c!(world, compactoptions_set_allow_write_stall, options, 1);
    }
    let (begin, end) = bounds(keys, arg(1), arg(2));
    let ((begin, b), (end, e)) = if arg(6) == 0 {
        ((ptr::null(), 0), (ptr::null(), 0))
    } else {
        ((at(&begin), begin.len()), (at(&end), end.len()))
    };
    let family = world.family(arg(0)).handle;
    c!(
        world,
        compact_range_cf_opt,
        db,
        family,
        options,
        begin,
        b,
        end,
        e
    );
    c!(world, compactoptions_destroy, options);
    Ok(())
}

/// Moves a level without merging: the range has no keys.
fn refit(world: &ModelState, db: H, arg: &dyn Fn(usize) -> u64) -> Result<()> {
    let options = c!(world, compactoptions_create);
    c!(world, compactoptions_set_change_level, options, 1);
    c!(
        world,
        compactoptions_set_target_level,
        options,
        arg(1) as c_int
    );
    c!(
        world,
        compactoptions_set_exclusive_manual_compaction,
        options,
        arg(2) as u8
    );
    let family = world.family(arg(0)).handle;
    let (begin, end) = (at(b"x"), at(b"y"));
    c!(
        world,
        compact_range_cf_opt,
        db,
        family,
        options,
        begin,
        1,
        end,
        1
    );
    c!(world, compactoptions_destroy, options);
    Ok(())
}

/// The table files of a family.
fn files(world: &ModelState, db: H, family: &str) -> Vec<File> {
    let all = c!(world, livefiles, db);
    let mut files = Vec::new();
    for index in 0..c!(world, livefiles_count, all) {
        let (of, name) = (
            c!(world, livefiles_column_family_name, all, index),
            c!(world, livefiles_name, all, index),
        );
        // SAFETY: both are zero-terminated texts of the list.
        let (of, name) = unsafe { (CStr::from_ptr(of), CStr::from_ptr(name)) };
        if of.to_bytes() == family.as_bytes() {
            files.push(File {
                name: name.to_owned(),
                level: c!(world, livefiles_level, all, index),
            });
        }
    }
    c!(world, livefiles_destroy, all);
    files
}

fn compact_files(world: &ModelState, db: H, family: H, files: &[File], level: c_int) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let names: Vec<T> = files.iter().map(|file| file.name.as_ptr()).collect();
    let options = c!(world, compaction_options_create);
    let (mut out, mut many, mut e) = (ptr::null_mut(), 0, ptr::null_mut());
    let (from, count, none) = (names.as_ptr(), names.len(), ptr::null_mut());
    c!(
        world,
        compact_files_cf,
        db,
        family,
        options,
        from,
        count,
        level,
        -1,
        &mut out,
        &mut many,
        none,
        &mut e
    );
    if !out.is_null() {
        c!(world, compact_files_output_file_names_destroy, out, many);
    }
    c!(world, compaction_options_destroy, options);
    world.done(e)
}

fn suggest(world: &ModelState, db: H, keys: usize, arg: &dyn Fn(usize) -> u64) -> Result<()> {
    let (begin, end) = bounds(keys, arg(1), arg(2));
    let (family, mut e) = (world.family(arg(0)).handle, ptr::null_mut());
    let (from, to) = (at(&begin), at(&end));
    c!(
        world,
        suggest_compact_range_cf,
        db,
        family,
        from,
        4,
        to,
        4,
        &mut e
    );
    world.done(e)
}

fn set_options(world: &ModelState, db: H, family: H, which: u64, value: u64) -> Result<()> {
    let (name, values) = &CHANGES[which as usize % CHANGES.len()];
    let (name, value) = (c_text(name), c_text(values[value as usize % values.len()]));
    let (names, values) = ([name.as_ptr()], [value.as_ptr()]);
    let mut e = ptr::null_mut();
    c!(
        world,
        set_options_cf,
        db,
        family,
        1,
        names.as_ptr(),
        values.as_ptr(),
        &mut e
    );
    world.done(e)
}

fn pause(world: &ModelState, db: H, millis: u64) -> Result<()> {
    let mut e = ptr::null_mut();
    c!(world, pause_background_work, db, &mut e);
    world.done(e)?;
    std::thread::sleep(Duration::from_millis(millis));
    let mut e = ptr::null_mut();
    c!(world, continue_background_work, db, &mut e);
    world.done(e)
}

/// Runs `body` while no file is deleted.
pub(super) fn deletions_off<R>(
    world: &ModelState,
    db: H,
    body: impl FnOnce() -> Result<R>,
) -> Result<R> {
    let mut e = ptr::null_mut();
    c!(world, disable_file_deletions, db, &mut e);
    world.done(e)?;
    let outcome = body();
    let mut e = ptr::null_mut();
    c!(world, enable_file_deletions, db, &mut e);
    world.done(e)?;
    outcome
}

fn settle(world: &ModelState, db: H) -> Result<()> {
    let options = c!(world, wait_for_compact_options_create);
    if let Some(set) = world.api.wait_for_compact_options_set_timeout {
        // SAFETY: the options are alive.
        unsafe { set(options, 200_000) };
    }
    let mut e = ptr::null_mut();
    c!(world, wait_for_compact, db, options, &mut e);
    c!(world, wait_for_compact_options_destroy, options);
    world.done(e)
}

/// A table file of a writer, filled by `fill`.
pub(super) fn table_file(
    world: &ModelState,
    fill: impl FnOnce(H) -> Result<()>,
) -> Result<std::path::PathBuf> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = world.base.join(format!("ingest-{number}.sst"));
    let (options, text, mut e) = (c!(world, envoptions_create), c_path(&path), ptr::null_mut());
    let writer = c!(world, sstfilewriter_create, options, world.quick);
    c!(world, sstfilewriter_open, writer, text.as_ptr(), &mut e);
    let filled = world.done(e).and_then(|()| fill(writer)).and_then(|()| {
        let mut e = ptr::null_mut();
        c!(world, sstfilewriter_finish, writer, &mut e);
        world.done(e)
    });
    c!(world, sstfilewriter_destroy, writer);
    c!(world, envoptions_destroy, options);
    filled.map(|()| path)
}

/// Adds a file to a family; `flags` are those of the options.
pub(super) fn add_file(
    world: &ModelState,
    db: H,
    family: H,
    path: &std::path::Path,
    flags: u64,
) -> Result<()> {
    let options = c!(world, ingestexternalfileoptions_create);
    let moves = (flags & 1) as u8;
    c!(
        world,
        ingestexternalfileoptions_set_move_files,
        options,
        moves
    );
    if flags & 6 == 6 {
        c!(
            world,
            ingestexternalfileoptions_set_snapshot_consistency,
            options,
            0
        );
    }
    let last_only = "ingestexternalfileoptions_set_fail_if_not_bottommost_level";
    if flags & 32 != 0 && !world.api.missing.contains(last_only) {
        c!(
            world,
            ingestexternalfileoptions_set_fail_if_not_bottommost_level,
            options,
            1
        );
    }
    if flags & 24 == 24 {
        c!(
            world,
            ingestexternalfileoptions_set_allow_blocking_flush,
            options,
            0
        );
    }
    let (text, mut e) = (c_path(path), ptr::null_mut());
    let files = [text.as_ptr()];
    c!(
        world,
        ingest_external_file_cf,
        db,
        family,
        files.as_ptr(),
        1,
        options,
        &mut e
    );
    c!(world, ingestexternalfileoptions_destroy, options);
    let _ = std::fs::remove_file(path); // moved, or of no use any more
    world.done(e)
}

/// A file whose only entry deletes a range that has no keys.
fn ingest_nothing(world: &ModelState, db: H, family: H, flags: u64) -> Result<()> {
    let path = table_file(world, |writer| {
        let mut e = ptr::null_mut();
        let (begin, end) = (at(b"k000x"), at(b"k000y"));
        c!(
            world,
            sstfilewriter_delete_range,
            writer,
            begin,
            5,
            end,
            5,
            &mut e
        );
        world.done(e)
    })?;
    add_file(world, db, family, &path, flags)
}

/// The failure of a call that has to be taken.
pub(super) fn required(outcome: Result<()>, what: &str) -> Result<()> {
    outcome.map_err(|error| Failure::new(error.to_string()).context(what))
}
