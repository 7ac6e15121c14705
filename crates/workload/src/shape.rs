//! What each request asks, in the order of the plan, whatever its time.

use crate::dataset::Content;
use crate::prefix::Groups;
use crate::seed::{Purpose, SeedTree};
use crate::{Dataset, Lengths, Plan, Priorities, Prompt, TokenRun, hash};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// Children of the content root, so that streams of different kinds never meet.
const OWN: u64 = 1;
const PREFIX: u64 = 2;
const BLOCK: u64 = 3;
const MARK: u64 = 4;

/// Content of one request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) prompt: Prompt,
    pub(crate) output_tokens: u32,
    pub(crate) priority: i32,
}

/// The shapes of a plan.
#[derive(Debug, Clone)]
pub(crate) struct Shapes {
    source: Source,
    output: Option<(Lengths, ChaCha8Rng)>,
    priorities: Option<(Priorities, ChaCha8Rng)>,
    /// Root of all token streams.
    content: u64,
    /// Texts from files get a mark of their run.
    salted: bool,
    index: u32,
}

#[derive(Debug, Clone)]
enum Source {
    Synthetic {
        input: Lengths,
        rng: ChaCha8Rng,
        groups: Option<Box<Groups>>,
    },
    Data(Entries),
    /// Lengths of random entries; for warm-ups.
    LengthsOf {
        data: Arc<Dataset>,
        rng: ChaCha8Rng,
    },
}

/// Walks a data set, again and again.
#[derive(Debug, Clone)]
struct Entries {
    data: Arc<Dataset>,
    order: Option<Arc<[u32]>>,
    shuffle: Option<ChaCha8Rng>,
    place: usize,
    pass: u64,
    /// Time of the first entry of a trace.
    zero: u64,
}

impl Shapes {
    pub(crate) fn new(plan: &Plan, seeds: SeedTree, by_time: Option<Arc<[u32]>>) -> Self {
        let spec = plan.spec();
        let source = match plan.data() {
            Some(data) => Source::Data(Entries::new(
                Arc::clone(data),
                by_time,
                spec.shuffle.then(|| seeds.generator(Purpose::Order)),
            )),
            None => Self::synthetic(plan, seeds),
        };
        Self::with_source(plan, seeds, source)
    }

    pub(crate) fn warmup(plan: &Plan, seeds: SeedTree) -> Self {
        let source = match plan.data() {
            Some(data) => {
                Source::LengthsOf { data: Arc::clone(data), rng: seeds.generator(Purpose::InputTokens) }
            }
            None => Self::synthetic(plan, seeds),
        };
        Self::with_source(plan, seeds, source)
    }

    fn synthetic(plan: &Plan, seeds: SeedTree) -> Source {
        let spec = plan.spec();
        Source::Synthetic {
            // A plan without a data set was checked to have lengths.
            input: spec.input_tokens.unwrap_or(Lengths::Fixed(1)),
            rng: seeds.generator(Purpose::InputTokens),
            groups: spec
                .prefix
                .as_ref()
                .and_then(|prefix| Groups::new(prefix, seeds.generator(Purpose::Prefixes)))
                .map(Box::new),
        }
    }

    fn with_source(plan: &Plan, seeds: SeedTree, source: Source) -> Self {
        let spec = plan.spec();
        Self {
            source,
            output: spec.output_tokens.map(|lengths| (lengths, seeds.generator(Purpose::OutputTokens))),
            priorities: spec.priority.clone().map(|classes| (classes, seeds.generator(Purpose::Priorities))),
            content: seeds.content(plan.salt()),
            salted: plan.salt().is_some(),
            index: 0,
        }
    }

    /// Nanoseconds of the next entry of a trace since its first.
    pub(crate) fn time(&self) -> Option<u64> {
        match &self.source {
            Source::Data(entries) => {
                entries.data.entries.get(entries.next_entry()?)?.at.map(|at| at - entries.zero)
            }
            _ => None,
        }
    }

    /// The next shape. There always is one, unless the data set is empty.
    pub(crate) fn next(&mut self) -> Option<Shape> {
        let own = own_stream(self.content, self.index);
        self.index = self.index.wrapping_add(1);
        let (prompt, said_output, said_priority) = match &mut self.source {
            Source::Synthetic { input, rng, groups } => {
                let tokens = input.draw(rng);
                let prefix = groups.as_mut().map(|groups| {
                    let stream = hash::mix(hash::mix(self.content, PREFIX), u64::from(groups.next()));
                    TokenRun { stream, start: 0, len: groups.tokens.min(tokens - 1) }
                });
                (Prompt::Tokens(with_own(prefix.into_iter().collect(), tokens, own)), None, None)
            }
            Source::LengthsOf { data, rng } => {
                let entry = &data.entries[rng.random_range(0..data.entries.len())];
                let tokens = length(&entry.content);
                (Prompt::Tokens(with_own(Vec::new(), tokens, own)), entry.output_tokens, entry.priority)
            }
            Source::Data(entries) => {
                let (entry, pass) = entries.advance()?;
                let data = Arc::clone(&entries.data);
                let entry = &data.entries[entry];
                let prompt = self.prompt_of(&entry.content, data.block_tokens, pass, own);
                (prompt, entry.output_tokens, entry.priority)
            }
        };
        let output_tokens = match &mut self.output {
            Some((lengths, rng)) => lengths.draw(rng),
            None => said_output?,
        };
        let priority = match &mut self.priorities {
            Some((classes, rng)) => classes.draw(rng),
            None => said_priority.unwrap_or(0),
        };
        Some(Shape { prompt, output_tokens, priority })
    }

