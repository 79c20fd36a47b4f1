//! The text of `ESKER_STATS`: a loopback address with a port, or a socket's path.
//!
//! Pure functions.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Where statistics are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatsAddress {
    /// A port of this machine, or of one of its networks.
    Tcp(SocketAddr),
    /// A socket of the filesystem.
    Unix(PathBuf),
}

impl StatsAddress {
    /// Reads `127.0.0.1:PORT`, `[::1]:PORT` or `unix:PATH`, in which `%p` is `process`. An address
    /// that other machines reach needs `is_remote`. The error is a sentence.
    pub fn parse(text: &str, process: u32, is_remote: bool) -> Result<StatsAddress, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.replace("%p", &process.to_string());
            if path.is_empty() || path.contains('\0') {
                return Err("unix: needs the path of a socket".to_owned());
            }
            return Ok(StatsAddress::Unix(PathBuf::from(path)));
        }
        let address: SocketAddr = text.parse().map_err(|_| {
            format!("{text:?} is no address: write 127.0.0.1:PORT, [::1]:PORT or unix:PATH")
        })?;
        if !address.ip().is_loopback() && !is_remote {
            return Err(format!(
                "{address} is no loopback address: other machines would see it; \
                 ESKER_STATS_REMOTE=1 allows that"
            ));
        }
        Ok(StatsAddress::Tcp(address))
    }
}

/// Returns whether `host`, a `Host` of a request, names an address that a request to a loopback
/// address has; with `is_remote`, any address. A name is none: a page of another site could have
/// let it lead here.
pub(crate) fn is_host_allowed(host: &str, is_remote: bool) -> bool {
    let ip = match host.parse::<SocketAddr>() {
        Ok(with_port) => with_port.ip(),
        Err(_) => {
            let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
            match bare.unwrap_or(host).parse::<IpAddr>() {
                Ok(ip) if ip.is_ipv6() == bare.is_some() => ip,
                _ => return false,
            }
        }
    };
    is_remote || ip.is_loopback()
}
