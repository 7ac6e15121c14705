//! What the load path must know of an event between two stamps, without parsing its JSON.
//!
//! [`glance`] walks the structure of the object once: strings are skipped with `memchr`, nothing is unescaped or
//! allocated. It knows where in the object it is, so that a text that contains `"error"` does not fool it.

use crate::openai::Usage;
use crate::sse::Event;
use memchr::{memchr, memchr2};

/// What kind of event it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum EventClass {
    /// `[DONE]`.
    Done,
    /// An error inside the stream.
    Error,
    /// Usage and no choice.
    Usage,
    /// The role of a chat message, before its first token.
    Role,
    /// At least one token.
    Token,
    /// An empty text or content and nothing else. vLLM sends one for a token that is no whole character, its V0 engine
    /// also one per chunk of the prompt: whether it carried a token, only the usage can tell
    /// ([`crate::openai::TokenMeter`]).
    Empty,
    /// The end of a choice with nothing in it that shows a token. Whether it carried one, only the final usage
    /// can tell ([`crate::openai::TokenMeter`]).
    Finish,
    /// None of these: unknown JSON, or no JSON at all.
    #[default]
    Other,
}

/// The facts of one event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Glance {
    /// What kind of event it is.
    pub class: EventClass,
    /// `index` of its last choice.
    pub choice: u32,
    /// Number of `token_ids`, where the server gives them: exact.
    pub token_ids: Option<u32>,
    /// A choice has a `finish_reason`.
    pub finished: bool,
    /// Its `usage`.
    pub usage: Option<Usage>,
}

/// The kind of an event, by its `data`. See [`glance`].
pub fn classify(data: &[u8]) -> EventClass {
    glance(data).class
}

/// Looks at a whole event: as [`glance()`], but an event of the name `error` is one, whatever its data.
pub fn glance_event(event: Event<'_>) -> Glance {
    let mut seen = glance(event.data);
    if event.event == b"error" {
        seen.class = EventClass::Error;
    }
    seen
}

/// Looks at the `data` of an event. Never fails: what is no JSON object is [`EventClass::Other`].
///
/// For an object that [`crate::openai::parse_chunk`] takes, both say the same.
pub fn glance(data: &[u8]) -> Glance {
    let data = data.trim_ascii();
    if data == b"[DONE]" {
        return Glance { class: EventClass::Done, ..Glance::default() };
    }
    let mut facts = Facts::default();
    let mut scanner = Scanner { bytes: data, at: 0 };
    match scanner.object(&mut |scanner, key| facts.top(scanner, key)) {
        Ok(()) if scanner.at == data.len() => facts.glance(),
        _ => Glance::default(),
    }
}

/// What a walk over a chunk finds; the exact parser fills the same, so that there is one rule for both.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) error: bool,
    pub(crate) detail: bool,
    pub(crate) choices: u32,
    pub(crate) choice: u32,
    /// Text, content, reasoning, a tool call, log-probabilities: something that was generated.
    pub(crate) content: bool,
    /// An empty text or content, which vLLM sends for a token that is no whole character.
    pub(crate) empty_content: bool,
    pub(crate) role: bool,
    pub(crate) finished: bool,
    /// The request ended because of this and not because of a token.
    pub(crate) aborted: bool,
    /// A key of engines whose last chunk carries the last token (vLLM, SGLang).
    pub(crate) stop_key: bool,
    /// llama.cpp's own key: its last chunk is empty and carries no token.
    pub(crate) timings: bool,
    pub(crate) token_ids: Option<u32>,
    pub(crate) usage: Option<Usage>,
}

impl Facts {
    /// The rule of `docs/method.md`, "What a token-carrying event is".
    pub(crate) fn glance(self) -> Glance {
        let class = if self.error || (self.detail && self.choices == 0) {
            EventClass::Error
        } else if self.choices == 0 {
            if self.usage.is_some() { EventClass::Usage } else { EventClass::Other }
        } else if self.content || self.token_ids.is_some_and(|ids| ids > 0) {
            EventClass::Token
        } else if self.role {
            EventClass::Role
        } else if self.finished {
            if self.empty_content && self.stop_key && !self.timings && !self.aborted {
                EventClass::Token
            } else {
                EventClass::Finish
            }
        } else if self.empty_content && self.token_ids != Some(0) {
            EventClass::Empty
        } else {
            EventClass::Other
        };
        Glance {
            class,
            choice: self.choice,
            token_ids: self.token_ids,
            finished: self.finished,
            usage: self.usage,
        }
    }

