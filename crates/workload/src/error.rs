//! What can be wrong with a workload, in words that a user can act on.

use thiserror::Error;

/// A value that is not what its flag takes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}`: {problem}")]
pub struct ParseError {
    /// What was given.
    pub text: String,
    /// What is wrong, and how to write it.
    pub problem: String,
}

impl ParseError {
    pub(crate) fn new(text: &str, problem: impl Into<String>) -> Self {
        Self { text: text.to_owned(), problem: problem.into() }
    }
}

/// Settings that cannot be a plan.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{flag}: {problem}")]
pub struct SpecError {
    /// The flag that mends it.
    pub flag: &'static str,
    /// What is wrong and what to do.
    pub problem: String,
}

impl SpecError {
    pub(crate) fn new(flag: &'static str, problem: impl Into<String>) -> Self {
        Self { flag, problem: problem.into() }
    }
}

/// A data file that cannot be read.
#[derive(Debug, Error)]
pub enum DataError {
    /// The reader failed.
    #[error("line {line}: cannot be read: {source}")]
    Read {
        /// Counted from 1.
        line: usize,
        /// The system's words.
        source: std::io::Error,
    },
    /// A line that is not what the format asks for.
    #[error("line {line}: {problem}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// A field that is missing or not what the format asks for.
    #[error("line {line}, field `{field}`: {problem}")]
    Field {
        /// Counted from 1; in a file that is one JSON array, the number of the element.
        line: usize,
        /// Its name in the file.
        field: String,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// The file as a whole.
    #[error("{0}")]
    File(String),
}

impl DataError {
    pub(crate) fn line(line: usize, problem: impl Into<String>) -> Self {
        Self::Line { line, problem: problem.into() }
    }

    pub(crate) fn field(line: usize, field: &str, problem: impl Into<String>) -> Self {
        Self::Field { line, field: field.to_owned(), problem: problem.into() }
    }
}
