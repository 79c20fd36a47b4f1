//! The report as one page that loads nothing else: no script, no font, no picture. The browser's
//! colours, light or dark.

use crate::report::{Report, one_line};
use std::fmt::Write as _;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:70rem;\
color:light-dark(#1b1b1b,#e6e6e6);background:light-dark(#fff,#161616)}\
h1{font-size:1.4rem;margin:0 0 .5rem}h2{font-size:1.15rem;margin:2rem 0 .5rem;\
overflow-wrap:anywhere;border-top:1px solid light-dark(#767676,#8c8c8c);padding-top:1rem}\
h3{font-size:1rem;margin:1.2rem 0 .3rem;overflow-wrap:anywhere}\
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:.4rem 1.5rem;margin:0}\
dl div{min-width:0}dt{font-size:.85rem;color:light-dark(#595959,#b0b0b0)}\
dd{margin:0;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}\
pre{font:13px/1.45 ui-monospace,monospace;overflow-x:auto;margin:0;padding:.6rem;\
background:light-dark(#f2f2f2,#242424);border-radius:4px}\
summary{cursor:pointer;overflow-wrap:anywhere}details{margin:.5rem 0}\
a{color:light-dark(#0b57a4,#8ab8f0)}";

/// Text as it stands in a page.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "{}", c.escape_default());
            }
            c => out.push(c),
        }
    }
    out
}

/// The page.
pub(crate) fn html(report: &Report) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>Esker: {open} open</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>Esker {version}, process {process}</h1>\n\
         <p>Databases open: {open}. As <a href=\"/text\">text</a>, as \
         <a href=\"/metrics\">metrics</a>.</p>\n",
        open = report.databases.len(),
        version = env!("CARGO_PKG_VERSION"),
        process = std::process::id(),
    );
    for db in &report.databases {
        let _ = write!(out, "<h2>{}</h2>\n<dl>\n", escaped(&one_line(&db.path)));
        for (name, value) in &db.figures {
            let (name, value) = (escaped(name), escaped(&one_line(value)));
            let _ = writeln!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>");
        }
        out.push_str("</dl>\n");
        for (title, part) in &db.parts {
            let (title, part) = (escaped(title), escaped(part));
            let _ = writeln!(out, "<h3>{title}</h3>\n<pre tabindex=\"0\">{part}</pre>");
        }
        for (title, part) in &db.options {
            let (title, part) = (escaped(title), escaped(part));
            let _ = writeln!(
                out,
                "<details><summary>{title}</summary>\n<pre tabindex=\"0\">{part}</pre></details>"
            );
        }
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of the light that a colour gives back, as WCAG 2 defines it.
    fn luminance(colour: &str) -> f64 {
        let hex = colour.trim_start_matches('#');
        let digit = |at: usize| {
            let width = hex.len() / 3;
            let part = hex[at * width..(at + 1) * width].repeat(2 / width);
            let c = f64::from(u8::from_str_radix(&part, 16).expect("digits")) / 255.0;
            if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * digit(0) + 0.7152 * digit(1) + 0.0722 * digit(2)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// The colours, light and dark, of `property` in the rule of `selector`.
    fn colours(selector: &str, property: &str) -> [&'static str; 2] {
        let rule = STYLE
            .split('}')
            .find_map(|r| r.trim().strip_prefix(selector)?.strip_prefix('{'));
        let rule = rule.unwrap_or_else(|| panic!("no rule {selector}"));
        let value = rule
            .split(';')
            .find_map(|d| d.strip_prefix(property)?.strip_prefix(':'));
        let both = value.and_then(|v| v.strip_prefix("light-dark(")?.strip_suffix(')'));
        let (light, dark) = both.and_then(|b| b.split_once(',')).expect("two colours");
        [light, dark]
    }

    #[test]
    fn text_stands_out_in_light_and_in_dark() {
        for at in 0..2 {
            let page = colours("body", "background")[at];
            let boxes = colours("pre", "background")[at];
            for (selector, behind) in [("body", page), ("body", boxes), ("dt", page), ("a", page)] {
                let ratio = contrast(colours(selector, "color")[at], behind);
                assert!(
                    ratio >= 7.0 || (selector != "body" && ratio >= 4.5),
                    "{selector} {ratio}"
                );
            }
        }
        assert!((contrast("#000", "#ffffff") - 21.0).abs() < 1e-9);
    }
}
