//! Opens the laboratory's pages in headless Chromium and checks how they are laid out.
//!
//! `cargo xtask page [FILE ...]` checks a made-up report and its history, or the given files, at
//! the widths of a phone and of a desk: no overflow, no text over other text, no empty chart, no
//! error on the console, contrast of 4.5 and more, headings, captions. First it makes sure that the
//! check finds each of these on a page that has them all. `--screenshots PREFIX` writes
//! `PREFIX-360.png` and `PREFIX-1280.png` of the first file. `CHROMIUM` names the browser.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use esker_lab::page;

use crate::Findings;

const CHECK: &str = include_str!("page/check.js");
/// Collects what would be printed on the console; it runs before everything else.
const LISTEN: &str = "<script>window.pageErrors=[];\
    window.addEventListener('error',function(e){window.pageErrors.push(String(e.message))});\
    (function(){var old=console.error;console.error=function(){\
    window.pageErrors.push([].join.call(arguments,' '));old.apply(console,arguments)}})();</script>";
const WIDTHS: [u32; 2] = [360, 1280];
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// A page on which every check has something to find.
const FAULTY: &str = "<!doctype html><html lang=\"en\"><head><meta name=\"viewport\" \
    content=\"width=device-width\"></head><body style=\"background:#fff\"><h1>Faults</h1>\
    <h3>too deep</h3><div style=\"width:3000px\">wide</div>\
    <div style=\"position:relative;height:30px\"><span style=\"position:absolute\">first text</span>\
    <span style=\"position:absolute\">second text</span></div>\
    <p style=\"color:#bbb\">pale</p><svg class=\"chart\" viewBox=\"0 0 340 150\" width=\"340\" \
    height=\"150\" role=\"img\"><title>t</title></svg><table><tr><th>no caption</th></tr></table>\
    <a href=\"#nowhere\">link</a><script>console.error('on purpose')</script></body></html>";
/// Findings that the page must give.
const FAULTS: [&str; 7] = [
    "overflow: ",
    "overlap: ",
    "contrast: ",
    "empty chart: ",
    "console: on purpose",
    "headings: ",
    "table: without a caption",
];

/// The browser, if there is one.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path)
        .flat_map(|directory| BROWSERS.map(|name| directory.join(name)));
    all.find(|path| path.is_file())
}

/// A browser with a directory of its own.
struct Browser {
    program: PathBuf,
    directory: tempfile::TempDir,
}

