//! Three tiers of values: small ones in tables, medium ones in sorted groups of blob files, large
//! ones in blob files of their own. Where values go, when they move, what opening knows of it.

mod common;

use common::blobs::{FRAME, key, opened, options, value};
use esker::options::{BottommostLevelCompaction, CompactRangeOptions};
use esker::{BlobMeta, Db, Env, ErrorKind, FamilyHandle, Result};
use esker_env::WriteOptions;
use esker_files::current;
use esker_files::manifest::{ManifestReader, ManifestWriter};
use esker_format::FileNo;
use esker_format::blob::{BlobRecordHeader, FOOTER_LEN, HEADER_LEN, RECORD_HEADER_LEN};
use esker_format::blob_groups::BlobTier;
use esker_format::file_name::manifest_name;
use std::collections::BTreeMap;
use std::path::Path;

const TIERS: &str = "min_medium_blob_size=100;min_large_blob_size=2000;num_levels=5;\
     level_compaction_dynamic_level_bytes=false";

fn put(db: &Db, keys: impl IntoIterator<Item = u32>, len: usize) -> Result<()> {
    keys.into_iter()
        .try_for_each(|n| db.put(key(n), value(n, len)))
}

fn blobs(db: &Db, family: &FamilyHandle) -> Vec<BlobMeta> {
    db.family_metadata(family).blob_files
}

/// The level of the group, if it has one, values and garbage of each blob file.
fn tiers(db: &Db, family: &FamilyHandle) -> Vec<(Option<u8>, u64, u64)> {
    let all = blobs(db, family);
    all.iter()
        .map(|b| (b.group_level, b.total_count, b.garbage_count))
        .collect()
}

/// Takes all tables of a level to another.
fn to_level(db: &Db, from: u8, to: u8) -> Result<()> {
    let all = db.live_files_metadata().into_iter();
    let files: Vec<_> = all.filter(|f| f.level == from).map(|f| f.name).collect();
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    db.compact_files(&db.default_family_handle(), &names, to)
        .map(drop)
}

fn forced() -> CompactRangeOptions {
    let mut options = CompactRangeOptions::default();
    options.bottommost_level_compaction = BottommostLevelCompaction::ForceOptimized;
    options
}

/// All values are as they were written last.
fn check(db: &Db, keys: std::ops::Range<u32>, len: usize) -> Result<()> {
    let mut it = db.iter();
    it.seek(key(keys.start));
    for n in keys {
        assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, len)[..]));
        assert_eq!(it.entry().map(|(_, v)| v.to_vec()), Some(value(n, len)));
        it.next();
    }
    it.status()
}

#[test]
fn values_are_placed_by_size_and_files_hold_one_tier() -> Result<()> {
    let (_dir, db, family) = opened(options(TIERS));
    for n in 0..90 {
        let len = [99, 100, 1_999, 2_000, 5_000][n as usize % 5];
        db.put(key(n), value(n, len))?;
    }
    db.flush()?;
    let mut found = tiers(&db, &family);
    found.sort_unstable();
    assert_eq!(found, [(None, 36, 0), (Some(0), 36, 0)]);
    let medium = blobs(&db, &family).into_iter().find(|b| b.group.is_some());
    let medium = medium.expect("a group");
    assert_eq!(medium.total_bytes, 18 * (100 + 1_999 + 2 * FRAME));
    assert_eq!(medium.group, Some(medium.number));
    for n in 0..90 {
        let len = [99, 100, 1_999, 2_000, 5_000][n as usize % 5];
        assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, len)[..]));
    }
    Ok(())
}

