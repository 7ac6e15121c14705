//! The load generator and the sampler: everything that talks to a server under test.
//!
//! It exists because the usual tools measure themselves as soon as a server is fast: an HTTP pool hides which
//! read brought a token, a JSON parse stands between the read and its stamp, one busy loop serves the screen and
//! the sockets. Here a thread owns its sockets, stamps each read before anything else, and only then looks at
//! the bytes. How well that worked is measured in every run and stored with it.
//!
//! A run has three steps: [`Target::new`] resolves the server, [`preflight`](preflight::preflight) asks it what it
//! is and whether the plan can work, [`run`](run::run()) drives it and hands rows to a [`Sink`](precipice_record::Sink).
//! None of them is asynchronous; [`Handle`] watches and steers from another thread.
//!
//! | module | holds |
//! | --- | --- |
//! | [`target`] | [`Target`]: URL, addresses, TLS, headers, the API key |
//! | [`preflight`](mod@preflight) | what the server is, and whether the plan can work |
//! | [`server_facts`] | what a server says of itself, asked without any load |
//! | [`body`] | planned requests as bytes |
//! | [`load`] | schedule, stop rule, transport, and the loop that joins them |
//! | [`stream`] | a response body as it comes: which events carried tokens |
//! | [`http`] | HTTP/1.1 responses, read without copying |
//! | [`socket`], [`tls`] | TCP and TLS without blocking |
//! | [`sampler`] | `/metrics` |
//! | [`audit`] | how well the tool itself kept up |
//! | [`run`](mod@run) | one run from start to end |
//! | [`readiness`] | between two runs: does it answer, which process is it, is it idle |
//! | [`handle`] | progress, Ctrl-C |
//! | [`fetch`] | one request at a time, blocking: for preflight and sampler |
//! | [`clock`] | the run's clock |

pub mod audit;
pub mod body;
pub mod clock;
mod facts;
pub mod fetch;
pub mod handle;
pub mod http;
pub mod load;
pub mod preflight;
pub mod readiness;
pub mod run;
pub mod sampler;
mod socket;
mod stream;
pub mod target;
mod tls;

pub use audit::ClientVerdict;
pub use body::{FormError, PromptForm, RequestForm};
pub use facts::server_facts;
pub use handle::{Handle, Progress, ServerNow};
pub use load::{Load, Retries, Schedule, Stop, Timeouts};
pub use preflight::{Preflight, PreflightError, PromptChoice, ReadyWait, Wants, preflight};
pub use run::{DrivePlan, Outcome, Requests, RunError, run};
pub use sampler::MetricsSource;
pub use target::{Secret, Target, TargetError, TargetOptions, without_secrets};
