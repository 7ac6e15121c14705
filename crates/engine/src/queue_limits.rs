//! What is turned away in front of the engine, before its scheduler sees it.

use crate::config::ConfigError;
use crate::version::VllmVersion;

/// The limits on what the server has taken in. Whoever reaches one is answered with 503.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueLimits {
    /// Requests in flight, waiting or running (vLLM since 0.29). A request for `n` outputs counts as `n`.
    pub max_num_queued_reqs: Option<u32>,
    /// Prompt tokens of requests without a first token, the whole prompt of each (vLLM since 0.29).
    pub max_num_queued_tokens: Option<u64>,
    /// Requests that wait for the engine. No vLLM has such a limit: it is that of a gateway in front of it.
    pub max_waiting: Option<u32>,
}

/// What a server has taken in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queued {
    /// Requests that run.
    pub running: u32,
    /// Requests that wait.
    pub waiting: u32,
    /// Prompt tokens of those without a first token.
    pub prefilling_tokens: u64,
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// [`QueueLimits::max_num_queued_reqs`].
    Requests,
    /// [`QueueLimits::max_num_queued_tokens`].
    Tokens,
    /// [`QueueLimits::max_waiting`].
    Waiting,
}

impl QueueLimits {
    /// Some limit is set.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }

    /// Whether a request for `n` outputs is let in, in the order in which vLLM looks (`check_admission`).
    ///
    /// # Errors
    /// The limit that it reaches.
    pub fn admit(&self, queued: &Queued, n: u32) -> Result<(), Rejection> {
        let in_flight = queued.running.saturating_add(queued.waiting).saturating_add(n);
        if self.max_num_queued_reqs.is_some_and(|most| in_flight > most) {
            return Err(Rejection::Requests);
        }
        if self.max_num_queued_tokens.is_some_and(|most| queued.prefilling_tokens >= most) {
            return Err(Rejection::Tokens);
        }
        if self.max_waiting.is_some_and(|most| queued.waiting >= most) {
            return Err(Rejection::Waiting);
        }
        Ok(())
    }

    /// Checks that the release has these limits.
    ///
    /// # Errors
    /// The first one that came later.
    pub fn validate(&self, version: VllmVersion) -> Result<(), ConfigError> {
        let since = VllmVersion::V0_29;
        for (flag, asked) in [
            ("max-num-queued-reqs", self.max_num_queued_reqs.is_some()),
            ("max-num-queued-tokens", self.max_num_queued_tokens.is_some()),
        ] {
            if asked && version < since {
                return Err(ConfigError::Later { flag, since, version });
            }
        }
        Ok(())
    }
}

impl Rejection {
    /// The label `reason` of `vllm:admission_rejections_total`; absent for a limit that vLLM does not have.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Requests => Some("max_num_queued_reqs"),
            Self::Tokens => Some("max_num_queued_tokens"),
            Self::Waiting => None,
        }
    }

    /// What the client is told; the first two in vLLM's words.
    pub fn message(self) -> &'static str {
        match self {
            Self::Requests => {
                "The engine is currently busy and cannot accept new requests. Please try again later or on a different \
                 instance."
            }
            Self::Tokens => {
                "The engine has reached its prefill token backlog limit. Please try again later or on a different \
                 instance."
            }
            Self::Waiting => "The server is overloaded: --max-waiting requests wait. Please try again later.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{QueueLimits, Queued, Rejection};
    use crate::version::VllmVersion;

    const BUSY: Queued = Queued { running: 3, waiting: 2, prefilling_tokens: 500 };

    fn limits(reqs: Option<u32>, tokens: Option<u64>, waiting: Option<u32>) -> QueueLimits {
        QueueLimits { max_num_queued_reqs: reqs, max_num_queued_tokens: tokens, max_waiting: waiting }
    }

    #[test]
    fn requests_in_flight_count_and_n_counts_as_n() {
        assert_eq!(limits(Some(6), None, None).admit(&BUSY, 1), Ok(()));
        assert_eq!(limits(Some(6), None, None).admit(&BUSY, 2), Err(Rejection::Requests));
        assert_eq!(limits(Some(5), None, None).admit(&BUSY, 1), Err(Rejection::Requests));
        assert_eq!(limits(Some(0), None, None).admit(&Queued::default(), 1), Err(Rejection::Requests));
    }

    #[test]
    fn the_token_limit_is_reached_at_its_value_and_asked_second() {
        assert_eq!(limits(None, Some(501), None).admit(&BUSY, 1), Ok(()));
        assert_eq!(limits(None, Some(500), None).admit(&BUSY, 1), Err(Rejection::Tokens));
        assert_eq!(limits(Some(5), Some(500), Some(2)).admit(&BUSY, 1), Err(Rejection::Requests));
        assert_eq!(limits(Some(9), Some(500), Some(2)).admit(&BUSY, 1), Err(Rejection::Tokens));
    }

    #[test]
    fn the_limit_on_waiting_requests_counts_no_running_ones() {
        assert_eq!(limits(None, None, Some(3)).admit(&BUSY, 9), Ok(()));
        assert_eq!(limits(None, None, Some(2)).admit(&BUSY, 1), Err(Rejection::Waiting));
        assert_eq!(Rejection::Waiting.reason(), None);
    }

    #[test]
    fn a_release_without_the_limits_refuses_them() {
        assert_eq!(limits(None, None, Some(2)).validate(VllmVersion::V0_27), Ok(()));
        assert_eq!(limits(Some(2), None, None).validate(VllmVersion::V0_29), Ok(()));
        let error = limits(None, Some(2), None).validate(VllmVersion::V0_28).unwrap_err().to_string();
        assert!(error.contains("--max-num-queued-tokens came with vLLM 0.29"), "{error}");
    }
}
