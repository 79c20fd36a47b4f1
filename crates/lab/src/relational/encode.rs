//! Rows as pairs of an ordered store.
//!
//! A key is the table (one byte), 0 or the index's number and one (one byte), and values whose
//! bytes sort as they do: integers big-endian with the sign flipped, bytes with 0 escaped as 0 255
//! and ended by 0 0. The value of a row is its other columns; the value of an index's entry is what
//! the index only carries. There an integer has 8 bytes, and bytes follow their length.

use super::row::{ColumnType, Row, Table, Value};
use crate::{Failure, Result};

/// The two bytes before the entries of a table or an index.
pub fn space(table: usize, index: Option<usize>) -> [u8; 2] {
    let number = index.map_or(0, |index| index + 1);
    [table as u8, number as u8]
}

/// Appends a value in its sorting form.
pub fn push_key(key: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Absent => {}
        Value::Int(number) => {
            let flipped = (*number as u64) ^ (1 << 63);
            key.extend_from_slice(&flipped.to_be_bytes());
        }
        Value::Bytes(bytes) => {
            for byte in bytes {
                key.push(*byte);
                if *byte == 0 {
                    key.push(255);
                }
            }
            key.extend_from_slice(&[0, 0]);
        }
    }
}

fn push_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Absent => {}
        Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::Bytes(bytes) => {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

fn damaged() -> Failure {
    Failure::new("an entry of the database is not what the laboratory wrote")
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(count).ok_or_else(damaged)?;
    *bytes = tail;
    Ok(head)
}

fn take_8(bytes: &mut &[u8]) -> Result<[u8; 8]> {
    take(bytes, 8)?.try_into().map_err(|_| damaged())
}

fn take_key(bytes: &mut &[u8], kind: ColumnType) -> Result<Value> {
    if kind == ColumnType::Int {
        let flipped = u64::from_be_bytes(take_8(bytes)?);
        return Ok(Value::Int((flipped ^ (1 << 63)) as i64));
    }
    let mut out = Vec::new();
    loop {
        let byte = take(bytes, 1)?[0];
        if byte != 0 {
            out.push(byte);
            continue;
        }
        match take(bytes, 1)?[0] {
            0 => return Ok(Value::Bytes(out)),
            255 => out.push(0),
            _ => return Err(damaged()),
        }
    }
}

fn take_value(bytes: &mut &[u8], kind: ColumnType) -> Result<Value> {
    if kind == ColumnType::Int {
        return Ok(Value::Int(i64::from_le_bytes(take_8(bytes)?)));
    }
    let length: [u8; 4] = take(bytes, 4)?.try_into().map_err(|_| damaged())?;
    let length = u32::from_le_bytes(length) as usize;
    Ok(Value::Bytes(take(bytes, length)?.to_vec()))
}

/// The key of the row with this primary key.
pub fn row_key(table: usize, key: &[Value]) -> Vec<u8> {
    let mut out = space(table, None).to_vec();
    key.iter().for_each(|value| push_key(&mut out, value));
    out
}

/// The value of a row.
pub fn row_value(of: &Table, row: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    row[of.key..].iter().for_each(|v| push_value(&mut out, v));
    out
}

/// The key of a row's entry in an index.
pub fn entry_key(of: &Table, table: usize, index: usize, row: &[Value]) -> Vec<u8> {
    let mut out = space(table, Some(index)).to_vec();
    for column in of.order(Some(index)) {
        push_key(&mut out, &row[column]);
    }
    out
}

/// The value of a row's entry in an index.
pub fn entry_value(of: &Table, index: usize, row: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    for &column in &of.indexes[index].carried {
        push_value(&mut out, &row[column]);
    }
    out
}

/// The row of a pair of the primary key or of an index; what an index lacks is absent.
///
/// # Errors
/// A pair that nobody here wrote.
pub fn decode(of: &Table, index: Option<usize>, key: &[u8], value: &[u8]) -> Result<Row> {
    let mut row = vec![Value::Absent; of.columns.len()];
    let mut rest = key.get(2..).ok_or_else(damaged)?;
    for column in of.order(index) {
        row[column] = take_key(&mut rest, of.columns[column].1)?;
    }
    let mut carried = value;
    match index {
        None => {
            let columns = of.columns.iter().zip(&mut row).skip(of.key);
            for ((_, kind), value) in columns {
                *value = take_value(&mut carried, *kind)?;
            }
        }
        Some(index) => {
            for &column in &of.indexes[index].carried {
                row[column] = take_value(&mut carried, of.columns[column].1)?;
            }
        }
    }
    if rest.is_empty() && carried.is_empty() {
        Ok(row)
    } else {
        Err(damaged())
    }
}

/// The first key after all that begin with `prefix`.
pub fn after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 255 {
            end.push(last + 1);
            break;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_values_do() {
        let numbers = [i64::MIN, -2, -1, 0, 1, 255, 256, i64::MAX];
        let key = |value: Value| {
            let mut out = Vec::new();
            push_key(&mut out, &value);
            out
        };
        let sorted = numbers.map(|n| key(Value::Int(n)));
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
        let texts: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"\0a", b"a", b"a\0"];
        let sorted = texts.map(|t| key(Value::Bytes(t.to_vec())));
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
        for text in texts {
            let bytes = key(Value::Bytes(text.to_vec()));
            let back = take_key(&mut &bytes[..], ColumnType::Bytes(9)).unwrap();
            assert_eq!(back.bytes(), text);
        }
    }

    #[test]
    fn the_end_of_a_prefix() {
        assert_eq!(after(&[1, 2]), [1, 3]);
        assert_eq!(after(&[1, 255]), [2]);
        assert!(after(&[255]).is_empty());
    }

    #[test]
    fn damage_is_noticed() {
        let table = Table {
            name: "t",
            columns: vec![("a", ColumnType::Int), ("b", ColumnType::Bytes(9))],
            key: 1,
            indexes: Vec::new(),
        };
        let row = vec![Value::Int(7), Value::Bytes(b"xy".to_vec())];
        let (key, value) = (row_key(0, &row[..1]), row_value(&table, &row));
        assert_eq!(decode(&table, None, &key, &value).unwrap(), row);
        assert!(decode(&table, None, &key, &value[..3]).is_err());
        assert!(decode(&table, None, &key[..5], &value).is_err());
        let longer = [&value[..], b"z"].concat();
        assert!(decode(&table, None, &key, &longer).is_err());
    }
}
