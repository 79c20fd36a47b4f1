//! Files that hold methods of one type and call each other's.
//!
//! A type whose methods are in several files should read from top to bottom as modules do: where a
//! method in file A calls one that file B defines, none in B may lead back to A. A call is
//! `self.x()`, `Self::x` or `Type::x`, or `p.x()` for a parameter `p` of the type, outside tests.
//! Methods are those of inherent `impl` blocks, and of traits where no other method of the type has
//! the name. A call through a field of another type is not seen: it needs the type checker.

use crate::Findings;
use crate::modules::{Crate, Edges, Path, attributes, by_crate, circles, is_for_tests, module_of};
use crate::source::Source;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use syn::visit::{self, Visit};
use syn::{Expr, FnArg, Ident, ImplItem, Item, Pat, Type};

/// A folder and a type whose methods may call each other in circles there, until they are taken
/// apart. An entry without a circle is a finding.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/lsm/src/pick/", "Context"),
    // Not looked at yet.
    ("crates/differential/src/model/", "Writer"),
    ("crates/differential/src/subject", "LibraryState"),
    ("crates/engine/src/db/open", "Opening"),
    ("crates/engine/src/repair/", "Repair"),
    ("crates/format/src/batch/", "WriteBatch"),
    ("crates/lab/src/dlopen", "LibStore"),
    ("crates/lab/src/runner", "Runner"),
    ("crates/lsm/src/compaction_stream/", "CompactionStream"),
    ("crates/sim/src/model/", "Session"),
    ("crates/txn/src/transaction/", "Transaction"),
];

/// A type: the module that defines it, and its name.
type TypeName = (Path, String);

/// One call of a method.
struct Call {
    on: TypeName,
    method: String,
    file: String,
    line: usize,
}

/// The methods of the types of one crate, and the calls of them.
#[derive(Default)]
struct Methods {
    /// The files of a method in inherent `impl` blocks.
    inherent: HashMap<(TypeName, String), BTreeSet<String>>,
    /// The files of a method in `impl` blocks of traits.
    of_traits: HashMap<(TypeName, String), BTreeSet<String>>,
    calls: Vec<Call>,
}

impl Methods {
    /// The file that defines a method, when there is one alone.
    fn file(&self, method: &(TypeName, String)) -> Option<&String> {
        let files = self.inherent.get(method).or(self.of_traits.get(method))?;
        files.first().filter(|_| files.len() == 1)
    }
}

/// Walks one file and notes the methods that it defines and calls.
struct Walk<'a> {
    modules: &'a Crate,
    found: &'a mut Methods,
    file: &'a str,
    /// The module that the walk is in.
    at: Path,
    /// The type of the `impl` block that the walk is in.
    own: Option<TypeName>,
    /// The parameters of the function that the walk is in, as far as they are of the crate's types.
    parameters: HashMap<String, TypeName>,
}

/// The names of a path, without their arguments.
fn names(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|s| s.ident.to_string()).collect()
}

/// The type behind references.
fn behind_references(mut of: &Type) -> &Type {
    while let Type::Reference(reference) = of {
        of = &reference.elem;
    }
    of
}

/// The variable that a method is called on.
fn receiver(mut on: &Expr) -> Option<&Ident> {
    loop {
        on = match on {
            Expr::Paren(inner) => &inner.expr,
            Expr::Reference(inner) => &inner.expr,
            Expr::Unary(inner) => &inner.expr,
            Expr::Path(path) => return path.path.get_ident(),
            _ => return None,
        }
    }
}

