//! Connections whose sockets the engine's thread may write to.
//!
//! hyper owns a connection: it reads requests, writes heads and ends bodies. Between the head and the end of a
//! stream of tokens it has nothing to write; there the engine's thread writes the tokens of a step itself, at the
//! end of the step. A way through the runtime costs a wake-up, a task and a lock a token, and the tokens of a large
//! step are all due at one instant.

use super::stream::TokenStream;
use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// A connection: its socket and the stream that it carries now.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Line>);

struct Line {
    socket: TcpStream,
    carried: Mutex<Option<Arc<TokenStream>>>,
}

impl Connection {
    fn new(socket: TcpStream) -> Self {
        // A token must not wait for the one after it.
        let _refused = socket.set_nodelay(true);
        Self(Arc::new(Line { socket, carried: Mutex::new(None) }))
    }

    /// Writes what the socket takes now.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when it takes nothing; others when it is gone.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.socket.try_write(bytes)
    }

    /// Whether the socket takes bytes; wakes the task when it does.
    pub(super) fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.socket.poll_write_ready(context)
    }

    /// From the next head on, the connection carries this stream; `None` when it has ended.
    pub(super) fn carry(&self, stream: Option<Arc<TokenStream>>) {
        *self.0.carried.lock().unwrap_or_else(PoisonError::into_inner) = stream;
    }

    fn carried(&self) -> Option<Arc<TokenStream>> {
        self.0.carried.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// hyper's side of a connection.
pub(crate) struct Socket(Connection);

impl Socket {
    fn tcp(&self) -> &TcpStream {
        &self.0.0.socket
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.tcp().poll_read_ready(context))?;
            match self.tcp().try_read(buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.tcp().poll_write_ready(context))?;
            match self.tcp().try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    /// hyper flushes when all that it had is written: from here on a stream's head is out.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(stream) = self.0.carried() {
            stream.head_is_out();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The streams that hold the connection too must not keep it open for the client.
        let shut = socket2::SockRef::from(self.tcp()).shutdown(Shutdown::Write);
        Poll::Ready(shut.or_else(|error| match error.kind() {
            io::ErrorKind::NotConnected => Ok(()),
            _ => Err(error),
        }))
    }
}

/// Accepts connections as [`Socket`]s.
pub(crate) struct Listener(pub(crate) TcpListener);

impl axum::serve::Listener for Listener {
    type Io = Socket;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Socket, SocketAddr) {
        let (socket, from) = axum::serve::Listener::accept(&mut self.0).await;
        (Socket(Connection::new(socket)), from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, Listener>> for Connection {
    fn connect_info(incoming: IncomingStream<'_, Listener>) -> Self {
        incoming.io().0.clone()
    }
}
