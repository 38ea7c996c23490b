//! The way to a server: a socket of the network, encrypted or not, or one of this machine.

use super::Host;
use super::secure::{Encrypted, TlsClient};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The bytes of a connection, encrypted or not.
pub enum Stream {
    /// Over the network.
    Tcp(TcpStream),
    /// Encrypted, over the network.
    Tls(Box<Encrypted>),
    /// On this machine.
    Unix(UnixStream),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.read(buffer),
            Self::Tls(s) => s.read(buffer),
            Self::Unix(s) => s.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(s) => s.write(buffer),
            Self::Tls(s) => s.write(buffer),
            Self::Unix(s) => s.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(s) => s.flush(),
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
        }
    }
}

impl Stream {
    /// Connects to a host, waiting for each of its addresses as long as `timeout` says; `None` waits for ever.
    pub fn connect(host: &Host, timeout: Option<Duration>) -> io::Result<Self> {
        match host {
            Host::Tcp(name, port) => connect_tcp(timeout, name, *port).map(Self::Tcp),
            Host::Unix(path) => UnixStream::connect(path).map(Self::Unix),
        }
    }

    /// Encrypts the connection to `host`, whose certificate is verified. What is not of the network stays as it is.
    pub fn encrypted(self, tls: &TlsClient, host: &Host) -> io::Result<Self> {
        match (self, host) {
            (Self::Tcp(stream), Host::Tcp(name, _)) => {
                let encrypted = tls.encrypt(stream, name).map_err(io::Error::other)?;
                Ok(Self::Tls(Box::new(encrypted)))
            }
            (stream, _) => Ok(stream),
        }
    }

    /// Whether bytes have come, or the end, waited for as long as `at_most`.
    pub fn has_any(&self, at_most: Duration) -> io::Result<bool> {
        let socket = match self {
            Self::Tcp(s) => s,
            // What is left of the handshake is no answer, and is read with it.
            Self::Tls(s) => &s.sock,
            Self::Unix(_) => return Ok(true),
        };
        let before = socket.read_timeout()?;
        socket.set_read_timeout(Some(at_most))?;
        let peeked = socket.peek(&mut [0]);
        socket.set_read_timeout(before)?;
        match peeked {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How long the other side may take to send or receive a part; `None`: for ever.
    pub fn limit(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(s) => s.set_read_timeout(timeout).and_then(|()| s.set_write_timeout(timeout)),
            Self::Tls(s) => s
                .sock
                .set_read_timeout(timeout)
                .and_then(|()| s.sock.set_write_timeout(timeout)),
            Self::Unix(s) => s.set_read_timeout(timeout).and_then(|()| s.set_write_timeout(timeout)),
        }
    }
}

/// Connects to the first address of that name that answers.
fn connect_tcp(timeout: Option<Duration>, name: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::ErrorKind::NotFound.into();
    for address in (name, port).to_socket_addrs()? {
        let connected = match timeout {
            Some(limit) => TcpStream::connect_timeout(&address, limit),
            None => TcpStream::connect(address),
        };
        match connected {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
