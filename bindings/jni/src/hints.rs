//! Hints about threads, and objects that only make RocksDB faster: taken, told, without effect.
//!
//! How many background jobs run at once is decided by `max_background_jobs` and its siblings, on
//! threads of the process that belong to no environment.

use crate::boundary::{Outcome, handles};
use crate::cache::{Cache, OnDevice};
use crate::options::SharedEnv;
use crate::shared::{change, value};
use crate::table_file::FileOptions;
use crate::tuning::Limiter;
use crate::{disposals, natives};
use esker::Options;
use esker::options::{CompactOnDeletion, TablePropertiesCollectorFactory};
use esker_sync::Arc;
use esker_sync::atomic::{AtomicI32, Ordering};
use jni_sys::{jbyte, jdouble, jint, jlong, jobject};

/// The numbers of threads by Java's `Priority`: bottom, low, high, and a last one for all.
static THREADS: [AtomicI32; 4] = [const { AtomicI32::new(0) }; 4];

/// The number of threads for a priority of an environment.
fn threads(world: jlong, priority: jbyte) -> Outcome<&'static AtomicI32> {
    handles::hold::<SharedEnv>(world)?;
    let at = usize::try_from(priority).unwrap_or(0);
    Ok(THREADS.get(at).unwrap_or(&THREADS[3]))
}

/// A limit on the compactions of several families, which limits nothing.
struct Tasks {
    name: String,
    most: AtomicI32,
}

/// A factory of collectors that have tables with many deletions compacted.
struct Deletions(Arc<dyn TablePropertiesCollectorFactory>);

