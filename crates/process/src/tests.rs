//! The rules of the server, by sockets.

use crate::address::is_host_allowed;
use crate::request::{Request, View, parse};
use crate::{Databases, Server, StatsAddress, Switches};
use esker::{Db, FamilyOptions, Options};
use esker_sync::Arc;
use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// A database with a key and a value that must not be shown, and a server for it.
struct Served {
    dir: tempfile::TempDir,
    db: Db,
    databases: Arc<Databases>,
    at: SocketAddr,
}

const KEY: &str = "zyzzyva-key";
const VALUE: &str = "zyzzyva-value";

fn served() -> Served {
    let dir = tempfile::tempdir().expect("a directory");
    let db = opened(&dir.path().join("db"));
    let databases = Databases::new();
    let address = StatsAddress::parse("127.0.0.1:0", 1, false).expect("an address");
    let server = Server::begin(&address, Arc::clone(&databases), false).expect("begins");
    let at = server
        .at()
        .trim_start_matches("http://")
        .trim_end_matches('/');
    let at = at.parse().expect("an address");
    Served {
        dir,
        db,
        databases,
        at,
    }
}

fn opened(path: &Path) -> Db {
    let mut options = Options::new().create_if_missing(true);
    options.db.statistics = Some(esker::observe::Statistics::new());
    let db = Db::open(path, options).expect("opens");
    db.put(KEY, VALUE).expect("writes");
    db.flush().expect("flushes");
    db.put(KEY, VALUE).expect("writes");
    db
}

impl Served {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).expect("connects");
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).expect("a socket");
        stream
    }

    fn send(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(request).expect("sends");
        rest(&mut stream)
    }

    fn get(&self, target: &str) -> String {
        let host = self.at;
        self.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
    }

    /// The database is as it was.
    fn is_well(&self) {
        assert_eq!(
            self.db.get(KEY).expect("reads").as_deref(),
            Some(VALUE.as_bytes())
        );
        assert!(self.get("/metrics").starts_with("HTTP/1.1 200 OK\r\n"));
    }
}

