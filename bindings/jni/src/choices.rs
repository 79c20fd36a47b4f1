//! Filters that are written in Java: of the log while a database is opened, and of the tables that
//! an iterator reads.

use crate::batch::{Batch, Plain};
use crate::boundary::{Env, Method, Outcome, handles, upcall::Target};
use crate::call_options::ReadState;
use crate::natives;
use crate::shared::change;
use crate::table_properties;
use esker::options::TableFilter;
use esker::{Options, WalDecision, WalFilter, WriteBatch};
use esker_sync::Arc;
use jni_sys::{jint, jlong, jobject, jvalue};
use std::collections::BTreeMap;

/// A filter of the log behind a handle.
struct LogFilter(Arc<dyn WalFilter>);

/// A filter of the log that is written in Java.
struct JavaLogFilter {
    target: Target,
    name: String,
    families: Method,
    record: Method,
}

fn entries<K, V>(
    env: Env<'_>,
    all: &BTreeMap<K, V>,
    boxed: impl Fn(&K, &V) -> Outcome<(jobject, jobject)>,
) -> Outcome<jobject> {
    env.reserve(2 * all.len() + 16)?;
    let entries: Outcome<Vec<_>> = all.iter().map(|(key, value)| boxed(key, value)).collect();
    env.map(&entries?)
}

fn integer(env: Env<'_>, n: u32) -> Outcome<jobject> {
    env.construct("java/lang/Integer", "(I)V", &[jvalue { i: n as jint }])
}

impl JavaLogFilter {
    /// The answer of the Java object, which changes the batch behind `new` if it wants another.
    fn ask(&self, number: u64, file_name: &str, [batch, new]: [jlong; 2]) -> Outcome<i16> {
        self.target.with(|env, filter| {
            let name = env.string(file_name)?;
            let arguments = [
                jvalue { j: number as jlong },
                jvalue { l: name },
                jvalue { j: batch },
                jvalue { j: new },
            ];
            env.call_short(filter, self.record, &arguments)
        })
    }
}

impl WalFilter for JavaLogFilter {
    fn name(&self) -> &str {
        &self.name
    }

    fn families(&self, logs: &BTreeMap<u32, u64>, numbers: &BTreeMap<String, u32>) {
        // A filter that throws has no caller to throw to.
        let _ = self.target.with(|env, filter| {
            let logs = entries(env, logs, |id, log| {
                Ok((integer(env, *id)?, env.long(*log)?))
            })?;
            let numbers = entries(env, numbers, |name, id| {
                Ok((env.string(name)?, integer(env, *id)?))
            })?;
            let arguments = [jvalue { l: logs }, jvalue { l: numbers }];
            env.call_void(filter, self.families, &arguments)
        });
    }

    fn record(&self, number: u64, file_name: &str, batch: &WriteBatch) -> WalDecision {
        let lend = |batch| handles::give(Batch::new(Plain { batch }));
        let lent = [lend(batch.clone()), lend(WriteBatch::default())];
        let answer = self.ask(number, file_name, lent);
        let new = handles::find::<Batch>(lent[1]).map(|new| std::mem::take(&mut new.lock().batch));
        lent.into_iter().for_each(|batch| {
            handles::take(batch);
        });
        // The decision, and below it whether the new batch counts.
        match (answer.map(i16::to_be_bytes), new) {
            (Ok([0, 0]), _) => WalDecision::Continue,
            (Ok([0, _]), Some(new)) => WalDecision::Replace(new),
            (Ok([1, _]), _) => WalDecision::Ignore,
            (Ok([2, _]), _) => WalDecision::Stop,
            // Also where the filter throws.
            _ => WalDecision::Corrupted,
        }
    }
}

/// A filter of tables behind a handle.
struct Tables(TableFilter);

natives! {
    fn Java_org_rocksdb_AbstractWalFilter_createNewWalFilter(env) -> jlong {
        // One of the methods is private, and therefore of this class.
        let class = env.class("org/rocksdb/AbstractWalFilter")?;
        let method = env.method(class, "name", "()Ljava/lang/String;")?;
        let name = env.text(env.call_object(env.this(), method, &[])?)?;
        let families = "(Ljava/util/Map;Ljava/util/Map;)V";
        Ok(handles::give(LogFilter(Arc::new(JavaLogFilter {
            target: Target::new(env, env.this())?,
            name,
            families: env.method(class, "columnFamilyLogNumberMap", families)?,
            record: env.method(class, "logRecordFoundProxy", "(JLjava/lang/String;JJ)S")?,
        }))))
    }

    fn Java_org_rocksdb_Options_setWalFilter | Java_org_rocksdb_DBOptions_setWalFilter(
        env, options: jlong, filter: jlong
    ) {
        let filter = Arc::clone(&handles::hold::<LogFilter>(filter)?.0);
        change::<Options>(options, |o| o.db.wal_filter = Some(filter))
    }

    fn Java_org_rocksdb_AbstractTableFilter_createNewTableFilter(env) -> jlong {
        let target = Target::new(env, env.this())?;
        let method = target.method(env, "filter", "(Lorg/rocksdb/TableProperties;)Z")?;
        Ok(handles::give(Tables(TableFilter::new(move |properties| {
            let wanted = target.with(|env, filter| {
                let properties = table_properties::object(env, properties)?;
                env.call_bool(filter, method, &[jvalue { l: properties }])
            });
            // A table whose filter throws is passed over, as in RocksDB.
            wanted.unwrap_or(false)
        }))))
    }

    fn Java_org_rocksdb_ReadOptions_setTableFilter(env, options: jlong, filter: jlong) {
        let filter = handles::hold::<Tables>(filter)?.0.clone();
        change::<ReadState>(options, |o| o.read.table_filter = Some(filter))
    }
}
