//! Constants of overload: the numbers by which writers are slowed down and trees give relief.
//!
//! `docs/overload.md` lists each with the measurement behind it. Here the list is held against the
//! files of the policy: a constant that only one of them has is a finding, and so is a number
//! without a name that scales a figure or is compared with one. Factors between units, and small
//! powers of two, need no name.

use crate::Findings;
use crate::modules::is_for_tests;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprBinary, ExprMethodCall, Lit};

const DOCUMENT: &str = "docs/overload.md";
/// The heading above the table.
const CHAPTER: &str = "## Numbers";
/// Files and folders of the policy.
const POLICY: &[&str] = &[
    "crates/engine/src/family/backpressure/",
    "crates/engine/src/job/merge_yield.rs",
    "crates/lsm/src/load.rs",
    "crates/lsm/src/overload.rs",
    "crates/lsm/src/pace.rs",
    "crates/lsm/src/pick/tiered.rs",
    "crates/lsm/src/relief.rs",
    "crates/lsm/src/stack.rs",
    "crates/lsm/src/writers.rs",
];
/// The most constants, and the most files that have them.
const MOST: (usize, usize) = (25, 4);
/// Numbers that need no name.
const PLAIN: &[f64] = &[0.0, 1.0, 2.0, 4.0, 8.0, 100.0, 1024.0, 1e3, 1e6, 1e9];
/// Types of constants that are numbers or times.
const NUMBERS: &[&str] = &["f64", "u8", "u32", "u64", "usize", "Duration"];

/// Constants and unnamed numbers of one file.
#[derive(Default)]
struct Numbers {
    /// Name and line.
    named: Vec<(String, usize)>,
    /// Text and line.
    unnamed: Vec<(String, usize)>,
}

impl Numbers {
    fn declare(&mut self, ident: &syn::Ident, ty: &syn::Type, value: &Expr) {
        let line = ident.span().start().line;
        let syn::Type::Path(ty) = ty else { return };
        let last = ty.path.segments.last().map(|s| s.ident.to_string());
        let is_number = last.is_some_and(|name| NUMBERS.contains(&name.as_str()));
        // Infinity is no measurement.
        let is_measured = !matches!(value, Expr::Path(_)) && ident != "UNIT";
        if is_number && is_measured {
            self.named.push((ident.to_string(), line));
        }
    }

    /// Takes note of `expr` where it is a number that needs a name.
    fn look(&mut self, expr: &Expr) {
        let Expr::Lit(literal) = expr else { return };
        let (value, text) = match &literal.lit {
            Lit::Int(int) => (int.base10_parse::<f64>(), int.to_string()),
            Lit::Float(float) => (float.base10_parse::<f64>(), float.to_string()),
            _ => return,
        };
        if value.is_ok_and(|value| !PLAIN.contains(&value)) {
            self.unnamed.push((text, literal.span().start().line));
        }
    }
}