/// Reads until the other side closes, or breaks off.
fn rest(stream: &mut impl std::io::Read) -> String {
    let mut out = Vec::new();
    let mut bytes = [0; 4096];
    while let Ok(n @ 1..) = stream.read(&mut bytes) {
        out.extend_from_slice(&bytes[..n]);
    }
    String::from_utf8(out).expect("UTF-8")
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn addresses_are_loopback_unless_others_are_allowed() {
    let tcp = |text: &str| StatsAddress::Tcp(text.parse().expect("an address"));
    let parse = |text, is_remote| StatsAddress::parse(text, 77, is_remote);
    assert_eq!(parse("127.0.0.1:9200", false), Ok(tcp("127.0.0.1:9200")));
    assert_eq!(parse("[::1]:0", false), Ok(tcp("[::1]:0")));
    assert_eq!(
        parse("unix:run/esker.%p", false),
        Ok(StatsAddress::Unix("run/esker.77".into()))
    );
    assert_eq!(parse("0.0.0.0:9200", true), Ok(tcp("0.0.0.0:9200")));
    let wrong = [
        "0.0.0.0:9200",
        "10.1.2.3:9200",
        "[::]:9200",
        "localhost:9200",
        "9200",
        "127.0.0.1",
        "on",
        "127.0.0.1:99999",
        "unix:",
        "unix:a\0b",
        "http://127.0.0.1:9200",
    ];
    for text in wrong {
        assert!(parse(text, false).is_err(), "{text}");
    }
}

#[test]
fn hosts_are_literals() {
    for host in [
        "127.0.0.1",
        "127.0.0.1:9200",
        "127.9.9.9:1",
        "[::1]",
        "[::1]:9200",
    ] {
        assert!(is_host_allowed(host, false), "{host}");
    }
    let wrong = [
        "localhost",
        "localhost:9200",
        "evil.example",
        "127.0.0.1.evil.example",
        "",
        "::1",
        "[127.0.0.1]",
        "10.0.0.1:9200",
        "0.0.0.0",
        "127.0.0.1:x",
        "[::1",
        "127.1",
        "2130706433",
        "user@127.0.0.1",
    ];
    for host in wrong {
        assert!(!is_host_allowed(host, false), "{host}");
    }
    assert!(is_host_allowed("10.0.0.1:9200", true));
    assert!(!is_host_allowed("db.example:9200", true));
}

#[test]
fn requests_are_read_whole_or_refused() {
    let refused = |text: &str| match parse(text.as_bytes(), false) {
        Request::Refused(status, _) => status.split(' ').next().expect("a number").to_owned(),
        other => format!("{other:?}"),
    };
    let whole = "GET /metrics?x=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n";
    for cut in 1..whole.len() {
        assert_eq!(
            parse(&whole.as_bytes()[..cut], false),
            Request::Partial,
            "{cut}"
        );
    }
    assert_eq!(parse(whole.as_bytes(), false), Request::Get(View::Metrics));
    for (text, status) in [
        ("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "405"),
        ("HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "405"),
        (
            "OPTIONS / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n\r\n",
            "405",
        ),
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.0\r\n\r\n", "400"),
        (
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n",
            "400",
        ),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"),
        (
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nhello",
            "400",
        ),
        (
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "400",
        ),
        (
            "GET /../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            "404",
        ),
        (
            "GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            "404",
        ),
        ("GET / HTTP/9.9\r\n\r\n", "400"),
        ("\x16\x03\x01\x02\0\x01", "400"),
        ("GET / HTTP/1.1\r\nHo st: 127.0.0.1\r\n\r\n", "400"),
    ] {
        assert_eq!(refused(text), status, "{text:?}");
    }
    let many = "a: b\r\n".repeat(65);
    assert_eq!(refused(&format!("GET / HTTP/1.1\r\n{many}\r\n")), "431");
    assert_eq!(refused(&format!("GET /{} ", "a".repeat(8192))), "431");
}

#[test]
fn what_is_open_is_shown_and_no_data_of_it() {
    let served = served();
    let _first = served.databases.add(&served.db);
    let other = opened(&served.dir.path().join("<b>&\"other\""));
    other
        .create_family("<script>alert(1)</script>", FamilyOptions::default())
        .expect("creates");
    let second = served.databases.add(&other);
    let [page, text, metrics] = ["/", "/text", "/metrics"].map(|target| served.get(target));
    for answer in [&page, &text, &metrics] {
        assert_eq!(status(answer), "200");
        assert!(!answer.contains(KEY) && !answer.contains(VALUE), "no data");
        let small = answer.to_lowercase();
        assert!(
            !small.contains("zyzzyva") && !small.contains("7a797a7a"),
            "nor as digits"
        );
        let head = answer
            .split("\r\n\r\n")
            .next()
            .expect("a head")
            .to_lowercase();
        assert!(
            !head.contains("access-control"),
            "no other page may read it"
        );
    }
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script"));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src="));
    assert!(text.contains("\n=== ") && text.contains("write_buffer_size: 67108864"));
    assert!(text.contains("Levels of \"default\"") && text.contains("Jobs under way"));
    assert!(text.contains("P99.9"), "{text}");
    assert!(
        metrics.contains("content-type: application/openmetrics-text")
            || metrics.contains("Content-Type: application/openmetrics-text")
    );
    assert!(metrics.ends_with("# EOF\n"));
    let count = |answer: &str| answer.matches("\nrocksdb_num_snapshots{").count();
    assert_eq!(count(&metrics), 2);
    drop(second);
    assert_eq!(count(&served.get("/metrics")), 1);
}

#[test]
fn a_database_is_neither_kept_open_nor_kept_from_closing() {
    let served = served();
    let path = served.dir.path().join("other");
    for round in 0..20 {
        let db = opened(&path);
        let listed = served.databases.add(&db);
        let at = served.at;
        let scraper = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(at).expect("connects");
            let request = format!("GET /metrics HTTP/1.1\r\nHost: {at}\r\n\r\n");
            stream.write_all(request.as_bytes()).expect("sends");
            status(&rest(&mut stream)).to_owned()
        });
        let before = Instant::now();
        if round % 2 == 0 {
            drop(listed);
            db.close().expect("closes");
        } else {
            // A careless caller: the place on the list is left.
            drop(db);
        }
        assert!(before.elapsed() < Duration::from_secs(5));
        assert_eq!(scraper.join().expect("no panic"), "200");
    }
    // The lock of the directory is free.
    opened(&path).close().expect("closes");
    assert!(!served.get("/metrics").contains("\nrocksdb_num_snapshots{"));
}

