//! Text to token ids and back, without anybody's vocabulary.
//!
//! What counts is that lengths are sane and that equal texts are equal ids (the prefix cache sees them). A token is
//! one blank, if there is one, and a run of up to 16 letters, or of up to three digits, or one other character;
//! further blanks are one token a run. So a text of `precipice run` has one token a word, English about one a word
//! and a mark, Chinese one a character.
//!
//! The words of [`precipice_workload::word`] have the ids 1000 to 2023, `w123` the id 123, and both come back from
//! their ids; any other piece of text has an id that only its content decides, and comes back as that id's word.

use precipice_workload::word;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Letters of a token at most.
const LETTERS: usize = 16;
/// Digits of a token at most.
const DIGITS: usize = 3;
/// Ids of the known words.
const FIRST_WORD: u32 = 1000;
const WORDS: u32 = 1024;
/// Ids of a chat template.
const START_OF_TURN: u32 = 1;
const END_OF_TURN: u32 = 2;

/// A vocabulary.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    size: u32,
    known: HashMap<&'static str, u32>,
}

impl Tokenizer {
    /// Of a vocabulary with so many ids.
    pub fn new(size: u32) -> Self {
        let words = (0..WORDS).map(|number| (word(number), FIRST_WORD + number));
        Self { size: size.max(1), known: words.filter(|(_, id)| *id < size).collect() }
    }

    /// Ids below this one exist.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The ids of a text.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 5 + 1);
        let mut rest = text;
        while let Some(length) = first_piece(rest) {
            let (piece, after) = rest.split_at(length);
            ids.push(self.id(piece));
            rest = after;
        }
        ids
    }

    /// The ids of a chat: for each message the start, the role, the content and the end, as ChatML has them, and
    /// the beginning of the answer.
    pub fn encode_chat(&self, messages: &[(String, String)]) -> Vec<u32> {
        let newline = self.id("\n");
        let mut ids = Vec::new();
        for (role, content) in messages {
            ids.extend([START_OF_TURN, self.id(role), newline]);
            ids.extend(self.encode(content));
            ids.extend([END_OF_TURN, newline]);
        }
        ids.extend([START_OF_TURN, self.id("assistant"), newline]);
        ids
    }

    /// The text of an id is appended to `text`.
    pub fn decode_into(&self, id: u32, text: &mut String) {
        text.push(' ');
        if (FIRST_WORD..FIRST_WORD + WORDS).contains(&id) {
            text.push_str(word(id - FIRST_WORD));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(text, "w{id}");
        }
    }

    /// The text of ids.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut text = String::with_capacity(ids.len() * 8);
        for id in ids {
            self.decode_into(*id, &mut text);
        }
        text
    }

    /// The id of the output token at a place of a stream: one of the known words, if the vocabulary has them.
    pub fn output(&self, stream: u64, place: u32) -> u32 {
        let range =
            if self.size >= FIRST_WORD + WORDS { FIRST_WORD..FIRST_WORD + WORDS } else { 0..self.size };
        precipice_workload::token_id(stream, place, range)
    }

    fn id(&self, piece: &str) -> u32 {
        let core = piece.strip_prefix(' ').unwrap_or(piece);
        if let Some(id) = self.known.get(core) {
            return *id;
        }
        let numbered = core.strip_prefix('w').and_then(|digits| digits.parse::<u32>().ok());
        if let Some(id) = numbered.filter(|id| *id < self.size) {
            return id;
        }
        // FNV-1a over the bytes picks a stream, whose first token is uniform over the rest of the vocabulary.
        let hash = piece.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let first = if self.size > FIRST_WORD + WORDS { FIRST_WORD + WORDS } else { 0 };
        precipice_workload::token_id(hash, 0, first..self.size)
    }
}

/// Length in bytes of the first token of a text; `None` for no text.
fn first_piece(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    let blank = usize::from(first == ' ');
    let rest = &text[blank..];
    let Some(first) = rest.chars().next() else { return Some(blank) };
    if first.is_whitespace() {
        let run = text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len());
        // The last blank of a run belongs to the word after it.
        return Some(if run < text.len() && run > 1 && text[..run].ends_with(' ') { run - 1 } else { run });
    }
    if let Some(digits) = rest.strip_prefix('w')
        && digits.starts_with(|c: char| c.is_ascii_digit())
    {
        let run = digits.bytes().take_while(u8::is_ascii_digit).count();
        return Some(blank + 1 + run.min(10));
    }
    let run = |limit: usize, belongs: fn(char) -> bool| -> usize {
        rest.chars().take(limit).take_while(|c| belongs(*c)).map(char::len_utf8).sum()
    };
    let length = if first.is_ascii_digit() {
        run(DIGITS, |c| c.is_ascii_digit())
    } else if spelled(first) {
        run(LETTERS, spelled)
    } else {
        first.len_utf8()
    };
    Some(blank + length)
}

/// A letter of a script that is written with blanks between words (U+2E80 and above is East Asian, by and large).
fn spelled(c: char) -> bool {
    c.is_alphabetic() && (c as u32) < 0x2e80
}

#[cfg(test)]
mod tests {
    use super::*;
    use precipice_workload::{Prompt, TokenRun, WordFit};

    fn count(text: &str) -> usize {
        Tokenizer::new(32_000).encode(text).len()
    }

    #[test]
    fn a_word_is_a_token() {
        let prompt = Prompt::Tokens(vec![TokenRun { stream: 5, start: 0, len: 6144 }]);
        assert_eq!(count(&WordFit::default().text(&prompt).unwrap()), 6144);
        assert_eq!(count("Hello, world!"), 4);
        assert_eq!(count("x  y\n\nz 12345"), 7);
        assert_eq!(count("过载测试"), 4);
        assert_eq!(count(""), 0);
        assert_eq!(count(&"a".repeat(40)), 3);
        assert_eq!(count("   "), 1);
    }

    #[test]
    fn what_was_generated_comes_back() {
        for size in [512, 2048, 32_000] {
            let tokenizer = Tokenizer::new(size);
            let ids: Vec<u32> = (0..300).map(|place| tokenizer.output(9, place)).collect();
            assert!(ids.iter().all(|id| *id < size));
            assert_eq!(tokenizer.encode(&tokenizer.decode(&ids)), ids, "{size}");
        }
    }

    #[test]
    fn every_id_exists_and_equal_texts_are_equal_ids() {
        let tokenizer = Tokenizer::new(1024);
        let ids = tokenizer.encode("unusual w99999 wörter, and 7 more\tof ém");
        assert!(ids.iter().all(|id| *id < 1024), "{ids:?}");
        assert_eq!(ids, tokenizer.encode("unusual w99999 wörter, and 7 more\tof ém"));
    }

    #[test]
    fn a_chat_costs_five_a_message_and_three() {
        let tokenizer = Tokenizer::new(32_000);
        let message = |text: &str| ("user".to_owned(), text.to_owned());
        assert_eq!(tokenizer.encode_chat(&[message("about"), message("able about")]).len(), 6 + 7 + 3);
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_an_end(text in "\\PC{0,200}|[ \\n\\tw0-9a]{0,80}") {
            let tokens = count(&text);
            proptest::prop_assert!(tokens <= text.chars().count());
            proptest::prop_assert_eq!(tokens == 0, text.is_empty());
        }
    }
}
