//! Types, parameters and signatures of a C interface.

/// A C type as the interface uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A named type behind some pointers: `const char* const*` is `char`, `[Const, Const]`.
    Plain {
        /// The innermost type.
        base: String,
        /// True if that is const.
        is_const: bool,
        /// Each pointer, outwards, and whether the pointer itself is const.
        pointers: Vec<bool>,
    },
    /// A pointer to a function.
    Function(Box<Signature>),
}

/// Parameters and result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    /// In order.
    pub(crate) params: Vec<Param>,
    /// The result; `void` for none.
    pub(crate) result: Type,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    /// Its name.
    pub(crate) name: String,
    /// Its type.
    pub(crate) of: Type,
}

/// Constants that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Enum {
    /// Names and values.
    pub(crate) values: Vec<(String, i64)>,
}

impl Type {
    pub(crate) fn is_void(&self) -> bool {
        matches!(self, Type::Plain { base, pointers, .. } if base == "void" && pointers.is_empty())
    }

    /// The type in C, around `name`, which may be empty.
    pub(crate) fn in_c(&self, name: &str) -> String {
        match self {
            Type::Plain {
                base,
                is_const,
                pointers,
            } => {
                let mut out = String::new();
                if *is_const {
                    out.push_str("const ");
                }
                out.push_str(base);
                for is_const in pointers {
                    out.push('*');
                    if *is_const {
                        out.push_str(" const");
                    }
                }
                if !name.is_empty() {
                    out.push(' ');
                    out.push_str(name);
                }
                out
            }
            Type::Function(signature) => signature.in_c(&format!("(*{name})")),
        }
    }

    /// Without the names of a function pointer's parameters, to compare with.
    fn shape(&self) -> String {
        match self {
            // A const pointer as a parameter is the callee's affair.
            Type::Plain {
                base,
                is_const,
                pointers,
            } => {
                let mut inner = pointers.clone();
                if let Some(last) = inner.last_mut() {
                    *last = false;
                }
                Type::Plain {
                    base: base.clone(),
                    is_const: *is_const,
                    pointers: inner,
                }
                .in_c("")
            }
            Type::Function(signature) => format!("fn{}", signature.shape()),
        }
    }
}

impl Signature {
    /// A declaration of `name`, without the semicolon.
    pub(crate) fn in_c(&self, name: &str) -> String {
        let params: Vec<String> = self.params.iter().map(|p| p.of.in_c(&p.name)).collect();
        let params = if params.is_empty() {
            "void".to_owned()
        } else {
            params.join(", ")
        };
        format!("{} {name}({params})", self.result.in_c(""))
    }

    /// Without names.
    pub(crate) fn shape(&self) -> String {
        let params: Vec<String> = self.params.iter().map(|p| p.of.shape()).collect();
        format!("({}) -> {}", params.join(", "), self.result.shape())
    }

    /// Returns whether it reports errors through `errptr`.
    pub(crate) fn has_errptr(&self) -> bool {
        self.params.last().is_some_and(|p| {
            p.name == "errptr" && matches!(&p.of, Type::Plain { base, pointers, .. } if base == "char" && pointers.len() == 2)
        })
    }
}
