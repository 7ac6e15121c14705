//! The JSON that `vllm bench serve --save-result` writes, detailed or not.
//!
//! One object a file, or with `--append-result` one object a line. Python writes it: bare `NaN` and `Infinity`
//! are taken, and the string `"inf"` that the tool uses for an unlimited rate.

use crate::python_json;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use thiserror::Error;

/// The result of one run. Arrays are in the order of submission, failures included; they are empty unless the run
/// was saved with `--save-detailed`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VllmBench {
    /// Local time of the end, `YYYYMMDD-HHMMSS`.
    pub date: Option<String>,
    /// `openai`, `vllm`, ...
    pub endpoint_type: Option<String>,
    /// The same in newer versions.
    pub backend: Option<String>,
    /// `--label`.
    pub label: Option<String>,
    /// Model.
    pub model_id: Option<String>,
    /// Tokenizer of the client.
    pub tokenizer_id: Option<String>,
    /// Planned requests.
    pub num_prompts: Option<u64>,
    /// Requests a second; infinite where all were sent at once.
    #[serde(deserialize_with = "number")]
    pub request_rate: Option<f64>,
    /// Shape of the gamma-distributed gaps; 1 is Poisson.
    #[serde(deserialize_with = "number")]
    pub burstiness: Option<f64>,
    /// Cap of requests in flight.
    #[serde(deserialize_with = "number")]
    pub max_concurrency: Option<f64>,
    /// Wall clock of the run in seconds.
    #[serde(deserialize_with = "number")]
    pub duration: Option<f64>,
    /// Requests that succeeded.
    pub completed: Option<u64>,
    /// Requests that failed; older versions do not say.
    pub failed: Option<u64>,
    /// Prompt tokens of the successes.
    #[serde(deserialize_with = "number")]
    pub total_input_tokens: Option<f64>,
    /// Output tokens of the successes.
    #[serde(deserialize_with = "number")]
    pub total_output_tokens: Option<f64>,
    /// Prompt tokens.
    #[serde(deserialize_with = "numbers")]
    pub input_lens: Vec<f64>,
    /// Output tokens; 0 for a failure.
    #[serde(deserialize_with = "numbers")]
    pub output_lens: Vec<f64>,
    /// Time to first token in seconds; 0 for a failure.
    #[serde(deserialize_with = "numbers")]
    pub ttfts: Vec<f64>,
    /// Gaps between chunks in seconds.
    #[serde(deserialize_with = "lists")]
    pub itls: Vec<Vec<f64>>,
    /// When each was sent, in seconds of an arbitrary epoch (`perf_counter`). Older versions do not say.
    #[serde(deserialize_with = "numbers")]
    pub start_times: Vec<f64>,
    /// End-to-end latency in seconds (newer versions).
    #[serde(deserialize_with = "numbers")]
    pub latencies: Vec<f64>,
    /// Time in the client's own queue in seconds (newer versions).
    #[serde(deserialize_with = "numbers")]
    pub queue_times: Vec<f64>,
    /// What was generated.
    pub generated_texts: Vec<String>,
    /// Empty for a success.
    pub errors: Vec<String>,
    /// Everything else: statistics, `--metadata`, fields of other versions. An infinite number is the string `inf`
    /// or `-inf`, NaN is null.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Why a result cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BenchError {
    /// Nothing in it.
    #[error("the bench file is empty")]
    Empty,
    /// It ends in the middle.
    #[error("the bench file is cut short: it ends at byte {byte} (line {line}) in the middle of a result")]
    CutShort {
        /// Where it ends.
        byte: usize,
        /// Counted from 1.
        line: usize,
    },
    /// It is no JSON, or a field has the wrong kind.
    #[error("the bench file is not a result of `vllm bench serve`: line {line}, column {column}: {reason}")]
    Malformed {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// Valid JSON without what every result has.
    #[error(
        "result {result} of the bench file has neither `duration` nor `completed`: not written by `vllm bench serve`?"
    )]
    NotABench {
        /// Counted from 1.
        result: usize,
    },
    /// Arrays that should be aligned are not.
    #[error(
        "result {result} of the bench file: `{field}` has {entries} entries, but `{other}` has {expected}"
    )]
    Unaligned {
        /// Counted from 1.
        result: usize,
        /// The array.
        field: &'static str,
        /// Its entries.
        entries: usize,
        /// The array that it is compared with.
        other: &'static str,
        /// The entries of that.
        expected: usize,
    },
}

impl VllmBench {
    /// Requests in the arrays; 0 without details.
    pub fn detailed(&self) -> usize {
        self.arrays().into_iter().map(|(_, entries)| entries).max().unwrap_or(0)
    }

