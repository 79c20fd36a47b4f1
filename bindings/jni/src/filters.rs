//! Objects that the engine asks about entries: compaction filters and comparators, also those
//! written in Java.

use crate::boundary::{Outcome, handles, stale, upcall::Target};
use crate::natives;
use crate::shared::{SharedValue, dispose, give, value};
use esker::{
    CompactionFilter, CompactionFilterFactory, Comparator, Decision, FilterContext, FilterValue,
    KeyOrder,
};
use esker_sync::Arc;
use jni_sys::{jbyte, jint, jlong, jvalue};
use std::cmp::Ordering;

/// A compaction filter.
pub(crate) struct Filtering(pub(crate) Arc<dyn CompactionFilter>);

/// A factory of compaction filters.
pub(crate) struct Factory(pub(crate) Arc<dyn CompactionFilterFactory>);

/// An order of keys.
pub(crate) struct Order {
    pub(crate) order: KeyOrder,
    is_direct: bool,
}

/// The order behind a handle.
pub(crate) fn order(handle: jlong) -> Outcome<KeyOrder> {
    Ok(handles::hold::<Order>(handle)?.order.clone())
}

/// How a Java comparator wants its keys.
#[derive(Clone)]
pub(crate) struct ComparatorOptions {
    synchronisation: jbyte,
    is_direct: bool,
    reused: jint,
}

/// Removes entries whose value is empty.
struct RemoveEmpty;

impl CompactionFilter for RemoveEmpty {
    fn name(&self) -> &str {
        "RemoveEmptyValueCompactionFilter"
    }

    fn filter(&self, _: u8, _: &[u8], value: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        match value {
            FilterValue::Value([]) => Decision::Remove,
            _ => Decision::Keep,
        }
    }
}

/// Removes the entries of RocketMQ's queues whose messages are gone: those before an offset.
struct QueueFilter {
    first_kept: i64,
}

impl CompactionFilter for QueueFilter {
    fn name(&self) -> &str {
        "RemoveConsumeQueueCompactionFilter"
    }

    fn filter(&self, _: u8, key: &[u8], value: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        // An entry begins with the offset of its message; what is shorter than one is none.
        match value {
            FilterValue::Value(entry) if entry.len() >= 28 && !key.is_empty() => {
                let offset = entry.first_chunk().map(|bytes| i64::from_be_bytes(*bytes));
                match offset {
                    Some(offset) if offset < self.first_kept => Decision::Remove,
                    _ => Decision::Keep,
                }
            }
            _ => Decision::Keep,
        }
    }
}

/// A factory written in Java.
struct JavaFactory {
    target: Target,
    name: String,
}

impl CompactionFilterFactory for JavaFactory {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self, context: &FilterContext) -> Option<Arc<dyn CompactionFilter>> {
        let made = self.target.with(|env, factory| {
            let method = self.target.method(env, "createCompactionFilter", "(ZZ)J")?;
            let arguments = [
                jvalue {
                    z: context.is_full_compaction,
                },
                jvalue {
                    z: context.is_manual_compaction,
                },
            ];
            env.call_long(factory, method, &arguments)
        });
        // A factory that throws filters nothing. What it made is the engine's now.
        let handle = made.ok()?;
        let filter = Arc::clone(&handles::find::<Filtering>(handle)?.0);
        handles::take(handle);
        Some(filter)
    }
}

/// A comparator written in Java.
struct JavaComparator {
    target: Target,
    bridge: Target,
    name: String,
    is_direct: bool,
}

impl Comparator for JavaComparator {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let compared = self.target.with(|env, comparator| {
            let method = env.static_method(
                self.bridge.object(),
                "compareInternal",
                "(Lorg/rocksdb/AbstractComparator;Ljava/nio/ByteBuffer;ILjava/nio/ByteBuffer;I)I",
            )?;
            let arguments = [
                jvalue { l: comparator },
                jvalue {
                    l: env.buffer(a, self.is_direct)?,
                },
                jvalue { i: -1 },
                jvalue {
                    l: env.buffer(b, self.is_direct)?,
                },
                jvalue { i: -1 },
            ];
            env.call_static_int(self.bridge.object(), method, &arguments)
        });
        // A comparator that throws has no answer; the order of bytes is at least an order.
        compared.map_or_else(|_| a.cmp(b), |c| c.cmp(&0))
    }
}

