//! Which module of a crate imports which, and the cycles among siblings.
//!
//! A module stands here for itself with all that is below it. Siblings must not import each other,
//! directly or through others. An import is a path of an item that is not a test: in a `use`, in
//! code, or in a macro's arguments. It is followed through re-exports to the module that defines
//! the name, so a child that names a sibling through its parent imports the sibling.

use crate::Findings;
use crate::source::Source;
use proc_macro2::{Ident, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, Meta, UseTree};

/// How many re-exports a name is followed through.
const MOST_REEXPORTS: usize = 8;

/// A module's path from the crate's root.
pub(crate) type Path = Vec<String>;

/// One place where a module names something.
struct Import {
    file: String,
    line: usize,
    /// As written, with the crate's root, `self` and `super` resolved.
    path: Path,
}

/// Names that a module defines and imports.
#[derive(Default)]
struct Module {
    /// Names of its items, its child modules excepted.
    items: HashSet<String>,
    /// Names that `use` brings in, and what they stand for.
    uses: HashMap<String, Path>,
    /// Modules whose names `use` brings in together.
    globs: Vec<Path>,
    imports: Vec<Import>,
}

/// The modules of one crate.
pub(crate) struct Crate {
    modules: HashMap<Path, Module>,
    /// Modules that stand inside a file; they count as that file.
    inline: HashSet<Path>,
    /// Modules that only tests have.
    tests: Vec<Path>,
}

/// Returns whether an item with these attributes is compiled for tests alone.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => needs_test(list.tokens.clone()),
        Meta::Path(path) => path.is_ident("test"),
        _ => false,
    })
}

/// Returns whether the condition `test` or `all(.., test, ..)` is in a `cfg`.
fn needs_test(condition: TokenStream) -> bool {
    let mut tokens = condition.into_iter();
    match tokens.next() {
        Some(TokenTree::Ident(word)) if word == "test" => true,
        Some(TokenTree::Ident(word)) if word == "all" => match tokens.next() {
            Some(TokenTree::Group(group)) => group
                .stream()
                .into_iter()
                .any(|t| matches!(t, TokenTree::Ident(word) if word == "test")),
            _ => false,
        },
        _ => false,
    }
}

/// The attributes of an item.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// The name that an item defines.
fn name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(i) => Some(&i.ident),
        Item::Enum(i) => Some(&i.ident),
        Item::Fn(i) => Some(&i.sig.ident),
        Item::Macro(i) => i.ident.as_ref(),
        Item::Static(i) => Some(&i.ident),
        Item::Struct(i) => Some(&i.ident),
        Item::Trait(i) => Some(&i.ident),
        Item::Type(i) => Some(&i.ident),
        Item::Union(i) => Some(&i.ident),
        _ => None,
    }
}

/// Walks one file and notes what its modules name.
struct Walk<'a> {
    found: &'a mut Crate,
    file: &'a str,
    /// The module that the walk is in.
    at: Path,
}

