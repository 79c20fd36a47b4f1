//! Statements of the SQL engines, made from the schema: the same work in three dialects.
//!
//! Tables are clustered by their primary key where the engine can; an index that carries columns
//! holds them behind its key, so that no engine looks at rows for what the index has.

use super::engine::{Access, AnyOf, Body, Outcome, Rows, Scan, Session, Visit};
use super::row::{ColumnType, Row, Schema, Table, Value};

/// How an engine wants its statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// MariaDB, with this storage engine.
    MariaDb(&'static str),
    /// SQLite.
    Sqlite,
}

/// A statement that is prepared once for each session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Statement {
    /// Adds a row, or does nothing when its key exists.
    Insert(usize),
    /// Changes these columns of a row.
    Update(usize, Vec<usize>),
    /// Adds to this column, or adds the row.
    Add(usize, usize),
    /// Deletes a row.
    Delete(usize),
    /// A row, locked or not.
    Get(usize, bool),
    /// A scan.
    Scan(ScanShape),
    /// Rows with one of several values in the first column of an index.
    AnyOf(ScanShape, usize),
}

/// The parts of a scan that are in the text of its statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScanShape {
    table: usize,
    index: Option<usize>,
    prefix: usize,
    low: bool,
    high: bool,
    descending: bool,
    limited: bool,
    fetch: bool,
}

impl ScanShape {
    fn of(scan: &Scan) -> ScanShape {
        ScanShape {
            table: scan.table,
            index: scan.index,
            prefix: scan.prefix.len(),
            low: scan.low.is_some(),
            high: scan.high.is_some(),
            descending: scan.descending,
            limited: scan.limit > 0,
            fetch: scan.fetch,
        }
    }
}

/// Makes the texts of statements.
#[derive(Debug, Clone)]
pub struct Sql {
    dialect: Dialect,
    schema: Schema,
}

impl Sql {
    /// Statements for `schema`.
    pub fn new(dialect: Dialect, schema: Schema) -> Sql {
        Sql { dialect, schema }
    }

