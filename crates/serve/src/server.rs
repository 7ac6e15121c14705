//! A server: bind, run, stop.

use crate::clock::Clock;
use crate::config::ServeConfig;
use crate::engine::{Collected, Command, Core, Pace, QueueGauge};
use crate::faults::Faults;
use crate::http;
use crate::log::Log;
use crate::metrics::{DelayAudit, Figures, HttpCounts};
use crate::tokenizer::Tokenizer;
use precipice_engine::{ConfigError, EngineLoop, QueueLimits, Rejection, ServerMetrics};
use precipice_record::Ns;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How long open connections may take to end after the engine has stopped.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why there is no server.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The engine's settings are refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A time scale that is no factor.
    #[error("--time-scale must be a number above 0, not {0}")]
    TimeScale(f64),
    /// The address cannot be had.
    #[error(
        "cannot listen on {address}: {source} (choose another --host or --port; --port 0 takes a free one)"
    )]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The system refused something later.
    #[error("the server cannot go on: {0}")]
    System(#[from] io::Error),
}

/// What handlers share.
pub(crate) struct Shared {
    pub(crate) model: String,
    pub(crate) root: String,
    pub(crate) version: String,
    pub(crate) max_model_len: u32,
    pub(crate) faults: Faults,
    pub(crate) limits: QueueLimits,
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) metrics: Arc<Mutex<ServerMetrics>>,
    pub(crate) queue: Arc<QueueGauge>,
    pub(crate) http: HttpCounts,
    pub(crate) delay: DelayAudit,
    pub(crate) commands: Sender<Command>,
    pub(crate) alive: Arc<AtomicBool>,
    /// Number of the next generation request, and key of the next output.
    pub(crate) next_number: AtomicU32,
    pub(crate) next_key: AtomicU64,
    /// Generation requests that are being answered.
    pub(crate) in_service: AtomicU32,
}

impl Shared {
    /// A request was turned away.
    pub(crate) fn rejected(&self, rejection: Rejection) {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner).rejected(rejection);
    }

    /// The metrics as they are now.
    pub(crate) fn snapshot(&self) -> ServerMetrics {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A server that has its socket and does not answer yet.
pub struct Server {
    listener: TcpListener,
    local_addr: SocketAddr,
    shared: Arc<Shared>,
    pace: Pace,
    collected: UnboundedReceiver<Collected>,
    log: Log,
    log_every: Duration,
}

impl Server {
    /// Checks the settings and takes the socket.
    ///
    /// # Errors
    /// [`ServeError`]: settings with which no server starts, or an address that cannot be had.
    pub fn bind(config: ServeConfig) -> Result<Self, ServeError> {
        config.engine.validate()?;
        if !(config.time_scale > 0.0 && config.time_scale.is_finite()) {
            return Err(ServeError::TimeScale(config.time_scale));
        }
        let bind = |source| ServeError::Bind { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).map_err(bind)?;
        listener.set_nonblocking(true)?;
        let local_addr = listener.local_addr()?;
        let clock = Clock::start();
        let log = Log::new(config.log.clone(), clock);
        log.start_up(&config);
        let more = config.cache_config.iter().cloned();
        let metrics = Arc::new(Mutex::new(ServerMetrics::new(&config.engine, more)));
        let queue = Arc::new(QueueGauge::default());
        let alive = Arc::new(AtomicBool::new(true));
        let (commands, inbox) = mpsc::channel();
        let (outbox, collected) = unbounded_channel();
        let max_model_len = config.engine.max_model_len;
        let core = Core::new(
            EngineLoop::new(config.engine)?,
            config.cost,
            config.arithmetic,
            config.time_scale,
            Arc::clone(&metrics),
            Arc::clone(&queue),
        );
        let pace = Pace {
            core,
            commands: inbox,
            collected: outbox,
            deliveries: Vec::new(),
            clock,
            log: log.clone(),
            log_iterations: config.log_iterations,
            stalls: config.faults.stalls,
            alive: Arc::clone(&alive),
        };
        let shared = Arc::new(Shared {
            model: config.model,
            root: config.root,
            version: config.version,
            max_model_len,
            faults: config.faults,
            limits: config.limits,
            seed: config.seed,
            clock,
            tokenizer: Tokenizer::new(config.vocabulary),
            metrics,
            queue,
            http: HttpCounts::default(),
            delay: DelayAudit::default(),
            commands,
            alive,
            next_number: AtomicU32::new(0),
            next_key: AtomicU64::new(0),
            in_service: AtomicU32::new(0),
        });
        Ok(Self { listener, local_addr, shared, pace, collected, log, log_every: config.log_every })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Answers until `shutdown` is there; responses that are open then are cut.
    ///
    /// One thread of the runtime is enough: a runtime with several moves tokens between cores.
    ///
    /// # Errors
    /// When the system refuses a thread or the socket.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), ServeError> {
        let Self { listener, local_addr, shared, pace, collected, log, log_every } = self;
        let listener = http::Listener(tokio::net::TcpListener::from_std(listener)?);
        let engine = thread::Builder::new().name("engine".to_owned()).spawn(move || pace.run())?;
        let distribution = tokio::spawn(distribute(collected));
        let reporter = tokio::spawn(report(Arc::clone(&shared), log.clone(), log_every));
        log.listening(local_addr);
        let stop = shared.commands.clone();
        let (stopped, farewell) = tokio::sync::oneshot::channel();
        let service =
            http::router(Arc::clone(&shared)).into_make_service_with_connect_info::<http::Connection>();
        let graceful = axum::serve(listener, service)
            .with_graceful_shutdown(async move {
                shutdown.await;
                // Without the engine every open response ends.
                let _gone = stop.send(Command::Stop);
                let _gone = stopped.send(());
            })
            .into_future();
        let ended = tokio::select! {
            ended = graceful => ended,
            () = async {
                let _asked = farewell.await;
                tokio::time::sleep(FAREWELL).await;
            } => Ok(()),
        };
        reporter.abort();
        distribution.abort();
        let _gone = shared.commands.send(Command::Stop);
        if let Err(panic) = tokio::task::spawn_blocking(move || engine.join()).await.unwrap_or(Ok(())) {
            std::panic::resume_unwind(panic);
        }
        Ok(ended?)
    }

    /// [`Self::run`] on a runtime of its own, which is this thread.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_here(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.run(shutdown))
    }
}

/// Hands tokens to the responses that are written whole.
async fn distribute(mut collected: UnboundedReceiver<Collected>) {
    while let Some(step) = collected.recv().await {
        for (to, event) in step {
            // A response that is gone has aborted its request already.
            let _gone = to.send(event);
        }
    }
}

/// Logs throughput from time to time, and falls silent when nothing has happened for two intervals, as vLLM does.
async fn report(shared: Arc<Shared>, log: Log, every: Duration) {
    let mut ticks = tokio::time::interval(every.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut before = Figures::default();
    let mut at = shared.clock.now();
    let mut was_idle = true;
    loop {
        ticks.tick().await;
        let now = shared.clock.now();
        let figures = Figures::of(&shared.snapshot());
        let idle = figures.idle_since(&before);
        if !(idle && was_idle) {
            log.periodic(&figures.since(&before, now.since(at).max(Ns(1)).secs()));
        }
        (before, at, was_idle) = (figures, now, idle);
    }
}
