//! Requests of clients, and why one is refused. Pure functions.

use crate::address::is_host_allowed;

/// Bytes that a request may have.
pub(crate) const REQUEST_MAX: usize = 8 << 10;
/// Lines that its head may have.
const HEADERS_MAX: usize = 64;

/// The views that a client may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// One page for people.
    Page,
    /// The report as plain text.
    Text,
    /// OpenMetrics text.
    Metrics,
}

/// The bytes that a client sent so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Not all of it.
    Partial,
    /// It asks for this.
    Get(View),
    /// It is refused: a status with its text, and what to do.
    Refused(&'static str, &'static str),
}

use Request::Refused;

const TOO_LARGE: Request = Refused(
    "431 Request Header Fields Too Large",
    "a request has 8192 bytes and 64 headers at most",
);

/// Reads the bytes that came so far.
pub(crate) fn parse(bytes: &[u8], is_remote: bool) -> Request {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if bytes.len() >= REQUEST_MAX => return TOO_LARGE,
        Ok(httparse::Status::Partial) => return Request::Partial,
        Err(httparse::Error::TooManyHeaders) => return TOO_LARGE,
        Err(_) => return Refused("400 Bad Request", "this is no HTTP request"),
    }
    if request.method != Some("GET") {
        return Refused("405 Method Not Allowed", "only GET is answered");
    }
    let mut hosts = Vec::new();
    for header in request.headers.iter() {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("host") {
            hosts.push(std::str::from_utf8(header.value).unwrap_or_default().trim());
        } else if is("transfer-encoding") || (is("content-length") && header.value != b"0") {
            return Refused("400 Bad Request", "a GET has no body");
        }
    }
    let [host] = hosts[..] else {
        return Refused("400 Bad Request", "a request has one Host header");
    };
    if !is_host_allowed(host, is_remote) {
        return Refused(
            "403 Forbidden",
            "the Host must be an address such as 127.0.0.1, not a name",
        );
    }
    let target = request.path.unwrap_or_default();
    match target.split('?').next().unwrap_or_default() {
        "/" => Request::Get(View::Page),
        "/text" => Request::Get(View::Text),
        "/metrics" => Request::Get(View::Metrics),
        _ => Refused("404 Not Found", "there are /, /text and /metrics"),
    }
}