#[test]
fn medium_values_move_only_into_the_last_two_levels() -> Result<()> {
    let (_dir, db, family) = opened(options(TIERS));
    put(&db, 0..100, 500)?;
    db.flush()?;
    to_level(&db, 0, 4)?;
    assert_eq!(tiers(&db, &family), [(Some(4), 100, 0)], "the last level");
    put(&db, 0..20, 500)?;
    put(&db, 200..210, 3_000)?;
    db.flush()?;
    let upper = [(Some(0), 20, 0), (None, 10, 0)];
    let with_last = |levels: &[(Option<u8>, u64, u64)], garbage| {
        let mut all = vec![(Some(4), 100, garbage)];
        all.extend(levels);
        all.sort_unstable();
        all
    };
    let found = || {
        let mut found = tiers(&db, &family);
        found.sort_unstable();
        found
    };
    assert_eq!(found(), with_last(&upper, 0));
    for level in [1, 2] {
        to_level(&db, level - 1, level)?;
        assert_eq!(found(), with_last(&upper, 0), "level {level} is above");
    }
    to_level(&db, 2, 3)?;
    assert_eq!(found(), with_last(&[(Some(3), 20, 0), (None, 10, 0)], 0));
    to_level(&db, 3, 4)?;
    // Those of the last level stay in their group.
    assert_eq!(found(), with_last(&[(Some(4), 20, 0), (None, 10, 0)], 20));
    let before = blobs(&db, &family);
    db.compact_range_opt(&family, None, None, &forced())?;
    assert_eq!(blobs(&db, &family), before, "nothing leaves its level");
    check(&db, 0..100, 500)?;
    check(&db, 200..210, 3_000)
}

/// The keys of a blob file, in its order.
fn keys_of(blob: &BlobMeta) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(blob.directory.join(&blob.name)).expect("reads");
    let (mut at, mut keys) = (HEADER_LEN, Vec::new());
    while at < bytes.len() - FOOTER_LEN {
        let header =
            BlobRecordHeader::decode(&bytes[at..at + RECORD_HEADER_LEN]).expect("a record");
        let key = at + RECORD_HEADER_LEN;
        let value = key + header.key_len as usize;
        keys.push(bytes[key..value].to_vec());
        at = value + header.value_len as usize;
    }
    keys
}

#[test]
fn the_files_of_a_group_ascend_and_are_disjoint() -> Result<()> {
    let list = format!(
        "{TIERS};blob_file_size=10000;max_subcompactions=4;target_file_size_base=2000;\
         block_size=200"
    );
    let (_dir, db, family) = opened(options(&list));
    for from in 0..3 {
        put(&db, (from..3_000).step_by(3), 300)?;
        db.flush()?;
    }
    let mut how = forced();
    how.max_subcompactions = 4;
    db.compact_range_opt(&family, None, None, &how)?;
    let mut groups: BTreeMap<u64, Vec<Vec<Vec<u8>>>> = BTreeMap::new();
    for blob in blobs(&db, &family) {
        let keys = keys_of(&blob);
        assert!(keys.is_sorted(), "{}", blob.number);
        groups
            .entry(blob.group.expect("medium values"))
            .or_default()
            .push(keys);
    }
    assert_eq!(groups.len(), 1, "one compaction writes one group");
    for files in groups.values_mut() {
        assert!(files.len() > 50, "{}", files.len());
        files.sort();
        let ends = files.iter().map(|keys| (keys.first(), keys.last()));
        let ends: Vec<_> = ends.collect();
        assert!(ends.windows(2).all(|w| w[0].1 < w[1].0));
    }
    check(&db, 0..3_000, 300)
}

#[test]
fn groups_that_overlap_too_much_are_written_anew() -> Result<()> {
    let (_dir, db, family) = opened(options(TIERS));
    let mut most = 0;
    for round in 0..20 {
        put(&db, (round..1_000).step_by(20), 300)?;
        db.flush()?;
        to_level(&db, 0, 4)?;
        let groups: std::collections::BTreeSet<_> =
            blobs(&db, &family).iter().map(|b| b.group).collect();
        most = most.max(groups.len());
        assert!(
            groups.len() <= 10,
            "{} groups in round {round}",
            groups.len()
        );
    }
    assert!(most > 5, "they are not written anew at once: {most}");
    check(&db, 0..1_000, 300)
}

