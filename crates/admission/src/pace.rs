//! How long a step and a prompt token take, as the streams show it.

use crate::settings::Capacity;
use precipice_record::Ns;

/// What is older than this counts little for the time of a step.
const STEP_MEMORY_S: f64 = 30.0;
/// The same for prefills, of which there are fewer.
const PREFILL_MEMORY_S: f64 = 60.0;

/// A ratio of two sums that fade with time.
#[derive(Debug, Clone, Copy, Default)]
struct Fading {
    over: f64,
    under: f64,
    at: Ns,
}

impl Fading {
    fn add(&mut self, now: Ns, memory_s: f64, over: f64, under: f64) {
        let keep = (-now.since(self.at).secs() / memory_s).exp();
        self.at = self.at.max(now);
        self.over = self.over * keep + over;
        self.under = self.under * keep + under;
    }

    fn ratio(&self) -> Option<f64> {
        (self.under > 0.0 && self.over > 0.0).then(|| self.over / self.under)
    }
}

/// What was seen of the server's speed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    step: Fading,
    prefill: Fading,
    error: Fading,
    given_step_s: Option<f64>,
    given_prefill: Option<f64>,
    /// When the last first token came: the prefills before it are done.
    last_first: Ns,
}

impl Pace {
    pub(crate) fn new(capacity: &Capacity) -> Self {
        let mut pace = Self::default();
        pace.give(capacity);
        pace
    }

    /// What is said of the server before anything was seen of it.
    pub(crate) fn give(&mut self, capacity: &Capacity) {
        let positive = |value: Option<f64>| value.filter(|value| value.is_finite() && *value > 0.0);
        self.given_step_s = positive(capacity.step_s);
        self.given_prefill = positive(capacity.prefill_tokens_per_s);
    }

    /// `tokens` came to one of `sequences` streams `gap` after the ones before.
    pub(crate) fn tokens(&mut self, now: Ns, gap: Ns, tokens: u32, sequences: u32) {
        self.step.add(now, STEP_MEMORY_S, gap.secs() * f64::from(sequences), f64::from(tokens));
    }

    /// The first token of a request came: `prompt` tokens, not found in a cache, were prefilled since it was sent or
    /// since the prefill before it was done.
    pub(crate) fn first_token(&mut self, now: Ns, sent: Ns, prompt: u32, predicted: Option<Ns>) {
        let took = now.since(sent.max(self.last_first)).secs();
        // The step that samples the token belongs to no prompt.
        let took = (took - self.step_s().unwrap_or(0.0)).max(took * 0.1);
        self.prefill.add(now, PREFILL_MEMORY_S, f64::from(prompt), took);
        self.last_first = now;
        if let Some(predicted) = predicted.filter(|predicted| predicted.0 > 0) {
            self.error.add(now, PREFILL_MEMORY_S, now.since(sent).secs(), predicted.secs());
        }
    }

    /// When the prefill of the oldest prompt began, if it was sent at `sent`.
    pub(crate) fn prefill_began(&self, sent: Ns) -> Ns {
        sent.max(self.last_first)
    }

    /// Seconds a step takes.
    pub(crate) fn step_s(&self) -> Option<f64> {
        self.step.ratio().or(self.given_step_s)
    }

    /// Prompt tokens per second.
    pub(crate) fn prefill_tokens_per_s(&self) -> Option<f64> {
        self.prefill.ratio().or(self.given_prefill)
    }

    /// Time to the first token as seen over as predicted.
    pub(crate) fn error_ratio(&self) -> Option<f64> {
        self.error.ratio()
    }
}

#[cfg(test)]
mod tests {
    use super::{Capacity, Ns, Pace};

    #[test]
    fn what_was_given_yields_to_what_is_seen() {
        let mut pace = Pace::new(&Capacity { step_s: Some(0.1), ..Capacity::default() });
        assert_eq!(pace.step_s(), Some(0.1));
        assert_eq!(pace.prefill_tokens_per_s(), None);
        for at in 1..100 {
            pace.tokens(Ns(at * 20_000_000), Ns(20_000_000), 1, 1);
        }
        assert!((pace.step_s().unwrap() - 0.02).abs() < 1e-9);
        // Four streams in one response: their tokens come four times as often.
        let mut pace = Pace::default();
        pace.tokens(Ns(5_000_000), Ns(5_000_000), 1, 4);
        assert!((pace.step_s().unwrap() - 0.02).abs() < 1e-9);
    }

    #[test]
    fn prefills_follow_one_another() {
        let mut pace = Pace::default();
        // Three prompts of 1000 tokens, sent at once, done after 1, 2 and 3 seconds.
        for at in 1..=3 {
            pace.first_token(Ns(at * 1_000_000_000), Ns::ZERO, 1000, None);
        }
        assert!((pace.prefill_tokens_per_s().unwrap() - 1000.0).abs() < 1.0);
    }
}