impl Walk<'_> {
    fn module(&mut self) -> &mut Module {
        self.found.modules.entry(self.at.clone()).or_default()
    }

    fn import(&mut self, path: Path, line: usize) {
        let file = self.file.to_owned();
        self.module().imports.push(Import { file, line, path });
    }

    /// Notes every leaf of a `use`.
    fn tree(&mut self, tree: &UseTree, mut before: Path) {
        let line = tree.span().start().line;
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(tree, before.clone());
                }
            }
            UseTree::Glob(_) => {
                self.module().globs.push(before.clone());
                self.import(before, line);
            }
            UseTree::Name(leaf) => {
                let name = leaf.ident.to_string();
                self.leaf(before, &name, &name, line);
            }
            UseTree::Rename(leaf) => {
                let (from, to) = (leaf.ident.to_string(), leaf.rename.to_string());
                self.leaf(before, &from, &to, line);
            }
        }
    }

    fn leaf(&mut self, mut path: Path, name: &str, known_as: &str, line: usize) {
        if name == "self" {
            let Some(last) = path.last().cloned() else {
                return;
            };
            let known_as = if known_as == "self" {
                last
            } else {
                known_as.to_owned()
            };
            self.module().uses.insert(known_as, path.clone());
        } else {
            path.push(name.to_owned());
            self.module().uses.insert(known_as.to_owned(), path.clone());
        }
        self.import(path, line);
    }

    /// Notes the paths of at least two names in a macro's arguments.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<Ident> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(word) if colons == 2 => {
                    path.push(word);
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(p) if p.as_char() == ':' && !path.is_empty() && colons < 2 => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(word) => {
                    self.path_of(&path);
                    path = vec![word];
                }
                TokenTree::Group(group) => {
                    self.path_of(&path);
                    path.clear();
                    self.tokens(group.stream());
                }
                _ => {
                    self.path_of(&path);
                    path.clear();
                }
            }
            colons = 0;
        }
        self.path_of(&path);
    }

    fn path_of(&mut self, path: &[Ident]) {
        if path.len() > 1 {
            let line = path[0].span().start().line;
            self.import(path.iter().map(Ident::to_string).collect(), line);
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes(item)) {
            if let Item::Mod(module) = item {
                let mut path = self.at.clone();
                path.push(module.ident.to_string());
                self.found.tests.push(path);
            }
            return;
        }
        if let Some(name) = name(item) {
            let name = name.to_string();
            self.module().items.insert(name);
        }
        match item {
            Item::Mod(module) if module.content.is_some() => {
                self.at.push(module.ident.to_string());
                self.found.inline.insert(self.at.clone());
                self.module();
                visit::visit_item_mod(self, module);
                self.at.pop();
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(i) => &i.attrs,
            ImplItem::Fn(i) => &i.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.tree(&item.tree, Vec::new());
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names: Vec<Ident> = path.segments.iter().map(|s| s.ident.clone()).collect();
            self.path_of(&names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    // Neither attributes nor `pub(in path)` import anything.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

impl Crate {
    pub(crate) fn of(sources: &[&Source], findings: &mut Findings) -> Crate {
        let mut found = Crate {
            modules: HashMap::new(),
            inline: HashSet::new(),
            tests: Vec::new(),
        };
        for source in sources {
            let Some(at) = module_of(&source.path).filter(|_| source.tests_from > 0) else {
                continue;
            };
            match syn::parse_file(&source.lines.join("\n")) {
                Ok(file) => {
                    let file_name = &source.path;
                    let mut walk = Walk {
                        found: &mut found,
                        file: file_name,
                        at,
                    };
                    walk.module();
                    walk.visit_file(&file);
                }
                Err(error) => findings.push(format!("{}: {error}", source.path)),
            }
        }
        let tests = std::mem::take(&mut found.tests);
        let is_test = |m: &Path| tests.iter().any(|t| m.starts_with(t));
        found.modules.retain(|module, _| !is_test(module));
        found
    }

    /// The path from the root of what `path` means in `module`, where it is of this crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Path> {
        let first = path.first()?;
        match first.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" | "super" => {
                let mut base = module.to_vec();
                let mut rest = path;
                while let Some(word) = rest.first().filter(|w| *w == "self" || *w == "super") {
                    if word == "super" {
                        base.pop()?;
                    }
                    rest = &rest[1..];
                }
                Some([&base, rest].concat())
            }
            _ => {
                let child = [module, &path[..1]].concat();
                if self.modules.contains_key(&child) {
                    return Some([module, path].concat());
                }
                let used = self.modules.get(module)?.uses.get(first)?;
                // A name that stands for itself is of another crate.
                if used.first() == Some(first) {
                    return None;
                }
                let used = self.absolute(module, used)?;
                Some([&used, &path[1..]].concat())
            }
        }
    }

    /// The module that defines the type which `path` names in `module`, and its name there; `None`
    /// for a type of another crate.
    pub(crate) fn type_of(&self, module: &[String], path: &[String]) -> Option<(Path, String)> {
        if let [name] = path
            && self.modules.get(module)?.items.contains(name)
        {
            return Some((module.to_vec(), name.clone()));
        }
        let path = self.absolute(module, path)?;
        let name = path.last()?.clone();
        Some((self.definer(&path, 0)?, name))
    }

    /// The module that defines what an absolute path names.
    fn definer(&self, path: &[String], depth: usize) -> Option<Path> {
        let mut module: Path = Vec::new();
        for (at, word) in path.iter().enumerate() {
            let next = [&module[..], std::slice::from_ref(word)].concat();
            if self.modules.contains_key(&next) {
                module = next;
                continue;
            }
            return self.defined_as(&module, &path[at..], depth);
        }
        Some(module)
    }

    /// The module that defines a path which begins with a name in `module` that is no child module.
    fn defined_as(&self, module: &Path, path: &[String], depth: usize) -> Option<Path> {
        let known = self.modules.get(module)?;
        let name = &path[0];
        if known.items.contains(name) || depth == MOST_REEXPORTS {
            return Some(module.clone());
        }
        if let Some(used) = known.uses.get(name) {
            // What is not of this crate is imported from nobody here.
            let used = self.absolute(module, used)?;
            return self.definer(&[&used, &path[1..]].concat(), depth + 1);
        }
        let through = known.globs.iter().find_map(|glob| {
            let base = self.absolute(module, glob)?;
            let definer = self.definer(&[&base, path].concat(), depth + 1)?;
            let has_it = self.modules[&definer].items.contains(name);
            has_it.then_some(definer)
        });
        // A method, a variant or a macro's product: the module has it.
        Some(through.unwrap_or_else(|| module.clone()))
    }

    /// The module whose file has `module`.
    fn with_file(&self, mut module: Path) -> Path {
        while self.inline.contains(&module) {
            module.pop();
        }
        module
    }

    /// Every import that goes to another module, as (from, to, where).
    fn edges(&self) -> Vec<(Path, Path, &Import)> {
        let mut out = Vec::new();
        for (from, module) in &self.modules {
            for import in &module.imports {
                let to = self
                    .absolute(from, &import.path)
                    .and_then(|path| self.definer(&path, 0));
                if let Some(to) = to {
                    out.push((self.with_file(from.clone()), self.with_file(to), import));
                }
            }
        }
        out
    }
}

/// The module that a file below `src` is; `None` for a program's file.
pub(crate) fn module_of(path: &str) -> Option<Path> {
    let (_, inside) = path.split_once("src/")?;
    let mut parts: Path = inside
        .strip_suffix(".rs")?
        .split('/')
        .map(str::to_owned)
        .collect();
    match parts.last().map(String::as_str) {
        Some("mod") => {
            parts.pop();
        }
        Some("lib" | "main") if parts.len() == 1 => parts.clear(),
        _ => {}
    }
    (parts.first().map(String::as_str) != Some("bin")).then_some(parts)
}

/// Siblings below one parent that import each other, with the first import of each pair.
struct Cycle {
    parent: Path,
    modules: BTreeSet<String>,
    imports: Edges,
}

/// Pairs of which the first names the second, each with a place where it does.
pub(crate) type Edges = BTreeMap<(String, String), String>;

/// All that `from` leads to.
fn reached<'a>(from: &'a str, edges: &'a Edges) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut left = vec![from];
    while let Some(module) = left.pop() {
        for (_, to) in edges.keys().filter(|(a, _)| a == module) {
            if seen.insert(to.as_str()) {
                left.push(to);
            }
        }
    }
    seen
}

