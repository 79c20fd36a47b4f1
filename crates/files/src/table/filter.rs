//! The filter of one table: whole or in partitions, of keys, prefixes or both.
//!
//! A filter is recognised by its own bytes, so it is used whatever policy is configured. Prefixes
//! are asked only when the table names the family's extractor: another one cuts other prefixes.

use super::cached::SharedBlock;
use super::options::TableReaderOptions;
use super::partitions::{HandleKind, Partitions};
use esker_format::PrefixExtractor;
use esker_format::block::IndexForm;
use esker_format::footer::BlockHandle;
use esker_format::properties::{FULL_FILTER_BLOCK, PARTITIONED_FILTER_BLOCK, TableProperties};
use std::collections::BTreeMap;

/// Where the filter is and what it may be asked.
#[derive(Debug)]
pub(super) struct TableFilter {
    pub(super) handle: BlockHandle,
    pub(super) partitioned: bool,
    /// The filter, or the top level of a partitioned one, when the reader holds it.
    pub(super) slot: Option<SharedBlock>,
    pub(super) partitions: Partitions,
    pub(super) whole_keys: bool,
    pub(super) prefixes: Option<PrefixExtractor>,
}

impl TableFilter {
    /// The filter that the metaindex names, when it can be asked anything.
    pub(super) fn find(
        meta: &BTreeMap<String, BlockHandle>,
        properties: &TableProperties,
        options: &TableReaderOptions,
    ) -> Option<TableFilter> {
        let (handle, partitioned) = match (
            meta.get(FULL_FILTER_BLOCK),
            meta.get(PARTITIONED_FILTER_BLOCK),
        ) {
            (Some(h), _) => (*h, false),
            (None, Some(h)) => (*h, true),
            (None, None) => return None,
        };
        if !options.order.filters_by_bytes() {
            return None;
        }
        let whole_keys = properties.whole_key_filtering.unwrap_or(true);
        let prefixes = options.prefix_extractor.clone().filter(|e| {
            properties.prefix_filtering.unwrap_or(true)
                && e.name() == properties.prefix_extractor_name
        });
        (whole_keys || prefixes.is_some()).then(|| TableFilter {
            handle,
            partitioned,
            slot: None,
            partitions: Partitions::default(),
            whole_keys,
            prefixes,
        })
    }

    /// Returns the kind of block behind the handle.
    pub(super) fn kind(&self, form: IndexForm) -> HandleKind {
        if self.partitioned {
            HandleKind::Index(IndexForm {
                first_keys: false,
                ..form
            })
        } else {
            HandleKind::Filter
        }
    }

    /// Returns whether point reads ask it for whole keys, and not for prefixes.
    pub(super) fn asks_whole_keys(&self) -> bool {
        self.whole_keys
    }

    /// Returns whether both keys have a prefix, and the same one.
    pub(super) fn same_prefix(&self, a: &[u8], b: &[u8]) -> bool {
        self.prefixes
            .as_ref()
            .is_some_and(|e| e.prefix(a).is_some_and(|p| e.prefix(b) == Some(p)))
    }
}
