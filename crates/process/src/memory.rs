//! `ESKER_MEMORY`: one budget of memory for all databases and caches of the process.
//!
//! `512M` is a number of bytes (K, M, G, T are powers of 1024). `25%` is a part of what the process
//! may use ([`MemoryLimit`]), and `auto` is half of it, less the heap of a Java machine and what it
//! needs beside it first; both are read again once a minute. A value that cannot be read refuses
//! the open: a program that was to be bounded must not run without a bound. Thread-safety: any
//! thread; the first open decides.

use crate::switches::switches;
use crate::sys::keep_few_free_pages;
use esker::env::MemoryLimit;
use esker::options::DbOptions;
use esker::{BudgetSource, Db, Error, MemoryBudget, MemoryBudgetOptions, Result};
use esker_sync::{Arc, OnceLock};

/// The least budget: below it memtables and caches are of no use.
const LEAST: u64 = 16 << 20;
/// Memory of a Java machine beside its heap: code, classes, threads, and its collector's tables.
const BESIDE_HEAP: u64 = 64 << 20;

/// A value of the variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySwitch {
    /// Bytes.
    Bytes(u64),
    /// Percent of what the process may use.
    Percent(u64),
    /// Half of what the process may use.
    Auto,
}

impl MemorySwitch {
    /// Reads a value. The error is a sentence.
    pub fn parse(text: &str) -> std::result::Result<MemorySwitch, String> {
        let wrong =
            || format!("ESKER_MEMORY={text:?} is none of: a size such as 512M or 2G, 25%, auto");
        let number = |digits: &str| {
            let is_plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let number = is_plain.then(|| digits.parse::<u64>().ok()).flatten();
            number.ok_or_else(wrong)
        };
        if text == "auto" {
            return Ok(MemorySwitch::Auto);
        }
        if let Some(percent) = text.strip_suffix('%') {
            return match number(percent)? {
                percent @ 1..=100 => Ok(MemorySwitch::Percent(percent)),
                _ => Err(format!("ESKER_MEMORY={text:?} is not between 1% and 100%")),
            };
        }
        let units = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];
        let unit = units.iter().find_map(|(name, shift)| {
            let upper = text.strip_suffix(name);
            let digits = upper.or_else(|| text.strip_suffix(&name.to_lowercase()));
            digits.map(|digits| (digits, *shift))
        });
        let (digits, shift) = unit.unwrap_or((text, 0));
        let bytes = number(digits)?.checked_mul(1 << shift).ok_or_else(wrong)?;
        if bytes < LEAST {
            return Err(format!("ESKER_MEMORY={text:?} is less than 16 MB"));
        }
        Ok(MemorySwitch::Bytes(bytes))
    }

    /// Returns the budget under `limit`, of which a Java heap takes `heap` bytes.
    fn bytes_of(self, limit: u64, heap: u64) -> u64 {
        match self {
            MemorySwitch::Bytes(bytes) => bytes,
            MemorySwitch::Percent(percent) => {
                u64::try_from(u128::from(limit) * u128::from(percent) / 100).unwrap_or(limit)
            }
            MemorySwitch::Auto => automatic_budget(limit, heap),
        }
    }
}

/// Returns the bytes of `ESKER_MEMORY=auto` under `limit`, of which a Java heap takes `heap` bytes.
pub fn automatic_budget(limit: u64, heap: u64) -> u64 {
    let rest = limit.saturating_sub(heap);
    let beside = if heap > 0 { BESIDE_HEAP } else { 0 };
    (rest.saturating_sub(beside) / 2).max(LEAST.min(rest / 2))
}

/// The limit of the process as the source of a budget.
#[derive(Debug)]
struct LimitSource {
    switch: MemorySwitch,
    heap: u64,
}

impl LimitSource {
    /// Reads the budget and what it comes from. The error is a sentence.
    fn read(&self) -> std::result::Result<(usize, String), String> {
        let (bytes, source) = match self.switch {
            MemorySwitch::Bytes(bytes) => (bytes, String::new()),
            _ => {
                let limit = MemoryLimit::read()
                    .map_err(|e| format!("ESKER_MEMORY: the limit of the process: {e}"))?;
                let heap = match (self.switch, self.heap) {
                    (MemorySwitch::Auto, 1..) => {
                        format!(
                            ", less the Java heap of {} and what it needs beside",
                            self.heap
                        )
                    }
                    _ => String::new(),
                };
                let source = format!(" of {} in {}{heap}", limit.bytes, limit.source.display());
                (self.switch.bytes_of(limit.bytes, self.heap), source)
            }
        };
        if bytes < LEAST {
            return Err(format!(
                "ESKER_MEMORY: {bytes} bytes{source} is less than 16 MB"
            ));
        }
        Ok((usize::try_from(bytes).unwrap_or(usize::MAX), source))
    }
}

