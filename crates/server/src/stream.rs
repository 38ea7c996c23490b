//! A client's socket, TCP (plain or encrypted) or Unix.

use crate::buffers;
use crate::tls::hello::{self, Begin};
use crate::tls::{HANDSHAKE_MAX, Tls, TlsMode};
use std::cell::Cell;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio_rustls::server::TlsStream;

/// A connected socket.
#[derive(Debug)]
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// TCP, encrypted.
    Tls(Box<TlsStream<Begun>>),
    /// Unix domain.
    Unix(UnixStream),
}

/// A connection's socket, and the way to look at it while a command runs.
#[derive(Debug)]
pub struct Stream {
    /// `None` within [`Stream::watched`].
    socket: Option<Socket>,
    /// Bytes that were read to see whether the client speaks TLS, which it does not.
    begun: Vec<u8>,
}

/// A socket of which some bytes were read already.
#[derive(Debug)]
pub struct Begun {
    stream: TcpStream,
    bytes: Vec<u8>,
}

/// Why a client is sent away before it could say anything.
#[derive(Debug)]
pub enum Refusal {
    /// The client is gone.
    Closed,
    /// The client does not speak TLS although it has to.
    Plain,
    /// The handshake did not succeed.
    Handshake(io::Error),
}

thread_local! {
    /// The socket whose client waits for what this thread runs.
    static WATCHED: Cell<Option<Socket>> = const { Cell::new(None) };
}

/// Whether the client has gone that waits for what this thread runs, see [`Stream::watched`]. No system call: it
/// asks what the runtime was told of the socket.
pub fn watched_has_closed() -> bool {
    let Some(socket) = WATCHED.take() else { return false };
    let closed = pin!(socket.closed())
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_ready();
    WATCHED.set(Some(socket));
    closed
}

/// Writes to the socket that this thread watches, see [`Stream::watched`], while the work goes on. Where the client has to read before there is
/// room for all of it, others take over what the thread serves meanwhile.
///
/// Errors: those of the socket; `TimedOut` when the client does not read for `patience`.
pub fn write_watched(runtime: &Handle, bytes: &[u8], patience: Duration) -> io::Result<()> {
    let Some(mut socket) = WATCHED.take() else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    let written = {
        let mut write = pin!(async {
            socket.write_all(bytes).await?;
            socket.flush().await
        });
        match write.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(written) => written,
            Poll::Pending => tokio::task::block_in_place(|| {
                runtime.block_on(async {
                    let done = tokio::time::timeout(patience, write).await;
                    done.unwrap_or(Err(io::ErrorKind::TimedOut.into()))
                })
            }),
        }
    };
    WATCHED.set(Some(socket));
    written
}

impl Stream {
    /// The stream of a connected socket.
    pub fn new(socket: Socket) -> Self {
        Self {
            socket: Some(socket),
            begun: Vec::new(),
        }
    }

    /// Does the handshake of TLS when the client greets so. Sockets of this machine's file system are left as they are.
    pub async fn encrypt(&mut self, tls: &Tls) -> Result<(), Refusal> {
        if !matches!(self.socket, Some(Socket::Tcp(_))) {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(hello::CERTAIN_BYTES);
        loop {
            match hello::begin(&bytes) {
                Begin::Tls => break,
                Begin::Plain if tls.mode() == TlsMode::Require => return Err(Refusal::Plain),
                Begin::Plain => {
                    self.begun = bytes;
                    return Ok(());
                }
                Begin::Unknown => {}
            }
            // A client that is connected and silent may stay so; one that has begun to speak is to go on.
            let is_silent = bytes.is_empty();
            let read = self.socket().read_buf(&mut bytes);
            let read = match is_silent {
                true => read.await,
                false => tokio::time::timeout(HANDSHAKE_MAX, read).await.unwrap_or(Ok(0)),
            };
            if read.map_or(true, |read| read == 0) {
                return Err(Refusal::Closed);
            }
        }
        let Some(Socket::Tcp(stream)) = self.socket.take() else {
            return Err(Refusal::Closed);
        };
        let handshake = tls.acceptor().accept(Begun { stream, bytes });
        let encrypted = match tokio::time::timeout(HANDSHAKE_MAX, handshake).await {
            Ok(done) => done.map_err(Refusal::Handshake)?,
            Err(_) => return Err(Refusal::Handshake(io::ErrorKind::TimedOut.into())),
        };
        self.socket = Some(Socket::Tls(Box::new(encrypted)));
        Ok(())
    }

    /// The state of an encrypted connection.
    pub fn encryption(&self) -> Option<&rustls::ServerConnection> {
        match &self.socket {
            Some(Socket::Tls(stream)) => Some(stream.get_ref().1),
            _ => None,
        }
    }

    /// Runs `work` on this thread, where [`watched_has_closed`] looks at this stream meanwhile. Lending the socket
    /// costs no more than moving some words there and back, so short commands can afford it.
    pub fn watched<R>(&mut self, work: impl FnOnce() -> R) -> R {
        /// Brings the socket back, also when the work panics.
        struct Lent<'s>(&'s mut Stream);
        impl Drop for Lent<'_> {
            fn drop(&mut self) {
                self.0.socket = WATCHED.take();
            }
        }
        WATCHED.set(self.socket.take());
        let _lent = Lent(self);
        work()
    }

    fn socket(&mut self) -> &mut Socket {
        self.socket
            .as_mut()
            .expect("nobody reads or writes while a command runs")
    }

    /// Waits for bytes and returns them in a buffer that did not exist while waiting; empty at the end
    /// of the stream.
    ///
    /// It reads through the poll interface because that, other than `try_read`, knows after a short read
    /// that nothing is left, and saves the system call that would say so.
    pub async fn read_fresh(&mut self) -> io::Result<Vec<u8>> {
        if !self.begun.is_empty() {
            return Ok(std::mem::take(&mut self.begun));
        }
        poll_fn(|cx| {
            let mut buffer = buffers::take();
            let read = pin!(self.socket().read_buf(&mut buffer)).poll(cx);
            match read {
                Poll::Ready(Ok(_)) => Poll::Ready(Ok(buffer)),
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Pending => {
                    buffers::give_back(buffer);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Reads more bytes to the end of `buffer`; 0 at the end of the stream.
    pub async fn read_more(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.socket().read_buf(buffer).await
    }

    /// Writes all of `bytes`.
    pub async fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        let socket = self.socket();
        socket.write_all(bytes).await?;
        // Bytes that are encrypted may still be in a buffer.
        socket.flush().await
    }

    /// Waits until the peer has closed its side, see [`Socket::closed`].
    pub async fn closed(&mut self) {
        self.socket().closed().await;
    }
}

impl Socket {
    /// Waits until the peer has closed its side. Unread bytes end the waiting too, by never returning:
    /// they say that the peer is there.
    async fn closed(&self) {
        let ready = match self {
            Socket::Tcp(stream) => stream.ready(Interest::READABLE).await,
            Socket::Tls(stream) => stream.get_ref().0.stream.ready(Interest::READABLE).await,
            Socket::Unix(stream) => stream.ready(Interest::READABLE).await,
        };
        if !ready.is_ok_and(|ready| !ready.is_read_closed()) {
            return;
        }
        std::future::pending().await
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Socket::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Socket::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Tcp(_) | Socket::Unix(_) => Poll::Ready(Ok(())),
        }
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

impl AsyncRead for Begun {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.bytes.is_empty() {
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        let rest = this.bytes.split_off(this.bytes.len().min(buf.remaining()));
        buf.put_slice(&std::mem::replace(&mut this.bytes, rest));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Begun {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
