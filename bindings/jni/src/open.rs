//! Opening, listing and destroying databases.

use crate::boundary::{Env, Outcome, handles};
use crate::database::{Database, Family};
use crate::natives;
use crate::refusal::not_supported;
use crate::shared::value;
use esker::{Db, FamilyDescriptor, Options};
use jni_sys::{jint, jlong, jobject};

/// The options of a database that is about to be opened, which shares the memory of the process.
pub(crate) fn to_open(env: Env<'_>, options: jlong) -> Outcome<Options> {
    let mut options = Options::clone(&*value::<Options>(options)?);
    esker_process::share_memory(&mut options.db, || heap_max(env).unwrap_or(0))?;
    Ok(options)
}

/// The most bytes of the Java heap.
fn heap_max(env: Env<'_>) -> Outcome<u64> {
    let class = env.class("java/lang/Runtime")?;
    let of_process = env.static_method(class, "getRuntime", "()Ljava/lang/Runtime;")?;
    let runtime = env.call_static_object(class, of_process, &[])?;
    let max_memory = env.method(class, "maxMemory", "()J")?;
    let bytes = env.call_long(runtime, max_memory, &[])?;
    env.forget(runtime);
    env.forget(class);
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Families as Java names them.
pub(crate) fn described(
    env: Env<'_>,
    names: jobject,
    options: jobject,
) -> Outcome<Vec<FamilyDescriptor>> {
    let names = env.each(names, |n| env.array(n))?;
    let options = env.longs(options)?;
    names
        .iter()
        .zip(options)
        .map(|(name, options)| {
            let options = value::<Options>(options)?.family.clone();
            Ok(FamilyDescriptor::new(
                String::from_utf8_lossy(name).into_owned(),
                options,
            ))
        })
        .collect()
}

/// Opening without a list of families is opening the default one: there must be no others.
pub(crate) fn default_only(options: &Options) -> Vec<FamilyDescriptor> {
    vec![FamilyDescriptor::new("default", options.family.clone())]
}

/// The handles of a database that was opened with these families: its own, and then theirs.
pub(crate) fn with_families(
    env: Env<'_>,
    database: Database,
    names: &[String],
) -> Outcome<jobject> {
    let db = database.open()?;
    let families: Vec<Option<_>> = names.iter().map(|n| db.family(n)).collect();
    let handle = handles::give(database);
    let mut all = vec![handle];
    for family in families {
        // Each of them was opened, or opening would have failed.
        all.push(family.map_or(0, |f| handles::give_owned(Family::new(f.into()), handle)));
    }
    env.new_longs(&all)
}

pub(crate) fn names_of(families: &[FamilyDescriptor]) -> Vec<String> {
    families.iter().map(|f| f.name.clone()).collect()
}

/// A database without transactions that is opened for writing.
fn writing(path: &str, options: Options, families: Vec<FamilyDescriptor>) -> Outcome<Database> {
    let space = options.db.sst_file_manager.clone();
    Ok(Database::plain(Db::open_families(path, options, families)?).watched(space))
}

/// As [`writing`], with a time to live for each family.
fn expiring(
    path: &str,
    options: Options,
    families: Vec<(FamilyDescriptor, i32)>,
) -> Outcome<Database> {
    let space = options.db.sst_file_manager.clone();
    Ok(Database::plain(Db::open_families_with_ttl(path, options, families)?).watched(space))
}

/// An error where there are logs that a reader would pass over, if that is asked for.
fn refuse_logs(path: &str, options: &Options, is_asked: bool) -> Outcome<()> {
    if is_asked && Db::has_logs(path, options)? {
        return Err(esker::Error::corruption(
            "Found wal files in read-only database: the call asks for a database without them",
        )
        .into());
    }
    Ok(())
}

natives! {
    fn Java_org_rocksdb_RocksDB_version(env) -> jint {
        Ok((11 << 16) | (8 << 8) | 1)
    }

    fn Java_org_rocksdb_RocksDB_open__JLjava_lang_String_2(
        env, options: jlong, path: jobject
    ) -> jlong {
        let options = to_open(env, options)?;
        let families = default_only(&options);
        Ok(handles::give(writing(&env.text(path)?, options, families)?))
    }

    fn Java_org_rocksdb_RocksDB_open__JLjava_lang_String_2_3_3B_3J(
        env, options: jlong, path: jobject, names: jobject, family_options: jobject
    ) -> jobject {
        let options = to_open(env, options)?;
        let families = described(env, names, family_options)?;
        let names = names_of(&families);
        with_families(env, writing(&env.text(path)?, options, families)?, &names)
    }

    fn Java_org_rocksdb_RocksDB_openROnly__JLjava_lang_String_2Z(
        env, options: jlong, path: jobject, refuses_logs: bool
    ) -> jlong {
        let options = to_open(env, options)?;
        let path = env.text(path)?;
        refuse_logs(&path, &options, refuses_logs)?;
        Ok(Database::give(Db::open_read_only(path, options)?))
    }

    fn Java_org_rocksdb_RocksDB_openROnly__JLjava_lang_String_2_3_3B_3JZ(
        env, options: jlong, path: jobject, names: jobject, family_options: jobject,
        refuses_logs: bool
    ) -> jobject {
        let options = to_open(env, options)?;
        let path = env.text(path)?;
        refuse_logs(&path, &options, refuses_logs)?;
        let families = described(env, names, family_options)?;
        let names = names_of(&families);
        let db = Db::open_families_read_only(path, options, families)?;
        with_families(env, Database::plain(db), &names)
    }

    fn Java_org_rocksdb_RocksDB_openAsSecondary__JLjava_lang_String_2Ljava_lang_String_2(
        env, options: jlong, path: jobject, secondary: jobject
    ) -> jlong {
        let options = to_open(env, options)?;
        let (path, secondary) = (env.text(path)?, env.text(secondary)?);
        Ok(Database::give(Db::open_secondary(path, secondary, options)?))
    }

    fn Java_org_rocksdb_RocksDB_openAsSecondary__JLjava_lang_String_2Ljava_lang_String_2_3_3B_3J(
        env, options: jlong, path: jobject, secondary: jobject, names: jobject,
        family_options: jobject
    ) -> jobject {
        let options = to_open(env, options)?;
        let families = described(env, names, family_options)?;
        let names = names_of(&families);
        let (path, secondary) = (env.text(path)?, env.text(secondary)?);
        let db = Db::open_families_secondary(path, secondary, options, families)?;
        with_families(env, Database::plain(db), &names)
    }

    /// Nothing where there is no database, as RocksDB's own library says it.
    fn Java_org_rocksdb_RocksDB_listColumnFamilies(
        env, options: jlong, path: jobject
    ) -> jobject {
        let options = value::<Options>(options)?;
        let names = Db::list_families(env.text(path)?, &options).unwrap_or_default();
        env.arrays(&names)
    }

    fn Java_org_rocksdb_TtlDB_open(
        env, options: jlong, path: jobject, seconds: jint, read_only: bool
    ) -> jlong {
        let options = to_open(env, options)?;
        let path = env.text(path)?;
        if read_only {
            return Ok(Database::give(Db::open_read_only_with_ttl(path, options)?));
        }
        let families = default_only(&options).into_iter().map(|f| (f, seconds)).collect();
        Ok(handles::give(expiring(&path, options, families)?))
    }

    fn Java_org_rocksdb_TtlDB_openCF(
        env, options: jlong, path: jobject, names: jobject, family_options: jobject,
        seconds: jobject, read_only: bool
    ) -> jobject {
        if read_only {
            return Err(not_supported("a TtlDB with families that is read only").into());
        }
        let options = to_open(env, options)?;
        let families = described(env, names, family_options)?;
        let names = names_of(&families);
        let families = families.into_iter().zip(env.ints(seconds)?).collect();
        with_families(env, expiring(&env.text(path)?, options, families)?, &names)
    }

    fn Java_org_rocksdb_TtlDB_createColumnFamilyWithTtl(
        env, db: jlong, name: jobject, options: jlong, seconds: jint
    ) -> jlong {
        let name = env.array(name)?;
        let options = value::<Options>(options)?.family.clone();
        let database = handles::hold::<Database>(db)?;
        let name = String::from_utf8_lossy(&name);
        let made = database.open()?.create_family_with_ttl(&name, options, seconds)?;
        Ok(handles::give_owned(Family::new(made), db))
    }

    fn Java_org_rocksdb_RocksDB_destroyDB(env, path: jobject, options: jlong) {
        Db::destroy(env.text(path)?, &*value::<Options>(options)?)?;
        Ok(())
    }
}