impl Browser {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
            ])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--hide-scrollbars",
            ])
            .args([
                "--disable-component-update",
                "--disable-sync",
                "--virtual-time-budget=5000",
            ])
            .arg(format!(
                "--user-data-dir={}",
                self.directory.path().join("profile").display()
            ))
            .stderr(Stdio::null());
        command
    }

    /// The findings on a page at a width. The page stands in a frame, because a window has a least
    /// width.
    fn findings(&self, html: &str, width: u32) -> io::Result<Findings> {
        let checked = html
            .replacen("<head>", &format!("<head>{LISTEN}"), 1)
            .replacen("</body>", &format!("<script>{CHECK}</script></body>"), 1);
        let inner = checked.replace('&', "&amp;").replace('"', "&quot;");
        let outer = format!(
            "<!doctype html><html><body><iframe id=\"f\" style=\"border:0;width:{width}px;\
             height:900px\" srcdoc=\"{inner}\"></iframe><pre id=\"out\"></pre><script>\
             document.getElementById('f').onload=function(){{\
             var found=this.contentDocument.getElementById('findings');\
             document.getElementById('out').textContent='BEGIN'+\
             (found?found.textContent:'the check did not run')+'END'}}</script></body></html>"
        );
        let file = self.directory.path().join("page.html");
        fs::write(&file, outer)?;
        let output = self
            .command()
            .arg("--dump-dom")
            .arg(format!("file://{}", file.display()))
            .output()?;
        let dom = String::from_utf8_lossy(&output.stdout);
        let text = dom
            .rsplit_once("<pre id=\"out\">BEGIN")
            .and_then(|(_, rest)| rest.split_once("END</pre>"))
            .map(|(text, _)| text.replace("&lt;", "<").replace("&gt;", ">"))
            .ok_or_else(|| io::Error::other("the browser gave no page back"))?;
        let mut lines = text.lines();
        let said = lines.next().unwrap_or_default();
        if said != format!("width {width}") {
            return Err(io::Error::other(format!(
                "a width of {width} was asked for: {said}"
            )));
        }
        Ok(lines
            .filter(|line| !line.is_empty())
            .map(String::from)
            .collect())
    }

    /// A picture of the top of a page at a width.
    fn screenshot(&self, html: &str, width: u32, to: &Path) -> io::Result<()> {
        let height = if width < 600 { 1500 } else { 1600 };
        let inner = html.replace('&', "&amp;").replace('"', "&quot;");
        // A window is 500 wide at least: what is beyond the frame is cut off by the caller's size.
        let outer = format!(
            "<!doctype html><html><body style=\"margin:0;background:#fff\"><iframe \
             style=\"border:0;width:{width}px;height:{height}px\" srcdoc=\"{inner}\"></iframe>\
             </body></html>"
        );
        let file = self.directory.path().join("picture.html");
        fs::write(&file, outer)?;
        let status = self
            .command()
            .arg(format!("--window-size={width},{height}"))
            .arg(format!("--screenshot={}", to.display()))
            .arg(format!("file://{}", file.display()))
            .stdout(Stdio::null())
            .status()?;
        if status.success() && to.is_file() {
            Ok(())
        } else {
            Err(io::Error::other("the browser made no picture"))
        }
    }
}

/// Name and text of the pages to check.
fn pages(files: &[&str]) -> io::Result<Vec<(String, String)>> {
    if !files.is_empty() {
        let read = |file: &&str| Ok(((*file).to_string(), fs::read_to_string(file)?));
        return files.iter().map(read).collect();
    }
    let record = page::sample::record();
    let mut older = record.clone();
    older.began -= 86_400;
    let history = page::history(&[&record, &older]).map_err(io::Error::other)?;
    Ok(vec![
        (
            "the made-up report".into(),
            page::page(&[&record], &["runs.tsv".into()]),
        ),
        ("two reports".into(), page::page(&[&record, &older], &[])),
        ("the history".into(), history),
    ])
}

/// Runs the checks.
pub(crate) fn run(args: &[&str]) -> io::Result<Findings> {
    let mut files = args.to_vec();
    let mut prefix = None;
    if let Some(at) = files.iter().position(|arg| *arg == "--screenshots") {
        if at + 1 >= files.len() {
            return Err(io::Error::other("--screenshots needs a prefix"));
        }
        prefix = Some(files.remove(at + 1));
        files.remove(at);
    }
    let Some(program) = browser() else {
        eprintln!(
            "skipped: no Chromium is installed ({} are looked for; CHROMIUM names another)",
            BROWSERS.join(", ")
        );
        return Ok(Vec::new());
    };
    let browser = Browser {
        program,
        directory: tempfile::tempdir()?,
    };
    let mut out = Vec::new();
    let faults = browser.findings(FAULTY, WIDTHS[0])?;
    for fault in FAULTS {
        if !faults.iter().any(|found| found.starts_with(fault)) {
            out.push(format!("the check does not find `{fault}` where it is"));
        }
    }
    let pages = pages(&files)?;
    for (name, html) in &pages {
        for width in WIDTHS {
            let found = browser.findings(html, width)?;
            eprintln!("{name}, {width} px: {} findings", found.len());
            out.extend(found.iter().map(|f| format!("{name}, {width} px: {f}")));
        }
    }
    if let (Some(prefix), Some((_, html))) = (prefix, pages.first()) {
        for width in WIDTHS {
            let to = PathBuf::from(format!("{prefix}-{width}.png"));
            browser.screenshot(html, width, &to)?;
        }
    }
    Ok(out)
}
