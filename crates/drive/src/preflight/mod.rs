//! What is asked before any load is sent: who is there, which model, does the plan fit, how can prompts be sent.
//!
//! Everything that is known to fail is reported here, with the flag that mends it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`identity`] | which engine it is, its version, its limits |
//! | [`probe`] | a few tiny requests: are token ids taken, what does an event carry, how does it count words |

pub(crate) mod identity;
mod probe;

use crate::audit::process;
use crate::body::{PromptForm, RequestForm};
use crate::fetch::{FetchError, Fetcher, Reply};
use crate::sampler::{MetricsSource, PAGE_LIMIT};
use crate::target::Target;
use precipice_record::{Doubt, ServerFacts, Warning};
use precipice_wire::openai::Endpoint;
use precipice_wire::prometheus::{self, PageError};
use precipice_workload::WordFit;
use serde_json::{Map, Value};
use std::time::Duration;
use thiserror::Error;

/// How long one of its questions may take.
pub(crate) const ASK_TIMEOUT: Duration = Duration::from_secs(15);
/// Largest answer that is read.
pub(crate) const ANSWER_LIMIT: usize = 4 << 20;
/// Descriptors for everything that is no connection of the load: files, metrics, the terminal.
const OTHER_FILES: u64 = 64;

/// How synthetic prompts are to be sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PromptChoice {
    /// As token ids where the server takes them, else as text.
    #[default]
    Auto,
    /// As token ids, or not at all.
    Ids,
    /// As text.
    Text,
}

/// How long to wait for a server that is not ready yet.
#[derive(Debug, Clone, Copy)]
pub struct ReadyWait {
    /// `--ready-timeout`: at most this long.
    pub limit: Duration,
    /// Also for one that does not listen yet, and not only for one that says 503.
    pub for_start: bool,
    /// Is given a line of progress now and then.
    pub note: Option<fn(&str)>,
}

impl Default for ReadyWait {
    /// A minute, for one that says 503.
    fn default() -> Self {
        Self { limit: Duration::from_mins(1), for_start: false, note: None }
    }
}

