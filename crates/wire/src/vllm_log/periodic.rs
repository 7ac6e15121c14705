//! The line of every ten seconds.

use super::{between, undecorated};

/// `Engine 000: Avg prompt throughput: ...`. Rates are over the interval, the rest is the last step's.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Periodic {
    /// Milliseconds since local midnight.
    pub time_of_day_ms: Option<u64>,
    /// Data-parallel rank; absent for the aggregate of several engines.
    pub engine: Option<u32>,
    /// Prompt tokens per second: those of requests whose first token came in the interval, recompute left out.
    pub prompt_tokens_per_s: f64,
    /// Generated tokens per second.
    pub generation_tokens_per_s: f64,
    /// Requests running.
    pub running: u64,
    /// Requests waiting, the deferred ones among them.
    pub waiting: u64,
    /// Share of the KV pool in use, 0..1.
    pub kv_usage: Option<f64>,
    /// Share of prompt tokens found in the prefix cache over the last 1000 requests, 0..1.
    pub prefix_hit_rate: Option<f64>,
}

impl Periodic {
    /// Reads a line; `None` for any other.
    pub fn parse(line: &str) -> Option<Self> {
        let line = undecorated(line);
        let message = line.message;
        let prompt = between(message, "Avg prompt throughput: ", " tokens/s")?;
        let percent = |name: &str| between(message, name, "%").and_then(|share| share.parse::<f64>().ok());
        Some(Self {
            time_of_day_ms: line.time_of_day_ms,
            engine: between(message, "Engine ", ":").and_then(|rank| rank.parse().ok()),
            prompt_tokens_per_s: prompt.parse().ok()?,
            generation_tokens_per_s: between(message, "Avg generation throughput: ", " tokens/s")?
                .parse()
                .ok()?,
            running: between(message, "Running: ", " reqs")?.parse().ok()?,
            // V0 said "Pending".
            waiting: between(message, "Waiting: ", " reqs")
                .or_else(|| between(message, "Pending: ", " reqs"))?
                .parse()
                .ok()?,
            kv_usage: percent("KV cache usage: ").map(|share| share / 100.0),
            prefix_hit_rate: percent("Prefix cache hit rate: ").map(|share| share / 100.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_line() {
        let line = "(APIServer pid=1445) INFO 11-30 02:48:09.711 [loggers.py:310] Engine 000: Avg prompt throughput: \
                    0.0 tokens/s, Avg generation throughput: 2408.6 tokens/s, Running: 15 reqs, Waiting: 49 reqs, \
                    GPU KV cache usage: 99.3%, Prefix cache hit rate: 0.0%";
        let read = Periodic::parse(line).unwrap();
        assert_eq!((read.engine, read.running, read.waiting), (Some(0), 15, 49));
        assert_eq!(read.generation_tokens_per_s, 2408.6);
        assert!((read.kv_usage.unwrap() - 0.993).abs() < 1e-12);
        assert_eq!(Periodic::parse("Engine 000: MFU: 58.3 TF/s/GPU 250.2 GB/s/GPU"), None);
    }
}