    /// The tables.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    fn kind(&self, kind: ColumnType) -> String {
        match (kind, self.dialect) {
            (ColumnType::Int, Dialect::Sqlite) => "INTEGER".into(),
            (ColumnType::Int, _) => "BIGINT".into(),
            (ColumnType::Bytes(_), Dialect::Postgres) => "BYTEA".into(),
            (ColumnType::Bytes(most), Dialect::MariaDb(_)) => format!("VARBINARY({most})"),
            (ColumnType::Bytes(_), Dialect::Sqlite) => "BLOB".into(),
        }
    }

    /// A column's name, quoted where the engine has the word for itself.
    fn name(&self, of: &Table, column: usize) -> String {
        let name = of.columns[column].0;
        match self.dialect {
            Dialect::MariaDb(_) => format!("`{name}`"),
            _ => format!("\"{name}\""),
        }
    }

    fn names(&self, of: &Table, columns: &[usize]) -> String {
        let names: Vec<String> = columns.iter().map(|&c| self.name(of, c)).collect();
        names.join(", ")
    }

    fn mark(&self, number: usize) -> String {
        match self.dialect {
            Dialect::Postgres => format!("${number}"),
            _ => "?".into(),
        }
    }

    fn marks(&self, count: usize) -> String {
        let marks: Vec<String> = (1..=count).map(|number| self.mark(number)).collect();
        marks.join(", ")
    }

    /// Returns the statements that create all tables and their indexes.
    pub fn create(&self) -> Vec<String> {
        let mut out = Vec::new();
        for (number, table) in self.schema.tables.iter().enumerate() {
            let columns: Vec<String> = (0..table.columns.len())
                .map(|c| {
                    let kind = self.kind(table.columns[c].1);
                    format!("{} {kind} NOT NULL", self.name(table, c))
                })
                .collect();
            let key = self.names(table, &(0..table.key).collect::<Vec<_>>());
            let tail = match self.dialect {
                Dialect::Postgres => String::new(),
                Dialect::MariaDb(engine) => format!(" ENGINE={engine}"),
                Dialect::Sqlite => " WITHOUT ROWID".into(),
            };
            let columns = columns.join(", ");
            let name = table.name;
            out.push(format!(
                "CREATE TABLE {name} ({columns}, PRIMARY KEY ({key})){tail}"
            ));
            for (index, what) in table.indexes.iter().enumerate() {
                if !what.later {
                    out.push(self.create_index(number, index));
                }
            }
        }
        out
    }

    /// Returns the statement that creates one index.
    pub fn create_index(&self, table: usize, index: usize) -> String {
        let of = &self.schema.tables[table];
        let order = self.names(of, &of.order(Some(index)));
        let carried = self.names(of, &of.indexes[index].carried);
        let (name, table) = (of.indexes[index].name, of.name);
        let columns = match (carried.is_empty(), self.dialect) {
            (true, _) => format!("({order})"),
            (false, Dialect::Postgres) => format!("({order}) INCLUDE ({carried})"),
            (false, _) => format!("({order}, {carried})"),
        };
        format!("CREATE INDEX {name} ON {table} {columns}")
    }

    /// `a = ? AND b = ?` for the primary key, with marks from `from` on.
    fn by_key(&self, of: &Table, from: usize) -> String {
        let parts: Vec<String> = (0..of.key)
            .map(|c| format!("{} = {}", self.name(of, c), self.mark(from + c)))
            .collect();
        parts.join(" AND ")
    }

    /// The text of a statement.
    pub fn text(&self, statement: &Statement) -> String {
        let table = |number: &usize| &self.schema.tables[*number];
        match statement {
            Statement::Insert(number) => {
                let of = table(number);
                let (name, marks) = (of.name, self.marks(of.columns.len()));
                match self.dialect {
                    Dialect::MariaDb(_) => format!("INSERT IGNORE INTO {name} VALUES ({marks})"),
                    _ => format!("INSERT INTO {name} VALUES ({marks}) ON CONFLICT DO NOTHING"),
                }
            }
            Statement::Update(number, columns) => {
                let of = table(number);
                let set: Vec<String> = columns
                    .iter()
                    .enumerate()
                    .map(|(i, &c)| format!("{} = {}", self.name(of, c), self.mark(i + 1)))
                    .collect();
                let key = self.by_key(of, columns.len() + 1);
                format!("UPDATE {} SET {} WHERE {key}", of.name, set.join(", "))
            }
            Statement::Add(number, column) => self.add(table(number), *column),
            Statement::Delete(number) => {
                let of = table(number);
                format!("DELETE FROM {} WHERE {}", of.name, self.by_key(of, 1))
            }
            Statement::Get(number, lock) => {
                let of = table(number);
                let all = self.names(of, &(0..of.columns.len()).collect::<Vec<_>>());
                let lock = match (lock, self.dialect) {
                    (true, Dialect::Postgres | Dialect::MariaDb(_)) => " FOR UPDATE",
                    _ => "",
                };
                let key = self.by_key(of, 1);
                format!("SELECT {all} FROM {} WHERE {key}{lock}", of.name)
            }
            Statement::Scan(shape) => self.scan(shape),
            Statement::AnyOf(shape, count) => {
                let of = table(&shape.table);
                let column = self.name(of, of.order(shape.index)[0]);
                let columns = self.names(of, &self.shown(shape));
                let (name, hint, marks) = (of.name, self.hint(shape), self.marks(*count));
                format!("SELECT {columns} FROM {name}{hint} WHERE {column} IN ({marks})")
            }
        }
    }

    fn add(&self, of: &Table, column: usize) -> String {
        let (name, marks) = (of.name, self.marks(of.columns.len()));
        let (column, by) = (self.name(of, column), self.mark(of.columns.len() + 1));
        let key = self.names(of, &(0..of.key).collect::<Vec<_>>());
        match self.dialect {
            Dialect::MariaDb(_) => format!(
                "INSERT INTO {name} VALUES ({marks}) \
                 ON DUPLICATE KEY UPDATE {column} = {column} + {by}"
            ),
            _ => format!(
                "INSERT INTO {name} VALUES ({marks}) \
                 ON CONFLICT ({key}) DO UPDATE SET {column} = {name}.{column} + {by}"
            ),
        }
    }

    fn scan(&self, shape: &ScanShape) -> String {
        let of = &self.schema.tables[shape.table];
        let order = of.order(shape.index);
        let mut conditions = Vec::new();
        let mut number = 0;
        let mut condition = |column: usize, operator: &str| {
            number += 1;
            conditions.push(format!(
                "{} {operator} {}",
                self.name(of, column),
                self.mark(number)
            ));
        };
        order[..shape.prefix]
            .iter()
            .for_each(|&c| condition(c, "="));
        if shape.low {
            condition(order[shape.prefix], ">=");
        }
        if shape.high {
            condition(order[shape.prefix], "<=");
        }
        let limit = if shape.limited {
            format!(" LIMIT {}", self.mark(number + 1))
        } else {
            String::new()
        };
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        let direction = if shape.descending { " DESC" } else { "" };
        let sort: Vec<String> = order
            .iter()
            .map(|&c| format!("{}{direction}", self.name(of, c)))
            .collect();
        let hint = self.hint(shape);
        let columns = self.names(of, &self.shown(shape));
        let (name, sort) = (of.name, sort.join(", "));
        format!("SELECT {columns} FROM {name}{hint}{filter} ORDER BY {sort}{limit}")
    }

    /// Which index an engine is told to take.
    fn hint(&self, shape: &ScanShape) -> String {
        let of = &self.schema.tables[shape.table];
        match (self.dialect, shape.index) {
            (Dialect::MariaDb(_), Some(i)) => format!(" FORCE INDEX ({})", of.indexes[i].name),
            (Dialect::MariaDb(_), None) => " FORCE INDEX (PRIMARY)".into(),
            (Dialect::Sqlite, Some(i)) => format!(" INDEXED BY {}", of.indexes[i].name),
            _ => String::new(),
        }
    }

    /// The columns that a scan gives.
    fn shown(&self, shape: &ScanShape) -> Vec<usize> {
        let of = &self.schema.tables[shape.table];
        if shape.fetch {
            (0..of.columns.len()).collect()
        } else {
            of.covered(shape.index)
        }
    }
}

