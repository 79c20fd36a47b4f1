//! Paths of table files: `db_paths` and `cf_paths`.
//!
//! As text a path is `{path=/fast;target_size=1073741824}`, and a list of them `{{...}:{...}}`, or
//! `{...}:{...}`. A backslash takes the meaning from the character after it; `\n` and `\r` are line
//! ends.

use super::value::OptionValue;
use esker_status::{Error, Result};
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

/// A directory for table files, and how much of them it should hold.
///
/// The paths of a family are ordered, the fastest first. A flush writes to the first; a compaction
/// writes to the first that the level, or the run, fits into by the sizes given, and to the last
/// where it fits nowhere. Several databases cannot share a path.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::{Db, DbPath, Options};
///
/// let (fast, large) = (dir.path().join("fast"), dir.path().join("large"));
/// let mut options = Options::new().create_if_missing(true);
/// options.db.db_paths = vec![DbPath::new(&fast, 0), DbPath::new(&large, 0)];
/// let db = Db::open(dir.path().join("db"), options)?;
/// db.put("key", "value")?;
/// db.flush()?;
/// assert_eq!(db.live_files_metadata()[0].directory, fast);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DbPath {
    /// The directory; made when the database is opened for writing.
    pub path: PathBuf,
    /// Bytes of tables that it should hold. The last path of a list holds what the others do not.
    pub target_size: u64,
}

impl DbPath {
    /// The directory `path` for about `target_size` bytes.
    pub fn new(path: impl Into<PathBuf>, target_size: u64) -> Self {
        DbPath {
            path: path.into(),
            target_size,
        }
    }
}

impl OptionValue for Vec<DbPath> {
    const TYPE: &'static str = "paths";

    fn print(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let one = |p: &DbPath| {
            let path = escape(&p.path);
            format!("{{path={path};target_size={};}}", p.target_size)
        };
        let all: Vec<_> = self.iter().map(one).collect();
        format!("{{{}}}", all.join(":"))
    }

    fn parse_into(&mut self, text: &str) -> Result<()> {
        self.clear();
        let mut parser = Parser {
            text,
            rest: text.trim().chars().peekable(),
        };
        let is_wrapped = text.trim().starts_with("{{");
        if text.trim().is_empty() || text.trim() == "{}" {
            return Ok(());
        }
        if is_wrapped {
            parser.take('{')?;
        }
        loop {
            self.push(parser.path()?);
            if !parser.skip(':') {
                break;
            }
        }
        if is_wrapped {
            parser.take('}')?;
        }
        match parser.rest.next() {
            None => Ok(()),
            Some(_) => Err(parser.bad()),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: Peekable<Chars<'a>>,
}

impl Parser<'_> {
    #[cold]
    fn bad(&self) -> Error {
        let what = "is not a list of paths as {{path=P;target_size=BYTES;}:{...}}";
        Error::invalid_argument(format!("{:?} {what}", self.text))
    }

    fn skip(&mut self, c: char) -> bool {
        self.rest.next_if_eq(&c).is_some()
    }

    fn take(&mut self, c: char) -> Result<()> {
        if self.skip(c) {
            Ok(())
        } else {
            Err(self.bad())
        }
    }

    /// `{path=...;target_size=...;}`
    fn path(&mut self) -> Result<DbPath> {
        let mut out = DbPath::default();
        self.take('{')?;
        while !self.skip('}') {
            let (name, value) = self.member()?;
            match name.trim() {
                "path" => out.path = PathBuf::from(value),
                "target_size" => out.target_size.parse_into(&value)?,
                _ => return Err(self.bad()),
            }
        }
        Ok(out)
    }

    /// `name=value`, with the `;` that ends it unless a brace does.
    fn member(&mut self) -> Result<(String, String)> {
        let (mut name, mut value) = (None, String::new());
        loop {
            match self.rest.peek().copied() {
                None => return Err(self.bad()),
                Some('}') => break,
                _ => {}
            }
            match self.rest.next() {
                Some(';') => break,
                Some('=') if name.is_none() => name = Some(std::mem::take(&mut value)),
                Some('\\') => value.push(match self.rest.next() {
                    None => return Err(self.bad()),
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some(c) => c,
                }),
                c => value.extend(c),
            }
        }
        Ok((name.ok_or_else(|| self.bad())?, value))
    }
}

fn escape(path: &Path) -> String {
    let mut out = String::new();
    for c in path.to_string_lossy().chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' | ';' | '{' | '}' | ':' | '=' | '#' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<DbPath>> {
        let mut out = vec![DbPath::new("/before", 1)];
        out.parse_into(text)?;
        Ok(out)
    }

    #[test]
    fn lists_are_printed_and_parsed() {
        let lists = [
            vec![],
            vec![DbPath::new("/a", 0)],
            vec![DbPath::new("/a b", 1 << 30), DbPath::new("c", u64::MAX)],
            vec![DbPath::new("/odd;{}=:#\\\n", 7), DbPath::new("/a", 7)],
        ];
        for list in lists {
            assert_eq!(parsed(&list.print()).expect("own print"), list);
        }
        let two = [DbPath::new("/a", 2 << 30), DbPath::new("/b", 0)];
        assert_eq!(
            parsed("{path=/a;target_size=2g}:{path=/b}").expect("fine"),
            two
        );
        assert_eq!(parsed("{}").expect("fine"), []);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in [
            "/a",
            "{path=/a",
            "{{path=/a;}",
            "{path=/a;}}",
            "{path=/a;target_size=x;}",
            "{where=/a;}",
            "{path;}",
            "{path=/a\\",
            "{path=/a;}:",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
