//! How a comparison came out.

use super::features::Release;
use serde::Serialize;
use std::fmt;

/// The cases of a trace file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// In the order of the file.
    pub cases: Vec<CaseReport>,
}

impl Report {
    /// No case differs, and none was refused.
    pub fn identical(&self) -> bool {
        !self.cases.iter().any(|case| matches!(case.verdict, Verdict::Differs(_) | Verdict::Refused(_)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, case) in self.cases.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{case}")?;
        }
        Ok(())
    }
}

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseReport {
    /// Its name in the trace.
    pub name: String,
    /// Whose decisions they are.
    pub release: Release,
    /// Steps with tokens that were compared.
    pub steps: u64,
    /// How it came out.
    pub verdict: Verdict,
}

impl fmt::Display for CaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, release, steps, .. } = self;
        match &self.verdict {
            Verdict::Identical => write!(f, "{name}: {steps} steps, identical ({release})"),
            Verdict::Skipped(why) => write!(f, "{name}: skipped: {why}"),
            Verdict::Refused(why) => write!(f, "{name}: refused: {why}"),
            Verdict::Differs(difference) => {
                write!(f, "{name}: differs after {steps} steps ({release}): {difference}")
            }
        }
    }
}

/// How a case came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every decision is the same.
    Identical,
    /// Not compared, and why.
    Skipped(&'static str),
    /// Not compared, because a feature in it is not known; which one.
    Refused(String),
    /// The first decision that is not the same.
    Differs(Box<Difference>),
}

/// A decision that is not the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Line of the file, from 1.
    pub line: usize,
    /// Where in the case: iteration or event.
    pub at: String,
    /// Which quantity, by its key in the trace.
    pub key: &'static str,
    /// The trace's side, as JSON.
    pub trace: String,
    /// The engine's side, as JSON.
    pub engine: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, {}, `{}`\n  trace:  {}\n  engine: {}",
            self.line, self.at, self.key, self.trace, self.engine
        )
    }
}

/// Bytes that are not a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Neither UTF-8 nor whole gzip.
    #[error("the trace cannot be read: {0}")]
    Unreadable(String),
    /// Nothing in it.
    #[error("the trace is empty: its first line must be a case")]
    Empty,
    /// A line that is not what it must be.
    #[error("line {number}: {what}")]
    Line {
        /// Line of the file, from 1.
        number: usize,
        /// What is wrong with it.
        what: String,
    },
}

/// Stops a comparison: at the first difference, at a feature that is not known, or because the trace makes no sense.
pub(super) enum Stop {
    Differs(Box<Difference>),
    Refused(String),
    Error(TraceError),
}

impl Stop {
    /// The verdict on a case that was stopped.
    pub(super) fn verdict(self) -> Result<Verdict, TraceError> {
        match self {
            Self::Differs(difference) => Ok(Verdict::Differs(difference)),
            Self::Refused(why) => Ok(Verdict::Refused(why)),
            Self::Error(error) => Err(error),
        }
    }
}

impl From<TraceError> for Stop {
    fn from(error: TraceError) -> Self {
        Self::Error(error)
    }
}

/// A place in a trace; compares what it says with what the engine did.
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) at: String,
}

impl Place {
    pub(super) fn same<T, E>(&self, key: &'static str, trace: &T, engine: &E) -> Result<(), Stop>
    where
        T: PartialEq<E> + Serialize + ?Sized,
        E: Serialize + ?Sized,
    {
        if trace == engine { Ok(()) } else { Err(self.differs(key, trace, engine)) }
    }

    pub(super) fn differs<T, E>(&self, key: &'static str, trace: &T, engine: &E) -> Stop
    where
        T: Serialize + ?Sized,
        E: Serialize + ?Sized,
    {
        Stop::Differs(Box::new(Difference {
            line: self.line,
            at: self.at.clone(),
            key,
            trace: serde_json::to_string(trace).unwrap_or_default(),
            engine: serde_json::to_string(engine).unwrap_or_default(),
        }))
    }

    pub(super) fn error(&self, what: String) -> Stop {
        Stop::Error(TraceError::Line { number: self.line, what })
    }
}
