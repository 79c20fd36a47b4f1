//! Event listeners that are written in Java.
//!
//! A listener gets a handle of the database that is good for the time of the call. Events of single
//! file operations, the beginning of a file's creation and the end of a family's handle are not
//! told; the answer of `onErrorRecoveryBegin` stops no recovery.

use crate::boundary::{Env, Method, Outcome, handles, upcall::Target};
use crate::database::Database;
use crate::job_info::{JobInfo, thread};
use crate::natives;
use crate::shared::{change, dispose, value};
use crate::table_properties;
use esker::observe::{
    BackgroundErrorInfo, BackgroundErrorReason, CompactionInfo, EventListener, FlushInfo,
    FlushReason, IngestInfo, MemtableInfo, RecoveryInfo, StallCondition, StallInfo,
    TableFileCreation, TableFileDeletion, TableFileReason,
};
use esker::{Db, DbRef, Options};
use esker_sync::{Arc, Mutex, Rank, Weak};
use jni_sys::{jbyte, jint, jlong, jobject, jvalue};
use std::path::Path;
use std::ptr;

/// The methods that are called, by Java's numbers of events.
const METHODS: [(u32, &str, &str); 12] = [
    (0, "onFlushCompletedProxy", "(JLorg/rocksdb/FlushJobInfo;)V"),
    (1, "onFlushBeginProxy", "(JLorg/rocksdb/FlushJobInfo;)V"),
    (
        2,
        "onTableFileDeleted",
        "(Lorg/rocksdb/TableFileDeletionInfo;)V",
    ),
    (
        3,
        "onCompactionBeginProxy",
        "(JLorg/rocksdb/CompactionJobInfo;)V",
    ),
    (
        4,
        "onCompactionCompletedProxy",
        "(JLorg/rocksdb/CompactionJobInfo;)V",
    ),
    (
        5,
        "onTableFileCreated",
        "(Lorg/rocksdb/TableFileCreationInfo;)V",
    ),
    (7, "onMemTableSealed", "(Lorg/rocksdb/MemTableInfo;)V"),
    (
        9,
        "onExternalFileIngestedProxy",
        "(JLorg/rocksdb/ExternalFileIngestionInfo;)V",
    ),
    (10, "onBackgroundErrorProxy", "(BLorg/rocksdb/Status;)V"),
    (
        11,
        "onStallConditionsChanged",
        "(Lorg/rocksdb/WriteStallInfo;)V",
    ),
    (20, "onErrorRecoveryBeginProxy", "(BLorg/rocksdb/Status;)Z"),
    (21, "onErrorRecoveryCompleted", "(Lorg/rocksdb/Status;)V"),
];

struct JavaListener {
    target: Target,
    /// One for each event that the listener wants to hear of.
    methods: Vec<(u32, Method)>,
}

/// A listener behind a handle.
pub(crate) struct SharedListener(Arc<JavaListener>);

/// Listeners that are alive, by the address of their object: options have only that.
static KNOWN: Mutex<Vec<Weak<JavaListener>>> = Mutex::new(Rank::LEAF, Vec::new());

fn class_of_events(env: Env<'_>, name: &str, descriptor: &str, a: &[jvalue]) -> Outcome<jvalue> {
    Ok(jvalue {
        l: env.construct(&format!("org/rocksdb/{name}"), descriptor, a)?,
    })
}

fn text(env: Env<'_>, text: &str) -> Outcome<jvalue> {
    Ok(jvalue {
        l: env.string(text)?,
    })
}

fn path(env: Env<'_>, path: &Path) -> Outcome<jvalue> {
    text(env, &path.to_string_lossy())
}

