//! Which events carry tokens, and how many.
//!
//! The rule is in `docs/method.md`, "What a token-carrying event is". One event at a time can only be looked at
//! ([`crate::openai::glance()`]); this meter sees them in order and so also sees the usage grow.

use crate::openai::{EventClass, Glance};

/// What an event carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// No token.
    Nothing,
    /// So many tokens; 0 stands for at least one.
    Tokens(u16),
    /// An empty text, of which only the end of the response tells whether it carried a token: see
    /// [`TokenMeter::settle`].
    Unsettled,
}

/// Which events with an empty text carried a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmptyTexts {
    /// Those before the first event that shows a token.
    pub leading: bool,
    /// Those after it.
    pub later: bool,
}

/// Counts the tokens of one response as its events come.
#[derive(Debug, Clone, Default)]
pub struct TokenMeter {
    events: u32,
    counted: u32,
    unknown: u32,
    empty_finishes: u32,
    leading_empties: u32,
    later_empties: u32,
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

    /// Takes the next event.
    pub fn observe(&mut self, glance: &Glance) -> Carried {
        let growth = self.growth(glance);
        let grew = growth > 0
            && self.continuous
            && matches!(
                glance.class,
                EventClass::Finish | EventClass::Role | EventClass::Empty | EventClass::Other
            );
        if glance.class == EventClass::Token || grew {
            let tokens = match glance.token_ids {
                Some(ids) if ids > 0 => ids,
                _ => growth,
            };
            self.events += 1;
            self.counted = self.counted.saturating_add(tokens);
            if tokens == 0 {
                self.unknown += 1;
            }
            return Carried::Tokens(tokens.min(u32::from(u16::MAX)) as u16);
        }
        match glance.class {
            EventClass::Finish => self.empty_finishes += 1,
            // A usage beside an empty text (proxies send such an event at the end) has said what it carried.
            EventClass::Empty if glance.usage.is_none() => {
                if self.events == 0 {
                    self.leading_empties += 1;
                } else {
                    self.later_empties += 1;
                }
                return Carried::Unsettled;
            }
            _ => {}
        }
        Carried::Nothing
    }

