//! Binding addresses and accepting connections.

use crate::connection;
use crate::serve::{Bind, ServeOptions, Server};
use crate::stream::{Socket as ClientSocket, Stream};
use nestor_command::Connection;
use nestor_model::doc;
use socket2::{Domain, Protocol, Socket, Type};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// Pause after the system had no file or memory for a connection.
const BACKOFF: Duration = Duration::from_millis(100);

/// A bound socket.
#[derive(Debug)]
pub enum Listener<T = TcpListener, U = UnixListener> {
    /// TCP.
    Tcp(T),
    /// Unix domain.
    Unix(U),
}

/// A bound socket within the runtime.
pub type AsyncListener = Listener<tokio::net::TcpListener, tokio::net::UnixListener>;

/// All sockets of a server.
#[derive(Debug)]
pub struct Bound {
    /// The sockets.
    pub listeners: Vec<Listener>,
    /// Addresses of those that are TCP.
    pub addresses: Vec<SocketAddr>,
    /// Files of those that are Unix sockets, to remove at the end.
    pub unix_paths: Vec<PathBuf>,
    /// The port they all have.
    pub port: u16,
}

impl Drop for Bound {
    /// A server that is gone leaves no socket files behind.
    fn drop(&mut self) {
        for path in &self.unix_paths {
            // The file may be gone already, which is fine.
            let _ = fs::remove_file(path);
        }
    }
}

/// Binds everything that the options name, or nothing.
pub fn bind(options: &ServeOptions) -> Result<Bound, String> {
    let mut bound = Bound {
        listeners: Vec::new(),
        addresses: Vec::new(),
        unix_paths: Vec::new(),
        port: options.port,
    };
    let (hosts, mut paths) = resolve(options)?;
    check_exposure(options, &hosts)?;
    for host in hosts {
        let address = SocketAddr::new(host, bound.port);
        let listener = bind_tcp(address).map_err(|e| format!("cannot listen on {address}: {e}"))?;
        let address = listener.local_addr().map_err(|e| format!("{address}: {e}"))?;
        // With port 0 the first address chooses, the others follow.
        bound.port = address.port();
        bound.addresses.push(address);
        bound.listeners.push(Listener::Tcp(listener));
    }
    if let Some(dir) = &options.unix_socket_dir {
        paths.push(dir.join(format!("mongodb-{}.sock", bound.port)));
    }
    for path in paths {
        let listener = bind_unix(&path).map_err(|e| format!("cannot listen on {}: {e}", path.display()))?;
        bound.listeners.push(Listener::Unix(listener));
        bound.unix_paths.push(path);
    }
    Ok(bound)
}

/// Refuses to let everybody on the network do everything, unless that was asked for.
fn check_exposure(options: &ServeOptions, hosts: &[IpAddr]) -> Result<(), String> {
    let is_exposed = hosts.iter().any(|host| !host.is_loopback());
    match is_exposed && !options.auth && !options.insecure_no_auth {
        true => Err(
            "listening beyond this machine needs --auth, or --insecure-no-auth if whoever can connect may do everything"
                .to_owned(),
        ),
        false => Ok(()),
    }
}

