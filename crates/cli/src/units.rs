//! Numbers as people write them: `6k` tokens, `90s`, `6.41GiB`.
//!
//! Every parser returns a message that says what was read and what would have been right; clap adds the flag.

use precipice_workload::{ParseError, Seconds, Tokens};
use std::time::Duration;

/// Tokens: `6144`, `6k` (6 x 1024).
pub(crate) fn tokens(text: &str) -> Result<u32, String> {
    text.parse::<Tokens>().map(Tokens::get).map_err(|error| error.problem)
}

/// A count of at least 1.
pub(crate) fn count(text: &str) -> Result<u32, String> {
    match text.trim().parse::<i64>() {
        Ok(value) if value >= 1 => {
            u32::try_from(value).map_err(|_| format!("'{text}' is more than 4,294,967,295"))
        }
        _ => Err(format!("'{text}' is not a count: expected a whole number of at least 1")),
    }
}

/// A number of KV blocks. Each has a row in memory: 67 million are a pool of a billion tokens.
pub(crate) fn blocks(text: &str) -> Result<u32, String> {
    const MOST: u32 = 1 << 26;
    count(text).and_then(|blocks| {
        if blocks <= MOST { Ok(blocks) } else { Err(format!("'{text}' is more than {MOST}")) }
    })
}

/// Tokens of a KV block.
pub(crate) fn block_size(text: &str) -> Result<u32, String> {
    const MOST: u32 = 1 << 16;
    count(text).and_then(|tokens| {
        if tokens <= MOST { Ok(tokens) } else { Err(format!("'{text}' is more than {MOST}")) }
    })
}

/// A time above 0: `90s`, `250ms`, `5m`, `1m30s`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let seconds: Seconds = text.parse().map_err(|error: ParseError| error.problem)?;
    Duration::try_from_secs_f64(seconds.get()).map_err(|_| "longer than a time can be".to_owned())
}

/// Bytes: `6884950016`, `6.41GiB`, `24GB`, `512MiB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024f64.powi(2),
        "g" | "gib" => 1024f64.powi(3),
        "t" | "tib" => 1024f64.powi(4),
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        _ => return Err(format!("'{text}' is not a size: write 6.41GiB, 24GB or a number of bytes")),
    };
    let value: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| format!("'{text}' is not a size: write 6.41GiB, 24GB or a number of bytes"))?;
    let value = (value * scale).round();
    if value < 1.0 || value > u64::MAX as f64 {
        return Err(format!("'{text}' is not a size: expected at least one byte"));
    }
    Ok(value as u64)
}

/// A finite number above 0.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err(format!("'{text}' is not a number above 0")),
    }
}

/// A share between 0 and 1.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err(format!("'{text}' is not a share between 0 and 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_tokens_say_what_is_due() {
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert!(time("0").is_err());
        assert_eq!(tokens("6k"), Ok(6144));
        assert!(tokens("0").is_err());
        assert!(count("-3").unwrap_err().contains("at least 1"));
    }

    #[test]
    fn sizes_tell_binary_from_decimal() {
        assert_eq!(bytes("24GB"), Ok(24_000_000_000));
        assert_eq!(bytes("4GiB"), Ok(4_294_967_296));
        assert_eq!(bytes("6884950016"), Ok(6_884_950_016));
        assert!(bytes("6.41 elephants").is_err());
    }
}
