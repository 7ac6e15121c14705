//! One attempt of a client: what the engine gets of it, and the row that is left of it.

use crate::kv::{Content, unique_stream};
use crate::scheduler::{NewRequest, RequestId};
use precipice_record::{FailureKind, Ns, Phase, RequestRow};
use precipice_workload::{PlannedRequest, Prompt, TokenRun};

/// Kind of the streams that outputs come from.
const OUTPUT: u64 = 3;
/// Kind of the streams that stand for prompts whose tokens are not known.
const TEXT: u64 = 4;

/// Why an attempt failed: the kind, the HTTP status, the server's words.
pub(super) type Failed = (FailureKind, Option<u16>, Option<String>);

/// An attempt that has not ended.
pub(super) struct Attempt {
    pub(super) planned: PlannedRequest,
    pub(super) number: u16,
    pub(super) serial: u64,
    pub(super) phase: Phase,
    pub(super) intended: Ns,
    pub(super) sent: Ns,
    pub(super) prompt_tokens: u32,
    pub(super) id: Option<RequestId>,
    pub(super) first_token: Option<Ns>,
    pub(super) last_token: Option<Ns>,
    pub(super) tokens: u32,
    /// What a refusal said about coming again, in seconds.
    pub(super) retry_after_s: Option<f64>,
}

impl Attempt {
    /// Index in the plan. Warm-up requests have a count of their own: in rows that hold nothing but the index they
    /// would be taken for measured ones, so they are not written there.
    pub(super) fn planned(&self) -> Option<u32> {
        (self.phase != Phase::Warmup).then_some(self.planned.index)
    }

    /// What the engine gets.
    pub(super) fn to_engine(&self, key: u64) -> NewRequest {
        let planned = &self.planned;
        let warmup = u64::from(self.phase == Phase::Warmup);
        let number = u64::from(planned.index) << 17 | u64::from(self.number) << 1 | warmup;
        let output = unique_stream(OUTPUT, number);
        let content = match &planned.prompt {
            Prompt::Tokens(runs) => Content::from_runs(runs.clone(), output, 0),
            Prompt::Ids(ids) => Content::from_ids(ids.to_vec(), output),
            Prompt::Text(_) | Prompt::Chat(_) => {
                let stream = unique_stream(TEXT, u64::from(planned.index) << 1 | warmup);
                Content::from_runs(vec![TokenRun { stream, start: 0, len: self.prompt_tokens }], output, 0)
            }
        };
        NewRequest {
            key,
            content,
            max_tokens: planned.output_tokens,
            eos_at: None,
            priority: planned.priority,
            arrival: self.serial,
        }
    }

    /// The row of the attempt, ended at `end`; `finish_reason` is the engine's word for a whole one.
    pub(super) fn row(
        &self,
        end: Ns,
        phase: Phase,
        failed: Option<Failed>,
        finish_reason: Option<&'static str>,
    ) -> RequestRow {
        let done = failed.is_none();
        let (failure, status, message) = match failed {
            Some((kind, status, message)) => (Some(kind), status, message),
            None => (None, Some(200), None),
        };
        RequestRow {
            request: self.planned.index,
            attempt: self.number,
            phase,
            intended: self.intended,
            sent: Some(self.sent),
            first_event: self.first_token,
            first_token: self.first_token,
            last_token: self.last_token,
            end,
            prompt_tokens: Some(self.prompt_tokens),
            prompt_tokens_usage: done.then_some(self.prompt_tokens),
            output_tokens_asked: Some(self.planned.output_tokens),
            output_tokens: Some(self.tokens),
            output_tokens_usage: done.then_some(self.tokens),
            status,
            failure,
            message,
            retry_after_s: self.retry_after_s,
            finish_reason: finish_reason.filter(|_| done).map(str::to_owned),
            ..RequestRow::default()
        }
    }
}
