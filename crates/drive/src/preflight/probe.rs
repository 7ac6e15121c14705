//! A few tiny requests: are token ids taken, what does an event carry, how does the server count words.

use crate::body::{PromptForm, RequestForm};
use crate::fetch::Fetcher;
use crate::preflight::{ANSWER_LIMIT, PreflightError, PromptChoice, Wants, may_try_ids, words};
use crate::stream::{Facts, Stream};
use crate::target::Target;
use precipice_dialect::Engine;
use precipice_record::{Doubt, FailureKind, Warning};
use precipice_workload::{Arrival, PlannedRequest, Prompt, TokenRun, WordFit};
use std::thread;
use std::time::Duration;

/// How often a probe is sent that fails, and the wait in between.
const TRIES: u32 = 3;
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// The first request of a server may load and compile for long.
const FIRST_TIMEOUT: Duration = Duration::from_mins(3);
/// Output tokens of a probe: enough to see whether an event carries one.
const OUTPUT: u32 = 8;
/// Lengths, in words, that a text server is asked to count: the first two, or the last where the second is too
/// long for its window.
const WORD_COUNTS: [u32; 3] = [32, 160, 8];
/// Sizes of vocabularies that are tried, with the first id that is no special token. Low ids are special tokens
/// and bytes, the highest ones placeholders of images and the like.
const VOCABULARIES: [(u32, u32); 3] = [(1_000, 32_000), (1_000, 2_048), (256, 1_024)];
/// A stream of tokens that no plan uses, so that a probe warms no prompt.
const PROBE_STREAM: u64 = 0x0050_524F_4245;

/// What is asked of the probe.
pub(super) struct Asked<'a> {
    pub wants: &'a Wants,
    pub model: Option<&'a str>,
    pub engine: Option<Engine>,
}

/// What it found.
pub(super) struct Probed {
    pub form: RequestForm,
    pub words: Option<WordFit>,
    pub warnings: Vec<Warning>,
}

/// Finds a form of request that the server takes.
pub(super) fn probe(
    fetcher: &mut Fetcher,
    target: &Target,
    asked: &Asked<'_>,
) -> Result<Probed, PreflightError> {
    let mut form = RequestForm::new(asked.model.map(str::to_owned), words(WordFit::default()));
    form.extra.clone_from(&asked.wants.extra);
    form.ignore_eos = asked.wants.ignore_eos;
    let mut session = Session { fetcher, target, form, sent: 0 };
    let mut refusal = None;
    if may_try_ids(target.endpoint, asked.wants.prompts) {
        match session.ids(asked.wants.vocabulary) {
            Ok(facts) => return Ok(session.done(&facts, None, asked)),
            Err((kind, said)) if said_no(kind) => refusal = Some(said),
            Err((_, what)) => return Err(PreflightError::Probe { what }),
        }
        if asked.wants.prompts == PromptChoice::Ids {
            return Err(PreflightError::NoIds { what: refusal.unwrap_or_default() });
        }
    }
    let (fit, facts) = session.words()?;
    let mut probed = session.done(&facts, Some(fit), asked);
    if let Some(said) = refusal {
        probed.warnings.push(Doubt::TextPrompts { said }.into());
    }
    Ok(probed)
}

struct Session<'a> {
    fetcher: &'a mut Fetcher,
    target: &'a Target,
    form: RequestForm,
    sent: u64,
}

type Refused = (FailureKind, String);

