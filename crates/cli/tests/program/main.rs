//! The program as a person runs it: exit codes, what goes to stdout, what is left on disk.
#![allow(clippy::unwrap_used)]

mod calibrate;
mod command;
mod harness;
#[cfg(unix)]
mod interrupted;
#[cfg(unix)]
mod live_sweep;
mod plan;
mod plan_server;
mod plan_shapes;
mod screens;
mod server;
mod settings;
mod sweep;
