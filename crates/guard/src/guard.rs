//! A guard: bind, run, drain.

use crate::config::GuardConfig;
use crate::service;
use crate::state::{Shared, State};
use crate::tls;
use crate::upstream::Upstream;
use crate::watch;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use precipice_admission::{Admission, Capacity};
use serde_json::json;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// Who does not end its head, or its handshake, within this time is hung up on.
const SLOWEST_HEAD: Duration = Duration::from_secs(30);
/// How long accepting rests when the system has no more sockets.
const NO_SOCKETS: Duration = Duration::from_millis(100);

/// Why there is no guard.
#[derive(Debug, Error)]
pub enum GuardError {
    /// A flag says what cannot be.
    #[error("{0}")]
    Config(String),
    /// The address cannot be had.
    #[error("--listen {address}: {source}; choose another, or port 0 for a free one")]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The system refused something later.
    #[error("the guard cannot go on: {0}")]
    System(#[from] io::Error),
}

/// A guard that has its socket and does not answer yet.
pub struct Guard {
    listener: TcpListener,
    local_addr: SocketAddr,
    tls: Option<TlsAcceptor>,
    state: Shared,
}

impl Guard {
    /// Checks the settings and takes the socket. No server is asked yet.
    ///
    /// # Errors
    /// [`GuardError`]: an address or a certificate that is none, or a socket that cannot be had.
    pub fn bind(config: GuardConfig) -> Result<Self, GuardError> {
        if config.urls.is_empty() {
            return Err(GuardError::Config("--url is missing: give the server's address".to_owned()));
        }
        let ca_cert = config.ca_cert.as_deref();
        let upstreams =
            config.urls.iter().map(|url| Upstream::new(url, ca_cert)).collect::<Result<Vec<_>, _>>();
        let upstreams = upstreams.map_err(GuardError::Config)?;
        let tls = match &config.tls {
            Some((certificate, key)) => Some(tls::server(certificate, key).map_err(GuardError::Config)?),
            None => None,
        };
        let bind = |source| GuardError::Bind { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).map_err(bind)?;
        listener.set_nonblocking(true)?;
        let local_addr = listener.local_addr()?;
        let unknown = config.urls.iter().map(|_| Capacity { block_size: 1, ..Capacity::default() });
        let admission = Admission::new(config.settings.clone(), unknown);
        Ok(Self { listener, local_addr, tls, state: Arc::new(State::new(config, admission, upstreams)) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Its address, for people and programs.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.tls.is_some() { "https" } else { "http" }, self.local_addr)
    }

    /// Answers until `shutdown` is there, then lets open responses end for as long as `drain` says.
    ///
    /// # Errors
    /// When the system refuses the socket.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), GuardError> {
        let Self { listener, local_addr, tls, state } = self;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let watchers: Vec<_> = (0..state.upstreams.len())
            .map(|replica| tokio::spawn(watch::watch(Arc::clone(&state), replica)))
            .collect();
        state.log.line(
            "listening",
            json!({"address": local_addr.to_string(), "shadow": state.config.settings.shadow}),
        );
        let graceful = GracefulShutdown::new();
        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut shutdown => break,
            };
            match accepted {
                Ok((socket, peer)) => {
                    let connection =
                        connection(Arc::clone(&state), socket, peer.ip(), tls.clone(), graceful.watcher());
                    tokio::spawn(connection);
                }
                Err(error) => {
                    state.log.line("accept_failed", json!({"why": error.to_string()}));
                    tokio::time::sleep(NO_SOCKETS).await;
                }
            }
        }
        drop(listener);
        state.draining.store(true, Ordering::Relaxed);
        let open = state.with(|admission, _| admission.in_flight());
        state.log.line("draining", json!({"in_flight": open, "at_most_s": state.config.drain.as_secs_f64()}));
        let drained = tokio::time::timeout(state.config.drain, graceful.shutdown()).await.is_ok();
        state.log.line("stopped", json!({"drained": drained}));
        watchers.iter().for_each(tokio::task::JoinHandle::abort);
        Ok(())
    }
}

async fn connection(
    state: Shared,
    socket: TcpStream,
    peer: IpAddr,
    tls: Option<TlsAcceptor>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    // Without it a token waits for the acknowledgement of the one before.
    let _refused = socket.set_nodelay(true);
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(service::answer(state, request, peer).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(SLOWEST_HEAD);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(20));
    // How a connection ends is the business of its requests, which are counted.
    match tls {
        None => {
            let served = builder.serve_connection(TokioIo::new(socket), service).into_owned();
            let _ended = watcher.watch(served).await;
        }
        Some(tls) => {
            let Ok(Ok(stream)) = tokio::time::timeout(SLOWEST_HEAD, tls.accept(socket)).await else { return };
            let served = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            let _ended = watcher.watch(served).await;
        }
    }
}
