//! The engine's thread.
//!
//! | module | holds |
//! | --- | --- |
//! | `command` | what the HTTP side asks of it, and what it gets back |
//! | `core` | the engine with its device, its metrics and the requests that live: no clock |
//! | `pace` | the thread: waits for commands and for the ends of steps |

mod command;
mod core;
mod pace;

pub(crate) use command::{Collected, Command, Outlet, QueueGauge, Submission, TokenEvent, Way};
pub(crate) use core::Core;
pub(crate) use pace::Pace;
