//! Reads the declarations of one of RocksDB's `c.h`.

use super::c_lexer::{Lexer, bad};
use super::c_types::{Enum, Signature};
use super::spec::Spec;
use std::io;

/// The text without comments and without lines for the preprocessor.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        out.push_str(&rest[..at]);
        rest = rest[at..].split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out.lines()
        .map(|l| l.split("//").next().unwrap_or(""))
        .filter(|l| !l.starts_with('#'))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Every type, callback, enum value and function that the header declares.
pub(super) fn parse(text: &str) -> io::Result<Spec> {
    let text = plain(text)
        .replace("extern \"C\" {", " ")
        .replace("extern ROCKSDB_LIBRARY_API", " extern ");
    let mut lexer = Lexer::new(&text);
    let mut spec = Spec::default();
    loop {
        match lexer.peek() {
            "" => return Ok(spec),
            "}" | ";" => {
                lexer.next();
            }
            "extern" => {
                lexer.next();
                let result = lexer.plain_type()?;
                let name = lexer.next().to_owned();
                let params = lexer.params()?;
                lexer.expect(";")?;
                spec.functions.push((name, Signature { params, result }));
            }
            "typedef" => typedef(&mut lexer, &mut spec)?,
            "enum" => spec.enums.push(constants(&mut lexer)?),
            other => return Err(bad(format!("{other:?} begins no declaration"))),
        }
    }
}

fn typedef(lexer: &mut Lexer<'_>, spec: &mut Spec) -> io::Result<()> {
    lexer.expect("typedef")?;
    if lexer.eat("struct") {
        lexer.next();
        if lexer.eat("{") {
            let mut fields = Vec::new();
            while !lexer.eat("}") {
                fields.push(lexer.param(fields.len())?);
                lexer.expect(";")?;
            }
            spec.structs.push((lexer.next().to_owned(), fields));
        } else {
            spec.types.push(lexer.next().to_owned());
        }
        return lexer.expect(";");
    }
    let result = lexer.plain_type()?;
    lexer.expect("(")?;
    lexer.expect("*")?;
    let name = lexer.next().to_owned();
    lexer.expect(")")?;
    let params = lexer.params()?;
    lexer.expect(";")?;
    spec.callbacks.push((name, Signature { params, result }));
    Ok(())
}

fn constants(lexer: &mut Lexer<'_>) -> io::Result<Enum> {
    lexer.expect("enum")?;
    lexer.expect("{")?;
    let mut group = Enum::default();
    let mut next = 0;
    while !lexer.eat("}") {
        let name = lexer.next().to_owned();
        if lexer.eat("=") {
            let negative = lexer.eat("-");
            let token = lexer.next();
            next = match group.values.iter().find(|(name, _)| name == token) {
                Some((_, same)) => *same,
                None => number(token)?,
            };
            if lexer.eat("<<") {
                next <<= number(lexer.next())?;
            }
            if negative {
                next = -next;
            }
        }
        group.values.push((name, next));
        next += 1;
        lexer.eat(",");
    }
    lexer.expect(";")?;
    Ok(group)
}

fn number(text: &str) -> io::Result<i64> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| bad(format!("{text:?} is not a number")))
}