fn cycles(found: &Crate) -> Vec<Cycle> {
    let mut by_parent: BTreeMap<Path, Edges> = BTreeMap::new();
    let mut edges = found.edges();
    edges.sort_by_key(|(_, _, import)| (&import.file, import.line));
    for (from, to, import) in edges {
        let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
            let place = format!(
                "{}:{} -> {}",
                import.file,
                import.line,
                import.path.join("::")
            );
            let pairs = by_parent.entry(from[..common].to_vec()).or_default();
            pairs.entry((a.clone(), b.clone())).or_insert(place);
        }
    }
    let mut out = Vec::new();
    for (parent, edges) in by_parent {
        for (modules, imports) in circles(&edges) {
            out.push(Cycle {
                parent: parent.clone(),
                modules,
                imports,
            });
        }
    }
    out
}

/// The largest sets of two names or more that all lead to each other, each with its edges.
pub(crate) fn circles(edges: &Edges) -> Vec<(BTreeSet<String>, Edges)> {
    let mut out = Vec::new();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for (node, _) in edges.keys() {
        if done.contains(node.as_str()) {
            continue;
        }
        let in_cycle: BTreeSet<&str> = reached(node, edges)
            .into_iter()
            .filter(|other| reached(other, edges).contains(node.as_str()))
            .collect();
        done.extend(&in_cycle);
        if in_cycle.len() > 1 {
            let inside = |(a, b): &(String, String)| {
                in_cycle.contains(a.as_str()) && in_cycle.contains(b.as_str())
            };
            let inside = edges.iter().filter(|(pair, _)| inside(pair));
            let inside = inside.map(|(pair, place)| (pair.clone(), place.clone()));
            let names = in_cycle.iter().map(|m| (*m).to_owned());
            out.push((names.collect(), inside.collect()));
        }
    }
    out
}

/// The sources of each crate, by its folder.
pub(crate) fn by_crate(sources: &[Source]) -> BTreeMap<String, Vec<&Source>> {
    let mut out: BTreeMap<String, Vec<&Source>> = BTreeMap::new();
    for source in sources.iter().filter(|s| s.path.contains("src/")) {
        let root = source.path.split("src/").next().unwrap_or_default();
        out.entry(root.to_owned()).or_default().push(source);
    }
    out
}

