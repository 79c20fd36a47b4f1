//! Bridges from the LOG to what the application logs with: the crates `log` and `tracing`, each
//! behind a feature of its name.
//!
//! A bridge is a [`Logger`]: set `DbOptions`' `info_log`, and it takes the lines instead of the LOG
//! file. Lines have the target `esker`. Events of the LOG have `esker::event`, without their mark:
//! their text is the JSON that `docs/log-events.schema.json` describes. Thread-safety: any thread.

use super::EVENT_LOG_PREFIX;
use super::logger::Logger;
use crate::enums::InfoLogLevel;

/// The JSON of an event, and its name; `None` for any other line.
fn event(line: &str) -> Option<(&str, &str)> {
    let json = line.strip_prefix(EVENT_LOG_PREFIX)?.trim_start();
    let name = json.split("\"event\": \"").nth(1)?.split('"').next()?;
    Some((json, name))
}

/// Passes lines on to the crate `log`.
///
/// ```
/// # #[cfg(feature = "log")] {
/// let mut options = esker::Options::new();
/// options.db.info_log = Some(std::sync::Arc::new(esker::observe::LogLogger));
/// # }
/// ```
#[cfg(feature = "log")]
#[derive(Clone, Copy, Debug, Default)]
pub struct LogLogger;

#[cfg(feature = "log")]
impl Logger for LogLogger {
    fn level(&self) -> InfoLogLevel {
        match log::max_level() {
            log::LevelFilter::Off | log::LevelFilter::Error => InfoLogLevel::Error,
            log::LevelFilter::Warn => InfoLogLevel::Warn,
            log::LevelFilter::Info => InfoLogLevel::Info,
            log::LevelFilter::Debug | log::LevelFilter::Trace => InfoLogLevel::Debug,
        }
    }

    fn log(&self, level: InfoLogLevel, line: &str) {
        let level = match level {
            InfoLogLevel::Debug => log::Level::Debug,
            InfoLogLevel::Warn => log::Level::Warn,
            InfoLogLevel::Error | InfoLogLevel::Fatal => log::Level::Error,
            _ => log::Level::Info,
        };
        match event(line) {
            Some((json, _)) => log::log!(target: "esker::event", level, "{json}"),
            None => log::log!(target: "esker", level, "{line}"),
        }
    }

    fn is_silent(&self) -> bool {
        log::max_level() == log::LevelFilter::Off
    }
}

/// Passes lines on to the crate `tracing`. Events of the LOG have the fields `event`, the name, and
/// `json`.
///
/// ```
/// # #[cfg(feature = "tracing")] {
/// let mut options = esker::Options::new();
/// options.db.info_log = Some(std::sync::Arc::new(esker::observe::TracingLogger));
/// # }
/// ```
#[cfg(feature = "tracing")]
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingLogger;

#[cfg(feature = "tracing")]
impl Logger for TracingLogger {
    fn level(&self) -> InfoLogLevel {
        use tracing::level_filters::LevelFilter;
        match LevelFilter::current() {
            LevelFilter::OFF | LevelFilter::ERROR => InfoLogLevel::Error,
            LevelFilter::WARN => InfoLogLevel::Warn,
            LevelFilter::INFO => InfoLogLevel::Info,
            _ => InfoLogLevel::Debug,
        }
    }

    fn log(&self, level: InfoLogLevel, line: &str) {
        if let Some((json, event)) = event(line) {
            tracing::info!(target: "esker::event", event, json);
            return;
        }
        match level {
            InfoLogLevel::Debug => tracing::debug!(target: "esker", "{line}"),
            InfoLogLevel::Warn => tracing::warn!(target: "esker", "{line}"),
            InfoLogLevel::Error | InfoLogLevel::Fatal => tracing::error!(target: "esker", "{line}"),
            _ => tracing::info!(target: "esker", "{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::EventLine;
    use std::sync::Mutex;

    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

    /// Lines that a bridge passed on since the last call.
    fn passed() -> Vec<String> {
        std::mem::take(&mut LINES.lock().expect("no panic under the lock"))
    }

    fn pass(line: String) {
        LINES.lock().expect("no panic under the lock").push(line);
    }

    fn speak(logger: &dyn Logger) {
        logger.log(InfoLogLevel::Warn, "a {} line");
        logger.log(InfoLogLevel::Header, "a heading");
        logger.log(InfoLogLevel::Fatal, "the end");
        let line = EventLine::new("flush_started", 7, 1).text("cf_name", "\"x\"");
        logger.log(InfoLogLevel::Info, &line.finish());
    }

    const JSON: &str =
        r#"{"time_micros": 1, "job": 7, "event": "flush_started", "cf_name": "\"x\""}"#;

    #[cfg(feature = "log")]
    struct Collector;

    #[cfg(feature = "log")]
    impl log::Log for Collector {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }
        fn log(&self, record: &log::Record<'_>) {
            pass(format!(
                "{} {} {}",
                record.level(),
                record.target(),
                record.args()
            ));
        }
        fn flush(&self) {}
    }

    #[cfg(feature = "tracing")]
    struct Subscriber;

    #[cfg(feature = "tracing")]
    impl tracing::Subscriber for Subscriber {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, event: &tracing::Event<'_>) {
            struct Fields(String);
            impl tracing::field::Visit for Fields {
                fn record_debug(
                    &mut self,
                    field: &tracing::field::Field,
                    value: &dyn std::fmt::Debug,
                ) {
                    self.0 += &format!(" {}={value:?}", field.name());
                }
                fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
                    self.0 += &format!(" {}={value}", field.name());
                }
            }
            let mut fields = Fields(String::new());
            event.record(&mut fields);
            let meta = event.metadata();
            pass(format!("{} {}{}", meta.level(), meta.target(), fields.0));
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    /// One test, since both crates have one receiver for the process.
    #[test]
    fn bridges_pass_lines_and_events_on() {
        #[cfg(feature = "log")]
        {
            log::set_logger(&Collector).expect("no other");
            assert!(LogLogger.is_silent());
            log::set_max_level(log::LevelFilter::Info);
            assert!(!LogLogger.is_silent());
            assert_eq!(LogLogger.level(), InfoLogLevel::Info);
            speak(&LogLogger);
            assert_eq!(
                passed(),
                [
                    "WARN esker a {} line".to_owned(),
                    "INFO esker a heading".to_owned(),
                    "ERROR esker the end".to_owned(),
                    format!("INFO esker::event {JSON}"),
                ]
            );
            log::set_max_level(log::LevelFilter::Off);
        }
        #[cfg(feature = "tracing")]
        tracing::subscriber::with_default(Subscriber, || {
            assert_eq!(TracingLogger.level(), InfoLogLevel::Debug);
            speak(&TracingLogger);
            assert_eq!(
                passed(),
                [
                    "WARN esker message=a {} line".to_owned(),
                    "INFO esker message=a heading".to_owned(),
                    "ERROR esker message=the end".to_owned(),
                    format!("INFO esker::event event=flush_started json={JSON}"),
                ]
            );
        });
    }
}
