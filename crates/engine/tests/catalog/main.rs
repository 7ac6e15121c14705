//! Models and GPUs, held against published and measured numbers.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod flops;
mod gpus;
mod shapes;
