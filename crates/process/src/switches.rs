//! Every environment variable that the libraries read: the one place that reads them.
//!
//! All are read at once, when the first database is opened, by `secure_getenv`: a program that runs
//! with more rights than its caller (set-uid) has none of them. Later changes of the environment
//! have no effect. Thread-safety: any thread; the first one reads.

use crate::sys::secure_variable;
use esker_sync::OnceLock;

/// The switches of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// `ESKER_STATS`: where statistics are served; empty for nowhere.
    pub stats: String,
    /// `ESKER_MEMORY`: the budget of all databases; empty for none.
    pub memory: String,
    /// `ESKER_STATS_REMOTE=1`: other machines may ask for them.
    pub stats_remote: bool,
}

impl Switches {
    fn read() -> Switches {
        let text = |name: &str| {
            let value = secure_variable(name).unwrap_or_default();
            value.to_string_lossy().into_owned()
        };
        Switches {
            memory: text("ESKER_MEMORY"),
            stats: text("ESKER_STATS"),
            stats_remote: text("ESKER_STATS_REMOTE") == "1",
        }
    }
}

/// The switches as they were when this was called first.
pub fn switches() -> &'static Switches {
    static SWITCHES: OnceLock<Switches> = OnceLock::new();
    SWITCHES.get_or_init(Switches::read)
}
