//! Taking the address: a port, or a socket of the filesystem that its owner alone may use.
//!
//! A socket is made under a name of its own beside the path, with mode 0600 from the beginning. It
//! takes the path's name when it is ready: nobody meets one that does not answer. It replaces a
//! socket of the same user that nobody answers on, and nothing else. What was replaced is compared
//! afterwards with what was looked at; if it is another, that is undone.

use crate::address::StatsAddress;
use rustix::fs::{self, AtFlags, FileType, Mode, RenameFlags, Stat};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Connections that wait in the kernel.
const BACKLOG: i32 = 64;

/// Takes `address`. Returns the socket, which does not block, and the address as it is. The error
/// is a sentence.
pub(crate) fn listen(address: &StatsAddress) -> Result<(OwnedFd, String), String> {
    match address {
        StatsAddress::Tcp(address) => {
            tcp(*address).map_err(|e| format!("{address} cannot be taken: {}", cause(e)))
        }
        StatsAddress::Unix(path) => {
            let socket = unix(path).map_err(|e| format!("{} {e}", path.display()))?;
            Ok((socket, format!("unix:{}", path.display())))
        }
    }
}

fn cause(error: Errno) -> String {
    std::io::Error::from(error).to_string()
}

fn socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    net::socket_with(family, SocketType::STREAM, flags, None)
}

fn tcp(address: SocketAddr) -> Result<(OwnedFd, String), Errno> {
    let socket = socket(match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    })?;
    // Connections that a dead process left behind do not hold the port.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    let bound = SocketAddr::try_from(net::getsockname(&socket)?).unwrap_or(address);
    Ok((socket, format!("http://{bound}/")))
}

/// A socket's path, which is removed again unless the socket was given its place.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _gone = fs::unlink(&self.0);
    }
}

fn unix(path: &Path) -> Result<OwnedFd, String> {
    let why = |e: Errno| format!("cannot be made: {}", cause(e));
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let draft = PathBuf::from(name);
    let address = SocketAddrUnix::new(&draft)
        .map_err(|_| "is too long for a socket: it has some 95 bytes at most".to_owned())?;
    let socket = socket(AddressFamily::UNIX).map_err(why)?;
    // The file gets the mode of the socket, whatever the umask leaves.
    fs::fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(why)?;
    match net::bind(&socket, &address) {
        // Nobody else has the number of this process: a predecessor left it.
        Err(Errno::ADDRINUSE) if is_stale(&draft)?.is_some() => {
            fs::unlink(&draft).map_err(why)?;
            net::bind(&socket, &address).map_err(why)?;
        }
        bound => bound.map_err(why)?,
    }
    let draft = SocketFile(draft);
    fs::chmodat(fs::CWD, &draft.0, Mode::RUSR | Mode::WUSR, AtFlags::empty()).map_err(why)?;
    net::listen(&socket, BACKLOG).map_err(why)?;
    match fs::renameat_with(fs::CWD, &draft.0, fs::CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(socket),
        Err(Errno::EXIST) => {}
        Err(e) => return Err(why(e)),
    }
    let Some(stale) = is_stale(path)? else {
        return Err("is in use: another process answers there".to_owned());
    };
    let exchange = || fs::renameat_with(fs::CWD, &draft.0, fs::CWD, path, RenameFlags::EXCHANGE);
    exchange().map_err(why)?;
    let replaced = fs::lstat(&draft.0).map_err(why)?;
    if identity(&replaced) != identity(&stale) {
        // Somebody else was quicker, and answers.
        exchange().map_err(why)?;
        return Err("is in use: another process was quicker".to_owned());
    }
    Ok(socket)
}

/// The socket at `path` if it is this user's and nobody answers on it; `None` if somebody does. An
/// error for anything else.
fn is_stale(path: &Path) -> Result<Option<Stat>, String> {
    let stat = fs::lstat(path).map_err(|e| format!("cannot be looked at: {}", cause(e)))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err("is there and no socket; it stays".to_owned());
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err("belongs to another user; it stays".to_owned());
    }
    let why = |e: Errno| format!("cannot be tried: {}", cause(e));
    let address = SocketAddrUnix::new(path).map_err(why)?;
    let probe = socket(AddressFamily::UNIX).map_err(why)?;
    Ok(match net::connect(&probe, &address) {
        Err(Errno::CONNREFUSED) => Some(stat),
        _ => None,
    })
}

/// The rest of a socket while it is renamed.
fn identity(stat: &Stat) -> (u64, u64, i64, i64) {
    (stat.st_dev, stat.st_ino, stat.st_mtime, stat.st_mtime_nsec)
}