    /// How far the usage of the event's choice grew.
    fn growth(&mut self, glance: &Glance) -> u32 {
        let Some(now) = glance.usage.and_then(|usage| usage.completion_tokens) else { return 0 };
        if glance.class == EventClass::Usage || glance.class == EventClass::Error {
            return 0;
        }
        // A usage that first comes when tokens have come without one (llama.cpp, proxies) is a total, not a step; but a
        // response of one event is both.
        if !self.continuous && self.events + self.leading_empties > 0 {
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

    /// At the end: which events with an empty text carried a token ([`Carried::Unsettled`]), by the server's total
    /// where that decides it. They are counted from then on.
    ///
    /// Without a total each is taken for one: vLLM sends an empty text for a token that is no whole character. A total
    /// that decides neither way leaves those before the first token as none: vLLM's V0 engine sends one per chunk of
    /// the prompt.
    pub fn settle(&mut self, completion_tokens: Option<u32>) -> EmptyTexts {
        let (leading, later) = (self.leading_empties, self.later_empties);
        let shown = self.counted.saturating_add(self.unknown);
        let total = completion_tokens.filter(|total| *total > 0);
        let found = EmptyTexts {
            leading: leading > 0
                && total.is_none_or(|total| total == shown.saturating_add(leading).saturating_add(later)),
            later: later > 0 && !(total == Some(shown) && shown > 0),
        };
        let carried = if found.leading { leading } else { 0 } + if found.later { later } else { 0 };
        self.events += carried;
        self.unknown += carried;
        (self.leading_empties, self.later_empties) = (0, 0);
        found
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
    use super::Carried::{Nothing, Tokens, Unsettled};
    use super::*;
    use crate::openai::glance;

    fn meter(events: &[&str]) -> (TokenMeter, Vec<Carried>) {
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
        assert_eq!(seen, [Tokens(2), Tokens(1), Tokens(3), Nothing]);
        assert_eq!(meter.tokens(), Some(6));
    }

    #[test]
    fn usage_that_grows_under_a_buffering_parser_is_a_token() {
        let (_, seen) = meter(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":{"completion_tokens":0}}"#,
            r#"{"choices":[{"index":0,"delta":{}}],"usage":{"completion_tokens":3}}"#,
            r#"{"choices":[{"index":0,"delta":{}}],"usage":{"completion_tokens":3}}"#,
        ]);
        assert_eq!(seen, [Nothing, Tokens(3), Nothing]);
    }

    #[test]
    fn a_total_in_the_last_choice_is_no_step() {
        let (meter, seen) = meter(&[
            r#"{"choices":[{"index":0,"text":"a","finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"text":"b","finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"text":"","finish_reason":"length"}],"usage":{"completion_tokens":2},"timings":{}}"#,
        ]);
        assert_eq!(seen, [Tokens(0), Tokens(0), Nothing]);
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
        assert_eq!(seen, [Tokens(0), Tokens(0), Nothing]);
        assert_eq!(meter_of_tgi.unknown_carried(2), Some(1));
        let (meter_of_sglang, seen) = meter(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null},"finish_reason":null,"matched_stop":null}],"usage":null}"#,
            r#"{"choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":"a","tool_calls":null},"finish_reason":null,"matched_stop":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":null,"content":"b","tool_calls":null},"finish_reason":null,"matched_stop":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":null,"content":null,"tool_calls":null},"finish_reason":"stop","matched_stop":2}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6}}"#,
        ]);
        assert_eq!(seen, [Nothing, Tokens(0), Tokens(0), Nothing, Nothing]);
        assert!(meter_of_sglang.empty_finish_carried(3));
    }

    #[test]
    fn token_ids_are_exact() {
        let (meter, seen) = meter(&[r#"{"choices":[{"index":0,"text":"","token_ids":[7,8]}]}"#]);
        assert_eq!(seen, [Tokens(2)]);
        assert_eq!(meter.tokens(), Some(2));
    }

    const EMPTY: &str = r#"{"choices":[{"index":0,"text":"","finish_reason":null}]}"#;
    const FULL: &str = r#"{"choices":[{"index":0,"text":"a","finish_reason":null}]}"#;

    #[test]
    fn the_total_settles_what_empty_texts_carried() {
        let cases = [
            // vLLM V0: one empty text per chunk of the prompt.
            (vec![EMPTY, EMPTY, FULL, FULL], Some(2), (false, false), 2),
            // A first token that is no whole character.
            (vec![EMPTY, FULL, FULL], Some(3), (true, false), 3),
            (vec![FULL, EMPTY, FULL], Some(3), (false, true), 3),
            // A proxy's empty event at the end.
            (vec![FULL, FULL, EMPTY], Some(2), (false, false), 2),
            // Nothing is said.
            (vec![EMPTY, FULL, EMPTY, FULL], None, (true, true), 4),
            // Nothing decides.
            (vec![EMPTY, FULL, EMPTY, FULL], Some(9), (false, true), 3),
        ];
        for (events, total, (leading, later), carried) in cases {
            let (mut meter, seen) = meter(&events);
            let unsettled = seen.iter().filter(|seen| **seen == Unsettled).count();
            assert_eq!(unsettled, events.iter().filter(|event| **event == EMPTY).count());
            assert_eq!(meter.settle(total), EmptyTexts { leading, later }, "{events:?} {total:?}");
            assert_eq!(meter.events(), carried, "{events:?} {total:?}");
        }
    }

    /// LiteLLM counts the tokens itself and sends them beside an empty choice.
    #[test]
    fn a_usage_with_an_empty_choice_carries_nothing() {
        for end in [
            r#"{"choices":[{"index":0,"text":"","finish_reason":null}],"usage":{"completion_tokens":2}}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":null}],"usage":{"completion_tokens":2}}"#,
            r#"{"choices":[{"index":0,"delta":{"content":""}}],"usage":{"completion_tokens":2}}"#,
        ] {
            let (mut meter, seen) = meter(&[FULL, FULL, end]);
            assert_eq!(seen, [Tokens(0), Tokens(0), Nothing], "{end}");
            meter.settle(Some(2));
            assert_eq!(meter.unknown_carried(2), Some(1));
        }
    }

    #[test]
    fn parts_of_a_content_carry_a_token_where_one_is_not_empty() {
        let carries = |content: &str| {
            let event = format!(r#"{{"choices":[{{"index":0,"delta":{{"content":{content}}}}}]}}"#);
            meter(&[&event]).1 == [Tokens(0)]
        };
        assert!(carries(r#"[{"type":"thinking","thinking":[{"type":"text","text":"hm "}]}]"#));
        assert!(carries(r#"[{"type":"text","text":"a"}]"#) && carries(r#"["a"]"#));
        assert!(!carries(r#"[{"type":"text","text":""}]"#) && !carries("[]") && !carries("[null]"));
    }
}