#[test]
fn the_slowest_operations_are_shown_while_a_database_is_listed() {
    let served = served();
    let path = served.dir.path().join("other");
    let other = opened(&path);
    let listed = served.databases.add(&other);
    assert!(served.get("/text").contains("none in the last minutes\n"));
    assert!(other.get(KEY).expect("reads").is_some());
    other.put(KEY, VALUE).expect("writes");
    other.flush().expect("flushes");
    let values = other.multi_get([KEY]);
    assert!(values[0].as_ref().expect("reads").is_some());
    let text = served.get("/text");
    let (_, rows) = text.split_once("--- Slowest operations").expect("a part");
    for (kind, rest) in [
        ("get", "default: "),
        ("multi_get", "block_read_count = 1"),
        ("write", "default: "),
    ] {
        let row = rows.lines().find(|l| l.starts_with(&format!("{kind} ")));
        let row = row.unwrap_or_else(|| panic!("{kind}: {rows}"));
        assert!(row.contains(rest), "{row}");
    }
    assert!(served.get("/").contains("block_read_count = 1"));
    assert!(!text.contains(KEY) && !text.contains(VALUE));
    listed.unlist();
    assert!(other.slow_operations().is_empty());
}

#[test]
fn hostile_clients_are_cut_off() {
    let served = served();
    let _listed = served.databases.add(&served.db);
    let answer = served.send(&[b'x'; 100_000]);
    assert!(
        ["400", "431", "none"].contains(&status(&answer)),
        "{answer}"
    );
    let endless = format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(9000));
    assert!(["431", "none"].contains(&status(&served.send(endless.as_bytes()))));
    // Half a request, and gone.
    drop({
        let mut stream = served.connect();
        stream.write_all(b"GET / HT").expect("sends");
        stream
    });
    // A byte at a time, for longer than it may take.
    let mut slow = served.connect();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(8) && slow.write_all(b"G").is_ok() {
        std::thread::sleep(Duration::from_millis(100));
        // Others are served meanwhile.
        served.is_well();
    }
    assert!(rest(&mut slow).is_empty());
    assert!(
        begun.elapsed() >= Duration::from_millis(4900),
        "it had its time"
    );
    served.is_well();
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let served = served();
    let _listed = served.databases.add(&served.db);
    for n in 0..300 {
        // Names that make the answer larger than the buffers of the kernel.
        let name = format!("{n}{}", "x".repeat(900));
        served
            .db
            .create_family(&name, FamilyOptions::default())
            .expect("creates");
    }
    let mut stream = served.connect();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", served.at);
    stream.write_all(request.as_bytes()).expect("sends");
    std::thread::sleep(Duration::from_secs(6));
    let answer = rest(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 200"));
    assert!(
        !answer.ends_with("# EOF\n"),
        "{} bytes went through",
        answer.len()
    );
    served.is_well();
}

#[test]
fn eight_clients_at_a_time_and_a_thousand_are_turned_away() {
    let served = served();
    let _listed = served.databases.add(&served.db);
    let idle: Vec<_> = (0..8).map(|_| served.connect()).collect();
    // They are in: the server takes clients in the order in which they came.
    assert_eq!(status(&rest(&mut served.connect())), "503");
    let crowd: Vec<_> = (0..1000)
        .filter_map(|_| TcpStream::connect(served.at).ok())
        .collect();
    let refused = crowd.into_iter().map(|mut stream| {
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).expect("a socket");
        rest(&mut stream)
    });
    assert!(refused.filter(|answer| status(answer) == "503").count() > 900);
    drop(idle);
    let begun = Instant::now();
    while status(&served.get("/")) != "200" {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "places are free again"
        );
    }
    served.is_well();
}

fn serve_unix(path: &Path) -> Result<Server, String> {
    let address = StatsAddress::parse(&format!("unix:{}", path.display()), 1, false)?;
    Server::begin(&address, Databases::new(), false)
}

