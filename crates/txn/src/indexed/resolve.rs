//! Resolves the records of a batch for one key, alone or over a database.

use super::index::{KeyIndex, NONE};
use esker::merge_operator::{Base, full_merge};
use esker::{Error, FamilyHandle, Result};
use esker_format::ValueType;
use esker_format::batch::{Record, Records};
use esker_format::wide_column::{self, Column};

/// A value as a read finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A plain value.
    Plain(Vec<u8>),
    /// An encoded wide-column entity.
    Entity(Vec<u8>),
}

impl Value {
    /// As a plain value: of an entity, the default column.
    pub(crate) fn into_plain(self) -> Result<Vec<u8>> {
        match self {
            Value::Plain(v) => Ok(v),
            Value::Entity(e) => {
                Ok(wide_column::default_column(&e)?.map_or_else(Vec::new, |c| c.value.to_vec()))
            }
        }
    }

    /// As an encoded entity: a plain value becomes the default column.
    pub(crate) fn into_entity(self) -> Result<Vec<u8>> {
        match self {
            Value::Entity(e) => Ok(e),
            Value::Plain(v) => {
                let mut out = Vec::new();
                wide_column::encode(&[Column::new(b"", &v)], &mut out)?;
                Ok(out)
            }
        }
    }

    /// An entity that a database gave: one that has nothing but a default column is a plain value.
    pub(crate) fn of_entity(entity: Vec<u8>) -> Result<Value> {
        let columns = wide_column::decode(&entity)?;
        match columns.as_slice() {
            [only] if only.name.is_empty() => Ok(Value::Plain(only.value.to_vec())),
            _ => Ok(Value::Entity(entity)),
        }
    }
}

/// The value under the operands of a key in a batch.
#[derive(Debug)]
pub(super) enum BaseValue {
    /// Nothing: the database decides.
    Nothing,
    Deleted,
    Value(Value),
}

/// The records of one key that count.
#[derive(Debug)]
pub(super) struct Latest {
    /// Newest first.
    operands: Vec<Vec<u8>>,
    under: BaseValue,
}

/// The state of a key in a batch alone.
#[derive(Debug)]
pub(crate) enum InBatch {
    /// Nothing.
    Absent,
    Deleted,
    Value(Value),
    /// Operands, newest first, that wait for what the database holds.
    Operands(Vec<Vec<u8>>),
}

/// The record that begins at `at`.
pub(super) fn record_at(rep: &[u8], at: usize) -> Result<Record<'_>> {
    let body = rep.get(at..).unwrap_or_default();
    Records::over_body(body).next().unwrap_or_else(|| {
        Err(Error::corruption(
            "the batch ends before a record of its index",
        ))
    })
}

impl Latest {
    /// Of a key without records.
    pub(super) fn nothing() -> Latest {
        Latest {
            operands: Vec::new(),
            under: BaseValue::Nothing,
        }
    }

    /// Of `node`; with [`NONE`] there is nothing.
    pub(super) fn of(index: &KeyIndex, rep: &[u8], node: u32) -> Result<Latest> {
        let mut latest = Latest::nothing();
        if node == NONE {
            return Ok(latest);
        }
        for at in index.updates(node) {
            latest.under = match record_at(rep, at)? {
                Record::Put { value, .. } => BaseValue::Value(Value::Plain(value.to_vec())),
                Record::PutEntity { entity, .. } => {
                    BaseValue::Value(Value::Entity(entity.to_vec()))
                }
                Record::Delete { .. } | Record::SingleDelete { .. } => BaseValue::Deleted,
                Record::Merge { operand, .. } => {
                    latest.operands.push(operand.to_vec());
                    continue;
                }
                _ => {
                    return Err(Error::corruption(
                        "Unexpected entry in WriteBatchWithIndex: a record that is not indexed",
                    ));
                }
            };
            break;
        }
        Ok(latest)
    }

    /// Merges what can be merged without a database.
    pub(super) fn settle(self, family: Option<&FamilyHandle>, key: &[u8]) -> Result<InBatch> {
        let Latest { operands, under } = self;
        if operands.is_empty() {
            return Ok(match under {
                BaseValue::Nothing => InBatch::Absent,
                BaseValue::Deleted => InBatch::Deleted,
                BaseValue::Value(v) => InBatch::Value(v),
            });
        }
        match under {
            BaseValue::Nothing => Ok(InBatch::Operands(operands)),
            BaseValue::Deleted => merge(family, key, None, &operands).map(InBatch::Value),
            BaseValue::Value(v) => merge(family, key, Some(&v), &operands).map(InBatch::Value),
        }
    }
}

/// Applies operands (newest first) to `base`.
pub(crate) fn merge(
    family: Option<&FamilyHandle>,
    key: &[u8],
    base: Option<&Value>,
    newest_first: &[Vec<u8>],
) -> Result<Value> {
    let family = family.ok_or_else(|| Error::invalid_argument("Must provide a column family"))?;
    let operator = family
        .merge_operator()
        .ok_or_else(|| Error::invalid_argument("Merge operator must be set for column family"))?;
    let operands: Vec<&[u8]> = newest_first.iter().rev().map(Vec::as_slice).collect();
    let base = match base {
        None => Base::None,
        Some(Value::Plain(v)) => Base::Value(v),
        Some(Value::Entity(e)) => Base::Entity(e),
    };
    let mut out = Vec::new();
    match full_merge(&*operator, key, base, &operands, &mut out)? {
        ValueType::WideColumnEntity => Ok(Value::Entity(out)),
        _ => Ok(Value::Plain(out)),
    }
}
