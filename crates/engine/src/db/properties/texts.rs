//! Properties that are texts, each one row: its name without the prefix `rocksdb.`, the text, and
//! the named values where it has them.

use super::{
    PropertyMap, cache, compaction, database, jobs, memory, memory_budget, reads, stages, stalls,
    tables,
};
use crate::core::Core;
use crate::family::Family;

/// A property that is a text.
pub(super) struct TextProperty {
    pub(super) name: &'static str,
    pub(super) text: TextOf,
    pub(super) map: Option<MapOf>,
}

/// The function that makes a text. Those with a number take it from the end of the name.
pub(super) enum TextOf {
    Plain(fn(&Core, &Family) -> Option<String>),
    Numbered(fn(&Core, &Family, usize) -> Option<String>),
}

/// The function that makes named values.
pub(super) enum MapOf {
    Plain(fn(&Core, &Family) -> Option<PropertyMap>),
    Numbered(fn(&Core, &Family, usize) -> Option<PropertyMap>),
}

use MapOf::{Numbered as NumberedMap, Plain as Map};
use TextOf::{Numbered, Plain};

const fn row(name: &'static str, text: TextOf) -> TextProperty {
    TextProperty {
        name,
        text,
        map: None,
    }
}

const fn with_map(name: &'static str, text: TextOf, map: MapOf) -> TextProperty {
    TextProperty {
        name,
        text,
        map: Some(map),
    }
}

pub(super) const TEXTS: [TextProperty; 29] = [
    row(
        "num-files-at-level",
        Numbered(|_, f, level| tables::files_at_level(f, level)),
    ),
    row(
        "compression-ratio-at-level",
        Numbered(|_, f, level| tables::compression_ratio(f, level)),
    ),
    row("levelstats", Plain(|_, f| Some(tables::level_stats(f)))),
    row(
        "stats",
        Plain(|c, f| Some(compaction::text(c, f, true, false) + &database::text(c))),
    ),
    with_map(
        "cfstats",
        Plain(|c, f| Some(compaction::text(c, f, true, false))),
        Map(|c, f| Some(compaction::map(c, f))),
    ),
    row(
        "cfstats.periodic",
        Plain(|c, f| Some(compaction::text(c, f, false, true))),
    ),
    row(
        "cfstats-no-file-histogram",
        Plain(|c, f| Some(compaction::text(c, f, false, false))),
    ),
    row(
        "cf-file-histogram",
        Plain(|_, f| Some(compaction::file_histogram(f))),
    ),
    with_map(
        "cf-write-stall-stats",
        Plain(|_, f| Some(compaction::stall_text(f, None))),
        Map(|_, f| Some(compaction::stall_map(f))),
    ),
    with_map(
        "dbstats",
        Plain(|c, _| Some(database::text(c))),
        Map(|c, _| Some(database::map(c))),
    ),
    with_map(
        "db-write-stall-stats",
        Plain(|c, _| Some(database::stall_text(c))),
        Map(|c, _| Some(database::stall_map(c))),
    ),
    with_map(
        "block-cache-entry-stats",
        Plain(cache::text),
        Map(cache::map),
    ),
    with_map(
        "fast-block-cache-entry-stats",
        Plain(cache::text),
        Map(cache::map),
    ),
    row("sstables", Plain(|_, f| Some(tables::sstables(f)))),
    with_map(
        "aggregated-table-properties",
        Plain(|c, f| tables::aggregated_text(c, f, None)),
        Map(|c, f| tables::aggregated_map(c, f, None)),
    ),
    with_map(
        "aggregated-table-properties-at-level",
        Numbered(|c, f, level| tables::aggregated_text(c, f, Some(level))),
        NumberedMap(|c, f, level| tables::aggregated_map(c, f, Some(level))),
    ),
    row(
        "live-sst-files-size-at-temperature",
        Numbered(|_, f, t| Some(tables::bytes_at_temperature(f, t))),
    ),
    row(
        "options-statistics",
        Plain(|c, _| c.services.statistics.as_ref().map(|s| s.to_string())),
    ),
    row("blob-stats", Plain(|_, f| Some(tables::blob_stats(f)))),
    with_map(
        "esker.stalls",
        Plain(|c, _| Some(stalls::text(c))),
        Map(|c, f| Some(stalls::map(c, f))),
    ),
    with_map(
        "esker.compaction-stages",
        Plain(|c, f| Some(stages::text(c, f))),
        Map(|_, f| Some(stages::map(f))),
    ),
    with_map(
        "esker.read-amplification",
        Plain(|_, f| Some(reads::text(f))),
        Map(|_, f| Some(reads::map(f))),
    ),
    with_map(
        "esker.memory",
        Plain(|c, _| Some(memory::text(c))),
        Map(|c, _| Some(memory::map(c))),
    ),
    row(
        "esker.shape",
        Plain(|_, f| Some(esker_lsm::shape::draw(&f.view_guard().version))),
    ),
    row("esker.levels", Plain(|c, f| Some(jobs::levels(c, f)))),
    row("esker.jobs", Plain(|c, _| Some(jobs::text(c)))),
    row(
        "esker.long-readers",
        Plain(|c, _| Some(c.long_readers_text())),
    ),
    row("esker.memory-budget", Plain(|c, _| Some(memory_budget(c)))),
    row("esker.cache-load", Plain(|c, _| Some(cache::load_text(c)))),
];

/// The property of a name without its prefix, and its number.
fn find(name: &str) -> Option<(&'static TextProperty, Option<usize>)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let argument = &name[stem.len()..];
    let number = match argument {
        "" => None,
        digits => Some(digits.parse().ok()?),
    };
    let property = TEXTS.iter().find(|property| property.name == stem)?;
    Some((property, number))
}

/// The text of a property; `None` where there is none.
pub(super) fn text(core: &Core, family: &Family, name: &str) -> Option<String> {
    let (property, number) = find(name)?;
    match (&property.text, number) {
        (Plain(text), None) => text(core, family),
        (Numbered(text), Some(number)) => text(core, family, number),
        _ => None,
    }
}

/// The named values of a property; `None` where there are none.
pub(super) fn map(core: &Core, family: &Family, name: &str) -> Option<PropertyMap> {
    let (property, number) = find(name)?;
    match (property.map.as_ref()?, number) {
        (Map(map), None) => map(core, family),
        (NumberedMap(map), Some(number)) => map(core, family, number),
        _ => None,
    }
}