/// A connection that runs prepared statements.
pub trait Connection: Send {
    /// Runs a statement, and says how many rows it changed.
    ///
    /// # Errors
    /// A conflict, or what the engine says.
    fn execute(&mut self, sql: &Sql, statement: &Statement, values: &[Value]) -> Outcome<u64>;

    /// Runs a query and visits its rows, each with the columns of the query.
    ///
    /// # Errors
    /// A conflict, or what the engine says.
    fn query(
        &mut self,
        sql: &Sql,
        statement: &Statement,
        values: &[Value],
        visit: &mut Visit<'_>,
    ) -> Outcome<()>;

    /// Runs a text that gives no rows, without preparing it.
    ///
    /// # Errors
    /// A conflict, or what the engine says.
    fn run(&mut self, text: &str) -> Outcome<()>;

    /// Begins a transaction of several statements.
    ///
    /// # Errors
    /// The engine's error.
    fn begin(&mut self) -> Outcome<()> {
        self.run("BEGIN")
    }

    /// Commits it.
    ///
    /// # Errors
    /// A conflict, or what the engine says.
    fn commit(&mut self) -> Outcome<()> {
        self.run("COMMIT")
    }

    /// Rolls it back.
    ///
    /// # Errors
    /// The engine's error.
    fn rollback(&mut self) -> Outcome<()> {
        self.run("ROLLBACK")
    }
}

/// A session over a connection.
pub struct SqlSession<C> {
    /// The connection.
    pub connection: C,
    /// Its statements.
    pub sql: Sql,
}

impl<C: Connection> Session for SqlSession<C> {
    fn transact(&mut self, access: Access, body: &mut Body<'_>) -> Outcome<()> {
        if access != Access::Write {
            return body(self);
        }
        self.connection.begin()?;
        match body(self).and_then(|()| self.connection.commit()) {
            Ok(()) => Ok(()),
            Err(why) => {
                self.connection.rollback()?;
                Err(why)
            }
        }
    }
}

impl<C: Connection> Rows for SqlSession<C> {
    fn insert(&mut self, table: usize, row: &[Value]) -> Outcome<bool> {
        let changed = self
            .connection
            .execute(&self.sql, &Statement::Insert(table), row)?;
        Ok(changed > 0)
    }

    fn update(&mut self, table: usize, key: &[Value], set: &[(usize, Value)]) -> Outcome<bool> {
        let columns = set.iter().map(|(column, _)| *column).collect();
        let mut values: Vec<Value> = set.iter().map(|(_, value)| value.clone()).collect();
        values.extend_from_slice(key);
        let statement = Statement::Update(table, columns);
        Ok(self.connection.execute(&self.sql, &statement, &values)? > 0)
    }