impl<'ast> Visit<'ast> for Numbers {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.declare(&item.ident, &item.ty, &item.expr);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.declare(&item.ident, &item.ty, &item.expr);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        // Shifts, masks and their comparisons are about bits.
        if !matches!(binary.op, BinOp::Shl(_) | BinOp::Shr(_) | BinOp::BitAnd(_)) {
            self.look(&binary.left);
            self.look(&binary.right);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let name = call.method.to_string();
        if matches!(name.as_str(), "max" | "min" | "clamp") || name.contains("mul") {
            call.args.iter().for_each(|argument| self.look(argument));
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// The rows of the table: each constant with its file.
fn listed(document: &str, findings: &mut Findings) -> BTreeMap<(String, String), usize> {
    let lines = document.lines().enumerate();
    let rows = lines
        .skip_while(|(_, line)| *line != CHAPTER)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "))
        .filter(|(_, line)| line.starts_with("| `"));
    let mut out = BTreeMap::new();
    for (at, line) in rows {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let names = cells.get(1).map_or("", |cell| cell).split(", ");
        let file = cells.get(3).map_or("", |cell| cell).trim_matches('`');
        for name in names {
            let row = (file.to_owned(), name.trim_matches('`').to_owned());
            if out.insert(row, at + 1).is_some() {
                findings.push(format!("{DOCUMENT}:{}: {name} is listed twice", at + 1));
            }
        }
    }
    out
}

/// Holds the table against the files; the line that `tidy` prints.
pub(crate) fn check(
    texts: &[(String, String)],
    sources: &[Source],
    findings: &mut Findings,
) -> String {
    let document = texts.iter().find(|(path, _)| path == DOCUMENT);
    let listed = listed(document.map_or("", |(_, text)| text), findings);
    let mut declared = BTreeSet::new();
    for source in sources {
        let is_policy = POLICY.iter().any(|path| source.path.starts_with(path));
        if !is_policy || source.tests_from == 0 {
            continue;
        }
        // A file that does not parse is a finding of the check of modules.
        let Ok(file) = syn::parse_file(&source.lines.join("\n")) else {
            continue;
        };
        let mut numbers = Numbers::default();
        numbers.visit_file(&file);
        let short = source
            .path
            .replacen("crates/", "", 1)
            .replacen("src/", "", 1);
        for (name, line) in numbers.named {
            if !listed.contains_key(&(short.clone(), name.clone())) {
                findings.push(format!(
                    "{}:{line}: {name} is no constant of {DOCUMENT}: what does it do there, and \
                     what was measured without it?",
                    source.path
                ));
            }
            declared.insert((short.clone(), name));
        }
        for (text, line) in numbers.unnamed {
            findings.push(format!("{}:{line}: {text} has no name", source.path));
        }
    }
    for ((file, name), line) in &listed {
        if !declared.contains(&(file.clone(), name.clone())) {
            findings.push(format!("{DOCUMENT}:{line}: {file} has no constant {name}"));
        }
    }
    let files: BTreeSet<&String> = listed.keys().map(|(file, _)| file).collect();
    let counts = (listed.len(), files.len());
    if counts.0 > MOST.0 || counts.1 > MOST.1 {
        findings.push(format!(
            "{DOCUMENT}: {} constants in {} files, more than {} in {}",
            counts.0, counts.1, MOST.0, MOST.1
        ));
    }
    format!("constants of overload: {} in {} files", counts.0, counts.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(document: &str, code: &str) -> Findings {
        let path = "crates/lsm/src/pace.rs".to_owned();
        let mut findings = Findings::new();
        let texts = [(DOCUMENT.to_owned(), document.to_owned())];
        check(&texts, &[Source::parse(path, code)], &mut findings);
        findings
    }

    #[test]
    fn what_only_one_side_has_is_found() {
        let document = "## Numbers\n\n| constant | value | file |\n|---|---|---|\n\
                        | `A`, `B` | 1, 2 | `lsm/pace.rs` | measured |\n";
        let code = "const A: f64 = 3.0;\nconst B: u64 = 7;\nconst NAME: &str = \"\";";
        assert_eq!(findings(document, code), Findings::new());
        let code = "const A: f64 = 3.0;\nconst C: Duration = Duration::from_secs(3);";
        let found = findings(document, code);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("pace.rs:2: C is no constant"),
            "{found:?}"
        );
        assert!(found[1].contains("no constant B"), "{found:?}");
    }

    #[test]
    fn numbers_need_names_where_they_scale_or_are_compared() {
        let code = "fn f(x: f64) -> f64 { if x > 0.3 { x * 2.0 } else { x.max(17.0) + 1e6 } }\n\
                    #[cfg(test)]\nmod tests { fn g() -> f64 { 3.5 * 7.5 } }";
        let found = findings("", code);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("0.3 has no name") && found[1].contains("17.0"),
            "{found:?}"
        );
    }
}
