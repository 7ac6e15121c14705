//! Which events carry tokens, and how many.
//!
//! The rule is in `docs/method.md`, "What a token-carrying event is". One event at a time can only be looked at
//! ([`crate::openai::glance()`]); this meter sees them in order and so also sees the usage grow.

use crate::openai::{EventClass, Glance};

/// Counts the tokens of one response as its events come.
#[derive(Debug, Clone, Default)]
pub struct TokenMeter {
    events: u32,
    counted: u32,
    unknown: u32,
    empty_finishes: u32,
    /// The server sends `usage` with its choices before the end.
    continuous: bool,
    /// `completion_tokens` so far, by choice.
    seen: Vec<u32>,
}

impl TokenMeter {
    /// More choices than this are not told apart: the count of their tokens is unknown.
    const MAX_CHOICES: usize = 128;

    /// Forgets everything: for the next response.
    pub fn reset(&mut self) {
        *self = Self { seen: std::mem::take(&mut self.seen), ..Self::default() };
        self.seen.clear();
    }

    /// Takes the next event. `None`: it carries no token. `Some(n)`: it carries `n`; 0 stands for at least one.
    pub fn observe(&mut self, glance: &Glance) -> Option<u16> {
        let growth = self.growth(glance);
        let carries = glance.class == EventClass::Token
            || (growth > 0
                && self.continuous
                && matches!(glance.class, EventClass::Finish | EventClass::Role | EventClass::Other));
        if !carries {
            if glance.class == EventClass::Finish {
                self.empty_finishes += 1;
            }
            return None;
        }
        let tokens = match glance.token_ids {
            Some(ids) if ids > 0 => ids,
            _ => growth,
        };
        self.events += 1;
        self.counted = self.counted.saturating_add(tokens);
        if tokens == 0 {
            self.unknown += 1;
        }
        Some(tokens.min(u32::from(u16::MAX)) as u16)
    }

    /// How far the usage of the event's choice grew.
    fn growth(&mut self, glance: &Glance) -> u32 {
        let Some(now) = glance.usage.and_then(|usage| usage.completion_tokens) else { return 0 };
        if glance.class == EventClass::Usage || glance.class == EventClass::Error {
            return 0;
        }
        // A usage that comes only with the end of a choice (llama.cpp) is a total, not a step; but a response of
        // one event is both.
        if glance.finished && !self.continuous && self.events > 0 {
            return 0;
        }
        self.continuous |= !glance.finished;
        let choice = glance.choice as usize;
        if choice >= Self::MAX_CHOICES {
            return 0;
        }
        if self.seen.len() <= choice {
            self.seen.resize(choice + 1, 0);
        }
        let growth = now.saturating_sub(self.seen[choice]);
        self.seen[choice] = self.seen[choice].max(now);
        growth
    }

    /// Events that carried tokens.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// All tokens of the events; absent while the count of one of them is unknown.
    pub fn tokens(&self) -> Option<u32> {
        (self.unknown == 0).then_some(self.counted)
    }

    /// At the end: the tokens of each event whose count was unknown (0 in [`Self::observe`]), where the server's
    /// total decides it.
    ///
    /// If the total leaves exactly one token for each such event, each carried one. Otherwise several tokens came
    /// in one event, or tokens came in none, and which is unknown.
    pub fn unknown_carried(&self, completion_tokens: u32) -> Option<u16> {
        let left = completion_tokens.checked_sub(self.counted)?;
        let empty = u32::from(self.empty_finish_carried(completion_tokens));
        (self.unknown > 0 && left.checked_sub(empty)? == self.unknown).then_some(1)
    }

