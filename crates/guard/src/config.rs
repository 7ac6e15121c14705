//! Everything about a guard.

use precipice_admission::Settings;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Takes the lines of the log, without the newline.
pub type LogSink = Arc<dyn Fn(&str) + Send + Sync>;

/// When the server's `/tokenize` is asked for the length of a prompt of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tokenize {
    /// Until the route's ratio of bytes to tokens is known.
    #[default]
    Auto,
    /// For every prompt: exact, for one more round trip.
    Always,
    /// Never.
    Never,
}

/// The header that says how urgent a request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassHeader {
    /// Its name, in lower case.
    pub name: String,
    /// Names of classes, the most urgent first; empty: the header holds a number, smaller is more urgent.
    pub order: Vec<String>,
}

impl ClassHeader {
    /// The class that a value of the header names: the least urgent for an unknown name or none.
    pub fn class(&self, value: Option<&str>) -> u8 {
        let least = if self.order.is_empty() { 0 } else { self.order.len() - 1 };
        let place = value.map(str::trim).and_then(|value| {
            if self.order.is_empty() {
                return value.parse::<i64>().ok().map(|class| class.clamp(0, 7) as usize);
            }
            self.order.iter().position(|name| name.eq_ignore_ascii_case(value))
        });
        place.unwrap_or(least).min(7) as u8
    }
}

/// What was said of the servers by hand or by a log; it wins over what they say of themselves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// KV blocks, vLLM's null block counted, and where that comes from.
    pub num_gpu_blocks: Option<(u32, &'static str)>,
    /// Tokens a block.
    pub block_size: Option<(u32, &'static str)>,
    /// Longest sequence.
    pub max_model_len: Option<(u32, &'static str)>,
    /// Most sequences that run at once.
    pub max_num_seqs: Option<(u32, &'static str)>,
    /// Tokens a step.
    pub max_num_batched_tokens: Option<(u32, &'static str)>,
    /// Whether shared beginnings are stored once.
    pub prefix_caching: Option<(bool, &'static str)>,
    /// Seconds a step takes.
    pub step_s: Option<(f64, &'static str)>,
    /// Prompt tokens per second.
    pub prefill_tokens_per_s: Option<(f64, &'static str)>,
}

/// Everything about a guard.
#[derive(Clone)]
pub struct GuardConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The servers, as `http://host:port` or `https://…`, each a replica of one model.
    pub urls: Vec<String>,
    /// The decision's settings.
    pub settings: Settings,
    /// What is known of the servers beforehand.
    pub known: Known,
    /// Classes of urgency.
    pub class: Option<ClassHeader>,
    /// Largest body of a request, in bytes.
    pub max_body: usize,
    /// When text is tokenized by the server.
    pub tokenize: Tokenize,
    /// Time between looks at the servers' metrics.
    pub poll: Duration,
    /// How long open responses may take to end after SIGTERM.
    pub drain: Duration,
    /// Status of a refusal.
    pub shed_status: u16,
    /// Certificate chain and key of this side, as PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// More roots for the servers' certificates, as a PEM file.
    pub ca_cert: Option<PathBuf>,
    /// Where the log goes; absent: nowhere.
    pub log: Option<LogSink>,
    /// A line for each request, not for refusals and troubles alone.
    pub log_all: bool,
}

impl GuardConfig {
    /// A guard on a free port of this machine, before one server.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            urls: vec![url.into()],
            settings: Settings::default(),
            known: Known::default(),
            class: None,
            max_body: 64 << 20,
            tokenize: Tokenize::Auto,
            poll: Duration::from_secs(1),
            drain: Duration::from_mins(1),
            shed_status: 429,
            tls: None,
            ca_cert: None,
            log: None,
            log_all: false,
        }
    }
}

impl fmt::Debug for GuardConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardConfig")
            .field("listen", &self.listen)
            .field("urls", &self.urls)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::ClassHeader;

    #[test]
    fn classes_by_number_or_by_name() {
        let by_number = ClassHeader { name: "x-priority".to_owned(), order: Vec::new() };
        assert_eq!(by_number.class(Some(" 2 ")), 2);
        assert_eq!(by_number.class(Some("900")), 7);
        assert_eq!(by_number.class(Some("urgent")), 0);
        assert_eq!(by_number.class(None), 0);
        let order = ["chat", "batch"].map(str::to_owned).to_vec();
        let by_name = ClassHeader { name: "x-class".to_owned(), order };
        assert_eq!(by_name.class(Some("CHAT")), 0);
        assert_eq!(by_name.class(Some("unknown")), 1);
        assert_eq!(by_name.class(None), 1);
    }
}
