//! The engine behind an OpenAI-compatible endpoint with vLLM's metrics, in real time.
//!
//! It exists so that a client, a dashboard or an autoscaler can be tried against an overloaded server without a GPU,
//! and so that the tool's own load generator has a server whose truth is known. The decisions are those of
//! [`precipice_engine::EngineLoop`], the same as in virtual time; a [`StepCost`](precipice_engine::StepCost) says how
//! long a step lasts, and the real clock waits for it.
//!
//! Two threads: the engine's decides steps, waits for their ends and writes the tokens of streams; the HTTP runtime's
//! reads requests, writes heads and whole responses, and ends streams.
//!
//! | module | holds |
//! | --- | --- |
//! | [`config`] | [`ServeConfig`] |
//! | [`faults`] | [`Faults`], illnesses to serve with |
//! | [`server`] | [`Server`]: bind, run, stop |
//! | [`clock`] | the one place that reads the clock |
//! | [`tokenizer`] | text to token ids and back |
//! | `engine` | the engine's thread: decisions, pace, delivery |
//! | `http` | the endpoints |
//! | `metrics` | the page at `/metrics` |
//! | `log` | the log in vLLM's layout |

pub mod clock;
pub mod config;
mod engine;
pub mod faults;
mod http;
mod log;
mod metrics;
pub mod server;
pub mod tokenizer;

pub use config::{LogSink, ServeConfig};
pub use faults::{Faults, Stalls};
pub use server::{ServeError, Server};
