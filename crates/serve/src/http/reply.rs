//! A response in the making.

use crate::engine::{Command, TokenEvent};
use crate::server::Shared;
use precipice_engine::Finish;
use precipice_record::Ns;
use precipice_wire::openai::{ErrorBody, ResponseWriter, TokenChunk, UsageCounts};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc::UnboundedReceiver;

/// vLLM's words for an engine that is gone.
pub(super) const ENGINE_DIED: &str =
    "EngineCore encountered an issue. See stack trace (above) for the root cause.";

/// One output.
pub(super) struct Choice {
    pub(super) key: u64,
    /// Where its words come from.
    pub(super) stream: u64,
    /// Tokens of its prompt.
    pub(super) prompt: u32,
    /// Ids of its prompt, where they are asked for.
    pub(super) prompt_ids: Option<Vec<u32>>,
    /// Tokens so far.
    pub(super) tokens: u32,
    pub(super) finish: Option<Finish>,
}

/// A response: its choices and where their tokens come from. Dropped before its end, it aborts what is open.
pub(super) struct Reply {
    pub(super) shared: Arc<Shared>,
    pub(super) writer: ResponseWriter,
    pub(super) chat: bool,
    pub(super) choices: Vec<Choice>,
    /// Choices that go on.
    pub(super) open: usize,
    /// Tokens of all prompts.
    pub(super) prompt_tokens: u32,
    pub(super) include_usage: bool,
    pub(super) continuous_usage: bool,
    pub(super) return_token_ids: bool,
    /// The connection is closed after so many tokens.
    pub(super) cut_after: Option<u32>,
    /// Tokens so far, all choices.
    pub(super) tokens: u32,
    /// The event in the making: its memory is used again.
    pub(super) scratch: Vec<u8>,
}

impl Reply {
    /// It is time to cut the connection.
    pub(super) fn cut(&self) -> bool {
        self.cut_after.is_some_and(|after| self.tokens >= after)
    }

    fn usage(&self) -> UsageCounts {
        UsageCounts { prompt: self.prompt_tokens, completion: self.tokens }
    }

    /// A token of a step that ended at `due` is on its way to the client.
    pub(super) fn written(&self, due: Ns) {
        self.shared.delay.observe(self.shared.clock.now().since(due));
    }

    /// Takes a token in. Events are handed to `frame`, one by one.
    pub(super) fn token(&mut self, event: TokenEvent, mut frame: impl FnMut(&[u8])) {
        let out = &mut self.scratch;
        if self.chat && self.tokens == 0 {
            for (index, choice) in self.choices.iter().enumerate() {
                let usage = UsageCounts { prompt: choice.prompt, completion: 0 };
                out.clear();
                self.writer.role(out, index as u32, self.continuous_usage.then_some(usage));
                frame(out);
            }
        }
        self.tokens += 1;
        self.open -= usize::from(event.finish.is_some());
        let last = self.open == 0;
        let Some(choice) = self.choices.get_mut(event.choice as usize) else { return };
        choice.tokens = event.tokens;
        choice.finish = event.finish;
        let id = self.shared.tokenizer.output(choice.stream, event.tokens - 1);
        let mut text = String::with_capacity(16);
        self.shared.tokenizer.decode_into(id, &mut text);
        let ids = [id];
        let usage = UsageCounts { prompt: choice.prompt, completion: choice.tokens };
        out.clear();
        self.writer.token(
            out,
            &TokenChunk {
                index: event.choice,
                text: &text,
                token_ids: self.return_token_ids.then_some(&ids),
                prompt_token_ids: choice.prompt_ids.as_deref().filter(|_| event.tokens == 1),
                finish_reason: event.finish.map(Finish::name),
                usage: self.continuous_usage.then_some(usage),
                last: last && !self.include_usage,
            },
        );
        frame(out);
        if last {
            if self.include_usage {
                let usage = UsageCounts { prompt: self.prompt_tokens, completion: self.tokens };
                out.clear();
                self.writer.usage(out, usage);
                frame(out);
            }
            out.clear();
            ResponseWriter::done(out);
            frame(out);
        }
    }

    /// What a stream says when the engine is gone.
    pub(super) fn engine_died() -> Vec<u8> {
        let body = ErrorBody { message: ENGINE_DIED, kind: "InternalServerError", param: None, code: 500 };
        let mut out = Vec::new();
        ResponseWriter::error(&mut out, &body);
        ResponseWriter::done(&mut out);
        out
    }

    /// The body of a response without stream, when all is generated; `None` if the engine died before.
    pub(super) async fn whole(mut self, mut events: UnboundedReceiver<TokenEvent>) -> Option<Vec<u8>> {
        while self.open > 0 && !self.cut() {
            let event = events.recv().await?;
            self.tokens += 1;
            self.open -= usize::from(event.finish.is_some());
            if let Some(choice) = self.choices.get_mut(event.choice as usize) {
                choice.tokens = event.tokens;
                choice.finish = event.finish;
            }
        }
        let tokenizer = &self.shared.tokenizer;
        let texts: Vec<String> = self
            .choices
            .iter()
            .map(|choice| {
                let mut text = String::with_capacity(8 * choice.tokens as usize);
                for place in 0..choice.tokens {
                    tokenizer.decode_into(tokenizer.output(choice.stream, place), &mut text);
                }
                text
            })
            .collect();
        let choices: Vec<(&str, &str)> = texts
            .iter()
            .zip(&self.choices)
            .map(|(text, choice)| (text.as_str(), choice.finish.map_or("length", Finish::name)))
            .collect();
        Some(self.writer.whole(&choices, self.usage()))
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.shared.in_service.fetch_sub(1, Ordering::Relaxed);
        for choice in self.choices.iter().filter(|choice| choice.finish.is_none()) {
            // An engine that is gone has nothing to abort.
            let _gone = self.shared.commands.send(Command::Abort(choice.key));
        }
    }
}
