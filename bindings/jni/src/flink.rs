//! Flink's compaction filter, which removes state whose time to live is over. Its own build of the
//! Java library (`frocksdbjni`) has it beside RocksDB's methods.
//!
//! A value of state begins with the time of its last access in milliseconds, big-endian. Elements
//! of a list follow each other: they have one length, or a Java object knows where each ends.
//! Values that are too short for a time are kept.

use crate::boundary::{Outcome, handles, upcall::Target};
use crate::filters::Filtering;
use crate::logger::Logging;
use crate::natives;
use crate::shared::dispose;
use esker::{CompactionFilter, Decision, FilterValue};
use esker_sync::atomic::{AtomicI64, Ordering};
use esker_sync::{Arc, OnceLock};
use jni_sys::{jint, jlong, jobject, jvalue};

const TIME_BYTES: usize = 8;

/// The kind of state that a value holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Disabled,
    Value,
    List,
}

/// How the elements of a list are told apart.
enum ListFormat {
    /// The value is one element.
    One,
    /// Elements of this many bytes.
    Fixed(usize),
    /// A Java object makes what tells.
    Java(Target),
}

/// The configuration that Flink gives once for a kind of state.
struct Config {
    state: State,
    timestamp_at: usize,
    ttl_ms: i64,
    /// The clock is asked again after this many entries.
    clock_every: i64,
    elements: ListFormat,
}

/// The place for a configuration; filters that were made before it is filled keep everything.
pub(crate) struct Holder(Arc<OnceLock<Config>>);

/// A filter of one compaction.
struct TtlFilter {
    config: Arc<OnceLock<Config>>,
    clock: Target,
    now_ms: AtomicI64,
    /// Entries since the clock was asked.
    asked_before: AtomicI64,
    /// A list element filter of Java's, made by the first list; `None` if none could be made.
    list: OnceLock<Option<Target>>,
}

/// Returns whether the time at `at` and the time to live are over.
fn is_expired(value: &[u8], at: usize, ttl_ms: i64, now_ms: i64) -> Option<bool> {
    let bytes = value.get(at..at.checked_add(TIME_BYTES)?)?;
    let time = i64::from_be_bytes(bytes.try_into().ok()?);
    Some(time.saturating_add(ttl_ms) <= now_ms)
}

impl TtlFilter {
    fn now_ms(&self, config: &Config) -> i64 {
        let since = self.asked_before.fetch_add(1, Ordering::Relaxed);
        if since < config.clock_every {
            return self.now_ms.load(Ordering::Relaxed);
        }
        self.asked_before.store(1, Ordering::Relaxed);
        let asked = self.clock.with(|env, clock| {
            let method = self.clock.method(env, "currentTimestamp", "()J")?;
            env.call_long(clock, method, &[])
        });
        // A clock that throws has no answer: the time stays what it was, and nothing expires early.
        if let Ok(now) = asked {
            self.now_ms.store(now, Ordering::Relaxed);
        }
        self.now_ms.load(Ordering::Relaxed)
    }

    /// Where the first element that is to stay begins; `None` to keep the list as it is.
    fn first_alive(&self, config: &Config, list: &[u8], now_ms: i64) -> Option<usize> {
        match &config.elements {
            // Such a list is decided as a value is.
            ListFormat::One => None,
            ListFormat::Fixed(size) => {
                let mut at = 0;
                while at < list.len() {
                    match is_expired(list, at, config.ttl_ms, now_ms) {
                        Some(true) => at = at.checked_add(*size)?,
                        _ => break,
                    }
                }
                Some(at)
            }
            ListFormat::Java(factory) => {
                let filter = self.list.get_or_init(|| list_filter(factory).ok());
                let filter = filter.as_ref()?;
                let offset = filter.with(|env, object| {
                    let method = filter.method(env, "nextUnexpiredOffset", "([BJJ)I")?;
                    let arguments = [
                        jvalue {
                            l: env.new_array(list)?,
                        },
                        jvalue { j: config.ttl_ms },
                        jvalue { j: now_ms },
                    ];
                    env.call_int(object, method, &arguments)
                });
                // A filter that throws removes nothing.
                usize::try_from(offset.ok()?).ok()
            }
        }
    }
}

