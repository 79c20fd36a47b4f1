//! The perf context: counters and times of the calling thread. Its getters are generated.

use crate::boundary::handles;
use crate::natives;
use esker::observe::{PerfContext, PerfLevel, perf_level, set_perf_level};
use esker_sync::OnceLock;
use jni_sys::{jbyte, jlong, jobject};

/// The object behind a handle of the perf context: the calling thread's.
pub(crate) struct Perf;

/// Exports a getter.
macro_rules! figure {
    ($name:ident, $metric:ident) => {
        $crate::natives! {
            fn $name(env, context: jni_sys::jlong) -> jni_sys::jlong {
                $crate::boundary::handles::hold::<$crate::perf::Perf>(context)?;
                let metric = esker::observe::PerfMetric::$metric;
                Ok(esker::observe::PerfContext.get(metric) as jni_sys::jlong)
            }
        }
    };
}

pub(crate) use figure;

natives! {
    fn Java_org_rocksdb_RocksDB_getPerfContextNative(env) -> jlong {
        static HANDLE: OnceLock<jlong> = OnceLock::new();
        Ok(*HANDLE.get_or_init(|| handles::give(Perf)))
    }

    /// Java has no number for the level that times only waits.
    fn Java_org_rocksdb_RocksDB_getPerfLevelNative(env) -> jbyte {
        Ok(match perf_level() {
            PerfLevel::Disable => 1,
            PerfLevel::EnableCount | PerfLevel::EnableWait => 2,
            PerfLevel::EnableTimeExceptForMutex => 3,
            PerfLevel::EnableTimeAndCpuTimeExceptForMutex => 4,
            _ => 5,
        })
    }

    fn Java_org_rocksdb_RocksDB_setPerfLevel(env, level: jbyte) {
        set_perf_level(match level {
            2 => PerfLevel::EnableCount,
            3 => PerfLevel::EnableTimeExceptForMutex,
            4 => PerfLevel::EnableTimeAndCpuTimeExceptForMutex,
            5 => PerfLevel::EnableTime,
            _ => PerfLevel::Disable,
        });
        Ok(())
    }

    fn Java_org_rocksdb_PerfContext_reset(env, context: jlong) {
        handles::hold::<Perf>(context)?;
        PerfContext.reset();
        Ok(())
    }

    fn Java_org_rocksdb_PerfContext_toString(
        env, context: jlong, without_zeros: bool
    ) -> jobject {
        handles::hold::<Perf>(context)?;
        env.string(&PerfContext.report(without_zeros))
    }
}
