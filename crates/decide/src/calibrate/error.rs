//! Why there is no profile.

use std::fmt::Write;

/// A constant that the data do not determine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unidentified {
    /// Name of its basis function.
    pub constant: &'static str,
    /// What the data lack.
    pub why: String,
    /// The load that would determine it.
    pub load: &'static str,
}

/// Why there is no profile.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CalibrateError {
    /// The run has no iteration log.
    #[error(
        "{run}: the run has no steps, and only an iteration log tells what a step consisted of: start the server with \
         --enable-logging-iteration-details and import its log with --iterations (and the scrapes with --metrics), or \
         calibrate from the client alone with --url"
    )]
    NoSteps {
        /// The run.
        run: String,
    },
    /// A fact of the server that the replay needs is not in the run.
    #[error("{run}: the run does not say {fact}: {remedy}")]
    MissingFact {
        /// The run.
        run: String,
        /// What is missing.
        fact: &'static str,
        /// Where it comes from.
        remedy: &'static str,
    },
    /// The engine's settings make no engine.
    #[error("{run}: {problem}")]
    Settings {
        /// The run.
        run: String,
        /// What the engine says.
        problem: String,
    },
    /// The schedule could not be repeated.
    #[error(
        "{run}: the schedule could be followed for {followed} of {steps} steps only: at iteration {iteration} the server \
         computed {logged}, and no arrival makes the engine do that. The run's requests must be all that the server had, \
         with prompts that share no prefix, and its settings (pool, limits) those of the run directory"
    )]
    Diverged {
        /// The run.
        run: String,
        /// Steps that agree.
        followed: usize,
        /// Steps of the run.
        steps: usize,
        /// The first iteration that differs.
        iteration: u64,
        /// Its composition, in words.
        logged: String,
    },
    /// Runs of different models.
    #[error("{run} is of another model ({model}) than {first}: calibrate them one by one")]
    OtherModel {
        /// The run.
        run: String,
        /// Its model.
        model: String,
        /// The first run.
        first: String,
    },
    /// The steps have no times.
    #[error("{run}: the steps have no times that tell one from the next")]
    NoTimes {
        /// The run.
        run: String,
    },
    /// Too few different steps.
    #[error("{}", unidentified(.0))]
    Unidentified(Vec<Unidentified>),
    /// A kernel table that cannot be read.
    #[error("{file}: {problem}")]
    Kernels {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// Anything that a sweep of a live server lacks.
    #[error("{0}")]
    Client(String),
}

fn unidentified(constants: &[Unidentified]) -> String {
    let mut text = "the steps are too alike to tell all constants:".to_owned();
    for lost in constants {
        write!(text, "\n  {}: {}; it takes {}", lost.constant, lost.why, lost.load)
            .expect("writing to a String cannot fail");
    }
    text.push_str("\n--partial writes the profile without them; a simulation that needs them will say so");
    text
}