    fn arrays(&self) -> [(&'static str, usize); 9] {
        [
            ("input_lens", self.input_lens.len()),
            ("output_lens", self.output_lens.len()),
            ("ttfts", self.ttfts.len()),
            ("itls", self.itls.len()),
            ("start_times", self.start_times.len()),
            ("latencies", self.latencies.len()),
            ("queue_times", self.queue_times.len()),
            ("generated_texts", self.generated_texts.len()),
            ("errors", self.errors.len()),
        ]
    }

    fn check(&self, result: usize) -> Result<(), BenchError> {
        if self.duration.is_none() && self.completed.is_none() {
            return Err(BenchError::NotABench { result });
        }
        let arrays = self.arrays();
        let filled = |(_, entries): &&(&str, usize)| *entries > 0;
        let Some(&(other, expected)) = arrays.iter().find(filled) else { return Ok(()) };
        match arrays.iter().filter(filled).find(|(_, entries)| *entries != expected) {
            Some(&(field, entries)) => Err(BenchError::Unaligned { result, field, entries, other, expected }),
            None => Ok(()),
        }
    }
}

/// Reads all results of a file.
///
/// # Errors
/// [`BenchError`], with the place in the file.
pub fn parse(file: &[u8]) -> Result<Vec<VllmBench>, BenchError> {
    let json = python_json::plain(file);
    let mut results = Vec::new();
    for result in serde_json::Deserializer::from_slice(&json).into_iter::<VllmBench>() {
        let result = result.map_err(|error| refuse(&error, file))?;
        result.check(results.len() + 1)?;
        results.push(result);
    }
    if results.is_empty() { Err(BenchError::Empty) } else { Ok(results) }
}

fn refuse(error: &serde_json::Error, file: &[u8]) -> BenchError {
    // A bare word that was cut is no end of file to the parser.
    let cut_word = ["NaN", "Infinity"]
        .iter()
        .any(|word| (1..word.len()).any(|end| file.ends_with(&word.as_bytes()[..end])));
    if error.is_eof() || cut_word {
        let line = 1 + memchr::memchr_iter(b'\n', file.trim_ascii_end()).count();
        return BenchError::CutShort { byte: file.len(), line };
    }
    let reason = error.to_string();
    let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason).to_owned();
    BenchError::Malformed { line: error.line(), column: error.column(), reason }
}

/// A number, or one of the strings for what JSON cannot write.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(f64),
    Word(String),
}

impl Number {
    fn value(self) -> Option<f64> {
        match self {
            Self::Plain(value) => Some(value),
            Self::Word(word) => word.parse().ok().filter(|value: &f64| !value.is_nan()),
        }
    }
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::<Number>::deserialize(from)?.and_then(Number::value))
}

/// Numbers of an array; NaN where the file has none.
fn numbers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let list = Option::<Vec<Option<f64>>>::deserialize(from)?.unwrap_or_default();
    Ok(list.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
}

fn lists<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<f64>>, D::Error> {
    let lists = Option::<Vec<Option<Vec<Option<f64>>>>>::deserialize(from)?.unwrap_or_default();
    let plain = |list: Vec<Option<f64>>| list.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
    Ok(lists.into_iter().map(|list| list.map(plain).unwrap_or_default()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DETAILED: &str = r#"{"date":"20260102-030405","backend":"openai-chat","num_prompts":2,"request_rate":"inf",
        "burstiness":1.0,"max_concurrency":null,"duration":1.5,"completed":1,"failed":1,"mean_ttft_ms":NaN,
        "p99_itl_ms":Infinity,"note":"NaN and Infinity are words","input_lens":[16,16],"output_lens":[3,0],
        "ttfts":[0.12,0.0],"itls":[[0.02,0.03],[]],"start_times":[1000.0,1000.3],"errors":["","Service Unavailable"]}"#;

    #[test]
    fn details_and_unknown_keys_are_kept() {
        let bench = parse(DETAILED.as_bytes()).unwrap().pop().unwrap();
        assert_eq!(bench.request_rate, Some(f64::INFINITY));
        assert_eq!(bench.max_concurrency, None);
        assert_eq!(bench.detailed(), 2);
        assert_eq!(bench.itls, [vec![0.02, 0.03], vec![]]);
        assert_eq!(bench.other["mean_ttft_ms"], Value::Null);
        assert_eq!(bench.other["p99_itl_ms"], "inf");
        assert_eq!(bench.other["note"], "NaN and Infinity are words");
    }

    #[test]
    fn one_result_a_line() {
        let line = DETAILED.replace('\n', "");
        assert_eq!(parse(format!("{line}\n{line}\n").as_bytes()).unwrap().len(), 2);
    }

    #[test]
    fn a_file_cut_short_says_where() {
        for cut in 1..DETAILED.len() {
            let error = parse(&DETAILED.as_bytes()[..cut]).unwrap_err();
            assert!(matches!(error, BenchError::CutShort { byte, .. } if byte == cut), "{cut}: {error}");
        }
        assert_eq!(parse(b" \n"), Err(BenchError::Empty));
    }

    #[test]
    fn what_is_no_result_is_said() {
        let told = |file: &str| parse(file.as_bytes()).unwrap_err().to_string();
        assert!(told("{}").contains("neither"));
        assert!(told("[1]").contains("line 1, column"));
        assert!(told("{\"duration\": 1,\n\"ttfts\": 3}").contains("line 2"));
        assert!(told("date,ttft").contains("line 1"));
        let unaligned = DETAILED.replace("[0.12,0.0]", "[0.12]");
        assert!(told(&unaligned).contains("`ttfts` has 1 entries, but `input_lens` has 2"));
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "([\\[\\]{},:\"\\\\]|NaN|-|Infinity|1|inf|duration|\n){0,24}") {
            let _parsed = parse(text.as_bytes());
        }
    }
}
