//! Merge operators: how operands combine with a base value, and RocksDB's built-in ones by name.
//!
//! An operator is given operands oldest first. It must be deterministic and must not panic; it is
//! called by reads, flushes and compactions from many threads at once. Results go to a buffer of
//! the caller, so that a stream of merges allocates nothing once warm.
//!
//! Callers: `point`, `visible`, `compaction_stream`. [`full_merge`] is the one place that turns an
//! operator's answer into an entry.

use esker_format::ValueType;
use esker_format::wide_column::{self, Column};
use esker_status::{Error, Result, Subcode};
use std::sync::Arc;

/// The base that lies under the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base<'a> {
    /// Nothing: the key did not exist or was deleted.
    None,
    /// A plain value.
    Value(&'a [u8]),
    /// A wide-column entity, encoded.
    Entity(&'a [u8]),
}

/// The result of a successful full merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The output buffer holds a plain value.
    Value,
    /// The output buffer holds an encoded wide-column entity.
    Entity,
    /// The result is the operand with this index; the output buffer is not used.
    Operand(usize),
}

/// How far a failed merge reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureScope {
    /// Every operation that tries the merge fails, compactions included. RocksDB's default.
    TryMerge,
    /// Only operations that must have the result fail; compactions keep the operands.
    MustMerge,
}

/// The operands that a point read has met, newest first. They are handed out one by one: a list of
/// them for each question would cost the square of their number.
pub trait Operands {
    /// How many there are.
    fn len(&self) -> usize;

    /// Tells whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Operand `index`, below [`Operands::len`].
    fn get(&self, index: usize) -> &[u8];
}

/// Combines operands with a base value.
pub trait MergeOperator: Send + Sync {
    /// The operator's name; RocksDB stores it in table properties and OPTIONS files.
    fn name(&self) -> &str;

    /// Applies `operands` (oldest first, at least one) to `base`; writes the result to `out`, which
    /// is empty.
    ///
    /// `base` is an entity only when [`MergeOperator::understands_entities`] is true; otherwise the
    /// entity's default column is passed as a value, and the result replaces that column.
    fn full_merge(
        &self,
        key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope>;

    /// Combines `operands` (oldest first, two or more) into one operand in `out`, which is empty.
    /// `false` when they cannot be combined without a base.
    fn partial_merge(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> bool {
        let _ = (key, operands, out);
        false
    }

    /// Returns whether [`MergeOperator::partial_merge`] wants to see a single operand too.
    fn allow_single_operand(&self) -> bool {
        false
    }

    /// Asked by point reads after each operand, with those seen so far, newest first: `true` stops
    /// the search for a base, and the merge happens as if there was none.
    fn should_merge(&self, operands_newest_first: &dyn Operands) -> bool {
        let _ = operands_newest_first;
        false
    }

    /// Returns whether [`MergeOperator::full_merge`] takes [`Base::Entity`].
    fn understands_entities(&self) -> bool {
        false
    }
}

impl std::fmt::Debug for dyn MergeOperator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Why [`full_merge`] has no result.
#[derive(Debug)]
pub struct MergeFailure {
    /// How far it reaches.
    pub scope: FailureScope,
    /// The error for the caller.
    pub error: Error,
}

impl From<MergeFailure> for Error {
    fn from(f: MergeFailure) -> Error {
        f.error
    }
}

/// The error of an operation that met operands and has no operator.
#[cold]
pub fn missing_operator() -> Error {
    Error::invalid_argument("merge_operator is not properly initialized")
        .with_hint("open the column family with the merge operator that wrote its operands")
}

#[cold]
fn failed(operator: &dyn MergeOperator, key: &[u8], scope: FailureScope) -> MergeFailure {
    let text = format!(
        "Merge operator failed: {} on key {}",
        operator.name(),
        key.escape_ascii()
    );
    MergeFailure {
        scope,
        error: Error::corruption(text).with_subcode(Subcode::MergeOperatorFailed),
    }
}

/// Runs a full merge and leaves the bytes of the resulting entry in `out`.
///
/// `operands` are oldest first. The answer is [`ValueType::Value`] or
/// [`ValueType::WideColumnEntity`].
pub fn full_merge(
    operator: &dyn MergeOperator,
    key: &[u8],
    base: Base<'_>,
    operands: &[&[u8]],
    out: &mut Vec<u8>,
) -> Result<ValueType, MergeFailure> {
    out.clear();
    let broken = |error| MergeFailure {
        scope: FailureScope::TryMerge,
        error,
    };
    let kind = match base {
        Base::Entity(entity) if !operator.understands_entities() => {
            let mut columns = wide_column::decode(entity).map_err(broken)?;
            let default = columns
                .first()
                .filter(|c| c.name.is_empty())
                .map(|c| c.value);
            let merged = operator
                .full_merge(key, default.map_or(Base::None, Base::Value), operands, out)
                .map_err(|scope| failed(operator, key, scope))?;
            settle(operator, key, merged, operands, out)?;
            let value = std::mem::take(out);
            match default {
                Some(_) => columns[0].value = &value,
                None => columns.insert(0, Column::new(b"", &value)),
            }
            wide_column::encode(&columns, out).map_err(broken)?;
            ValueType::WideColumnEntity
        }
        _ => {
            let merged = operator
                .full_merge(key, base, operands, out)
                .map_err(|scope| failed(operator, key, scope))?;
            settle(operator, key, merged, operands, out)?
        }
    };
    if u32::try_from(out.len()).is_err() {
        return Err(broken(Error::corruption("merge result exceeds 4 GiB")));
    }
    Ok(kind)
}

fn settle(
    operator: &dyn MergeOperator,
    key: &[u8],
    merged: Merged,
    operands: &[&[u8]],
    out: &mut Vec<u8>,
) -> Result<ValueType, MergeFailure> {
    match merged {
        Merged::Value => Ok(ValueType::Value),
        Merged::Entity => Ok(ValueType::WideColumnEntity),
        Merged::Operand(i) => {
            let operand = operands
                .get(i)
                .ok_or_else(|| failed(operator, key, FailureScope::TryMerge))?;
            out.clear();
            out.extend_from_slice(operand);
            Ok(ValueType::Value)
        }
    }
}

/// Joins operands with a delimiter (`StringAppendOperator`; also as `StringAppendTESTOperator`).
#[derive(Clone, Debug)]
pub struct StringAppend {
    delimiter: Vec<u8>,
    name: &'static str,
}

impl StringAppend {
    /// With this delimiter.
    pub fn new(delimiter: &[u8]) -> Self {
        StringAppend {
            delimiter: delimiter.to_vec(),
            name: "StringAppendOperator",
        }
    }

    /// The variant that RocksDB's tests use: the same result under another name, never merged
    /// partially.
    pub fn test_variant(delimiter: &[u8]) -> Self {
        StringAppend {
            delimiter: delimiter.to_vec(),
            name: "StringAppendTESTOperator",
        }
    }

    fn join<'a>(&self, parts: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
        for (i, part) in parts.enumerate() {
            if i > 0 {
                out.extend_from_slice(&self.delimiter);
            }
            out.extend_from_slice(part);
        }
    }
}

fn base_value<'a>(base: Base<'a>) -> Option<&'a [u8]> {
    match base {
        Base::Value(v) => Some(v),
        Base::None | Base::Entity(_) => None,
    }
}

