//! OPTIONS files read into Java's objects: `ConfigOptions`, `OptionsUtil`.

use crate::access::JavaValue;
use crate::boundary::{Env, Outcome, handles};
use crate::cache::Filter;
use crate::options::SharedEnv;
use crate::shared::{SharedValue, change, give, value};
use crate::{disposals, natives};
use esker::options::{
    FamilyOptions, LoadRules, LoadedOptions, TableFormat, TableSettings, load_options_text,
};
use esker::{Error, Options, load_latest_options};
use esker_format::file_name::{FileKind, parse_file_name};
use esker_format::filter::FilterPolicy;
use jni_sys::{jbyte, jdouble, jint, jlong, jobject, jvalue};
use std::path::Path;

/// An OPTIONS file has some kilobytes for each family.
const LARGEST: u64 = 1 << 30;

/// How OPTIONS files are read. The delimiter, the escapes and the level of checks are for other
/// calls, which Java's library does not have: RocksDB reads OPTIONS files without them too.
#[derive(Clone, Default)]
struct LoadRequest {
    ignore_unknown: bool,
    world: Option<esker::Env>,
}

fn rules(ignore_unknown: bool) -> LoadRules {
    LoadRules {
        ignore_unknown,
        ..LoadRules::default()
    }
}

impl LoadRequest {
    fn rules(&self) -> LoadRules {
        rules(self.ignore_unknown)
    }

    fn world(&self) -> esker::Env {
        self.world.clone().unwrap_or_else(esker::Env::posix)
    }
}

fn read_file(path: &str, world: &esker::Env, rules: LoadRules) -> Outcome<LoadedOptions> {
    let path = Path::new(path);
    let bytes = world.fs.read_all(path, LARGEST)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::corruption("an OPTIONS file is not text").with_file(path))?;
    Ok(load_options_text(&text, rules)?)
}

/// A `ColumnFamilyDescriptor` of a family.
pub(crate) fn descriptor(env: Env<'_>, name: &str, family: FamilyOptions) -> Outcome<jobject> {
    let mut own = Options::default();
    own.family = family;
    let name = env.new_array(name.as_bytes())?;
    let own = [jvalue { j: give(own) }];
    let own = env.construct("org/rocksdb/ColumnFamilyOptions", "(J)V", &own)?;
    let arguments = [jvalue { l: name }, jvalue { l: own }];
    let descriptor = "([BLorg/rocksdb/ColumnFamilyOptions;)V";
    let made = env.construct("org/rocksdb/ColumnFamilyDescriptor", descriptor, &arguments)?;
    [name, own].into_iter().for_each(|o| env.forget(o));
    Ok(made)
}

/// Fills the options of a database, and adds a descriptor of each family to a list.
fn fill(env: Env<'_>, loaded: LoadedOptions, options: jlong, families: jobject) -> Outcome<()> {
    let class = env.class("java/util/List")?;
    let add = env.method(class, "add", "(Ljava/lang/Object;)Z")?;
    for (name, family) in loaded.families {
        let made = descriptor(env, &name, family)?;
        env.call_bool(families, add, &[jvalue { l: made }])?;
        env.forget(made);
    }
    change::<Options>(options, |o| o.db = loaded.db)
}

/// The name of the newest OPTIONS file of a database.
fn newest(dir: &str, world: &esker::Env) -> Outcome<String> {
    let none = || {
        Error::not_found("No options files found in the DB directory.").with_file(Path::new(dir))
    };
    let entries = match world.fs.read_dir(Path::new(dir)) {
        Err(e) if e.is_not_found() => return Err(none().into()),
        entries => entries?,
    };
    let numbered = entries.into_iter().filter_map(|entry| {
        let (kind, number) = parse_file_name(&entry.name)?;
        (kind == FileKind::Options).then_some((number, entry.name))
    });
    Ok(numbered.max().ok_or_else(none)?.1)
}