    fn add(&mut self, table: usize, otherwise: &[Value], column: usize, by: i64) -> Outcome<()> {
        let mut values = otherwise.to_vec();
        values.push(Value::Int(by));
        let statement = Statement::Add(table, column);
        self.connection.execute(&self.sql, &statement, &values)?;
        Ok(())
    }

    fn delete(&mut self, table: usize, key: &[Value]) -> Outcome<bool> {
        let statement = Statement::Delete(table);
        Ok(self.connection.execute(&self.sql, &statement, key)? > 0)
    }

    fn get(&mut self, table: usize, key: &[Value], lock: bool) -> Outcome<Option<Row>> {
        let mut found = None;
        let statement = Statement::Get(table, lock);
        self.connection
            .query(&self.sql, &statement, key, &mut |row| {
                found = Some(row.to_vec());
                true
            })?;
        Ok(found)
    }

    fn scan(&mut self, scan: &Scan, visit: &mut Visit<'_>) -> Outcome<u64> {
        let shape = ScanShape::of(scan);
        let mut values = scan.prefix.clone();
        values.extend(scan.low.iter().chain(&scan.high).cloned());
        if scan.limit > 0 {
            values.push(Value::Int(i64::try_from(scan.limit).unwrap_or(i64::MAX)));
        }
        let statement = Statement::Scan(shape.clone());
        self.rows_of(&shape, &statement, &values, visit)
    }

    fn any_of(&mut self, any: &AnyOf, visit: &mut Visit<'_>) -> Outcome<u64> {
        let shape = ScanShape::of(&Scan {
            table: any.table,
            index: any.index,
            fetch: any.fetch,
            ..Scan::default()
        });
        let statement = Statement::AnyOf(shape.clone(), any.values.len());
        self.rows_of(&shape, &statement, &any.values, visit)
    }
}

impl<C: Connection> SqlSession<C> {
    /// Visits what a query gives as rows of the table.
    fn rows_of(
        &mut self,
        shape: &ScanShape,
        statement: &Statement,
        values: &[Value],
        visit: &mut Visit<'_>,
    ) -> Outcome<u64> {
        let shown = self.sql.shown(shape);
        let width = self.sql.schema.tables[shape.table].columns.len();
        let mut seen = 0;
        self.connection
            .query(&self.sql, statement, values, &mut |found| {
                seen += 1;
                let mut row = vec![Value::Absent; width];
                for (column, value) in shown.iter().zip(found) {
                    row[*column] = value.clone();
                }
                visit(&row)
            })?;
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relational::linkbench;

    #[test]
    fn each_dialect_has_its_words() {
        let text =
            |dialect, statement: &Statement| Sql::new(dialect, linkbench::schema()).text(statement);
        let maria = Dialect::MariaDb("InnoDB");
        let list = Statement::Scan(ScanShape {
            table: linkbench::LINKS,
            index: Some(0),
            prefix: 3,
            low: false,
            high: false,
            descending: true,
            limited: true,
            fetch: false,
        });
        assert_eq!(
            text(Dialect::Postgres, &list),
            "SELECT \"id1\", \"link_type\", \"visibility\", \"time\", \"id2\", \"version\", \
             \"data\" FROM linktable WHERE \"id1\" = $1 AND \"link_type\" = $2 AND \
             \"visibility\" = $3 ORDER BY \"id1\" DESC, \"link_type\" DESC, \"visibility\" DESC, \
             \"time\" DESC, \"id2\" DESC LIMIT $4"
        );
        assert!(text(maria, &list).contains("FORCE INDEX (id1_type) WHERE `id1` = ?"));
        assert!(text(Dialect::Sqlite, &list).contains("INDEXED BY id1_type"));
        let get = Statement::Get(linkbench::NODES, true);
        assert!(text(maria, &get).ends_with("FOR UPDATE"));
        assert!(!text(Dialect::Sqlite, &get).contains("UPDATE"));
        let add = Statement::Add(linkbench::COUNTS, 2);
        assert!(text(maria, &add).ends_with("ON DUPLICATE KEY UPDATE `count` = `count` + ?"));
        let create = Sql::new(Dialect::Postgres, linkbench::schema()).create();
        assert!(create[2].ends_with("INCLUDE (\"version\", \"data\")"));
    }
}