    fn prompt_of(&self, content: &Content, block: u32, pass: u64, own: u64) -> Prompt {
        match content {
            Content::Length(tokens) => Prompt::Tokens(with_own(Vec::new(), *tokens, own)),
            Content::Blocks { tokens, ids } => {
                // A second pass is other traffic of the same structure: its blocks are its own.
                let root = hash::mix(hash::mix(self.content, BLOCK), pass);
                let mut left = *tokens;
                let mut runs = Vec::with_capacity(ids.len() + 1);
                for id in ids {
                    let len = left.min(block);
                    left -= len;
                    runs.push(TokenRun { stream: hash::mix(root, *id), start: 0, len });
                }
                if left > 0 {
                    runs.push(TokenRun { stream: own, start: 0, len: left });
                }
                Prompt::Tokens(runs)
            }
            Content::Ids(ids) if self.salted => Prompt::Ids(self.marked_ids(ids, pass)),
            Content::Ids(ids) => Prompt::Ids(Arc::clone(ids)),
            Content::Text(text) if self.salted => Prompt::Text(format!("{}{text}", self.mark(pass)).into()),
            Content::Text(text) => Prompt::Text(Arc::clone(text)),
            Content::Chat(chat) if self.salted => {
                let mut chat = crate::Chat::clone(chat);
                chat.mark(&self.mark(pass));
                Prompt::Chat(chat.into())
            }
            Content::Chat(chat) => Prompt::Chat(Arc::clone(chat)),
        }
    }

    /// What a text from a file begins with so that no other run (or pass) has warmed its cache. The same for all
    /// texts of a pass, so that what they share among themselves they still share.
    fn mark(&self, pass: u64) -> String {
        format!("[{:012x}] ", hash::mix(hash::mix(self.content, MARK), pass) >> 16)
    }

    /// The same for token ids: eight of them, taken from the data set's own first prompt, whose ids are valid.
    fn marked_ids(&self, ids: &Arc<[u32]>, pass: u64) -> Arc<[u32]> {
        let Source::Data(entries) = &self.source else { return Arc::clone(ids) };
        let known = entries.data.entries.iter().find_map(|entry| match &entry.content {
            Content::Ids(ids) => Some(ids),
            _ => None,
        });
        let known = known.unwrap_or(ids);
        let root = hash::mix(hash::mix(self.content, MARK), pass);
        let mark = (0..8).map(|place| known[crate::token_id(root, place, 0..known.len() as u32) as usize]);
        mark.chain(ids.iter().copied()).collect()
    }
}

/// The stream of the tokens that only request `index` has.
pub(crate) fn own_stream(content: u64, index: u32) -> u64 {
    hash::mix(hash::mix(content, OWN), u64::from(index))
}

/// `shared`, then tokens that no other prompt has.
fn with_own(mut shared: Vec<TokenRun>, tokens: u32, own: u64) -> Vec<TokenRun> {
    shared.retain(|run| run.len > 0);
    let len = shared.iter().fold(tokens, |left, run| left - run.len);
    shared.push(TokenRun { stream: own, start: 0, len });
    shared
}

fn length(content: &Content) -> u32 {
    match content {
        Content::Length(tokens) | Content::Blocks { tokens, .. } => *tokens,
        Content::Ids(ids) => ids.len() as u32,
        Content::Text(text) => Prompt::Text(Arc::clone(text)).estimated_tokens(),
        Content::Chat(chat) => Prompt::Chat(Arc::clone(chat)).estimated_tokens(),
    }
}

impl Entries {
    fn new(data: Arc<Dataset>, by_time: Option<Arc<[u32]>>, shuffle: Option<ChaCha8Rng>) -> Self {
        let first = by_time.as_ref().and_then(|order| order.first()).map_or(0, |entry| *entry as usize);
        let zero = data.entries.get(first).and_then(|entry| entry.at).unwrap_or(0);
        let mut entries = Self { data, order: by_time, shuffle, place: 0, pass: 0, zero };
        entries.reshuffle();
        entries
    }

    fn reshuffle(&mut self) {
        if let Some(rng) = &mut self.shuffle {
            let mut order: Vec<u32> = (0..self.data.entries.len() as u32).collect();
            order.shuffle(rng);
            self.order = Some(order.into());
        }
    }

    fn next_entry(&self) -> Option<usize> {
        match &self.order {
            Some(order) => order.get(self.place).map(|entry| *entry as usize),
            None => (self.place < self.data.entries.len()).then_some(self.place),
        }
    }

    /// The next entry and the pass it belongs to.
    fn advance(&mut self) -> Option<(usize, u64)> {
        if self.place == self.data.entries.len() {
            self.place = 0;
            self.pass += 1;
            self.reshuffle();
        }
        let entry = self.next_entry()?;
        self.place += 1;
        Some((entry, self.pass))
    }
}
