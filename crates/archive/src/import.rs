//! Results of other tools as runs.
//!
//! | module | holds |
//! | --- | --- |
//! | [`vllm_bench`](mod@vllm_bench) | the result of `vllm bench serve`, with scrapes and logs of the server beside it |
//! | [`error`] | [`ImportError`] |

mod align;
mod bench_rows;
pub mod error;
mod failure_text;
mod input;
mod scrapes;
mod server;
mod steps;
pub mod vllm_bench;

pub use error::ImportError;
pub use server::from_log as server_log;
pub use vllm_bench::{VllmBenchFiles, vllm_bench};
