//! A streaming reverse proxy that admits what the KV pool can carry and says when else to come.
//!
//! What may go when is decided by [`precipice_admission`], which knows no clock and no socket; here are both. A lease
//! lives in the body of its response and ends with it, whatever ends it: the last byte, the server's death, or the
//! client's.
//!
//! | module | holds |
//! | --- | --- |
//! | [`config`] | [`GuardConfig`] |
//! | [`guard`] | [`Guard`]: bind, run, drain |
//! | `state` | what all requests share: the decision, those who wait, the counts |
//! | `service` | what happens to a request |
//! | `question` | the body of a request as the decision sees it |
//! | `measure` | how much text a body holds, and which beginning it shares with others |
//! | `ratio` | bytes to tokens, learned |
//! | `lease` | what is held for an admitted request, and for one that waits |
//! | `passing` | a response on its way through |
//! | `meter` | tokens of a response, as they pass |
//! | `answer` | what the guard itself says: 429, 400, 413, 502 |
//! | `upstream` | the servers, and how they are asked |
//! | `discovery` | what a server says of itself |
//! | `watch` | looks at the servers' metrics |
//! | `page` | `/metrics` and `/guard` |
//! | `tls` | certificates of both sides |
//! | `log` | one JSON object a line |

mod answer;
pub mod config;
mod discovery;
pub mod guard;
mod lease;
mod log;
mod measure;
mod meter;
mod page;
mod passing;
mod question;
mod ratio;
mod service;
mod state;
mod tls;
mod upstream;
mod watch;

pub use config::{ClassHeader, GuardConfig, Known, LogSink, Tokenize};
pub use guard::{Guard, GuardError};
