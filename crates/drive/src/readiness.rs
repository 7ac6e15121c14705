//! What is asked of a server between two runs: does it answer, which process is it, is it idle.

use crate::fetch::Fetcher;
use crate::preflight::{ANSWER_LIMIT, ASK_TIMEOUT, answer};
use crate::sampler::MetricsSource;
use crate::target::Target;
use precipice_dialect::{Meaning, Part, known};
use precipice_wire::prometheus;

/// The server answers as one that takes requests. vLLM lists its models once the engine is up, not before; a server
/// without a list will do where the model is `named`, as it does for a run.
///
/// # Errors
/// What it did instead, in words.
pub fn answers(target: &Target, named: bool) -> Result<(), String> {
    let mut fetcher = Fetcher::new(target.origin.clone());
    let reply = fetcher
        .fetch("GET", &target.api_path("/models"), None, ASK_TIMEOUT, ANSWER_LIMIT)
        .map_err(|error| error.to_string())?;
    match reply.head.status {
        200 => Ok(()),
        403..=405 | 501 if named => Ok(()),
        status => Err(format!("/v1/models answered {status}")),
    }
}

/// A replica at one moment. What it does not export is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sight {
    /// Requests running and waiting.
    pub requests: Option<f64>,
    /// Start of the process, seconds since the Unix epoch: another one is another process.
    pub started: Option<f64>,
}

/// Looks at a replica's metrics; `None` where it answers and has none, as llama.cpp without `--metrics`.
///
/// # Errors
/// Why there was no answer, in words.
pub fn look(source: &MetricsSource) -> Result<Option<Sight>, String> {
    let reply = answer(source)?;
    Ok(if reply.head.status == 200 { sight(&reply.body) } else { None })
}

fn sight(page: &[u8]) -> Option<Sight> {
    let mut sight = Sight::default();
    prometheus::samples(page, |sample| match known(sample.name).map(|known| (known.meaning, known.part)) {
        Some((Meaning::Running | Meaning::Waiting, Part::Gauge)) => {
            sight.requests = Some(sight.requests.unwrap_or(0.0) + sample.value);
        }
        Some((Meaning::ProcessStart, _)) => sight.started = Some(sample.value),
        _ => {}
    })
    .ok()?;
    Some(sight)
}

#[cfg(test)]
mod tests {
    use super::{Sight, sight};

    #[test]
    fn running_and_waiting_add_up_and_what_is_not_exported_is_absent() {
        let page = b"vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_waiting{engine=\"0\"} 4\n\
            process_start_time_seconds 17.5\n";
        assert_eq!(sight(page), Some(Sight { requests: Some(7.0), started: Some(17.5) }));
        assert_eq!(sight(b"up 1\n"), Some(Sight::default()));
        assert_eq!(sight(b"<html>"), None);
    }
}