fn list_filter(factory: &Target) -> Outcome<Target> {
    factory.with(|env, object| {
        let method = "()Lorg/rocksdb/FlinkCompactionFilter$ListElementFilter;";
        let method = factory.method(env, "createListElementFilter", method)?;
        Target::new(env, env.call_object(object, method, &[])?)
    })
}

impl CompactionFilter for TtlFilter {
    fn name(&self) -> &str {
        "FlinkCompactionFilter"
    }

    fn filter(&self, _: u8, _: &[u8], value: FilterValue<'_>, out: &mut Vec<u8>) -> Decision {
        let Some(config) = self.config.get() else {
            return Decision::Keep;
        };
        let now_ms = self.now_ms(config);
        let bytes = match (config.state, value) {
            (State::Value | State::List, FilterValue::Value(bytes))
            | (State::List, FilterValue::MergeOperand(bytes)) => bytes,
            _ => return Decision::Keep,
        };
        if config.state == State::List && !matches!(config.elements, ListFormat::One) {
            if is_expired(bytes, 0, config.ttl_ms, now_ms) != Some(true) {
                return Decision::Keep;
            }
            return match self.first_alive(config, bytes, now_ms) {
                None | Some(0) => Decision::Keep,
                Some(at) if at >= bytes.len() => Decision::Remove,
                Some(at) => {
                    out.extend_from_slice(&bytes[at..]);
                    Decision::ChangeValue
                }
            };
        }
        match is_expired(bytes, config.timestamp_at, config.ttl_ms, now_ms) {
            Some(true) => Decision::Remove,
            _ => Decision::Keep,
        }
    }
}

natives! {
    fn Java_org_rocksdb_FlinkCompactionFilter_createNewFlinkCompactionFilterConfigHolder(
        env
    ) -> jlong {
        Ok(handles::give(Holder(Arc::new(OnceLock::new()))))
    }

    fn Java_org_rocksdb_FlinkCompactionFilter_disposeFlinkCompactionFilterConfigHolder(
        env, holder: jlong
    ) {
        dispose::<Holder>(holder)
    }

    /// False if it was done before.
    fn Java_org_rocksdb_FlinkCompactionFilter_configureFlinkCompactionFilter(
        env, holder: jlong, state: jint, timestamp_at: jint, ttl_ms: jlong, clock_every: jlong,
        element: jint, factory: jobject
    ) -> bool {
        let elements = match (element, factory.is_null()) {
            (1.., _) => ListFormat::Fixed(element as usize),
            (_, true) => ListFormat::One,
            _ => ListFormat::Java(Target::new(env, factory)?),
        };
        let config = Config {
            state: match state {
                1 => State::Value,
                2 => State::List,
                _ => State::Disabled,
            },
            timestamp_at: crate::boundary::count(timestamp_at)?,
            ttl_ms,
            clock_every,
            elements,
        };
        Ok(handles::hold::<Holder>(holder)?.0.set(config).is_ok())
    }

    fn Java_org_rocksdb_FlinkCompactionFilter_createNewFlinkCompactionFilter0(
        env, holder: jlong, clock: jobject, logger: jlong
    ) -> jlong {
        // Decisions are not logged: the logger has only to be one.
        handles::hold_if::<Logging>(logger)?;
        let config = Arc::clone(&handles::hold::<Holder>(holder)?.0);
        Ok(handles::give(Filtering(Arc::new(TtlFilter {
            config,
            clock: Target::new(env, clock)?,
            now_ms: AtomicI64::new(i64::MIN),
            asked_before: AtomicI64::new(i64::MAX),
            list: OnceLock::new(),
        }))))
    }
}