natives! {
    fn Java_org_rocksdb_ConfigOptions_newConfigOptions(env) -> jlong {
        Ok(give(LoadRequest::default()))
    }

    fn Java_org_rocksdb_ConfigOptions_setIgnoreUnknownOptions(env, reading: jlong, ignore: bool) {
        change::<LoadRequest>(reading, |r| r.ignore_unknown = ignore)
    }

    fn Java_org_rocksdb_ConfigOptions_setEnv(env, reading: jlong, world: jlong) {
        let given = handles::hold::<SharedEnv>(world)?.0.clone();
        change::<LoadRequest>(reading, |r| r.world = given)
    }

    fn Java_org_rocksdb_ConfigOptions_setDelimiter(env, reading: jlong, delimiter: jobject) {
        env.text(delimiter)?;
        value::<LoadRequest>(reading)?;
        Ok(())
    }

    fn Java_org_rocksdb_ConfigOptions_setInputStringsEscaped(
        env, reading: jlong, _escaped: bool
    ) {
        value::<LoadRequest>(reading)?;
        Ok(())
    }

    fn Java_org_rocksdb_ConfigOptions_setSanityLevel(env, reading: jlong, _level: jbyte) {
        value::<LoadRequest>(reading)?;
        Ok(())
    }

    fn Java_org_rocksdb_OptionsUtil_loadLatestOptions__JLjava_lang_String_2JLjava_util_List_2(
        env, reading: jlong, path: jobject, options: jlong, families: jobject
    ) {
        let reading = value::<LoadRequest>(reading)?;
        let loaded = load_latest_options(env.text(path)?, &reading.world(), reading.rules())?;
        fill(env, loaded, options, families)
    }

    fn Java_org_rocksdb_OptionsUtil_loadLatestOptions__Ljava_lang_String_2JJLjava_util_List_2Z(
        env, path: jobject, world: jlong, options: jlong, families: jobject, ignore_unknown: bool
    ) {
        let world = handles::hold::<SharedEnv>(world)?.env();
        let loaded = load_latest_options(env.text(path)?, &world, rules(ignore_unknown))?;
        fill(env, loaded, options, families)
    }

    fn Java_org_rocksdb_OptionsUtil_loadOptionsFromFile__JLjava_lang_String_2JLjava_util_List_2(
        env, reading: jlong, path: jobject, options: jlong, families: jobject
    ) {
        let reading = value::<LoadRequest>(reading)?;
        let loaded = read_file(&env.text(path)?, &reading.world(), reading.rules())?;
        fill(env, loaded, options, families)
    }

    fn Java_org_rocksdb_OptionsUtil_loadOptionsFromFile__Ljava_lang_String_2JJLjava_util_List_2Z(
        env, path: jobject, world: jlong, options: jlong, families: jobject, ignore_unknown: bool
    ) {
        let world = handles::hold::<SharedEnv>(world)?.env();
        let loaded = read_file(&env.text(path)?, &world, rules(ignore_unknown))?;
        fill(env, loaded, options, families)
    }

    fn Java_org_rocksdb_OptionsUtil_getLatestOptionsFileName(
        env, path: jobject, world: jlong
    ) -> jobject {
        let world = handles::hold::<SharedEnv>(world)?.env();
        env.string(&newest(&env.text(path)?, &world)?)
    }

    /// The settings of block-based tables, as Java's object; null for other tables.
    fn Java_org_rocksdb_OptionsUtil_readTableFormatConfig(env, options: jlong) -> jobject {
        let family = &value::<Options>(options)?.family;
        match family.table_factory {
            TableFormat::BlockBased => config(env, &family.table),
            _ => Ok(std::ptr::null_mut()),
        }
    }
}

/// Fields as Java's numbers.
macro_rules! numbers {
    ($table:ident: $($field:ident as $letter:ident $ty:ty),* $(,)?) => {
        vec![$(jvalue { $letter: <$ty as JavaValue<_>>::from_field(&$table.$field) }),*]
    };
}

/// A `BlockBasedTableConfig`, by the constructor of 11.8 or the one of 8.10 to 10.4. Its caches are
/// for the caller to choose.
fn config(env: Env<'_>, table: &TableSettings) -> Outcome<jobject> {
    let before = numbers!(table:
        cache_index_and_filter_blocks as z bool,
        cache_index_and_filter_blocks_with_high_priority as z bool,
        pin_l0_filter_and_index_blocks_in_cache as z bool,
        pin_top_level_index_and_filter as z bool,
        index_type as b jbyte,
        data_block_index_type as b jbyte,
        data_block_hash_table_util_ratio as d jdouble,
        checksum as b jbyte,
        no_block_cache as z bool,
        block_size as j jlong,
        block_size_deviation as i jint,
        block_restart_interval as i jint,
        index_block_restart_interval as i jint,
        metadata_block_size as j jlong,
        partition_filters as z bool,
        optimize_filters_for_memory as z bool,
        use_delta_encoding as z bool,
        whole_key_filtering as z bool,
        verify_compression as z bool,
        read_amp_bytes_per_bit as i jint,
        format_version as i jint,
    );
    let middle = numbers!(table:
        separate_key_value_in_data_block as z bool,
        uniform_cv_threshold as d jdouble,
    );
    let index = numbers!(table: enable_index_compression as z bool, block_align as z bool);
    let aligned = numbers!(table:
        super_block_alignment_size as j jlong,
        super_block_alignment_space_overhead_ratio as j jlong,
    );
    let shortening = numbers!(table: index_shortening as b jbyte);
    let search = numbers!(table: index_block_search_type as b jbyte);
    let filter = filter(table.filter_policy.as_ref());
    let class = "org/rocksdb/BlockBasedTableConfig";
    let newest = [
        &*before,
        &*middle,
        &*index,
        &*aligned,
        &*shortening,
        &*search,
        &*filter,
    ];
    let made = env.construct(
        class,
        "(ZZZZBBDBZJIIIJZZZZZIIZDZZJJBBBJD)V",
        &newest.concat(),
    );
    if made.is_ok() {
        return made;
    }
    env.clear();
    let older = [&*before, &*index, &*shortening, &*filter].concat();
    env.construct(class, "(ZZZZBBDBZJIIIJZZZZZIIZZBBJD)V", &older)
}

/// The filter as Java's class names it: its kind, a handle where there is a class, bits for a key.
fn filter(policy: Option<&FilterPolicy>) -> Vec<jvalue> {
    let (kind, handle, bits) = match policy {
        None | Some(FilterPolicy::ReadOnly) => (0, 0, 0.0),
        Some(FilterPolicy::Ribbon {
            millibits_per_key, ..
        }) => (2, 0, f64::from(*millibits_per_key) / 1000.0),
        Some(policy @ FilterPolicy::Bloom { millibits_per_key }) => {
            let bits = f64::from(*millibits_per_key) / 1000.0;
            (1, handles::give(Filter(*policy)), bits)
        }
    };
    vec![jvalue { b: kind }, jvalue { j: handle }, jvalue { d: bits }]
}

disposals! {
    SharedValue<LoadRequest>: Java_org_rocksdb_ConfigOptions_disposeInternal
        | Java_org_rocksdb_ConfigOptions_disposeInternalJni;
}
