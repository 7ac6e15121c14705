//! Token counts and durations as people write them.

use crate::ParseError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest prompt or output that a plan may ask for: 16 Mi tokens, far past any model, so that sums stay in range.
pub const MAX_TOKENS: u32 = 1 << 24;

/// A number of tokens: `6144`, or `6k` for 6 · 1024 (context lengths are powers of two in this field), or `1m`
/// for 1024 · 1024. At least 1, at most [`MAX_TOKENS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Tokens(u32);

impl Tokens {
    /// Checks the bounds.
    pub fn new(count: u32) -> Result<Self, ParseError> {
        Self::try_from(count)
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for Tokens {
    type Error = ParseError;
    fn try_from(count: u32) -> Result<Self, ParseError> {
        if (1..=MAX_TOKENS).contains(&count) {
            Ok(Self(count))
        } else {
            Err(ParseError::new(&count.to_string(), format!("a number of tokens is 1 to {MAX_TOKENS}")))
        }
    }
}

impl From<Tokens> for u32 {
    fn from(tokens: Tokens) -> Self {
        tokens.0
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Tokens {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |why: &str| {
            ParseError::new(text, format!("{why}; write a token count as 6144 or 6k (= 6 · 1024)"))
        };
        let trimmed = text.trim();
        let (digits, unit) = match trimmed.char_indices().next_back() {
            Some((at, 'k' | 'K')) => (&trimmed[..at], 1024.0),
            Some((at, 'm' | 'M')) => (&trimmed[..at], 1024.0 * 1024.0),
            _ => (trimmed, 1.0),
        };
        if digits.is_empty()
            || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'_')
        {
            return Err(bad("not a number of tokens"));
        }
        let count = digits.replace('_', "").parse::<f64>().map_err(|_| bad("not a number of tokens"))? * unit;
        if count.fract() != 0.0 {
            return Err(bad("not a whole number of tokens"));
        }
        if !(1.0..=f64::from(MAX_TOKENS)).contains(&count) {
            return Err(bad(&format!("a number of tokens is 1 to {MAX_TOKENS}")));
        }
        Ok(Self(count as u32))
    }
}

/// A positive length of time in seconds: `90s`, `500ms`, `2m`, `1h`, `1m30s`, or a bare number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Seconds(f64);

impl Seconds {
    /// The number of seconds.
    pub fn get(self) -> f64 {
        self.0
    }

    /// In nanoseconds.
    pub fn nanos(self) -> u64 {
        (self.0 * 1e9).round() as u64
    }
}

impl TryFrom<f64> for Seconds {
    type Error = ParseError;
    fn try_from(seconds: f64) -> Result<Self, ParseError> {
        if seconds > 0.0 && seconds.is_finite() {
            Ok(Self(seconds))
        } else {
            Err(ParseError::new(&seconds.to_string(), "a duration is a positive number of seconds"))
        }
    }
}

impl From<Seconds> for f64 {
    fn from(seconds: Seconds) -> Self {
        seconds.0
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0)
    }
}

impl FromStr for Seconds {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new(text, "not a duration; write 90s, 500ms, 2m, 1h or 1m30s");
        let mut rest = text.trim();
        let mut total = 0.0;
        if rest.is_empty() {
            return Err(bad());
        }
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let number: f64 = rest[..end].parse().map_err(|_| bad())?;
            rest = &rest[end..];
            let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            total += number
                * match &rest[..end] {
                    "" | "s" => 1.0,
                    "ms" => 1e-3,
                    "m" | "min" => 60.0,
                    "h" => 3600.0,
                    _ => return Err(bad()),
                };
            rest = &rest[end..];
        }
        Self::try_from(total).map_err(|_| bad())
    }
}

#[cfg(test)]
mod tests {
    use super::{Seconds, Tokens};

    #[test]
    fn tokens_as_people_write_them() {
        for (text, count) in
            [("6144", 6144), ("6k", 6144), ("1.5K", 1536), (" 1 ", 1), ("1m", 1_048_576), ("6_144", 6144)]
        {
            assert_eq!(text.parse::<Tokens>().unwrap().get(), count, "{text}");
        }
        for text in
            ["", "k", "0", "-5", "6q", "1.3", "1e3", "nan", "inf", "17m", "6 k", "0x10", "1..5k", "六"]
        {
            let error = text.parse::<Tokens>().unwrap_err().to_string();
            assert!(error.contains("6144 or 6k"), "{text}: {error}");
        }
    }

    #[test]
    fn durations_as_people_write_them() {
        for (text, seconds) in
            [("90s", 90.0), ("500ms", 0.5), ("2m", 120.0), ("1h", 3600.0), ("1m30s", 90.0), ("1.5", 1.5)]
        {
            assert_eq!(text.parse::<Seconds>().unwrap().get(), seconds, "{text}");
        }
        for text in ["", "s", "0", "-1s", "1d", "5 s", "1m30x", "inf", "nan", ".", "1.2.3s"] {
            assert!(text.parse::<Seconds>().is_err(), "{text}");
        }
    }
}
