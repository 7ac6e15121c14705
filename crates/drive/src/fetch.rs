//! One request at a time, with a deadline: for the preflight and the sampler, which may block.

use crate::http::{Head, HttpFault, Piece, Response};
use crate::load::connection::connect_failure;
use crate::target::Origin;
use precipice_record::FailureKind;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Why a request got no response.
#[derive(Debug, Error)]
pub enum FetchError {
    /// No connection.
    #[error("{origin}: cannot connect ({source})")]
    Connect {
        /// Where.
        origin: String,
        /// The system's words.
        source: io::Error,
    },
    /// TLS failed.
    #[error(
        "{origin}: the TLS handshake failed ({message}); a certificate of your own is trusted with --ca-cert FILE, any certificate with --insecure"
    )]
    Tls {
        /// Where.
        origin: String,
        /// Why.
        message: String,
    },
    /// No whole response in time.
    #[error("no response within {:.1} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The connection broke.
    #[error("the connection broke ({0})")]
    Broken(io::Error),
    /// The response is no HTTP.
    #[error(transparent)]
    Http(#[from] HttpFault),
    /// The body is larger than is taken.
    #[error("the response is larger than {0} bytes")]
    TooLarge(usize),
}

impl FetchError {
    /// The kind of failure that it is.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Connect { source, .. } => connect_failure(source),
            Self::Tls { .. } => FailureKind::Tls,
            Self::Timeout(_) => FailureKind::TotalTimeout,
            Self::Broken(_) => FailureKind::Reset,
            Self::Http(_) | Self::TooLarge(_) => FailureKind::Protocol,
        }
    }
}

/// A response.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Status and header fields.
    pub head: Head,
    /// The body.
    pub body: Vec<u8>,
}

#[derive(Debug)]
enum Line {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Line {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(stream) => &stream.sock,
        }
    }
}

impl Read for Line {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(buffer),
            Self::Tls(stream) => match stream.read(buffer) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// Asks one host, on a connection of its own that it keeps.
#[derive(Debug)]
pub(crate) struct Fetcher {
    origin: Origin,
    line: Option<Line>,
    buffer: Vec<u8>,
    /// Nobody waits for the answer any more.
    cancelled: Arc<AtomicBool>,
}

/// How often a read that waits looks whether it is cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// An attempt that failed, and whether a new connection may do better.
struct Miss {
    error: FetchError,
    stale: bool,
}

impl From<FetchError> for Miss {
    fn from(error: FetchError) -> Self {
        Self { error, stale: false }
    }
}

impl Fetcher {
    pub(crate) fn new(origin: Origin) -> Self {
        Self::cancelled_by(origin, Arc::default())
    }

    /// One whose requests end soon after `cancelled` is set.
    pub(crate) fn cancelled_by(origin: Origin, cancelled: Arc<AtomicBool>) -> Self {
        Self { origin, line: None, buffer: vec![0; 64 << 10], cancelled }
    }

    /// The address that the kept connection goes to.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.line.as_ref().and_then(|line| line.tcp().peer_addr().ok())
    }

    /// Sends a request and reads the whole response within `timeout`.
    pub(crate) fn fetch(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
        timeout: Duration,
        limit: usize,
    ) -> Result<Reply, FetchError> {
        let until = Instant::now() + timeout;
        let request = self.origin.request(method, path, body);
        let cancelled = Arc::clone(&self.cancelled);
        let wait = Wait { until, timeout, cancelled: &cancelled };
        loop {
            let reused = self.line.is_some();
            let mut line = match self.line.take() {
                Some(line) => line,
                None => self.open(until, timeout)?,
            };
            match exchange(&mut line, &request, &mut self.buffer, &wait, limit) {
                Ok((reply, keep)) => {
                    if keep {
                        self.line = Some(line);
                    }
                    return Ok(reply);
                }
                // A kept connection that the server closed while it was idle.
                Err(miss) if miss.stale && reused => {}
                Err(miss) => return Err(miss.error),
            }
        }
    }

    fn open(&self, until: Instant, timeout: Duration) -> Result<Line, FetchError> {
        let origin = || self.origin.url.to_string();
        let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
        for address in &self.origin.addresses {
            match TcpStream::connect_timeout(address, left(until, timeout)?) {
                Ok(tcp) => {
                    let connect = |source| FetchError::Connect { origin: origin(), source };
                    tcp.set_nodelay(true).map_err(connect)?;
                    let Some(peer) = &self.origin.tls else { return Ok(Line::Plain(tcp)) };
                    let tls = |message: String| FetchError::Tls { origin: origin(), message };
                    tcp.set_read_timeout(Some(left(until, timeout)?)).map_err(connect)?;
                    let session = peer.session().map_err(|error| tls(error.to_string()))?;
                    let mut stream = StreamOwned::new(session, tcp);
                    while stream.conn.is_handshaking() {
                        stream.conn.complete_io(&mut stream.sock).map_err(|error| tls(error.to_string()))?;
                    }
                    return Ok(Line::Tls(Box::new(stream)));
                }
                Err(error) => last = error,
            }
        }
        Err(FetchError::Connect { origin: origin(), source: last })
    }
}

fn left(until: Instant, timeout: Duration) -> Result<Duration, FetchError> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(FetchError::Timeout(timeout)) } else { Ok(left) }
}

/// How long an exchange may take.
struct Wait<'a> {
    until: Instant,
    timeout: Duration,
    cancelled: &'a AtomicBool,
}

fn exchange(
    line: &mut Line,
    request: &[u8],
    buffer: &mut [u8],
    wait: &Wait<'_>,
    limit: usize,
) -> Result<(Reply, bool), Miss> {
    let &Wait { until, timeout, cancelled } = wait;
    let mut response = Response::default();
    let broken = |error: io::Error, stale: bool| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Miss { error: FetchError::Timeout(timeout), stale: false }
        }
        _ => Miss { error: FetchError::Broken(error), stale },
    };
    line.tcp().set_write_timeout(Some(left(until, timeout)?)).map_err(|error| broken(error, true))?;
    line.write_all(request).and_then(|()| line.flush()).map_err(|error| broken(error, true))?;
    let mut body = Vec::new();
    loop {
        let slice = left(until, timeout)?.min(LOOK_EVERY);
        line.tcp().set_read_timeout(Some(slice)).map_err(|error| broken(error, true))?;
        let length = match line.read(buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
                    && !cancelled.load(Ordering::Relaxed) =>
            {
                continue;
            }
            read => read.map_err(|error| broken(error, !response.begun()))?,
        };
        if length == 0 {
            // A stream that is cut right behind `[DONE]` has said everything.
            let said_all = response.may_end_here() || body.trim_ascii_end().ends_with(b"data: [DONE]");
            if response.begun() && said_all {
                return Ok((Reply { head: response.head().clone(), body }, false));
            }
            return Err(broken(ErrorKind::UnexpectedEof.into(), !response.begun()));
        }
        let mut rest = &buffer[..length];
        while let Some(piece) = response.next(&mut rest).map_err(FetchError::from)? {
            match piece {
                Piece::Head => {}
                Piece::Body(bytes) if body.len() + bytes.len() > limit => {
                    return Err(FetchError::TooLarge(limit).into());
                }
                Piece::Body(bytes) => body.extend_from_slice(bytes),
                Piece::End => {
                    let keep = response.head().keep_alive && rest.is_empty();
                    return Ok((Reply { head: response.head().clone(), body }, keep));
                }
            }
        }
    }
}