/// What the run will need of the server.
#[derive(Debug, Clone, Default)]
pub struct Wants {
    /// `--model`
    pub model: Option<String>,
    /// How synthetic prompts are to be sent.
    pub prompts: PromptChoice,
    /// `--vocabulary`: ids below this are words; absent is found out.
    pub vocabulary: Option<u32>,
    /// The longest planned prompt and the output planned with it, in tokens.
    pub longest: Option<(u32, u32)>,
    /// Most requests in flight, where that is known.
    pub in_flight: Option<u32>,
    /// Outputs are to have their planned length.
    pub ignore_eos: bool,
    /// `--extra-body`
    pub extra: Map<String, Value>,
    /// `--metrics-url`, as given; empty is the server's own `/metrics`.
    pub metrics: Vec<MetricsSource>,
    /// `--no-metrics`
    pub no_metrics: bool,
    /// How long to wait until it is ready.
    pub ready: ReadyWait,
    /// Requests of the plan, where their number is known: an open loop may have all of them in flight.
    pub at_most: Option<u64>,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Preflight {
    /// The server with its preferred address first.
    pub target: Target,
    /// Facts for the manifest.
    pub server: ServerFacts,
    /// How to ask.
    pub form: RequestForm,
    /// Where to read metrics.
    pub metrics: Vec<MetricsSource>,
    /// How words become tokens, where prompts are sent as text.
    pub words: Option<WordFit>,
    /// What could not be found out.
    pub warnings: Vec<Warning>,
}

/// Why the run cannot begin. Each text names the flag that mends it.
#[derive(Debug, Error)]
pub enum PreflightError {
    /// Nobody answers.
    #[error("--url: {0}")]
    Unreachable(#[source] FetchError),
    /// Somebody answers, but not as OpenAI's API does.
    #[error(
        "--url {url}: GET {path} answered {what}; give the base URL of an OpenAI-compatible server, or --model where it has no list of models"
    )]
    NotOpenAi {
        /// The base.
        url: String,
        /// What was asked for.
        path: String,
        /// What came.
        what: String,
    },
    /// The key is missing or wrong.
    #[error(
        "--url {url}: the server wants an API key ({said}); put it in an environment variable and name that with --api-key-env, or name the model with --model if only the list of models is closed"
    )]
    Unauthorized {
        /// The base.
        url: String,
        /// Status and words.
        said: String,
    },
    /// It never became ready.
    #[error("--url {url}: the server is loading its model (503: {said}), still so after {} s; wait longer with --ready-timeout", limit.as_secs())]
    Loading {
        /// The base.
        url: String,
        /// Its words.
        said: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The model is not served.
    #[error("--model {model}: not served there; it serves {served}")]
    UnknownModel {
        /// As given.
        model: String,
        /// What there is.
        served: String,
    },
    /// There is a choice.
    #[error("--model: the server has several models ({0}); name one")]
    WhichModel(String),
    /// A request cannot fit.
    #[error("--input-tokens {prompt} and --output-tokens {output} make {}, and the model's window is {window} tokens; shorten one of them", prompt + output)]
    TooLong {
        /// Tokens.
        prompt: u64,
        /// Tokens.
        output: u64,
        /// Tokens.
        window: u32,
    },
    /// The system allows fewer sockets than the load needs.
    #[error("--concurrency: {needed} connections need more than {needed} open files, and the limit is {limit}; raise it with `ulimit -n {}`", needed + OTHER_FILES)]
    Files {
        /// Connections.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// The system has fewer local ports than the load needs.
    #[error(
        "--concurrency: {needed} connections to one address need as many local ports, and there are {limit} (net.ipv4.ip_local_port_range)"
    )]
    Ports {
        /// Connections.
        needed: u64,
        /// Ports.
        limit: u64,
    },
    /// Metrics that were asked for cannot be read.
    #[error("--metrics-url {url}: {what}")]
    Metrics {
        /// As given.
        url: String,
        /// Why.
        what: String,
    },
    /// The server refuses a tiny request.
    #[error(
        "a first request of one token failed: {what} (--model, --endpoint and --extra-body say what is sent)"
    )]
    Probe {
        /// What it said.
        what: String,
    },
    /// Token ids were asked for and are not taken.
    #[error("--prompts ids: the server does not take token ids ({what}); use --prompts text")]
    NoIds {
        /// What it said.
        what: String,
    },
}

/// Asks the server what it is and whether the plan can work.
///
/// # Errors
/// [`PreflightError`], each naming its flag.
pub fn preflight(target: &Target, wants: &Wants) -> Result<Preflight, PreflightError> {
    let few_files = check_sockets(wants)?;
    let mut target = target.clone();
    let mut fetcher = Fetcher::new(target.origin.clone());
    let pages = sources(&target, wants);
    let mut found = identity::identify(&mut fetcher, &target, wants.model.as_deref(), &pages, wants.ready)?;
    if let Some(moved) = found.moved.take() {
        target = moved;
    }
    if let Some(peer) = fetcher.peer() {
        target.origin.prefer(peer);
    }
    if let (Some((prompt, output)), Some(window)) = (wants.longest, found.server.max_model_len) {
        let (prompt, output) = (u64::from(prompt), u64::from(output));
        if prompt + output > u64::from(window) {
            return Err(PreflightError::TooLong { prompt, output, window });
        }
    }
    let metrics = metrics(pages, wants, &mut found.warnings)?;
    let asked = probe::Asked { wants, model: found.server.model.as_deref(), engine: found.server.engine };
    let probed = probe::probe(&mut fetcher, &target, &asked)?;
    found.warnings.extend(unused_proxy(&target));
    found.warnings.extend(few_files);
    found.warnings.extend(probed.warnings);
    found.server.url = Some(target.origin.url.to_string());
    found.server.metrics_urls = metrics.iter().map(MetricsSource::url).collect();
    Ok(Preflight {
        target,
        server: found.server,
        form: probed.form,
        metrics,
        words: probed.words,
        warnings: found.warnings,
    })
}