natives! {
    fn Java_org_rocksdb_Env_setBackgroundThreads(env, world: jlong, n: jint, priority: jbyte) {
        threads(world, priority)?.store(n.max(0), Ordering::Relaxed);
        Ok(())
    }

    fn Java_org_rocksdb_Env_getBackgroundThreads(env, world: jlong, priority: jbyte) -> jint {
        Ok(threads(world, priority)?.load(Ordering::Relaxed))
    }

    fn Java_org_rocksdb_Env_incBackgroundThreadsIfNeeded(
        env, world: jlong, n: jint, priority: jbyte
    ) {
        threads(world, priority)?.fetch_max(n, Ordering::Relaxed);
        Ok(())
    }

    /// Work that is due waits in the databases, and not for an environment.
    fn Java_org_rocksdb_Env_getThreadPoolQueueLen(env, world: jlong, priority: jbyte) -> jint {
        threads(world, priority)?;
        Ok(0)
    }

    fn Java_org_rocksdb_Env_lowerThreadPoolIOPriority
        | Java_org_rocksdb_Env_lowerThreadPoolCPUPriority(env, world: jlong, priority: jbyte) {
        threads(world, priority)?;
        Ok(())
    }

    /// No thread belongs to an environment.
    fn Java_org_rocksdb_Env_getThreadList(env, world: jlong) -> jobject {
        handles::hold::<SharedEnv>(world)?;
        env.objects("org/rocksdb/ThreadStatus", 0, |_| Ok(std::ptr::null_mut()))
    }

    /// Nothing is told of threads: the names are empty, as where RocksDB is built without it.
    fn Java_org_rocksdb_ThreadStatus_getThreadTypeName
        | Java_org_rocksdb_ThreadStatus_getOperationName
        | Java_org_rocksdb_ThreadStatus_getOperationStageName
        | Java_org_rocksdb_ThreadStatus_getStateName(env, _number: jbyte) -> jobject {
        env.string("")
    }

    fn Java_org_rocksdb_ThreadStatus_microsToStringNative(env, _micros: jlong) -> jobject {
        env.string("")
    }

    fn Java_org_rocksdb_ThreadStatus_getOperationPropertyName(
        env, _operation: jbyte, _at: jint
    ) -> jobject {
        env.string("")
    }

    fn Java_org_rocksdb_ThreadStatus_interpretOperationProperties(
        env, _operation: jbyte, _properties: jobject
    ) -> jobject {
        env.map(&[])
    }

    /// Calls of the system are not timed.
    fn Java_org_rocksdb_TimedEnv_createTimedEnv(env, world: jlong) -> jlong {
        let world = handles::hold::<SharedEnv>(world)?.0.clone();
        Ok(handles::give(SharedEnv(world)))
    }

    fn Java_org_rocksdb_ConcurrentTaskLimiterImpl_newConcurrentTaskLimiterImpl0(
        env, name: jobject, most: jint
    ) -> jlong {
        let name = env.text(name)?;
        Ok(handles::give(Tasks { name, most: AtomicI32::new(most) }))
    }

    fn Java_org_rocksdb_ConcurrentTaskLimiterImpl_name(env, tasks: jlong) -> jobject {
        env.string(&handles::hold::<Tasks>(tasks)?.name)
    }

    fn Java_org_rocksdb_ConcurrentTaskLimiterImpl_setMaxOutstandingTask(
        env, tasks: jlong, most: jint
    ) {
        handles::hold::<Tasks>(tasks)?.most.store(most, Ordering::Relaxed);
        Ok(())
    }

    fn Java_org_rocksdb_ConcurrentTaskLimiterImpl_resetMaxOutstandingTask(env, tasks: jlong) {
        handles::hold::<Tasks>(tasks)?.most.store(-1, Ordering::Relaxed);
        Ok(())
    }

    fn Java_org_rocksdb_ConcurrentTaskLimiterImpl_outstandingTask(env, tasks: jlong) -> jint {
        handles::hold::<Tasks>(tasks)?;
        Ok(0)
    }

    fn Java_org_rocksdb_Options_setCompactionThreadLimiter
        | Java_org_rocksdb_ColumnFamilyOptions_setCompactionThreadLimiter(
        env, options: jlong, tasks: jlong
    ) {
        value::<Options>(options)?;
        handles::hold_if::<Tasks>(tasks)?;
        Ok(())
    }

    fn Java_org_rocksdb_Options_setRowCache | Java_org_rocksdb_DBOptions_setRowCache(
        env, options: jlong, cache: jlong
    ) {
        value::<Options>(options)?;
        handles::hold_if::<Cache>(cache)?;
        Ok(())
    }

    /// Writers of table files are not limited.
    fn Java_org_rocksdb_EnvOptions_setRateLimiter(env, options: jlong, limiter: jlong) {
        value::<FileOptions>(options)?;
        handles::hold_if::<Limiter>(limiter)?;
        Ok(())
    }

    fn Java_org_rocksdb_PersistentCache_newPersistentCache(
        env, world: jlong, path: jobject, _size: jlong, _logger: jlong, _optimized: bool
    ) -> jlong {
        handles::hold::<SharedEnv>(world)?;
        env.text(path)?;
        Ok(handles::give(OnDevice))
    }

    fn Java_org_rocksdb_TablePropertiesCollectorFactory_newCompactOnDeletionCollectorFactory(
        env, window: jlong, trigger: jlong, ratio: jdouble
    ) -> jlong {
        let size = |n: jlong| usize::try_from(n).unwrap_or(0);
        let mut factory = CompactOnDeletion::new(size(window), size(trigger));
        factory.ratio = ratio;
        Ok(handles::give(Deletions(Arc::new(factory))))
    }

    fn Java_org_rocksdb_Options_setTablePropertiesCollectorFactory(
        env, options: jlong, factories: jobject
    ) {
        let mut all = Vec::new();
        for factory in env.longs(factories)? {
            all.push(Arc::clone(&handles::hold::<Deletions>(factory)?.0));
        }
        change::<Options>(options, |o| o.family.table_properties_collector_factories = all)
    }

    /// New handles on what the options have.
    fn Java_org_rocksdb_Options_tablePropertiesCollectorFactory(
        env, options: jlong
    ) -> jobject {
        let options = value::<Options>(options)?;
        let all = options.family.table_properties_collector_factories.iter();
        let made: Vec<_> = all.map(|f| handles::give(Deletions(Arc::clone(f)))).collect();
        env.new_longs(&made)
    }
}

disposals! {
    SharedEnv: Java_org_rocksdb_TimedEnv_disposeInternal | Java_org_rocksdb_TimedEnv_disposeInternalJni;
    Tasks: Java_org_rocksdb_ConcurrentTaskLimiterImpl_disposeInternal
        | Java_org_rocksdb_ConcurrentTaskLimiterImpl_disposeInternalJni;
    OnDevice: Java_org_rocksdb_PersistentCache_disposeInternal
        | Java_org_rocksdb_PersistentCache_disposeInternalJni;
    Deletions: Java_org_rocksdb_TablePropertiesCollectorFactory_deleteCompactOnDeletionCollectorFactory;
}