impl BudgetSource for LimitSource {
    fn total(&self) -> Option<usize> {
        self.read().ok().map(|(bytes, _)| bytes)
    }
}

/// The budget of the process.
#[derive(Debug)]
struct ProcessBudget {
    budget: Arc<MemoryBudget>,
    /// The first lines of each LOG.
    note: String,
}

impl ProcessBudget {
    fn make(value: &str, heap: impl FnOnce() -> u64) -> std::result::Result<Self, String> {
        let switch = MemorySwitch::parse(value)?;
        let heap = if switch == MemorySwitch::Auto {
            heap()
        } else {
            0
        };
        let source = LimitSource { switch, heap };
        let (bytes, from) = source.read()?;
        let mut options = MemoryBudgetOptions::with_total(bytes);
        options.is_of_process = true;
        if !matches!(switch, MemorySwitch::Bytes(_)) {
            options.source = Some(Arc::new(source));
        }
        keep_few_free_pages();
        let databases = "for all databases and caches of this process";
        Ok(ProcessBudget {
            budget: MemoryBudget::new(options),
            note: format!("ESKER_MEMORY={value}: {bytes} bytes{from}, {databases}"),
        })
    }
}

/// The budget that the variable asked for when the first database was opened.
static BUDGET: OnceLock<Option<std::result::Result<ProcessBudget, String>>> = OnceLock::new();

/// Has a database that is about to be opened share the budget of the process, if there is one and
/// the program gave none. `heap` returns the most bytes of a Java heap, 0 without one.
///
/// # Errors
/// `InvalidArgument`: the variable cannot be read.
pub fn share_memory(options: &mut DbOptions, heap: impl FnOnce() -> u64) -> Result<()> {
    let decided = BUDGET.get_or_init(|| {
        let value = &switches().memory;
        (!value.is_empty()).then(|| ProcessBudget::make(value, heap))
    });
    match decided {
        None => Ok(()),
        Some(Err(why)) => Err(Error::invalid_argument(why.clone())),
        Some(Ok(process)) => {
            if options.shared_memory_budget.is_none() && options.memory_budget == 0 {
                options.shared_memory_budget = Some(Arc::clone(&process.budget));
            }
            Ok(())
        }
    }
}

/// Writes the budget into the LOG of a database that was opened.
pub(crate) fn log_budget(db: &Db) {
    if let Some(Some(Ok(process))) = BUDGET.get() {
        db.log(esker::options::InfoLogLevel::Info, &process.note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_read() {
        let read = |text: &str| MemorySwitch::parse(text).expect(text);
        assert_eq!(read("auto"), MemorySwitch::Auto);
        assert_eq!(read("25%"), MemorySwitch::Percent(25));
        assert_eq!(read("100%"), MemorySwitch::Percent(100));
        assert_eq!(read("16777216"), MemorySwitch::Bytes(16 << 20));
        assert_eq!(read("16384K"), MemorySwitch::Bytes(16 << 20));
        assert_eq!(read("512m"), MemorySwitch::Bytes(512 << 20));
        assert_eq!(read("2G"), MemorySwitch::Bytes(2 << 30));
        assert_eq!(read("1t"), MemorySwitch::Bytes(1 << 40));
    }

    #[test]
    fn values_that_are_refused_are_quoted() {
        for text in [
            "",
            " ",
            "AUTO",
            "auto ",
            "0",
            "0%",
            "101%",
            "-5",
            "+512M",
            "512MB",
            "512 M",
            "1.5G",
            "M",
            "%",
            "15M",
            "16777215",
            "99999999999T",
            "18446744073709551616",
            "\u{664}M",
            "512M\n",
            "0x10000000",
            "1e9",
            "half",
            "auto%",
            "\\0",
        ] {
            let why = MemorySwitch::parse(text).expect_err(text);
            assert!(why.contains(&format!("{text:?}")), "{why}");
        }
    }

    #[test]
    fn parts_of_a_limit() {
        assert_eq!(MemorySwitch::Auto.bytes_of(1000, 0), 500);
        let auto = |limit: u64, heap: u64| MemorySwitch::Auto.bytes_of(limit << 20, heap << 20);
        assert_eq!(auto(256, 64), 64 << 20);
        assert_eq!(auto(256, 160), 16 << 20, "no less than the least");
        assert_eq!(auto(20, 10), 5 << 20, "nor more than half");
        assert_eq!(auto(1000, 4000), 0);
        assert_eq!(MemorySwitch::Percent(25).bytes_of(1000, 400), 250);
        assert_eq!(MemorySwitch::Percent(100).bytes_of(u64::MAX, 0), u64::MAX);
        let tight = LimitSource {
            switch: MemorySwitch::Auto,
            heap: u64::MAX,
        };
        assert!(tight.read().expect_err("nothing is left").contains("16 MB"));
        assert_eq!(tight.total(), None);
    }
}