impl JavaListener {
    /// Tells of an event. A listener that throws has no caller to throw to.
    fn tell(&self, event: u32, arguments: impl FnOnce(Env<'_>) -> Outcome<Vec<jvalue>>) {
        let Some((_, method)) = self.methods.iter().find(|(number, _)| *number == event) else {
            return;
        };
        let _ = self.target.with(|env, listener| {
            env.reserve(64)?;
            let arguments = arguments(env)?;
            if event == 20 {
                return env.call_bool(listener, *method, &arguments).map(drop);
            }
            env.call_void(listener, *method, &arguments)
        });
    }

    /// As [`JavaListener::tell`], for events whose first argument is the database.
    fn tell_with(
        &self,
        event: u32,
        database: &DbRef,
        info: impl FnOnce(Env<'_>) -> Outcome<jvalue>,
    ) {
        if !self.methods.iter().any(|(number, _)| *number == event) {
            return;
        }
        let Some(db) = Db::of(database) else {
            return;
        };
        let handle = Database::give(db);
        self.tell(event, |env| Ok(vec![jvalue { j: handle }, info(env)?]));
        handles::close_owned(handle);
        handles::take(handle);
    }
}

fn flush_reason(reason: FlushReason) -> jbyte {
    match reason {
        FlushReason::GetLiveFiles => 1,
        FlushReason::ShutDown => 2,
        FlushReason::ExternalFileIngestion => 3,
        FlushReason::ManualCompaction => 4,
        FlushReason::WriteBufferManager => 5,
        FlushReason::WriteBufferFull => 6,
        FlushReason::AutoCompaction => 9,
        FlushReason::ManualFlush => 10,
        FlushReason::ErrorRecovery => 11,
        FlushReason::WalFull => 13,
        FlushReason::TooManyRangeDeletions => 15,
        _ => 0,
    }
}

fn stall(condition: StallCondition) -> jbyte {
    match condition {
        StallCondition::Delayed => 0,
        StallCondition::Stopped => 1,
        _ => 2,
    }
}

fn error_reason(reason: BackgroundErrorReason) -> jbyte {
    match reason {
        BackgroundErrorReason::Flush | BackgroundErrorReason::FlushNoWal => 0,
        BackgroundErrorReason::Compaction => 1,
        BackgroundErrorReason::Memtable => 3,
        _ => 2,
    }
}

fn flush_info(env: Env<'_>, info: &FlushInfo) -> Outcome<jvalue> {
    let properties = match &info.properties {
        Some(properties) => table_properties::object(env, properties)?,
        None => table_properties::object(env, &esker::TableProperties::default())?,
    };
    let arguments = [
        jvalue {
            j: jlong::from(info.family_id),
        },
        text(env, &info.family)?,
        path(env, info.file.as_deref().unwrap_or_else(|| Path::new("")))?,
        jvalue { j: thread() },
        jvalue {
            i: info.job as jint,
        },
        jvalue {
            z: info.triggered_slowdown,
        },
        jvalue {
            z: info.triggered_stop,
        },
        jvalue {
            j: info.smallest_seq.0 as jlong,
        },
        jvalue {
            j: info.largest_seq.0 as jlong,
        },
        jvalue { l: properties },
        jvalue {
            b: flush_reason(info.reason),
        },
    ];
    let descriptor = "(JLjava/lang/String;Ljava/lang/String;JIZZJJLorg/rocksdb/TableProperties;B)V";
    class_of_events(env, "FlushJobInfo", descriptor, &arguments)
}

fn compaction_info(env: Env<'_>, handle: jlong) -> Outcome<jvalue> {
    class_of_events(env, "CompactionJobInfo", "(J)V", &[jvalue { j: handle }])
}

/// The directory of a database's file.
fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or_else(|| Path::new(""))
}

impl EventListener for JavaListener {
    fn on_flush_begin(&self, info: &FlushInfo) {
        self.tell_with(1, &info.database, |env| flush_info(env, info));
    }

    fn on_flush_completed(&self, info: &FlushInfo) {
        self.tell_with(0, &info.database, |env| flush_info(env, info));
    }

    fn on_compaction_begin(&self, info: &CompactionInfo) {
        let handle = JobInfo::give(info);
        self.tell_with(3, &info.database, |env| compaction_info(env, handle));
        handles::take(handle);
    }

    fn on_compaction_completed(&self, info: &CompactionInfo) {
        let handle = JobInfo::give(info);
        self.tell_with(4, &info.database, |env| compaction_info(env, handle));
        handles::take(handle);
    }

    fn on_table_file_created(&self, info: &TableFileCreation) {
        self.tell(5, |env| {
            let reason = match info.reason {
                TableFileReason::Flush => 0,
                TableFileReason::Compaction => 1,
                TableFileReason::Recovery => 2,
                _ => 3,
            };
            let arguments = [
                jvalue {
                    j: info.file_bytes as jlong,
                },
                // What the table says of itself comes with the event of its flush or compaction.
                jvalue { l: ptr::null_mut() },
                jvalue {
                    l: env.status(info.error.as_ref())?,
                },
                path(env, directory(&info.file))?,
                text(env, &info.family)?,
                path(env, &info.file)?,
                jvalue {
                    i: info.job as jint,
                },
                jvalue { b: reason },
            ];
            let text = "Ljava/lang/String;".repeat(3);
            let descriptor =
                format!("(JLorg/rocksdb/TableProperties;Lorg/rocksdb/Status;{text}IB)V");
            let made = class_of_events(env, "TableFileCreationInfo", &descriptor, &arguments)?;
            Ok(vec![made])
        });
    }

    fn on_table_file_deleted(&self, info: &TableFileDeletion) {
        self.tell(2, |env| {
            let arguments = [
                path(env, directory(&info.file))?,
                path(env, &info.file)?,
                jvalue {
                    i: info.job as jint,
                },
                jvalue {
                    l: env.status(info.error.as_ref())?,
                },
            ];
            let descriptor = "(Ljava/lang/String;Ljava/lang/String;ILorg/rocksdb/Status;)V";
            Ok(vec![class_of_events(
                env,
                "TableFileDeletionInfo",
                descriptor,
                &arguments,
            )?])
        });
    }