/// Finds the cycles of every crate.
pub(crate) fn check(sources: &[Source], findings: &mut Findings) {
    for (root, sources) in by_crate(sources) {
        let found = Crate::of(&sources, findings);
        for cycle in cycles(&found) {
            let names: Vec<&str> = cycle.modules.iter().map(String::as_str).collect();
            let parent = [&["crate".to_owned()], &cycle.parent[..]]
                .concat()
                .join("::");
            let mut text = format!(
                "{root}src: {parent}: {} import each other",
                names.join(", ")
            );
            for ((from, to), place) in &cycle.imports {
                text.push_str(&format!("\n    {from} -> {to}: {place}"));
            }
            findings.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::parse(format!("crates/x/src/{path}"), text))
            .collect();
        let mut findings = Vec::new();
        check(&sources, &mut findings);
        findings
    }

    #[test]
    fn siblings_that_import_each_other_are_found_with_the_places() {
        let findings = found(&[
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "use crate::b::{C, D as E};\npub struct A;"),
            (
                "b.rs",
                "pub struct C;\npub struct D;\nfn f() { super::a::g() }",
            ),
        ]);
        assert_eq!(findings.len(), 1, "{findings:?}");
        for text in [
            "crates/x/src: crate: a, b import each other",
            "a -> b: crates/x/src/a.rs:1 -> crate::b::C",
            "b -> a: crates/x/src/b.rs:3 -> super::a::g",
        ] {
            assert!(findings[0].contains(text), "{findings:?}");
        }
    }

    #[test]
    fn a_cycle_through_others_is_found_at_every_depth() {
        let findings = found(&[
            ("lib.rs", "mod p;"),
            ("p/mod.rs", "mod a;\nmod b;\nmod c;"),
            ("p/a.rs", "use super::b::X;"),
            ("p/b/mod.rs", "mod low;\npub struct X;"),
            ("p/b/low.rs", "fn f() { crate::p::c::g() }"),
            ("p/c.rs", "use super::a;\npub fn g() { a::h() }"),
        ]);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(
            findings[0].contains("crate::p: a, b, c import"),
            "{findings:?}"
        );
    }

    #[test]
    fn names_are_followed_through_their_parent() {
        // `b` names what `a` defines by the name that the parent gives it.
        let parents = [
            "pub use a::A;\nmod a;\nmod b;",
            "pub use a::*;\nmod a;\nmod b;",
        ];
        for parent in parents {
            let findings = found(&[
                ("lib.rs", parent),
                ("a.rs", "use crate::b::B;\npub struct A;"),
                ("b.rs", "use crate::A;\npub struct B;"),
            ]);
            assert_eq!(findings.len(), 1, "{parent}: {findings:?}");
        }
    }

    #[test]
    fn arguments_of_macros_count() {
        let findings = found(&[
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "fn f() { assert!(crate::b::g() > 0); }"),
            (
                "b.rs",
                "use crate::a;\npub fn g() -> u8 { vec![(1, a::h())][0].0 }",
            ),
        ]);
        assert_eq!(findings.len(), 1, "{findings:?}");
    }

    #[test]
    fn modules_inside_a_file_count_as_the_file() {
        let findings = found(&[
            ("lib.rs", "mod a;"),
            (
                "a/mod.rs",
                "mod b;\npub use x::f;\nmod x { use super::b::B;\npub fn f() {} }",
            ),
            ("a/b.rs", "pub struct B;\nfn g() { super::f() }"),
        ]);
        assert_eq!(findings, Vec::<String>::new());
    }

    #[test]
    fn tests_parents_and_other_crates_do_not_count() {
        let files = [
            (
                "lib.rs",
                "mod a;\nmod b;\n#[cfg(test)]\nmod helper;\npub struct Root;",
            ),
            (
                "a.rs",
                "use crate::Root;\nuse other::b::Y;\n#[cfg(test)]\nuse crate::b::B;\n\
                 pub struct A;\n#[cfg(all(test, unix))]\nmod tests { use crate::b::B; }",
            ),
            ("a/tests.rs", "use crate::b::B;"),
            ("helper.rs", "use crate::b::B;"),
            (
                "b.rs",
                "use crate::a::A;\nuse crate::Root;\npub(in crate::a) struct B;",
            ),
            ("bin/p.rs", "use x::a;"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }
}
