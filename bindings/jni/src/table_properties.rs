//! The properties of tables, as Java reads them.

use crate::boundary::{Env, Outcome, handles};
use crate::database::Database;
use crate::natives;
use crate::slice::Slice;
use esker::{Db, FamilyHandle, LiveFileMeta, TableProperties, read_table_properties};
use esker_sync::Arc;
use jni_sys::{jlong, jobject, jvalue};
use std::collections::BTreeMap;

/// A `Map<String, String>`.
fn text_map(env: Env<'_>, all: &BTreeMap<Vec<u8>, Vec<u8>>) -> Outcome<jobject> {
    env.reserve(all.len() * 2 + 16)?;
    let mut entries = Vec::with_capacity(all.len());
    for (name, value) in all {
        let text = |bytes: &[u8]| env.string(&String::from_utf8_lossy(bytes));
        entries.push((text(name)?, text(value)?));
    }
    let map = env.map(&entries)?;
    for (name, value) in entries {
        env.forget(name);
        env.forget(value);
    }
    Ok(map)
}

/// An `org.rocksdb.TableProperties`.
pub(crate) fn object(env: Env<'_>, p: &TableProperties) -> Outcome<jobject> {
    let numbers = [
        p.data_size,
        p.index_size,
        p.index_partitions,
        p.top_level_index_size,
        u64::from(p.index_key_is_user_key),
        u64::from(p.index_value_is_delta_encoded),
        p.filter_size,
        p.raw_key_size,
        p.raw_value_size,
        p.num_data_blocks,
        p.num_entries,
        p.num_deletions,
        p.num_merge_operands,
        p.num_range_deletions,
        p.format_version,
        p.fixed_key_len,
        p.column_family_id,
        p.creation_time,
        p.oldest_key_time,
        p.slow_compression_estimated_data_size,
        p.fast_compression_estimated_data_size,
        // Where a file's global sequence number stands in it: nowhere, as in RocksDB's own files.
        0,
    ];
    let mut arguments: Vec<jvalue> = numbers.iter().map(|n| jvalue { j: *n as jlong }).collect();
    let mut objects = vec![env.new_array(p.column_family_name.as_bytes())?];
    for text in [
        &p.filter_policy_name,
        &p.comparator_name,
        &p.merge_operator_name,
        &p.prefix_extractor_name,
        &p.property_collectors_names,
        &p.compression_name,
    ] {
        objects.push(env.string(text)?);
    }
    objects.push(text_map(env, &p.user_collected)?);
    objects.push(text_map(env, &BTreeMap::new())?);
    arguments.extend(objects.iter().map(|o| jvalue { l: *o }));
    let text = "Ljava/lang/String;".repeat(6);
    let map = "Ljava/util/Map;";
    let descriptor = format!("({}[B{text}{map}{map})V", "J".repeat(22));
    let made = env.construct("org/rocksdb/TableProperties", &descriptor, &arguments)?;
    objects.into_iter().for_each(|o| env.forget(o));
    Ok(made)
}

/// Tables by name.
pub(crate) fn map(env: Env<'_>, all: &[(String, Arc<TableProperties>)]) -> Outcome<jobject> {
    env.reserve(all.len() * 2 + 16)?;
    let mut entries = Vec::with_capacity(all.len());
    for (name, properties) in all {
        entries.push((env.string(name)?, object(env, properties)?));
    }
    env.map(&entries)
}

/// The properties of a family's tables, by their paths. A table that went meanwhile is left out.
fn of_family(
    db: &Db,
    family: &FamilyHandle,
    wanted: impl Fn(&LiveFileMeta) -> bool,
) -> Outcome<Vec<(String, Arc<TableProperties>)>> {
    let mut all = Vec::new();
    for file in db.live_files_metadata() {
        if file.family != family.name() || !wanted(&file) {
            continue;
        }
        let path = file.directory.join(file.name.trim_start_matches('/'));
        match read_table_properties(db.env(), &path) {
            Ok(properties) => all.push((path.to_string_lossy().into_owned(), Arc::new(properties))),
            Err(_) if !db.env().fs.exists(&path)? => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

natives! {
    fn Java_org_rocksdb_RocksDB_getPropertiesOfAllTables(
        env, db: jlong, family: jlong
    ) -> jobject {
        let database = handles::hold::<Database>(db)?;
        let all = database.with_family(family, |db, f| of_family(db, f, |_| true))?;
        map(env, &all)
    }

    /// Of tables with a key in one of the ranges, which are pairs of slices.
    fn Java_org_rocksdb_RocksDB_getPropertiesOfTablesInRange(
        env, db: jlong, family: jlong, edges: jobject
    ) -> jobject {
        let mut bounds = Vec::new();
        for edge in env.longs(edges)? {
            bounds.push(handles::hold::<Slice>(edge)?.bytes());
        }
        let database = handles::hold::<Database>(db)?;
        let all = database.with_family(family, |db, f| {
            let order = f.order();
            of_family(db, f, |file| {
                bounds.chunks_exact(2).any(|range| {
                    order.compare(&file.smallest_key, &range[1]).is_le()
                        && order.compare(&file.largest_key, &range[0]).is_ge()
                })
            })
        })?;
        map(env, &all)
    }
}