    fn top(&mut self, scanner: &mut Scanner<'_>, key: &[u8]) -> Walk {
        match key {
            b"choices" if scanner.peek() == Some(b'[') => scanner.array(&mut |scanner| self.element(scanner)),
            b"error" => {
                self.error |= !scanner.null_or_skip()?;
                Ok(())
            }
            b"object" => {
                self.error |= scanner.raw()? == b"\"error\"";
                Ok(())
            }
            b"detail" => {
                self.detail |= !scanner.null_or_skip()?;
                Ok(())
            }
            b"timings" => {
                self.timings |= !scanner.null_or_skip()?;
                Ok(())
            }
            b"usage" if scanner.peek() == Some(b'{') => {
                let mut usage = Usage::default();
                scanner.object(&mut |scanner, key| usage_field(&mut usage, scanner, key))?;
                self.usage = Some(usage);
                Ok(())
            }
            _ => scanner.skip(),
        }
    }

    fn element(&mut self, scanner: &mut Scanner<'_>) -> Walk {
        self.choices += 1;
        if scanner.peek() == Some(b'{') {
            scanner.object(&mut |scanner, key| self.in_choice(scanner, key))
        } else {
            scanner.skip()
        }
    }

    fn in_choice(&mut self, scanner: &mut Scanner<'_>, key: &[u8]) -> Walk {
        match key {
            b"index" => {
                self.choice = scanner.count()?.unwrap_or(self.choice);
                Ok(())
            }
            b"text" => self.generated(scanner, true),
            b"delta" | b"message" if scanner.peek() == Some(b'{') => {
                scanner.object(&mut |scanner, key| self.in_delta(scanner, key))
            }
            b"finish_reason" => {
                let reason = scanner.raw()?;
                if reason != b"null" && reason != b"\"\"" {
                    self.finished = true;
                    self.aborted |= reason == b"\"abort\"" || reason == b"\"error\"";
                }
                Ok(())
            }
            b"stop_reason" | b"matched_stop" => {
                self.stop_key = true;
                scanner.skip()
            }
            b"token_ids" if scanner.peek() == Some(b'[') => {
                let mut ids = 0;
                scanner.array(&mut |scanner| {
                    ids += 1;
                    scanner.skip()
                })?;
                self.token_ids = Some(self.token_ids.unwrap_or(0) + ids);
                Ok(())
            }
            b"logprobs" if scanner.peek() == Some(b'{') => scanner.object(&mut |scanner, key| match key {
                b"tokens" | b"content" if scanner.peek() == Some(b'[') => {
                    let content = &mut self.content;
                    scanner.array(&mut |scanner| {
                        *content = true;
                        scanner.skip()
                    })
                }
                _ => scanner.skip(),
            }),
            _ => scanner.skip(),
        }
    }

    fn in_delta(&mut self, scanner: &mut Scanner<'_>, key: &[u8]) -> Walk {
        match key {
            b"content" => self.generated(scanner, true),
            b"reasoning" | b"reasoning_content" | b"refusal" => self.generated(scanner, false),
            b"role" => {
                self.role |= matches!(scanner.raw()?, [b'"', _, .., b'"']);
                Ok(())
            }
            b"tool_calls" if scanner.peek() == Some(b'[') => {
                let content = &mut self.content;
                scanner.array(&mut |scanner| {
                    *content = true;
                    scanner.skip()
                })
            }
            b"function_call" => {
                self.content |= !scanner.null_or_skip()?;
                Ok(())
            }
            _ => scanner.skip(),
        }
    }

    fn generated(&mut self, scanner: &mut Scanner<'_>, empty_counts: bool) -> Walk {
        if scanner.peek() == Some(b'[') {
            return self.parts(scanner, PART_DEPTH);
        }
        let value = scanner.raw()?;
        if value == b"\"\"" {
            self.empty_content |= empty_counts;
        } else if value.first() == Some(&b'"') {
            self.content = true;
        }
        Ok(())
    }
}

/// Lists of parts within parts that are looked into: Magistral's `content` holds parts whose `thinking` is a list.
pub(crate) const PART_DEPTH: u32 = 3;

/// Keys of a part that hold what was generated.
pub(crate) const PART_TEXTS: [&str; 3] = ["text", "thinking", "content"];

impl Facts {
    /// A list of parts, each a text or an object with one. An empty text in it shows no token.
    fn parts(&mut self, scanner: &mut Scanner<'_>, depth: u32) -> Walk {
        if depth == 0 {
            return scanner.skip();
        }
        scanner.array(&mut |scanner| match scanner.peek() {
            Some(b'{') => scanner.object(&mut |scanner, key| match std::str::from_utf8(key) {
                Ok(key) if PART_TEXTS.contains(&key) => self.part(scanner, depth),
                _ => scanner.skip(),
            }),
            _ => self.part(scanner, depth),
        })
    }

