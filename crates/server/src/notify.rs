//! Telling systemd how far the server is (`Type=notify`): a datagram to the socket that `NOTIFY_SOCKET` names.
//! Source: manual page sd_notify(3).

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// Clients can connect.
pub const READY: &str = "READY=1";
/// The server is shutting down.
pub const STOPPING: &str = "STOPPING=1";

/// Tells systemd, if it started this process and wants to know.
pub fn tell(state: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        // Nobody listening is nobody's loss.
        let _ = send(socket.as_bytes(), state);
    }
}

/// Sends `state` to a socket: a path, or with `@` at its front a name of Linux' own.
fn send(socket: &[u8], state: &str) -> io::Result<()> {
    let address = match socket.split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(Path::new(std::ffi::OsStr::from_bytes(socket)))?,
    };
    UnixDatagram::unbound()?
        .send_to_addr(state.as_bytes(), &address)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_both_kinds_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let name = format!("nestor-test-{}", std::process::id());
        let listeners = [
            (UnixDatagram::bind(&path).unwrap(), path.as_os_str().as_bytes().to_vec()),
            (
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
                format!("@{name}").into_bytes(),
            ),
        ];
        for (listener, socket) in listeners {
            send(&socket, READY).unwrap();
            let mut heard = [0; 32];
            let n = listener.recv(&mut heard).unwrap();
            assert_eq!(&heard[..n], READY.as_bytes());
        }
        assert!(send(dir.path().join("nobody").as_os_str().as_bytes(), READY).is_err());
    }
}