natives! {
    fn Java_org_rocksdb_RemoveEmptyValueCompactionFilter_createNewRemoveEmptyValueCompactionFilter0(
        env
    ) -> jlong {
        Ok(handles::give(Filtering(Arc::new(RemoveEmpty))))
    }

    fn Java_org_rocksdb_RemoveConsumeQueueCompactionFilter_createNewRemoveConsumeQueueCompactionFilter0(
        env, first_kept: jlong
    ) -> jlong {
        Ok(handles::give(Filtering(Arc::new(QueueFilter { first_kept }))))
    }

    fn Java_org_rocksdb_AbstractCompactionFilter_disposeInternal(env, filter: jlong) {
        dispose::<Filtering>(filter)
    }

    fn Java_org_rocksdb_AbstractCompactionFilterFactory_createNewCompactionFilterFactory0(
        env
    ) -> jlong {
        let class = env.class_of(env.this())?;
        let method = env.method(class, "name", "()Ljava/lang/String;")?;
        let name = env.text(env.call_object(env.this(), method, &[])?)?;
        let target = Target::new(env, env.this())?;
        Ok(handles::give(Factory(Arc::new(JavaFactory { target, name }))))
    }

    fn Java_org_rocksdb_AbstractCompactionFilterFactory_disposeInternal(env, factory: jlong) {
        dispose::<Factory>(factory)
    }

    fn Java_org_rocksdb_ComparatorOptions_newComparatorOptions(env) -> jlong {
        Ok(give(ComparatorOptions { synchronisation: 1, is_direct: true, reused: 64 }))
    }

    fn Java_org_rocksdb_ComparatorOptions_reusedSynchronisationType(env, o: jlong) -> jbyte {
        Ok(value::<ComparatorOptions>(o)?.synchronisation)
    }

    fn Java_org_rocksdb_ComparatorOptions_setReusedSynchronisationType(env, o: jlong, n: jbyte) {
        crate::shared::change::<ComparatorOptions>(o, |o| o.synchronisation = n)
    }

    fn Java_org_rocksdb_ComparatorOptions_useDirectBuffer(env, o: jlong) -> bool {
        Ok(value::<ComparatorOptions>(o)?.is_direct)
    }

    fn Java_org_rocksdb_ComparatorOptions_setUseDirectBuffer(env, o: jlong, yes: bool) {
        crate::shared::change::<ComparatorOptions>(o, |o| o.is_direct = yes)
    }

    fn Java_org_rocksdb_ComparatorOptions_maxReusedBufferSize(env, o: jlong) -> jint {
        Ok(value::<ComparatorOptions>(o)?.reused)
    }

    fn Java_org_rocksdb_ComparatorOptions_setMaxReusedBufferSize(env, o: jlong, n: jint) {
        crate::shared::change::<ComparatorOptions>(o, |o| o.reused = n)
    }

    fn Java_org_rocksdb_ComparatorOptions_disposeInternal
        | Java_org_rocksdb_ComparatorOptions_disposeInternalJni(env, o: jlong) {
        dispose::<SharedValue<ComparatorOptions>>(o)
    }

    fn Java_org_rocksdb_AbstractComparator_createNewComparator(env, options: jlong) -> jlong {
        let is_direct = value::<ComparatorOptions>(options)?.is_direct;
        let class = env.class_of(env.this())?;
        let method = env.method(class, "name", "()Ljava/lang/String;")?;
        let name = env.text(env.call_object(env.this(), method, &[])?)?;
        let target = Target::new(env, env.this())?;
        let bridge = env.class("org/rocksdb/AbstractComparatorJniBridge")?;
        let bridge = Target::new(env, bridge)?;
        let comparator = JavaComparator { target, bridge, name, is_direct };
        let order = KeyOrder::Custom(Arc::new(comparator));
        Ok(handles::give(Order { order, is_direct }))
    }

    fn Java_org_rocksdb_AbstractComparator_usingDirectBuffers(env, comparator: jlong) -> bool {
        Ok(handles::hold::<Order>(comparator)?.is_direct)
    }

    /// Objects that call back have this in common, whatever they are.
    fn Java_org_rocksdb_RocksCallbackObject_disposeInternal(env, handle: jlong) {
        if handles::take(handle) {
            return Ok(());
        }
        Err(stale(handle, "callback object"))
    }
}