#[test]
fn the_tier_survives_opening_and_collection_goes_before_it() -> Result<()> {
    let (dir, db, family) = opened(options(TIERS));
    put(&db, 0..50, 500)?;
    put(&db, 50..60, 3_000)?;
    db.flush()?;
    to_level(&db, 0, 4)?;
    put(&db, 0..10, 500)?;
    db.flush()?;
    to_level(&db, 0, 1)?;
    let before = blobs(&db, &family);
    db.close()?;
    let db = Db::open(dir.path(), options(TIERS))?;
    let family = db.default_family_handle();
    assert_eq!(blobs(&db, &family), before);
    // What is collected goes, of either tier and in any level, into files of its own tier.
    db.set_options(
        &family,
        &[
            ("enable_blob_garbage_collection", "true"),
            ("blob_garbage_collection_age_cutoff", "1.0"),
        ],
    )?;
    db.compact_range_opt(&family, None, None, &forced())?;
    let mut found = tiers(&db, &family);
    found.sort_unstable();
    assert_eq!(found, [(None, 10, 0), (Some(4), 50, 0)]);
    assert!(
        blobs(&db, &family)
            .iter()
            .all(|b| b.number > before[0].number)
    );
    check(&db, 0..50, 500)?;
    // The way back.
    db.set_options(&family, &[("enable_blob_files", "false")])?;
    db.compact_range_opt(&family, None, None, &forced())?;
    assert_eq!(tiers(&db, &family), []);
    check(&db, 0..50, 500)
}

#[test]
fn universal_trees_move_values_into_the_last_two_runs() -> Result<()> {
    let list = format!("{TIERS};compaction_style=kCompactionStyleUniversal");
    let (_dir, db, family) = opened(options(&list));
    put(&db, 0..100, 500)?;
    db.flush()?;
    to_level(&db, 0, 4)?;
    put(&db, 0..20, 500)?;
    db.flush()?;
    to_level(&db, 0, 3)?;
    assert_eq!(tiers(&db, &family), [(Some(4), 100, 0), (Some(3), 20, 0)]);
    put(&db, 0..20, 500)?;
    db.flush()?;
    to_level(&db, 0, 2)?;
    let third = [(Some(4), 100, 0), (Some(3), 20, 0), (Some(0), 20, 0)];
    assert_eq!(tiers(&db, &family), third, "the third run from the end");
    check(&db, 0..100, 500)?;
    // With one level all runs are in level 0.
    let one = "compaction_style=kCompactionStyleUniversal;num_levels=1;min_medium_blob_size=100";
    let (_dir, db, family) = opened(options(one));
    for _ in 0..3 {
        put(&db, 0..20, 500)?;
        db.flush()?;
    }
    db.compact_range_opt(&family, None, None, &forced())?;
    assert_eq!(tiers(&db, &family), [(Some(0), 20, 0)], "the newest stays");
    check(&db, 0..20, 500)
}

#[test]
fn sizes_in_the_wrong_order_are_refused() -> Result<()> {
    for list in [
        "min_medium_blob_size=200;min_large_blob_size=100",
        "min_medium_blob_size=200;min_large_blob_size=200",
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let e = Db::open(dir.path().join("db"), options(list)).expect_err("refused");
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert!(e.to_string().contains("min_large_blob_size"), "{e}");
        assert!(!dir.path().join("db/CURRENT").exists(), "{list}");
    }
    let (_dir, db, family) = opened(options("min_medium_blob_size=200"));
    let set = |value| db.set_options(&family, &[("min_large_blob_size", value)]);
    assert!(set("200").is_err());
    assert!(set("201").is_ok() && set("0").is_ok());
    // Without large values all others are medium. A size alone means nothing.
    put(&db, 0..3, 100_000)?;
    db.flush()?;
    assert_eq!(tiers(&db, &family), [(Some(0), 3, 0)]);
    let (_dir, db, family) = opened(options("min_large_blob_size=50000"));
    put(&db, 0..3, 1_000)?;
    db.flush()?;
    assert_eq!(tiers(&db, &family), [(None, 3, 0)]);
    // Above their first level values stay in tables, of either tier.
    let (_dir, db, family) = opened(options(&format!("{TIERS};blob_file_starting_level=2")));
    put(&db, 0..3, 1_000)?;
    put(&db, 3..6, 5_000)?;
    db.flush()?;
    to_level(&db, 0, 1)?;
    assert_eq!(tiers(&db, &family), []);
    to_level(&db, 1, 2)?;
    let mut found = tiers(&db, &family);
    found.sort_unstable();
    assert_eq!(found, [(None, 3, 0), (Some(2), 3, 0)]);
    Ok(())
}

