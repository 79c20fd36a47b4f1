//! Tables, indexes and values.
//!
//! The primary key of a table is its first columns. An index has its own columns, then the rest of
//! the primary key, then columns that it only carries.

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// A column that an index does not carry.
    Absent,
    /// 64 bits with a sign.
    Int(i64),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// The number, or 0 for anything else.
    pub fn int(&self) -> i64 {
        match self {
            Value::Int(number) => *number,
            _ => 0,
        }
    }

    /// The bytes, or none for anything else.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// Bytes of the application in it.
    pub fn size(&self) -> u64 {
        match self {
            Value::Absent => 0,
            Value::Int(_) => 8,
            Value::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Value {
        Value::Bytes(bytes)
    }
}

/// A row: one value a column.
pub type Row = Vec<Value>;

/// Bytes of the application in some values.
pub fn size(values: &[Value]) -> u64 {
    values.iter().map(Value::size).sum()
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// 64 bits with a sign.
    Int,
    /// At most this number of bytes.
    Bytes(u32),
}

/// A secondary index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// Its columns, by number.
    pub columns: Vec<usize>,
    /// Columns that it only carries.
    pub carried: Vec<usize>,
    /// Made by a step of the workload and not with the table.
    pub later: bool,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Names and kinds of its columns.
    pub columns: Vec<(&'static str, ColumnType)>,
    /// How many columns from the first on are the primary key.
    pub key: usize,
    /// Its secondary indexes.
    pub indexes: Vec<Index>,
}

impl Table {
    /// The columns of an index in the order of its entries: its own, then those of the primary key
    /// that it lacks.
    pub fn order(&self, index: Option<usize>) -> Vec<usize> {
        let Some(index) = index else {
            return (0..self.key).collect();
        };
        let mut order = self.indexes[index].columns.clone();
        for column in 0..self.key {
            if !order.contains(&column) {
                order.push(column);
            }
        }
        order
    }

    /// The columns that a scan of an index has without looking at rows.
    pub fn covered(&self, index: Option<usize>) -> Vec<usize> {
        let Some(number) = index else {
            return (0..self.columns.len()).collect();
        };
        let mut covered = self.order(index);
        covered.extend(self.indexes[number].carried.iter().copied());
        covered
    }
}

/// The tables of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// Tables; a number names one of them.
    pub tables: Vec<Table>,
}
