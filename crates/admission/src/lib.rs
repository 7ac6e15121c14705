//! Whether a request may reach the server now, and when else: the guard's decisions, without clock or I/O.
//!
//! Whoever holds an [`Admission`] says what happens and when: a request comes ([`Admission::offer`]), a token passes,
//! a response ends, the server's metrics are read. The proxy does it by the real clock and `engine::virtual_time` in
//! virtual time; equal calls give equal answers.
//!
//! The forecast counts in *steps*, in each of which every running request gets one token, so the peak of the KV pool
//! does not rest on how long a step takes. Steps become seconds only where a client is told when to come again.
//!
//! | module | holds |
//! | --- | --- |
//! | [`settings`] | [`Settings`], what the operator chose, and [`Capacity`], what the server can carry |
//! | [`ask`] | [`Ask`], a request as the decision sees it, and [`Verdict`] |
//! | [`admission`] | [`Admission`], the decision over all replicas and the queue |
//! | `replica` | one server: its ledger, pace, margin and appointments |
//! | `ledger` | what was admitted and has not ended |
//! | `forecast` | KV blocks and seats over the coming steps |
//! | `backlog` | prompts that wait for their prefill |
//! | `appointment` | when refused clients were told to come again |
//! | `output` | how long outputs become, learned by route |
//! | `pace` | how long a step and a prompt token take |
//! | `margin` | the share of the pool that is left alone |
//! | `prefix` | beginnings of prompts that several requests share |
//! | [`figures`] | [`Figures`], what is counted |

pub mod admission;
mod appointment;
pub mod ask;
mod backlog;
pub mod figures;
mod forecast;
mod ledger;
mod margin;
mod output;
mod pace;
mod prefix;
mod replica;
pub mod settings;

pub use admission::{Admission, End};
pub use ask::{Ask, Grant, Impossible, LeaseId, Reason, Refusal, Ticket, Verdict};
pub use figures::{Figures, ReplicaState};
pub use settings::{Capacity, Observation, Settings};
