//! The servers, and how they are asked.

use crate::tls;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A server that does not take a connection within this time is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer to the guard's own questions: a page of metrics.
const MOST_SAID: usize = 10 << 20;

/// What is sent up: a body that was read, or one that passes.
pub(crate) type Upload = Either<Full<Bytes>, Limited<Incoming>>;

/// One server.
pub(crate) struct Upstream {
    /// As it was given.
    pub(crate) url: String,
    scheme: Scheme,
    authority: Authority,
    host: HeaderValue,
    prefix: String,
    client: Client<Connector, Upload>,
    /// It has no `/tokenize` that we understand.
    pub(crate) cannot_tokenize: AtomicBool,
}

impl Upstream {
    /// Checks an address.
    ///
    /// # Errors
    /// What is wrong with it, and the remedy.
    pub(crate) fn new(url: &str, ca_cert: Option<&Path>) -> Result<Self, String> {
        let wrong = |what: &str| format!("--url {url}: {what}; write http://HOST:PORT or https://HOST");
        let uri: Uri = url.parse().map_err(|_| wrong("no address"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme().cloned(), uri.authority().cloned()) else {
            return Err(wrong("the scheme or the host is missing"));
        };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(wrong("the scheme is neither http nor https"));
        }
        let tls = (scheme == Scheme::HTTPS).then(|| tls::client(ca_cert)).transpose()?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(4))
            .build(Connector { tls });
        // People paste the base URL of their client.
        let prefix = uri.path().trim_end_matches('/').trim_end_matches("/v1").to_owned();
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| wrong("no host"))?;
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            scheme,
            authority,
            host,
            prefix,
            client,
            cannot_tokenize: AtomicBool::new(false),
        })
    }

    /// Sends a request; its path is taken as it is.
    pub(crate) async fn send(&self, mut request: Request<Upload>) -> Result<Response<Incoming>, Error> {
        let asked = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let path = if self.prefix.is_empty() { asked.to_owned() } else { format!("{}{asked}", self.prefix) };
        let mut parts = hyper::http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = PathAndQuery::try_from(path).ok();
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
        *request.version_mut() = hyper::Version::HTTP_11;
        request.headers_mut().insert(HOST, self.host.clone());
        self.client.request(request).await
    }

    /// Asks a question of the guard's own; the status and the whole answer.
    pub(crate) async fn ask(
        &self,
        request: Request<Upload>,
        limit: Duration,
    ) -> Result<(u16, Bytes), String> {
        let asked = async {
            let response = self.send(request).await.map_err(|error| cause(&error))?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), MOST_SAID).collect().await;
            Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
        };
        tokio::time::timeout(limit, asked).await.map_err(|_| format!("no answer within {limit:?}"))?
    }

    /// `GET path`.
    pub(crate) async fn get(&self, path: &str, limit: Duration) -> Result<(u16, Bytes), String> {
        let mut request = Request::new(Either::Left(Full::default()));
        *request.uri_mut() = path.parse().map_err(|_| format!("no path: {path}"))?;
        self.ask(request, limit).await
    }
}

/// The innermost reason, which is the one that helps.
pub(crate) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// Connects to a server, with TLS where its address says so.
#[derive(Clone)]
struct Connector {
    tls: Option<TlsConnector>,
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Stream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = self.tls.clone();
        Box::pin(async move {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no connection within 5 s");
            tokio::time::timeout(CONNECT_TIMEOUT, connect(uri, tls)).await.map_err(late)?
        })
    }
}

async fn connect(uri: Uri, tls: Option<TlsConnector>) -> io::Result<TokioIo<Stream>> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
    let socket = TcpStream::connect((host, port)).await?;
    socket.set_nodelay(true)?;
    let stream = match tls {
        None => Stream::Plain(socket),
        Some(tls) => {
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            Stream::Tls(Box::new(tls.connect(name, socket).await?))
        }
    };
    Ok(TokioIo::new(stream))
}

/// A connection to a server.
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}

/// A body that was read whole.
pub(crate) fn whole(body: Bytes) -> Upload {
    Either::Left(Full::new(body))
}
