//! The page at `/metrics`.
//!
//! | module | holds |
//! | --- | --- |
//! | `page` | the engine's series, written as `prometheus_client` writes them |
//! | `figures` | the few of them that the periodic log line needs |
//! | `process` | the process, from `/proc` |
//! | `http` | requests by handler, as `prometheus-fastapi-instrumentator` counts them |
//! | `delay` | how late tokens are: the server's audit of itself |

mod delay;
mod figures;
mod http;
mod page;
mod process;

pub(crate) use delay::DelayAudit;
pub(crate) use figures::Figures;
pub(crate) use http::HttpCounts;
pub(crate) use page::Whole;
