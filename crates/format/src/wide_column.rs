//! Wide-column entities: a value made of named columns.
//!
//! Version 1 (written): version, count, then name and value size of each column, then the values.
//! Version 2 (read): sections of types, sizes, names and values; a column's value may be a blob
//! index. Names ascend strictly byte-wise; the default column has the empty name. The batch, the
//! read path and merging use this. Decoding checks every size and allocates only what the input can
//! fill.

use crate::coding::{Reader, put_lpstr, put_varint32};
use esker_status::{Error, Result};

/// The name of the column that a plain read returns.
pub const DEFAULT_COLUMN: &[u8] = b"";

const VERSION_1: u32 = 1;
const VERSION_2: u32 = 2;
const TYPE_INLINE: u8 = 0x01;
const TYPE_BLOB_INDEX: u8 = 0x11;

/// One column: a name and a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// The name; empty for the default column.
    pub name: &'a [u8],
    /// The value, or the encoded blob index when [`Column::in_blob`].
    pub value: &'a [u8],
    /// True if `value` is a blob index that must be resolved.
    pub in_blob: bool,
}

impl<'a> Column<'a> {
    /// A column whose value stands in the entity.
    pub fn new(name: &'a [u8], value: &'a [u8]) -> Self {
        Column {
            name,
            value,
            in_blob: false,
        }
    }
}

/// Appends a version 1 entity with these columns in name order.
///
/// `InvalidArgument` for equal names or for a column whose value is in a blob; nothing is appended
/// then.
pub fn encode(columns: &[Column<'_>], out: &mut Vec<u8>) -> Result<()> {
    let mut order: Vec<&Column<'_>> = columns.iter().collect();
    order.sort_by_key(|c| c.name);
    if order.windows(2).any(|w| w[0].name == w[1].name) {
        return Err(Error::invalid_argument("an entity names a column twice"));
    }
    let fits = |n: usize| u32::try_from(n).is_ok();
    if !fits(order.len())
        || order
            .iter()
            .any(|c| !fits(c.name.len()) || !fits(c.value.len()))
    {
        return Err(Error::invalid_argument("an entity's column is too large"));
    }
    if order.iter().any(|c| c.in_blob) {
        return Err(Error::invalid_argument(
            "version 1 entities hold their values themselves",
        ));
    }
    put_varint32(out, VERSION_1);
    put_varint32(out, order.len() as u32);
    for c in &order {
        put_lpstr(out, c.name);
        put_varint32(out, c.value.len() as u32);
    }
    order.iter().for_each(|c| out.extend_from_slice(c.value));
    Ok(())
}

/// Decodes an entity of either version: its columns in name order.
pub fn decode(entity: &[u8]) -> Result<Vec<Column<'_>>> {
    let mut r = Reader::new(entity);
    let version = r.varint32()?;
    if version == 0 || version > VERSION_2 {
        return Err(Error::corruption(format!(
            "unsupported wide-column version {version}"
        )));
    }
    let n = r.varint32()? as usize;
    // Each column takes at least two bytes: a name size and a value size.
    if n > r.remaining() / 2 {
        return Err(Error::corruption(format!(
            "{n} wide columns in {} bytes",
            r.remaining()
        )));
    }
    if version == VERSION_1 {
        decode_v1(r, n)
    } else {
        decode_v2(r, n)
    }
}

fn decode_v1(mut r: Reader<'_>, n: usize) -> Result<Vec<Column<'_>>> {
    let mut columns: Vec<Column<'_>> = Vec::with_capacity(n);
    let mut sizes = Vec::with_capacity(n);
    for _ in 0..n {
        let name = r.lpstr()?;
        check_order(columns.last(), name)?;
        columns.push(Column::new(name, &[]));
        sizes.push(r.varint32()? as usize);
    }
    for (column, size) in columns.iter_mut().zip(sizes) {
        column.value = r.bytes(size)?;
    }
    r.finish("a wide-column entity")?;
    Ok(columns)
}

fn decode_v2(mut r: Reader<'_>, n: usize) -> Result<Vec<Column<'_>>> {
    let name_sizes_len = r.varint32()? as usize;
    let value_sizes_len = r.varint32()? as usize;
    let names_len = r.varint32()? as usize;
    let types = r.bytes(n)?;
    let mut name_sizes = Reader::new(r.bytes(name_sizes_len)?);
    let mut value_sizes = Reader::new(r.bytes(value_sizes_len)?);
    let mut names = Reader::new(r.bytes(names_len)?);
    let mut columns: Vec<Column<'_>> = Vec::with_capacity(n);
    for &kind in types {
        if kind != TYPE_INLINE && kind != TYPE_BLOB_INDEX {
            return Err(Error::corruption(format!(
                "unknown wide-column type {kind:#04x}"
            )));
        }
        let name = names.bytes(name_sizes.varint32()? as usize)?;
        check_order(columns.last(), name)?;
        let value = r.bytes(value_sizes.varint32()? as usize)?;
        columns.push(Column {
            name,
            value,
            in_blob: kind == TYPE_BLOB_INDEX,
        });
    }
    for (section, what) in [
        (name_sizes, "the name sizes of an entity"),
        (value_sizes, "the value sizes of an entity"),
        (names, "the names of an entity"),
        (r, "a wide-column entity"),
    ] {
        section.finish(what)?;
    }
    Ok(columns)
}

fn check_order(last: Option<&Column<'_>>, name: &[u8]) -> Result<()> {
    match last {
        Some(c) if c.name >= name => Err(Error::corruption("wide columns are out of order")),
        _ => Ok(()),
    }
}

/// The default column of an entity, without decoding the others when it is a version 1 entity.
///
/// `None` when the entity has no default column: a plain read then returns an empty value.
pub fn default_column(entity: &[u8]) -> Result<Option<Column<'_>>> {
    Ok(decode(entity)?
        .first()
        .copied()
        .filter(|c| c.name == DEFAULT_COLUMN))
}

/// Returns whether columns of an entity may have their values in blob files, by its version alone.
pub fn may_be_split(entity: &[u8]) -> bool {
    Reader::new(entity).varint32().is_ok_and(|v| v == VERSION_2)
}

/// Shows `each` the encoded blob index of every column whose value is in a blob file.
pub fn blob_indexes(entity: &[u8], mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    if !may_be_split(entity) {
        return Ok(());
    }
    let columns = decode(entity)?;
    let mut split = columns.iter().filter(|c| c.in_blob);
    split.try_for_each(|c| each(c.value))
}

/// Appends the entity with all values in place, as version 1: `read` puts the value of an encoded
/// blob index into an empty buffer. False, and nothing appended, where no value is in a blob file.
pub fn join_blobs(
    entity: &[u8],
    out: &mut Vec<u8>,
    mut read: impl FnMut(&[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<bool> {
    if !may_be_split(entity) {
        return Ok(false);
    }
    let mut columns = decode(entity)?;
    let mut values = Vec::new();
    for column in columns.iter().filter(|c| c.in_blob) {
        let mut value = Vec::new();
        read(column.value, &mut value)?;
        values.push(value);
    }
    if values.is_empty() {
        return Ok(false);
    }
    let split = columns.iter_mut().filter(|c| c.in_blob);
    for (column, value) in split.zip(&values) {
        *column = Column::new(column.name, value);
    }
    encode(&columns, out)?;
    Ok(true)
}

#[cfg(test)]
#[path = "wide_column_tests.rs"]
mod tests;