    /// At the end: whether the event that ended the choice with nothing in it ([`EventClass::Finish`]) carried
    /// the last token, as the end-of-sequence token of some servers does: the server's total is one more than
    /// there were events.
    pub fn empty_finish_carried(&self, completion_tokens: u32) -> bool {
        self.empty_finishes == 1
            && completion_tokens == self.counted.saturating_add(self.unknown).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::glance;

    fn meter(events: &[&str]) -> (TokenMeter, Vec<Option<u16>>) {
        let mut meter = TokenMeter::default();
        let seen = events.iter().map(|event| meter.observe(&glance(event.as_bytes()))).collect();
        (meter, seen)
    }

    #[test]
    fn continuous_usage_counts_each_choice_by_itself() {
        let (meter, seen) = meter(&[
            r#"{"choices":[{"index":0,"text":"a"}],"usage":{"completion_tokens":2}}"#,
            r#"{"choices":[{"index":1,"text":"b"}],"usage":{"completion_tokens":1}}"#,
            r#"{"choices":[{"index":0,"text":"c","finish_reason":"length"}],"usage":{"completion_tokens":5}}"#,
            r#"{"choices":[],"usage":{"completion_tokens":6}}"#,
        ]);
        assert_eq!(seen, [Some(2), Some(1), Some(3), None]);
        assert_eq!(meter.tokens(), Some(6));
    }

    #[test]
    fn usage_that_grows_under_a_buffering_parser_is_a_token() {
        let (_, seen) = meter(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":{"completion_tokens":0}}"#,
            r#"{"choices":[{"index":0,"delta":{}}],"usage":{"completion_tokens":3}}"#,
            r#"{"choices":[{"index":0,"delta":{}}],"usage":{"completion_tokens":3}}"#,
        ]);
        assert_eq!(seen, [None, Some(3), None]);
    }

    #[test]
    fn a_total_in_the_last_choice_is_no_step() {
        let (meter, seen) = meter(&[
            r#"{"choices":[{"index":0,"text":"a","finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"text":"b","finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"text":"","finish_reason":"length"}],"usage":{"completion_tokens":2},"timings":{}}"#,
        ]);
        assert_eq!(seen, [Some(0), Some(0), None]);
        assert_eq!(meter.tokens(), None);
        assert_eq!(meter.unknown_carried(2), Some(1));
        assert!(!meter.empty_finish_carried(2));
        assert_eq!(meter.unknown_carried(4), None);
    }

    #[test]
    fn the_total_decides_whether_an_empty_finish_carried_the_last_token() {
        let (meter, _) = meter(&[
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        ]);
        assert!(meter.empty_finish_carried(2));
        assert_eq!(meter.unknown_carried(2), Some(1));
        assert!(!meter.empty_finish_carried(1));
        assert_eq!(meter.unknown_carried(1), Some(1));
    }

    /// Written from memory of both servers, neither recorded nor looked up.
    #[test]
    fn the_dialects_of_tgi_and_sglang() {
        let (meter_of_tgi, seen) = meter(&[
            r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
            r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"b"},"logprobs":null,"finish_reason":"length"}],"usage":null}"#,
            r#"{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#,
        ]);
        assert_eq!(seen, [Some(0), Some(0), None]);
        assert_eq!(meter_of_tgi.unknown_carried(2), Some(1));
        let (meter_of_sglang, seen) = meter(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null},"finish_reason":null,"matched_stop":null}],"usage":null}"#,
            r#"{"choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":"a","tool_calls":null},"finish_reason":null,"matched_stop":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":null,"content":"b","tool_calls":null},"finish_reason":null,"matched_stop":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":null,"content":null,"tool_calls":null},"finish_reason":"stop","matched_stop":2}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6}}"#,
        ]);
        assert_eq!(seen, [None, Some(0), Some(0), None, None]);
        assert!(meter_of_sglang.empty_finish_carried(3));
    }

    #[test]
    fn token_ids_are_exact() {
        let (meter, seen) = meter(&[r#"{"choices":[{"index":0,"text":"","token_ids":[7,8]}]}"#]);
        assert_eq!(seen, [Some(2)]);
        assert_eq!(meter.tokens(), Some(2));
    }
}