#[test]
fn a_socket_is_its_owners_and_replaces_only_a_stale_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("stats");
    // A dead process left it.
    drop(UnixListener::bind(&path).expect("binds"));
    let _server = serve_unix(&path).expect("begins");
    let meta = fs::symlink_metadata(&path).expect("it is there");
    assert!(meta.file_type().is_socket());
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    assert_eq!(
        fs::read_dir(dir.path()).expect("a directory").count(),
        1,
        "no draft is left"
    );
    let mut stream = UnixStream::connect(&path).expect("connects");
    stream
        .write_all(b"GET /text HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        .expect("sends");
    assert_eq!(status(&rest(&mut stream)), "200");
    // A live one stays.
    assert!(serve_unix(&path).expect_err("in use").contains("in use"));
    assert!(UnixStream::connect(&path).is_ok());
    // As does a file.
    let file = dir.path().join("file");
    fs::write(&file, "data").expect("writes");
    assert!(
        serve_unix(&file)
            .expect_err("no socket")
            .contains("no socket")
    );
    assert_eq!(fs::read(&file).expect("reads"), b"data");
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("links");
    assert!(serve_unix(&link).is_err());
    assert!(serve_unix(&dir.path().join("x".repeat(100))).is_err());
    assert!(serve_unix(&dir.path().join("none/stats")).is_err());
    assert_eq!(
        fs::read_dir(dir.path()).expect("a directory").count(),
        3,
        "no draft is left"
    );
}

#[test]
fn a_taken_port_is_an_error_and_switches_are_off_by_default() {
    let served = served();
    let address = StatsAddress::Tcp(served.at);
    let error = Server::begin(&address, Databases::new(), false).expect_err("taken");
    assert!(error.contains("cannot be taken"), "{error}");
    assert_eq!(Switches::default().stats, "");
    assert!(!Switches::default().stats_remote);
}

/// The signals that the thread of the server blocks, and those that this one does.
#[test]
fn the_thread_takes_no_signal() {
    let served = served();
    served.get("/");
    let blocked = |task: &Path| {
        let status = fs::read_to_string(task.join("status")).ok()?;
        let line = status.lines().find_map(|l| l.strip_prefix("SigBlk:\t"))?;
        u64::from_str_radix(line, 16).ok()
    };
    let mut masks = Vec::new();
    for task in fs::read_dir("/proc/self/task").expect("a directory") {
        let task = task.expect("an entry").path();
        let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
        if name.trim_end() == "esker-stats" {
            masks.extend(blocked(&task));
        }
    }
    assert!(!masks.is_empty());
    for mask in masks {
        // Signals 1 to 31, but for the two that nobody can block.
        assert_eq!(
            mask | 1 << 8 | 1 << 18,
            mask & !0x7fff_ffff | 0x7fff_ffff,
            "{mask:x}"
        );
    }
    let own = blocked(Path::new("/proc/thread-self")).expect("a mask");
    assert_eq!(own & 1 << 14, 0, "who began it has its mask again");
}

/// `cargo test -p esker-process page_in_a_browser -- --ignored --nocapture`. Says so when it skips.
/// With `ESKER_PICTURES=DIR` the pictures are kept.
#[test]
#[ignore = "needs chromium: cargo test -p esker-process page_in_a_browser -- --ignored"]
fn page_in_a_browser() {
    use std::process::Command;
    let served = served();
    let _listed = served.databases.add(&served.db);
    let kept = std::env::var_os("ESKER_PICTURES").map(std::path::PathBuf::from);
    let pictures = kept.unwrap_or_else(|| served.dir.path().to_path_buf());
    let url = format!("http://{}/", served.at);
    for (width, scheme) in [
        (360, "light"),
        (1280, "light"),
        (360, "dark"),
        (1280, "dark"),
    ] {
        let picture = pictures.join(format!("stats-{width}-{scheme}.png"));
        let mut chromium = Command::new("chromium");
        chromium.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
        ]);
        chromium.arg(format!(
            "--user-data-dir={}",
            served.dir.path().join("profile").display()
        ));
        chromium.arg(format!("--window-size={width},1400"));
        if scheme == "dark" {
            chromium.arg("--blink-settings=preferredColorScheme=0");
        }
        chromium
            .arg(format!("--screenshot={}", picture.display()))
            .arg(&url);
        let Ok(output) = chromium.output() else {
            println!("skipped: chromium is not installed");
            return;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(!said.contains("CONSOLE"), "the console is empty: {said}");
        assert!(fs::metadata(&picture).expect("a picture").len() > 10_000);
    }
    // The console shows what a page does wrong: this address is not served.
    let mut chromium = Command::new("chromium");
    chromium.args([
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
    ]);
    chromium.arg(format!(
        "--user-data-dir={}",
        served.dir.path().join("profile").display()
    ));
    chromium.args(["--dump-dom", &format!("{url}nothing")]);
    let output = chromium.output().expect("it is there");
    assert!(String::from_utf8_lossy(&output.stdout).contains("there are /, /text and /metrics"));
}
