//! A client's socket, TCP or Unix.

use crate::buffers;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected socket.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// Unix domain.
    Unix(UnixStream),
}

impl Stream {
    /// Waits for bytes and returns them in a buffer that did not exist while waiting; empty at the end
    /// of the stream.
    ///
    /// It reads through the poll interface because that, other than `try_read`, knows after a short read
    /// that nothing is left, and saves the system call that would say so.
    pub async fn read_fresh(&mut self) -> io::Result<Vec<u8>> {
        poll_fn(|cx| {
            let mut buffer = buffers::take();
            let read = pin!(self.read_buf(&mut buffer)).poll(cx);
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
        self.read_buf(buffer).await
    }

    /// Writes all of `bytes`.
    pub async fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes).await
    }

    /// Waits until the peer has closed its side. Unread bytes end the waiting too, by never returning:
    /// they say that the peer is there.
    pub async fn closed(&self) {
        let ready = match self {
            Stream::Tcp(stream) => stream.ready(Interest::READABLE).await,
            Stream::Unix(stream) => stream.ready(Interest::READABLE).await,
        };
        if !ready.is_ok_and(|ready| !ready.is_read_closed()) {
            return;
        }
        std::future::pending().await
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
