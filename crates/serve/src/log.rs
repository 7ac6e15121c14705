//! The log, in vLLM's layout.

use crate::clock::Clock;
use crate::config::{LogSink, ServeConfig};
use precipice_engine::EngineConfig;
use precipice_wire::vllm_log::{Iteration, Periodic, write};

/// Writes lines with vLLM's decoration. The places in the source are vLLM 0.27.1's, for tools that look for them.
#[derive(Clone)]
pub(crate) struct Log {
    sink: Option<LogSink>,
    clock: Clock,
}

impl Log {
    pub(crate) fn new(sink: Option<LogSink>, clock: Clock) -> Self {
        Self { sink, clock }
    }

    fn line(&self, process: &str, level: &str, place: &str, message: &str) {
        if let Some(sink) = &self.sink {
            let time = date_and_time(self.clock.unix_now().as_secs());
            let pid = std::process::id();
            sink(&format!("({process} pid={pid}) {level} {time} [{place}] {message}"));
        }
    }

    /// What vLLM says of the engine when it starts.
    pub(crate) fn start_up(&self, config: &ServeConfig) {
        let engine: &EngineConfig = &config.engine;
        if engine.enable_chunked_prefill {
            let text = write::chunked_prefill(engine.max_num_batched_tokens);
            self.line("APIServer", "INFO", "scheduler.py:246", &text);
        }
        let text = write::async_scheduling(engine.async_scheduling);
        self.line("APIServer", "INFO", "vllm.py:817", &text);
        let text = format!("Simulated by precipice {}: no GPU computes here.", env!("CARGO_PKG_VERSION"));
        self.line("EngineCore", "INFO", "core.py:103", &text);
        let text = write::kv_cache_size(engine.kv_cache_size_tokens());
        self.line("EngineCore", "INFO", "kv_cache_utils.py:2235", &text);
        let text = write::max_concurrency(engine.max_model_len, engine.max_concurrency());
        self.line("EngineCore", "INFO", "kv_cache_utils.py:2236", &text);
    }

    /// The server can be asked from now on.
    pub(crate) fn listening(&self, address: std::net::SocketAddr) {
        let text = format!("Starting vLLM server on http://{address}");
        self.line("APIServer", "INFO", "api_server.py:682", &text);
        if let Some(sink) = &self.sink {
            let pid = std::process::id();
            sink(&format!("(APIServer pid={pid}) INFO:     Application startup complete."));
        }
    }

    pub(crate) fn iteration(&self, line: &Iteration) {
        self.line("APIServer", "INFO", "loggers.py:182", &write::iteration(0, line));
    }

    pub(crate) fn periodic(&self, line: &Periodic) {
        self.line("APIServer", "INFO", "loggers.py:271", &write::periodic(0, line));
    }

    pub(crate) fn warning(&self, message: &str) {
        self.line("EngineCore", "WARNING", "precipice.py:1", message);
    }

    pub(crate) fn error(&self, message: &str) {
        self.line("EngineCore", "ERROR", "core.py:1", message);
    }
}

/// `11-30 02:34:33` of seconds since the Unix epoch, in UTC.
fn date_and_time(unix: u64) -> String {
    let (days, seconds) = (unix / 86_400, unix % 86_400);
    // Civil date from days (Howard Hinnant): years begin in March, so that the leap day is the last.
    let shifted = days + 719_468;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    format!("{month:02}-{day:02} {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::date_and_time;

    #[test]
    fn dates() {
        for (unix, text) in [
            (0, "01-01 00:00:00"),
            (951_782_399, "02-28 23:59:59"),
            (951_782_400, "02-29 00:00:00"),
            (951_868_800, "03-01 00:00:00"),
            (1_796_005_657, "11-30 02:27:37"),
        ] {
            assert_eq!(date_and_time(unix), text);
        }
    }
}