    fn on_memtable_sealed(&self, info: &MemtableInfo) {
        self.tell(7, |env| {
            let arguments = [
                text(env, &info.family)?,
                jvalue {
                    j: info.first_seq.0 as jlong,
                },
                jvalue {
                    j: info.earliest_seq.0 as jlong,
                },
                jvalue {
                    j: info.entries as jlong,
                },
                jvalue {
                    j: info.deletes as jlong,
                },
            ];
            let descriptor = "(Ljava/lang/String;JJJJ)V";
            Ok(vec![class_of_events(
                env,
                "MemTableInfo",
                descriptor,
                &arguments,
            )?])
        });
    }

    fn on_stall_conditions_changed(&self, info: &StallInfo) {
        self.tell(11, |env| {
            let arguments = [
                text(env, &info.family)?,
                jvalue {
                    b: stall(info.current),
                },
                jvalue {
                    b: stall(info.previous),
                },
            ];
            let descriptor = "(Ljava/lang/String;BB)V";
            Ok(vec![class_of_events(
                env,
                "WriteStallInfo",
                descriptor,
                &arguments,
            )?])
        });
    }

    fn on_external_file_ingested(&self, info: &IngestInfo) {
        self.tell_with(9, &info.database, |env| {
            let arguments = [
                text(env, &info.family)?,
                path(env, &info.external_file)?,
                path(env, &info.internal_file)?,
                jvalue {
                    j: info.global_seq.0 as jlong,
                },
                jvalue {
                    l: table_properties::object(env, &info.properties)?,
                },
            ];
            let text = "Ljava/lang/String;".repeat(3);
            let descriptor = format!("({text}JLorg/rocksdb/TableProperties;)V");
            class_of_events(env, "ExternalFileIngestionInfo", &descriptor, &arguments)
        });
    }

    fn on_background_error(&self, info: &BackgroundErrorInfo) {
        self.tell(10, |env| {
            Ok(vec![
                jvalue {
                    b: error_reason(info.reason),
                },
                jvalue {
                    l: env.status(Some(&info.error))?,
                },
            ])
        });
    }

    fn on_error_recovery_begin(&self, info: &RecoveryInfo) {
        self.tell(20, |env| {
            // What was going on when the error came is not known any more: a flush is what a
            // recovery tries again.
            Ok(vec![
                jvalue { b: 0 },
                jvalue {
                    l: env.status(Some(&info.error))?,
                },
            ])
        });
    }

    fn on_error_recovery_end(&self, info: &RecoveryInfo) {
        self.tell(21, |env| {
            Ok(vec![jvalue {
                l: env.status(Some(&info.error))?,
            }])
        });
    }
}

natives! {
    fn Java_org_rocksdb_AbstractEventListener_createNewEventListener(
        env, wanted: jlong
    ) -> jlong {
        let class = env.class("org/rocksdb/AbstractEventListener")?;
        let mut methods = Vec::new();
        for (number, name, descriptor) in METHODS {
            if wanted >> number & 1 == 1 {
                methods.push((number, env.method(class, name, descriptor)?));
            }
        }
        let target = Target::new(env, env.this())?;
        let listener = Arc::new(JavaListener { target, methods });
        let mut known = KNOWN.lock();
        known.retain(|l| l.strong_count() > 0);
        known.push(Arc::downgrade(&listener));
        drop(known);
        Ok(handles::give(SharedListener(listener)))
    }

    fn Java_org_rocksdb_AbstractEventListener_disposeInternal(env, listener: jlong) {
        dispose::<SharedListener>(listener)
    }

    fn Java_org_rocksdb_Options_setEventListeners | Java_org_rocksdb_DBOptions_setEventListeners(
        env, options: jlong, listeners: jobject
    ) {
        let mut all: Vec<Arc<dyn EventListener>> = Vec::new();
        for listener in env.longs(listeners)? {
            let listener = Arc::clone(&handles::hold::<SharedListener>(listener)?.0);
            all.push(listener);
        }
        change::<Options>(options, |o| o.db.listeners = all)
    }

    fn Java_org_rocksdb_Options_eventListeners | Java_org_rocksdb_DBOptions_eventListeners(
        env, options: jlong
    ) -> jobject {
        let options = value::<Options>(options)?;
        let known: Vec<_> = KNOWN.lock().iter().filter_map(Weak::upgrade).collect();
        let address = |l: &Arc<dyn EventListener>| Arc::as_ptr(l).cast::<()>();
        let all = options.db.listeners.iter().filter_map(|l| {
            known.iter().find(|k| ptr::addr_eq(Arc::as_ptr(k), address(l)))
        });
        let all: Vec<_> = all.collect();
        env.objects("org/rocksdb/AbstractEventListener", all.len(), |at| {
            Ok(env.local(all[at].target.object()))
        })
    }
}