impl Walk<'_> {
    /// The type that a path names.
    fn type_of(&self, path: &[String]) -> Option<TypeName> {
        match path {
            [own] if own == "Self" => self.own.clone(),
            [.., name] if name.starts_with(char::is_uppercase) => {
                self.modules.type_of(&self.at, path)
            }
            // A module's function.
            _ => None,
        }
    }

    /// The type of a variable.
    fn variable(&self, name: &Ident) -> Option<TypeName> {
        if name == "self" {
            return self.own.clone();
        }
        self.parameters.get(&name.to_string()).cloned()
    }

    fn call(&mut self, on: Option<TypeName>, method: &Ident) {
        if let Some(on) = on {
            self.found.calls.push(Call {
                on,
                method: method.to_string(),
                file: self.file.to_owned(),
                line: method.span().start().line,
            });
        }
    }

    /// Runs `walk` with the parameters of a function.
    fn within(&mut self, signature: &syn::Signature, walk: impl FnOnce(&mut Self)) {
        let mut parameters = HashMap::new();
        for input in &signature.inputs {
            if let FnArg::Typed(typed) = input
                && let Pat::Ident(name) = &*typed.pat
                && let Type::Path(of) = behind_references(&typed.ty)
                && let Some(of) = self.type_of(&names(&of.path))
            {
                parameters.insert(name.ident.to_string(), of);
            }
        }
        let outer = std::mem::replace(&mut self.parameters, parameters);
        walk(self);
        self.parameters = outer;
    }

    /// Notes the calls in a macro's arguments.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(method) => self.token(&tokens, at, method),
                _ => {}
            }
        }
    }

    /// Notes the call of `method`, the token at `at`, when it is one.
    fn token(&mut self, tokens: &[TokenTree], at: usize, method: &Ident) {
        let is =
            |at: usize, c: char| matches!(&tokens[at], TokenTree::Punct(p) if p.as_char() == c);
        let is_called = matches!(
            tokens.get(at + 1),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis
        );
        if !is_called || at < 2 {
            return;
        }
        match &tokens[..at] {
            [.., TokenTree::Ident(on), _] if is(at - 1, '.') => {
                let is_field = at > 2 && is(at - 3, '.');
                let on = self.variable(on).filter(|_| !is_field);
                self.call(on, method);
            }
            [.., TokenTree::Ident(on), _, _] if is(at - 1, ':') && is(at - 2, ':') => {
                let on = self.type_of(&[on.to_string()]);
                self.call(on, method);
            }
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        match item {
            Item::Mod(module) if module.content.is_some() => {
                self.at.push(module.ident.to_string());
                visit::visit_item_mod(self, module);
                self.at.pop();
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let own = match behind_references(&block.self_ty) {
            Type::Path(of) => self.type_of(&names(&of.path)),
            _ => None,
        };
        let outer = std::mem::replace(&mut self.own, own);
        if let Some(own) = &self.own {
            let methods = match block.trait_ {
                None => &mut self.found.inherent,
                Some(_) => &mut self.found.of_traits,
            };
            for item in &block.items {
                if let ImplItem::Fn(method) = item
                    && !is_for_tests(&method.attrs)
                {
                    let key = (own.clone(), method.sig.ident.to_string());
                    methods.entry(key).or_default().insert(self.file.to_owned());
                }
            }
        }
        visit::visit_item_impl(self, block);
        self.own = outer;
    }

    fn visit_impl_item_fn(&mut self, method: &'ast syn::ImplItemFn) {
        if !is_for_tests(&method.attrs) {
            self.within(&method.sig, |walk| visit::visit_impl_item_fn(walk, method));
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.within(&function.sig, |walk| visit::visit_item_fn(walk, function));
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if let Some(on) = receiver(&call.receiver) {
            let on = self.variable(on);
            self.call(on, &call.method);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let [of @ .., method] = &path.segments.iter().collect::<Vec<_>>()[..]
            && !of.is_empty()
        {
            let of: Path = of.iter().map(|s| s.ident.to_string()).collect();
            let on = self.type_of(&of);
            self.call(on, &method.ident);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
    }

    // Nothing is called there.
    fn visit_item_use(&mut self, _: &'ast syn::ItemUse) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// The methods of one crate. Files that do not parse are findings of [`crate::modules`].
fn methods(sources: &[&Source]) -> Methods {
    let modules = Crate::of(sources, &mut Vec::new());
    let mut found = Methods::default();
    for source in sources {
        let Some(at) = module_of(&source.path).filter(|_| source.tests_from > 0) else {
            continue;
        };
        if let Ok(file) = syn::parse_file(&source.lines.join("\n")) {
            let mut walk = Walk {
                modules: &modules,
                found: &mut found,
                file: &source.path,
                at,
                own: None,
                parameters: HashMap::new(),
            };
            walk.visit_file(&file);
        }
    }
    found
}

/// The calls of each type's methods from one file to another, with the first place of each pair.
fn edges(found: &Methods) -> BTreeMap<TypeName, Edges> {
    let mut out: BTreeMap<TypeName, Edges> = BTreeMap::new();
    for call in &found.calls {
        let method = (call.on.clone(), call.method.clone());
        let Some(to) = found.file(&method).filter(|to| **to != call.file) else {
            continue;
        };
        let edges = out.entry(call.on.clone()).or_default();
        edges
            .entry((call.file.clone(), to.clone()))
            .or_insert_with(|| format!("line {}: {}", call.line, call.method));
    }
    out
}

fn check_against(sources: &[Source], allowed: &[(&str, &str)], findings: &mut Findings) {
    let mut needed = BTreeSet::new();
    for sources in by_crate(sources).values() {
        let found = methods(sources);
        for ((_, name), edges) in edges(&found) {
            for (files, calls) in circles(&edges) {
                let is_allowed = |(folder, of): &&(&str, &str)| {
                    *of == name && files.iter().all(|file| file.starts_with(folder))
                };
                if let Some(allowed) = allowed.iter().find(is_allowed) {
                    needed.insert(*allowed);
                    continue;
                }
                let first = files.first().map_or("", String::as_str);
                let mut text = format!("{first}: methods of {name} call each other in circles");
                for ((from, to), place) in &calls {
                    text.push_str(&format!("\n    {from} -> {to}: {place}"));
                }
                findings.push(text);
            }
        }
    }
    for (folder, name) in allowed {
        if !needed.contains(&(*folder, *name)) {
            findings.push(format!(
                "xtask/src/method_cycles.rs: methods of {name} in {folder} call each other in no \
                 circle: remove it from ALLOWED"
            ));
        }
    }
}

/// Finds the types whose methods call each other in circles over files.
pub(crate) fn check(sources: &[Source], findings: &mut Findings) {
    check_against(sources, ALLOWED, findings);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: (&str, &str) = ("lib.rs", "mod a;\nmod b;");

    fn found_with(files: &[(&str, &str)], allowed: &[(&str, &str)]) -> String {
        let sources: Vec<Source> = [LIB]
            .iter()
            .chain(files)
            .map(|(path, text)| Source::parse(format!("crates/x/src/{path}"), text))
            .collect();
        let mut findings = Vec::new();
        check_against(&sources, allowed, &mut findings);
        findings.join("\n")
    }

    fn found(a: &str, b: &str) -> String {
        found_with(&[("a.rs", a), ("b.rs", b)], &[])
    }

    const A: &str =
        "pub struct T;\nimpl T {\n    fn up(&self) { self.down(); }\n    fn low(&self) {}\n}";

    #[test]
    fn methods_that_call_each_other_are_found_with_the_places() {
        let b = "use crate::a::T;\nimpl T {\n    fn down(&self) { self.low(); }\n}";
        let findings = found(A, b);
        for text in [
            "crates/x/src/a.rs: methods of T call each other in circles",
            "crates/x/src/a.rs -> crates/x/src/b.rs: line 3: down",
            "crates/x/src/b.rs -> crates/x/src/a.rs: line 3: low",
        ] {
            assert!(findings.contains(text), "{findings}");
        }
    }

    #[test]
    fn every_form_of_a_call_counts() {
        for call in [
            "T::low(self)",
            "Self::low(self)",
            "crate::a::T::low(self)",
            "(&*self).low()",
            "assert!(!self.low().is_empty())",
            "each(|x| self.low())",
            "each(Self::low)",
        ] {
            let b = format!("use crate::a::T;\nimpl T {{ fn down(&self) {{ {call} }} }}");
            assert!(found(A, &b).contains("-> crates/x/src/a.rs"), "{call}");
        }
    }

    #[test]
    fn functions_and_traits_of_the_files_count_as_their_methods() {
        for b in [
            "use crate::a::T;\nimpl T { fn down(&self) { f(self) } }\nfn f(t: &T) { t.low() }",
            "use crate::a::T;\nimpl T { fn down(&self) {} }\nimpl Drop for T { fn drop(&mut self) { self.low() } }",
        ] {
            assert!(found(A, b).contains("in circles"), "{b}");
        }
        // A method of a trait, which is called as any other.
        let a =
            "pub struct T;\nimpl T {\n    fn up(&self) { self.down(); }\n    fn low(&self) {}\n}";
        let b = "use crate::a::T;\nimpl Down for T { fn down(&self) { self.low() } }";
        assert!(found(a, b).contains("in circles"));
    }

    #[test]
    fn calls_in_one_direction_are_fine() {
        for b in [
            "use crate::a::T;\nimpl T { fn down(&self) { self.own() } fn own(&self) {} }",
            // Of another type.
            "use crate::a::T;\nimpl T { fn down(&self) { self.part.low() } }",
            "use crate::a::T;\nimpl T { fn down(&self) { debug_assert!(self.part.low()) } }",
            "struct U;\nimpl U { fn down(&self) { self.low() } fn low(&self) {} }",
            // For tests.
            "use crate::a::T;\nimpl T { fn down(&self) {}\n    #[cfg(test)] fn t(&self) { self.low() } }",
            "use crate::a::T;\nimpl T { fn down(&self) {} }\n#[cfg(test)]\nmod tests { use super::*;\nfn f(t: &T) { t.low() } }",
            // Nobody knows which of them is meant.
            "use crate::a::T;\nimpl From<u8> for T { fn from(_: u8) -> T { T } }\nimpl T { fn down(&self) {} }",
        ] {
            assert_eq!(found(A, b), "", "{b}");
        }
    }

    #[test]
    fn a_method_of_two_traits_is_no_call_of_either_file() {
        let a = "pub struct T;\nimpl From<u8> for T { fn from(_: u8) -> T { Self::down() } }";
        let b = "use crate::a::T;\nimpl T { fn down() -> T { T::from(1u8) } }\nimpl From<u16> for T { fn from(_: u16) -> T { T } }";
        assert_eq!(found(a, b), "");
    }

    #[test]
    fn exceptions_are_by_folder_and_type_and_have_to_be_needed() {
        let b = "use crate::a::T;\nimpl T { fn down(&self) { self.low(); } }";
        let files = [("a.rs", A), ("b.rs", b)];
        assert_eq!(found_with(&files, &[("crates/x/", "T")]), "");
        for other in [("crates/x/", "U"), ("crates/y/", "T")] {
            let findings = found_with(&files, &[other]);
            assert!(findings.contains("in circles"), "{findings}");
            assert!(findings.contains("remove it from ALLOWED"), "{findings}");
        }
    }
}