/// Binds the port for metrics, at addresses of this machine only unless others are named: nobody logs in there.
pub fn bind_metrics(options: &ServeOptions) -> Result<Vec<TcpListener>, String> {
    let Some(mut port) = options.metrics_port else {
        return Ok(Vec::new());
    };
    let local = [
        Some(IpAddr::from(Ipv4Addr::LOCALHOST)),
        options.ipv6.then(|| Ipv6Addr::LOCALHOST.into()),
    ];
    let addresses: Vec<IpAddr> = match options.metrics_addresses.as_slice() {
        [] => local.into_iter().flatten().collect(),
        named => named.to_vec(),
    };
    let mut listeners = Vec::new();
    for address in addresses {
        let address = SocketAddr::new(address, port);
        let listener = bind_tcp(address).map_err(|e| format!("cannot listen on {address} for metrics: {e}"))?;
        port = listener.local_addr().map_err(|e| format!("{address}: {e}"))?.port();
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Binds the port for SQL at the addresses that clients have.
///
/// Errors: it cannot be bound.
pub fn bind_sql(options: &ServeOptions, addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, String> {
    let Some(mut port) = options.sql_port else {
        return Ok(Vec::new());
    };
    let mut listeners = Vec::new();
    for address in addresses {
        let address = SocketAddr::new(address.ip(), port);
        let listener = bind_tcp(address).map_err(|e| format!("cannot listen on {address} for SQL: {e}"))?;
        port = listener.local_addr().map_err(|e| format!("{address}: {e}"))?.port();
        listeners.push(listener);
    }
    Ok(listeners)
}

fn resolve(options: &ServeOptions) -> Result<(Vec<IpAddr>, Vec<PathBuf>), String> {
    let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
    let mut hosts = match &options.bind {
        Bind::Local => vec![v4, v6],
        Bind::All => vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
        Bind::Addresses(_) => Vec::new(),
    };
    let mut paths = Vec::new();
    if let Bind::Addresses(names) = &options.bind {
        for name in names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
            if name.contains('/') {
                paths.push(PathBuf::from(name));
                continue;
            }
            let found = (name, 0u16)
                .to_socket_addrs()
                .map_err(|e| format!("cannot resolve address {name:?}: {e}"))?;
            for address in found {
                if !hosts.contains(&address.ip()) {
                    hosts.push(address.ip());
                }
            }
        }
    }
    if !options.ipv6 {
        let before = hosts.len();
        hosts.retain(IpAddr::is_ipv4);
        if hosts.is_empty() && before > 0 {
            return Err("all addresses to listen on are IPv6 ones: add --ipv6".to_owned());
        }
    }
    if hosts.is_empty() && paths.is_empty() {
        return Err("--bind_ip names no address".to_owned());
    }
    Ok((hosts, paths))
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restarted server gets its port back at once.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // IPv4 has a socket of its own.
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    // A socket left by a server that was killed refuses connections; one that answers is in use.
    if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&socket2::SockAddr::unix(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

impl Listener {
    /// The address as logs print it.
    pub fn address(&self) -> String {
        match self {
            Listener::Tcp(listener) => listener.local_addr().map_or_else(|_| "?".to_owned(), |a| a.to_string()),
            Listener::Unix(listener) => listener
                .local_addr()
                .ok()
                .and_then(|a| a.as_pathname().map(|path| path.display().to_string()))
                .unwrap_or_else(|| "?".to_owned()),
        }
    }

    /// Registers it with the runtime that this runs in.
    pub fn into_async(self) -> Result<AsyncListener, String> {
        let registered = match self {
            Listener::Tcp(listener) => tokio::net::TcpListener::from_std(listener).map(Listener::Tcp),
            Listener::Unix(listener) => tokio::net::UnixListener::from_std(listener).map(Listener::Unix),
        };
        registered.map_err(|e| format!("cannot listen: {e}"))
    }
}

impl AsyncListener {
    /// The next connection, the address of its peer, and our own one that it was made to.
    async fn accept(&self) -> io::Result<(Stream, String, Option<SocketAddr>)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Replies are written whole: waiting to fill a segment would only delay them.
                let _ = stream.set_nodelay(true);
                // Peers that vanished without a word are noticed after some minutes.
                let keepalive = socket2::TcpKeepalive::new()
                    .with_time(Duration::from_secs(300))
                    .with_interval(Duration::from_secs(60));
                let _ = socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive);
                let local = stream.local_addr().ok();
                Ok((Stream::new(ClientSocket::Tcp(stream)), peer.to_string(), local))
            }
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((
                    Stream::new(ClientSocket::Unix(stream)),
                    "anonymous unix socket".to_owned(),
                    None,
                ))
            }
        }
    }
}

/// Accepts connections for ever and starts a task for each.
pub async fn accept_all(server: Arc<Server>, listener: AsyncListener) {
    let mut was_full = false;
    loop {
        let (stream, peer, local) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // A connection that was reset before it was accepted says nothing about the next.
                let is_shortage = !matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
                );
                if is_shortage {
                    if !was_full {
                        let attr = doc! { "error": error.to_string() };
                        server.service.node.log().error(
                            "NETWORK",
                            22989,
                            "listener",
                            "Error accepting new connection",
                            attr,
                        );
                    }
                    was_full = true;
                    tokio::time::sleep(BACKOFF).await;
                }
                continue;
            }
        };
        was_full = false;
        let Some(open) = server.admit() else {
            let attr = doc! { "remote": peer, "connectionCount": server.open_connections() as i32 };
            server.service.node.log().info(
                "NETWORK",
                22942,
                "listener",
                "Connection refused because there are too many open connections",
                attr,
            );
            continue;
        };
        let mut conn = Connection::new(&server.service, &peer);
        if let Some(local) = local {
            conn.host = local.to_string().into();
        }
        if !server.is_quiet() {
            let attr = doc! { "remote": peer, "connectionId": conn.id, "connectionCount": open as i32 };
            server
                .service
                .node
                .log()
                .info("NETWORK", 22943, "listener", "Connection accepted", attr);
        }
        tokio::spawn(server.watcher.watched(connection::serve(server.clone(), stream, conn)));
    }
}
