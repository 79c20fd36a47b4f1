//! The names of all options.

use super::{
    CompressionSettings, DbOptions, FamilyOptions, FifoSettings, MetadataCacheSettings, OptionSet,
    RETIRED, TableSettings, UniversalSettings, nearest,
};

fn names_of<S: OptionSet>() -> impl Iterator<Item = &'static str> {
    S::entries().iter().map(|e| e.info.name)
}

/// All names, by section.
pub fn all() -> Vec<&'static str> {
    names_of::<DbOptions>()
        .chain(names_of::<FamilyOptions>())
        .chain(names_of::<TableSettings>())
        .chain(names_of::<CompressionSettings>())
        .chain(names_of::<UniversalSettings>())
        .chain(names_of::<FifoSettings>())
        .chain(names_of::<MetadataCacheSettings>())
        .collect()
}

/// Returns whether there is, or was, an option of this name.
pub fn is_known(name: &str) -> bool {
    let name = name.rsplit('.').next().unwrap_or(name);
    RETIRED.iter().any(|r| r.name == name) || all().contains(&name)
}

/// The names that somebody may have meant by one that there is not.
///
/// ```
/// let meant = esker::options::names::suggestion("write_bufer_size");
/// assert_eq!(meant.as_deref(), Some("did you mean write_buffer_size?"));
/// ```
pub fn suggestion(name: &str) -> Option<String> {
    nearest::suggestion(name, all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_its_name() {
        for (given, meant) in [
            ("write_bufer_size", "did you mean write_buffer_size?"),
            (
                "compression_type",
                "what db_bench and ldb call compression.",
            ),
            ("compresion_type", "did you mean compression, which"),
            ("compresion", "did you mean compression?"),
            ("blob", "enable_blob_files"),
            ("filter", "filter_policy"),
            ("qqq", "did you mean"),
        ] {
            let said = suggestion(given).expect("a suggestion");
            assert!(said.contains(meant), "{given}: {said}");
        }
    }
}
