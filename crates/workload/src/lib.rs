//! What to ask a server, and when.
//!
//! A workload is a pure function of its specification, a seed and a salt: the same three give the same requests,
//! byte for byte, whether a real server is driven or the engine is simulated. Nothing here knows a clock, a
//! socket, a file or a tokenizer.
//!
//! | module | holds |
//! | --- | --- |
//! | [`spec`] | [`Spec`], what is asked for |
//! | [`arrival`] | [`Load`], what releases requests: closed loop, open loop, trace |
//! | [`length`] | [`Lengths`], how long prompts and outputs are |
//! | [`prefix`] | [`SharedPrefix`], prompts that begin alike |
//! | [`priority`] | [`Priorities`], classes of urgency |
//! | [`dataset`] | [`Dataset`], prompts, lengths and times from files |
//! | [`plan`] | [`Plan`] and [`Requests`], the resolved workload and its requests |
//! | [`facts`] | [`Facts`], a plan in a few numbers |
//! | [`request`], [`prompt`] | [`PlannedRequest`], [`Prompt`] and [`TokenRun`] |
//! | [`words`] | [`WordFit`], synthetic prompts as text |
//! | [`count`] | [`Tokens`] and [`Seconds`], as people write them |
//! | [`retry`] | whether and when a client asks again |
//! | [`stages`] | a load in stages |
//! | [`error`] | what can be wrong |
//!
//! ```
//! use precipice_workload::{Plan, Spec};
//!
//! let plan = Plan::new(Spec::closed(64, 128, 6144, 2048), 42, Some("run 1"), None)?;
//! assert_eq!(plan.requests().count(), 128);
//! # Ok::<(), precipice_workload::SpecError>(())
//! ```

pub mod arrival;
pub mod count;
pub mod dataset;
pub mod error;
pub mod facts;
pub mod hash;
pub mod length;
pub mod plan;
pub mod prefix;
pub mod priority;
pub mod prompt;
pub mod request;
pub mod retry;
mod schedule;
mod seed;
mod shape;
pub mod spec;
pub mod stages;
pub mod words;

pub use arrival::{Gaps, Load, Ramp, Rate};
pub use count::{MAX_TOKENS, Seconds, Tokens};
pub use dataset::{Dataset, ReadOptions};
pub use error::{DataError, ParseError, Place, SpecError};
pub use facts::{Facts, Spread};
pub use length::Lengths;
pub use plan::{Plan, Requests};
pub use prefix::{GroupChoice, SharedPrefix};
pub use priority::Priorities;
pub use prompt::{Chat, Prompt, TokenRun, token_id};
pub use request::{Arrival, PlannedRequest};
pub use retry::{RetryStyle, Told};
pub use schedule::client_start;
pub use spec::Spec;
pub use stages::{Stage, StageRate, Stages};
pub use words::{WordFit, word};