impl MergeOperator for StringAppend {
    fn name(&self) -> &str {
        self.name
    }
    fn full_merge(
        &self,
        _key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope> {
        self.join(
            base_value(base).into_iter().chain(operands.iter().copied()),
            out,
        );
        Ok(Merged::Value)
    }
    fn partial_merge(&self, _key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> bool {
        if self.name != "StringAppendOperator" {
            return false;
        }
        self.join(operands.iter().copied(), out);
        true
    }
}

/// Adds little-endian 64-bit counters, wrapping; anything that is not eight bytes counts as 0
/// (`UInt64AddOperator`).
#[derive(Clone, Copy, Debug, Default)]
pub struct UInt64Add;

fn counter(v: &[u8]) -> u64 {
    v.try_into().map_or(0, u64::from_le_bytes)
}

impl MergeOperator for UInt64Add {
    fn name(&self) -> &str {
        "UInt64AddOperator"
    }
    fn full_merge(
        &self,
        _key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope> {
        let start = base_value(base).map_or(0, counter);
        let sum = operands
            .iter()
            .fold(start, |sum, o| sum.wrapping_add(counter(o)));
        out.extend_from_slice(&sum.to_le_bytes());
        Ok(Merged::Value)
    }
    fn partial_merge(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> bool {
        self.full_merge(key, Base::None, operands, out).is_ok()
    }
}

/// Keeps the largest value by bytes (`MaxOperator`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Max;

impl MergeOperator for Max {
    fn name(&self) -> &str {
        "MaxOperator"
    }
    fn full_merge(
        &self,
        _key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope> {
        let largest = base_value(base)
            .into_iter()
            .chain(operands.iter().copied())
            .max();
        out.extend_from_slice(largest.unwrap_or_default());
        Ok(Merged::Value)
    }
    fn partial_merge(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> bool {
        self.full_merge(key, Base::None, operands, out).is_ok()
    }
}

/// Exclusive-ors bytes; the result is as long as the longest part (`BytesXOR`).
#[derive(Clone, Copy, Debug, Default)]
pub struct BytesXor;

impl MergeOperator for BytesXor {
    fn name(&self) -> &str {
        "BytesXOR"
    }
    fn full_merge(
        &self,
        _key: &[u8],
        base: Base<'_>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope> {
        for part in base_value(base).into_iter().chain(operands.iter().copied()) {
            if part.len() > out.len() {
                out.resize(part.len(), 0);
            }
            out.iter_mut().zip(part).for_each(|(o, p)| *o ^= p);
        }
        Ok(Merged::Value)
    }
    fn partial_merge(&self, key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> bool {
        self.full_merge(key, Base::None, operands, out).is_ok()
    }
}

/// The newest operand is the value (`PutOperator`).
#[derive(Clone, Copy, Debug, Default)]
pub struct PutNewest;

impl MergeOperator for PutNewest {
    fn name(&self) -> &str {
        "PutOperator"
    }
    fn full_merge(
        &self,
        _key: &[u8],
        _base: Base<'_>,
        operands: &[&[u8]],
        _out: &mut Vec<u8>,
    ) -> Result<Merged, FailureScope> {
        Ok(Merged::Operand(operands.len().saturating_sub(1)))
    }
    fn partial_merge(&self, _key: &[u8], operands: &[&[u8]], out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(operands.last().copied().unwrap_or_default());
        true
    }
}

/// The built-in operator with this RocksDB name or id.
pub fn by_name(name: &str) -> Option<Arc<dyn MergeOperator>> {
    Some(match name {
        "StringAppendOperator" | "stringappend" => Arc::new(StringAppend::new(b",")),
        "StringAppendTESTOperator" | "stringappendtest" => {
            Arc::new(StringAppend::test_variant(b","))
        }
        "UInt64AddOperator" | "uint64add" => Arc::new(UInt64Add),
        "MaxOperator" | "max" => Arc::new(Max),
        "BytesXOR" | "bytesxor" => Arc::new(BytesXor),
        "PutOperator" | "put" | "put_v1" => Arc::new(PutNewest),
        _ => return None,
    })
}