/// Writes the MANIFEST again without the field of tiers, as RocksDB does.
fn lose_tiers(dir: &Path) -> Result<()> {
    let fs = Env::posix().fs;
    let number = current::read(&*fs, dir)?;
    let mut reader = ManifestReader::open(&*fs, &dir.join(manifest_name(number)))?;
    let mut edits = Vec::new();
    while let Some(group) = reader.next_group()? {
        edits.extend(group.edits);
    }
    let blobs = edits.iter_mut().flat_map(|e| &mut e.blob_additions);
    let lost = blobs.map(|b| std::mem::take(&mut b.tier));
    assert!(lost.filter(|tier| *tier != BlobTier::Unknown).count() > 0);
    let number = FileNo(1_500);
    let mut writer = ManifestWriter::create(&*fs, dir, number, WriteOptions::default(), &edits)?;
    writer.sync()?;
    writer.close()?;
    current::install(&*fs, dir, number)
}

#[test]
fn tiers_that_the_manifest_lost_are_found_in_the_tables() -> Result<()> {
    let (dir, db, family) = opened(options(TIERS));
    put(&db, 0..50, 500)?;
    put(&db, 50..60, 3_000)?;
    db.flush()?;
    to_level(&db, 0, 4)?;
    put(&db, 0..10, 500)?;
    db.flush()?;
    to_level(&db, 0, 1)?;
    let before = blobs(&db, &family);
    assert_eq!(before.iter().filter(|b| b.group.is_some()).count(), 2);
    drop(family);
    db.close()?;
    lose_tiers(dir.path())?;
    // Who does not keep groups looks for none.
    let db = Db::open(dir.path(), options("num_levels=5"))?;
    let found = blobs(&db, &db.default_family_handle());
    assert!(found.iter().all(|b| b.group.is_none()));
    db.close()?;
    let db = Db::open(dir.path(), options(TIERS))?;
    assert_eq!(blobs(&db, &db.default_family_handle()), before);
    db.close()?;
    // Now the MANIFEST tells it again.
    let db = Db::open(dir.path(), options("num_levels=5"))?;
    assert_eq!(blobs(&db, &db.default_family_handle()), before);
    check(&db, 0..50, 500)
}

#[test]
fn a_bound_on_space_holds_with_tiers() -> Result<()> {
    let list = "min_medium_blob_size=100;min_large_blob_size=2000;blob_file_size=200000;\
         disable_auto_compactions=false;max_space_amplification_percent=130;compression=kNoCompression;\
         write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=131072";
    let (_dir, db, family) = opened(options(list));
    let len = |n: u32| if n.is_multiple_of(50) { 3_000 } else { 600 };
    let mut rng = common::Rng::new(5);
    for n in 0..5_000 {
        db.put(key(n), value(n, len(n)))?;
    }
    let live = 4_900 * (600 + FRAME) + 100 * (3_000 + FRAME);
    for round in 0..20_000 {
        let n = rng.below(5_000) as u32;
        db.put(key(n), value(n, len(n)))?;
        if round % 100 == 0 {
            let tables = db.family_metadata(&family).size;
            let taken = tables
                + blobs(&db, &family)
                    .iter()
                    .map(|b| b.total_bytes)
                    .sum::<u64>();
            // Memtables that start a merge are no garbage to the bound, and a plan may pass it.
            let most = (live + tables) * 13 / 10 + 16 * 65_536;
            assert!(taken <= most, "{taken} above {most} in {round}");
        }
    }
    db.wait_for_compaction()?;
    let all = blobs(&db, &family);
    assert!(all.iter().any(|b| b.group.is_some()) && all.iter().any(|b| b.group.is_none()));
    for n in 0..5_000 {
        assert_eq!(db.get(key(n))?.as_deref(), Some(&value(n, len(n))[..]));
    }
    Ok(())
}