/// A proxy of the environment is not used: it would hide what is measured. Who set one is told so.
fn unused_proxy(target: &Target) -> Option<Warning> {
    let names: [&str; 2] =
        if target.origin.url.tls { ["https_proxy", "HTTPS_PROXY"] } else { ["http_proxy", "HTTP_PROXY"] };
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let name = names.into_iter().chain(["all_proxy", "ALL_PROXY"]).find(set)?;
    if target.origin.addresses.iter().all(|address| address.ip().is_loopback()) {
        return None;
    }
    Some(Doubt::ProxyUnused { variable: name }.into())
}

fn check_sockets(wants: &Wants) -> Result<Option<Warning>, PreflightError> {
    process::raise_file_limit();
    let (files, ports) = process::socket_limits();
    let Some(needed) = wants.in_flight.map(u64::from) else { return Ok(few_files(wants, files)) };
    if let Some(limit) = files.filter(|limit| needed + OTHER_FILES > *limit) {
        return Err(PreflightError::Files { needed, limit });
    }
    match ports {
        Some(limit) if needed > limit => Err(PreflightError::Ports { needed, limit }),
        _ => Ok(None),
    }
}

/// How many an open loop without a cap will have in flight is not known before; all of them is the worst.
fn few_files(wants: &Wants, files: Option<u64>) -> Option<Warning> {
    let (requests, limit) = (wants.at_most?, files?);
    (requests + OTHER_FILES > limit).then(|| Doubt::FewOpenFiles { requests, limit }.into())
}

/// Where metrics may be: where the user says, else at the server's own page.
fn sources(target: &Target, wants: &Wants) -> Vec<MetricsSource> {
    if wants.no_metrics {
        Vec::new()
    } else if wants.metrics.is_empty() {
        vec![MetricsSource { origin: target.origin.clone(), path: target.path("/metrics") }]
    } else {
        wants.metrics.clone()
    }
}

/// The sources that can be read. One that was asked for must be; the server's own may be missing.
fn metrics(
    sources: Vec<MetricsSource>,
    wants: &Wants,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<MetricsSource>, PreflightError> {
    let unreadable = sources.iter().find_map(|source| Some((source, page(source).err()?)));
    match unreadable {
        None => Ok(sources),
        Some((source, what)) if !wants.metrics.is_empty() => {
            Err(PreflightError::Metrics { url: source.url(), what })
        }
        Some((own, what)) => {
            warnings.push(Doubt::NoMetrics { url: Some(own.url()), error: Some(what) }.into());
            Ok(Vec::new())
        }
    }
}

/// What a source of metrics answers, whatever that is.
pub(crate) fn answer(source: &MetricsSource) -> Result<Reply, String> {
    let mut fetcher = Fetcher::new(source.origin.clone());
    fetcher.fetch("GET", &source.path, None, ASK_TIMEOUT, PAGE_LIMIT).map_err(|error| error.to_string())
}

/// A page of metrics, whole and with at least one sample.
pub(crate) fn page(source: &MetricsSource) -> Result<Vec<u8>, String> {
    let reply = answer(source)?;
    if reply.head.status != 200 {
        return Err(format!("status {}", reply.head.status));
    }
    let mut samples = 0;
    prometheus::samples(&reply.body, |_| samples += 1).map_err(|error: PageError| error.to_string())?;
    if samples == 0 { Err("the page holds no sample".to_owned()) } else { Ok(reply.body) }
}

/// Text prompts for a fit of words to tokens.
pub(crate) fn words(fit: WordFit) -> PromptForm {
    PromptForm::Words(fit)
}

/// Whether token ids may be tried at all.
pub(crate) fn may_try_ids(endpoint: Endpoint, choice: PromptChoice) -> bool {
    endpoint == Endpoint::Completions && choice != PromptChoice::Text
}