    fn part(&mut self, scanner: &mut Scanner<'_>, depth: u32) -> Walk {
        if scanner.peek() == Some(b'[') {
            return self.parts(scanner, depth - 1);
        }
        let value = scanner.raw()?;
        self.content |= value.first() == Some(&b'"') && value.len() > 2;
        Ok(())
    }
}

fn usage_field(usage: &mut Usage, scanner: &mut Scanner<'_>, key: &[u8]) -> Walk {
    match key {
        b"prompt_tokens" => usage.prompt_tokens = scanner.count()?,
        b"completion_tokens" => usage.completion_tokens = scanner.count()?,
        b"total_tokens" => usage.total_tokens = scanner.count()?,
        b"prompt_tokens_details" if scanner.peek() == Some(b'{') => {
            return scanner.object(&mut |scanner, key| match key {
                b"cached_tokens" => {
                    usage.cached_tokens = scanner.count()?;
                    Ok(())
                }
                _ => scanner.skip(),
            });
        }
        b"completion_tokens_details" if scanner.peek() == Some(b'{') => {
            return scanner.object(&mut |scanner, key| match key {
                b"reasoning_tokens" => {
                    usage.reasoning_tokens = scanner.count()?;
                    Ok(())
                }
                _ => scanner.skip(),
            });
        }
        _ => return scanner.skip(),
    }
    Ok(())
}

/// The bytes are no JSON, as far as the scanner looks.
#[derive(Debug)]
struct Malformed;

type Walk = Result<(), Malformed>;

/// A reader of JSON structure that decodes nothing.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        self.blank();
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Walk {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    /// Whether `byte` comes next; if so, it is taken.
    fn take(&mut self, byte: u8) -> bool {
        self.expect(byte).is_ok()
    }

    /// The bytes between the quotes, as they are written.
    fn string(&mut self) -> Result<&'a [u8], Malformed> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            let found = memchr2(b'"', b'\\', &self.bytes[self.at..]).ok_or(Malformed)?;
            self.at += found;
            if self.bytes[self.at] == b'"' {
                self.at += 1;
                return Ok(&self.bytes[start..self.at - 1]);
            }
            self.at += 2;
            if self.at > self.bytes.len() {
                return Err(Malformed);
            }
        }
    }

    /// Calls `field` for each key, standing on its value, which `field` must take.
    fn object(&mut self, field: &mut dyn FnMut(&mut Self, &[u8]) -> Walk) -> Walk {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.blank();
            let key = self.string()?;
            self.expect(b':')?;
            if memchr(b'\\', key).is_none() {
                field(self, key)?;
            } else {
                // An escaped key: no server writes one of the keys that matter so, and the parser decides.
                let plain: Option<String> = serde_json::from_slice(&self.bytes[self.at_key(key)]).ok();
                field(self, plain.as_deref().unwrap_or_default().as_bytes())?;
            }
            if self.take(b'}') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// Where `key`, quotes included, lies.
    fn at_key(&self, key: &[u8]) -> std::ops::Range<usize> {
        let start = key.as_ptr() as usize - self.bytes.as_ptr() as usize;
        start - 1..start + key.len() + 1
    }

    /// Calls `element` for each element, which `element` must take.
    fn array(&mut self, element: &mut dyn FnMut(&mut Self) -> Walk) -> Walk {
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.blank();
            element(self)?;
            if self.take(b']') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// Passes over one value, however deep, without recursion.
    fn skip(&mut self) -> Walk {
        let mut depth = 0_usize;
        loop {
            match self.peek().ok_or(Malformed)? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' | b',' | b':' if depth > 0 => {
                    let byte = self.bytes[self.at];
                    self.at += 1;
                    if byte == b',' || byte == b':' {
                        continue;
                    }
                    depth -= 1;
                }
                _ => self.scalar()?,
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// A number or a word.
    fn scalar(&mut self) -> Walk {
        let start = self.at;
        while let Some(b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.') = self.bytes.get(self.at)
        {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(Malformed) }
    }

    /// The bytes of one value as they are written.
    fn raw(&mut self) -> Result<&'a [u8], Malformed> {
        self.blank();
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }

    /// Passes over a value and says whether it was `null`.
    fn null_or_skip(&mut self) -> Result<bool, Malformed> {
        Ok(self.raw()? == b"null")
    }

    /// A count; absent where the value is none that fits.
    fn count(&mut self) -> Result<Option<u32>, Malformed> {
        Ok(std::str::from_utf8(self.raw()?).ok().and_then(|digits| digits.parse().ok()))
    }
}