impl Session<'_> {
    /// The largest of the usual vocabularies whose highest id is taken.
    fn ids(&mut self, given: Option<u32>) -> Result<Facts, Refused> {
        let given = given.map(|size| ((size / 32).min(1_000), size));
        let ranges = given.map_or(VOCABULARIES.to_vec(), |range| vec![range]);
        let mut last = (FailureKind::ClientError, String::new());
        for (low, size) in ranges {
            self.form.prompt = PromptForm::Ids(low..size);
            // The highest id is in the vocabulary, or the server says no.
            let highest: std::sync::Arc<[u32]> = vec![size.saturating_sub(1); 2].into();
            match self.send_lenient(&Prompt::Ids(highest)) {
                Ok(facts) => return Ok(facts),
                Err(refused) if said_no(refused.0) => last = refused,
                Err(refused) => return Err(refused),
            }
        }
        Err(last)
    }

    fn words(&mut self) -> Result<(WordFit, Facts), PreflightError> {
        let mut counts = Vec::new();
        let mut facts = Facts::default();
        self.form.prompt = words(WordFit::default());
        let mut answered = 0;
        for length in WORD_COUNTS {
            if answered == 2 {
                break;
            }
            let prompt = Prompt::Tokens(vec![TokenRun {
                stream: PROBE_STREAM + u64::from(length),
                start: 0,
                len: length,
            }]);
            facts = match self.send_lenient(&prompt) {
                Ok(facts) => facts,
                // A short window: the line goes through a shorter prompt instead.
                Err((FailureKind::ClientError, _)) if answered == 1 && length == WORD_COUNTS[1] => continue,
                Err((_, what)) => return Err(PreflightError::Probe { what }),
            };
            answered += 1;
            counts.extend(facts.prompt_tokens.map(|tokens| (length, tokens)));
        }
        Ok((WordFit::from_counts(&counts).unwrap_or_default(), facts))
    }

    /// Sends; if the server minds `ignore_eos`, sends without; if it fails, sends again.
    fn send_lenient(&mut self, prompt: &Prompt) -> Result<Facts, Refused> {
        let mut answer = self.send(prompt);
        for _ in 1..TRIES {
            match &answer {
                Err((FailureKind::ClientError, said))
                    if self.form.ignore_eos && said.contains("ignore_eos") =>
                {
                    self.form.ignore_eos = false;
                }
                Err((kind, _)) if passes(*kind) => thread::sleep(BETWEEN_TRIES),
                _ => break,
            }
            answer = self.send(prompt);
        }
        answer.map_err(|(kind, said)| (kind, self.target.origin.redact(said)))
    }

    fn send(&mut self, prompt: &Prompt) -> Result<Facts, Refused> {
        let planned = PlannedRequest {
            index: 0,
            arrival: Arrival::WhenFree,
            prompt: prompt.clone(),
            output_tokens: OUTPUT,
            priority: 0,
            ramp: false,
        };
        self.sent += 1;
        let body = self
            .form
            .body(self.target, &planned)
            .map_err(|error| (FailureKind::ClientError, error.to_string()))?;
        let path = self.target.endpoint_path();
        let reply = self
            .fetcher
            .fetch("POST", &path, Some(&body), FIRST_TIMEOUT, ANSWER_LIMIT)
            .map_err(|error| (error.kind(), error.to_string()))?;
        let mut stream = Stream::new(0, OUTPUT);
        stream.begin(&reply.head);
        if let Some(fault) = stream.feed(&reply.body, |_| ()) {
            return Err(fault);
        }
        match stream.verdict(reply.head.status).failure {
            // A model that answers with nothing answers.
            None | Some((FailureKind::NoTokens, _)) => {
                stream.settle();
                Ok(stream.facts())
            }
            Some(failure) => Err(failure),
        }
    }

    fn done(mut self, facts: &Facts, fit: Option<WordFit>, asked: &Asked<'_>) -> Probed {
        let mut warnings = Vec::new();
        let total = facts.completion_tokens.filter(|&total| total > 0 || facts.events == Some(0));
        // Without a usage the client's own count is all there is: one for each event, as the warning says.
        self.form.one_token_an_event = total.is_none() || facts.events == total;
        if !self.form.one_token_an_event {
            // Servers that put several tokens into an event can say how many; others ignore the question.
            self.form.continuous_usage = matches!(asked.engine, Some(Engine::Vllm | Engine::Sglang));
        }
        if total.is_none() {
            warnings.push(Doubt::NoUsage.into());
        }
        if asked.wants.ignore_eos && !self.form.ignore_eos {
            warnings.push(Doubt::IgnoreEosRefused.into());
        }
        if let Some(fit) = fit {
            self.form.prompt = words(fit);
        }
        Probed { form: self.form, words: fit, warnings }
    }
}

/// A failure that may be over the next time.
fn passes(kind: FailureKind) -> bool {
    use FailureKind::{
        ClosedBeforeResponse, Protocol, Reset, ServerError, StreamCut, StreamIncomplete, TooManyRequests,
        Unavailable,
    };
    matches!(
        kind,
        ServerError
            | Unavailable
            | TooManyRequests
            | Reset
            | StreamCut
            | StreamIncomplete
            | ClosedBeforeResponse
            | Protocol
    )
}

/// The server understood and refused, in one of the ways in which servers do: vLLM tells of an id outside of the
/// vocabulary inside a stream that began with 200, others with 4xx or 500.
fn said_no(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::ClientError | FailureKind::ServerError | FailureKind::StreamError)
}
