//! Counting what passed, failed and was skipped, and saying so.

use crate::Findings;
use std::collections::BTreeMap;

/// How one test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// With what it said.
    Failed(String),
    /// With the reason.
    Skipped(String),
}

/// The verdicts of a suite, by group (a file, or nothing) and in order.
#[derive(Default)]
pub(super) struct Tally {
    verdicts: Vec<(String, String, Verdict)>,
}

impl Tally {
    pub(super) fn add(&mut self, group: &str, name: &str, verdict: Verdict) {
        let line = match &verdict {
            Verdict::Passed => "passed".to_owned(),
            Verdict::Failed(why) => format!("FAILED  {}", first_line(why)),
            Verdict::Skipped(why) => format!("skipped ({why})"),
        };
        let dot = if group.is_empty() { "" } else { ": " };
        println!("{group}{dot}{name}: {line}");
        self.verdicts.push((group.into(), name.into(), verdict));
    }

    pub(super) fn passed(&self) -> usize {
        self.count(|v| *v == Verdict::Passed)
    }

    fn count(&self, which: impl Fn(&Verdict) -> bool) -> usize {
        self.verdicts.iter().filter(|v| which(&v.2)).count()
    }

    /// Prints the sums, by group and in all; the findings are the failures.
    pub(super) fn close(&self, title: &str) -> Findings {
        let mut groups: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
        let mut findings = Findings::new();
        for (group, name, verdict) in &self.verdicts {
            let sums = groups.entry(group).or_default();
            match verdict {
                Verdict::Passed => sums[0] += 1,
                Verdict::Failed(why) => {
                    sums[1] += 1;
                    findings.push(format!("failed: {group} {name}\n    {}", indent(why)));
                }
                Verdict::Skipped(_) => sums[2] += 1,
            }
        }
        if groups.len() > 1 {
            println!("\n{:<40} passed failed skipped", "by file");
            for (group, [passed, failed, skipped]) in &groups {
                println!("{group:<40} {passed:>6} {failed:>6} {skipped:>7}");
            }
        }
        println!(
            "\n{title}: {} passed, {} failed, {} skipped, of {}",
            self.passed(),
            findings.len(),
            self.count(|v| matches!(v, Verdict::Skipped(_))),
            self.verdicts.len()
        );
        findings
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn indent(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(12);
    lines[from..].join("\n    ")
}
