//! Synthetic prompts as words, for servers that take text alone.

use crate::prompt::{Prompt, TokenRun};
use crate::token_id;
use std::sync::OnceLock;

/// Short English words, each one token (with the blank before it) in the vocabularies of today's models. A power
/// of two, so that each carries ten bits: prompts differ within their first words.
const WORDS: usize = 1024;

fn words() -> &'static [&'static str] {
    static LIST: OnceLock<Vec<&'static str>> = OnceLock::new();
    LIST.get_or_init(|| include_str!("words.txt").split_whitespace().collect())
}

/// The word that stands for a number: the list has 1024, and numbers go round.
pub fn word(number: u32) -> &'static str {
    words()[number as usize % WORDS]
}

/// How a server's tokenizer counts our words: tokens = overhead + words · `tokens_per_word`.
///
/// The default, one token a word, is right for most vocabularies of 100,000 and more; what a chat template or a
/// begin-of-text token adds is the overhead. Both are read off a few requests by [`WordFit::from_counts`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WordFit {
    /// Tokens of one word, at least 1.
    pub tokens_per_word: f64,
    /// Tokens of a prompt without words.
    pub overhead: f64,
}

impl Default for WordFit {
    fn default() -> Self {
        Self { tokens_per_word: 1.0, overhead: 0.0 }
    }
}

impl WordFit {
    /// The least-squares line through (words sent, tokens in the server's `usage`). `None` with fewer than two
    /// different numbers of words, or where the counts do not grow with the words.
    pub fn from_counts(counts: &[(u32, u32)]) -> Option<Self> {
        let n = counts.len() as f64;
        let mean_words = counts.iter().map(|(words, _)| f64::from(*words)).sum::<f64>() / n;
        let mean_tokens = counts.iter().map(|(_, tokens)| f64::from(*tokens)).sum::<f64>() / n;
        let (mut covariance, mut variance) = (0.0, 0.0);
        for (words, tokens) in counts {
            let distance = f64::from(*words) - mean_words;
            covariance += distance * (f64::from(*tokens) - mean_tokens);
            variance += distance * distance;
        }
        let slope = covariance / variance;
        // A word is at least a token; below lies noise of very short probes.
        (slope > 0.0 && slope.is_finite()).then(|| {
            let tokens_per_word = slope.max(1.0);
            Self { tokens_per_word, overhead: (mean_tokens - tokens_per_word * mean_words).max(0.0) }
        })
    }

    /// How many words make a prompt of so many tokens: at least one.
    pub fn words(&self, tokens: u32) -> u32 {
        ((f64::from(tokens) - self.overhead) / self.tokens_per_word.max(1.0)).round().max(1.0) as u32
    }

    /// A synthetic prompt as text. Prompts that share a beginning of tokens share the words that stand for it.
    /// `None` for prompts that are not synthetic.
    pub fn text(&self, prompt: &Prompt) -> Option<String> {
        let Prompt::Tokens(runs) = prompt else { return None };
        let words_left = self.words(prompt.tokens()?);
        let mut text = String::with_capacity(words_left as usize * 7);
        let mut places = Places { runs, before: 0 };
        for word in 0..words_left {
            // Word k stands for the token at place k · tokens_per_word; overhead is charged to the end.
            let place = (f64::from(word) * self.tokens_per_word.max(1.0)) as u64;
            let Some((stream, start)) = places.at(place) else { break };
            if word > 0 {
                text.push(' ');
            }
            text.push_str(words()[token_id(stream, start, 0..WORDS as u32) as usize]);
        }
        Some(text)
    }
}

/// Finds the run that covers a place, for places that only grow.
struct Places<'a> {
    runs: &'a [TokenRun],
    /// Tokens of the runs already passed.
    before: u64,
}

impl Places<'_> {
    fn at(&mut self, place: u64) -> Option<(u64, u32)> {
        while let Some((run, rest)) = self.runs.split_first() {
            let inside = place - self.before;
            if inside < u64::from(run.len) {
                return Some((run.stream, run.start.wrapping_add(inside as u32)));
            }
            self.before += u64::from(run.len);
            self.runs = rest;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{WORDS, WordFit, words};
    use crate::{Prompt, TokenRun};

    #[test]
    fn the_list_is_sorted_without_repeats_and_plain() {
        assert_eq!(words().len(), WORDS);
        assert!(words().is_sorted() && words().windows(2).all(|pair| pair[0] != pair[1]));
        assert!(words().iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
    }

    #[test]
    fn a_fit_finds_the_line_and_refuses_what_is_none() {
        let fit = WordFit::from_counts(&[(10, 36), (100, 153), (1000, 1323)]).unwrap();
        assert!((fit.tokens_per_word - 1.3).abs() < 1e-9 && (fit.overhead - 23.0).abs() < 1e-9);
        assert_eq!(fit.words(1323), 1000);
        for counts in [&[][..], &[(10, 12)], &[(10, 12), (10, 13)], &[(10, 12), (20, 12)]] {
            assert_eq!(WordFit::from_counts(counts), None);
        }
    }

    #[test]
    fn shared_tokens_are_shared_words() {
        let prefix = TokenRun { stream: 7, start: 0, len: 100 };
        let prompt = |own| Prompt::Tokens(vec![prefix, TokenRun { stream: own, start: 0, len: 100 }]);
        let fit = WordFit { tokens_per_word: 1.25, overhead: 10.0 };
        let (a, b) = (fit.text(&prompt(1)).unwrap(), fit.text(&prompt(2)).unwrap());
        assert_eq!(a.split(' ').count(), 152);
        let common = a.split(' ').zip(b.split(' ')).take_while(|(a, b)| a == b).count();
        assert!((80..=82).contains(&common), "{common} words in common");
    }
}
