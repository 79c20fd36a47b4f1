//! Tokens of C declarations, and the small grammar of types and parameters that both the header and
//! the specification use.

use super::c_types::{Param, Signature, Type};
use std::io;

/// An error with this text.
pub(crate) fn bad(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Tokens of a text, from the front.
pub(crate) struct Lexer<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

const BASES: &[&str] = &[
    "void", "char", "int", "bool", "_Bool", "float", "double", "size_t", "uint8_t", "uint32_t",
    "uint64_t", "int64_t", "int32_t", "uint16_t", "long", "short",
];

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl<'a> Lexer<'a> {
    /// Over `text`, which has no comments.
    pub(crate) fn new(text: &'a str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("->") || rest.starts_with("<<") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push(&rest[..length]);
            rest = rest[length..].trim_start();
        }
        Lexer { tokens, at: 0 }
    }

    /// The next token without taking it; empty at the end.
    pub(crate) fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }

    /// Takes the next token.
    pub(crate) fn next(&mut self) -> &'a str {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Takes the next token if it is `token`.
    pub(crate) fn eat(&mut self, token: &str) -> bool {
        let is = self.peek() == token;
        self.at += usize::from(is);
        is
    }

    /// Takes `token`, which must come.
    pub(crate) fn expect(&mut self, token: &str) -> io::Result<()> {
        if self.eat(token) {
            return Ok(());
        }
        let from = self.at.saturating_sub(8);
        let near = self.tokens[from..self.tokens.len().min(self.at + 3)].join(" ");
        Err(bad(format!("{token:?} expected near {near:?}")))
    }

    /// A type without a declarator: `const char* const*`, `unsigned long long`.
    pub(crate) fn plain_type(&mut self) -> io::Result<Type> {
        let mut is_const = self.eat("const");
        self.eat("struct");
        let mut base = String::new();
        if self.eat("unsigned") {
            base.push_str("unsigned ");
            while matches!(self.peek(), "char" | "int" | "long" | "short") {
                base.push_str(self.next());
                base.push(' ');
            }
            base = match base.trim_end() {
                "unsigned" => "unsigned int".to_owned(),
                given => given.to_owned(),
            };
        } else {
            let word = self.next();
            if !word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                return Err(bad(format!("{word:?} is not a type")));
            }
            base.push_str(word);
        }
        is_const |= self.eat("const");
        let mut pointers = Vec::new();
        while self.eat("*") {
            pointers.push(self.eat("const"));
        }
        Ok(Type::Plain {
            base,
            is_const,
            pointers,
        })
    }

    /// Returns whether a plain type without a name may end here.
    fn is_name(&self) -> bool {
        let token = self.peek();
        token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !BASES.contains(&token)
    }

    /// A parameter or a member, with or without a name.
    pub(crate) fn param(&mut self, index: usize) -> io::Result<Param> {
        let mut of = self.plain_type()?;
        if self.eat("(") {
            self.expect("*")?;
            let name = if self.is_name() { self.next() } else { "" };
            self.expect(")")?;
            let params = self.params()?;
            let result = of;
            of = Type::Function(Box::new(Signature { params, result }));
            return Ok(Param {
                name: named(name, &of, index),
                of,
            });
        }
        let name = if self.is_name() { self.next() } else { "" };
        if self.eat("[") {
            while !self.eat("]") {
                self.next();
            }
            if let Type::Plain { pointers, .. } = &mut of {
                pointers.push(false);
            }
        }
        Ok(Param {
            name: named(name, &of, index),
            of,
        })
    }

    /// A list of parameters in parentheses; `(void)` is empty.
    pub(crate) fn params(&mut self) -> io::Result<Vec<Param>> {
        self.expect("(")?;
        let mut params = Vec::new();
        if self.eat(")") {
            return Ok(params);
        }
        loop {
            let param = self.param(params.len())?;
            if !param.of.is_void() {
                params.push(param);
            }
            if self.eat(")") {
                break;
            }
            self.expect(",")?;
        }
        let mut seen: Vec<String> = Vec::new();
        for (i, param) in params.iter_mut().enumerate() {
            if seen.contains(&param.name) {
                param.name = format!("{}{i}", param.name);
            }
            seen.push(param.name.clone());
        }
        Ok(params)
    }

    /// `name(params) -> result`, an item of the specification.
    pub(crate) fn item(&mut self) -> io::Result<(String, Signature)> {
        let name = self.next().to_owned();
        let params = self.params()?;
        self.expect("->")?;
        let result = self.plain_type()?;
        match self.peek() {
            "" => Ok((name, Signature { params, result })),
            more => Err(bad(format!("{more:?} after the result"))),
        }
    }
}

/// The name given, or one that says what the parameter is.
fn named(given: &str, of: &Type, index: usize) -> String {
    if !given.is_empty() {
        return given.trim_end_matches('_').to_owned();
    }
    match of {
        Type::Plain { base, pointers, .. } if base == "char" && pointers.len() == 2 => {
            "errptr".to_owned()
        }
        Type::Plain { base, pointers, .. } if base == "void" && !pointers.is_empty() => {
            "state".to_owned()
        }
        Type::Plain { base, .. } if base.starts_with("rocksdb_") => base
            .trim_start_matches("rocksdb_")
            .trim_end_matches("_t")
            .to_owned(),
        Type::Plain { .. } if index == 1 => "value".to_owned(),
        _ => format!("arg{index}"),
    }
}
