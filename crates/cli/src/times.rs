//! Databases with times to live, as their OPTIONS files show them.
//!
//! Nothing in the data says that values end in a time. What does is the merge operator and the
//! filter that such a database is opened with, which RocksDB names in the OPTIONS file.

use esker::options::LoadedOptions;
use esker::{FamilyOptions, Options};
use esker_status::{Error, Result};

const OPERATOR: &str = "TtlMergeOperator";
const FILTER: &str = "TtlCompactionFilterFactory";

/// The seconds that values live, if the options are those of a database with times to live. The
/// remarks on them go, and its own merge operator is set.
pub(crate) fn taken(loaded: &mut LoadedOptions) -> Result<Option<i32>> {
    let is_of_times = |value: &str| {
        let id = member(value, "id").unwrap_or(value);
        id == OPERATOR || id == FILTER
    };
    let (of_times, rest) = std::mem::take(&mut loaded.remarks)
        .into_iter()
        .partition::<Vec<_>, _>(|r| is_of_times(&r.value));
    loaded.remarks = rest;
    let mut seconds = None;
    for remark in &of_times {
        let named = member(&remark.value, "ttl").and_then(|t| t.parse::<i32>().ok());
        seconds = named.or(seconds).or(Some(0));
        let own = member(&remark.value, "user_operator").filter(|o| *o != "nullptr");
        let family = remark.family.as_deref().unwrap_or("default");
        let families = loaded.families.iter_mut();
        let found = families.filter(|(n, _)| n == family).map(|(_, o)| o).next();
        if let (Some(own), Some(options)) = (own, found) {
            set_operator(options, own)?;
        }
    }
    Ok(seconds)
}

fn set_operator(options: &mut FamilyOptions, value: &str) -> Result<()> {
    let mut all = Options::new();
    all.family = options.clone();
    all.set_in_place("merge_operator", value).map_err(|e| {
        let text = format!("the merge operator below {OPERATOR}: {}", e.message());
        Error::new(e.kind(), text).with_hint("--default-options shows values as they are stored")
    })?;
    *options = all.family;
    Ok(())
}

/// The value of a member of `{name=value;...}`, in which values may be of that form.
fn member<'v>(value: &'v str, name: &str) -> Option<&'v str> {
    let inside = value.strip_prefix('{')?.strip_suffix('}')?;
    let (mut depth, mut start) = (0usize, 0usize);
    let mut members = Vec::new();
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => {
                members.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    members.push(&inside[start..]);
    let found = members.into_iter().filter_map(|m| m.split_once('='));
    found.filter(|(n, _)| *n == name).map(|(_, v)| v).next()
}

#[cfg(test)]
mod tests {
    use super::member;

    #[test]
    fn members_of_nested_values_are_found() {
        let value = "{id=TtlMergeOperator;user_operator={id=StringAppendOperator;delimiter=\\:;};}";
        assert_eq!(member(value, "id"), Some("TtlMergeOperator"));
        let own = member(value, "user_operator").expect("a member");
        assert_eq!(own, "{id=StringAppendOperator;delimiter=\\:;}");
        assert_eq!(member(own, "id"), Some("StringAppendOperator"));
        assert_eq!(member("{id=F;ttl=60;}", "ttl"), Some("60"));
        assert_eq!(member("F", "id"), None);
    }
}
